"""Rules that turn scores into label sets; each can be learned, chained, and used with any scores."""

from rbrl.decision.rules import (
    Chain,
    DecisionRule,
    NonEmpty,
    RowThreshold,
    TopK,
    ZeroThreshold,
    ideal_row_thresholds,
    non_empty,
    relevant_labels,
    top_labels,
)
from rbrl.decision.tuning import GlobalThreshold, LabelThresholds, best_global_threshold, best_label_thresholds

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
    "relevant_labels",
    "top_labels",
]
