"""Learned thresholds: one for all labels, one for each label, or one for each sample.

Learn them from scores of samples that the model was not trained on, such as those of
cross-validation. The scores of training samples are too good, and thresholds learned from them are
wrong. Missing labels (NaN) are left out.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rbrl._common.typing import ArrayLike, FloatArray, IntArray, MatrixLike
from rbrl.decision.best_thresholds import ThresholdMetric, best_global_threshold, best_label_thresholds
from rbrl.decision.rules import DecisionRule, as_labels, as_scores, make_positive

# Distance of the outer candidates of a sample's threshold from its lowest and its highest score.
_OUTER_DISTANCE = 0.1


class GlobalThreshold(DecisionRule):
    """One learned threshold for all labels.

    Parameters
    ----------
    metric : {"f1_micro", "f1_samples", "hamming_loss"} or record of `rbrl.metrics`, default="f1_micro"
        Metric that the threshold is best for; see `best_global_threshold`.
    start : float, default=0
        Natural threshold of the scores; 0.5 for probabilities.
    never_empty : bool, default=False
        If True, learn the threshold for predictions in which a sample without a label gets its
        best label. The rule itself leaves such a sample empty: let :class:`NonEmpty` follow it in
        a :class:`Chain`.

    Attributes
    ----------
    threshold_ : float
        Threshold that is subtracted from all scores.

    Examples
    --------
    >>> from rbrl.decision import GlobalThreshold
    >>> rule = GlobalThreshold(start=0.5).fit([[0.2, 0.9], [0.3, 0.4]], [[0, 1], [0, 1]])
    >>> rule.labels([[0.1, 0.4]])
    array([[0, 1]])
    """

    threshold_: float
    never_empty: bool = False  # the value in a model file from before this parameter

    def __init__(self, metric: ThresholdMetric = "f1_micro", start: float = 0.0, never_empty: bool = False):
        self.metric = metric
        self.start = start
        self.never_empty = never_empty

    def fit(self, scores: MatrixLike, Y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the threshold from scores of samples that the model has not seen.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)
        Y : array or sparse matrix, shape (n_samples, n_labels)
            True labels, 0/1 or -1/+1; NaN for a missing label.
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
        """Subtract the threshold from the scores."""
        check_is_fitted(self, "threshold_")
        return as_scores(scores) - np.float64(self.threshold_)


class LabelThresholds(DecisionRule):
    """One learned threshold for each label.

    The thresholds change the ranking of the labels of a sample.

    Parameters
    ----------
    metric : {"f1_macro", "f1_weighted", "hamming_loss"} or record of `rbrl.metrics`, default="f1_macro"
        Metric that the thresholds are best for; see `best_label_thresholds`.
    start : float, default=0
        Natural threshold of the scores; 0.5 for probabilities.

    Attributes
    ----------
    thresholds_ : array, shape (n_labels,)
        Thresholds that are subtracted from the scores of each label.

    Examples
    --------
    >>> from rbrl.decision import LabelThresholds
    >>> rule = LabelThresholds(start=0.5).fit([[0.2, 0.9], [0.4, 0.6]], [[0, 1], [1, 1]])
    >>> rule.thresholds_
    array([0.3, 0.5])
    """

    thresholds_: FloatArray

    def __init__(self, metric: ThresholdMetric = "f1_macro", start: float = 0.0):
        self.metric = metric
        self.start = start

    def fit(self, scores: MatrixLike, Y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the thresholds; the parameters are those of :meth:`GlobalThreshold.fit`."""
        self.thresholds_ = best_label_thresholds(scores, Y, self.metric, self.start, sample_weight=sample_weight)
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Subtract the threshold of each label from its scores."""
        check_is_fitted(self, "thresholds_")
        return as_scores(scores, len(self.thresholds_)) - self.thresholds_


class RowThreshold(DecisionRule):
    r"""A threshold for each sample, linear in its scores.

    .. math:: t(f) = \langle a, f \rangle + c

    where a and c fit, by least squares, the threshold with the fewest errors of each training
    sample. Samples whose labels are all relevant or all irrelevant are left out.

    Parameters
    ----------
    rule : {"middle", "smallest"}, default="middle"
        Choice among several best thresholds of a training sample. "middle": the middle of the
        widest gap between scores. "smallest": the lowest best threshold, as in the widely used
        program.
    ties_relevant : bool, default=False
        If True, a score equal to the threshold is relevant, as in the widely used program.

    Attributes
    ----------
    coef_ : array, shape (n_labels,)
        Coefficients a of the scores.
    intercept_ : float
        Constant c.

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
        """Fit the linear function to the best thresholds of the samples.

        The parameters are those of :meth:`GlobalThreshold.fit`.
        """
        F = as_scores(scores)
        T, known = as_labels(Y, F)
        has_pair = T.any(axis=1) & (known & ~T).any(axis=1)
        if not has_pair.any():
            raise ValueError(
                "A row threshold is learned from samples with relevant and irrelevant labels. "
                f"Got {len(F)} samples, none of which has both."
            )
        weights = np.ones(len(F)) if sample_weight is None else np.asarray(sample_weight, float)
        F = F[has_pair]
        weights = weights[has_pair]
        target = ideal_row_thresholds(F, np.where(known, T, np.nan)[has_pair], self.rule)
        # The data are centred, because rounding of a large common constant would hide differences.
        centre = np.average(F, axis=0, weights=weights)
        level = np.average(target, weights=weights)
        root = np.sqrt(weights)
        self.coef_ = np.linalg.lstsq(root[:, None] * (F - centre), root * (target - level), rcond=None)[0]
        self.intercept_ = float(level - centre @ self.coef_)
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Subtract the threshold of each sample from its scores."""
        check_is_fitted(self, "coef_")
        F = as_scores(scores, len(self.coef_))
        shifted = F - (F @ self.coef_ + self.intercept_)[:, None]
        return make_positive(shifted, shifted >= 0) if self.ties_relevant else shifted


def ideal_row_thresholds(scores: MatrixLike, Y: MatrixLike, rule: str = "middle") -> FloatArray:
    """Return the threshold of each sample that makes the fewest errors; NaN without known labels.

    Every gap between neighbouring scores, and the two outer sides, is a candidate. Its threshold is
    the middle of the gap, or lies 0.1 beyond the outermost score. Of several best gaps, the rule
    "middle" takes the widest one, and an outer side only if no other is best. The rule "smallest"
    takes the lowest one, and counts tied scores as a gap.

    Examples
    --------
    >>> ideal_row_thresholds([[1.0, 2.0, 4.0]], [[0, 0, 1]])
    array([3.])
    """
    if rule not in ("middle", "smallest"):
        raise ValueError(f"rule must be 'middle' or 'smallest'. Got {rule!r} instead.")
    F = as_scores(scores)
    T, known = as_labels(Y, F)
    if not known.all():
        rows = [(f[None, k], t[None, k]) for f, t, k in zip(F, T, known)]
        return np.array([ideal_row_thresholds(f, t, rule)[0] if f.size else np.nan for f, t in rows])
    order = np.argsort(F, axis=1, kind="stable")
    rising = np.take_along_axis(F, order, axis=1)
    # Errors of a threshold below the j-th score: relevant labels below it, irrelevant ones above.
    relevant_below = np.pad(np.cumsum(np.take_along_axis(T, order, axis=1), axis=1), ((0, 0), (1, 0)))
    irrelevant_below = np.arange(F.shape[1] + 1) - relevant_below
    errors = relevant_below + irrelevant_below[:, -1:] - irrelevant_below
    gap = np.argmin(errors, axis=1) if rule == "smallest" else _widest_best(errors, np.diff(rising, axis=1))
    middles = (rising[:, 1:] + rising[:, :-1]) / 2
    candidates = np.hstack([rising[:, :1] - _OUTER_DISTANCE, middles, rising[:, -1:] + _OUTER_DISTANCE])
    return candidates[np.arange(len(F)), gap]


def _widest_best(errors: IntArray, width: FloatArray) -> IntArray:
    """Return the index of the widest gap with the fewest errors.

    Tied scores are not a gap, and an outer side is the narrowest gap.
    """
    is_gap = np.pad(width > 0, ((0, 0), (1, 1)), constant_values=True)
    errors = np.where(is_gap, errors, errors.shape[1])
    best = errors == errors.min(axis=1, keepdims=True)
    return np.argmax(np.where(best, np.pad(width, ((0, 0), (1, 1))), -1.0), axis=1)
