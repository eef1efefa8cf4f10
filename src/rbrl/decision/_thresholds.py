"""Learned thresholds: one for all labels, or one for each."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rbrl.decision._rule import DecisionRule, as_scores
from rbrl.decision._tuning import best_global_threshold, best_label_thresholds


class GlobalThreshold(DecisionRule):
    """One learned threshold for all labels.

    Parameters
    ----------
    metric : {"f1_micro", "hamming_loss"} or record of `rbrl.metrics`, default="f1_micro"
        What the threshold is best for; see `best_global_threshold`.
    start : float, default=0
        The cut that the scores are made for: 0.5 for probabilities.

    Attributes
    ----------
    threshold_ : float
        Subtracted from all scores.
    """

    def __init__(self, metric: Any = "f1_micro", start: float = 0.0):
        self.metric = metric
        self.start = start

    def fit(self, scores: Any, Y: Any) -> "GlobalThreshold":
        """Learn the threshold, best from scores of samples that the model has not seen."""
        self.threshold_ = best_global_threshold(scores, Y, self.metric, self.start)
        return self

    def shift(self, scores: Any) -> np.ndarray:
        """Scores less the threshold."""
        check_is_fitted(self, "threshold_")
        return as_scores(scores) - np.float64(self.threshold_)


class LabelThresholds(DecisionRule):
    """One learned threshold for each label.

    The threshold of a label moves its scores against those of other labels, so the ranking of labels changes, too.

    Parameters
    ----------
    metric : {"f1_macro", "f1_weighted", "hamming_loss"} or record of `rbrl.metrics`, default="f1_macro"
        What the thresholds are best for; see `best_label_thresholds`.
    start : float, default=0
        The cut that the scores are made for: 0.5 for probabilities.

    Attributes
    ----------
    thresholds_ : array, shape (n_labels,)
        Subtracted from the scores of each label.
    """

    def __init__(self, metric: Any = "f1_macro", start: float = 0.0):
        self.metric = metric
        self.start = start

    def fit(self, scores: Any, Y: Any) -> "LabelThresholds":
        """Learn the thresholds, best from scores of samples that the model has not seen."""
        self.thresholds_ = best_label_thresholds(scores, Y, self.metric, self.start)
        return self

    def shift(self, scores: Any) -> np.ndarray:
        """Scores less the thresholds."""
        check_is_fitted(self, "thresholds_")
        scores = as_scores(scores)
        if scores.shape[1] != len(self.thresholds_):
            raise ValueError(f"The rule knows {len(self.thresholds_)} labels. Got scores of {scores.shape[1]} instead.")
        return scores - self.thresholds_
