"""Where scores become labels: plain functions, and rules that can be learned, chained, and used with any scores.

`relevant_labels` is the one meaning of scores: positive, or the best where none is. `non_empty` fills labels that came
another way. Every rule moves scores so that `relevant_labels` of them are its labels.
"""

from rbrl.decision.cuts import best_global_threshold, best_label_thresholds
from rbrl.decision.filling import empty_share, filling_pays
from rbrl.decision.rules import (
    Chain,
    DecisionRule,
    NonEmpty,
    TopK,
    ZeroThreshold,
    non_empty,
    relevant_labels,
    top_labels,
)
from rbrl.decision.thresholds import (
    GlobalThreshold,
    LabelThresholds,
    RowThreshold,
    ideal_row_thresholds,
)

__all__ = [
    "Chain", "DecisionRule", "GlobalThreshold", "LabelThresholds", "NonEmpty", "RowThreshold", "TopK", "ZeroThreshold",
    "best_global_threshold", "best_label_thresholds", "empty_share", "filling_pays", "ideal_row_thresholds", "non_empty",
    "relevant_labels", "top_labels",
]  # fmt: skip
