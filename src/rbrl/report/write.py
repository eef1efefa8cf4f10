"""Everything about a run in one folder: tables, figures, the page."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rbrl.report.collection import all_tables
from rbrl.report.comparison import compare, rank_table
from rbrl.report.formats import save_table
from rbrl.report.results import Results
from rbrl.report.table import Table


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
    title: str = "Comparison of multi-label methods",
    command: str = "",
    plan: str = "",
    ablation: tuple[str, str] | None = None,
    formats: tuple[str, ...] = ("csv", "tex", "md", "html"),
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
    formats : tuple of str
        Of the tables: csv, json, tex, md, html.
    datasets : DataFrame, optional
        Sizes of data sets outside the catalogue; see `Results.from_rows`.
    """
    from rbrl.report.page import write_page

    results, folder = rows if isinstance(rows, Results) else Results.from_rows(rows, datasets), Path(folder)
    tables = all_tables(results, ablation)
    files = [path for table in tables.values() for path in save_table(table, folder / "tables", formats)]
    files += save_figures(results, folder / "figures")
    page = write_page(results, folder / "report.html", title=title, command=command, plan=plan)
    return Report(page, tables, [page, *files])


def save_figures(results: Results, folder: Path) -> list[Path]:
    """Write the figures that a run has: ranks, critical differences, time against quality."""
    from rbrl.report import figures

    files, ranks = [], rank_table(results).loc["Overall"].dropna()
    if len(ranks):
        files += figures.save_figure(figures.draw_average_ranks(ranks), folder / "average-ranks")
    for metric in results.metrics:
        comparison = compare(results, metric)
        if comparison.decides_pairs:
            figure = figures.draw_critical_difference(comparison)
            files += figures.save_figure(figure, folder / f"critical-difference-{metric.name}")
    seconds = training_seconds(results).reindex(ranks.index).dropna()
    if len(seconds):
        files += figures.save_figure(figures.draw_trade_off(seconds, ranks), folder / "time-against-quality")
    return files


def training_seconds(results: Results) -> pd.Series:
    """Geometric mean over data sets of each method's seconds to train."""
    return np.exp(np.log(results.seconds("train_seconds").clip(lower=1e-4)).mean())
