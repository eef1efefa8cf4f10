"""Metrics of label sets: of samples, and of labels averaged in three ways."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl.metrics.inputs import check_convention, check_label_pair


class Overlap(NamedTuple):
    """Sizes of true sets, predicted sets and their intersections."""

    hits: np.ndarray
    true: np.ndarray
    predicted: np.ndarray
    n_entries: int

    @property
    def misses(self) -> np.ndarray:
        """Entries that are in one of the two sets only."""
        return self.true + self.predicted - 2 * self.hits


def overlap(Y: Any, labels: Any, axis: int) -> Overlap:
    """Count per row (axis=1) or per label (axis=0), without making sparse input dense."""
    Y, labels = check_label_pair(Y, labels)
    both = Y.multiply(labels) if sparse.issparse(Y) else np.logical_and(Y, labels)
    hits, true, predicted = (_count(M, axis) for M in (both, Y, labels))
    return Overlap(hits, true, predicted, Y.shape[0] * Y.shape[1])


def _count(M, axis):
    if not sparse.issparse(M):
        return np.count_nonzero(M, axis=axis).astype(np.float64)
    return np.asarray(M.astype(np.float64).sum(axis=axis), dtype=np.float64).ravel()


def ratio(numerator: np.ndarray, denominator: np.ndarray, undefined: float) -> np.ndarray:
    """Divide entry by entry; 0/0 gives `undefined`."""
    out = np.full(np.shape(denominator), undefined, dtype=np.float64)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


# 0/0: two empty sets agree, so the paper convention says 1; scikit-learn's default is 0.
_BOTH_EMPTY = {"paper": 1.0, "mulan": 1.0, "sklearn": 0.0}


def hamming_loss(Y: Any, labels: Any, *, convention: str = "paper") -> float:
    r"""Fraction of sample-label pairs that are predicted wrongly.

    .. math:: \frac{1}{nl} \sum_{i=1}^n \sum_{j=1}^l [h_j(x_i) \neq y_{ij}]

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        They agree here.

    Examples
    --------
    >>> hamming_loss([[1, 0, 1]], [[1, 1, 1]])
    0.3333333333333333
    """
    check_convention(convention)
    counts = overlap(Y, labels, axis=1)
    return float(counts.misses.sum() / counts.n_entries)


def subset_accuracy(Y: Any, labels: Any, *, convention: str = "paper") -> float:
    r"""Fraction of samples whose label set is predicted exactly.

    .. math:: \frac{1}{n} \sum_{i=1}^n [H(x_i) = y_i]

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        They agree here.
    """
    check_convention(convention)
    return float(np.mean(overlap(Y, labels, axis=1).misses == 0))


def f1_example(Y: Any, labels: Any, *, convention: str = "paper") -> float:
    r"""F1 of each sample's label set, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{2 |P_i^+ \cap Y_i^+|}{|P_i^+| + |Y_i^+|}

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        A sample with neither true nor predicted labels counts 1, in "sklearn" 0.
    """
    check_convention(convention)
    counts = overlap(Y, labels, axis=1)
    return float(ratio(2 * counts.hits, counts.true + counts.predicted, _BOTH_EMPTY[convention]).mean())


def accuracy_example(Y: Any, labels: Any, *, convention: str = "paper") -> float:
    r"""Jaccard index of each sample's label sets, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{|P_i^+ \cap Y_i^+|}{|P_i^+ \cup Y_i^+|}

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        A sample with neither true nor predicted labels counts 1, in "sklearn" 0.
    """
    check_convention(convention)
    counts = overlap(Y, labels, axis=1)
    return float(ratio(counts.hits, counts.true + counts.predicted - counts.hits, _BOTH_EMPTY[convention]).mean())


def f1_micro(Y: Any, labels: Any, *, convention: str = "paper") -> float:
    r"""F1 of all sample-label pairs taken together.

    .. math:: \frac{2 \sum_j |P_j \cap Y_j|}{\sum_j |P_j| + |Y_j|}

    where :math:`Y_j` and :math:`P_j` are the samples that have, and are predicted to have, label j.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        With no label true or predicted anywhere, it is 1, in "sklearn" 0.
    """
    check_convention(convention)
    counts = overlap(Y, labels, axis=0)
    sizes = counts.true.sum() + counts.predicted.sum()
    return float(ratio(2 * counts.hits.sum(), sizes, 0.0 if convention == "sklearn" else 1.0))


def f1_macro(Y: Any, labels: Any, *, convention: str = "paper") -> float:
    r"""F1 of each label, averaged over labels.

    .. math:: \frac{1}{l} \sum_{j=1}^l \frac{2 |P_j \cap Y_j|}{|P_j| + |Y_j|}

    A label that is neither true nor predicted anywhere counts 0.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        They agree here.
    """
    check_convention(convention)
    return float(_f1_of_labels(overlap(Y, labels, axis=0)).mean())


def f1_weighted(Y: Any, labels: Any, *, convention: str = "paper") -> float:
    r"""F1 of each label, averaged with the label's frequency as weight.

    .. math:: \sum_{j=1}^l \frac{|Y_j|}{\sum_k |Y_k|} \frac{2 |P_j \cap Y_j|}{|P_j| + |Y_j|}

    Without any true label it is 0.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        They agree here.
    """
    check_convention(convention)
    counts = overlap(Y, labels, axis=0)
    return float(ratio(np.sum(_f1_of_labels(counts) * counts.true), counts.true.sum(), 0.0))


def _f1_of_labels(counts):
    return ratio(2 * counts.hits, counts.true + counts.predicted, 0.0)
