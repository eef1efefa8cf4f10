"""Which methods differ from which?"""

from typing import Any

import numpy as np
import scipy  # whose `stats`, slow to import, comes when it is first used
from scipy.special import ndtr, ndtri

from rbrl.statistics._range import range_isf, range_sf
from rbrl.statistics._ranks import as_table, average_ranks


def nemenyi_distance(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    r"""Critical distance of the Nemenyi test between average ranks.

    .. math:: CD = q_\alpha \sqrt{\frac{k (k+1)}{6 N}}

    with :math:`q_\alpha` the quantile of the studentised range over :math:`\sqrt 2`. Two methods differ if their
    average ranks do by at least this much.

    Examples
    --------
    >>> round(nemenyi_distance(n_methods=9, n_datasets=10), 3)
    3.799
    """
    q = range_isf(alpha, n_methods) / np.sqrt(2)
    return float(q * _standard_error(n_methods, n_datasets))


def bonferroni_dunn_distance(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    r"""Critical distance between a control method and each of the others.

    As `nemenyi_distance`, with the normal quantile at :math:`\alpha / (2 (k - 1))`: fewer comparisons, a smaller
    distance.
    """
    q = -ndtri(alpha / (2 * (n_methods - 1)))
    return float(q * _standard_error(n_methods, n_datasets))


def _standard_error(n_methods, n_datasets):
    if n_methods < 2 or n_datasets < 1:
        raise ValueError(f"Ranks need two methods and one data set. Got {n_methods} and {n_datasets} instead.")
    return np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))


def nemenyi_p_values(values: Any, greater_is_better: bool) -> np.ndarray:
    """P-value of each pair of methods under the Nemenyi test, shape (n_methods, n_methods); 1 on the diagonal."""
    n_datasets, n_methods = as_table(values).shape
    z = _rank_differences(values, greater_is_better) / _standard_error(n_methods, n_datasets)
    upper = np.triu_indices(n_methods, k=1)
    p_values = np.eye(n_methods)
    p_values[upper] = range_sf(z[upper] * np.sqrt(2), n_methods)
    return np.maximum(p_values, p_values.T)


def bonferroni_dunn_p_values(values: Any, greater_is_better: bool, control: int) -> np.ndarray:
    """P-value of the control (a column) against each method, corrected for n_methods - 1 comparisons; 1 for itself."""
    n_datasets, n_methods = as_table(values).shape
    z = _rank_differences(values, greater_is_better)[control] / _standard_error(n_methods, n_datasets)
    return np.minimum(1.0, 2 * ndtr(-z) * (n_methods - 1))


def _rank_differences(values, greater_is_better):
    means = average_ranks(values, greater_is_better)
    return np.abs(means[:, None] - means)


def wilcoxon_holm(values: Any) -> np.ndarray:
    """Wilcoxon's signed-rank test of each pair of methods, corrected by Holm's step-down procedure.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric; the direction does not matter.

    Returns
    -------
    array, shape (n_methods, n_methods)
        Corrected two-sided p-values, 1 on the diagonal and for methods that agree everywhere.
    """
    values = as_table(values)
    rows, columns = np.triu_indices(values.shape[1], k=1)
    raw = [_wilcoxon(values[:, i], values[:, j]) for i, j in zip(rows, columns)]
    p_values = np.eye(values.shape[1])
    p_values[rows, columns] = p_values[columns, rows] = holm(raw)
    return p_values


def _wilcoxon(first, second):
    if np.array_equal(first, second):
        return 1.0
    return float(scipy.stats.wilcoxon(first, second).pvalue)


def holm(p_values: Any) -> np.ndarray:
    r"""Holm's step-down correction.

    The i-th smallest of m p-values becomes :math:`\max_{j \le i} \min(1, (m - j + 1) p_{(j)})`: after the first
    hypothesis that is kept, all later ones are kept, too.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1))
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(1.0, stepped)
    return corrected


def groups(average_ranks: Any, different: Any) -> list[tuple[int, ...]]:
    """Longest runs of methods, in the order of their ranks, of which no two differ.

    Parameters
    ----------
    average_ranks : array, shape (n_methods,)
        Puts the methods in order.
    different : array of bool, shape (n_methods, n_methods)
        Pairs that differ significantly, such as ``wilcoxon_holm(values) <= 0.05``.

    Returns
    -------
    list of tuple of int
        Groups of two or more methods, best first, none within another: the bars of a critical-difference diagram.
    """
    order = np.argsort(average_ranks, kind="stable")
    different = np.asarray(different, dtype=bool)[np.ix_(order, order)]
    found, reached = [], 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not different[start:stop, stop].any():
            stop += 1
        if stop > max(reached, start + 1):
            found.append(tuple(int(i) for i in order[start:stop]))
            reached = stop
    return found


def nemenyi_groups(average_ranks: Any, n_datasets: int, alpha: float = 0.05) -> list[tuple[int, ...]]:
    """Groups of methods whose average ranks lie within one critical distance; see `groups`."""
    average_ranks = np.asarray(average_ranks, dtype=float)
    distance = nemenyi_distance(len(average_ranks), n_datasets, alpha)
    return groups(average_ranks, np.abs(average_ranks[:, None] - average_ranks) >= distance)
