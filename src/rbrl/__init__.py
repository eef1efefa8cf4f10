"""Multi-label classification: ranking and label sets learned jointly, with certified solvers."""

from rbrl import datasets, metrics, solvers
from rbrl._version import __version__
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
