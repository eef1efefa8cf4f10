"""Tests and effect sizes of pairs of methods, and groups of methods that do not differ."""

import numpy as np
import scipy
from scipy.special import ndtr, ndtri

from rbrl._common.typing import ArrayLike, FloatArray, IntArray
from rbrl.experiments.statistics.friedman_test import (
    average_ranks,
    check_control,
    check_values,
    oriented_values,
    rank_numbers,
)

# Largest number of differences for which Wilcoxon's test is exact.
MAX_EXACT_DIFFERENCES = 50
# Places of the smallest of several normal variables. The trapezoidal rule is exact to rounding error here: the
# integrand is smooth and vanishes at both ends.
SMALLEST_VARIABLE, VARIABLE_STEP = np.linspace(-10.0, 10.0, 501, retstep=True)
NORMAL_DENSITY = np.exp(-(SMALLEST_VARIABLE**2) / 2) / np.sqrt(2 * np.pi)


def range_sf(q: ArrayLike, n_variables: int) -> FloatArray:
    """Return the probability that the range of standard normal variables exceeds q.

    One of the variables is the smallest; the others lie within q above it. SciPy has this function
    in `scipy.stats`, which takes longer to import than all other modules that the tests need.

    Examples
    --------
    >>> range_sf(2.0, n_variables=2).round(3)
    np.float64(0.157)
    """
    within = ndtr(SMALLEST_VARIABLE + np.asarray(q, dtype=float)[..., None]) - ndtr(SMALLEST_VARIABLE)
    return np.clip(1 - n_variables * VARIABLE_STEP * (within ** (n_variables - 1) @ NORMAL_DENSITY), 0.0, 1.0)


def range_isf(p: float, n_variables: int) -> float:
    """Return the value that the range of standard normal variables exceeds with probability p."""
    if not 0 < p < 1:
        raise ValueError(f"The level of a test must lie between 0 and 1, both excluded. Got {p!r} instead.")
    low = 0.0
    high = 2 * SMALLEST_VARIABLE[-1]
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if range_sf(middle, n_variables) > p else (low, middle)
    return high


def nemenyi_distance(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    r"""Critical distance of the Nemenyi test between average ranks.

    .. math:: CD = q_\alpha \sqrt{\frac{k (k+1)}{6 N}}

    with :math:`q_\alpha` the quantile of the studentised range over :math:`\sqrt 2`. Two methods
    differ if their average ranks differ by at least this distance.

    Parameters
    ----------
    n_methods, n_datasets : int
        Numbers k of methods and N of data sets.
    alpha : float, default=0.05
        Level of the test.

    Returns
    -------
    float

    Examples
    --------
    >>> from rbrl.experiments.statistics import nemenyi_distance
    >>> round(nemenyi_distance(n_methods=9, n_datasets=10), 3)
    3.799
    """
    q = range_isf(alpha, n_methods) / np.sqrt(2)
    return float(q * _standard_error(n_methods, n_datasets))


def nemenyi_decidable(n_methods: int, n_datasets: int, alpha: float = 0.05) -> bool:
    """Return True if Nemenyi's test can find a difference: average ranks differ by n_methods - 1 at most.

    Examples
    --------
    >>> nemenyi_decidable(n_methods=4, n_datasets=2), nemenyi_decidable(n_methods=4, n_datasets=3)
    (False, True)
    """
    return nemenyi_distance(n_methods, n_datasets, alpha) <= n_methods - 1


def bonferroni_dunn_distance(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    r"""Critical distance between the average ranks of a control method and of each other method.

    It is `nemenyi_distance` with the normal quantile at :math:`\alpha / (2 (k - 1))`. There are
    fewer comparisons, so that the distance is smaller.

    Parameters
    ----------
    n_methods, n_datasets : int
        Numbers k of methods and N of data sets.
    alpha : float, default=0.05
        Level of the test.

    Returns
    -------
    float

    Examples
    --------
    >>> from rbrl.experiments.statistics import bonferroni_dunn_distance
    >>> round(bonferroni_dunn_distance(n_methods=9, n_datasets=10), 3)
    3.349
    """
    q = -ndtri(alpha / (2 * (n_methods - 1)))
    return float(q * _standard_error(n_methods, n_datasets))


def _standard_error(n_methods: int, n_datasets: int) -> float:
    """Return the standard error of the difference of two average ranks if all methods are equal."""
    if n_methods < 2 or n_datasets < 1:
        raise ValueError(f"Ranks need two methods and one data set. Got {n_methods} and {n_datasets} instead.")
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def nemenyi_p_values(values: ArrayLike, greater_is_better: bool) -> FloatArray:
    """P-values of all pairs of methods under the Nemenyi test.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        Values of one metric.
    greater_is_better : bool
        Direction of the metric.

    Returns
    -------
    array, shape (n_methods, n_methods)
        P-value of each pair; 1 on the diagonal.

    Examples
    --------
    >>> from rbrl.experiments.statistics import nemenyi_p_values
    >>> nemenyi_p_values([[0.9, 0.5, 0.4], [0.8, 0.6, 0.1]], greater_is_better=True)[0].round(3)
    array([1.   , 0.577, 0.112])
    """
    z = _rank_differences(values, greater_is_better)
    upper = np.triu_indices(len(z), k=1)
    p_values = np.eye(len(z))
    p_values[upper] = range_sf(z[upper] * np.sqrt(2), len(z))
    return np.maximum(p_values, p_values.T)


def bonferroni_dunn_p_values(values: ArrayLike, greater_is_better: bool, control: int) -> FloatArray:
    """P-values of a control method against each method, corrected for n_methods - 1 comparisons.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        Values of one metric.
    greater_is_better : bool
        Direction of the metric.
    control : int
        Column of the control method.

    Returns
    -------
    array, shape (n_methods,)
        P-value of each method; 1 for the control itself.

    Examples
    --------
    >>> from rbrl.experiments.statistics import bonferroni_dunn_p_values
    >>> bonferroni_dunn_p_values([[0.9, 0.5, 0.4], [0.8, 0.6, 0.1]], greater_is_better=True, control=0).round(3)
    array([1.   , 0.635, 0.091])
    """
    z = _rank_differences(values, greater_is_better)[control]
    return np.minimum(1.0, 2 * ndtr(-z) * (len(z) - 1))


def _rank_differences(values: ArrayLike, greater_is_better: bool) -> FloatArray:
    """Return the difference of the average ranks of each pair of methods, in standard errors."""
    n_datasets, n_methods = check_values(values).shape
    means = average_ranks(values, greater_is_better)
    return np.abs(means[:, None] - means) / _standard_error(n_methods, n_datasets)


def wilcoxon_holm(values: ArrayLike, control: int | None = None) -> FloatArray:
    """Wilcoxon's signed-rank test of each pair of methods, corrected by Holm's step-down procedure.

    Data sets on which two methods are equal do not count for this pair. The p-values are exact on
    up to fifty data sets, also where several differences have the same size.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        Values of one metric; the direction does not matter.
    control : int, default=None
        Column of a control method. Only pairs with the control are tested and corrected for. With
        so few pairs, ten data sets can separate nine methods from the control, but not all 36
        pairs from each other. By default, all pairs are tested.

    Returns
    -------
    array, shape (n_methods, n_methods), or (n_methods,) for a control
        Corrected two-sided p-values; 1 for a method and itself, and for methods that are equal on
        all data sets.

    Examples
    --------
    >>> from rbrl.experiments.statistics import wilcoxon_holm
    >>> wilcoxon_holm([[0.9, 0.6], [0.8, 0.6], [0.7, 0.6]])[0, 1]
    np.float64(0.25)
    """
    table = check_values(values)
    n_methods = table.shape[1]
    if control is None:
        rows, columns = np.triu_indices(n_methods, k=1)
    else:
        check_control(control, n_methods)
        columns = np.array([j for j in range(n_methods) if j != control])
        rows = np.full_like(columns, control)
    p_values = np.eye(n_methods)
    raw = [_wilcoxon_p(_nonzero_differences(table[:, i], table[:, j])) for i, j in zip(rows, columns)]
    p_values[rows, columns] = p_values[columns, rows] = holm(raw)
    return p_values if control is None else p_values[control]


def smallest_wilcoxon_p(n_datasets: int, n_methods: int = 2) -> float:
    """Return the smallest p-value of Wilcoxon's test after Holm's correction for all pairs of methods.

    It belongs to a method that is better than the other on every data set.

    Examples
    --------
    >>> smallest_wilcoxon_p(n_datasets=5), smallest_wilcoxon_p(n_datasets=10, n_methods=9)
    (0.0625, 0.0703125)
    """
    return min(1.0, n_methods * (n_methods - 1) / 2 * 2.0 ** (1 - n_datasets))


def rank_biserial(values: ArrayLike, greater_is_better: bool) -> FloatArray:
    """Effect size of each pair of methods: the matched-pairs rank-biserial correlation.

    The differences on the data sets are ranked by their size, as in Wilcoxon's test. The effect
    size is the share of the ranks for which the first method is better, minus the share for which
    the second is better. It is 1 if the first method is better everywhere, and -1 if the second is.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        Values of one metric.
    greater_is_better : bool
        Direction of the metric.

    Returns
    -------
    array, shape (n_methods, n_methods)
        Positive if the method of the row is better than the method of the column.

    Examples
    --------
    >>> from rbrl.experiments.statistics import rank_biserial
    >>> rank_biserial([[0.9, 0.6], [0.8, 0.6], [0.5, 0.6]], greater_is_better=True)[0, 1].round(3)
    np.float64(0.667)
    """
    table = oriented_values(values, greater_is_better)
    sizes = np.zeros((table.shape[1], table.shape[1]))
    for i, j in zip(*np.triu_indices(len(sizes), k=1)):
        differences = _nonzero_differences(table[:, i], table[:, j])
        doubled = _doubled_ranks(differences)
        sizes[i, j] = np.sum(doubled * np.sign(differences)) / max(1, int(np.sum(doubled)))
    return sizes - sizes.T


def median_differences(values: ArrayLike, greater_is_better: bool) -> FloatArray:
    """Median over data sets of the difference of each pair of methods.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        Values of one metric.
    greater_is_better : bool
        Direction of the metric.

    Returns
    -------
    array, shape (n_methods, n_methods)
        Positive if the method of the row is better than the method of the column.

    Examples
    --------
    >>> from rbrl.experiments.statistics import median_differences
    >>> median_differences([[0.75, 0.5], [0.75, 0.5], [0.5, 1.0]], greater_is_better=True)[0, 1]
    np.float64(0.25)
    """
    table = oriented_values(values, greater_is_better)
    return np.median(table[:, :, None] - table[:, None], axis=0)


def _nonzero_differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the differences other than 0, rounded: 0.3 - 0.2 and 0.2 - 0.1 are equal."""
    size = np.max(np.abs([first, second])) or 1.0
    scaled = np.round((first - second) / size, 12)
    return scaled[scaled != 0]


def _doubled_ranks(differences: FloatArray) -> IntArray:
    """Return twice the rank of each difference by its size: a whole number, also with ties."""
    return np.rint(2 * rank_numbers(np.abs(differences))).astype(int)


def _wilcoxon_p(differences: FloatArray) -> float:
    """Return the two-sided p-value of Wilcoxon's test; 1 without differences."""
    if not len(differences):
        return 1.0
    if len(differences) > MAX_EXACT_DIFFERENCES:
        return float(scipy.stats.wilcoxon(differences).pvalue)
    doubled = _doubled_ranks(differences)
    # The probability of each sum of positive ranks, if every difference is as likely positive as negative.
    probability: FloatArray = np.ones(1)
    for rank in doubled:
        probability = np.convolve(probability, np.bincount([0, rank]) / 2)
    positive = int(np.sum(doubled[differences > 0]))
    return float(min(1.0, 2 * min(probability[: positive + 1].sum(), probability[positive:].sum())))


def holm(p_values: ArrayLike) -> FloatArray:
    r"""Return p-values corrected by Holm's step-down procedure, in the same order.

    The i-th smallest of m p-values becomes :math:`\max_{j \le i} \min(1, (m - j + 1) p_{(j)})`.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    raw = np.asarray(p_values, dtype=float)
    order = np.argsort(raw, kind="stable")
    corrected = np.empty_like(raw)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(raw[order] * np.arange(len(order), 0, -1)))
    return corrected


def groups(average_ranks: ArrayLike, different: ArrayLike) -> list[tuple[int, ...]]:
    """Return the largest groups of methods with neighbouring ranks in which no two methods differ.

    `different` says for each pair of methods whether they differ significantly. A group has at
    least two methods, the best first, and lies in no other group. Groups are the bars of a
    critical-difference diagram.

    Examples
    --------
    >>> groups([2.5, 1.0, 2.0], [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    [(1, 2), (2, 0)]
    """
    order = np.argsort(average_ranks, kind="stable")
    differ = np.asarray(different, dtype=bool)[np.ix_(order, order)]
    found = []
    last_stop = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not differ[start:stop, stop].any():
            stop += 1
        if stop > max(last_stop, start + 1):
            found.append(tuple(int(i) for i in order[start:stop]))
            last_stop = stop
    return found


def nemenyi_groups(average_ranks: ArrayLike, n_datasets: int, alpha: float = 0.05) -> list[tuple[int, ...]]:
    """Return the groups of methods whose average ranks lie within one critical distance.

    There are no groups if the test cannot find any difference; see `nemenyi_decidable`.

    Examples
    --------
    >>> nemenyi_groups([1.0, 2.0, 3.0, 6.0], n_datasets=5)
    [(0, 1, 2)]
    """
    means = np.asarray(average_ranks, dtype=float)
    if not nemenyi_decidable(len(means), n_datasets, alpha):
        return []
    return groups(means, np.abs(means[:, None] - means) >= nemenyi_distance(len(means), n_datasets, alpha))
