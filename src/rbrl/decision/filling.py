"""When a sample without a predicted label gets its best one."""

import numpy as np

from rbrl._common.frames import as_dense
from rbrl._common.typing import ArrayLike, MatrixLike

# ``non_empty="auto"`` fills empty predictions where at most this share of the training samples has no label. A fill is
# wrong for a sample that has no label, and right about as often as the best label is: so it pays while few of the samples
# with an empty prediction have no label. Table `filling` of benchmarks.thresholds: up to 5 % no data set loses more than
# .005 of subset accuracy or .002 of example-F1, and the mean gains are .011 and .027. The share is smaller than that,
# because a fill departs from scikit-learn's rule that labels are the positive scores: its check of this rule has an empty
# sample in 42, and such data are left alone.
LARGEST_EMPTY_SHARE = 0.02


def empty_share(Y: MatrixLike, weights: ArrayLike | None = None) -> float:
    """Compute the share of the samples that have no relevant label.

    Parameters
    ----------
    Y : array or sparse matrix, shape (n_samples, n_labels)
        0/1 or -1/+1, NaN where a label is missing: a sample of which all labels are missing does not count.
    weights : array, shape (n_samples,), default=None
        Weights by which the samples are counted.

    Returns
    -------
    float
        Between 0 and 1; 0 if no sample counts.

    Examples
    --------
    >>> from rbrl.decision import empty_share
    >>> empty_share([[1, 0], [0, 0]]), empty_share([[1, 0], [0, 0]], [3.0, 1.0])
    (0.5, 0.25)
    """
    Y = as_dense(Y)
    counts = np.ones(len(Y)) if weights is None else np.asarray(weights, dtype=np.float64)
    counts = np.where(np.isnan(Y).all(axis=1), 0.0, counts)
    total = counts.sum()
    return float(counts[~(Y > 0).any(axis=1)].sum() / total) if total else 0.0


def filling_pays(share: float) -> bool:
    """Decide what ``non_empty="auto"`` means: whether a sample without a positive score gets its best label.

    Parameters
    ----------
    share : float
        Share of the training samples that have no label; see :func:`empty_share`.

    Returns
    -------
    bool
        Whether it is at most 2 %.

    Examples
    --------
    >>> from rbrl.decision import filling_pays
    >>> filling_pays(0.0), filling_pays(0.004), filling_pays(0.2)
    (True, True, False)
    """
    return share <= LARGEST_EMPTY_SHARE
