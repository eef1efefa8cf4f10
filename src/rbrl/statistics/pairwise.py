"""Which methods differ from which?

SciPy has it in `scipy.stats`, for any number of degrees; importing that takes longer than everything else that a table
of tests needs.
"""

from typing import Any

import numpy as np
import scipy
from scipy.special import ndtr, ndtri

from rbrl.statistics.friedman import as_table, average_ranks, ranks

# Places of the smallest variable. The trapezoidal rule is exact to rounding error here: the integrand is smooth, and
# vanishes at both ends.
SMALLEST, STEP = np.linspace(-10.0, 10.0, 501, retstep=True)
DENSITY = np.exp(-(SMALLEST**2) / 2) / np.sqrt(2 * np.pi)


def range_sf(q: Any, n_variables: int) -> np.ndarray:
    """Probability that the range exceeds q: one of the variables is the smallest, the others lie within q above it."""
    within = ndtr(SMALLEST + np.asarray(q, dtype=float)[..., None]) - ndtr(SMALLEST)
    return np.clip(1 - n_variables * STEP * (within ** (n_variables - 1) @ DENSITY), 0.0, 1.0)


def range_isf(p: float, n_variables: int) -> float:
    """The q which the range exceeds with probability p, by bisection."""
    if not 0 < p < 1:
        raise ValueError(f"A level must lie between 0 and 1, both excluded. Got {p!r} instead.")
    low, high = 0.0, 2 * SMALLEST[-1]
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if range_sf(middle, n_variables) > p else (low, middle)
    return high


COUNTED = 50  # differences up to which all signs are counted


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


def nemenyi_decidable(n_methods: int, n_datasets: int, alpha: float = 0.05) -> bool:
    """Whether Nemenyi's test can tell any two methods apart: average ranks differ by n_methods - 1 at most.

    Examples
    --------
    >>> nemenyi_decidable(n_methods=4, n_datasets=2), nemenyi_decidable(n_methods=4, n_datasets=3)
    (False, True)
    """
    return nemenyi_distance(n_methods, n_datasets, alpha) <= n_methods - 1


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

    Data sets on which two methods are equal are left out of their pair. The p-values are exact on up to fifty data
    sets, where differences of equal size occur as well.

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
    raw = [_wilcoxon(_differences(values[:, i], values[:, j])) for i, j in zip(rows, columns)]
    p_values = np.eye(values.shape[1])
    p_values[rows, columns] = p_values[columns, rows] = holm(raw)
    return p_values


def smallest_wilcoxon_p(n_datasets: int, n_methods: int = 2) -> float:
    """The smallest p-value that Wilcoxon's test can give, corrected by Holm's procedure for all pairs of methods.

    On every data set the same method is better: once in 2 ** (n_datasets - 1) times, by chance.

    Examples
    --------
    >>> smallest_wilcoxon_p(n_datasets=5)
    0.0625
    >>> smallest_wilcoxon_p(n_datasets=10, n_methods=9)
    0.0703125
    """
    return min(1.0, n_methods * (n_methods - 1) / 2 * 2.0 ** (1 - n_datasets))


def rank_biserial(values: Any, greater_is_better: bool) -> np.ndarray:
    """Effect size of each pair of methods: the matched-pairs rank-biserial correlation.

    The differences on the data sets are ranked by their size, as in Wilcoxon's test; from the share of ranks where the
    first method is better goes that where the second is. 1: the first is better everywhere; 0: neither; -1: the second.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric.
    greater_is_better : bool
        Direction of the metric.

    Returns
    -------
    array, shape (n_methods, n_methods)
        Positive where the method of the row is better than that of the column.

    Examples
    --------
    >>> rank_biserial([[0.9, 0.6], [0.8, 0.6], [0.5, 0.6]], greater_is_better=True)[0, 1].round(3)
    np.float64(0.667)
    """
    values = as_table(values) if greater_is_better else -as_table(values)
    sizes = np.zeros((values.shape[1],) * 2)
    for i, j in zip(*np.triu_indices(len(sizes), k=1)):
        sizes[i, j] = _balance(_differences(values[:, i], values[:, j]))
    return sizes - sizes.T


def median_differences(values: Any, greater_is_better: bool) -> np.ndarray:
    """Median over data sets of what the method of the row is better by than that of the column; negative: worse by."""
    values = as_table(values) if greater_is_better else -as_table(values)
    return np.median(values[:, :, None] - values[:, None], axis=0)


def _differences(first, second):
    """Differences other than 0, where what 0.3 - 0.2 and 0.2 - 0.1 differ by is the rounding of binary numbers."""
    size = np.max(np.abs([first, second])) or 1.0
    scaled = np.round((first - second) / size, 12)
    return scaled[scaled != 0]


def _signed_ranks(differences):
    """Twice the rank of each difference by its size, whole numbers even with ties."""
    return np.rint(2 * ranks([np.abs(differences)], False)[0]).astype(int) if len(differences) > 1 else np.array([2])


def _balance(differences):
    if not len(differences):
        return 0.0
    doubled = _signed_ranks(differences)
    return float(np.sum(doubled * np.sign(differences)) / np.sum(doubled))


def _wilcoxon(differences):
    """Two-sided p-value; of no differences it is 1."""
    if not len(differences):
        return 1.0
    if len(differences) > COUNTED:
        return float(scipy.stats.wilcoxon(differences).pvalue)
    doubled = _signed_ranks(differences)
    chance = np.ones(1)  # of each sum of the ranks with a plus; every sign is as likely as the other
    for rank in doubled:
        chance = np.convolve(chance, np.bincount([0, rank]) / 2)
    positive = int(np.sum(doubled[differences > 0]))
    return float(min(1.0, 2 * min(chance[: positive + 1].sum(), chance[positive:].sum())))


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
    """Groups of methods whose average ranks lie within one critical distance; see `groups`.

    None where the data sets are too few to tell any two methods apart; see `nemenyi_decidable`.
    """
    average_ranks = np.asarray(average_ranks, dtype=float)
    distance = nemenyi_distance(len(average_ranks), n_datasets, alpha)
    if distance > len(average_ranks) - 1:
        return []
    return groups(average_ranks, np.abs(average_ranks[:, None] - average_ranks) >= distance)
