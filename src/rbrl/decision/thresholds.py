"""Learned thresholds: one for all labels, one for each label, or one for each sample.

Learn them from scores of samples that the model was not trained on, such as those of
cross-validation. The scores of training samples are too good, and thresholds learned from them are
wrong. Missing labels (NaN) are left out.

The F1 metrics and the Hamming loss are optimised exactly. A metric does not change between two
neighbouring scores, and cumulative sums over the sorted scores give its value at every threshold.
"""

from collections.abc import Callable
from typing import Protocol, Self, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rbrl._common.typing import ArrayLike, BoolArray, FloatArray, MatrixLike
from rbrl.decision.rules import (
    DecisionRule,
    as_labels,
    as_scores,
    ideal_row_thresholds,
    make_positive,
    relevant_labels,
    row_weights,
)

# Metrics whose best threshold is found exactly, with one threshold for all labels or one for each
# label, and the criterion that finds it.
_EXACT_GLOBAL = {"hamming_loss": "errors", "f1_micro": "f1", "f1_samples": "rows", "f1_example": "rows"}
_EXACT_LABEL = {"hamming_loss": "errors", "f1_macro": "f1", "f1_weighted": "f1"}
# Number of thresholds to try for another metric: for all labels together, and for each label in
# each round over the labels.
_N_GLOBAL_CANDIDATES = 100
_N_LABEL_CANDIDATES = 20
_N_ROUNDS = 2


class LabelMetric(Protocol):
    """The attributes of a `rbrl.metrics.Metric` of labels that the search for a threshold uses."""

    @property
    def name(self) -> str: ...
    @property
    def greater_is_better(self) -> bool: ...
    @property
    def function(self) -> Callable[..., float]: ...


# Metric of a threshold: the name of a metric that is optimised exactly, or a record of a label metric.
ThresholdMetric: TypeAlias = str | LabelMetric


class GlobalThreshold(DecisionRule):
    """One learned threshold for all labels.

    Parameters
    ----------
    metric : {"f1_micro", "f1_samples", "hamming_loss"} or record of `rbrl.metrics`, default="f1_micro"
        Metric that the threshold is best for. The named metrics are optimised exactly, also as
        records; "f1_samples" is the record `f1_example`. For another metric of labels, 100
        thresholds are tried, spread evenly over the sorted scores.
    start : float, default=0
        Natural threshold of the scores; 0.5 for probabilities.
    never_empty : bool, default=False
        If True, learn the threshold for predictions in which a sample without a label gets its
        best label. The rule itself leaves such a sample empty: let :class:`NonEmpty` follow it in
        a :class:`Chain`.

    Attributes
    ----------
    threshold_ : float
        Threshold that is subtracted from all scores; `start` if no label is known.

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
        self.threshold_ = best_global_threshold(
            scores, Y, self.metric, self.start, sample_weight=sample_weight, never_empty=self.never_empty
        )
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Return the scores (n_samples, n_labels) less the threshold."""
        check_is_fitted(self, "threshold_")
        return as_scores(scores) - np.float64(self.threshold_)


class LabelThresholds(DecisionRule):
    """One learned threshold for each label.

    The thresholds change the ranking of the labels of a sample.

    Parameters
    ----------
    metric : {"f1_macro", "f1_weighted", "hamming_loss"} or record of `rbrl.metrics`, default="f1_macro"
        Metric that the thresholds are best for. The named metrics are optimised exactly, also as
        records. Another metric of labels is improved one label after the other, which finds a
        local optimum.
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
        """Return the scores (n_samples, n_labels) less the threshold of each label."""
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
        """Learn the function; the parameters are those of :meth:`GlobalThreshold.fit`.

        At least one sample must have a relevant and an irrelevant label, or ValueError is raised.
        """
        F = as_scores(scores)
        T, known = as_labels(Y, F)
        has_pair = T.any(axis=1) & (known & ~T).any(axis=1)
        if not has_pair.any():
            raise ValueError(
                "A row threshold is learned from samples with relevant and irrelevant labels. "
                f"Got {len(F)} samples, none of which has both."
            )
        weights = row_weights(sample_weight, F)[has_pair]
        F = F[has_pair]
        target = ideal_row_thresholds(F, np.where(known, T, np.nan)[has_pair], self.rule)
        # The data are centred, because rounding of a large common constant would hide differences.
        centre = np.average(F, axis=0, weights=weights)
        level = np.average(target, weights=weights)
        root = np.sqrt(weights)
        self.coef_ = np.linalg.lstsq(root[:, None] * (F - centre), root * (target - level), rcond=None)[0]
        self.intercept_ = float(level - centre @ self.coef_)
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Return the scores (n_samples, n_labels) less the threshold of each sample."""
        check_is_fitted(self, "coef_")
        F = as_scores(scores, len(self.coef_))
        shifted = F - (F @ self.coef_ + self.intercept_)[:, None]
        return make_positive(shifted, shifted >= 0) if self.ties_relevant else shifted


def best_global_threshold(
    scores: MatrixLike, Y: MatrixLike, metric: ThresholdMetric = "f1_micro", start: float = 0.0, *,
    sample_weight: ArrayLike | None = None, never_empty: bool = False,
) -> float:  # fmt: skip
    """Find the threshold for all labels that is best for a metric; see :class:`GlobalThreshold`.

    Of equally good thresholds, the nearest to `start` is returned; without known labels, `start`
    itself. With `never_empty`, the best label of each sample is predicted at every threshold.
    """
    F = as_scores(scores)
    T, known = as_labels(Y, F)
    criterion = _check_metric(metric, _EXACT_GLOBAL, sample_weight)
    if not known.any():
        return float(start)
    if not isinstance(criterion, str):
        candidates = _candidates(F[known], start, _N_GLOBAL_CANDIDATES)
        predicted = (relevant_labels(F - threshold, never_empty) for threshold in candidates)
        return _nearest_best(candidates, [_value(criterion, T, known, labels) for labels in predicted], start)
    weights = row_weights(sample_weight, F)
    if criterion == "rows":
        return _best_threshold(*_sample_f1_curve(F, T, known, weights, never_empty), start)
    weights = np.broadcast_to(weights[:, None], F.shape)
    always = np.zeros(F.shape, dtype=bool)
    if never_empty:
        always[np.arange(len(F)), F.argmax(axis=1)] = True
    base = float((weights * T)[always & known].sum()), float(weights[always & known].sum())
    free = known & ~always
    return _best_threshold(*_curve(F[free], T[free], weights[free], criterion, base), start)


def best_label_thresholds(
    scores: MatrixLike, Y: MatrixLike, metric: ThresholdMetric = "f1_macro", start: float = 0.0, *,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:  # fmt: skip
    """Find the threshold of each label that is best for a metric; see :class:`LabelThresholds`.

    Of equally good thresholds, the nearest to `start` is returned. A metric that is not optimised
    exactly is improved one label after the other, with 20 thresholds each, in two rounds.
    """
    F = as_scores(scores)
    T, known = as_labels(Y, F)
    criterion = _check_metric(metric, _EXACT_LABEL, sample_weight)
    if not isinstance(criterion, str):
        return _improve_label_by_label(F, T, known, criterion, start)
    w = row_weights(sample_weight, F)
    curves = (_curve(f[k], t[k], w[k], criterion) for f, t, k in zip(F.T, T.T, known.T))
    return np.array([_best_threshold(*curve, start) for curve in curves])


def _improve_label_by_label(
    F: FloatArray, T: BoolArray, known: BoolArray, metric: LabelMetric, start: float
) -> FloatArray:
    """Choose the best of some thresholds for one label after the other; return them: (n_labels,).

    The metric may be a score or a loss. The current threshold of a label stays a candidate. Of equal
    values, the threshold nearest to `start` is chosen. There are at most `_N_ROUNDS` rounds. A label
    that is never known keeps `start`.
    """
    thresholds = np.full(F.shape[1], float(start))
    predicted = thresholds < F
    for _ in range(_N_ROUNDS):
        before = thresholds.copy()
        for j, f in enumerate(F.T):
            if not known[:, j].any():
                continue
            spread = _candidates(f[known[:, j]], start, _N_LABEL_CANDIDATES)
            candidates = np.unique([*spread, thresholds[j]])
            values = []
            for candidate in candidates:
                predicted[:, j] = f > candidate
                values.append(_value(metric, T, known, predicted))
            thresholds[j] = _nearest_best(candidates, values, start)
            predicted[:, j] = f > thresholds[j]
        if np.array_equal(before, thresholds):
            break
    return thresholds


def _check_metric(metric: ThresholdMetric, exact: dict[str, str], sample_weight: ArrayLike | None) -> ThresholdMetric:
    """Return the criterion that optimises a metric exactly, or else the metric itself.

    `exact` maps names of metrics to criteria. It raises ValueError for an unknown name, for a
    metric that needs no labels, and for weights that the metric cannot take.
    """
    if isinstance(metric, str):
        if metric not in exact:
            raise ValueError(f"metric must be one of {', '.join(exact)}, or a metric record. Got {metric!r} instead.")
        return exact[metric]
    if getattr(metric, "needs", None) != "labels":
        raise ValueError(f"A threshold can only be tuned for a metric of labels. Got {metric!r} instead.")
    criterion = exact.get(metric.name, metric)
    if sample_weight is not None and not isinstance(criterion, str):
        raise ValueError(
            f"sample_weight needs a metric that is optimised exactly: {', '.join(exact)}. Got {metric.name} instead; "
            "leave sample_weight out, or choose one of these."
        )
    return criterion


def _value(metric: LabelMetric, T: BoolArray, known: BoolArray, predicted: BoolArray) -> float:
    """Return the metric of predicted labels that are known, negated if it is a loss."""
    if known.all():
        value = metric.function(T, predicted)
    else:
        value = metric.function(np.where(known, T, np.nan), predicted, missing="ignore")
    return value if metric.greater_is_better else -value


def _curve(
    scores: FloatArray, relevant: BoolArray, weights: FloatArray, criterion: str, base: tuple[float, float] = (0.0, 0.0)
) -> tuple[FloatArray, FloatArray]:
    """Return falling scores, and the values of a criterion if the first 0, 1, ... are predicted.

    The arrays have the shapes (n,) and (n + 1,). The criterion "f1" is F1. The criterion "errors"
    is a constant less the errors. Some entries are predicted at every threshold; `base` is the
    weight of the relevant entries among them, and of all of them.
    """
    order = np.argsort(-scores, kind="stable")
    w = weights[order]
    hits = base[0] + np.concatenate([[0.0], np.cumsum(w * relevant[order])])
    predicted = base[1] + np.concatenate([[0.0], np.cumsum(w)])
    if criterion == "errors":
        return scores[order], 2.0 * hits - predicted
    size = predicted + hits[-1]
    return scores[order], np.divide(2.0 * hits, size, out=np.zeros_like(hits), where=size > 0)


def _sample_f1_curve(
    F: FloatArray, T: BoolArray, known: BoolArray, weights: FloatArray, never_empty: bool
) -> tuple[FloatArray, FloatArray]:
    """Return falling scores, and a constant plus the summed F1 if the first 0, 1, ... are predicted.

    The arrays have the shapes (n,) and (n + 1,), and n is the number of entries, without the best
    one of each row if `never_empty`. An entry that passes the threshold changes the F1 of its
    sample. The F1 of two empty sets is 1. Missing labels are neither relevant nor predicted.
    """
    order = np.argsort(-F, axis=1, kind="stable")
    falling = np.take_along_axis(F, order, axis=1)
    relevant, counted = (np.take_along_axis(M, order, axis=1) for M in (T & known, known))
    hits, predicted = (np.cumsum(M, axis=1, dtype=np.float64) for M in (relevant, counted))
    size = predicted + hits[:, -1:]
    # The size is 0 if no label of the sample is predicted or relevant.
    f1 = np.divide(2.0 * hits, size, out=np.ones_like(hits), where=size > 0)
    f1_of_empty_set = (hits[:, -1:] == 0).astype(np.float64)
    changes = weights[:, None] * np.diff(np.hstack([f1_of_empty_set, f1]), axis=1)
    free = slice(int(never_empty), None)
    flat = falling[:, free].ravel()
    by_score = np.argsort(-flat, kind="stable")
    return flat[by_score], np.concatenate([[0.0], np.cumsum(changes[:, free].ravel()[by_score])])


def _best_threshold(falling: FloatArray, values: FloatArray, start: float) -> float:
    """Return the threshold between distinct scores with the largest value; `start` without scores.

    `values[i]` is the value if the first i of the falling scores are predicted.
    """
    if not len(falling):
        return float(start)
    separates = np.concatenate([[True], falling[1:] != falling[:-1], [True]])
    return _nearest_best(_thresholds_between(falling, start)[separates], values[separates], start)


def _thresholds_between(falling: FloatArray, start: float) -> FloatArray:
    """Return one threshold more than there are scores, which descend: above, between and below them.

    The threshold of a gap is its middle, or `start` in the gap that contains it. The outer ones are a tenth
    of the range, or 0.1, away from the scores.
    """
    # Equal scores have no range.
    margin = 0.1 * (falling[0] - falling[-1]) or 0.1
    upper = np.concatenate([[np.inf], falling])
    lower = np.concatenate([falling, [-np.inf]])
    with np.errstate(invalid="ignore"):
        middle = np.concatenate([[falling[0] + margin], (falling[1:] + falling[:-1]) / 2, [falling[-1] - margin]])
    # Rounding can put the middle of two neighbours on the upper one, which must stay above.
    middle = np.where(middle >= upper, lower, middle)
    return np.where((lower <= start) & (start < upper), start, middle)


def _candidates(scores: FloatArray, start: float, n_candidates: int) -> FloatArray:
    """Return at most `n_candidates` ascending thresholds, spread over distinct scores, and `start`."""
    thresholds = _thresholds_between(np.unique(scores)[::-1], start)
    picked = np.unique(np.linspace(0, len(thresholds) - 1, n_candidates).round().astype(int))
    return np.unique([*thresholds[picked], start])


def _nearest_best(candidates: FloatArray, values: ArrayLike, start: float) -> float:
    """Return the candidate nearest to `start` among those with the largest value, up to rounding.

    Values count as equal if they differ by at most 1e-12, or this share of the largest one.
    """
    values = np.asarray(values)
    best = candidates[values >= values.max() - 1e-12 * max(1.0, float(np.abs(values).max()))]
    return float(best[np.argmin(np.abs(best - start))])
