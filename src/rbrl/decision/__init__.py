"""Rules that turn scores into label sets; each can be learned, chained, and used with any scores."""

from rbrl.decision._fixed import NonEmpty, TopK, ZeroThreshold, non_empty, top_labels
from rbrl.decision._row import RowThreshold, ideal_row_thresholds
from rbrl.decision._rule import Chain, DecisionRule
from rbrl.decision._thresholds import GlobalThreshold, LabelThresholds
from rbrl.decision._tuning import best_global_threshold, best_label_thresholds

__all__ = [
    "Chain",
    "DecisionRule",
    "GlobalThreshold",
    "LabelThresholds",
    "NonEmpty",
    "RowThreshold",
    "TopK",
    "ZeroThreshold",
    "best_global_threshold",
    "best_label_thresholds",
    "ideal_row_thresholds",
    "non_empty",
    "top_labels",
]
