"""Comparison of methods on data sets: plan, runs, store, statistics, tables, figures and a page.

A comparison can be stopped and resumed. It runs on one core, on several, or on a Dask cluster.

Examples
--------
>>> from tempfile import mkdtemp
>>> from rbrl.experiments import Plan, Store, execute
>>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"brl": {"params": {"tol": 0.1}}}, "splits": {"number": 1}})
>>> store = Store(mkdtemp())
>>> execute(plan, store).n_done
1
>>> execute(plan, store).n_reused
1
>>> store.rows().shape
(6, 17)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rbrl._common.extras import import_extra
from rbrl.exceptions import CommandError, PlanError, StoreError
from rbrl.experiments.execute import Summary, execute
from rbrl.experiments.plan import Plan
from rbrl.experiments.progress import PlainProgress, Progress, RichProgress, progress_for
from rbrl.experiments.runs import expand, machine
from rbrl.experiments.specs import Shelf
from rbrl.experiments.store import Store

if TYPE_CHECKING:
    from rbrl.experiments import figures, statistics, tables
    from rbrl.experiments.command import CommandClassifier
    from rbrl.experiments.comparison import Comparison, Verdict, compare, rank_table, verdict
    from rbrl.experiments.comparison_tables import all_tables, datasets_table, friedman_table, ranks_table
    from rbrl.experiments.page import Report, write_page, write_report
    from rbrl.experiments.results import RUN_KEYS, Results

__all__ = [
    "RUN_KEYS", "CommandClassifier", "CommandError", "Comparison", "PlainProgress", "Plan", "PlanError", "Progress",
    "Report", "Results", "RichProgress", "Shelf", "Store", "StoreError", "Summary", "Verdict", "all_tables", "compare",
    "datasets_table", "execute", "expand", "figures", "friedman_table", "machine", "progress_for", "rank_table",
    "ranks_table", "statistics", "tables", "verdict", "write_page", "write_report",
]  # fmt: skip

# The module of each name that is imported when it is first used: a program that only runs a plan or reads a store
# needs neither scikit-learn nor the packages of the extra `report`.
_HOMES = {
    "CommandClassifier": "command",
    **dict.fromkeys(("Comparison", "compare", "rank_table"), "comparison"),
    **dict.fromkeys(("all_tables", "datasets_table", "friedman_table", "ranks_table"), "comparison_tables"),
    **dict.fromkeys(("Report", "write_page", "write_report"), "page"),
    **dict.fromkeys(("RUN_KEYS", "Results"), "results"),
    **dict.fromkeys(("Verdict", "verdict"), "comparison"),
}


def __getattr__(name: str) -> Any:
    if name in ("figures", "statistics", "tables"):
        return import_module(f"rbrl.experiments.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'rbrl.experiments' has no attribute {name!r}")
    module = import_extra(f"rbrl.experiments.{_HOMES[name]}", "report", f"rbrl.experiments.{name}")
    return getattr(module, name)
