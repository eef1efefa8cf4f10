"""The search for the best threshold: one for all labels, or one for each, best for a metric on given scores.

The F1 metrics and the Hamming loss are maximised exactly: between two neighbouring scores a metric does not change, and
cumulative sums over the sorted scores give its value at every cut.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from rbrl._common.typing import ArrayLike, BoolArray, FloatArray, MatrixLike
from rbrl.decision.rules import as_known, as_relevant, as_scores, relevant_labels

# Metrics whose best threshold is found exactly: with one threshold for all labels, and with one for each.
_EXACT_GLOBAL = {"hamming_loss": "errors", "f1_micro": "f1", "f1_samples": "rows", "f1_example": "rows"}
_EXACT_LABEL = {"hamming_loss": "errors", "f1_macro": "f1", "f1_weighted": "f1"}


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
    scores: MatrixLike, Y: MatrixLike, metric: Tuned = "f1_micro", start: float = 0.0, n_candidates: int = 100, *,
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
        The names, also as records, are solved exactly; "f1_samples" is the record `f1_example`. For another record of
        label metrics `n_candidates` thresholds, spread evenly over the sorted scores, are tried.
    start : float, default=0
        The cut that the scores are made for (0.5 for probabilities). Of equally good thresholds the nearest is taken.
    n_candidates : int, default=100
        See `metric`.
    sample_weight : array, shape (n_samples,), default=None
        Weights of the samples in the metric. Only for metrics that are solved exactly.
    never_empty : bool, default=False
        Find the best threshold for predictions in which a sample without a score above the threshold gets its best
        label, as :func:`relevant_labels` gives it.

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
    criterion = _criterion(metric, _EXACT_GLOBAL, sample_weight)
    if not known.any():
        return float(start)
    if criterion == "rows":
        return _best(_row_steps(F, T, known, _row_weights(sample_weight, F), never_empty), start)
    if isinstance(criterion, str):
        weights = np.broadcast_to(_row_weights(sample_weight, F)[:, None], F.shape)
        always = _best_entries(F) & known if never_empty else np.zeros(F.shape, dtype=bool)
        free = known & ~always
        base = float((weights * T)[always].sum()), float(weights[always].sum())
        return _best(_count_steps(F[free], T[free], weights[free], criterion, base), start)
    candidates = _candidates(F[known], start, n_candidates)
    predicted = (relevant_labels(F - threshold, never_empty) for threshold in candidates)
    return _nearest_best(candidates, [_value(criterion, T, known, labels) for labels in predicted], start)


def best_label_thresholds(
    scores: MatrixLike, Y: MatrixLike, metric: Tuned = "f1_macro", start: float = 0.0, n_candidates: int = 20,
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
        The three names, also as records, are solved exactly, label by label. Another record of label metrics is
        improved one label after the other, `n_rounds` times through all of them, which finds a local optimum at the
        cost of ``n_labels * n_candidates * n_rounds`` evaluations.
    start : float, default=0
        The cut that the scores are made for (0.5 for probabilities). Of equally good thresholds the nearest is taken.
    n_candidates, n_rounds : int
        See `metric`.
    sample_weight : array, shape (n_samples,), default=None
        Weights of the samples in the metric. Only for metrics that are solved exactly.

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
    criterion = _criterion(metric, _EXACT_LABEL, sample_weight)
    if isinstance(criterion, str):
        w = _row_weights(sample_weight, F)
        columns = zip(F.T, T.T, known.T)
        return np.array([_best(_count_steps(f[k], t[k], w[k], criterion), start) for f, t, k in columns])
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


def _criterion(metric: Tuned, exact: dict[str, str], sample_weight: ArrayLike | None) -> Tuned:
    """Name the counts that solve a metric exactly, or return the record itself if none do."""
    if isinstance(metric, str):
        if metric not in exact:
            raise ValueError(f"metric must be one of {', '.join(exact)}, or a metric record. Got {metric!r} instead.")
        return exact[metric]
    if getattr(metric, "needs", None) != "labels":
        raise ValueError(f"A threshold can only be tuned for a metric of labels. Got {metric!r} instead.")
    found = exact.get(metric.name, metric)
    if sample_weight is not None and not isinstance(found, str):
        raise ValueError(
            f"sample_weight needs a metric that is solved exactly: {', '.join(exact)}. Got {metric.name} instead; leave "
            "sample_weight out, or choose one of these."
        )
    return found


def _row_weights(sample_weight: ArrayLike | None, F: FloatArray) -> FloatArray:
    weights = np.ones(len(F)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != F.shape[:1]:
        raise ValueError(
            f"sample_weight must have a weight for each of the {len(F)} samples. Got shape {weights.shape}."
        )
    return weights


def _value(metric: LabelMetric, T: BoolArray, known: BoolArray, predicted: BoolArray) -> float:
    """The metric, larger for better labels."""
    if known.all():
        value = metric.function(T, predicted)
    else:
        value = metric.function(np.where(known, T, np.nan), predicted, missing="ignore")
    return value if metric.greater_is_better else -value


class _Steps(NamedTuple):
    """Falling scores, and the value of a metric with none of them above the threshold, with the first one, and so on."""

    falling: FloatArray
    values: FloatArray


def _count_steps(
    scores: FloatArray, relevant: BoolArray, weights: FloatArray, criterion: str, base: tuple[float, float] = (0.0, 0.0)
) -> _Steps:
    """F1, or the number of errors with a minus sign, of one list of entries.

    `base` has the weights of the entries that are predicted at any threshold: of the relevant ones, and of all.
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
    """F1 of each sample's label set, summed over samples: an entry that passes the threshold changes that of its sample.

    Two empty sets agree: their F1 is 1. Missing labels are neither relevant nor predicted.
    """
    order = np.argsort(-F, axis=1, kind="stable")
    falling = np.take_along_axis(F, order, axis=1)
    relevant, counted = (np.take_along_axis(M, order, axis=1) for M in (T & known, known))
    hits, predicted = (np.cumsum(M, axis=1, dtype=np.float64) for M in (relevant, counted))
    size = predicted + hits[:, -1:]
    # A sample of which nothing is predicted and nothing is relevant has a size of 0.
    f1 = np.divide(2.0 * hits, size, out=np.ones_like(hits), where=size > 0)
    nothing = (hits[:, -1:] == 0).astype(np.float64)
    changes = weights[:, None] * np.diff(np.hstack([nothing, f1]), axis=1)
    free = slice(int(never_empty), None)
    flat = falling[:, free].ravel()
    by_score = np.argsort(-flat, kind="stable")
    return _Steps(flat[by_score], np.concatenate([[0.0], np.cumsum(changes[:, free].ravel()[by_score])]))


def _best_entries(F: FloatArray) -> BoolArray:
    best = np.zeros(F.shape, dtype=bool)
    best[np.arange(len(F)), F.argmax(axis=1)] = True
    return best


def _best(steps: _Steps, start: float) -> float:
    """The exact best threshold: only a cut between distinct scores is one."""
    falling, values = steps
    if not len(falling):
        return float(start)
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
    values = np.asarray(values)
    best = candidates[values >= values.max() - 1e-12 * max(1.0, float(np.abs(values).max()))]
    return float(best[np.argmin(np.abs(best - start))])
