"""Learned thresholds: one for all labels, or one for each, best for a metric on given scores; or one for each sample.

Tune on scores of samples that the model was not trained on, such as those of cross-validation: on its own training
samples a model looks better than it is, and the thresholds come out wrong.

Labels that nobody looked at, NaN, are left out: a threshold is best for the entries that are known.
"""

from collections.abc import Callable
from typing import Protocol, Self, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rbrl._common.typing import ArrayLike, BoolArray, FloatArray, IntArray, MatrixLike
from rbrl.decision.rules import DecisionRule, as_known, as_relevant, as_scores, make_positive

# Metrics whose best threshold is found exactly from counts: with one threshold for all labels, and with one for each.
_EXACT_GLOBAL = {"hamming_loss": "errors", "f1_micro": "f1"}
_EXACT_LABEL = {"hamming_loss": "errors", "f1_macro": "f1", "f1_weighted": "f1"}
# How far beyond the lowest and the highest score the outer candidates of a sample's threshold lie.
_BEYOND = 0.1


class LabelMetric(Protocol):
    """A record of `rbrl.metrics` with ``needs == "labels"``, as far as a threshold is concerned."""

    @property
    def name(self) -> str: ...
    @property
    def greater_is_better(self) -> bool: ...
    @property
    def function(self) -> Callable[..., float]: ...


# What a threshold is tuned for: a metric that counts solve exactly, by its name, or any record of a label metric.
Tuned: TypeAlias = str | LabelMetric


def best_global_threshold(
    scores: MatrixLike, Y: MatrixLike, metric: Tuned = "f1_micro", start: float = 0.0, n_candidates: int = 100
) -> float:
    """The threshold for all labels that is best for a metric.

    Parameters
    ----------
    scores : array, shape (n_samples, n_labels)
        Scores of samples that the model has not seen.
    Y : array, shape (n_samples, n_labels)
        True labels, 0/1 or -1/+1; NaN where nobody looked.
    metric : {"f1_micro", "hamming_loss"} or record of `rbrl.metrics`
        The two names, also as records, are solved exactly. For another record of label metrics `n_candidates`
        thresholds, spread evenly over the sorted scores, are tried.
    start : float, default=0
        The cut that the scores are made for (0.5 for probabilities). Of equally good thresholds the nearest is taken.
    n_candidates : int, default=100
        See `metric`.

    Returns
    -------
    float

    Examples
    --------
    >>> from rbrl.decision import best_global_threshold
    >>> best_global_threshold([[0.2, 0.9], [0.4, 0.6]], [[0, 1], [0, 1]])
    0.5
    """
    F = as_scores(scores)
    T, known = as_relevant(Y, F), as_known(Y)
    criterion = _criterion(metric, _EXACT_GLOBAL)
    if not known.any():
        return float(start)
    if isinstance(criterion, str):
        return _best_cut(F[known], T[known], criterion, start)
    candidates = _candidates(F[known], start, n_candidates)
    return _nearest_best(candidates, [_value(criterion, T, known, threshold < F) for threshold in candidates], start)


def best_label_thresholds(
    scores: MatrixLike, Y: MatrixLike, metric: Tuned = "f1_macro", start: float = 0.0, n_candidates: int = 20,
    n_rounds: int = 2,
) -> FloatArray:  # fmt: skip
    """The threshold of each label that is best for a metric.

    Parameters
    ----------
    scores : array, shape (n_samples, n_labels)
        Scores of samples that the model has not seen.
    Y : array, shape (n_samples, n_labels)
        True labels, 0/1 or -1/+1; NaN where nobody looked.
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
    >>> from rbrl.decision import best_label_thresholds
    >>> best_label_thresholds([[0.2, 0.9], [0.4, 0.6]], [[0, 1], [1, 1]], start=0.5)
    array([0.3, 0.5])
    """
    F = as_scores(scores)
    T, known = as_relevant(Y, F), as_known(Y)
    criterion = _criterion(metric, _EXACT_LABEL)
    if isinstance(criterion, str):
        return np.array([_best_cut(f[k], t[k], criterion, start) for f, t, k in zip(F.T, T.T, known.T)])
    thresholds = np.full(F.shape[1], float(start))
    predicted = thresholds < F
    for _ in range(n_rounds):
        before = thresholds.copy()
        for j, f in enumerate(F.T):
            if not known[:, j].any():
                continue
            candidates = np.unique([*_candidates(f[known[:, j]], start, n_candidates), thresholds[j]])
            values = []
            for candidate in candidates:
                predicted[:, j] = f > candidate
                values.append(_value(criterion, T, known, predicted))
            thresholds[j] = _nearest_best(candidates, values, start)
            predicted[:, j] = f > thresholds[j]
        if np.array_equal(before, thresholds):
            break
    return thresholds


def _criterion(metric: Tuned, exact: dict[str, str]) -> Tuned:
    """What cumulative counts are to optimise for this metric, or the record itself if they cannot."""
    if isinstance(metric, str):
        if metric not in exact:
            raise ValueError(f"metric must be one of {', '.join(exact)}, or a metric record. Got {metric!r} instead.")
        return exact[metric]
    if getattr(metric, "needs", None) != "labels":
        raise ValueError(f"A threshold can only be tuned for a metric of labels. Got {metric!r} instead.")
    return exact.get(metric.name, metric)


def _value(metric: LabelMetric, T: BoolArray, known: BoolArray, predicted: BoolArray) -> float:
    """The metric, larger for better labels."""
    if known.all():
        value = metric.function(T, predicted)
    else:
        value = metric.function(np.where(known, T, np.nan), predicted, missing="ignore")
    return value if metric.greater_is_better else -value


def _best_cut(scores: FloatArray, relevant: BoolArray, criterion: str, start: float) -> float:
    """Exact best threshold of one list of scores: cuts between distinct neighbours, counted by cumulative sums."""
    if not len(scores):  # nothing is known
        return float(start)
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    hits = np.concatenate([[0], np.cumsum(relevant[order])])
    predicted = np.arange(len(scores) + 1)
    values = 2.0 * hits - predicted if criterion == "errors" else 2.0 * hits / np.maximum(predicted + hits[-1], 1)
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
    >>> from rbrl.decision import GlobalThreshold
    >>> rule = GlobalThreshold(start=0.5).fit([[0.2, 0.9], [0.3, 0.4]], [[0, 1], [0, 1]])
    >>> rule.labels([[0.1, 0.4]])
    array([[0, 1]])
    """

    threshold_: float

    def __init__(self, metric: Tuned = "f1_micro", start: float = 0.0):
        self.metric = metric
        self.start = start

    def fit(self, scores: MatrixLike, Y: MatrixLike) -> Self:
        """Learn the threshold, best from scores of samples that the model has not seen.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)
        Y : array or sparse matrix, shape (n_samples, n_labels)
            True labels, 0/1 or -1/+1; NaN where nobody looked.

        Returns
        -------
        self
        """
        self.threshold_ = best_global_threshold(scores, Y, self.metric, self.start)
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

    def fit(self, scores: MatrixLike, Y: MatrixLike) -> Self:
        """Learn the thresholds, best from scores of samples that the model has not seen.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)
        Y : array or sparse matrix, shape (n_samples, n_labels)
            True labels, 0/1 or -1/+1; NaN where nobody looked.

        Returns
        -------
        self
        """
        self.thresholds_ = best_label_thresholds(scores, Y, self.metric, self.start)
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
