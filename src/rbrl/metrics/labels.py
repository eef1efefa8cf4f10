"""Metrics of predicted label sets, averaged over samples, over labels, or over all entries."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.typing import ArrayLike, FloatArray, MatrixLike
from rbrl.metrics.inputs import check_label_pair, warn_undefined

# F1 and accuracy of two empty sets are 0/0. The sets agree, so the paper's convention says 1;
# scikit-learn's default is 0.
_BOTH_EMPTY = {"paper": 1.0, "mulan": 1.0, "sklearn": 0.0}


class Overlap(NamedTuple):
    """Sizes of true sets, of predicted sets and of their intersections, and number of known labels.

    Attributes
    ----------
    hits : array
        Sizes of the intersections.
    true, predicted : arrays
        Sizes of the sets.
    known : array
        Number of entries that are not missing.
    """

    hits: FloatArray
    true: FloatArray
    predicted: FloatArray
    known: FloatArray

    @property
    def misses(self) -> FloatArray:
        """Number of entries that are in one of the two sets only."""
        return self.true + self.predicted - 2 * self.hits

    def where_known(self) -> "Overlap":
        """Return the counts without the sets whose entries are all missing."""
        return Overlap(*(count[self.known > 0] for count in self))

    def f1(self, undefined: float) -> FloatArray:
        """Return twice the intersection over the sum of the sizes, or `undefined` for 0/0."""
        return ratio(2 * self.hits, self.true + self.predicted, undefined)

    def precision(self) -> FloatArray:
        """Return the share of the predicted entries that are true; 0 if none is predicted."""
        return ratio(self.hits, self.predicted, 0.0)

    def recall(self) -> FloatArray:
        """Return the share of the true entries that are predicted; 0 if none is true."""
        return ratio(self.hits, self.true, 0.0)


def overlap(
    Y: MatrixLike, labels: MatrixLike, convention: str, missing: str, axis: int | None,
    keep_unknown: bool = False,
) -> Overlap:  # fmt: skip
    """Count per row (axis=1), per label (axis=0) or in total (None); sparse input stays sparse.

    Rows or labels whose entries are all missing are left out, unless `keep_unknown`.
    """
    T, P, is_missing = check_label_pair(Y, labels, convention, missing)
    both = np.logical_and(T, P) if isinstance(T, np.ndarray) else T.multiply(P)
    hits, true, predicted = (_count(M, axis) for M in (both, T, P))
    known = np.full(hits.shape, float(np.prod(T.shape) if axis is None else T.shape[axis]))
    if is_missing is None:
        return Overlap(hits, true, predicted, known)
    counts = Overlap(hits, true, predicted, known - _count(is_missing, axis))
    return counts if keep_unknown else counts.where_known()


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else warn_undefined()


def _count(M: Any, axis: int | None) -> FloatArray:
    is_sparse = sparse.issparse(M)
    count = M.astype(np.float64).sum(axis=axis) if is_sparse else np.count_nonzero(M, axis=axis)
    return np.asarray(count, dtype=np.float64)


def ratio(numerator: ArrayLike, denominator: FloatArray, undefined: float) -> FloatArray:
    """Divide entry by entry, with the value `undefined` for 0/0."""
    out = np.full(np.shape(denominator), undefined)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


def hamming_loss(Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
    r"""Fraction of sample-label pairs that are predicted wrongly.

    .. math:: \frac{1}{nl} \sum_{i=1}^n \sum_{j=1}^l [h_j(x_i) \neq y_{ij}]

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.

    Returns
    -------
    float
        Between 0 and 1; smaller is better.

    Examples
    --------
    >>> from rbrl.metrics import hamming_loss
    >>> hamming_loss([[1, 0, 1]], [[1, 1, 1]])
    0.3333333333333333
    """
    counts = overlap(Y, labels, convention, missing, axis=None)
    return _mean(counts.misses / counts.known)


def subset_accuracy(Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
    r"""Fraction of samples whose label set is predicted exactly.

    .. math:: \frac{1}{n} \sum_{i=1}^n [H(x_i) = y_i]

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import subset_accuracy
    >>> subset_accuracy([[1, 0], [0, 1]], [[1, 0], [1, 1]])
    0.5
    """
    return _mean(overlap(Y, labels, convention, missing, axis=1).misses == 0)


def f1_example(Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
    r"""F1 of each sample's label set, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{2 |P_i^+ \cap Y_i^+|}{|P_i^+| + |Y_i^+|}

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        A sample with neither true nor predicted labels counts 1, in "sklearn" 0.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import f1_example
    >>> f1_example([[1, 0, 1], [0, 0, 0]], [[1, 1, 1], [0, 0, 0]])
    0.9
    """
    return _mean(overlap(Y, labels, convention, missing, axis=1).f1(_BOTH_EMPTY[convention]))


def accuracy_example(Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
    r"""Jaccard index of each sample's label sets, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{|P_i^+ \cap Y_i^+|}{|P_i^+ \cup Y_i^+|}

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        A sample with neither true nor predicted labels counts 1, in "sklearn" 0.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import accuracy_example
    >>> accuracy_example([[1, 0, 1]], [[1, 1, 0]])
    0.3333333333333333
    """
    counts = overlap(Y, labels, convention, missing, axis=1)
    return _mean(ratio(counts.hits, counts.hits + counts.misses, _BOTH_EMPTY[convention]))


def f1_micro(Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
    r"""F1 of all sample-label pairs taken together.

    .. math:: \frac{2 \sum_j |P_j \cap Y_j|}{\sum_j |P_j| + |Y_j|}

    where :math:`Y_j` and :math:`P_j` are the samples that have, and are predicted to have, label j.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        If no label is true or predicted anywhere, the value is 1, in "sklearn" 0.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import f1_micro
    >>> f1_micro([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.8
    """
    return _mean(overlap(Y, labels, convention, missing, axis=None).f1(_BOTH_EMPTY[convention]))


def f1_macro(Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
    r"""F1 of each label, averaged over labels.

    .. math:: \frac{1}{l} \sum_{j=1}^l \frac{2 |P_j \cap Y_j|}{|P_j| + |Y_j|}

    A label that is neither true nor predicted anywhere counts 0.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import f1_macro
    >>> f1_macro([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.5
    """
    return _mean(overlap(Y, labels, convention, missing, axis=0).f1(0.0))


def f1_weighted(Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
    r"""F1 of each label, averaged with the label's frequency as weight.

    .. math:: \sum_{j=1}^l \frac{|Y_j|}{\sum_k |Y_k|} \frac{2 |P_j \cap Y_j|}{|P_j| + |Y_j|}

    The value is 0 if no label is true anywhere.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import f1_weighted
    >>> f1_weighted([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.6666666666666666
    """
    counts = overlap(Y, labels, convention, missing, axis=0)
    weighted = ratio(np.sum(counts.f1(0.0) * counts.true), counts.true.sum(), 0.0)
    return _mean(weighted if counts.known.size else counts.known)
