"""Rows of a comparison become tables, figures and one page that a person likes to read."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbrl.report import figures
    from rbrl.report.comparison import Comparison, compare
    from rbrl.report.results import Results
    from rbrl.report.table import Table
    from rbrl.report.tables import all_tables
    from rbrl.report.write import write_page

__all__ = ["Comparison", "Results", "Table", "all_tables", "compare", "figures", "write_page"]

# Figures need matplotlib, the page Jinja2: a table in the terminal should wait for neither.
_HOMES = {
    "Comparison": "comparison",
    "Results": "results",
    "Table": "table",
    "all_tables": "tables",
    "compare": "comparison",
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
