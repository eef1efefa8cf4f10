"""Rules that learn nothing."""

from typing import Any

import numpy as np

from rbrl.decision._rule import DecisionRule, as_scores, make_positive


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
