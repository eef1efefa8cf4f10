"""Choice of parameters, thresholds and calibrated probabilities by cross-validation."""

from rbrl.selection.grid_search import choose, tune
from rbrl.selection.path_search import PathSearchCV
from rbrl.selection.path_search import RBRLClassifierCV as RBRLClassifierCV
from rbrl.selection.probabilities import CalibratedMultiLabelClassifier as CalibratedMultiLabelClassifier
from rbrl.selection.thresholds import TunedThresholdClassifier as TunedThresholdClassifier

__all__ = ["PathSearchCV", "choose", "tune"]
