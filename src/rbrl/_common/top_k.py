"""The order that scores give the columns of each row: the best ones, all of them, and where ties begin and end."""

import numpy as np

from rbrl._common.typing import Array, FloatArray, IntArray


def best_columns(F: FloatArray, k: int) -> IntArray:
    """Columns of the k largest scores of each row, best first, of equal ones the first; all if there are fewer than k.

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
    # A partition and a sort of k columns: sorting all of them costs several times as much where labels are many.
    bar = np.partition(F, F.shape[1] - k, axis=1)[:, F.shape[1] - k, None]
    above, level = bar < F, bar == F
    room = k - np.count_nonzero(above, axis=1, keepdims=True)
    crowded = np.flatnonzero(np.count_nonzero(level, axis=1, keepdims=True) > room)
    level[crowded] &= level[crowded].cumsum(axis=1) <= room[crowded]
    columns = np.nonzero(above | level)[1].reshape(-1, k)
    order = np.argsort(-np.take_along_axis(F, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def falling_order(F: FloatArray, later_first: bool = False) -> IntArray:
    """Columns of each row from the largest score down, the members of a tie in any order, or the later column first.

    The quick sort leaves ties in any order. They are put right by sorting integers, which is several times faster than a
    stable sort of the scores.

    Parameters
    ----------
    F : array (n_rows, n_columns)
        Scores.
    later_first : bool, default=False
        Whether of equal scores the later column comes first.

    Returns
    -------
    array (n_rows, n_columns) of int
    """
    order = np.argsort(-F, axis=1)
    if not later_first:
        return order
    falling = np.take_along_axis(F, order, axis=1)
    tied = np.flatnonzero((falling[:, 1:] == falling[:, :-1]).any(axis=1))
    # The keys are (number of the tie, columns from the right) as one integer.
    n_columns = F.shape[1]
    tie = np.zeros((len(tied), n_columns), dtype=np.int32 if n_columns**2 < 2**31 else np.int64)
    np.cumsum(falling[tied, 1:] != falling[tied, :-1], axis=1, out=tie[:, 1:])
    tie *= n_columns
    keys = tie + (n_columns - 1 - order[tied]).astype(tie.dtype)
    keys.sort(axis=1)
    order[tied] = n_columns - 1 - (keys - tie)
    return order


def last_of_tie(falling: Array) -> IntArray:
    """Position of the last member of each entry's tie, in rows that are sorted.

    Parameters
    ----------
    falling : array (n_rows, n_columns)
        Scores, each row sorted from the largest down.

    Returns
    -------
    array (n_rows, n_columns) of int

    Examples
    --------
    >>> import numpy as np
    >>> last_of_tie(np.array([[3.0, 2.0, 2.0, 1.0]]))
    array([[0, 2, 2, 3]])
    """
    n_columns = falling.shape[1]
    position = np.broadcast_to(np.arange(n_columns), falling.shape)
    tied = falling[:, 1:] == falling[:, :-1]
    if not tied.any():
        return position
    position = position.copy()
    position[:, :-1][tied] = n_columns
    return np.minimum.accumulate(position[:, ::-1], axis=1)[:, ::-1]


def first_of_tie(falling: Array) -> IntArray:
    """Position of the first member of each entry's tie, in rows that are sorted.

    Parameters
    ----------
    falling : array (n_rows, n_columns)
        Scores, each row sorted from the largest down.

    Returns
    -------
    array (n_rows, n_columns) of int
    """
    return falling.shape[1] - 1 - last_of_tie(falling[:, ::-1])[:, ::-1]
