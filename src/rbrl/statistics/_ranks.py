"""Means, and ranks of methods on data sets."""

from typing import Any

import numpy as np

TIES = ("average", "minimum")


def mean_std(values: Any, axis: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over repetitions, the latter with n - 1; of one repetition it is 0.

    Examples
    --------
    >>> mean, std = mean_std([0.1, 0.2, 0.3])
    >>> f"{mean:.3f} ± {std:.3f}"
    '0.200 ± 0.100'
    """
    values = np.asarray(values, dtype=float)
    n = values.shape[axis]
    return values.mean(axis=axis), values.std(axis=axis, ddof=1 if n > 1 else 0)


def ranks(values: Any, greater_is_better: bool, ties: str = "average") -> np.ndarray:
    """Ranks of methods on each data set, 1 for the best.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric.
    greater_is_better : bool
        Direction of the metric.
    ties : {"average", "minimum"}, default="average"
        What tied methods share: the mean of their ranks, as the tests need it, or the smallest of them, as the paper's
        table of average ranks has it.

    Examples
    --------
    >>> ranks([[0.9, 0.8, 0.9, 0.7]], greater_is_better=True)
    array([[1.5, 3. , 1.5, 4. ]])
    """
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}. Got {ties!r} instead.")
    values = as_table(values)
    return np.array([_row_ranks(row, ties) for row in (-values if greater_is_better else values)])


def _row_ranks(values, ties):
    """Ranks of numbers, 1 for the smallest: how many are smaller, and how many are not larger."""
    ordered = np.sort(values)
    smaller, not_larger = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return smaller + 1.0 if ties == "minimum" else (smaller + 1 + not_larger) / 2


def average_ranks(values: Any, greater_is_better: bool, ties: str = "average") -> np.ndarray:
    """Rank of each method, averaged over data sets; see `ranks`."""
    return ranks(values, greater_is_better, ties).mean(axis=0)


def as_table(values: Any) -> np.ndarray:
    """A table of numbers, data sets x methods, refused if there is nothing to compare."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 2:
        raise ValueError(f"values must be n_datasets x n_methods, with two methods. Got shape {values.shape} instead.")
    if np.isnan(values).any():
        missing = [tuple(map(int, place)) for place in np.argwhere(np.isnan(values))[:3]]
        raise ValueError(f"Every method needs a value on every data set. Got NaN at (data set, method) {missing}.")
    return values
