"""Choosing parameters, thresholds and maps to probabilities by cross-validation."""

from rbrl.selection.calibration import CalibratedMultiLabelClassifier
from rbrl.selection.choose import choose
from rbrl.selection.cv import PAPER_GRID, PathSearchCV, RBRLClassifierCV
from rbrl.selection.grid import tune
from rbrl.selection.path import solve_grid
from rbrl.selection.tuned_threshold import TunedThresholdClassifier

__all__ = [
    "PAPER_GRID", "CalibratedMultiLabelClassifier", "PathSearchCV", "RBRLClassifierCV", "TunedThresholdClassifier", "choose",
    "solve_grid", "tune",
]  # fmt: skip
