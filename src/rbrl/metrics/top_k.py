"""Metrics that look only at the k best-scored labels of a sample."""

from collections.abc import Iterator

import numpy as np

from rbrl._common.order import best_columns, falling_order, first_of_tie, last_of_tie
from rbrl._common.typing import BoolArray, FloatArray, MatrixLike
from rbrl.metrics.inputs import Checked, check_scores, row_blocks
from rbrl.metrics.ranking import undefined


def precision_at_k(Y: MatrixLike, scores: MatrixLike, k: int = 5, *, convention: str = "paper") -> float:
    r"""Share of relevant labels among the k best-scored, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{|T_k(x_i) \cap Y_i^+|}{k}

    where :math:`T_k` holds the k best-scored labels; of tied labels the one with the lower index comes first. The
    division is by k even where there are fewer labels.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    k : int, default=5
        Number of labels looked at.
    convention : {"paper", "mulan", "sklearn"}
        They agree: scikit-learn has no such metric.

    Examples
    --------
    >>> precision_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=2)
    0.5
    """
    checked = _check(Y, scores, k, convention)
    hits = sum(int(_gains(T, F, k).sum()) for T, F in row_blocks(*checked))
    return hits / (k * checked[0].shape[0])


def recall_at_k(Y: MatrixLike, scores: MatrixLike, k: int = 5, *, convention: str = "paper") -> float:
    r"""Share of a sample's relevant labels that are among the k best-scored, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{|T_k(x_i) \cap Y_i^+|}{|Y_i^+|}

    where :math:`T_k` holds the k best-scored labels; of tied labels the one with the lower index comes first.
    Samples without relevant labels are left out.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    k : int, default=5
        Number of labels looked at.
    convention : {"paper", "mulan", "sklearn"}
        They agree: scikit-learn has no such metric.

    Examples
    --------
    >>> recall_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=1)
    0.5
    """
    blocks = _labelled_blocks(*_check(Y, scores, k, convention))
    return _mean(np.concatenate([_gains(T, F, k).sum(axis=1) / T.sum(axis=1) for T, F in blocks]))


def ndcg_at_k(Y: MatrixLike, scores: MatrixLike, k: int = 5, *, convention: str = "paper") -> float:
    r"""Normalised discounted cumulative gain of the k best-scored labels, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n
        \frac{\sum_{r=1}^k [\text{label of rank } r \in Y_i^+] / \log_2(r + 1)}
        {\sum_{r=1}^{\min(k, |Y_i^+|)} 1 / \log_2(r + 1)}

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    k : int, default=5
        Number of labels looked at.
    convention : {"paper", "mulan", "sklearn"}
        "paper": of tied labels the one with the lower index comes first; samples without relevant labels are left
        out. "sklearn": tied labels share the mean of their discounts; samples without relevant labels count 0.

    Examples
    --------
    >>> round(ndcg_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=3), 4)
    0.9197
    """
    checked = _check(Y, scores, k, convention)
    gain = _tie_averaged_dcg if convention == "sklearn" else _dcg
    rows = np.concatenate([gain(T, F, k) / _ideal_dcg(T, k) for T, F in _labelled_blocks(*checked)])
    return float(rows.sum() / checked[0].shape[0]) if convention == "sklearn" else _mean(rows)


def _check(Y: MatrixLike, scores: MatrixLike, k: int, convention: str) -> tuple[Checked, Checked]:
    if k != int(k) or k < 1:
        raise ValueError(f"k must be a whole number of at least 1. Got {k!r} instead.")
    return check_scores(Y, scores, convention)


def _labelled_blocks(Y: Checked, scores: Checked) -> Iterator[tuple[BoolArray, FloatArray]]:
    """Blocks of the rows that have a relevant label."""
    for T, F in row_blocks(Y, scores):
        labelled = T.any(axis=1)
        yield (T, F) if labelled.all() else (T[labelled], F[labelled])


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else undefined("None of the samples has a relevant label")


def _gains(T: BoolArray, F: FloatArray, k: int) -> BoolArray:
    """Whether each of the k best labels is relevant, best first."""
    return np.take_along_axis(T, best_columns(F, k), axis=1)


def _discounts(n: int) -> FloatArray:
    return 1.0 / np.log2(np.arange(2, n + 2))


def _ideal_dcg(T: BoolArray, k: int) -> FloatArray:
    return np.cumsum(_discounts(k))[np.minimum(T.sum(axis=1), k) - 1]


def _dcg(T: BoolArray, F: FloatArray, k: int) -> FloatArray:
    gains = _gains(T, F, k)
    return gains @ _discounts(gains.shape[1])


def _tie_averaged_dcg(T: BoolArray, F: FloatArray, k: int) -> FloatArray:
    """Each member of a tie gets the mean discount of the ranks that the tie covers."""
    order = falling_order(F)
    falling = np.take_along_axis(F, order, axis=1)
    discounts = np.where(np.arange(F.shape[1]) < k, _discounts(F.shape[1]), 0.0)
    until = np.concatenate([[0.0], np.cumsum(discounts)])
    first, last = first_of_tie(falling), last_of_tie(falling)
    mean_discount = (until[last + 1] - until[first]) / (last + 1 - first)
    return (np.take_along_axis(T, order, axis=1) * mean_discount).sum(axis=1)
