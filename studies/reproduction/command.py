"""`python -m studies.reproduction`: the paper's tables beside ours, its claims, its figures, and the page about them."""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rbrl.exceptions import RBRLError
from rbrl.experiments.tables import show_tables
from studies.reproduction import cells as beside
from studies.reproduction.causes import effect_table, explained, far_table
from studies.reproduction.claims import beaten_table, claim_table, metric_ranks, overall_ranks, verdict_table
from studies.reproduction.cost import check, check_table, cost_tables
from studies.reproduction.methods import parameters_beside
from studies.reproduction.paper import FURTHER
from studies.reproduction.recorded import COMMAND, read_plan
from studies.reproduction.request import Request, records, show_json

# scikit-learn, Matplotlib and Jinja2 are imported where they are used, so that tables are quick.
STOPPED = 130


def results(request: Request) -> None:
    """Table 3: every cell beside the paper's."""
    if request.published:
        request.show(beside.published_table(3))
        return
    found = request.results()
    frame = beside.cells(found)
    counts, far = (
        beside.count_table(frame),
        explained(frame, request.source, request.plan, request.splits),
    )
    tables = [effect_table(frame, far.causes, far.variants)] if len(far.cells) and far.variants else []
    tables += [far_table(far.cells, "Cells that are far", far.causes)] if len(far.cells) else []
    if request.json:
        shown = {"cells": frame.astype(object).to_dict(orient="records"), "counts": records(counts)}
        show_json(shown | {table.name: records(table) for table in tables})
        return
    print("Table 3: results\n" + beside.LEGEND + "\n")
    show_tables(*beside.cell_tables(frame), counts, *tables)
    for line in beside.agreement(found, frame).sentences():
        print(line)


def check_recorded(request: Request, number: int, seed: int | None) -> bool:
    """Recompute recorded results; return True if all agree with the record."""
    checked = check(request.rows(), read_plan(request.plan), number, seed, request.data_home, request.tell)
    request.show(check_table(checked))
    return all(one.agrees for one in checked)


def ranks(request: Request) -> None:
    """Table 4."""
    request.show(beside.ranks_beside() if request.published else metric_ranks(request.sources(), ties="minimum"))


def ablation(request: Request) -> None:
    """Table 6."""
    if request.published:
        request.show(beside.published_table(6))
        return
    found = request.results(None, "BRL")
    request.show(beside.ablation_beside(found), beside.ablation_summary(found))


def times(request: Request) -> None:
    """Table 7, and the ratio of our solver to the authors'."""
    tables = [beside.time_beside(None if request.published else request.results())]
    if not request.published and not request.store and request.recorded.has_table("solver"):
        from studies.reproduction.studies import solver_table

        tables.append(solver_table(request.recorded.table("solver")))
    request.show(*tables)


def observations(request: Request) -> None:
    """The seven observations: verdicts, and the claims behind them."""
    found = request.sources(*_both(request))
    request.show(verdict_table(found), claim_table(found))


def show_verdicts(request: Request) -> None:
    """RBRL against every method: leads, effect sizes, Wilcoxon with Holm, Bayesian probabilities."""
    from studies.reproduction import verdicts

    sources = request.sources(*_both(request), others=FURTHER)
    found = {name: verdicts.verdicts(one) for name, one in sources.items()}
    tables = [verdicts.verdict_grid(frame, name) for name, frame in found.items()]
    request.show(*tables, verdicts.verdict_rows(found))


def fair(request: Request) -> None:
    """The published rules and equal terms, side by side."""
    found = request.sources(*_both(request))
    request.show(overall_ranks(found), metric_ranks(found), beaten_table(found), verdict_table(found))


def _both(request: Request) -> list[str]:
    """Return the plan of the request, and for the paper's plan the one on equal terms as well."""
    too = request.plan == "paper" and not request.published and request.source.has("paper-fair")
    return [request.plan, *(["paper-fair"] if too else [])]


def criteria(request: Request) -> None:
    """Criteria of cross-validation and preprocessing: how near the paper each comes."""
    from studies.reproduction.criteria import variant_tables

    request.show(*variant_tables(request.source))


def solver(request: Request) -> None:
    """Our solver against the authors' algorithm, computed."""
    from studies.reproduction.figures import solver_study
    from studies.reproduction.studies import solver_table

    request.show(solver_table(solver_study(request)["solver"]))


def oracle(request: Request) -> None:
    """Show the point of the paper's grid that is nearest to its figures, for cells that are far from ours."""
    from studies.reproduction.oracle import oracle_table, run, weight_table

    if request.minutes:
        run(request.recorded, request.minutes, request.data_home, request.tell, request.wants)
    found = request.recorded.table("oracle")
    request.show(oracle_table(found, request.recorded), weight_table(found))


def figure(number: int) -> Callable[[Request], None]:
    """Return the function that draws and saves one of the paper's figures."""

    def draw(request: Request) -> None:
        from studies.reproduction.figures import FIGURES

        files = FIGURES[number](request)
        if request.json:
            show_json([str(path) for path in files])
        elif not request.quiet:
            for path in files:
                print(path)

    return draw


def step(name: str) -> Callable[[Request], None]:
    """Return the function that runs one of the steps from plans to pages."""

    def do(request: Request) -> None:
        from studies.reproduction.steps import STEPS

        STEPS[name](request)

    return do


ACTIONS: dict[str, Callable[[Request], None]] = {
    "table1": lambda request: request.show(beside.datasets_beside()),
    "table2": lambda request: request.show(parameters_beside()),
    "table3": results,
    "table4": ranks,
    "table5": lambda request: request.show(beside.friedman_beside(request.results())),
    "table6": ablation,
    "table7": times,
    **{f"figure{number}": figure(number) for number in range(1, 6)},
    "observations": observations,
    "fair": fair,
    "verdicts": show_verdicts,
    "criteria": criteria,
    "cost": lambda request: request.show(*cost_tables(request.rows(), request.source.effort(request.plan))),
    "solver": solver,
    "oracle": oracle,
    **{name: step(name) for name in ("export", "studies", "page", "all")},
}
Target = StrEnum(
    "Target",
    "table1 table2 table3 table4 table5 table6 table7 figure1 figure2 figure3 figure4 figure5 "
    "observations fair verdicts criteria cost solver oracle export studies page all",
)
# Targets that follow from Table 3 alone, and so from the published one.
STATISTICS = ("table4", "table5", "figure1", "figure2")


app = typer.Typer(
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(no_args_is_help=True)
def run(
    what: Annotated[
        Target,
        typer.Argument(
            metavar="WHAT",
            show_default=False,
            help="table1 … 7, figure1 … 5, observations, fair, verdicts, criteria, cost, solver, oracle, export, studies, "
            "page or all.",
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
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", "-d", help="A data set or a file; may be repeated.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option("--method", "-m", help="A method; may be repeated.")] = None,
    split: Annotated[
        list[int] | None, typer.Option("--split", "-s", min=0, help="A split, from 0.", show_default=False)
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="table3: recompute recorded results.")] = False,
    number: Annotated[int, typer.Option(min=1, help="How many results --check recomputes.")] = 2,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of what --check draws; default: any.", show_default=False)
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="all: runs at a time; -1 for one per core.")] = 1,
    minutes: Annotated[
        float, typer.Option(min=0, help="oracle: processor minutes for searches that are not recorded yet.")
    ] = 0.0,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of figures and pages.")] = Path("paper"),
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="page: write all pages and figures into one HTML file as well.",
            show_default=False,
        ),
    ] = None,
    data_home: Annotated[
        Path | None, typer.Option(help="Folder of data files, NAME.npz or NAME.arff.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Set the paper's tables beside ours, cell by cell, test its claims, and draw its figures.

    table4, table5, figure1 and figure2 follow from the published Table 3, or with --ours, --plan, --results or --run from
    ours. Ours are the results recorded in studies/reproduction/results, or those of a store with --run; --plan names
    another plan than the paper's, such as paper-fair. figure3, figure4, figure5 and solver are computed where they are
    not recorded. `all` runs what is missing of the plans into --run (default: runs/paper), records it, computes the
    figures, and writes the page docs/reproduction.md; export, studies and page do the last steps alone.

    Examples:

    `python -m studies.reproduction table3 --method rbrl --split 0`

    `python -m studies.reproduction table3 --check`

    `python -m studies.reproduction table4 --run runs/paper --plan paper-fair`

    `python -m studies.reproduction observations`

    `python -m studies.reproduction page --html runs/reproduction.html`
    """
    if published is None:
        published = what in STATISTICS and store is None and results is None and plan == "paper"
    request = Request(
        store=store,
        folder=results,
        plan=plan,
        published=published,
        datasets=tuple(dataset or ()),
        methods=tuple(method or ()),
        splits=tuple(split or ()),
        output=output,
        html=html,
        data_home=data_home,
        jobs=jobs,
        minutes=minutes,
        json=json,
        quiet=quiet,
    )
    if check and what != "table3":
        raise ValueError(f"--check goes with table3. Got {what} instead.")
    if check:
        raise typer.Exit(0 if check_recorded(request, number, seed) else 1)
    ACTIONS[what](request)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; exit with 0, 1 if a run failed, or 2 if the call or its input was wrong.

    With the environment variable RBRL_DEBUG an error shows its traceback.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: the arguments of the process.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *where, **options: _say(str(message))
            app(args=arguments, prog_name=COMMAND)
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe; nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        _say("stopped")
        raise SystemExit(STOPPED) from None
    except (ValueError, OSError, ImportError, MemoryError, RBRLError) as error:
        if os.environ.get("RBRL_DEBUG"):
            raise
        _say(_line(error))
        raise SystemExit(2) from None


def _say(text: str) -> None:
    print(f"reproduction: {text}", file=sys.stderr)


def _line(error: Exception) -> str:
    """Return an error in one line, with the file first."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
