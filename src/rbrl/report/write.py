"""Everything about a run in one folder: tables, figures, the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rbrl.report.comparison import compare, rank_table
from rbrl.report.page import TITLE, write_page
from rbrl.report.results import Results
from rbrl.report.table import USUAL_FORMATS, Table, save_table
from rbrl.report.tables import all_tables


@dataclass(frozen=True)
class Report:
    """What was written.

    Attributes
    ----------
    page : Path
    tables : dict of str to Table
    files : list of Path
    """

    page: Path
    tables: dict[str, Table]
    files: list[Path]


def write_report(
    rows: pd.DataFrame | Results,
    folder: Path | str,
    *,
    title: str = TITLE,
    command: str = "",
    plan: str = "",
    ablation: tuple[str, str] | None = None,
    formats: Sequence[str] = USUAL_FORMATS,
    datasets: pd.DataFrame | None = None,
) -> Report:
    """Write tables, figures and the page of a run.

    Parameters
    ----------
    rows : DataFrame or Results
        Rows of a store, or results.
    folder : path
        Gets report.html, tables/ and figures/.
    title, command, plan : str
        Shown on the page.
    ablation : pair of str, optional
        Methods of the ablation table; BRL and RBRL where the run has both.
    formats : sequence of str
        Of the tables: csv, json, tex, md, html.
    datasets : DataFrame, optional
        Sizes of data sets outside the catalogue; see `Results.from_rows`.

    Returns
    -------
    Report
        The page, the tables, and all files that were written.
    """
    results, folder = rows if isinstance(rows, Results) else Results.from_rows(rows, datasets), Path(folder)
    tables = all_tables(results, ablation)
    files = [path for table in tables.values() for path in save_table(table, folder / "tables", formats)]
    files += save_figures(results, folder / "figures")
    page = write_page(results, folder / "report.html", title=title, command=command, plan=plan)
    return Report(page, tables, [page, *files])


def save_figures(results: Results, folder: Path) -> list[Path]:
    """Write the figures that a run has: ranks, critical differences, time against quality."""
    from rbrl.report import figures

    drawn, ranks = {}, rank_table(results).loc["Overall"].dropna()
    if len(ranks):
        drawn["average-ranks"] = figures.draw_average_ranks(ranks)
    for comparison in (compare(results, metric) for metric in results.metrics):
        if comparison.decides_pairs:
            name = f"critical-difference-{comparison.metric.name}"
            drawn[name] = figures.draw_critical_difference(comparison)
    seconds = results.training_seconds().reindex(ranks.index).dropna()
    if len(seconds):
        drawn["time-against-quality"] = figures.draw_trade_off(seconds, ranks)
    return [path for name, figure in drawn.items() for path in figures.save_figure(figure, folder / name)]
