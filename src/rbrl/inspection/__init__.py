"""Inspection of fitted models: terms of a score, and similarity of labels."""

from rbrl.inspection.explanation import Explanation, explain
from rbrl.inspection.label_maps import LabelMap, label_map

__all__ = ["Explanation", "LabelMap", "explain", "label_map"]
