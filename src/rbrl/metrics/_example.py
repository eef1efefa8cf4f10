"""Metrics of label sets, averaged over samples."""

from typing import Any

import numpy as np

from rbrl.metrics._inputs import check_convention
from rbrl.metrics._overlap import overlap, ratio

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
