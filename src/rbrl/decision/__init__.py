"""Decision rules that turn scores into labels.

A label is relevant if its score is positive; see `relevant_labels`. Every other rule shifts the
scores so that the relevant labels have the positive scores.
"""

from rbrl.decision.rules import Chain, DecisionRule, NonEmpty, TopK, relevant_labels
from rbrl.decision.rules import ZeroThreshold as ZeroThreshold
from rbrl.decision.rules import empty_share as empty_share
from rbrl.decision.rules import filling_pays as filling_pays
from rbrl.decision.rules import non_empty as non_empty
from rbrl.decision.rules import top_labels as top_labels
from rbrl.decision.thresholds import GlobalThreshold, LabelThresholds, RowThreshold
from rbrl.decision.thresholds import best_global_threshold as best_global_threshold
from rbrl.decision.thresholds import best_label_thresholds as best_label_thresholds

__all__ = [
    "Chain", "DecisionRule", "GlobalThreshold", "LabelThresholds", "NonEmpty", "RowThreshold",
    "TopK", "relevant_labels",
]  # fmt: skip
