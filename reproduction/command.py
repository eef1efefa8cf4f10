"""What `rbrl reproduce` does for each of its targets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from rbrl.cli.inputs import DataHome, Datasets, Json, Methods, Quiet
from rbrl.cli.output import records, say, show, show_json
from reproduction import cells as beside
from reproduction.paper import key, published_results

PAPER, OURS, EQUAL = "The paper", "Ours, its rules", "Ours, equal terms"


@dataclass(frozen=True)
class Request:
    """What was asked for, and where results are."""

    store: Path | None = None
    folder: Path | None = None
    plan: str = "paper"
    published: bool = False
    datasets: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    splits: list[int] = field(default_factory=list)
    output: Path = Path("paper")
    data_home: Path | None = None
    jobs: int = 1
    json: bool = False
    quiet: bool = False

    @property
    def source(self) -> Any:
        """Where rows come from: the store if one is given, else the recorded files."""
        from reproduction.recorded import Stored

        return Stored(self.store) if self.store else self.recorded

    @property
    def recorded(self) -> Any:
        """The recorded files."""
        from reproduction.recorded import Recorded, project_folder

        return Recorded(project_folder("results", self.folder))

    def rows(self, plan: str | None = None) -> Any:
        """Rows of a plan, of the data sets, methods and splits that were asked for."""
        rows = self.source.rows(plan or self.plan)
        wanted = {key(name) for name in self.methods}
        chosen = rows.method.map(key).isin(wanted) if wanted else rows.method.notna()
        chosen &= rows.dataset.isin(self.datasets) if self.datasets else True
        chosen &= rows.split.isin(self.splits) if self.splits else True
        if not chosen.any():
            what = ", ".join(map(str, [*self.datasets, *self.methods, *self.splits])) or "anything"
            raise ValueError(f"There are no results of {plan or self.plan} for {what}.")
        return rows[chosen]

    def results(self, plan: str | None = None, *others: str) -> Any:
        """Results with the paper's methods and names; the paper's own if those were asked for."""
        from reproduction.paper import as_published

        return published_results() if self.published else as_published(self.rows(plan), *others)

    def sources(self, *plans: str) -> dict[str, Any]:
        """The paper's results and ours, by name."""
        if self.published:
            return {PAPER: published_results()}
        named = {"paper": OURS, "paper-fair": EQUAL}
        plans = plans or (self.plan,)
        return {PAPER: published_results()} | {named.get(plan, plan): self.results(plan) for plan in plans}

    def tell(self, text: str) -> None:
        """Say something that is not the answer."""
        say(text, self.quiet or self.json)

    def show(self, *tables: Any) -> None:
        """Print tables, or their figures as JSON."""
        if not self.json:
            show(*tables)
        else:
            one = records(tables[0]) if len(tables) == 1 else {table.name: records(table) for table in tables}
            show_json(one)


def datasets(request):
    """Table 1."""
    from rbrl.report.tables import datasets_beside

    request.show(datasets_beside())


def parameters(request):
    """Table 2."""
    from reproduction.methods import parameters_beside

    request.show(parameters_beside())


def results(request):
    """Table 3: every cell beside the paper's."""
    from reproduction.cells import LEGEND, agreement, cell_tables, cells, count_table

    if request.published:
        request.show(beside.results_beside(None))
        return
    found = request.results()
    frame = cells(found)
    tables = [count_table(frame), *_far(request, frame)]
    if request.json:
        shown = {"cells": frame.astype(object).to_dict(orient="records"), "counts": records(tables[0])}
        show_json(shown | {table.name: records(table) for table in tables[1:]})
        return
    print("Table 3: results\n" + LEGEND + "\n")
    show(*cell_tables(frame), *tables)
    for line in agreement(found, frame).sentences():
        print(line)


def _far(request, frame):
    """What changes of the plan do to far cells, and the far cells, each with the change that explains it."""
    from reproduction.causes import changed_cells, effect_table, explain, far_table, read_causes
    from reproduction.recorded import project_folder, stem

    try:
        causes = read_causes(project_folder("docs") / "reproduction" / "causes.toml")
    except FileNotFoundError:  # an installation has no docs, and so no causes; the cells are far all the same
        causes = []
    variants = changed_cells(causes, request.source, stem(request.plan), request.splits)
    far = explain(frame, causes, variants)
    moved = [effect_table(frame, causes, variants)] if variants else []
    return [*moved, far_table(far, "Cells that are far", causes)] if len(far) else []


def check_recorded(request, number, seed):
    """Recompute recorded results; return whether all came out as recorded."""
    from reproduction.cost import check, check_table
    from reproduction.recorded import read_plan

    checked = check(request.rows(), read_plan(request.plan), number, seed, request.data_home, request.tell)
    request.show(check_table(checked))
    return all(one.agrees for one in checked)


def ranks(request):
    """Table 4."""
    if request.published:
        request.show(beside.ranks_beside())
        return
    from reproduction.claims import metric_ranks

    request.show(metric_ranks(request.sources(), ties="minimum"))


def friedman(request):
    """Table 5."""
    request.show(beside.friedman_beside(request.results()))


def ablation(request):
    """Table 6."""
    from reproduction.cells import ablation_beside, ablation_summary

    if request.published:
        request.show(beside.results_beside(None, "ablation"))
        return
    found = request.results(None, "BRL")
    request.show(ablation_beside(found), ablation_summary(found))


def times(request):
    """Table 7, and the ratio of our solver to the authors'."""
    from reproduction.studies import solver_table

    tables = [beside.time_beside(None if request.published else request.results())]
    if not request.published and not request.store and request.recorded.has_table("solver"):
        tables.append(solver_table(request.recorded.table("solver")))
    request.show(*tables)


def observations(request):
    """The seven observations: verdicts, and the claims behind them."""
    from reproduction.claims import claim_table, verdict_table

    found = request.sources(*_both(request))
    request.show(verdict_table(found), claim_table(found))


def fair(request):
    """The published rules and equal terms, side by side."""
    from reproduction.claims import beaten_table, metric_ranks, overall_ranks, verdict_table

    found = request.sources(*_both(request))
    request.show(overall_ranks(found), metric_ranks(found), beaten_table(found), verdict_table(found))


def _both(request):
    plans = [request.plan]
    if request.plan == "paper" and not request.published and request.source.has("paper-fair"):
        plans.append("paper-fair")
    return plans


def criteria(request):
    """Criteria of cross-validation and preprocessing: how near the paper each comes."""
    from reproduction.criteria import variant_tables

    request.show(*variant_tables(request.source))


def cost(request):
    """Fits and hours."""
    from reproduction.cost import cost_tables

    request.show(*cost_tables(request.rows(), request.source.effort(request.plan)))


def figure(number, request):
    """One of the paper's figures, drawn and saved."""
    from reproduction.figures import FIGURES

    files = FIGURES[number](request)
    if request.json:
        show_json([str(path) for path in files])
    elif not request.quiet:
        for path in files:
            print(path)


def solver(request):
    """Our solver against the authors' algorithm, computed."""
    from reproduction.figures import solver_study
    from reproduction.studies import solver_table

    request.show(solver_table(solver_study(request)))


def _everything(step, request):
    from reproduction import steps as reproduce_all

    getattr(reproduce_all, step)(request)


ACTIONS: dict[str, Callable[[Request], None]] = {
    "table1": datasets,
    "table2": parameters,
    "table3": results,
    "table4": ranks,
    "table5": friedman,
    "table6": ablation,
    "table7": times,
    **{f"figure{number}": partial(figure, number) for number in range(1, 6)},
    "observations": observations,
    "fair": fair,
    "criteria": criteria,
    "cost": cost,
    "solver": solver,
    **{step: partial(_everything, step) for step in ("export", "studies", "page", "all")},
}


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
        raise typer.Exit(0 if check_recorded(request, number, seed) else 1)
    ACTIONS[what](request)


def _from_published(what, store, results, plan):
    """Whether a target that follows from Table 3 alone takes the published one."""
    return what in STATISTICS and store is None and results is None and plan == "paper"
