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

from rbrl._common.environment import import_extra
from rbrl.experiments.execute import PlainProgress, execute
from rbrl.experiments.plan import Plan
from rbrl.experiments.runs import Progress
from rbrl.experiments.store import Store

if TYPE_CHECKING:
    from rbrl.experiments.command import CommandClassifier
    from rbrl.experiments.comparison import Comparison, compare, verdict
    from rbrl.experiments.page import Report, write_page, write_report
    from rbrl.experiments.results import Results

__all__ = [
    "CommandClassifier", "Comparison", "PlainProgress", "Plan", "Progress", "Report", "Results", "Store", "compare",
    "execute", "verdict", "write_page", "write_report",
]  # fmt: skip

# Modules whose names are imported when they are first used: a program that only runs a plan or reads a store needs
# neither scikit-learn nor the packages of the extra `report`.
_LAZY_NAMES = {
    "rbrl.exceptions": ("CommandError", "PlanError", "StoreError"),
    "rbrl.experiments.command": ("CommandClassifier",),
    "rbrl.experiments.comparison": ("Comparison", "Verdict", "compare", "rank_table", "verdict"),
    "rbrl.experiments.comparison_tables": ("all_tables", "datasets_table", "friedman_table", "ranks_table"),
    "rbrl.experiments.execute": ("RichProgress", "Summary", "progress_for"),
    "rbrl.experiments.page": ("Report", "write_page", "write_report"),
    "rbrl.experiments.results": ("RUN_KEYS", "Results"),
    "rbrl.experiments.runs": ("expand", "machine"),
    "rbrl.experiments.specs": ("DatasetLoader", "Shelf"),
}


def __getattr__(name: str) -> Any:
    if name in ("figures", "statistics", "tables"):
        return import_module(f"rbrl.experiments.{name}")
    for module, names in _LAZY_NAMES.items():
        if name in names:
            return getattr(import_extra(module, "report", f"rbrl.experiments.{name}"), name)
    raise AttributeError(f"module 'rbrl.experiments' has no attribute {name!r}")
