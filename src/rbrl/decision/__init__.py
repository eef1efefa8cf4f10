"""Decision rules that turn scores into labels.

A label is relevant if its score is positive; see `relevant_labels`. Every other rule shifts the
scores so that the relevant labels have the positive scores.
"""

from rbrl.decision.best_thresholds import best_global_threshold, best_label_thresholds
from rbrl.decision.rules import (
    Chain,
    DecisionRule,
    NonEmpty,
    TopK,
    ZeroThreshold,
    empty_share,
    filling_pays,
    non_empty,
    relevant_labels,
    top_labels,
)
from rbrl.decision.thresholds import GlobalThreshold, LabelThresholds, RowThreshold

__all__ = [
    "Chain", "DecisionRule", "GlobalThreshold", "LabelThresholds", "NonEmpty", "RowThreshold", "TopK", "ZeroThreshold",
    "best_global_threshold", "best_label_thresholds", "empty_share", "filling_pays", "non_empty",
    "relevant_labels", "top_labels",
]  # fmt: skip
