"""Order of the columns of each row by their scores, and positions of ties."""

import numpy as np

from rbrl._common.typing import Array, FloatArray, IntArray


def best_columns(F: FloatArray, k: int) -> IntArray:
    """Return the columns of the k largest scores of each row, best first.

    Of equal scores, the first column comes first. All columns are returned if there are at most k.

    Parameters
    ----------
    F : array (n_rows, n_columns)
        Scores.
    k : int

    Returns
    -------
    array (n_rows, k) of int

    Examples
    --------
    >>> import numpy as np
    >>> best_columns(np.array([[0.1, 0.7, 0.7], [3.0, 1.0, 2.0]]), 2)
    array([[1, 2],
           [0, 2]])
    """
    k = min(k, F.shape[1])
    # If there are many labels, a partition and a sort of k columns cost much less than a sort of all.
    kth_score = np.partition(F, F.shape[1] - k, axis=1)[:, F.shape[1] - k, None]
    above = kth_score < F
    tied = kth_score == F
    n_free = k - np.count_nonzero(above, axis=1, keepdims=True)
    rows = np.flatnonzero(np.count_nonzero(tied, axis=1, keepdims=True) > n_free)
    tied[rows] &= tied[rows].cumsum(axis=1) <= n_free[rows]
    columns = np.nonzero(above | tied)[1].reshape(-1, k)
    order = np.argsort(-np.take_along_axis(F, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def descending_order(F: FloatArray, later_first: bool = False) -> IntArray:
    """Return the columns of each row in the order of descending scores.

    Columns with equal scores come in any order, or the later column comes first. For the second, the
    tied columns are sorted as integers, which is faster than a stable sort of the scores.

    Parameters
    ----------
    F : array (n_rows, n_columns)
        Scores.
    later_first : bool, default=False
        Whether the later one of two columns with equal scores comes first.

    Returns
    -------
    array (n_rows, n_columns) of int
    """
    order = np.argsort(-F, axis=1)
    if not later_first:
        return order
    scores = np.take_along_axis(F, order, axis=1)
    tied = np.flatnonzero((scores[:, 1:] == scores[:, :-1]).any(axis=1))
    # A key is the pair (number of the tie, column counted from the right) as one integer.
    n_columns = F.shape[1]
    tie = np.zeros((len(tied), n_columns), dtype=np.int32 if n_columns**2 < 2**31 else np.int64)
    np.cumsum(scores[tied, 1:] != scores[tied, :-1], axis=1, out=tie[:, 1:])
    tie *= n_columns
    keys = tie + (n_columns - 1 - order[tied]).astype(tie.dtype)
    keys.sort(axis=1)
    order[tied] = n_columns - 1 - (keys - tie)
    return order


def last_of_tie(scores: Array) -> IntArray:
    """Return the position of the last score that equals each score.

    Parameters
    ----------
    scores : array (n_rows, n_columns)
        Scores in descending order in each row.

    Returns
    -------
    array (n_rows, n_columns) of int

    Examples
    --------
    >>> import numpy as np
    >>> last_of_tie(np.array([[3.0, 2.0, 2.0, 1.0]]))
    array([[0, 2, 2, 3]])
    """
    n_columns = scores.shape[1]
    position = np.broadcast_to(np.arange(n_columns), scores.shape)
    tied = scores[:, 1:] == scores[:, :-1]
    if not tied.any():
        return position
    position = position.copy()
    position[:, :-1][tied] = n_columns
    return np.minimum.accumulate(position[:, ::-1], axis=1)[:, ::-1]


def first_of_tie(scores: Array) -> IntArray:
    """Return the position of the first score that equals each score.

    Parameters
    ----------
    scores : array (n_rows, n_columns)
        Scores in descending order in each row.

    Returns
    -------
    array (n_rows, n_columns) of int
    """
    return scores.shape[1] - 1 - last_of_tie(scores[:, ::-1])[:, ::-1]
