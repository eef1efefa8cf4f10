"""Why a row has a label, and which labels a model ties together: text, frames and figures."""

from rbrl.explanations.explanation import Explanation, explain
from rbrl.explanations.labels import LabelMap, label_map

__all__ = ["Explanation", "LabelMap", "explain", "label_map"]
