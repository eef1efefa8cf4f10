"""Metrics of the order in which scores put the labels of a sample, all or the k best, or the samples of a label."""

import warnings
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from rbrl._common.top_k import best_columns, falling_order, first_of_tie, last_of_tie
from rbrl._common.typing import Array, BoolArray, FloatArray, IntArray, MatrixLike
from rbrl.metrics.inputs import Checked, check_scores, row_blocks

# From boolean labels, scores and convention of rows with a pair to the value of each row.
RowMetric: TypeAlias = Callable[[BoolArray, FloatArray, str], Array]


def ranking_loss(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper") -> float:
    r"""Fraction of (relevant, irrelevant) label pairs in the wrong order, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n
        \frac{|\{(p, q) \in Y_i^+ \times Y_i^- : f_p(x_i) \le f_q(x_i)\}|}{|Y_i^+| |Y_i^-|}

    A tie is an error, except in Mulan's convention.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    convention : {"paper", "mulan", "sklearn"}
        Samples without a pair (no or all labels relevant) are left out in "paper" and "mulan", and count 0 in
        "sklearn". In "mulan" of tied labels the one with the higher index ranks first.

    Returns
    -------
    float
        Between 0 and 1; the smaller, the better; NaN, with a warning, where no sample has a pair.

    Examples
    --------
    >>> ranking_loss([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.5
    """
    return _mean_over_rows(_ranking_loss_rows, Y, scores, convention, without_pair=0.0)


def _ranking_loss_rows(T: BoolArray, F: FloatArray, convention: str) -> FloatArray:
    row, rank, among = _ranks_of_relevant(T, F, later_first=convention == "mulan")
    wrong = np.bincount(row, weights=rank - among, minlength=len(T))
    n_relevant = T.sum(axis=1)
    return wrong / (n_relevant * (T.shape[1] - n_relevant))


def average_precision(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper") -> float:
    r"""Fraction of relevant labels among those ranked no lower than a relevant one, averaged.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{1}{|Y_i^+|} \sum_{j \in Y_i^+}
        \frac{|\{k \in Y_i^+ : rank(x_i, k) \le rank(x_i, j)\}|}{rank(x_i, j)}

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    convention : {"paper", "mulan", "sklearn"}
        "paper", "mulan": of tied labels the one with the higher index ranks first; samples without a pair (no or all
        labels relevant) are left out. "sklearn": tied labels share the last of their ranks; samples without a pair
        count 1.

    Returns
    -------
    float
        Between 0 and 1; the larger, the better; NaN, with a warning, where no sample has a pair.

    Examples
    --------
    >>> average_precision([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.8333333333333333
    """
    return _mean_over_rows(_average_precision_rows, Y, scores, convention, without_pair=1.0)


def _average_precision_rows(T: BoolArray, F: FloatArray, convention: str) -> FloatArray:
    row, rank, among = _ranks_of_relevant(T, F, later_first=convention != "sklearn")
    return np.bincount(row, weights=among / rank, minlength=len(T)) / T.sum(axis=1)


def _ranks_of_relevant(T: BoolArray, F: FloatArray, later_first: bool) -> tuple[IntArray, IntArray, IntArray]:
    """Row, rank, and rank among the relevant ones, of each relevant label; ranks count from 1.

    Of tied labels the later one ranks first, or else all have the last of their ranks.
    """
    order = falling_order(F, later_first)
    T = np.take_along_axis(T, order, axis=1)
    position: IntArray
    row, position = np.nonzero(T)
    if not later_first:
        position = last_of_tie(np.take_along_axis(F, order, axis=1))[row, position]
    return row, position + 1, np.cumsum(T, axis=1, dtype=np.int32)[row, position]


def one_error(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper") -> float:
    r"""Fraction of samples whose best-scored label is irrelevant.

    .. math:: \frac{1}{n} \sum_{i=1}^n [\arg\max_j f_j(x_i) \notin Y_i^+]

    A sample counts as right when one of several tied best labels is relevant. Samples without a pair (no or all labels
    relevant) are left out.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    convention : {"paper", "mulan", "sklearn"}
        They agree: scikit-learn has no such metric.

    Returns
    -------
    float
        Between 0 and 1; the smaller, the better; NaN, with a warning, where no sample has a pair.

    Examples
    --------
    >>> one_error([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.1, 0.0]])
    0.5
    """
    return _mean_over_rows(_one_error_rows, Y, scores, convention, without_pair=None)


def _one_error_rows(T: BoolArray, F: FloatArray, convention: str) -> BoolArray:
    best = F.max(axis=1, keepdims=True) == F
    return ~np.logical_and(best, T).any(axis=1)


def _mean_over_rows(
    of_rows: RowMetric, Y: MatrixLike, scores: MatrixLike, convention: str, without_pair: float | None
) -> float:
    """Average over the rows with a pair; in "sklearn" others count `without_pair`, if that is a number."""
    checked = check_scores(Y, scores, convention)
    total, n_rows, n_samples = 0.0, 0, checked[0].shape[0]
    for T, F in row_blocks(*checked):
        has_pair = T.any(axis=1) & ~T.all(axis=1)
        if not has_pair.all():
            T, F = T[has_pair], F[has_pair]
        total += float(of_rows(T, F, convention).sum())
        n_rows += len(T)
    if convention == "sklearn" and without_pair is not None:
        return (total + without_pair * (n_samples - n_rows)) / n_samples
    if n_rows == 0:
        return undefined(f"None of the {n_samples} samples has a relevant and an irrelevant label")
    return total / n_rows


def undefined(reason: str) -> float:
    """Warn that a metric has nothing to measure, and answer NaN: a made-up value would look like a result."""
    from sklearn.exceptions import UndefinedMetricWarning  # scikit-learn takes longer to import than all metrics

    warnings.warn(f"{reason}: the metric is undefined (NaN).", UndefinedMetricWarning, stacklevel=4)
    return float("nan")


def coverage(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper") -> float:
    r"""Steps down the ranking until every relevant label is covered, averaged.

    .. math:: \frac{1}{l} \Bigl(\frac{1}{n} \sum_{i=1}^n \max_{j \in Y_i^+} rank(x_i, j) - 1\Bigr)

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    convention : {"paper", "mulan", "sklearn"}
        "paper": as above; of tied labels the one with the lower index ranks first; the maximum over no label is 0, so
        a sample without labels adds :math:`-1/l`. "mulan": of tied labels the one with the higher index ranks first,
        and a sample without labels adds 0. "sklearn": the mean depth itself, neither less one nor divided by l; tied
        labels share the last of their ranks.

    Returns
    -------
    float
        The smaller, the better.

    Examples
    --------
    >>> coverage([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.6666666666666666
    """
    checked = check_scores(Y, scores, convention)
    n_samples, n_labels = checked[0].shape
    depth = sum(float(_depth(T, F, convention).sum()) for T, F in row_blocks(*checked)) / n_samples
    return depth if convention == "sklearn" else (depth - 1) / n_labels


def _depth(T: BoolArray, F: FloatArray, convention: str) -> IntArray:
    """Rank of each row's worst relevant label; of a row without one 0, in "mulan" 1. No sort is needed."""
    worst = np.where(T, F, np.inf).min(axis=1, keepdims=True)
    if convention == "sklearn":
        return np.count_nonzero(worst <= F, axis=1) * T.any(axis=1)
    tied, index = worst == F, np.arange(T.shape[1])
    if convention == "mulan":
        not_after = index >= np.argmax(tied & T, axis=1)[:, None]
    else:
        not_after = index <= T.shape[1] - 1 - np.argmax((tied & T)[:, ::-1], axis=1)[:, None]
    depth = np.count_nonzero(worst < F, axis=1) + np.count_nonzero(tied & not_after, axis=1)
    return np.where(T.any(axis=1), depth, 1 if convention == "mulan" else 0)


def auc_macro(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper") -> float:
    r"""Area under each label's ROC curve, averaged over labels.

    .. math:: \frac{1}{l} \sum_{j=1}^l
        \frac{|\{(i, k) \in Y_j \times \bar Y_j : f_j(x_i) \ge f_j(x_k)\}|}{|Y_j| |\bar Y_j|}

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    convention : {"paper", "mulan", "sklearn"}
        "paper": as the authors' program, ties count as right, and labels that all samples share or lack count 0.
        "sklearn": ties count one half, and such labels are left out (scikit-learn itself answers NaN).

    Returns
    -------
    float
        Between 0 and 1; the larger, the better.

    Examples
    --------
    >>> auc_macro([[1, 0], [0, 1], [0, 1]], [[0.9, 0.1], [0.2, 0.0], [0.1, 0.7]])
    0.75
    """
    by_label = [M.T if isinstance(M, np.ndarray) else M.tocsc().T for M in check_scores(Y, scores, convention)]
    tie = 0.5 if convention == "sklearn" else 1.0
    areas = np.array([_area(f[t], f[~t], tie) for T, F in row_blocks(*by_label) for t, f in zip(T, F)])
    if convention != "sklearn":
        return float(np.nan_to_num(areas).mean())
    defined = areas[~np.isnan(areas)]
    return float(defined.mean()) if len(defined) else undefined("None of the labels has samples with and without it")


def auc_micro(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper") -> float:
    """Area under the ROC curve of all sample-label pairs taken together; ties count one half.

    Unlike the other metrics it needs a copy of all scores, because they are sorted at once.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    convention : {"paper", "mulan", "sklearn"}
        They agree here.

    Returns
    -------
    float
        Between 0 and 1; the larger, the better; NaN, with a warning, where Y holds one value only.

    Examples
    --------
    >>> auc_micro([[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.1]])
    0.625
    """
    blocks = [(F[T], F[~T]) for T, F in row_blocks(*check_scores(Y, scores, convention))]
    positive, negative = (np.concatenate(parts) for parts in zip(*blocks))
    if not len(positive) or not len(negative):
        return undefined("Y holds only one value")
    return _area(positive, negative, tie=0.5)


def _area(positive: FloatArray, negative: FloatArray, tie: float) -> float:
    """Share of (positive, negative) pairs in the right order; a tie counts `tie`, no pair gives NaN."""
    if not len(positive) or not len(negative):
        return float("nan")
    positive, negative = np.sort(positive), np.sort(negative)
    below = np.searchsorted(negative, positive, side="left").sum()
    not_above = np.searchsorted(negative, positive, side="right").sum()
    return float((below + tie * (not_above - below)) / (len(positive) * len(negative)))


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

    Returns
    -------
    float
        Between 0 and 1; the larger, the better.

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

    Returns
    -------
    float
        Between 0 and 1; the larger, the better; NaN, with a warning, without a relevant label.

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

    Returns
    -------
    float
        Between 0 and 1; the larger, the better.

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
