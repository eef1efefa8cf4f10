"""Search for the threshold that is best for a metric: one for all labels, or one for each label.

The F1 metrics and the Hamming loss are optimised exactly. A metric does not change between two
neighbouring scores, and cumulative sums over the sorted scores give its value at every threshold.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from rbrl._common.typing import ArrayLike, BoolArray, FloatArray, MatrixLike
from rbrl.decision.rules import as_labels, as_scores, relevant_labels

# Metrics whose best threshold is found exactly, with one threshold for all labels or one for each
# label, and the criterion that finds it.
_EXACT_GLOBAL = {"hamming_loss": "errors", "f1_micro": "f1", "f1_samples": "rows", "f1_example": "rows"}
_EXACT_LABEL = {"hamming_loss": "errors", "f1_macro": "f1", "f1_weighted": "f1"}


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


def best_global_threshold(
    scores: MatrixLike, Y: MatrixLike, metric: ThresholdMetric = "f1_micro", start: float = 0.0, n_candidates: int = 100, *,
    sample_weight: ArrayLike | None = None, never_empty: bool = False,
) -> float:  # fmt: skip
    """Find the threshold for all labels that is best for a metric.

    Parameters
    ----------
    scores : array, shape (n_samples, n_labels)
        Scores of samples that the model has not seen.
    Y : array, shape (n_samples, n_labels)
        True labels, 0/1 or -1/+1; NaN where a label is missing.
    metric : {"f1_micro", "f1_samples", "hamming_loss"} or record of `rbrl.metrics`
        Metric of the threshold. The named metrics are optimised exactly, also as records;
        "f1_samples" is the record `f1_example`. For another metric of labels, `n_candidates`
        thresholds are tried, spread evenly over the sorted scores.
    start : float, default=0
        Natural threshold of the scores (0.5 for probabilities). Of equally good thresholds, the
        nearest to it is returned.
    n_candidates : int, default=100
        Number of thresholds to try for a metric that is not optimised exactly.
    sample_weight : array, shape (n_samples,), default=None
        Weights of the samples in the metric, for a metric that is optimised exactly.
    never_empty : bool, default=False
        If True, optimise predictions in which a sample without a score above the threshold gets
        its best label; see :func:`relevant_labels`.

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
    T, known = as_labels(Y, F)
    criterion = _check_metric(metric, _EXACT_GLOBAL, sample_weight)
    if not known.any():
        return float(start)
    if criterion == "rows":
        return _best_threshold(_row_steps(F, T, known, _row_weights(sample_weight, F), never_empty), start)
    if isinstance(criterion, str):
        weights = np.broadcast_to(_row_weights(sample_weight, F)[:, None], F.shape)
        always = _best_entries(F) & known if never_empty else np.zeros(F.shape, dtype=bool)
        free = known & ~always
        base = float((weights * T)[always].sum()), float(weights[always].sum())
        return _best_threshold(_count_steps(F[free], T[free], weights[free], criterion, base), start)
    candidates = _candidates(F[known], start, n_candidates)
    predicted = (relevant_labels(F - threshold, never_empty) for threshold in candidates)
    return _nearest_best(candidates, [_value(criterion, T, known, labels) for labels in predicted], start)


def best_label_thresholds(
    scores: MatrixLike, Y: MatrixLike, metric: ThresholdMetric = "f1_macro", start: float = 0.0, n_candidates: int = 20,
    n_rounds: int = 2, *, sample_weight: ArrayLike | None = None,
) -> FloatArray:  # fmt: skip
    """Find the threshold of each label that is best for a metric.

    Parameters
    ----------
    scores : array, shape (n_samples, n_labels)
        Scores of samples that the model has not seen.
    Y : array, shape (n_samples, n_labels)
        True labels, 0/1 or -1/+1; NaN where a label is missing.
    metric : {"f1_macro", "f1_weighted", "hamming_loss"} or record of `rbrl.metrics`
        Metric of the thresholds. The named metrics are optimised exactly, label by label, also as
        records. Another metric of labels is improved one label after the other. This finds a
        local optimum with ``n_labels * n_candidates * n_rounds`` evaluations.
    start : float, default=0
        Natural threshold of the scores (0.5 for probabilities). Of equally good thresholds, the
        nearest to it is returned.
    n_candidates, n_rounds : int
        Number of thresholds to try for each label, and of rounds over all labels, for a metric
        that is not optimised exactly.
    sample_weight : array, shape (n_samples,), default=None
        Weights of the samples in the metric, for a metric that is optimised exactly.

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
    T, known = as_labels(Y, F)
    criterion = _check_metric(metric, _EXACT_LABEL, sample_weight)
    if isinstance(criterion, str):
        w = _row_weights(sample_weight, F)
        columns = zip(F.T, T.T, known.T)
        return np.array([_best_threshold(_count_steps(f[k], t[k], w[k], criterion), start) for f, t, k in columns])
    return _improve_label_by_label(F, T, known, criterion, start, n_candidates, n_rounds)


def _improve_label_by_label(
    F: FloatArray, T: BoolArray, known: BoolArray, metric: LabelMetric, start: float, n_candidates: int, n_rounds: int
) -> FloatArray:
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
                values.append(_value(metric, T, known, predicted))
            thresholds[j] = _nearest_best(candidates, values, start)
            predicted[:, j] = f > thresholds[j]
        if np.array_equal(before, thresholds):
            break
    return thresholds


def _check_metric(metric: ThresholdMetric, exact: dict[str, str], sample_weight: ArrayLike | None) -> ThresholdMetric:
    """Return the criterion that optimises a metric exactly, or else the metric itself."""
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


def _row_weights(sample_weight: ArrayLike | None, F: FloatArray) -> FloatArray:
    weights = np.ones(len(F)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != F.shape[:1]:
        raise ValueError(
            f"sample_weight must have a weight for each of the {len(F)} samples. Got shape {weights.shape}."
        )
    return weights


def _value(metric: LabelMetric, T: BoolArray, known: BoolArray, predicted: BoolArray) -> float:
    """Return the metric of predicted labels, negated if it is a loss."""
    if known.all():
        value = metric.function(T, predicted)
    else:
        value = metric.function(np.where(known, T, np.nan), predicted, missing="ignore")
    return value if metric.greater_is_better else -value


class _Steps(NamedTuple):
    """Sorted scores, and the value of a metric for every number of scores above the threshold.

    Attributes
    ----------
    falling : array (n_scores,)
        Scores, the largest first.
    values : array (n_scores + 1,)
        Value of the metric with 0, 1, ..., n_scores scores above the threshold.
    """

    falling: FloatArray
    values: FloatArray


def _count_steps(
    scores: FloatArray, relevant: BoolArray, weights: FloatArray, criterion: str, base: tuple[float, float] = (0.0, 0.0)
) -> _Steps:
    """Compute F1, or the negated number of errors, of one list of entries.

    Some entries are predicted at every threshold; `base` is the weight of the relevant entries
    among them, and of all of them.
    """
    order = np.argsort(-scores, kind="stable")
    w = weights[order]
    hits = base[0] + np.concatenate([[0.0], np.cumsum(w * relevant[order])])
    predicted = base[1] + np.concatenate([[0.0], np.cumsum(w)])
    if criterion == "errors":
        return _Steps(scores[order], 2.0 * hits - predicted)
    size = predicted + hits[-1]
    return _Steps(scores[order], np.divide(2.0 * hits, size, out=np.zeros_like(hits), where=size > 0))


def _row_steps(F: FloatArray, T: BoolArray, known: BoolArray, weights: FloatArray, never_empty: bool) -> _Steps:
    """Compute the F1 of each sample's label set, summed over samples.

    An entry that passes the threshold changes the F1 of its sample. The F1 of two empty sets is 1.
    Missing labels are neither relevant nor predicted.
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
    return _Steps(flat[by_score], np.concatenate([[0.0], np.cumsum(changes[:, free].ravel()[by_score])]))


def _best_entries(F: FloatArray) -> BoolArray:
    best = np.zeros(F.shape, dtype=bool)
    best[np.arange(len(F)), F.argmax(axis=1)] = True
    return best


def _best_threshold(steps: _Steps, start: float) -> float:
    """Return the best threshold between distinct scores."""
    falling, values = steps
    if not len(falling):
        return float(start)
    separates = np.concatenate([[True], falling[1:] != falling[:-1], [True]])
    return _nearest_best(_thresholds_between(falling, start)[separates], values[separates], start)


def _thresholds_between(falling: FloatArray, start: float) -> FloatArray:
    """Return thresholds above, between and below scores: `start` in its gap, else the middle."""
    margin = 0.1 * (falling[0] - falling[-1]) or 0.1
    upper = np.concatenate([[np.inf], falling])
    lower = np.concatenate([falling, [-np.inf]])
    with np.errstate(invalid="ignore"):
        middle = np.concatenate([[falling[0] + margin], (falling[1:] + falling[:-1]) / 2, [falling[-1] - margin]])
    # Rounding can put the middle of two neighbours on the upper one, which must stay above.
    middle = np.where(middle >= upper, lower, middle)
    return np.where((lower <= start) & (start < upper), start, middle)


def _candidates(scores: FloatArray, start: float, n_candidates: int) -> FloatArray:
    """Return thresholds spread evenly over the distinct scores, and `start`."""
    thresholds = _thresholds_between(np.unique(scores)[::-1], start)
    picked = np.unique(np.linspace(0, len(thresholds) - 1, n_candidates).round().astype(int))
    return np.unique([*thresholds[picked], start])


def _nearest_best(candidates: FloatArray, values: ArrayLike, start: float) -> float:
    """Return the candidate nearest to `start` among those that are best up to rounding."""
    values = np.asarray(values)
    best = candidates[values >= values.max() - 1e-12 * max(1.0, float(np.abs(values).max()))]
    return float(best[np.argmin(np.abs(best - start))])
