"""Multi-label classification: ranking and label sets learned jointly, with certified solvers."""

from rbrl import solvers
from rbrl.estimators import BRLClassifier, RBRLClassifier

__version__ = "0.1.0"

__all__ = ["BRLClassifier", "RBRLClassifier", "solvers"]
