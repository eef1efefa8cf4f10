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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbrl.exceptions import PlanError, StoreError
    from rbrl.experiments.execute import Summary, execute
    from rbrl.experiments.plan import Plan
    from rbrl.experiments.progress import PlainProgress, Progress, progress_for
    from rbrl.experiments.store import Store
    from rbrl.experiments.worker import machine

__all__ = [
    "PlainProgress", "Plan", "PlanError", "Progress", "Store", "StoreError", "Summary", "execute", "machine",
    "progress_for",
]  # fmt: skip

# Running a plan needs every method; whoever reads a store should not wait for them.
_HOMES = {
    "PlainProgress": "progress",
    "Plan": "plan",
    "PlanError": "exceptions",
    "Progress": "progress",
    "Store": "store",
    "StoreError": "exceptions",
    "Summary": "execute",
    "execute": "execute",
    "machine": "worker",
    "progress_for": "progress",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rbrl.experiments' has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module("rbrl.exceptions" if home == "exceptions" else f"rbrl.experiments.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
