"""Rules that turn scores into label sets."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted


class DecisionRule(BaseEstimator):
    """A rule from scores to labels.

    A rule moves scores so that the relevant labels are the positive ones. Moved scores therefore still rank the labels
    of a sample, and one more rule can be put behind.

    Methods
    -------
    fit(scores, Y)
        Learn what the rule needs; most rules learn nothing.
    shift(scores)
        Scores whose positive entries are the relevant labels.
    labels(scores)
        The labels, 0/1.
    """

    def fit(self, scores: Any, Y: Any) -> "DecisionRule":
        """Learn from scores and true labels (0/1 or -1/+1); nothing by default."""
        return self

    def shift(self, scores: Any) -> np.ndarray:
        """Scores whose positive entries are the relevant labels."""
        raise NotImplementedError(f"{type(self).__name__} must define shift.")

    def labels(self, scores: Any) -> np.ndarray:
        """Relevant labels, 0/1."""
        return (self.shift(scores) > 0).astype(np.int64)


class Chain(DecisionRule):
    """Rules one after the other, each on the scores that the one before has shifted.

    Parameters
    ----------
    rules : sequence of DecisionRule
        Learned in this order, too.

    Examples
    --------
    >>> from rbrl.decision import LabelThresholds, NonEmpty
    >>> rule = Chain([LabelThresholds(), NonEmpty()])
    >>> rule.fit([[1.0, 3.0], [2.0, 4.0]], [[0, 0], [1, 1]]).labels([[1.4, 3.4]])
    array([[1, 0]])
    """

    def __init__(self, rules: Any = ()):
        self.rules = rules

    def fit(self, scores: Any, Y: Any) -> "Chain":
        """Learn each rule from what the ones before it leave."""
        for rule in self.rules:
            scores = rule.fit(scores, Y).shift(scores)
        return self

    def shift(self, scores: Any) -> np.ndarray:
        """Scores after all rules."""
        scores = as_scores(scores)
        for rule in self.rules:
            scores = rule.shift(scores)
        return scores


def as_scores(scores: Any) -> np.ndarray:
    """A matrix of floats, refused if it is none."""
    scores = scores.toarray() if sparse.issparse(scores) else np.asarray(scores)
    if scores.ndim != 2:
        raise ValueError(f"scores must be a matrix, n_samples x n_labels. Got shape {scores.shape} instead.")
    scores = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
    if np.isnan(scores).any():
        raise ValueError(f"scores must be numbers. Got NaN in {np.isnan(scores).sum()} places instead.")
    return scores


def as_relevant(Y: Any, scores: np.ndarray) -> np.ndarray:
    """Relevant labels as booleans, from 0/1 or -1/+1, of the shape of the scores."""
    Y = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    if Y.shape != scores.shape:
        raise ValueError(f"Y and scores must have one shape. Got {Y.shape} and {scores.shape} instead.")
    if len(Y) == 0:
        raise ValueError(f"A rule is learned from at least one sample. Got shape {Y.shape} instead.")
    return Y > 0


def make_positive(scores: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Let exactly the chosen entries be positive, moving no entry further than to the other side of zero."""
    scores = np.where(chosen & (scores <= 0), np.finfo(scores.dtype).tiny, scores)
    return np.where(~chosen & (scores > 0), scores.dtype.type(0), scores)


class ZeroThreshold(DecisionRule):
    """A label is relevant if its score is positive."""

    def shift(self, scores: Any) -> np.ndarray:
        """The scores themselves."""
        return as_scores(scores)


class NonEmpty(DecisionRule):
    """A label is relevant if its score is positive; a sample without such a label gets its best one.

    Of labels that tie for the best the first is taken.

    Examples
    --------
    >>> NonEmpty().labels([[-2.0, -1.0, -1.0], [-1.0, 1.0, 2.0]])
    array([[0, 1, 0],
           [0, 1, 1]])
    """

    def shift(self, scores: Any) -> np.ndarray:
        """Raise the best label of an empty sample to the smallest positive number; the ranking stays as it is."""
        scores = as_scores(scores).copy()
        empty = np.flatnonzero(~(scores > 0).any(axis=1))
        scores[empty, scores[empty].argmax(axis=1)] = np.finfo(scores.dtype).tiny
        return scores


class TopK(DecisionRule):
    """The k best-scored labels are relevant, whatever their scores; the first ones on ties.

    Parameters
    ----------
    k : int, default=1
        Number of labels; a sample gets all labels if there are fewer.

    Examples
    --------
    >>> TopK(2).labels([[0.3, 0.1, 0.2]])
    array([[1, 0, 1]])
    """

    def __init__(self, k: int = 1):
        self.k = k

    def shift(self, scores: Any) -> np.ndarray:
        """Subtract from each row the middle between its k-th and its next score."""
        scores = as_scores(scores)
        if self.k != int(self.k) or self.k < 0:
            raise ValueError(f"k must be a whole number, not negative. Got {self.k!r} instead.")
        order = np.argsort(-scores, axis=1, kind="stable")
        chosen = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(chosen, order[:, : self.k], True, axis=1)
        return make_positive(scores - _middle(np.take_along_axis(scores, order, axis=1), self.k), chosen)


def _middle(falling, k):
    """Middle between the k-th score of each row and the next one; 1 beyond where there is no k-th or next."""
    if k == 0:
        return falling[:, :1] + 1
    if k >= falling.shape[1]:
        return falling[:, -1:] - 1
    return (falling[:, k - 1 : k] + falling[:, k : k + 1]) / 2


def non_empty(labels: Any, scores: Any) -> np.ndarray:
    """Give each sample without labels its best-scored one, the first on ties.

    Parameters
    ----------
    labels : array, shape (n_samples, n_labels)
        Predicted labels, 0/1 or -1/+1. Left as it is.
    scores : array, shape (n_samples, n_labels)
        Where the best label is looked up.

    Returns
    -------
    array
        Labels in the same coding.
    """
    labels, scores = np.array(labels), as_scores(scores)
    if labels.shape != scores.shape:
        raise ValueError(f"labels and scores must have one shape. Got {labels.shape} and {scores.shape} instead.")
    empty = np.flatnonzero(~(labels > 0).any(axis=1))
    labels[empty, scores[empty].argmax(axis=1)] = 1
    return labels


def relevant_labels(scores: np.ndarray, never_empty: bool = False) -> np.ndarray:
    """Which labels are relevant, as booleans: those of positive score, and with `never_empty` a row's best if it has none.

    Examples
    --------
    >>> relevant_labels(np.array([[-2.0, -1.0], [1.0, -1.0]]), never_empty=True)
    array([[False,  True],
           [ True, False]])
    """
    relevant = scores > 0
    return non_empty(relevant, scores) if never_empty else relevant


def top_labels(scores: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k labels with the highest scores of every row, best first, of equal ones the first: their columns and scores.

    Examples
    --------
    >>> labels, scores = top_labels([[0.1, 0.7, 0.7], [3.0, 1.0, 2.0]], 2)
    >>> labels
    array([[1, 2],
           [0, 2]])
    """
    scores = as_scores(scores)
    if not 1 <= k <= scores.shape[1]:
        raise ValueError(f"k must be between 1 and the number of labels, {scores.shape[1]}. Got {k!r} instead.")
    labels = np.nonzero(_best(scores, k))[1].reshape(-1, k)
    values = np.take_along_axis(scores, labels, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(labels, order, axis=1), np.take_along_axis(values, order, axis=1)


def _best(scores, k):
    """Where the k best scores of every row are: k in each. A partition, because sorting all labels costs more."""
    last = scores.shape[1] - k
    bar = np.partition(scores, last, axis=1)[:, last : last + 1]
    above, level = scores > bar, scores == bar
    room = k - np.count_nonzero(above, axis=1, keepdims=True)
    crowded = np.flatnonzero(np.count_nonzero(level, axis=1, keepdims=True) > room)
    level[crowded] &= level[crowded].cumsum(axis=1) <= room[crowded]
    return above | level


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
