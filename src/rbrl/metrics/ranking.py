"""Metrics of the order in which scores rank the labels of each sample, and of the k best labels."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from rbrl._common.linalg import best_columns, descending_order, first_of_tie, last_of_tie
from rbrl._common.typing import Array, ArrayLike, BoolArray, FloatArray, IntArray, MatrixLike, issparse
from rbrl.metrics.inputs import (
    RowBlock,
    best_labels,
    check_k,
    check_scores,
    count_relevant,
    relevance_of,
    row_blocks,
    warn_undefined,
)

# Function of rows with a pair and of a convention that returns the value of each row.
RowMetric: TypeAlias = Callable[[RowBlock, str], Array]
NO_RELEVANT_LABEL = "None of the samples has a relevant label"


def ranking_loss(
    Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Fraction of (relevant, irrelevant) label pairs in the wrong order, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n
        \frac{|\{(p, q) \in Y_i^+ \times Y_i^- : f_p(x_i) \le f_q(x_i)\}|}{|Y_i^+| |Y_i^-|}

    A tie is an error, except in Mulan's convention.

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    convention : {"paper", "mulan", "sklearn"}
        Samples without a pair (no or all labels relevant) are left out in "paper" and "mulan",
        and count 0 in "sklearn". In "mulan" the later of two tied labels ranks first.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y; see :func:`evaluate`.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; smaller is better; NaN, with a warning, if no sample has a pair.

    Examples
    --------
    >>> from rbrl.metrics import ranking_loss
    >>> ranking_loss([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.5
    """
    return _mean_over_rows(_ranking_loss_rows, Y, scores, convention, missing, sample_weight, without_pair=0.0)


def _ranking_loss_rows(rows: RowBlock, convention: str) -> FloatArray:
    """Return the ranking loss of each row; every row has a pair."""
    row, rank, among = _ranks_of_relevant(rows, later_first=convention == "mulan")
    n_relevant = rows.relevant.sum(axis=1)
    wrong = np.bincount(row, weights=rank - among, minlength=len(n_relevant))
    return wrong / (n_relevant * (rows.n_known - n_relevant))


def average_precision(
    Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Fraction of relevant labels among those ranked no lower than a relevant one, averaged.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{1}{|Y_i^+|} \sum_{j \in Y_i^+}
        \frac{|\{k \in Y_i^+ : rank(x_i, k) \le rank(x_i, j)\}|}{rank(x_i, j)}

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    convention : {"paper", "mulan", "sklearn"}
        "paper", "mulan": the later of two tied labels ranks first, and samples without a pair (no
        or all labels relevant) are left out. "sklearn": tied labels share the last of their
        ranks, and samples without a pair count 1.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y; see :func:`evaluate`.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better; NaN, with a warning, if no sample has a pair.

    Examples
    --------
    >>> from rbrl.metrics import average_precision
    >>> average_precision([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.8333333333333333
    """
    return _mean_over_rows(_average_precision_rows, Y, scores, convention, missing, sample_weight, without_pair=1.0)


def _average_precision_rows(rows: RowBlock, convention: str) -> FloatArray:
    """Return the average precision of each row; every row has a relevant label."""
    row, rank, among = _ranks_of_relevant(rows, later_first=convention != "sklearn")
    n_relevant = rows.relevant.sum(axis=1)
    return np.bincount(row, weights=among / rank, minlength=len(n_relevant)) / n_relevant


def _ranks_of_relevant(rows: RowBlock, later_first: bool) -> tuple[IntArray, IntArray, IntArray]:
    """Return the row, the rank and the rank among relevant labels of each relevant label.

    The three arrays are ordered by row, and then by rank. Ranks count from 1. With `later_first`
    the later of two tied labels ranks first; otherwise tied labels share the last of their ranks.
    """
    F = rows.ranking_scores
    order = descending_order(F, later_first)
    T = np.take_along_axis(rows.relevant, order, axis=1)
    position: IntArray
    row, position = np.nonzero(T)
    if not later_first:
        position = last_of_tie(np.take_along_axis(F, order, axis=1))[row, position]
    return row, position + 1, np.cumsum(T, axis=1, dtype=np.int32)[row, position]


def one_error(
    Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Fraction of samples whose best-scored label is irrelevant.

    .. math:: \frac{1}{n} \sum_{i=1}^n [\arg\max_j f_j(x_i) \notin Y_i^+]

    A sample counts as right if one of several tied best labels is relevant. Samples without a pair
    (no or all labels relevant) are left out.

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; smaller is better; NaN, with a warning, if no sample has a pair.

    Examples
    --------
    >>> from rbrl.metrics import one_error
    >>> one_error([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.1, 0.0]])
    0.5
    """
    return _mean_over_rows(_one_error_rows, Y, scores, convention, missing, sample_weight, without_pair=None)


def _one_error_rows(rows: RowBlock, convention: str) -> BoolArray:
    """Return whether no best-scored label of a row is relevant."""
    F = rows.ranking_scores
    best = F.max(axis=1, keepdims=True) == F
    return ~np.logical_and(best, rows.relevant).any(axis=1)


def _mean_over_rows(
    row_metric: RowMetric, Y: MatrixLike, scores: MatrixLike, convention: str, missing: str,
    sample_weight: ArrayLike | None, without_pair: float | None,
) -> float:  # fmt: skip
    """Average over the rows with a pair; in "sklearn", other rows count `without_pair` if given."""
    total = 0.0
    n_samples = 0
    weight_with_pair = 0.0
    weight = 0.0
    for rows in row_blocks(*check_scores(Y, scores, convention, missing, sample_weight)):
        n_samples += len(rows.relevant)
        weight += float(rows.weights.sum())
        has_pair = rows.relevant.any(axis=1) & rows.irrelevant.any(axis=1)
        with_pair = rows.take(has_pair)
        total += float((with_pair.weights * row_metric(with_pair, convention)).sum())
        weight_with_pair += float(with_pair.weights.sum())
    if convention == "sklearn" and without_pair is not None and n_samples:
        return (total + without_pair * (weight - weight_with_pair)) / weight
    if weight_with_pair == 0:
        return warn_undefined(f"None of the {n_samples} samples has a relevant and an irrelevant label")
    return total / weight_with_pair


def coverage(
    Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Steps down the ranking until every relevant label is covered, averaged.

    .. math:: \frac{1}{l} \Bigl(\frac{1}{n} \sum_{i=1}^n \max_{j \in Y_i^+} rank(x_i, j) - 1\Bigr)

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    convention : {"paper", "mulan", "sklearn"}
        "paper": the earlier of two tied labels ranks first. The maximum over no label is 0, so a
        sample without labels adds :math:`-1/l`. "mulan": the later of two tied labels ranks
        first, and a sample without labels adds 0. "sklearn": the mean depth itself, neither less
        one nor divided by l; tied labels share the last of their ranks.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y; see :func:`evaluate`.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Smaller is better.

    Examples
    --------
    >>> from rbrl.metrics import coverage
    >>> coverage([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.6666666666666666
    """
    total = 0.0
    weight = 0.0
    checked = check_scores(Y, scores, convention, missing, sample_weight)
    n_labels = checked.Y.shape[1]
    for rows in row_blocks(*checked):
        depth = _depth(rows.relevant, rows.ranking_scores, convention)
        if convention != "sklearn":  # a step is larger if fewer labels are known
            depth = 1 + (depth - 1) * (n_labels / rows.n_known)
        total += float((rows.weights * depth).sum())
        weight += float(rows.weights.sum())
    if weight == 0:
        return warn_undefined()
    return total / weight if convention == "sklearn" else (total / weight - 1) / n_labels


def _depth(T: BoolArray, F: FloatArray, convention: str) -> IntArray:
    """Return the rank of the worst label of each row of the mask T; 0 without one, 1 in "mulan"."""
    worst = np.where(T, F, np.inf).min(axis=1, keepdims=True)
    if convention == "sklearn":
        return np.count_nonzero(worst <= F, axis=1) * T.any(axis=1)
    tied = worst == F
    index = np.arange(T.shape[1])
    if convention == "mulan":
        not_after = index >= np.argmax(tied & T, axis=1)[:, None]
    else:
        not_after = index <= T.shape[1] - 1 - np.argmax((tied & T)[:, ::-1], axis=1)[:, None]
    depth = np.count_nonzero(worst < F, axis=1) + np.count_nonzero(tied & not_after, axis=1)
    return np.where(T.any(axis=1), depth, 1 if convention == "mulan" else 0)


def precision_at_k(
    Y: MatrixLike, scores: MatrixLike, k: int = 5, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Share of relevant labels among the k best-scored, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{|T_k(x_i) \cap Y_i^+|}{k}

    where :math:`T_k` holds the k best-scored labels; the earlier of two tied labels comes first.
    The division is by k even if there are fewer labels.

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    k : int, default=5
        Number of best-scored labels.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import precision_at_k
    >>> precision_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=2)
    0.5
    """
    hits, _, weight = _sum_at_k(_hits, Y, scores, k, convention, missing, sample_weight)
    return hits / (k * weight) if weight else warn_undefined()


def recall_at_k(
    Y: MatrixLike, scores: MatrixLike, k: int = 5, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Share of a sample's relevant labels that are among the k best-scored, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{|T_k(x_i) \cap Y_i^+|}{|Y_i^+|}

    where :math:`T_k` holds the k best-scored labels; the earlier of two tied labels comes first.
    Samples without relevant labels are left out.

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    k : int, default=5
        Number of best-scored labels.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better; NaN, with a warning, if no label is relevant.

    Examples
    --------
    >>> from rbrl.metrics import recall_at_k
    >>> recall_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=1)
    0.5
    """
    total, weight_labelled, _ = _sum_at_k(_recalls, Y, scores, k, convention, missing, sample_weight)
    return total / weight_labelled if weight_labelled else warn_undefined(NO_RELEVANT_LABEL)


def ndcg_at_k(
    Y: MatrixLike, scores: MatrixLike, k: int = 5, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Normalised discounted cumulative gain of the k best-scored labels, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n
        \frac{\sum_{r=1}^k [\text{label of rank } r \in Y_i^+] / \log_2(r + 1)}
        {\sum_{r=1}^{\min(k, |Y_i^+|)} 1 / \log_2(r + 1)}

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    k : int, default=5
        Number of best-scored labels.
    convention : {"paper", "mulan", "sklearn"}
        "paper", "mulan": the earlier of two tied labels comes first, and samples without relevant
        labels are left out. "sklearn": tied labels share the mean of their discounts, and samples
        without relevant labels count 0.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y; see :func:`evaluate`.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import ndcg_at_k
    >>> round(ndcg_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=3), 4)
    0.9197
    """
    if convention == "sklearn":
        check_k(k)
        blocks = row_blocks(*check_scores(Y, scores, convention, missing, sample_weight))
        parts = [(_tie_averaged_ndcg(rows, k), rows.weights) for rows in blocks]
        values, weights = (np.concatenate(part) for part in zip(*parts))
        return float(np.average(values, weights=weights)) if len(values) else warn_undefined(NO_RELEVANT_LABEL)
    total, weight_labelled, _ = _sum_at_k(_ndcg, Y, scores, k, convention, missing, sample_weight)
    return total / weight_labelled if weight_labelled else warn_undefined(NO_RELEVANT_LABEL)


def _sum_at_k(
    row_metric: Callable[[BoolArray, IntArray, int], Array], Y: MatrixLike, scores: MatrixLike,
    k: int, convention: str, missing: str, sample_weight: ArrayLike | None,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the weighted sum over rows with a relevant label, the weight of these rows, and of all rows.

    `row_metric` takes the relevance of the best labels, the number of relevant labels, and k.
    """
    check_k(k)
    checked = check_scores(Y, scores, convention, missing, sample_weight)
    if issparse(checked.predicted) and checked.missing is None:
        best = best_labels(checked.predicted, k)
        blocks = [(relevance_of(checked.Y, best), count_relevant(checked.Y), checked.weights)]
    else:
        blocks = [(_gains(rows, k), count_relevant(rows.relevant), rows.weights) for rows in row_blocks(*checked)]
    gains, n_relevant, weights = (np.concatenate(parts) for parts in zip(*blocks))
    labelled = n_relevant > 0
    values = row_metric(gains[labelled], n_relevant[labelled], k)
    return float((weights[labelled] * values).sum()), float(weights[labelled].sum()), float(weights.sum())


def _gains(rows: RowBlock, k: int) -> BoolArray:
    """Return the relevance of the k best labels of each row: (n_rows, k), best first."""
    return relevance_of(rows.relevant, best_columns(rows.ranking_scores, k))


def _hits(gains: BoolArray, n_relevant: IntArray, k: int) -> IntArray:
    """Return the number of relevant labels among the best ones of each row."""
    return gains.sum(axis=1)


def _recalls(gains: BoolArray, n_relevant: IntArray, k: int) -> FloatArray:
    """Return the share of the relevant labels that are among the best ones; each row has some."""
    return gains.sum(axis=1) / n_relevant


def discounts(n: int) -> FloatArray:
    """Return the discounts of the ranks 1 to n in nDCG."""
    return 1.0 / np.log2(np.arange(2, n + 2))


def ideal_dcg(n_relevant: IntArray, k: int) -> FloatArray:
    """Return the largest discounted gain at k of rows with one or more relevant labels."""
    return np.cumsum(discounts(k))[np.minimum(n_relevant, k) - 1]


def _ndcg(gains: BoolArray, n_relevant: IntArray, k: int) -> FloatArray:
    return gains @ discounts(gains.shape[1]) / ideal_dcg(n_relevant, k)


def _tie_averaged_ndcg(rows: RowBlock, k: int) -> FloatArray:
    """Compute nDCG with the mean discount of its ranks for each member of a tie."""
    F = rows.ranking_scores
    order = descending_order(F)
    falling = np.take_along_axis(F, order, axis=1)
    weights = np.where(np.arange(F.shape[1]) < k, discounts(F.shape[1]), 0.0)
    until = np.concatenate([[0.0], np.cumsum(weights)])
    first = first_of_tie(falling)
    last = last_of_tie(falling)
    mean_discount = (until[last + 1] - until[first]) / (last + 1 - first)
    dcg = (np.take_along_axis(rows.relevant, order, axis=1) * mean_discount).sum(axis=1)
    n_relevant = count_relevant(rows.relevant)
    return np.divide(dcg, ideal_dcg(n_relevant, k), where=n_relevant > 0, out=np.zeros(len(dcg)))
