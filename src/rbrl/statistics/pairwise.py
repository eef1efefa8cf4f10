"""Which methods differ from which, by how much, and which of them form groups?"""

import numpy as np
import scipy
from scipy.special import ndtr, ndtri

from rbrl._common.typing import ArrayLike, FloatArray, IntArray
from rbrl.statistics.friedman import as_table, average_ranks, check_control, ranks_of

# Differences up to which Wilcoxon's test counts all signs.
COUNTED = 50
# Places of the smallest variable. The trapezoidal rule is exact to rounding error here: the integrand is smooth, and
# vanishes at both ends.
SMALLEST, STEP = np.linspace(-10.0, 10.0, 501, retstep=True)
DENSITY = np.exp(-(SMALLEST**2) / 2) / np.sqrt(2 * np.pi)


def range_sf(q: ArrayLike, n_variables: int) -> FloatArray:
    """Probability that the range of standard normal variables exceeds q.

    One of the variables is the smallest, the others lie within q above it. SciPy has it in `scipy.stats`, for any number
    of degrees of freedom; importing that takes longer than everything else that a table of tests needs.

    Parameters
    ----------
    q : float or array
    n_variables : int

    Returns
    -------
    array
        Of the shape of q.
    """
    within = ndtr(SMALLEST + np.asarray(q, dtype=float)[..., None]) - ndtr(SMALLEST)
    return np.clip(1 - n_variables * STEP * (within ** (n_variables - 1) @ DENSITY), 0.0, 1.0)


def range_isf(p: float, n_variables: int) -> float:
    """The q which the range exceeds with probability p, by bisection.

    Parameters
    ----------
    p : float
        Between 0 and 1, both excluded.
    n_variables : int

    Returns
    -------
    float
    """
    if not 0 < p < 1:
        raise ValueError(f"A level must lie between 0 and 1, both excluded. Got {p!r} instead.")
    low, high = 0.0, 2 * SMALLEST[-1]
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if range_sf(middle, n_variables) > p else (low, middle)
    return high


def nemenyi_distance(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    r"""Critical distance of the Nemenyi test between average ranks.

    .. math:: CD = q_\alpha \sqrt{\frac{k (k+1)}{6 N}}

    with :math:`q_\alpha` the quantile of the studentised range over :math:`\sqrt 2`. Two methods differ if their
    average ranks do by at least this much.

    Parameters
    ----------
    n_methods, n_datasets : int
        k and N.
    alpha : float, default=0.05
        Level of the test.

    Returns
    -------
    float

    Examples
    --------
    >>> from rbrl.statistics import nemenyi_distance
    >>> round(nemenyi_distance(n_methods=9, n_datasets=10), 3)
    3.799
    """
    q = range_isf(alpha, n_methods) / np.sqrt(2)
    return float(q * _standard_error(n_methods, n_datasets))


def nemenyi_decidable(n_methods: int, n_datasets: int, alpha: float = 0.05) -> bool:
    """Whether Nemenyi's test can tell any two methods apart: average ranks differ by n_methods - 1 at most.

    Parameters
    ----------
    n_methods, n_datasets : int
    alpha : float, default=0.05
        Level of the test.

    Returns
    -------
    bool

    Examples
    --------
    >>> from rbrl.statistics import nemenyi_decidable
    >>> nemenyi_decidable(n_methods=4, n_datasets=2), nemenyi_decidable(n_methods=4, n_datasets=3)
    (False, True)
    """
    return nemenyi_distance(n_methods, n_datasets, alpha) <= n_methods - 1


def bonferroni_dunn_distance(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    r"""Critical distance between a control method and each of the others.

    As `nemenyi_distance`, with the normal quantile at :math:`\alpha / (2 (k - 1))`: fewer comparisons, a smaller
    distance.

    Parameters
    ----------
    n_methods, n_datasets : int
    alpha : float, default=0.05
        Level of the test.

    Returns
    -------
    float

    Examples
    --------
    >>> from rbrl.statistics import bonferroni_dunn_distance
    >>> round(bonferroni_dunn_distance(n_methods=9, n_datasets=10), 3)
    3.349
    """
    q = -ndtri(alpha / (2 * (n_methods - 1)))
    return float(q * _standard_error(n_methods, n_datasets))


def _standard_error(n_methods: int, n_datasets: int) -> float:
    """Of the difference of two average ranks, where chance alone decides."""
    if n_methods < 2 or n_datasets < 1:
        raise ValueError(f"Ranks need two methods and one data set. Got {n_methods} and {n_datasets} instead.")
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def nemenyi_p_values(values: ArrayLike, greater_is_better: bool) -> FloatArray:
    """P-value of each pair of methods under the Nemenyi test, shape (n_methods, n_methods); 1 on the diagonal.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric.
    greater_is_better : bool
        Direction of the metric.

    Returns
    -------
    array, shape (n_methods, n_methods)

    Examples
    --------
    >>> from rbrl.statistics import nemenyi_p_values
    >>> nemenyi_p_values([[0.9, 0.5, 0.4], [0.8, 0.6, 0.1]], greater_is_better=True)[0].round(3)
    array([1.   , 0.577, 0.112])
    """
    z = _rank_differences(values, greater_is_better)
    upper = np.triu_indices(len(z), k=1)
    p_values = np.eye(len(z))
    p_values[upper] = range_sf(z[upper] * np.sqrt(2), len(z))
    return np.maximum(p_values, p_values.T)


def bonferroni_dunn_p_values(values: ArrayLike, greater_is_better: bool, control: int) -> FloatArray:
    """P-value of the control (a column) against each method, corrected for n_methods - 1 comparisons; 1 for itself.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric.
    greater_is_better : bool
        Direction of the metric.
    control : int
        Column of the method that the others are compared with.

    Returns
    -------
    array, shape (n_methods,)

    Examples
    --------
    >>> from rbrl.statistics import bonferroni_dunn_p_values
    >>> bonferroni_dunn_p_values([[0.9, 0.5, 0.4], [0.8, 0.6, 0.1]], greater_is_better=True, control=0).round(3)
    array([1.   , 0.635, 0.091])
    """
    z = _rank_differences(values, greater_is_better)[control]
    return np.minimum(1.0, 2 * ndtr(-z) * (len(z) - 1))


def _rank_differences(values: ArrayLike, greater_is_better: bool) -> FloatArray:
    """Between the average ranks of each pair of methods, in standard errors."""
    n_datasets, n_methods = as_table(values).shape
    means = average_ranks(values, greater_is_better)
    return np.abs(means[:, None] - means) / _standard_error(n_methods, n_datasets)


def wilcoxon_holm(values: ArrayLike, control: int | None = None) -> FloatArray:
    """Wilcoxon's signed-rank test of each pair of methods, corrected by Holm's step-down procedure.

    Data sets on which two methods are equal are left out of their pair. The p-values are exact on up to fifty data
    sets, where differences of equal size occur as well.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric; the direction does not matter.
    control : int, default=None
        Column of a method: only its pairs are tested, and corrected for; they are fewer, so that ten data sets can tell
        nine methods from it, which they cannot for all 36 pairs (see `smallest_wilcoxon_p`). None: all pairs.

    Returns
    -------
    array, shape (n_methods, n_methods), or (n_methods,) for a control
        Corrected two-sided p-values, 1 for a method with itself and for methods that agree everywhere.

    Examples
    --------
    >>> from rbrl.statistics import wilcoxon_holm
    >>> wilcoxon_holm([[0.9, 0.6], [0.8, 0.6], [0.7, 0.6]])[0, 1]
    np.float64(0.25)
    """
    table = as_table(values)
    if control is not None:
        return _against_control(table, control)
    rows, columns = np.triu_indices(table.shape[1], k=1)
    raw = [_wilcoxon(_differences(table[:, i], table[:, j])) for i, j in zip(rows, columns)]
    p_values = np.eye(table.shape[1])
    p_values[rows, columns] = p_values[columns, rows] = holm(raw)
    return p_values


def _against_control(table: FloatArray, control: int) -> FloatArray:
    """Corrected p-values of one column against each of the others; 1 for itself."""
    n_methods = table.shape[1]
    check_control(control, n_methods)
    others = [j for j in range(n_methods) if j != control]
    p_values = np.ones(n_methods)
    p_values[others] = holm([_wilcoxon(_differences(table[:, control], table[:, j])) for j in others])
    return p_values


def smallest_wilcoxon_p(n_datasets: int, n_methods: int = 2) -> float:
    """The smallest p-value that Wilcoxon's test can give, corrected by Holm's procedure for all pairs of methods.

    On every data set the same method is better: once in 2 ** (n_datasets - 1) times, by chance.

    Parameters
    ----------
    n_datasets : int
    n_methods : int, default=2

    Returns
    -------
    float

    Examples
    --------
    >>> from rbrl.statistics import smallest_wilcoxon_p
    >>> smallest_wilcoxon_p(n_datasets=5)
    0.0625
    >>> smallest_wilcoxon_p(n_datasets=10, n_methods=9)
    0.0703125
    """
    return min(1.0, n_methods * (n_methods - 1) / 2 * 2.0 ** (1 - n_datasets))


def rank_biserial(values: ArrayLike, greater_is_better: bool) -> FloatArray:
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
    >>> from rbrl.statistics import rank_biserial
    >>> rank_biserial([[0.9, 0.6], [0.8, 0.6], [0.5, 0.6]], greater_is_better=True)[0, 1].round(3)
    np.float64(0.667)
    """
    table = as_table(values) if greater_is_better else -as_table(values)
    sizes = np.zeros((table.shape[1], table.shape[1]))
    for i, j in zip(*np.triu_indices(len(sizes), k=1)):
        differences = _differences(table[:, i], table[:, j])
        doubled = _doubled_ranks(differences)
        sizes[i, j] = np.sum(doubled * np.sign(differences)) / max(1, int(np.sum(doubled)))
    return sizes - sizes.T


def median_differences(values: ArrayLike, greater_is_better: bool) -> FloatArray:
    """Median over data sets of what the method of the row is better by than that of the column; negative: worse by.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric.
    greater_is_better : bool
        Direction of the metric.

    Returns
    -------
    array, shape (n_methods, n_methods)

    Examples
    --------
    >>> from rbrl.statistics import median_differences
    >>> median_differences([[0.75, 0.5], [0.75, 0.5], [0.5, 1.0]], greater_is_better=True)[0, 1]
    np.float64(0.25)
    """
    table = as_table(values) if greater_is_better else -as_table(values)
    return np.median(table[:, :, None] - table[:, None], axis=0)


def _differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Differences other than 0, where what 0.3 - 0.2 and 0.2 - 0.1 differ by is the rounding of binary numbers."""
    size = np.max(np.abs([first, second])) or 1.0
    scaled = np.round((first - second) / size, 12)
    return scaled[scaled != 0]


def _doubled_ranks(differences: FloatArray) -> IntArray:
    """Twice the rank of each difference by its size, whole numbers even with ties."""
    return np.rint(2 * ranks_of(np.abs(differences))).astype(int)


def _wilcoxon(differences: FloatArray) -> float:
    """Two-sided p-value; of no differences it is 1."""
    if not len(differences):
        return 1.0
    if len(differences) > COUNTED:
        return float(scipy.stats.wilcoxon(differences).pvalue)
    doubled = _doubled_ranks(differences)
    chance: FloatArray = np.ones(1)  # of each sum of the ranks with a plus; every sign is as likely as the other
    for rank in doubled:
        chance = np.convolve(chance, np.bincount([0, rank]) / 2)
    positive = int(np.sum(doubled[differences > 0]))
    return float(min(1.0, 2 * min(chance[: positive + 1].sum(), chance[positive:].sum())))


def holm(p_values: ArrayLike) -> FloatArray:
    r"""Holm's step-down correction.

    The i-th smallest of m p-values becomes :math:`\max_{j \le i} \min(1, (m - j + 1) p_{(j)})`: after the first
    hypothesis that is kept, all later ones are kept, too.

    Parameters
    ----------
    p_values : array, shape (n_tests,)

    Returns
    -------
    array, shape (n_tests,)
        Corrected, in the same order.

    Examples
    --------
    >>> from rbrl.statistics import holm
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    raw = np.asarray(p_values, dtype=float)
    order = np.argsort(raw, kind="stable")
    stepped = np.maximum.accumulate(raw[order] * np.arange(len(order), 0, -1))
    corrected = np.empty_like(raw)
    corrected[order] = np.minimum(1.0, stepped)
    return corrected


def groups(average_ranks: ArrayLike, different: ArrayLike) -> list[tuple[int, ...]]:
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

    Examples
    --------
    >>> from rbrl.statistics import groups
    >>> groups([2.5, 1.0, 2.0], [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    [(1, 2), (2, 0)]
    """
    order = np.argsort(average_ranks, kind="stable")
    differ = np.asarray(different, dtype=bool)[np.ix_(order, order)]
    found, reached = [], 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not differ[start:stop, stop].any():
            stop += 1
        if stop > max(reached, start + 1):
            found.append(tuple(int(i) for i in order[start:stop]))
            reached = stop
    return found


def nemenyi_groups(average_ranks: ArrayLike, n_datasets: int, alpha: float = 0.05) -> list[tuple[int, ...]]:
    """Groups of methods whose average ranks lie within one critical distance; see `groups`.

    None where the data sets are too few to tell any two methods apart; see `nemenyi_decidable`.

    Parameters
    ----------
    average_ranks : array, shape (n_methods,)
    n_datasets : int
    alpha : float, default=0.05
        Level of the test.

    Returns
    -------
    list of tuple of int
        Indices of the methods of each group.

    Examples
    --------
    >>> from rbrl.statistics import nemenyi_groups
    >>> nemenyi_groups([1.0, 2.0, 3.0, 6.0], n_datasets=5)
    [(0, 1, 2)]
    """
    means = np.asarray(average_ranks, dtype=float)
    if not nemenyi_decidable(len(means), n_datasets, alpha):
        return []
    return groups(means, np.abs(means[:, None] - means) >= nemenyi_distance(len(means), n_datasets, alpha))
