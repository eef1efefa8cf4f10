"""Multi-label classification: ranking and label sets learned jointly, with certified solvers."""

from rbrl import datasets, metrics, solvers
from rbrl.estimators import BRLClassifier, RBRLClassifier
from rbrl.metrics import evaluate
from rbrl.search import RBRLClassifierCV, TunedThresholdClassifier

__version__ = "0.1.0"

__all__ = [
    "BRLClassifier",
    "RBRLClassifier",
    "RBRLClassifierCV",
    "TunedThresholdClassifier",
    "datasets",
    "evaluate",
    "metrics",
    "solvers",
]
