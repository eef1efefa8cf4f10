"""Metrics of the k labels of a sample that scores put first."""

from collections.abc import Iterator

import numpy as np

from rbrl._common.top_k import best_columns, falling_order, first_of_tie, last_of_tie
from rbrl._common.typing import BoolArray, FloatArray, MatrixLike
from rbrl.metrics.inputs import Compared, check_scores, row_blocks, undefined


def precision_at_k(
    Y: MatrixLike, scores: MatrixLike, k: int = 5, *, convention: str = "paper", missing: str = "raise"
) -> float:
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
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the larger, the better.

    Examples
    --------
    >>> from rbrl.metrics import precision_at_k
    >>> precision_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=2)
    0.5
    """
    blocks = row_blocks(*_check(Y, scores, k, convention, missing))
    hits = [_gains(rows.relevant, rows.ranked, k).sum(axis=1) for rows in blocks]
    n_rows = sum(map(len, hits))
    return int(sum(map(np.sum, hits))) / (k * n_rows) if n_rows else undefined("Nothing is known of Y")


def recall_at_k(
    Y: MatrixLike, scores: MatrixLike, k: int = 5, *, convention: str = "paper", missing: str = "raise"
) -> float:
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
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the larger, the better; NaN, with a warning, without a relevant label.

    Examples
    --------
    >>> from rbrl.metrics import recall_at_k
    >>> recall_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=1)
    0.5
    """
    blocks = _labelled_blocks(_check(Y, scores, k, convention, missing))
    return _mean(np.concatenate([_gains(T, F, k).sum(axis=1) / T.sum(axis=1) for T, F in blocks]))


def ndcg_at_k(
    Y: MatrixLike, scores: MatrixLike, k: int = 5, *, convention: str = "paper", missing: str = "raise"
) -> float:
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
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the larger, the better.

    Examples
    --------
    >>> from rbrl.metrics import ndcg_at_k
    >>> round(ndcg_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=3), 4)
    0.9197
    """
    checked = _check(Y, scores, k, convention, missing)
    gain = _tie_averaged_dcg if convention == "sklearn" else _dcg
    rows = np.concatenate([gain(T, F, k) / _ideal_dcg(T, k) for T, F in _labelled_blocks(checked)])
    n_known = _known_rows(checked) if convention == "sklearn" else 0
    return float(rows.sum() / n_known) if n_known else _mean(rows)


def _known_rows(checked: Compared) -> int:
    n_samples, n_labels = checked.Y.shape
    if checked.unseen is None:
        return n_samples
    return int(np.count_nonzero(np.asarray(checked.unseen.sum(axis=1)) < n_labels))


def _check(Y: MatrixLike, scores: MatrixLike, k: int, convention: str, missing: str) -> Compared:
    if k != int(k) or k < 1:
        raise ValueError(f"k must be a whole number of at least 1. Got {k!r} instead.")
    return check_scores(Y, scores, convention, missing)


def _labelled_blocks(checked: Compared) -> Iterator[tuple[BoolArray, FloatArray]]:
    """Blocks of the rows that have a relevant label."""
    for rows in row_blocks(*checked):
        labelled = rows.take(rows.relevant.any(axis=1))
        yield labelled.relevant, labelled.ranked


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
