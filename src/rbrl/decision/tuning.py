"""Learned thresholds: one for all labels, or one for each, best for a metric on given scores.

Tune on scores of samples that the model was not trained on, such as those of cross-validation: on its own training
samples a model looks better than it is, and the thresholds come out wrong.
"""

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rbrl._common.typing import ArrayLike, BoolArray, FloatArray, MatrixLike
from rbrl.decision.rules import DecisionRule, as_relevant, as_scores

# Metrics whose best threshold is found exactly from counts: with one threshold for all labels, and with one for each.
_EXACT_GLOBAL = {"hamming_loss": "errors", "f1_micro": "f1"}
_EXACT_LABEL = {"hamming_loss": "errors", "f1_macro": "f1", "f1_weighted": "f1"}


class LabelMetric(Protocol):
    """What a threshold can be tuned for: a record of `rbrl.metrics` with ``needs == "labels"``."""

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> str: ...
    @property
    def greater_is_better(self) -> bool: ...
    @property
    def function(self) -> Callable[..., float]: ...


def best_global_threshold(
    scores: MatrixLike,
    Y: MatrixLike,
    metric: str | LabelMetric = "f1_micro",
    start: float = 0.0,
    n_candidates: int = 100,
) -> float:
    """The threshold for all labels that is best for a metric.

    Parameters
    ----------
    scores : array, shape (n_samples, n_labels)
        Scores of samples that the model has not seen.
    Y : array, shape (n_samples, n_labels)
        True labels, 0/1 or -1/+1.
    metric : {"f1_micro", "hamming_loss"} or record of `rbrl.metrics`
        The two names, also as records, are solved exactly. For another record of label metrics `n_candidates`
        thresholds, spread evenly over the sorted scores, are tried.
    start : float, default=0
        The cut that the scores are made for (0.5 for probabilities). Of equally good thresholds the nearest is taken.
    n_candidates : int, default=100
        See `metric`.

    Examples
    --------
    >>> best_global_threshold([[0.2, 0.9], [0.4, 0.6]], [[0, 1], [0, 1]])
    0.5
    """
    F = as_scores(scores)
    T = as_relevant(Y, F)
    criterion = _criterion(metric, _EXACT_GLOBAL)
    if isinstance(criterion, str):
        return _best_cut(F.ravel(), T.ravel(), criterion, start)
    candidates = _candidates(F.ravel(), start, n_candidates)
    return _nearest_best(candidates, [_value(criterion, T, threshold < F) for threshold in candidates], start)


def best_label_thresholds(
    scores: MatrixLike,
    Y: MatrixLike,
    metric: str | LabelMetric = "f1_macro",
    start: float = 0.0,
    n_candidates: int = 20,
    n_rounds: int = 2,
) -> FloatArray:
    """The threshold of each label that is best for a metric.

    Parameters
    ----------
    scores : array, shape (n_samples, n_labels)
        Scores of samples that the model has not seen.
    Y : array, shape (n_samples, n_labels)
        True labels, 0/1 or -1/+1.
    metric : {"f1_macro", "f1_weighted", "hamming_loss"} or record of `rbrl.metrics`
        The three names, also as records, are solved exactly, label by label. Another record of label metrics is
        improved one label after the other, `n_rounds` times through all of them, which finds a local optimum at the
        cost of ``n_labels * n_candidates * n_rounds`` evaluations.
    start : float, default=0
        The cut that the scores are made for (0.5 for probabilities). Of equally good thresholds the nearest is taken.
    n_candidates, n_rounds : int
        See `metric`.

    Returns
    -------
    array, shape (n_labels,)

    Examples
    --------
    >>> best_label_thresholds([[0.2, 0.9], [0.4, 0.6]], [[0, 1], [1, 1]], start=0.5)
    array([0.3, 0.5])
    """
    F = as_scores(scores)
    T = as_relevant(Y, F)
    criterion = _criterion(metric, _EXACT_LABEL)
    if isinstance(criterion, str):
        return np.array([_best_cut(f, t, criterion, start) for f, t in zip(F.T, T.T)])
    thresholds = np.full(F.shape[1], float(start))
    predicted = thresholds < F
    for _ in range(n_rounds):
        before = thresholds.copy()
        for j, f in enumerate(F.T):
            candidates = np.unique([*_candidates(f, start, n_candidates), thresholds[j]])
            values = []
            for candidate in candidates:
                predicted[:, j] = f > candidate
                values.append(_value(criterion, T, predicted))
            thresholds[j] = _nearest_best(candidates, values, start)
            predicted[:, j] = f > thresholds[j]
        if np.array_equal(before, thresholds):
            break
    return thresholds


def _criterion(metric: str | LabelMetric, exact: dict[str, str]) -> str | LabelMetric:
    """What cumulative counts are to optimise for this metric, or the record itself if they cannot."""
    if isinstance(metric, str):
        if metric not in exact:
            raise ValueError(f"metric must be one of {', '.join(exact)}, or a metric record. Got {metric!r} instead.")
        return exact[metric]
    if getattr(metric, "needs", None) != "labels":
        raise ValueError(f"A threshold can only be tuned for a metric of labels. Got {metric!r} instead.")
    return exact.get(metric.name, metric)


def _value(metric: LabelMetric, T: BoolArray, predicted: BoolArray) -> float:
    """The metric, larger for better labels."""
    value = metric.function(T, predicted)
    return value if metric.greater_is_better else -value


def _best_cut(scores: FloatArray, relevant: BoolArray, criterion: str, start: float) -> float:
    """Exact best threshold of one list of scores: cuts between distinct neighbours, counted by cumulative sums."""
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    hits = np.concatenate([[0], np.cumsum(relevant[order])])
    predicted = np.arange(len(scores) + 1)
    if criterion == "errors":
        values = 2.0 * hits - predicted
    else:
        values = 2.0 * hits / np.maximum(predicted + hits[-1], 1)
    separates = np.concatenate([[True], falling[1:] != falling[:-1], [True]])
    return _nearest_best(_cuts(falling, start)[separates], values[separates], start)


def _cuts(falling: FloatArray, start: float) -> FloatArray:
    """Thresholds above, between and below scores: `start` where it does the same, else the middle of the gap."""
    margin = 0.1 * (falling[0] - falling[-1]) or 0.1
    upper = np.concatenate([[np.inf], falling])
    lower = np.concatenate([falling, [-np.inf]])
    with np.errstate(invalid="ignore"):
        middle = np.concatenate([[falling[0] + margin], (falling[1:] + falling[:-1]) / 2, [falling[-1] - margin]])
    # Rounding can put the middle of two neighbours on the upper one, which must stay above the threshold.
    middle = np.where(middle >= upper, lower, middle)
    return np.where((lower <= start) & (start < upper), start, middle)


def _candidates(scores: FloatArray, start: float, n_candidates: int) -> FloatArray:
    """Cuts spread evenly over the distinct scores, and `start`."""
    cuts = _cuts(np.unique(scores)[::-1], start)
    picked = np.unique(np.linspace(0, len(cuts) - 1, n_candidates).round().astype(int))
    return np.unique([*cuts[picked], start])


def _nearest_best(candidates: FloatArray, values: ArrayLike, start: float) -> float:
    """The candidate nearest to `start` among those that are best up to rounding."""
    best = candidates[np.asarray(values) >= np.max(values) - 1e-12]
    return float(best[np.argmin(np.abs(best - start))])


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

    Examples
    --------
    >>> rule = GlobalThreshold(start=0.5).fit([[0.2, 0.9], [0.3, 0.4]], [[0, 1], [0, 1]])
    >>> rule.labels([[0.1, 0.4]])
    array([[0, 1]])
    """

    threshold_: float

    def __init__(self, metric: str | LabelMetric = "f1_micro", start: float = 0.0):
        self.metric = metric
        self.start = start

    def fit(self, scores: MatrixLike, Y: MatrixLike) -> Self:
        """Learn the threshold, best from scores of samples that the model has not seen."""
        self.threshold_ = best_global_threshold(scores, Y, self.metric, self.start)
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
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

    Examples
    --------
    >>> rule = LabelThresholds(start=0.5).fit([[0.2, 0.9], [0.4, 0.6]], [[0, 1], [1, 1]])
    >>> rule.thresholds_
    array([0.3, 0.5])
    """

    thresholds_: FloatArray

    def __init__(self, metric: str | LabelMetric = "f1_macro", start: float = 0.0):
        self.metric = metric
        self.start = start

    def fit(self, scores: MatrixLike, Y: MatrixLike) -> Self:
        """Learn the thresholds, best from scores of samples that the model has not seen."""
        self.thresholds_ = best_label_thresholds(scores, Y, self.metric, self.start)
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Scores less the thresholds."""
        check_is_fitted(self, "thresholds_")
        return as_scores(scores, len(self.thresholds_)) - self.thresholds_
