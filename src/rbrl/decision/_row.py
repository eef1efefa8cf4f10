"""Rank-SVM's threshold of a sample, predicted from its scores."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rbrl.decision._rule import DecisionRule, as_relevant, as_scores, make_positive

# How far beyond the lowest and the highest score the outer candidates lie.
_BEYOND = 0.1


class RowThreshold(DecisionRule):
    r"""A threshold for each sample, linear in its scores.

    .. math:: t(f) = \langle a, f \rangle + c

    where a and c fit, by least squares, the threshold that makes the fewest errors on each training sample. Samples
    whose labels are all relevant or all irrelevant tell nothing, and are left out.

    Parameters
    ----------
    rule : {"middle", "smallest"}, default="middle"
        Which of the best thresholds of a sample is meant; see `ideal_row_thresholds`.
    ties_relevant : bool, default=False
        Whether a score equal to the threshold counts as relevant, as in the widely used program.

    Attributes
    ----------
    coef_ : array, shape (n_labels,)
        a.
    intercept_ : float
        c.
    """

    def __init__(self, rule: str = "middle", ties_relevant: bool = False):
        self.rule = rule
        self.ties_relevant = ties_relevant

    def fit(self, scores: Any, Y: Any, sample_weight: Any = None) -> "RowThreshold":
        """Fit the threshold model to the best threshold of each sample, samples weighted if weights are given."""
        scores = as_scores(scores)
        relevant = as_relevant(Y, scores)
        has_pair = relevant.any(axis=1) & ~relevant.all(axis=1)
        if not has_pair.any():
            raise ValueError(
                "A row threshold is learned from samples with relevant and irrelevant labels. "
                f"Got {len(scores)} samples, none of which has both."
            )
        F = scores[has_pair]
        target = ideal_row_thresholds(F, relevant[has_pair], self.rule)
        # Centred, because scores may share a large constant in which the differences would drown.
        weights = np.ones(len(F)) if sample_weight is None else np.asarray(sample_weight, float)[has_pair]
        centre, level = np.average(F, axis=0, weights=weights), np.average(target, weights=weights)
        root = np.sqrt(weights)
        self.coef_ = np.linalg.lstsq(root[:, None] * (F - centre), root * (target - level), rcond=None)[0]
        self.intercept_ = float(level - centre @ self.coef_)
        return self

    def shift(self, scores: Any) -> np.ndarray:
        """Scores less the threshold of their row."""
        check_is_fitted(self, "coef_")
        scores = as_scores(scores)
        if scores.shape[1] != len(self.coef_):
            raise ValueError(f"The rule knows {len(self.coef_)} labels. Got scores of {scores.shape[1]} instead.")
        shifted = scores - (scores @ self.coef_ + self.intercept_)[:, None]
        return make_positive(shifted, shifted >= 0) if self.ties_relevant else shifted


def ideal_row_thresholds(scores: Any, Y: Any, rule: str = "middle") -> np.ndarray:
    """The threshold of each sample that makes the fewest errors.

    Every gap between neighbouring scores, and the two outer sides, is a candidate; its threshold is the middle of the
    gap, or lies 0.1 beyond the outermost score.

    Parameters
    ----------
    scores : array, shape (n_samples, n_labels)
        Scores.
    Y : array, shape (n_samples, n_labels)
        True labels, 0/1 or -1/+1.
    rule : {"middle", "smallest"}
        Which of several best gaps is taken: "middle" the widest one, the outer sides only if no other is best;
        "smallest" the lowest one, and tied scores are thought of as a gap, too.
    """
    if rule not in ("middle", "smallest"):
        raise ValueError(f"rule must be 'middle' or 'smallest'. Got {rule!r} instead.")
    scores = as_scores(scores)
    order = np.argsort(scores, axis=1, kind="stable")
    rising = np.take_along_axis(scores, order, axis=1)
    errors = _errors_of_gaps(np.take_along_axis(as_relevant(Y, scores), order, axis=1))
    gap = np.argmin(errors, axis=1) if rule == "smallest" else _widest_best(errors, np.diff(rising, axis=1))
    middles = (rising[:, 1:] + rising[:, :-1]) / 2
    candidates = np.hstack([rising[:, :1] - _BEYOND, middles, rising[:, -1:] + _BEYOND])
    return candidates[np.arange(len(scores)), gap]


def _errors_of_gaps(relevant):
    """Errors of a cut below the j-th label of rising score: relevant ones below it and irrelevant ones above."""
    relevant_below = np.pad(np.cumsum(relevant, axis=1), ((0, 0), (1, 0)))
    irrelevant_below = np.arange(relevant.shape[1] + 1) - relevant_below
    return relevant_below + irrelevant_below[:, -1:] - irrelevant_below


def _widest_best(errors, width):
    """Index of the widest gap among those with the fewest errors; a tie is no gap, an outer side the narrowest."""
    is_gap = np.pad(width > 0, ((0, 0), (1, 1)), constant_values=True)
    errors = np.where(is_gap, errors, errors.shape[1])
    best = errors == errors.min(axis=1, keepdims=True)
    return np.argmax(np.where(best, np.pad(width, ((0, 0), (1, 1))), -1.0), axis=1)
