"""Conversion of scores to labels: plain functions, and rules that can be learned and chained."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from rbrl._common.bases import Estimator
from rbrl._common.frames import as_dense
from rbrl._common.linalg import best_columns
from rbrl._common.matrices import SparseLabels
from rbrl._common.typing import Array, ArrayLike, BoolArray, FloatArray, IntArray, MatrixLike

# With ``non_empty="auto"``, empty predictions are filled if at most this share of the training
# samples has no label. A fill is wrong for a sample that has no label. The table `filling` of
# studies.benchmarks.thresholds shows no loss above .005 of subset accuracy up to a share of 5 %. The bound is
# smaller, because a fill departs from scikit-learn's rule that the labels are the positive scores:
# scikit-learn's check of this rule has one empty sample in 42.
LARGEST_EMPTY_SHARE = 0.02
# Distance of the outer candidates of a sample's threshold from its lowest and its highest score.
_OUTER_DISTANCE = 0.1


def relevant_labels(scores: MatrixLike, never_empty: bool = False) -> BoolArray:
    """Return the labels with a positive score.

    Parameters
    ----------
    scores : array or sparse matrix, shape (n_samples, n_labels)
        Scores; NaN is rejected.
    never_empty : bool, default=False
        If True, a sample without a positive score gets its best label, the first one on ties.

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
    """Give each sample without labels its best-scored label, the first one on ties.

    Use this function for labels that are not the positive scores, such as those of another
    classifier. For positive scores, use :func:`relevant_labels` with ``never_empty=True``. The
    labels are 0/1, -1/+1 or bool, and are not modified; the result is a dense array in the same coding.

    Examples
    --------
    >>> from rbrl.decision import non_empty
    >>> non_empty([[-1, -1], [1, -1]], scores=[[0.1, 0.3], [0.2, 0.9]])
    array([[-1,  1],
           [ 1, -1]])
    """
    filled = np.array(as_dense(labels))
    F = as_scores(scores)
    if filled.shape != F.shape:
        raise ValueError(f"labels and scores must have one shape. Got {filled.shape} and {F.shape} instead.")
    _fill_empty(filled, F)
    return filled


def _fill_empty(labels: Array, scores: FloatArray) -> None:
    """Give each row without a positive label its best-scored one, the first on ties, in place."""
    filled = (labels > 0).any(axis=1)
    if not filled.all():
        empty = np.flatnonzero(~filled)
        labels[empty, scores[empty].argmax(axis=1)] = 1


def empty_share(Y: MatrixLike | SparseLabels, weights: ArrayLike | None = None) -> float:
    """Compute the share of the samples that have no relevant label; 0 if no sample counts.

    The labels are 0/1 or -1/+1, and NaN for a missing label. A sample whose labels are all missing
    does not count.

    Examples
    --------
    >>> from rbrl.decision import empty_share
    >>> empty_share([[1, 0], [0, 0]]), empty_share([[1, 0], [0, 0]], [3.0, 1.0])
    (0.5, 0.25)
    """
    if isinstance(Y, SparseLabels):
        has_label: BoolArray = Y.count(axis=1) > 0
        is_known: BoolArray = np.ones(len(Y), dtype=bool)
    else:
        values = as_dense(Y)
        has_label = np.any(values > 0, axis=1)
        is_known = np.logical_not(np.isnan(values).all(axis=1))
    counts = np.ones(len(is_known)) if weights is None else np.asarray(weights, dtype=np.float64)
    counts = np.where(is_known, counts, 0.0)
    total = counts.sum()
    return float(counts[~has_label].sum() / total) if total else 0.0


def filling_pays(share: float) -> bool:
    """Return True if ``non_empty="auto"`` gives a row without a positive score its best label.

    The share is that of the training samples without a label; see :func:`empty_share`.

    Examples
    --------
    >>> from rbrl.decision import filling_pays
    >>> filling_pays(0.0), filling_pays(0.004), filling_pays(0.2)
    (True, True, False)
    """
    return share <= LARGEST_EMPTY_SHARE


def top_labels(scores: MatrixLike, k: int) -> tuple[IntArray, FloatArray]:
    """Return the columns and the scores of the k best labels of every sample, the best one first.

    Both arrays have the shape (n_samples, k). Of equal scores the first column comes first.

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
    """Return scores as a dense matrix of floats; reject NaN, and columns other than `n_labels` if given.

    A dense matrix of floats is returned itself, not a copy.
    """
    F = as_dense(scores)
    if F.ndim != 2:
        raise ValueError(f"scores must be a matrix, n_samples x n_labels. Got shape {F.shape} instead.")
    F = F if F.dtype.kind == "f" else F.astype(np.float64)
    if np.isnan(F).any():
        raise ValueError(f"scores must be numbers. Got NaN in {np.isnan(F).sum()} entries instead.")
    if n_labels not in (None, F.shape[1]):
        raise ValueError(f"The rule was learned for {n_labels} labels. Got scores of {F.shape[1]} labels instead.")
    return F


def as_labels(Y: MatrixLike, scores: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Return masks of relevant and of known labels, of labels 0/1 or -1/+1 in the shape of the scores."""
    labels = as_dense(Y)
    if labels.shape != scores.shape:
        raise ValueError(f"Y and scores must have one shape. Got {labels.shape} and {scores.shape} instead.")
    if len(labels) == 0:
        raise ValueError(f"A rule is learned from at least one sample. Got shape {labels.shape} instead.")
    known = ~np.isnan(labels) if labels.dtype.kind == "f" else np.ones(labels.shape, dtype=bool)
    return labels > 0, known


def row_weights(sample_weight: ArrayLike | None, F: FloatArray) -> FloatArray:
    """Return weights of samples as float64 (n_samples,), ones for None; F gives the number."""
    weights = np.ones(len(F)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != F.shape[:1]:
        raise ValueError(
            f"sample_weight must have a weight for each of the {len(F)} samples. Got shape {weights.shape}."
        )
    return weights


def make_positive(scores: FloatArray, chosen: BoolArray) -> FloatArray:
    """Return a copy in which exactly the chosen scores are positive.

    `chosen` has the shape of the scores. A chosen score that is not positive becomes the smallest
    positive number. Another positive score becomes 0.
    """
    scores = np.where(chosen & (scores <= 0), np.finfo(scores.dtype).tiny, scores)
    return np.where(~chosen & (scores > 0), scores.dtype.type(0), scores)


def ideal_row_thresholds(scores: MatrixLike, Y: MatrixLike, rule: str = "middle") -> FloatArray:
    """Return the threshold of each sample that makes the fewest errors; NaN without known labels.

    Every gap between neighbouring scores, and the two outer sides, is a candidate. Its threshold is
    the middle of the gap, or lies 0.1 beyond the outermost score. Of several best gaps, the rule
    "middle" takes the widest one, and an outer side only if no other is best. The rule "smallest"
    takes the lowest one, and counts tied scores as a gap.
    """
    if rule not in ("middle", "smallest"):
        raise ValueError(f"rule must be 'middle' or 'smallest'. Got {rule!r} instead.")
    F = as_scores(scores)
    T, known = as_labels(Y, F)
    if not known.all():
        rows = [(f[None, k], t[None, k]) for f, t, k in zip(F, T, known)]
        return np.array([ideal_row_thresholds(f, t, rule)[0] if f.size else np.nan for f, t in rows])
    order = np.argsort(F, axis=1, kind="stable")
    rising = np.take_along_axis(F, order, axis=1)
    # Errors of a threshold below the j-th score: relevant labels below it, irrelevant ones above.
    relevant_below = np.pad(np.cumsum(np.take_along_axis(T, order, axis=1), axis=1), ((0, 0), (1, 0)))
    irrelevant_below = np.arange(F.shape[1] + 1) - relevant_below
    errors = relevant_below + irrelevant_below[:, -1:] - irrelevant_below
    gap = np.argmin(errors, axis=1) if rule == "smallest" else _widest_best(errors, np.diff(rising, axis=1))
    middles = (rising[:, 1:] + rising[:, :-1]) / 2
    candidates = np.hstack([rising[:, :1] - _OUTER_DISTANCE, middles, rising[:, -1:] + _OUTER_DISTANCE])
    return candidates[np.arange(len(F)), gap]


def _widest_best(errors: IntArray, width: FloatArray) -> IntArray:
    """Return the index (n_samples,) of the widest gap with the fewest errors.

    `errors` (n_samples, n_labels + 1) are those of the gaps in ascending order, `width` (n_samples,
    n_labels - 1) are the widths of the inner gaps. Tied scores are not a gap, and an outer side is
    the narrowest gap.
    """
    is_gap = np.pad(width > 0, ((0, 0), (1, 1)), constant_values=True)
    errors = np.where(is_gap, errors, errors.shape[1])
    best = errors == errors.min(axis=1, keepdims=True)
    return np.argmax(np.where(best, np.pad(width, ((0, 0), (1, 1))), -1.0), axis=1)


class DecisionRule(Estimator, ABC):
    """Base class of the rules that turn scores into labels.

    A rule shifts scores so that the relevant labels have the positive scores. Shifted scores still
    rank the labels of a sample, so that another rule can follow. A subclass defines `shift`, and
    `fit` if it learns from data.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.decision import DecisionRule
    >>> class Above(DecisionRule):
    ...     def __init__(self, threshold: float = 0.5):
    ...         self.threshold = threshold
    ...
    ...     def shift(self, scores):
    ...         return np.asarray(scores) - self.threshold
    >>> Above(0.3).labels([[0.2, 0.4]])
    array([[0, 1]])
    """

    def fit(self, scores: MatrixLike, Y: MatrixLike) -> Self:
        """Learn the rule from scores and true labels; by default, learn nothing.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)
        Y : array or sparse matrix, shape (n_samples, n_labels)
            True labels, 0/1 or -1/+1; NaN for a missing label.

        Returns
        -------
        self
        """
        return self

    @abstractmethod
    def shift(self, scores: MatrixLike) -> FloatArray:
        """Return scores whose positive entries are the relevant labels; the argument is not modified.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array, shape (n_samples, n_labels)
        """

    def labels(self, scores: MatrixLike) -> IntArray:
        """Return the relevant labels as 0/1.

        Parameters
        ----------
        scores : array or sparse matrix, shape (n_samples, n_labels)

        Returns
        -------
        array of int, shape (n_samples, n_labels)
        """
        return relevant_labels(self.shift(scores)).astype(np.int64)


class Chain(DecisionRule):
    """Several rules in sequence, each applied to the scores that the previous rule shifted.

    Parameters
    ----------
    rules : sequence of DecisionRule
        Rules in the order in which they are learned and applied. `fit` changes them in place.

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
        """Learn each rule from the scores that the previous rules shifted."""
        for rule in self.rules:
            scores = rule.fit(scores, Y).shift(scores)
        return self

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Return the scores (n_samples, n_labels) after all rules."""
        F = as_scores(scores)
        for rule in self.rules:
            F = rule.shift(F)
        return F


class ZeroThreshold(DecisionRule):
    """Rule that a label is relevant if its score is positive.

    Examples
    --------
    >>> from rbrl.decision import ZeroThreshold
    >>> ZeroThreshold().labels([[-1.0, 0.0, 2.0]])
    array([[0, 0, 1]])
    """

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Return the scores unchanged; a dense matrix of floats is not copied."""
        return as_scores(scores)


class NonEmpty(DecisionRule):
    """Rule that a sample without a positive score gets its best label, the first one on ties.

    In other samples, a label is relevant if its score is positive.

    Examples
    --------
    >>> from rbrl.decision import NonEmpty
    >>> NonEmpty().labels([[-2.0, -1.0, -1.0], [-1.0, 1.0, 2.0]])
    array([[0, 1, 0],
           [0, 1, 1]])
    """

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Raise the best score of an empty sample to the smallest positive number."""
        F = as_scores(scores)
        return make_positive(F, relevant_labels(F, never_empty=True))


class TopK(DecisionRule):
    """Rule that the k labels with the highest scores are relevant; on ties, the first columns.

    Parameters
    ----------
    k : int, default=1
        Number of labels of each sample; all labels if there are fewer than k.

    Examples
    --------
    >>> from rbrl.decision import TopK
    >>> TopK(2).labels([[0.3, 0.1, 0.2]])
    array([[1, 0, 1]])
    """

    def __init__(self, k: int = 1):
        self.k = k

    def shift(self, scores: MatrixLike) -> FloatArray:
        """Shift each row so that its k best labels are positive, or all labels if there are fewer."""
        F = as_scores(scores)
        if self.k != int(self.k) or self.k < 0:
            raise ValueError(f"k must be a whole number, not negative. Got {self.k!r} instead.")
        order = np.argsort(-F, axis=1, kind="stable")
        chosen = np.zeros(F.shape, dtype=bool)
        np.put_along_axis(chosen, order[:, : self.k], True, axis=1)
        return make_positive(F - _middle(np.take_along_axis(F, order, axis=1), self.k), chosen)


def _middle(falling: FloatArray, k: int) -> FloatArray:
    """Return the middle between the k-th and the next score of each row, as a column.

    Each row of `falling` descends. If one of the two is missing, it is 1 above the highest or 1
    below the lowest score. `interop/onnx/operators.py` repeats this.
    """
    if k == 0:
        return falling[:, :1] + 1
    if k >= falling.shape[1]:
        return falling[:, -1:] - 1
    return (falling[:, k - 1 : k] + falling[:, k : k + 1]) / 2
