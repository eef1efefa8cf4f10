"""Learned thresholds: one for all labels, or one for each, best for a metric on given scores; or one for each sample.

Learn from scores of samples that the model was not trained on, such as those of cross-validation: a model looks better
than it is on its own training samples, and the thresholds come out wrong.

Missing labels, NaN, are left out: a threshold is best for the entries that are known.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rbrl._common.typing import ArrayLike, FloatArray, IntArray, MatrixLike
from rbrl.decision.cuts import Tuned, best_global_threshold, best_label_thresholds
from rbrl.decision.rules import DecisionRule, as_known, as_relevant, as_scores, make_positive

# How far beyond the lowest and the highest score the outer candidates of a sample's threshold lie.
_BEYOND = 0.1


class GlobalThreshold(DecisionRule):
    """One learned threshold for all labels.

    Parameters
    ----------
    metric : {"f1_micro", "f1_samples", "hamming_loss"} or record of `rbrl.metrics`, default="f1_micro"
        Metric that the threshold is best for; see `best_global_threshold`.
    start : float, default=0
        The cut that the scores are made for: 0.5 for probabilities.
    never_empty : bool, default=False
        Learn the threshold for a use in which a sample without a label gets its best one. The rule itself leaves such
        a sample empty: put :class:`NonEmpty` behind it.

    Attributes
    ----------
    threshold_ : float
        Subtracted from all scores.

    Examples
    --------
    >>> from rbrl.decision import GlobalThreshold
    >>> rule = GlobalThreshold(start=0.5).fit([[0.2, 0.9], [0.3, 0.4]], [[0, 1], [0, 1]])
    >>> rule.labels([[0.1, 0.4]])
    array([[0, 1]])
    """

    threshold_: float
    never_empty: bool = False  # the value in a model file from before this parameter

    def __init__(self, metric: Tuned = "f1_micro", start: float = 0.0, never_empty: bool = False):
        self.metric = metric
        self.start = start
        self.never_empty = never_empty

    def fit(self, scores: MatrixLike, Y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the threshold, best from scores of samples that the model has not seen.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)
        Y : array or sparse matrix, shape (n_samples, n_labels)
            True labels, 0/1 or -1/+1; NaN where a label is missing.
        sample_weight : array, shape (n_samples,), default=None
            Weights of the samples in the metric.

        Returns
        -------
        self
        """
        options: dict[str, Any] = {"sample_weight": sample_weight, "never_empty": self.never_empty}
        self.threshold_ = best_global_threshold(scores, Y, self.metric, self.start, **options)
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Scores less the threshold.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array, shape (n_samples, n_labels)
        """
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

    Examples
    --------
    >>> from rbrl.decision import LabelThresholds
    >>> rule = LabelThresholds(start=0.5).fit([[0.2, 0.9], [0.4, 0.6]], [[0, 1], [1, 1]])
    >>> rule.thresholds_
    array([0.3, 0.5])
    """

    thresholds_: FloatArray

    def __init__(self, metric: Tuned = "f1_macro", start: float = 0.0):
        self.metric = metric
        self.start = start

    def fit(self, scores: MatrixLike, Y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the thresholds, best from scores of samples that the model has not seen.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)
        Y : array or sparse matrix, shape (n_samples, n_labels)
            True labels, 0/1 or -1/+1; NaN where a label is missing.
        sample_weight : array, shape (n_samples,), default=None
            Weights of the samples in the metric.

        Returns
        -------
        self
        """
        self.thresholds_ = best_label_thresholds(scores, Y, self.metric, self.start, sample_weight=sample_weight)
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Scores less the thresholds.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array, shape (n_samples, n_labels)
        """
        check_is_fitted(self, "thresholds_")
        return as_scores(scores, len(self.thresholds_)) - self.thresholds_


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

    Examples
    --------
    >>> from rbrl.decision import RowThreshold
    >>> rule = RowThreshold().fit([[1.0, 3.0], [2.0, 4.0], [5.0, 3.0]], [[0, 1], [0, 1], [1, 0]])
    >>> rule.labels([[6.0, 7.0], [2.0, 0.0]])
    array([[0, 1],
           [1, 0]])
    """

    coef_: FloatArray
    intercept_: float

    def __init__(self, rule: str = "middle", ties_relevant: bool = False):
        self.rule = rule
        self.ties_relevant = ties_relevant

    def fit(self, scores: MatrixLike, Y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the threshold model to the best threshold of each sample, samples weighted if weights are given.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)
        Y : array or sparse matrix, shape (n_samples, n_labels)
            True labels, 0/1 or -1/+1; NaN where nobody looked.
        sample_weight : array, shape (n_samples,), default=None

        Returns
        -------
        self
        """
        F = as_scores(scores)
        T, known = as_relevant(Y, F), as_known(Y)
        has_pair = T.any(axis=1) & (known & ~T).any(axis=1)
        if not has_pair.any():
            raise ValueError(
                "A row threshold is learned from samples with relevant and irrelevant labels. "
                f"Got {len(F)} samples, none of which has both."
            )
        weights = np.ones(len(F)) if sample_weight is None else np.asarray(sample_weight, float)
        F, weights = F[has_pair], weights[has_pair]
        target = ideal_row_thresholds(F, np.where(known, T, np.nan)[has_pair], self.rule)
        # Centred, because scores may share a large constant in which the differences would drown.
        centre, level = np.average(F, axis=0, weights=weights), np.average(target, weights=weights)
        root = np.sqrt(weights)
        self.coef_ = np.linalg.lstsq(root[:, None] * (F - centre), root * (target - level), rcond=None)[0]
        self.intercept_ = float(level - centre @ self.coef_)
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Scores less the threshold of their row.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array, shape (n_samples, n_labels)
        """
        check_is_fitted(self, "coef_")
        F = as_scores(scores, len(self.coef_))
        shifted = F - (F @ self.coef_ + self.intercept_)[:, None]
        return make_positive(shifted, shifted >= 0) if self.ties_relevant else shifted


def ideal_row_thresholds(scores: MatrixLike, Y: MatrixLike, rule: str = "middle") -> FloatArray:
    """The threshold of each sample that makes the fewest errors.

    Every gap between neighbouring scores, and the two outer sides, is a candidate; its threshold is the middle of the
    gap, or lies 0.1 beyond the outermost score.

    Parameters
    ----------
    scores : array, shape (n_samples, n_labels)
        Scores.
    Y : array, shape (n_samples, n_labels)
        True labels, 0/1 or -1/+1; NaN where nobody looked.
    rule : {"middle", "smallest"}
        Which of several best gaps is taken: "middle" the widest one, the outer sides only if no other is best;
        "smallest" the lowest one, and tied scores are thought of as a gap, too.

    Returns
    -------
    array, shape (n_samples,)
        NaN where nothing is known of the sample.

    Examples
    --------
    >>> from rbrl.decision import ideal_row_thresholds
    >>> ideal_row_thresholds([[1.0, 2.0, 4.0]], [[0, 0, 1]])
    array([3.])
    """
    if rule not in ("middle", "smallest"):
        raise ValueError(f"rule must be 'middle' or 'smallest'. Got {rule!r} instead.")
    F = as_scores(scores)
    T, known = as_relevant(Y, F), as_known(Y)
    if not known.all():
        rows = [(f[None, k], t[None, k]) for f, t, k in zip(F, T, known)]
        return np.array([ideal_row_thresholds(f, t, rule)[0] if f.size else np.nan for f, t in rows])
    order = np.argsort(F, axis=1, kind="stable")
    rising = np.take_along_axis(F, order, axis=1)
    # Errors of a cut below the j-th label of rising score: relevant ones below it and irrelevant ones above.
    relevant_below = np.pad(np.cumsum(np.take_along_axis(T, order, axis=1), axis=1), ((0, 0), (1, 0)))
    irrelevant_below = np.arange(F.shape[1] + 1) - relevant_below
    errors = relevant_below + irrelevant_below[:, -1:] - irrelevant_below
    gap = np.argmin(errors, axis=1) if rule == "smallest" else _widest_best(errors, np.diff(rising, axis=1))
    middles = (rising[:, 1:] + rising[:, :-1]) / 2
    candidates = np.hstack([rising[:, :1] - _BEYOND, middles, rising[:, -1:] + _BEYOND])
    return candidates[np.arange(len(F)), gap]


def _widest_best(errors: IntArray, width: FloatArray) -> IntArray:
    """Index of the widest gap among those with the fewest errors; a tie is no gap, an outer side the narrowest."""
    is_gap = np.pad(width > 0, ((0, 0), (1, 1)), constant_values=True)
    errors = np.where(is_gap, errors, errors.shape[1])
    best = errors == errors.min(axis=1, keepdims=True)
    return np.argmax(np.where(best, np.pad(width, ((0, 0), (1, 1))), -1.0), axis=1)
