"""Metrics of the order in which scores put the labels of a sample, or the samples of a label."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl.metrics.inputs import BLOCK_ENTRIES, check_convention, check_scores, row_blocks


class RelevantEntries(NamedTuple):
    """One entry per relevant label, best first within a row; ranks count from 1."""

    row: np.ndarray
    rank: np.ndarray
    rank_among_relevant: np.ndarray


def relevant_in_order(T: np.ndarray, F: np.ndarray, ties: str) -> RelevantEntries:
    """Rank the relevant labels of each row by falling score.

    Parameters
    ----------
    T : array of bool, shape (n_rows, n_labels)
        Relevant labels.
    F : array, shape (n_rows, n_labels)
        Scores.
    ties : {"together", "higher_index_first", "lower_index_first"}
        "together" gives all members of a tie the last of their ranks.
    """
    order = falling_order(F, ties)
    T = np.take_along_axis(T, order, axis=1)
    row, position = np.nonzero(T)
    first = np.searchsorted(row, np.arange(len(T)))
    among = np.arange(1, len(row) + 1) - first[row]
    if ties != "together":
        return RelevantEntries(row, position + 1, among)
    sorted_F = np.take_along_axis(F, order, axis=1)
    if not (sorted_F[:, 1:] == sorted_F[:, :-1]).any():
        return RelevantEntries(row, position + 1, among)
    position = last_of_tie(sorted_F)[row, position]
    return RelevantEntries(row, position + 1, np.cumsum(T, axis=1)[row, position])


def falling_order(F: np.ndarray, ties: str) -> np.ndarray:
    """Indices that sort each row from the largest score down.

    The quick sort leaves ties in any order; they are then put right by sorting integers, which is several times
    faster than a stable sort of the scores.
    """
    order = np.argsort(-F, axis=1)
    if ties == "together":
        return order
    sorted_F = np.take_along_axis(F, order, axis=1)
    tied = (sorted_F[:, 1:] == sorted_F[:, :-1]).any(axis=1)
    if tied.any():
        order[tied] = _settle_ties(order[tied], sorted_F[tied], ties == "higher_index_first")
    return order


def _settle_ties(order, sorted_F, higher_first):
    """Sort the members of each tie by index: keys (number of the tie, index) as one integer."""
    n_labels = order.shape[1]
    dtype = np.int32 if n_labels**2 < 2**31 else np.int64
    tie = np.zeros(order.shape, dtype=dtype)
    np.cumsum(sorted_F[:, 1:] != sorted_F[:, :-1], axis=1, out=tie[:, 1:])
    tie *= n_labels
    keys = tie + (n_labels - 1 - order if higher_first else order).astype(dtype)
    keys.sort(axis=1)
    keys -= tie
    return n_labels - 1 - keys if higher_first else keys


def last_of_tie(sorted_F: np.ndarray) -> np.ndarray:
    """Position of the last member of each entry's tie, in rows that are sorted."""
    n_labels = sorted_F.shape[1]
    position = np.broadcast_to(np.arange(n_labels), sorted_F.shape).copy()
    position[:, :-1][sorted_F[:, 1:] == sorted_F[:, :-1]] = n_labels
    return np.minimum.accumulate(position[:, ::-1], axis=1)[:, ::-1]


def first_of_tie(sorted_F: np.ndarray) -> np.ndarray:
    """Position of the first member of each entry's tie, in rows that are sorted."""
    return sorted_F.shape[1] - 1 - last_of_tie(sorted_F[:, ::-1])[:, ::-1]


def ranking_loss(Y: Any, scores: Any, *, convention: str = "paper") -> float:
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
    """
    return _mean_over_rows(_ranking_loss_rows, Y, scores, convention, without_pair=0.0)


def _ranking_loss_rows(T, F, convention):
    entries = relevant_in_order(T, F, ties="higher_index_first" if convention == "mulan" else "together")
    wrong = np.bincount(entries.row, weights=entries.rank - entries.rank_among_relevant, minlength=len(T))
    n_relevant = T.sum(axis=1)
    return wrong / (n_relevant * (T.shape[1] - n_relevant))


def average_precision(Y: Any, scores: Any, *, convention: str = "paper") -> float:
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
    """
    return _mean_over_rows(_average_precision_rows, Y, scores, convention, without_pair=1.0)


def _average_precision_rows(T, F, convention):
    ties = "together" if convention == "sklearn" else "higher_index_first"
    entries = relevant_in_order(T, F, ties=ties)
    precision = np.bincount(entries.row, weights=entries.rank_among_relevant / entries.rank, minlength=len(T))
    return precision / T.sum(axis=1)


def one_error(Y: Any, scores: Any, *, convention: str = "paper") -> float:
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
    """
    check_convention(convention)
    return _mean_over_rows(_one_error_rows, Y, scores, "paper", without_pair=0.0)


def _one_error_rows(T, F, convention):
    best = F.max(axis=1, keepdims=True) == F
    return ~np.logical_and(best, T).any(axis=1)


def _mean_over_rows(function, Y, scores, convention, without_pair):
    """Average `function` over the rows with a pair; others are left out, or count `without_pair` in "sklearn"."""
    check_convention(convention)
    Y, scores = check_scores(Y, scores)
    total, n_rows = 0.0, 0
    for T, F in row_blocks(Y, scores):
        has_pair = T.any(axis=1) & ~T.all(axis=1)
        if not has_pair.all():
            T, F = T[has_pair], F[has_pair]
        total += float(function(T, F, convention).sum())
        n_rows += len(T)
    if convention == "sklearn":
        return (total + without_pair * (Y.shape[0] - n_rows)) / Y.shape[0]
    if n_rows == 0:
        return undefined(f"None of the {Y.shape[0]} samples has a relevant and an irrelevant label")
    return total / n_rows


def undefined(reason: str) -> float:
    """Warn that a metric has nothing to measure, and answer NaN: a made-up value would look like a result."""
    from sklearn.exceptions import UndefinedMetricWarning

    warnings.warn(f"{reason}: the metric is undefined (NaN).", UndefinedMetricWarning, stacklevel=4)
    return float("nan")


def coverage(Y: Any, scores: Any, *, convention: str = "paper") -> float:
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
    """
    check_convention(convention)
    Y, scores = check_scores(Y, scores)
    depth = sum(float(_depth(T, F, convention).sum()) for T, F in row_blocks(Y, scores))
    n_samples, n_labels = Y.shape
    return depth / n_samples if convention == "sklearn" else (depth / n_samples - 1) / n_labels


def _depth(T, F, convention):
    """Rank of each row's worst relevant label, 0 for a row without one. No sort is needed."""
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


def auc_macro(Y: Any, scores: Any, *, convention: str = "paper") -> float:
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
    """
    check_convention(convention)
    Y, scores = check_scores(Y, scores)
    tie = 0.5 if convention == "sklearn" else 1.0
    areas = np.array([_area(f[t], f[~t], tie) for t, f in _label_columns(Y, scores)])
    if convention != "sklearn":
        return float(np.nan_to_num(areas).mean())
    defined = areas[~np.isnan(areas)]
    return float(defined.mean()) if len(defined) else undefined("None of the labels has samples with and without it")


def auc_micro(Y: Any, scores: Any, *, convention: str = "paper") -> float:
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
    """
    check_convention(convention)
    Y, scores = check_scores(Y, scores)
    blocks = [(F[T], F[~T]) for T, F in row_blocks(Y, scores)]
    positive, negative = (np.concatenate(parts) for parts in zip(*blocks))
    if not len(positive) or not len(negative):
        return undefined("Y holds only one value")
    return _area(positive, negative, tie=0.5)


def _label_columns(Y, scores) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (boolean labels, scores) of one label at a time, read in blocks of columns."""
    Y, scores = (M.tocsc() if sparse.issparse(M) else M for M in (Y, scores))
    step = max(1, BLOCK_ENTRIES // Y.shape[0])
    for start in range(0, Y.shape[1], step):
        T, F = (_columns(M, start, start + step) for M in (Y, scores))
        yield from zip(T.astype(bool, copy=False), F)


def _columns(M, start, stop):
    block = M[:, start:stop]
    return np.ascontiguousarray((block.toarray() if sparse.issparse(block) else block).T)


def _area(positive, negative, tie):
    """Share of (positive, negative) pairs in the right order; a tie counts `tie`, no pair gives NaN."""
    if not len(positive) or not len(negative):
        return float("nan")
    positive, negative = np.sort(positive), np.sort(negative)
    below = np.searchsorted(negative, positive, side="left").sum()
    not_above = np.searchsorted(negative, positive, side="right").sum()
    return float((below + tie * (not_above - below)) / (len(positive) * len(negative)))
