"""Areas under the ROC curve: how well scores order the samples of a label."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from rbrl.metrics._inputs import BLOCK_ENTRIES, check_convention, check_scores, row_blocks
from rbrl.metrics._ranking import undefined


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
