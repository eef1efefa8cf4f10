"""`rbrl reproduce`: the paper's tables and figures."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rbrl.cli.options import DataHome, Json, Quiet
from rbrl.cli.output import records, say, show, show_json


class Target(StrEnum):
    """What the paper has."""

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
    all = "all"


def run(
    what: Annotated[
        Target, typer.Argument(metavar="[WHAT]", help="table1 … table7, figure1 … figure5, or all.")
    ] = Target.all,
    store: Annotated[
        Path | None,
        typer.Option("--run", "-r", metavar="RUN", help="Folder that `rbrl compare` wrote.", show_default=False),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the figures and the page.")] = Path("paper"),
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", help="figure3 to figure5: another data set.", show_default=False)
    ] = None,
    data_home: DataHome = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Set the paper's tables beside ours, cell by cell, and draw its figures.

    table4, table5, figure1 and figure2 follow from the published results, or from a run with --run. table3, table6
    and table7 show a run of the paper's plan beside the printed figures. figure3, figure4 and figure5 are computed.

    Examples:

    `rbrl reproduce table5`

    `rbrl compare plans/paper.toml -o runs/paper` and then `rbrl reproduce table3 --run runs/paper`

    `rbrl reproduce figure3 -o figures`
    """
    results = _results(store)
    if what == "all":
        _all(results, output, json, quiet)
    elif what.startswith("table"):
        _show([_table(int(what[-1]), results)], json)
        if results is None and what[-1] in "367":
            say(
                f"For our own figures: rbrl compare plans/paper.toml, then rbrl reproduce {what} --run runs/paper",
                quiet,
            )
    else:
        _figure(int(what[-1]), results, output, dataset, data_home, json, quiet)


def _results(store):
    if store is None:
        return None
    if not store.is_dir():
        raise FileNotFoundError(f"no such folder: {store}; `rbrl compare` makes one")
    from rbrl.experiments import Store
    from rbrl.report.results import Results

    return Results.from_rows(Store(store).rows())


def _table(number, results):
    from rbrl.report import reproduction as paper

    if number == 1:
        from rbrl.report.data_tables import datasets_beside

        return datasets_beside()
    makers = {
        2: lambda: paper.parameters_published(),
        3: lambda: paper.results_beside(results),
        4: lambda: paper.ranks_beside(results),
        5: lambda: paper.friedman_beside(results),
        6: lambda: paper.results_beside(results, "ablation"),
        7: lambda: paper.time_beside(results),
    }
    return makers[number]()


def _show(tables, json):
    if not json:
        show(*tables)
    else:
        show_json(records(tables[0]) if len(tables) == 1 else {table.name: records(table) for table in tables})


def _figure(number, results, output, dataset, data_home, json, quiet):
    from rbrl.cli.paper_figures import FIGURES

    files = FIGURES[number](results, output, dataset, data_home, lambda text: say(text, quiet or json))
    if json:
        show_json([str(path) for path in files])
    elif not quiet:
        for path in files:
            print(path)


def _all(results, output, json, quiet):
    """Everything that needs no computing: the tables, the first two figures, and a page."""
    from rbrl.cli.paper_figures import FIGURES
    from rbrl.report.page import write_page
    from rbrl.report.paper_tables import published_results

    tables = [_table(number, results) for number in range(1, 8)]
    _show([table for table in tables if json or results or table.name not in ("table3", "table6", "table7")], json)
    for number in (1, 2):
        FIGURES[number](results, output, None, None, lambda text: None)
    title = "Our run of the paper's comparison" if results else "The paper's comparison, as published"
    page = write_page(results or published_results(), output / "report.html", title=title, command="rbrl reproduce all")
    say(f"\nFigures 1 and 2 and the page: {page}", quiet or json)
