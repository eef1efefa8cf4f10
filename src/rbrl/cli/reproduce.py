"""`rbrl reproduce`: the paper's tables, figures and claims beside ours."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rbrl.cli.options import DataHome, Datasets, Json, Methods, Quiet


class Target(StrEnum):
    """What there is to reproduce."""

    table1 = "table1"
    table2 = "table2"
    table3 = "table3"
    table4 = "table4"
    table5 = "table5"
    table6 = "table6"
    table7 = "table7"
    figure1 = "figure1"
    figure2 = "figure2"
    figure3 = "figure3"
    figure4 = "figure4"
    figure5 = "figure5"
    observations = "observations"
    fair = "fair"
    criteria = "criteria"
    cost = "cost"
    solver = "solver"
    export = "export"
    studies = "studies"
    page = "page"
    all = "all"


STATISTICS = (Target.table4, Target.table5, Target.figure1, Target.figure2)


def run(
    what: Annotated[
        Target,
        typer.Argument(
            metavar="WHAT",
            show_default=False,
            help="table1 … 7, figure1 … 5, observations, fair, criteria, cost, solver, export, studies, page or all.",
        ),
    ],
    store: Annotated[
        Path | None,
        typer.Option("--run", "-r", metavar="RUN", help="Folder that `rbrl compare` wrote.", show_default=False),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder of recorded results; default: that of the repository.", show_default=False),
    ] = None,
    plan: Annotated[str, typer.Option("--plan", "-p", help="The plan whose results are shown.")] = "paper",
    published: Annotated[
        bool | None,
        typer.Option(
            "--published/--ours",
            help="From the paper's own results, the default of table4, table5, figure1 and figure2 without --run, or ours.",
            show_default=False,
        ),
    ] = None,
    dataset: Datasets = None,
    method: Methods = None,
    split: Annotated[
        list[int] | None, typer.Option("--split", "-s", min=0, help="A split, from 0.", show_default=False)
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="table3: recompute recorded results.")] = False,
    number: Annotated[int, typer.Option(min=1, help="How many results --check recomputes.")] = 2,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of what --check draws; default: any.", show_default=False)
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="all: runs at a time; -1 for one per core.")] = 1,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of figures and pages.")] = Path("paper"),
    data_home: DataHome = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Set the paper's tables beside ours, cell by cell, test its claims, and draw its figures.

    table4, table5, figure1 and figure2 follow from the published Table 3, or with --ours, --plan, --results or --run from
    ours. Ours are the results recorded in the repository's folder results, or those of a store with --run; --plan names
    another plan than the paper's, such as paper-fair. figure3, figure4, figure5 and solver are computed where they are
    not recorded. `all` runs what is missing of the plans into --run (default: runs/paper), records it, computes the
    figures, and writes the page docs/reproduction.md; export, studies and page do the last steps alone.

    Examples:

    `rbrl reproduce table3 --method rbrl --split 0`

    `rbrl reproduce table3 --check`

    `rbrl reproduce table4 --run runs/paper --plan paper-fair`

    `rbrl reproduce observations`
    """
    from rbrl.cli.reproductions import ACTIONS, Request

    request = Request(
        store=store,
        folder=results,
        plan=plan,
        published=_from_published(what, store, results, plan) if published is None else published,
        datasets=dataset or [],
        methods=method or [],
        splits=split or [],
        output=output,
        data_home=data_home,
        jobs=jobs,
        json=json,
        quiet=quiet,
    )
    if check and what != "table3":
        raise ValueError(f"--check goes with table3. Got {what} instead.")
    if check:
        from rbrl.cli.reproductions import check_recorded

        raise typer.Exit(0 if check_recorded(request, number, seed) else 1)
    ACTIONS[what](request)


def _from_published(what, store, results, plan):
    """Whether a target that follows from Table 3 alone takes the published one."""
    return what in STATISTICS and store is None and results is None and plan == "paper"
