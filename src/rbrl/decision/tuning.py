"""Learned thresholds: one for all labels, or one for each, best for a metric on given scores.

Tune on scores of samples that the model was not trained on, such as those of cross-validation: on its own training
samples a model looks better than it is, and the thresholds come out wrong.
"""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rbrl.decision.rules import DecisionRule, as_relevant, as_scores

# Metrics whose best threshold is found exactly from counts: with one threshold for all labels, and with one for each.
_EXACT_GLOBAL = {"hamming_loss": "errors", "f1_micro": "f1"}
_EXACT_LABEL = {"hamming_loss": "errors", "f1_macro": "f1", "f1_weighted": "f1"}


def best_global_threshold(
    scores: Any, Y: Any, metric: Any = "f1_micro", start: float = 0.0, n_candidates: int = 100
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
    """
    scores = as_scores(scores)
    relevant = as_relevant(Y, scores)
    name = _metric_name(metric, _EXACT_GLOBAL)
    if name in _EXACT_GLOBAL:
        return _best_cut(scores.ravel(), relevant.ravel(), _EXACT_GLOBAL[name], start)
    candidates = _candidates(scores.ravel(), start, n_candidates)
    values = [_value(metric, relevant, scores > threshold) for threshold in candidates]
    return float(_nearest_best(candidates, np.array(values), start))


def best_label_thresholds(
    scores: Any, Y: Any, metric: Any = "f1_macro", start: float = 0.0, n_candidates: int = 20, n_rounds: int = 2
) -> np.ndarray:
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
    """
    scores = as_scores(scores)
    relevant = as_relevant(Y, scores)
    name = _metric_name(metric, _EXACT_LABEL)
    if name in _EXACT_LABEL:
        return np.array([_best_cut(f, y, _EXACT_LABEL[name], start) for f, y in zip(scores.T, relevant.T)])
    return _improve_in_turn(scores, relevant, metric, start, n_candidates, n_rounds)


def _metric_name(metric, exact):
    if isinstance(metric, str):
        if metric not in exact:
            raise ValueError(f"metric must be one of {', '.join(exact)}, or a metric record. Got {metric!r} instead.")
        return metric
    if getattr(metric, "needs", None) != "labels":
        raise ValueError(f"A threshold can only be tuned for a metric of labels. Got {metric!r} instead.")
    return metric.name


def _value(metric, relevant, predicted):
    value = metric.function(relevant, predicted)
    return value if metric.greater_is_better else -value


def _best_cut(scores, relevant, criterion, start):
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
    return float(_nearest_best(_cuts(falling, start)[separates], values[separates], start))


def _cuts(falling, start):
    """Thresholds above, between and below scores: `start` where it does the same, else the middle of the gap."""
    margin = 0.1 * (falling[0] - falling[-1]) or 0.1
    upper = np.concatenate([[np.inf], falling])
    lower = np.concatenate([falling, [-np.inf]])
    with np.errstate(invalid="ignore"):
        middle = np.concatenate([[falling[0] + margin], (falling[1:] + falling[:-1]) / 2, [falling[-1] - margin]])
    # Rounding can put the middle of two neighbours on the upper one, which must stay above the threshold.
    middle = np.where(middle >= upper, lower, middle)
    return np.where((lower <= start) & (start < upper), start, middle)


def _candidates(scores, start, n_candidates):
    cuts = _cuts(np.unique(scores)[::-1], start)
    picked = np.unique(np.linspace(0, len(cuts) - 1, n_candidates).round().astype(int))
    return np.unique([*cuts[picked], start])


def _nearest_best(candidates, values, start):
    best = candidates[values >= values.max() - 1e-12]
    return best[np.argmin(np.abs(best - start))]


def _improve_in_turn(scores, relevant, metric, start, n_candidates, n_rounds):
    thresholds = np.full(scores.shape[1], float(start))
    predicted = scores > thresholds
    for _ in range(n_rounds):
        before = thresholds.copy()
        for j in range(scores.shape[1]):
            candidates = np.unique([*_candidates(scores[:, j], start, n_candidates), thresholds[j]])
            values = np.array([_try_column(metric, relevant, predicted, j, scores[:, j] > t) for t in candidates])
            thresholds[j] = _nearest_best(candidates, values, start)
            predicted[:, j] = scores[:, j] > thresholds[j]
        if np.array_equal(before, thresholds):
            break
    return thresholds


def _try_column(metric, relevant, predicted, j, column):
    predicted[:, j] = column
    return _value(metric, relevant, predicted)


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
