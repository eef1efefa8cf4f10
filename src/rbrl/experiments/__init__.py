"""Comparisons: a plan, its runs, and a store of rows; resumable, on one core or many machines.

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

from typing import TYPE_CHECKING, Any

from rbrl.exceptions import CommandError, PlanError, StoreError
from rbrl.experiments.execute import Summary, execute
from rbrl.experiments.plan import Plan
from rbrl.experiments.progress import PlainProgress, Progress, RichProgress, progress_for
from rbrl.experiments.runs import Shelf, expand, machine
from rbrl.experiments.store import Store

if TYPE_CHECKING:
    from rbrl.experiments.command import CommandClassifier

__all__ = [
    "CommandClassifier", "CommandError", "PlainProgress", "Plan", "PlanError", "Progress", "RichProgress", "Shelf",
    "Store", "StoreError", "Summary", "execute", "expand", "machine", "progress_for",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # A classifier: whoever only reads a store should not wait for scikit-learn.
    if name != "CommandClassifier":
        raise AttributeError(f"module 'rbrl.experiments' has no attribute {name!r}")
    from rbrl.experiments.command import CommandClassifier

    return CommandClassifier
