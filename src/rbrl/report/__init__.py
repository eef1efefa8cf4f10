"""Rows of a comparison become tables, figures and one page that a person likes to read.

All of it needs the extra `report`: pandas; matplotlib for `rbrl.report.figures`; Jinja2 for the page.
"""

from rbrl._common.extras import explained

try:
    from rbrl.report.comparison import Comparison, Verdict, compare, join, rank_table, verdict
    from rbrl.report.comparison_tables import (
        ablation_table,
        all_tables,
        datasets_table,
        metric_table,
        parameters_table,
        ranks_table,
        results_table,
        seconds_table,
        time_table,
    )
    from rbrl.report.page import Report, render_page, save_table, write_page, write_report, write_text
    from rbrl.report.reliability import reliability_diagram
    from rbrl.report.results import KEYS, Results, Sizes, as_shown, best_of, heading
    from rbrl.report.significance_tables import friedman_table, pairs_table
    from rbrl.report.table import MISSING, Cell, Table, count, number, p_text, seconds, spread, word
    from rbrl.report.table_formats import (
        FORMATS,
        show_tables,
        to_csv,
        to_html,
        to_json,
        to_latex,
        to_markdown,
        to_terminal,
    )
except ImportError as error:
    raise explained(error, "report", "rbrl.report") from error

__all__ = [
    "FORMATS", "KEYS", "MISSING", "Cell", "Comparison", "Report", "Results", "Sizes", "Table", "Verdict",
    "ablation_table", "all_tables", "as_shown", "best_of", "compare", "count", "datasets_table", "friedman_table",
    "heading", "join", "metric_table", "number", "p_text", "pairs_table", "parameters_table", "rank_table",
    "ranks_table", "reliability_diagram", "render_page", "results_table", "save_table", "seconds",
    "seconds_table", "show_tables", "spread", "time_table", "to_csv", "to_html", "to_json", "to_latex",
    "to_markdown", "to_terminal", "verdict", "word", "write_page", "write_report", "write_text",
]  # fmt: skip
