"""Multi-label classification: ranking and label sets learned jointly, with certified solvers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbrl import datasets, metrics, solvers
    from rbrl.estimators import BRLClassifier, RBRLClassifier
    from rbrl.metrics import evaluate

__version__ = "0.1.0"

__all__ = ["BRLClassifier", "RBRLClassifier", "datasets", "evaluate", "metrics", "solvers"]

# Names are imported when first used, so that `import rbrl` and the command line's help cost nothing.
_HOMES = {
    "BRLClassifier": "rbrl.estimators",
    "RBRLClassifier": "rbrl.estimators",
    "evaluate": "rbrl.metrics",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in __all__:
        value = import_module(f"rbrl.{name}")
    else:
        raise AttributeError(f"module 'rbrl' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
