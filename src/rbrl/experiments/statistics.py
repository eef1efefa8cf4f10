"""Statistical tests and effect sizes of pairs of methods: do they differ by more than chance?

A table of values has one row for each data set and one column for each method.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy
from scipy.special import ndtr, ndtri

from rbrl._common.typing import ArrayLike, FloatArray, IntArray
from rbrl.experiments.ranks import FriedmanResult as FriedmanResult
from rbrl.experiments.ranks import average_ranks, check_control, check_values, friedman, oriented_values, rank_numbers
from rbrl.experiments.ranks import ranks as ranks

__all__ = [
    "average_ranks", "bayesian_signed_rank", "friedman", "nemenyi_distance", "rank_biserial", "wilcoxon_holm",
]  # fmt: skip

# Largest number of differences for which Wilcoxon's test is exact.
MAX_EXACT_DIFFERENCES = 50
# Places of the smallest of several normal variables. The trapezoidal rule is exact to rounding error here: the
# integrand is smooth and vanishes at both ends.
SMALLEST_VARIABLE, VARIABLE_STEP = np.linspace(-10.0, 10.0, 501, retstep=True)
NORMAL_DENSITY = np.exp(-(SMALLEST_VARIABLE**2) / 2) / np.sqrt(2 * np.pi)
# Rounding error of a difference of two values, relative to the largest value; on the safe side.
RELATIVE_ROUNDING = 1e-12


def range_sf(q: ArrayLike, n_variables: int) -> FloatArray:
    """Return the probability that the range of standard normal variables exceeds q.

    One of the variables is the smallest; the others lie within q above it. SciPy has this function
    in `scipy.stats`, which takes longer to import than all other modules that the tests need.
    """
    within = ndtr(SMALLEST_VARIABLE + np.asarray(q, dtype=float)[..., None]) - ndtr(SMALLEST_VARIABLE)
    return np.clip(1 - n_variables * VARIABLE_STEP * (within ** (n_variables - 1) @ NORMAL_DENSITY), 0.0, 1.0)


@cache
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
    """Return True if Nemenyi's test can find a difference: average ranks differ by n_methods - 1 at most."""
    return nemenyi_distance(n_methods, n_datasets, alpha) <= n_methods - 1


def bonferroni_dunn_distance(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    r"""Critical distance between the average ranks of a control method and of each other method.

    It is `nemenyi_distance` with the normal quantile at :math:`\alpha / (2 (k - 1))`. There are
    fewer comparisons, so that the distance is smaller.
    """
    q = -ndtri(alpha / (2 * (n_methods - 1)))
    return float(q * _standard_error(n_methods, n_datasets))


def _standard_error(n_methods: int, n_datasets: int) -> float:
    """Return the standard error of the difference of two average ranks if all methods are equal."""
    if n_methods < 2 or n_datasets < 1:
        raise ValueError(f"Ranks need two methods and one data set. Got {n_methods} and {n_datasets} instead.")
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def nemenyi_p_values(values: ArrayLike, greater_is_better: bool) -> FloatArray:
    """P-values (n_methods, n_methods) of all pairs under the Nemenyi test; 1 on the diagonal."""
    z = _rank_differences(values, greater_is_better)
    upper = np.triu_indices(len(z), k=1)
    p_values = np.eye(len(z))
    p_values[upper] = range_sf(z[upper] * np.sqrt(2), len(z))
    return np.maximum(p_values, p_values.T)


def bonferroni_dunn_p_values(values: ArrayLike, greater_is_better: bool, control: int) -> FloatArray:
    """P-values of a control method against each method, corrected for n_methods - 1 comparisons.

    `control` is the column of the control method, whose own p-value is 1.
    """
    z = _rank_differences(values, greater_is_better)[control]
    return np.minimum(1.0, 2 * ndtr(-z) * (len(z) - 1))


def _rank_differences(values: ArrayLike, greater_is_better: bool) -> FloatArray:
    """Return the distance of the average ranks of each pair in standard errors: a symmetric array."""
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
        columns = np.delete(np.arange(n_methods), control)
        rows = np.full_like(columns, control)
    p_values = np.eye(n_methods)
    raw = [_wilcoxon_p(_nonzero_differences(table[:, i], table[:, j])) for i, j in zip(rows, columns)]
    p_values[rows, columns] = p_values[columns, rows] = holm(raw)
    return p_values if control is None else p_values[control]


def smallest_wilcoxon_p(n_datasets: int, n_methods: int = 2) -> float:
    """Return the smallest p-value of Wilcoxon's test after Holm's correction: better everywhere."""
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
    """Return median differences (n_methods, n_methods), positive if the row's method is better."""
    table = oriented_values(values, greater_is_better)
    return np.median(table[:, :, None] - table[:, None], axis=0)


def _nonzero_differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the differences other than 0, relative to the largest value, without rounding errors."""
    size = np.max(np.abs([first, second])) or 1.0
    scaled = np.round((first - second) / size, 12)
    return scaled[scaled != 0]


def _doubled_ranks(differences: FloatArray) -> IntArray:
    """Return twice the rank of each difference by its size: a whole number, also with ties."""
    return np.rint(2 * rank_numbers(np.abs(differences))).astype(int)


def _wilcoxon_p(differences: FloatArray) -> float:
    """Return the two-sided p-value of Wilcoxon's test for differences other than 0; 1 without any."""
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
    r"""Return p-values corrected by Holm's step-down procedure: a new array in the same order.

    The i-th smallest of m p-values becomes :math:`\max_{j \le i} \min(1, (m - j + 1) p_{(j)})`.
    """
    raw = np.asarray(p_values, dtype=float)
    order = np.argsort(raw, kind="stable")
    corrected = np.empty_like(raw)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(raw[order] * np.arange(len(order), 0, -1)))
    return corrected


def groups(average_ranks: ArrayLike, different: ArrayLike) -> list[tuple[int, ...]]:
    """Return the largest groups of methods with neighbouring ranks in which no two methods differ.

    `different` (n_methods, n_methods) says for each pair of methods whether they differ
    significantly; it is symmetric, in the order of `average_ranks`. A group holds the positions of
    at least two methods in that order, the best first, and lies in no other group. Groups are the
    bars of a critical-difference diagram.
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

    There are none if the test cannot find any difference; see `nemenyi_decidable`.
    """
    means = np.asarray(average_ranks, dtype=float)
    distance = nemenyi_distance(len(means), n_datasets, alpha)
    is_decidable = distance <= len(means) - 1
    return groups(means, np.abs(means[:, None] - means) >= distance) if is_decidable else []


class SignedRankProbabilities(NamedTuple):
    """Probabilities, for each pair of methods, that the first is better, equivalent or worse.

    They sum to 1. The shape is (n_methods, n_methods), or (n_methods,) with a control.
    """

    better: FloatArray
    equivalent: FloatArray
    worse: FloatArray


def bayesian_signed_rank(
    values: ArrayLike, greater_is_better: bool, rope: float = 0.0, *, control: int | None = None,
    prior: float = 0.5, n_draws: int = 50_000, seed: int = 0,
) -> SignedRankProbabilities:  # fmt: skip
    r"""Bayesian signed-rank test of each pair of methods, with a region of practical equivalence.

    The differences :math:`z_1, \dots, z_N` of two methods on the data sets are a sample of an
    unknown distribution. Its prior is a Dirichlet process with a pseudo-observation
    :math:`z_0 = 0` of weight `prior`. A draw from the posterior has the weights
    :math:`w \sim \mathrm{Dir}(\mathrm{prior}, 1, \dots, 1)` and gives

    .. math:: \theta_{\text{better}} = \sum_{i,j} w_i w_j \, [z_i + z_j > 2 \cdot \mathrm{rope}]

    and likewise :math:`\theta_{\text{worse}}` and :math:`\theta_{\text{equivalent}}`. The
    probability of an answer is the share of draws in which its :math:`\theta` is the largest. In
    contrast to a p-value, it can show that two methods are practically *equal*, and it needs no
    correction for several comparisons.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        Values of one metric.
    greater_is_better : bool
        Direction of the metric.
    rope : float, default=0
        Largest difference without practical importance, in units of the metric. With 0, no two
        methods are practically equal.
    control : int, default=None
        Column of a control method. Only pairs with the control are tested, and the answers have
        the shape (n_methods,). By default, all pairs are tested.
    prior : float, default=0.5
        Weight of the pseudo-observation; each data set has the weight 1.
    n_draws : int, default=50_000
        Number of draws from the posterior. A probability p has the standard error
        ``sqrt(p * (1 - p) / n_draws)``.
    seed : int, default=0
        Seed of the draws. All pairs use the same draws.

    Returns
    -------
    SignedRankProbabilities

    References
    ----------
    Benavoli, Corani, Demšar and Zaffalon, *Time for a Change: a Tutorial for Comparing Multiple
    Classifiers Through Bayesian Analysis*, Journal of Machine Learning Research 18 (2017).

    Examples
    --------
    On five data sets the first method is slightly better than the second, and the third is far worse.

    >>> from rbrl.experiments.statistics import bayesian_signed_rank
    >>> table = [[0.81, 0.80, 0.5], [0.71, 0.70, 0.4], [0.62, 0.60, 0.5], [0.9, 0.89, 0.3], [0.77, 0.77, 0.6]]
    >>> answer = bayesian_signed_rank(table, greater_is_better=True, rope=0.05)
    >>> answer.better[0].round(2).tolist(), answer.equivalent[0].round(2).tolist()
    ([0.0, 0.0, 1.0], [1.0, 1.0, 0.0])
    """
    table = oriented_values(values, greater_is_better)
    if not 0 <= rope < np.inf:
        raise ValueError(f"rope is the size of a difference: it must be finite and at least 0. Got {rope!r} instead.")
    if not 0 < prior < np.inf:
        raise ValueError(f"prior is a weight: it must be finite and positive. Got {prior!r} instead.")
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1. Got {n_draws!r} instead.")
    n_datasets, n_methods = table.shape
    if control is not None:
        check_control(control, n_methods)
    scale = max(float(np.max(np.abs(table))), rope)
    weights = np.random.default_rng(seed).dirichlet([prior, *np.ones(n_datasets)], n_draws)
    answers = np.empty((3, n_methods, n_methods))
    # The answers for a method and itself; the loop sets all others.
    answers[:] = np.array([0.0, 1.0, 0.0] if rope > 0 else [0.5, 0.0, 0.5])[:, None, None]
    pairs = zip(*np.triu_indices(n_methods, k=1)) if control is None else ((control, j) for j in range(n_methods))
    for i, j in pairs:
        if i != j:
            answers[:, i, j] = _test_pair(table[:, i] - table[:, j], weights, rope, scale)
            answers[:, j, i] = answers[::-1, i, j]
    return SignedRankProbabilities(*(answers if control is None else answers[:, control]))


def _test_pair(differences: FloatArray, weights: FloatArray, rope: float, scale: float) -> tuple[float, float, float]:
    """Return the shares of draws in which the first method is better, equivalent and worse.

    `differences` (n_datasets,) are positive if the first is better, `weights` (n_draws, n_datasets
    + 1) are the draws, and `scale` is the size of rounding errors. A draw in which two answers are
    equally likely is shared between them.
    """
    extended = np.concatenate([[0.0], differences])  # the 0 is the pseudo-observation of the prior
    sums = extended[:, None] + extended
    above = np.sum((weights @ _exceeds(sums, 2 * rope, scale)) * weights, axis=1)
    below = np.sum((weights @ _exceeds(-sums, 2 * rope, scale)) * weights, axis=1)
    between = 1 - above - below if rope > 0 else np.full_like(above, -1.0)  # -1 is never the largest
    theta = np.column_stack([above, between, below])
    largest = theta >= theta.max(axis=1, keepdims=True) - RELATIVE_ROUNDING
    better, equivalent, worse = np.mean(largest / largest.sum(axis=1, keepdims=True), axis=0)
    return float(better), float(equivalent), float(worse)


def _exceeds(sums: FloatArray, bound: float, scale: float) -> FloatArray:
    """Return 1 for a sum above the bound, 0 below, and 1/2 where they are equal up to rounding."""
    is_equal = np.abs(sums - bound) <= RELATIVE_ROUNDING * scale
    return np.where(is_equal, 0.5, sums > bound)
