"""Where scores become labels: the plain functions, and rules that can be learned, chained and kept with a model."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from rbrl._common.bases import Estimator
from rbrl._common.frames import as_dense
from rbrl._common.top_k import best_columns
from rbrl._common.typing import Array, BoolArray, FloatArray, IntArray, MatrixLike


def relevant_labels(scores: MatrixLike, never_empty: bool = False) -> BoolArray:
    """The labels that scores stand for: the positive ones.

    Parameters
    ----------
    scores : array or sparse matrix, shape (n_samples, n_labels)
        NaN is refused.
    never_empty : bool, default=False
        Whether a sample without a positive score gets its best label, the first on ties.

    Returns
    -------
    array of bool, shape (n_samples, n_labels)

    Examples
    --------
    >>> from rbrl.decision import relevant_labels
    >>> relevant_labels([[-2.0, -1.0, -1.0], [-1.0, 1.0, 2.0]], never_empty=True)
    array([[False,  True, False],
           [False,  True,  True]])
    """
    F = as_scores(scores)
    labels = F > 0
    if never_empty:
        _fill_empty(labels, F)
    return labels


def non_empty(labels: MatrixLike, scores: MatrixLike) -> Array:
    """Give each sample without labels its best-scored one, the first on ties.

    For labels that are not the positive scores, such as those of another classifier; `relevant_labels` does both at once.

    Parameters
    ----------
    labels : array or sparse matrix, shape (n_samples, n_labels)
        Predicted labels, 0/1, -1/+1 or bool. Left as it is.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        Where the best label is looked up.

    Returns
    -------
    array
        Labels in the same coding.

    Examples
    --------
    >>> from rbrl.decision import non_empty
    >>> non_empty([[-1, -1], [1, -1]], scores=[[0.1, 0.3], [0.2, 0.9]])
    array([[-1,  1],
           [ 1, -1]])
    """
    filled, F = np.array(as_dense(labels)), as_scores(scores)
    if filled.shape != F.shape:
        raise ValueError(f"labels and scores must have one shape. Got {filled.shape} and {F.shape} instead.")
    _fill_empty(filled, F)
    return filled


def _fill_empty(labels: Array, scores: FloatArray) -> None:
    filled = (labels > 0).any(axis=1)
    if not filled.all():
        empty = np.flatnonzero(~filled)
        labels[empty, scores[empty].argmax(axis=1)] = 1


def top_labels(scores: MatrixLike, k: int) -> tuple[IntArray, FloatArray]:
    """The k labels with the highest scores of every row, best first, of equal ones the first: their columns and scores.

    Parameters
    ----------
    scores : array or sparse matrix, shape (n_samples, n_labels)
    k : int
        Between 1 and the number of labels.

    Returns
    -------
    labels : array of int, shape (n_samples, k)
    scores : array, shape (n_samples, k)

    Examples
    --------
    >>> from rbrl.decision import top_labels
    >>> labels, scores = top_labels([[0.1, 0.7, 0.7], [3.0, 1.0, 2.0]], 2)
    >>> labels
    array([[1, 2],
           [0, 2]])
    """
    F = as_scores(scores)
    if not 1 <= k <= F.shape[1]:
        raise ValueError(f"k must be between 1 and the number of labels, {F.shape[1]}. Got {k!r} instead.")
    labels = best_columns(F, k)
    return labels, np.take_along_axis(F, labels, axis=1)


def as_scores(scores: MatrixLike, n_labels: int | None = None) -> FloatArray:
    """A matrix of floats, of `n_labels` columns if that is given; refused if it is none.

    Parameters
    ----------
    scores : array or sparse matrix, shape (n_samples, n_labels)
    n_labels : int, default=None
        Columns that a rule was learned for.

    Returns
    -------
    array of floats, shape (n_samples, n_labels)
    """
    F = as_dense(scores)
    if F.ndim != 2:
        raise ValueError(f"scores must be a matrix, n_samples x n_labels. Got shape {F.shape} instead.")
    F = F if F.dtype.kind == "f" else F.astype(np.float64)
    if np.isnan(F).any():
        raise ValueError(f"scores must be numbers. Got NaN in {np.isnan(F).sum()} places instead.")
    if n_labels not in (None, F.shape[1]):
        raise ValueError(f"The rule knows {n_labels} labels. Got scores of {F.shape[1]} instead.")
    return F


def as_relevant(Y: MatrixLike, scores: FloatArray) -> BoolArray:
    """Relevant labels as booleans, from 0/1 or -1/+1, of the shape of the scores; what is not known is not relevant.

    Parameters
    ----------
    Y : array or sparse matrix, shape (n_samples, n_labels)
    scores : array, shape (n_samples, n_labels)

    Returns
    -------
    array of bool, shape (n_samples, n_labels)
    """
    labels = as_dense(Y)
    if labels.shape != scores.shape:
        raise ValueError(f"Y and scores must have one shape. Got {labels.shape} and {scores.shape} instead.")
    if len(labels) == 0:
        raise ValueError(f"A rule is learned from at least one sample. Got shape {labels.shape} instead.")
    return labels > 0


def as_known(Y: MatrixLike) -> BoolArray:
    """Tell which labels are known: those that are not NaN.

    Parameters
    ----------
    Y : array or sparse matrix, shape (n_samples, n_labels)

    Returns
    -------
    array of bool, shape (n_samples, n_labels)
    """
    labels = as_dense(Y)
    return ~np.isnan(labels) if labels.dtype.kind == "f" else np.ones(labels.shape, dtype=bool)


def make_positive(scores: FloatArray, chosen: BoolArray) -> FloatArray:
    """Let exactly the chosen entries be positive, moving no entry further than to the other side of zero.

    Parameters
    ----------
    scores : array, shape (n_samples, n_labels)
    chosen : array of bool, shape (n_samples, n_labels)

    Returns
    -------
    array, shape (n_samples, n_labels)
    """
    scores = np.where(chosen & (scores <= 0), np.finfo(scores.dtype).tiny, scores)
    return np.where(~chosen & (scores > 0), scores.dtype.type(0), scores)


class DecisionRule(Estimator, ABC):
    """A rule from scores to labels.

    A rule moves scores so that the relevant labels are the positive ones. Moved scores therefore still rank the labels
    of a sample, and one more rule can be put behind. A subclass defines `shift`, and `fit` if it learns something.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.decision import DecisionRule
    >>> class Above(DecisionRule):
    ...     def __init__(self, cut: float = 0.5):
    ...         self.cut = cut
    ...
    ...     def shift(self, scores):
    ...         return np.asarray(scores) - self.cut
    >>> Above(0.3).labels([[0.2, 0.4]])
    array([[0, 1]])
    """

    def fit(self, scores: MatrixLike, Y: MatrixLike) -> Self:
        """Learn from scores and true labels (0/1 or -1/+1); nothing by default.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)
        Y : array or sparse matrix, shape (n_samples, n_labels)
            True labels, 0/1 or -1/+1; NaN where nobody looked.

        Returns
        -------
        self
        """
        return self

    @abstractmethod
    def shift(self, scores: MatrixLike) -> FloatArray:
        """Scores whose positive entries are the relevant labels.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array, shape (n_samples, n_labels)
        """

    def labels(self, scores: MatrixLike) -> IntArray:
        """Relevant labels, 0/1.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array of int, shape (n_samples, n_labels)
        """
        return relevant_labels(self.shift(scores)).astype(np.int64)


class Chain(DecisionRule):
    """Rules one after the other, each on the scores that the one before has shifted.

    Parameters
    ----------
    rules : sequence of DecisionRule
        Learned in this order, too.

    Examples
    --------
    >>> from rbrl.decision import Chain, LabelThresholds, NonEmpty
    >>> rule = Chain([LabelThresholds(), NonEmpty()])
    >>> rule.fit([[1.0, 3.0], [2.0, 4.0]], [[0, 0], [1, 1]]).labels([[1.4, 3.4]])
    array([[1, 0]])
    """

    def __init__(self, rules: Sequence[DecisionRule] = ()):
        self.rules = rules

    def fit(self, scores: MatrixLike, Y: MatrixLike) -> Self:
        """Learn each rule from what the ones before it leave.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)
        Y : array or sparse matrix, shape (n_samples, n_labels)
            True labels, 0/1 or -1/+1; NaN where nobody looked.

        Returns
        -------
        self
        """
        for rule in self.rules:
            scores = rule.fit(scores, Y).shift(scores)
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Scores after all rules.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array, shape (n_samples, n_labels)
        """
        F = as_scores(scores)
        for rule in self.rules:
            F = rule.shift(F)
        return F


class ZeroThreshold(DecisionRule):
    """A label is relevant if its score is positive.

    Examples
    --------
    >>> from rbrl.decision import ZeroThreshold
    >>> ZeroThreshold().labels([[-1.0, 0.0, 2.0]])
    array([[0, 0, 1]])
    """

    def shift(self, scores: MatrixLike) -> FloatArray:
        """The scores themselves.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array, shape (n_samples, n_labels)
        """
        return as_scores(scores)


class NonEmpty(DecisionRule):
    """A label is relevant if its score is positive; a sample without such a label gets its best one.

    Of labels that tie for the best the first is taken.

    Examples
    --------
    >>> from rbrl.decision import NonEmpty
    >>> NonEmpty().labels([[-2.0, -1.0, -1.0], [-1.0, 1.0, 2.0]])
    array([[0, 1, 0],
           [0, 1, 1]])
    """

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Raise the best label of an empty sample to the smallest positive number; the ranking stays as it is.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array, shape (n_samples, n_labels)
        """
        F = as_scores(scores)
        return make_positive(F, relevant_labels(F, never_empty=True))


class TopK(DecisionRule):
    """The k best-scored labels are relevant, whatever their scores; the first ones on ties.

    Parameters
    ----------
    k : int, default=1
        Number of labels; a sample gets all labels if there are fewer.

    Examples
    --------
    >>> from rbrl.decision import TopK
    >>> TopK(2).labels([[0.3, 0.1, 0.2]])
    array([[1, 0, 1]])
    """

    def __init__(self, k: int = 1):
        self.k = k

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Subtract from each row the middle between its k-th and its next score.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array, shape (n_samples, n_labels)
        """
        F = as_scores(scores)
        if self.k != int(self.k) or self.k < 0:
            raise ValueError(f"k must be a whole number, not negative. Got {self.k!r} instead.")
        order = np.argsort(-F, axis=1, kind="stable")
        chosen = np.zeros(F.shape, dtype=bool)
        np.put_along_axis(chosen, order[:, : self.k], True, axis=1)
        return make_positive(F - _middle(np.take_along_axis(F, order, axis=1), self.k), chosen)


def _middle(falling: FloatArray, k: int) -> FloatArray:
    """Middle between the k-th score of each row and the next one; 1 beyond where there is no k-th or next."""
    if k == 0:
        return falling[:, :1] + 1
    if k >= falling.shape[1]:
        return falling[:, -1:] - 1
    return (falling[:, k - 1 : k] + falling[:, k : k + 1]) / 2
