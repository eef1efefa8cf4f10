"""Rows of a comparison become tables, figures and one page that a person likes to read."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbrl.report import figures
    from rbrl.report.comparison import Comparison, compare, rank_table
    from rbrl.report.page.verdict import join
    from rbrl.report.results import Results
    from rbrl.report.table import MISSING, Cell, Table, count, number, seconds, spread, to_markdown, to_terminal, word
    from rbrl.report.tables import all_tables, best_of, friedman_table, p_text, ranks_table
    from rbrl.report.write import write_page

__all__ = [
    "MISSING", "Cell", "Comparison", "Results", "Table", "all_tables", "best_of", "compare", "count", "figures",
    "friedman_table", "join", "number", "p_text", "rank_table", "ranks_table", "seconds", "spread", "to_markdown",
    "to_terminal", "word", "write_page",
]  # fmt: skip

# Figures need matplotlib, the page Jinja2: a table in the terminal should wait for neither.
_HOMES = {
    **dict.fromkeys(("Comparison", "compare", "rank_table"), "comparison"),
    **dict.fromkeys(("all_tables", "best_of", "friedman_table", "p_text", "ranks_table"), "tables"),
    **dict.fromkeys(("MISSING", "Cell", "Table", "count", "number", "seconds", "spread", "word"), "table"),
    **dict.fromkeys(("to_markdown", "to_terminal"), "table"),
    "Results": "results",
    "join": "page.verdict",
    "write_page": "write",
}


def __getattr__(name: str) -> Any:
    if name == "figures":
        return import_module("rbrl.report.figures")
    if name not in _HOMES:
        raise AttributeError(f"module 'rbrl.report' has no attribute {name!r}")
    value = getattr(import_module(f"rbrl.report.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
