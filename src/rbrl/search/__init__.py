"""Choosing parameters and thresholds by cross-validation."""

from rbrl.search.path import solve_grid
from rbrl.search.path_search import PathSearchCV
from rbrl.search.rbrl_cv import PAPER_GRID, RBRLClassifierCV
from rbrl.search.thresholds import TunedThresholdClassifier
from rbrl.search.tune import tune

__all__ = ["PAPER_GRID", "PathSearchCV", "RBRLClassifierCV", "TunedThresholdClassifier", "solve_grid", "tune"]
