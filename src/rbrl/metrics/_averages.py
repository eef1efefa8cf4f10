"""F1 of labels, averaged over labels in three ways."""

from typing import Any

import numpy as np

from rbrl.metrics._inputs import check_convention
from rbrl.metrics._overlap import overlap, ratio


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
