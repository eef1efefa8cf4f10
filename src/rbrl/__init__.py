"""Multi-label classification: ranking and label sets learned jointly, with certified solvers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rbrl._version import __version__

if TYPE_CHECKING:
    from rbrl import datasets, metrics, solvers
    from rbrl.estimators import BRLClassifier, RBRLClassifier
    from rbrl.metrics import evaluate
    from rbrl.persistence import load, save
    from rbrl.search import RBRLClassifierCV, TunedThresholdClassifier

__all__ = [
    "BRLClassifier",
    "RBRLClassifier",
    "RBRLClassifierCV",
    "TunedThresholdClassifier",
    "__version__",
    "datasets",
    "evaluate",
    "load",
    "metrics",
    "save",
    "solvers",
]

# Names are imported when first used, so that `import rbrl` and the command line's help cost nothing.
# A name of __all__ that is not here is a module.
_HOMES = {
    "rbrl.estimators": ("BRLClassifier", "RBRLClassifier"),
    "rbrl.metrics": ("evaluate",),
    "rbrl.persistence": ("load", "save"),
    "rbrl.search": ("RBRLClassifierCV", "TunedThresholdClassifier"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rbrl' has no attribute {name!r}")
    home = next((module for module, names in _HOMES.items() if name in names), None)
    value = getattr(import_module(home), name) if home else import_module(f"rbrl.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
