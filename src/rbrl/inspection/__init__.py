"""Inspection of fitted models: terms of a score, and similarity of labels."""

from rbrl.inspection.explanation import Explanation
from rbrl.inspection.explanation import explain as explain
from rbrl.inspection.label_maps import LabelMap
from rbrl.inspection.label_maps import label_map as label_map

__all__ = ["Explanation", "LabelMap"]
