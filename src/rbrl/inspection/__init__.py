"""Why a row has a label, and which labels a model ties together: text, frames and figures."""

from rbrl.inspection.explanation import Explanation, explain
from rbrl.inspection.labels import LabelMap, label_map

__all__ = ["Explanation", "LabelMap", "explain", "label_map"]
