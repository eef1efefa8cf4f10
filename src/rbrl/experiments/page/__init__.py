"""Report of a run in one folder: tables, figures, and a page that is one HTML file."""

import base64
import hashlib
import html
import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from rbrl._common.environment import import_extra
from rbrl.experiments import comparison_tables as tables
from rbrl.experiments.comparison import Comparison, compare, find_lowest, headline, rank_table, verdict
from rbrl.experiments.results import Results
from rbrl.experiments.tables import USUAL_FORMATS, Table, join, save_table, seconds, word, write_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

PAGE_TITLE = "Comparison of multi-label methods"
# Columns of the runs that are shown under "How to reproduce", with their titles.
FACT_TITLES = {"version": "rbrl", "machine": "Machine", "seed": "Seeds"}
# Largest number of different values of a fact; dots replace the rest.
MAX_FACT_VALUES = 12


@dataclass(frozen=True)
class Report:
    """Files of a report.

    Attributes
    ----------
    page : Path
        Path of the page.
    tables : dict of str to Table
        Tables by name.
    files : list of Path
        Paths of all files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rbrl.experiments import Report
    >>> report = Report(Path("report.html"), {}, [Path("report.html")])
    >>> report.page.name
    'report.html'
    """

    page: Path
    tables: dict[str, Table]
    files: list[Path]


def write_report(
    rows: pd.DataFrame | Results, folder: Path | str, *, title: str = PAGE_TITLE, command: str = "", plan: str = "",
    ablation: tuple[str, str] | None = None, formats: Sequence[str] = USUAL_FORMATS, datasets: pd.DataFrame | None = None,
    reliability: pd.DataFrame | None = None,
) -> Report:  # fmt: skip
    """Write the tables, figures and page of a run.

    Parameters
    ----------
    rows : DataFrame or Results
        Rows of a store, or results.
    folder : path
        Folder for report.html, tables/ and figures/.
    title, command, plan : str
        Title, command and plan that the page shows.
    ablation : pair of str, optional
        Methods of the ablation table. By default BRL and RBRL, if the run has both.
    formats : sequence of str
        Formats of the tables: csv, json, tex, md, html.
    datasets : DataFrame, optional
        Sizes of data sets outside the catalogue; see `Results.from_rows`.
    reliability : DataFrame, optional
        Bins of probabilities; see `Results.from_rows`.

    Returns
    -------
    Report

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, write_report
    >>> summary = pd.DataFrame({"dataset": "sea", "metric": "hamming_loss", "method": ["brl", "rbrl"], "mean": [0.2, 0.1],
    ...                         "std": 0.0})
    >>> report = write_report(Results.from_summary(summary), mkdtemp(), formats=["csv"])
    >>> report.page.name, "results" in report.tables
    ('report.html', True)
    """
    results = rows if isinstance(rows, Results) else Results.from_rows(rows, datasets, reliability)
    folder = Path(folder)
    by_name, paths = write_tables(results, folder, ablation, formats)
    paths += _save_figures(results, folder / "figures")
    page = write_page(results, folder / "report.html", title=title, command=command, plan=plan)
    return Report(page, by_name, [page, *paths])


def write_tables(
    results: Results, folder: Path, ablation: tuple[str, str] | None = None, formats: Sequence[str] = USUAL_FORMATS
) -> tuple[dict[str, Table], list[Path]]:
    """Write the tables of a report, which need neither matplotlib nor Jinja2; return them by name, and their files.

    The parameters are those of `write_report`.
    """
    by_name = tables.all_tables(results, ablation)
    paths = [path for table in by_name.values() for path in save_table(table, folder / "tables", formats)]
    return by_name, paths


def _save_figures(results: Results, folder: Path) -> list[Path]:
    """Write the figures of a run: ranks, critical differences, time against quality, reliability."""
    from rbrl.experiments import figures, label_figures

    drawn = {}
    ranks = rank_table(results).loc["Overall"].dropna()
    if len(ranks):
        drawn["average-ranks"] = figures.draw_average_ranks(ranks)
    for comparison in (compare(results, metric) for metric in results.metrics):
        if comparison.decides_pairs:
            name = f"critical-difference-{comparison.metric.name}"
            drawn[name] = figures.draw_critical_difference(comparison)
    train = results.training_seconds().reindex(ranks.index).dropna()
    if len(train):
        drawn["time-against-quality"] = figures.draw_trade_off(train, ranks)
    if bins := label_figures.bins_by_method(results):
        drawn["reliability"] = label_figures.draw_reliability(bins)
    return [path for name, figure in drawn.items() for path in figures.save_figure(figure, folder / name)]


def write_page(
    rows: pd.DataFrame | Results, path: Path | str, *, title: str = PAGE_TITLE, command: str = "", plan: str = ""
) -> Path:
    """Write one self-contained HTML file, which needs neither network nor other files.

    Parameters
    ----------
    rows : DataFrame or Results
        Rows of a store, or results.
    path : path
        Path of the file.
    title : str, optional
        Title of the page.
    command : str, optional
        Command that made the run, for the section "How to reproduce".
    plan : str, optional
        Text of the plan, for the same section.

    Returns
    -------
    Path
        Path of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, write_page
    >>> summary = pd.DataFrame({"dataset": "sea", "metric": "hamming_loss", "method": ["brl", "rbrl"], "mean": [0.2, 0.1],
    ...                         "std": 0.0})
    >>> write_page(Results.from_summary(summary), Path(mkdtemp(), "report.html")).name
    'report.html'
    """
    return write_text(Path(path), render_page(rows, title=title, command=command, plan=plan))


def render_page(rows: pd.DataFrame | Results, *, title: str = PAGE_TITLE, command: str = "", plan: str = "") -> str:
    """Return the text of the page; see `write_page`."""
    from markupsafe import Markup

    results = rows if isinstance(rows, Results) else Results.from_rows(rows)
    script = _read_part("page.js")
    # The page allows this script and no other: a name that became an element could still not run.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {"css": Markup(_read_part("page.css")), "script": Markup(script), "script_hash": digest}
    texts = {"title": title, "command": command, "plan": plan}
    return _environment().get_template("page.html").render(**_collect_content(results), **texts, **parts)


@cache
def _read_part(name: str) -> str:
    return files("rbrl.experiments.page").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> "Environment":
    jinja2 = import_extra("jinja2", "report", "The page of a comparison")
    blocks: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True}
    loader = jinja2.FunctionLoader(_read_part)
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, **blocks)


def _collect_content(results: Results) -> dict[str, Any]:
    """Return the content of the template by name; the template escapes all of it."""
    comparisons = [compare(results, metric) for metric in results.metrics]
    ranks = rank_table(results).loc["Overall"].dropna().sort_values(kind="stable")
    has_tests = any(comparison.test for comparison in comparisons)
    best = find_lowest(ranks) if any(comparison.tested for comparison in comparisons) else []
    verdicts = [verdict(comparison, results) for comparison in comparisons]
    # The page says only once why there are no tests, if the reason is the same for all metrics.
    reasons = {one.evidence if one.level == "untested" else "" for one in verdicts}
    details = [_describe_dataset(results, name) for name in results.datasets]
    has_one_dataset = len(details) == 1
    kinds = ("train", "test") if results.has_runs else ()
    metric_tables = [tables.metric_table(results, metric) for metric in results.metrics]
    n_parts = {"Methods": len(results.methods), "Data sets": len(results.datasets), "Metrics": len(results.metrics)}
    n_runs = {"Splits": results.n_splits, "Runs": len(results.runs), "Failed": len(results.failures)}
    return {
        "lead": _describe_results(results, ranks, comparisons),
        "counts": n_parts | n_runs if results.has_runs else n_parts,
        "verdicts": verdicts,
        "untested": reasons.pop() if len(reasons) == 1 else "",
        "ranks": [(name, rank, rank / ranks.max(), name in best) for name, rank in ranks.items()],
        "ranks_table": tables.ranks_table(results),
        "friedman": tables.friedman_table(results) if has_tests else None,
        "pairs": tables.pairs_table(results) if has_tests else None,
        "diagrams": [_draw_diagram(comparison) for comparison in comparisons if comparison.decides_pairs],
        "only": results.datasets[0] if has_one_dataset else "",
        "as_printed": results.as_printed,
        "one_split": results.n_splits == 1,
        "result_tables": [details[0]["table"]] if has_one_dataset else metric_tables,
        "datasets_table": tables.datasets_table(tables.known_sizes(results)),
        "details": [] if has_one_dataset else details,
        "trade_off": _draw_trade_off(results, ranks) if results.has_runs else None,
        "time_tables": [tables.seconds_table(results, f"{kind}_seconds") for kind in kinds],
        "reliability": _draw_reliability(results),
        "plain": sorted({name for metric in results.metrics for name in results.methods_without_probabilities(metric)}),
        "parameters": tables.parameters_table(results) if results.has_runs else None,
        "failures": _tabulate_failures(results),
        "facts": _list_facts(results.runs),
    }


def _describe_results(results: Results, ranks: pd.Series, comparisons: list[Comparison]) -> str:
    numbers = {"method": len(results.methods), "data set": len(results.datasets), "metric": len(results.metrics)}
    methods, datasets, metrics = (f"{n} {noun}{'' if n == 1 else 's'}" for noun, n in numbers.items())
    no_ranking = "There is no overall ranking: no data set has a value of every method yet."
    ranking = no_ranking if ranks.empty else headline(comparisons)
    return f"{methods} on {datasets}, compared by {metrics}. {ranking}"


def _draw_diagram(comparison: Comparison) -> str:
    from rbrl.experiments import figures

    metric = comparison.metric
    ranks = comparison.ranks.sort_values(kind="stable")
    order = "; ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
    groups = "; ".join(join(group) for group in comparison.groups) or "none"
    description = f"Average ranks: {order}. Critical distance {comparison.distance:.2f}. "
    description += f"No significant difference within: {groups}."
    figure = figures.draw_critical_difference(comparison, width=4.6)
    return inline_svg(figure, f"Critical-difference diagram, {metric.title}", description, f"cd-{metric.name}")


def _draw_trade_off(results: Results, ranks: pd.Series) -> str | None:
    from rbrl.experiments import figures

    train = results.training_seconds().reindex(ranks.index).dropna()
    if train.empty:
        return None
    points = "; ".join(f"{name}: {train[name]:.3g} s, rank {ranks[name]:.2f}" for name in train.index)
    figure = figures.draw_trade_off(train, ranks, title="")
    return inline_svg(figure, "Training time against average rank", points, "trade-off")


def _draw_reliability(results: Results) -> str | None:
    from rbrl.experiments.label_figures import bins_by_method, draw_reliability

    bins = bins_by_method(results)
    if not bins:
        return None
    errors = "; ".join(f"{name}: expected calibration error {one.error:.3f}" for name, one in bins.items())
    return inline_svg(draw_reliability(bins), "Reliability diagrams", errors, "reliability")


def _describe_dataset(results: Results, dataset: str) -> dict[str, Any]:
    """Return name, size and table of one data set: every metric of every method, with times."""
    known = tables.known_sizes(results)[dataset]
    line = f"{known.n_samples:,} samples, {known.n_features:,} features, {known.n_labels} labels" if known else ""
    kinds = ("tune", "train", "test") if results.has_runs else ()
    columns = [tables.metric_cells(results, metric, dataset, has_stars=False) for metric in results.metrics]
    columns += [[seconds(time) for time in results.seconds(f"{kind}_seconds").loc[dataset]] for kind in kinds]
    rows = tuple((word(method), *cells) for method, *cells in zip(results.methods, *columns))
    metrics = [f"{metric.abbreviation} {metric.arrow}" for metric in results.metrics]
    titles = ("Method", *metrics, *(f"{kind.capitalize()}, s" for kind in kinds))
    name = re.sub(r"[^a-z0-9]+", "-", dataset.lower()).strip("-") or "x"
    table = Table(f"detail-{name}", dataset, titles, rows, pd.DataFrame(), note=tables.legend(results))
    return {"name": dataset, "line": line, "table": table}


def _tabulate_failures(results: Results) -> Table | None:
    failed = results.failures
    if failed.empty:
        return None
    rows = tuple(tuple(map(word, line)) for line in failed.itertuples(index=False))
    return Table("failures", "Runs that failed", ("Data set", "Method", "Split", "Error"), rows, failed)


def _list_facts(runs: pd.DataFrame) -> list[tuple[str, str]]:
    facts = []
    for column, title in FACT_TITLES.items():
        if column in runs:
            values = [str(value) for value in dict.fromkeys(runs[column].dropna())]
            dots = " …" if len(values) > MAX_FACT_VALUES else ""
            facts.append((title, ", ".join(values[:MAX_FACT_VALUES]) + dots))
    if "gap" in runs and runs.gap.notna().any():
        facts.append(("Largest certified gap", f"{runs.gap.max():.1e}"))
    return facts


def inline_svg(figure: "Figure", title: str, description: str, key: str) -> str:
    """Return the figure as an svg element that takes the fonts and colours of the page.

    A screen reader reads `title` and `description`. `key` must be unique on the page, because it
    is put before every id.
    """
    from rbrl.experiments.figures import ACCENT, INK, MUTED, RULE, use_style

    stream = io.StringIO()
    with use_style({"svg.fonttype": "none"}), warnings.catch_warnings():
        # Text stays text, so that the browser finds letters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]*)"', rf'id="{key}-\1"', text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{key}-", text)
    text = re.sub(r"font: ([^;\"]*?)'DejaVu Sans'[^;\"]*", r"font: \1inherit", text)
    for colour, variable in {INK: "ink", MUTED: "muted", RULE: "rule", ACCENT: "accent"}.items():
        text = text.replace(colour, f"var(--{variable})")
    head = re.match(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', text)
    assert head is not None, "matplotlib writes an svg element with a viewBox"
    # A point is 4/3 of a CSS pixel; the page may show a figure a little larger than it was drawn.
    largest = float(head[1].split()[2]) * 1.6
    return (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{head[1]}" role="img" '
        f'aria-labelledby="{key}-title {key}-description" style="max-width: {largest:.0f}px">'
        f'<title id="{key}-title">{html.escape(title)}</title>'
        f'<desc id="{key}-description">{html.escape(description)}</desc>{text[head.end() :].strip()}'
    )
