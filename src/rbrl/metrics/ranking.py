"""Metrics of the order in which scores put the labels of a sample, or the samples of a label."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from rbrl._common.top_k import falling_order, last_of_tie
from rbrl._common.typing import Array, BoolArray, FloatArray, IntArray, MatrixLike
from rbrl.metrics.inputs import Compared, Rows, check_scores, row_blocks, undefined

# From rows with a pair and a convention to the value of each row.
RowMetric: TypeAlias = Callable[[Rows, str], Array]


def ranking_loss(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
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
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the smaller, the better; NaN, with a warning, where no sample has a pair.

    Examples
    --------
    >>> from rbrl.metrics import ranking_loss
    >>> ranking_loss([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.5
    """
    return _mean_over_rows(_ranking_loss_rows, Y, scores, convention, missing, without_pair=0.0)


def _ranking_loss_rows(rows: Rows, convention: str) -> FloatArray:
    row, rank, among = _ranks_of_relevant(rows, later_first=convention == "mulan")
    n_relevant = rows.relevant.sum(axis=1)
    wrong = np.bincount(row, weights=rank - among, minlength=len(n_relevant))
    return wrong / (n_relevant * (rows.n_known - n_relevant))


def average_precision(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
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
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the larger, the better; NaN, with a warning, where no sample has a pair.

    Examples
    --------
    >>> from rbrl.metrics import average_precision
    >>> average_precision([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.8333333333333333
    """
    return _mean_over_rows(_average_precision_rows, Y, scores, convention, missing, without_pair=1.0)


def _average_precision_rows(rows: Rows, convention: str) -> FloatArray:
    row, rank, among = _ranks_of_relevant(rows, later_first=convention != "sklearn")
    n_relevant = rows.relevant.sum(axis=1)
    return np.bincount(row, weights=among / rank, minlength=len(n_relevant)) / n_relevant


def _ranks_of_relevant(rows: Rows, later_first: bool) -> tuple[IntArray, IntArray, IntArray]:
    """Row, rank, and rank among the relevant ones, of each relevant label; ranks count from 1.

    Of tied labels the later one ranks first, or else all have the last of their ranks.
    """
    F = rows.ranked
    order = falling_order(F, later_first)
    T = np.take_along_axis(rows.relevant, order, axis=1)
    position: IntArray
    row, position = np.nonzero(T)
    if not later_first:
        position = last_of_tie(np.take_along_axis(F, order, axis=1))[row, position]
    return row, position + 1, np.cumsum(T, axis=1, dtype=np.int32)[row, position]


def one_error(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
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
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the smaller, the better; NaN, with a warning, where no sample has a pair.

    Examples
    --------
    >>> from rbrl.metrics import one_error
    >>> one_error([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.1, 0.0]])
    0.5
    """
    return _mean_over_rows(_one_error_rows, Y, scores, convention, missing, without_pair=None)


def _one_error_rows(rows: Rows, convention: str) -> BoolArray:
    F = rows.ranked
    best = F.max(axis=1, keepdims=True) == F
    return ~np.logical_and(best, rows.relevant).any(axis=1)


def _mean_over_rows(
    of_rows: RowMetric, Y: MatrixLike, scores: MatrixLike, convention: str, missing: str, without_pair: float | None
) -> float:
    """Average over the rows with a pair; in "sklearn" others count `without_pair`, if that is a number."""
    total, n_rows, n_samples = 0.0, 0, 0
    for rows in row_blocks(*check_scores(Y, scores, convention, missing)):
        n_samples += len(rows.relevant)
        values = of_rows(rows.take(rows.relevant.any(axis=1) & rows.irrelevant.any(axis=1)), convention)
        total += float(values.sum())
        n_rows += len(values)
    if convention == "sklearn" and without_pair is not None and n_samples:
        return (total + without_pair * (n_samples - n_rows)) / n_samples
    if n_rows == 0:
        return undefined(f"None of the {n_samples} samples has a relevant and an irrelevant label")
    return total / n_rows


def coverage(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
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
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        The smaller, the better.

    Examples
    --------
    >>> from rbrl.metrics import coverage
    >>> coverage([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.6666666666666666
    """
    total, n_rows, n_labels = 0.0, 0, np.shape(Y)[1]
    for rows in row_blocks(*check_scores(Y, scores, convention, missing)):
        depth = _depth(rows.relevant, rows.ranked, convention)
        if convention != "sklearn":  # of fewer labels each is a larger step
            depth = 1 + (depth - 1) * (n_labels / rows.n_known)
        total += float(depth.sum())
        n_rows += len(depth)
    if n_rows == 0:
        return undefined("Nothing is known of Y")
    return total / n_rows if convention == "sklearn" else (total / n_rows - 1) / n_labels


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


def auc_macro(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
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
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the larger, the better.

    Examples
    --------
    >>> from rbrl.metrics import auc_macro
    >>> auc_macro([[1, 0], [0, 1], [0, 1]], [[0.9, 0.1], [0.2, 0.0], [0.1, 0.7]])
    0.75
    """
    areas = label_areas(check_scores(Y, scores, convention, missing), tie=0.5 if convention == "sklearn" else 1.0)
    defined = areas[~np.isnan(areas)] if convention == "sklearn" else np.nan_to_num(areas)
    return float(defined.mean()) if len(defined) else undefined("None of the labels has samples with and without it")


def label_areas(checked: Compared, tie: float) -> FloatArray:
    """The area under the ROC curve of each label of which something is known; NaN where all samples, or none, have it."""
    by_label = (M if M is None else M.T if isinstance(M, np.ndarray) else M.tocsc().T for M in checked)
    blocks = ((rows.scores, rows.relevant, rows.irrelevant) for rows in row_blocks(*by_label))
    return np.array([_area(f[t], f[n], tie) for block in blocks for f, t, n in zip(*block)])


def auc_micro(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
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
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the larger, the better; NaN, with a warning, where Y holds one value only.

    Examples
    --------
    >>> from rbrl.metrics import auc_micro
    >>> auc_micro([[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.1]])
    0.625
    """
    blocks = row_blocks(*check_scores(Y, scores, convention, missing))
    parts = [(rows.scores[rows.relevant], rows.scores[rows.irrelevant]) for rows in blocks]
    positive, negative = (np.concatenate(part) for part in zip(*parts))
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
