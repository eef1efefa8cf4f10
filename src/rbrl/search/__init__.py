"""Choosing parameters, thresholds and maps to probabilities by cross-validation."""

from rbrl.search.calibration import CalibratedMultiLabelClassifier
from rbrl.search.choose import choose
from rbrl.search.cv import PAPER_GRID, PathSearchCV, RBRLClassifierCV
from rbrl.search.grid import tune
from rbrl.search.path import solve_grid
from rbrl.search.tuned_threshold import TunedThresholdClassifier

__all__ = [
    "PAPER_GRID", "CalibratedMultiLabelClassifier", "PathSearchCV", "RBRLClassifierCV", "TunedThresholdClassifier", "choose",
    "solve_grid", "tune",
]  # fmt: skip
