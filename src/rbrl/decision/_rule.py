"""What a decision rule is, and rules one after the other."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator


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
