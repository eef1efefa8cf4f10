"""Choice of parameters, thresholds and calibrated probabilities by cross-validation."""

from rbrl.selection.choose import choose
from rbrl.selection.cv import PathSearchCV, RBRLClassifierCV
from rbrl.selection.grid import tune
from rbrl.selection.meta_estimators import CalibratedMultiLabelClassifier, TunedThresholdClassifier

__all__ = [
    "CalibratedMultiLabelClassifier", "PathSearchCV", "RBRLClassifierCV", "TunedThresholdClassifier", "choose",
    "tune",
]  # fmt: skip
