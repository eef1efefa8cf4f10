"""Rows of a comparison become tables, figures and one page that a person likes to read.

The figures are in `rbrl.report.figures`, which needs matplotlib; the page needs Jinja2 as well. Tables need neither.
"""

from rbrl.report.comparison import Comparison, CompletePart, compare, complete_part, rank_table
from rbrl.report.page import render_page, write_page
from rbrl.report.results import KEYS, Results, Sizes, as_shown, best_of, heading
from rbrl.report.table import (
    FORMATS,
    MISSING,
    Cell,
    Table,
    count,
    number,
    save_table,
    seconds,
    show_tables,
    spread,
    to_csv,
    to_html,
    to_json,
    to_latex,
    to_markdown,
    to_terminal,
    word,
    write_text,
)
from rbrl.report.tables import (
    ablation_table,
    all_tables,
    datasets_table,
    friedman_table,
    metric_table,
    p_text,
    pairs_table,
    parameters_table,
    ranks_table,
    results_table,
    seconds_table,
    time_table,
)
from rbrl.report.verdicts import Verdict, join, verdict
from rbrl.report.write import Report, write_report

__all__ = [
    "FORMATS", "KEYS", "MISSING", "Cell", "Comparison", "CompletePart", "Report", "Results", "Sizes", "Table", "Verdict",
    "ablation_table", "all_tables", "as_shown", "best_of", "compare", "complete_part", "count", "datasets_table",
    "friedman_table", "heading", "join", "metric_table", "number", "p_text", "pairs_table", "parameters_table",
    "rank_table", "ranks_table", "render_page", "results_table", "save_table", "seconds", "seconds_table", "show_tables",
    "spread", "time_table", "to_csv", "to_html", "to_json", "to_latex", "to_markdown", "to_terminal", "verdict", "word",
    "write_page", "write_report", "write_text",
]  # fmt: skip
