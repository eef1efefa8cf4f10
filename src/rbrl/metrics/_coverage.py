"""How far down the ranking the relevant labels reach."""

from typing import Any

import numpy as np

from rbrl.metrics._inputs import check_convention, check_scores, row_blocks


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
