"""Everything about a run in one folder: tables, figures, the page."""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from rbrl._common.files import write_text_atomically
from rbrl.report.comparison import compare, rank_table
from rbrl.report.page.content import content
from rbrl.report.results import Results, training_seconds
from rbrl.report.table import Table, save_table
from rbrl.report.tables import all_tables


def render_page(
    rows: pd.DataFrame | Results, *, title: str = "Comparison of multi-label methods", command: str = "", plan: str = ""
) -> str:
    """The page as text; see `write_page`."""
    results = rows if isinstance(rows, Results) else Results.from_rows(rows)
    script = _part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = _environment().get_template("page.html")
    return template.render(
        **content(results, title, command, plan),
        css=Markup(_part("page.css")),
        script=Markup(script),
        script_hash=digest,
    )


def write_page(rows: pd.DataFrame | Results, path: Path | str, **options: Any) -> Path:
    """Write one self-contained HTML file: no network, nothing beside it, every name escaped.

    Parameters
    ----------
    rows : DataFrame or Results
        Rows of a store, or results.
    path : path
    title : str, optional
    command : str, optional
        What made the run; shown under "How to reproduce".
    plan : str, optional
        The plan's text, shown there too.

    Returns
    -------
    Path
    """
    path = Path(path)
    text = render_page(rows, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, text)
    return path


@cache
def _part(name):
    return files("rbrl.report.page").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment():
    return Environment(
        loader=FunctionLoader(_part), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


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
