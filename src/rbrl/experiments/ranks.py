"""Ranks of methods on data sets, and Friedman's test: do the methods differ at all?"""

from functools import lru_cache
from itertools import combinations
from math import exp, factorial, lgamma, prod
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import chdtrc, fdtrc, fdtri

from rbrl._common.typing import Array, ArrayLike, FloatArray, IntArray

TIES = ("average", "minimum")

# Smallest number of data sets for which the F distribution is used.
MIN_DATASETS_FOR_F = 10
# Largest number of pairs (rank sums, order on the next data set) that are counted one by one: about a second.
MAX_COUNTED_PAIRS = 2_000_000
# The same limit for the last data set, where equal rank sums are not merged.
MAX_COUNTED_LAST_PAIRS = 6_000_000
# Largest number of methods whose orders are counted: the list of the orders of ten methods takes seconds.
MAX_COUNTED_METHODS = 9
# Number and seed of the random orders where the orders are not counted; with the observed order they are 100,000.
N_RANDOM_ORDERS = 99_999
RANDOM_ORDERS_SEED = 0

# For each method, twice the distance of its rank from the mean rank on one data set.
DoubledRanks: TypeAlias = tuple[int, ...]


def mean_std(values: ArrayLike, axis: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation (with n - 1) over repetitions; NaN deviation for a single one.

    Examples
    --------
    >>> mean, std = mean_std([0.1, 0.2, 0.3])
    >>> f"{mean:.3f} ± {std:.3f}"
    '0.200 ± 0.100'
    """
    table = np.asarray(values, dtype=float)
    mean = table.mean(axis=axis)
    if table.shape[axis] == 1:
        return mean, np.full_like(mean, np.nan)
    return mean, table.std(axis=axis, ddof=1)


def ranks(values: ArrayLike, greater_is_better: bool, ties: str = "average") -> FloatArray:
    """Ranks of methods on each data set, 1 for the best.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        Values of one metric.
    greater_is_better : bool
        Direction of the metric.
    ties : {"average", "minimum"}, default="average"
        Rank of tied methods: the mean of their ranks, which the tests need, or the smallest of
        them, as in the paper's table of average ranks.

    Returns
    -------
    array, shape (n_datasets, n_methods)

    Examples
    --------
    >>> from rbrl.experiments.statistics import ranks
    >>> ranks([[0.9, 0.8, 0.9, 0.7]], greater_is_better=True)
    array([[1.5, 3. , 1.5, 4. ]])
    """
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}. Got {ties!r} instead.")
    return np.array([rank_numbers(-row, ties) for row in oriented_values(values, greater_is_better)])


def rank_numbers(numbers: FloatArray, ties: str = "average") -> FloatArray:
    """Return the ranks (n,) of numbers (n,) without NaN, 1 for the smallest: a new array.

    `ties` is not checked here: "minimum" gives tied numbers their smallest rank, and any other word
    their mean rank, whose double is a whole number.
    """
    ordered = np.sort(numbers)
    n_smaller = np.searchsorted(ordered, numbers, side="left")
    n_not_larger = np.searchsorted(ordered, numbers, side="right")
    return n_smaller + 1.0 if ties == "minimum" else (n_smaller + 1 + n_not_larger) / 2


def average_ranks(values: ArrayLike, greater_is_better: bool, ties: str = "average") -> FloatArray:
    """Average rank of each method over the data sets; see `ranks`.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        Values of one metric.
    greater_is_better : bool
        Direction of the metric.
    ties : {"average", "minimum"}, default="average"
        Rank of tied methods.

    Returns
    -------
    array, shape (n_methods,)

    Examples
    --------
    >>> from rbrl.experiments.statistics import average_ranks
    >>> average_ranks([[0.9, 0.8], [0.7, 0.7]], greater_is_better=True)
    array([1.25, 1.75])
    """
    return ranks(values, greater_is_better, ties).mean(axis=0)


def check_values(values: ArrayLike) -> FloatArray:
    """Return values as an array of floats, data sets x methods; refuse a wrong shape and NaN."""
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise ValueError(f"values must be n_datasets x n_methods, with two methods. Got shape {table.shape} instead.")
    if np.isnan(table).any():
        missing = [tuple(map(int, place)) for place in np.argwhere(np.isnan(table))[:3]]
        raise ValueError(f"Every method needs a value on every data set. Got NaN at (data set, method) {missing}.")
    return table


def oriented_values(values: ArrayLike, greater_is_better: bool) -> FloatArray:
    """Return checked values whose sign is changed where smaller is better, so that greater is better."""
    return check_values(values) if greater_is_better else -check_values(values)


def check_control(control: int, n_methods: int) -> None:
    """Refuse a control that is not the column of a method."""
    if not 0 <= control < n_methods:
        raise ValueError(f"control must be the column of a method, from 0 to {n_methods - 1}. Got {control!r} instead.")


class FriedmanResult(NamedTuple):
    """Result of Friedman's test, with the statistics of Friedman and of Iman and Davenport.

    Attributes
    ----------
    chi2, chi2_p_value : float
        Friedman's statistic and its p-value, from the chi-square distribution with n_methods - 1
        degrees of freedom.
    f : float
        Statistic F_F of Iman and Davenport, which is less conservative; infinite if all data sets
        agree on one order.
    p_value : float
        Probability of this F_F or a larger one if all methods are equal.
    critical_value : float
        Smallest significant F_F; NaN if no F_F is significant because there are too few data sets.
    degrees : tuple of int
        Degrees of freedom of F_F.
    average_ranks : array, shape (n_methods,)
        Average rank of each method; tied methods share the mean of their ranks.
    distribution : {"exact", "permutation", "F"}
        Source of `p_value` and `critical_value`: all orders of the methods on every data set, a
        random sample of these orders with a fixed seed, or the F distribution, which is accurate
        for many data sets only.
    smallest_p_value : float
        Smallest p-value that is possible with these numbers of data sets and methods.

    Examples
    --------
    >>> from rbrl.experiments.statistics import friedman
    >>> losses = [[0.3, 0.2, 0.1], [0.4, 0.3, 0.2], [0.3, 0.3, 0.1], [0.5, 0.4, 0.2]]  # data sets x methods
    >>> result = friedman(losses, greater_is_better=False)
    >>> result.average_ranks.tolist(), result.distribution, result.significant
    ([2.875, 2.125, 1.0], 'exact', True)
    """

    chi2: float
    chi2_p_value: float
    f: float
    p_value: float
    critical_value: float
    degrees: tuple[int, int]
    average_ranks: FloatArray
    distribution: str
    smallest_p_value: float

    @property
    def significant(self) -> bool:
        """True if the methods differ significantly."""
        return self.f >= self.critical_value

    @property
    def decidable(self) -> bool:
        """True if some result could be significant with so many data sets and methods."""
        return not np.isnan(self.critical_value)


def friedman(values: ArrayLike, greater_is_better: bool, alpha: float = 0.05) -> FriedmanResult:
    r"""Friedman's test over data sets, with the F statistic of Iman and Davenport.

    .. math:: \chi_F^2 = \frac{12 N}{k (k+1)} \Bigl(\sum_j R_j^2 - \frac{k (k+1)^2}{4}\Bigr), \qquad
        F_F = \frac{(N-1) \chi_F^2}{N (k-1) - \chi_F^2}

    for k methods with average ranks R on N data sets. There is no correction for ties, as in the
    paper and in Demšar's text; with ties, a corrected statistic would be larger.

    The p-value is exact if all orders of the methods on every data set can be counted: on up to
    hundreds of data sets for two methods, 120 for three, 27 for four, ten for five, five for six,
    three for seven, two for eight and nine. Otherwise, fewer than ten data sets are tested with
    99,999 random orders (with a fixed seed), and ten or more with the F distribution. For nine
    methods on ten data sets, the true level of the F distribution is 0.052 instead of 0.05. The
    exact and the random orders are valid with ties, too: a data set keeps its ties in every order.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        Values of one metric.
    greater_is_better : bool
        Direction of the metric.
    alpha : float, default=0.05
        Level of the critical value.

    Returns
    -------
    FriedmanResult

    Examples
    --------
    Two data sets agree on the order of four methods by chance once in 24 times.

    >>> from rbrl.experiments.statistics import friedman
    >>> result = friedman([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]], greater_is_better=False)
    >>> result.f, round(1 / result.p_value)
    (inf, 24)
    """
    n_datasets, n_methods = check_values(values).shape
    if n_datasets < 2:
        raise ValueError(f"Friedman's test needs at least two data sets. Got {n_datasets} instead.")
    method_ranks = ranks(values, greater_is_better)
    # Twice the distance from the mean rank is a whole number, so that equal statistics compare as equal.
    doubled = np.rint(2 * method_ranks).astype(np.int64) - (n_methods + 1)
    total = int(np.sum(doubled.sum(axis=0) ** 2))
    chi2 = 3 * total / (n_methods * (n_methods + 1) * n_datasets)
    f = _iman_davenport(total, n_datasets, n_methods)
    degrees = (n_methods - 1, (n_methods - 1) * (n_datasets - 1))
    null = _null_distribution(tuple(sorted(tuple(sorted(row)) for row in doubled.tolist())))
    if null is None:
        source = "F"
        critical = float(fdtri(*degrees, 1 - alpha))
        smallest = exp((1 - n_datasets) * lgamma(n_methods + 1))  # all agree; the F distribution would say 0
        p_value = max(smallest, float(fdtrc(*degrees, f)))
    else:
        source = null.source
        critical = _iman_davenport(null.smallest_significant(alpha), n_datasets, n_methods)
        smallest = null.smallest_p_value
        p_value = null.p_value(total)
    chi2_p_value = float(chdtrc(degrees[0], chi2))
    means = method_ranks.mean(axis=0)
    return FriedmanResult(chi2, chi2_p_value, f, p_value, critical, degrees, means, source, smallest)


def _iman_davenport(total: int | None, n_datasets: int, n_methods: int) -> float:
    """Return F_F from the sum of the squared, doubled and centred rank sums; NaN for None.

    It is infinite if all data sets have the same ranks.
    """
    if total is None:
        return float("nan")
    rest = n_datasets**2 * n_methods * (n_methods**2 - 1) - 3 * total
    return (n_datasets - 1) * 3 * total / rest if rest else float("inf")


class _NullDistribution(NamedTuple):
    """Distribution of the sum of squared rank sums if every order of the methods is equally likely.

    The tail of a possible sum is the probability of this sum or a larger one.
    """

    totals: IntArray
    tails: FloatArray
    source: str

    @property
    def smallest_p_value(self) -> float:
        """Probability of the largest sum, or of a sum larger than all random ones."""
        return float(self.tails[-1]) if self.source == "exact" else 1 / (N_RANDOM_ORDERS + 1)

    def p_value(self, total: int) -> float:
        """Return the probability of `total` or a larger sum."""
        i = np.searchsorted(self.totals, total)
        return float(self.tails[i]) if i < len(self.tails) else self.smallest_p_value

    def smallest_significant(self, alpha: float) -> int | None:
        """Return the smallest significant sum, or None if there is none."""
        significant = np.flatnonzero(self.tails <= alpha)
        return int(self.totals[significant[0]]) if len(significant) else None


@lru_cache(maxsize=64)
def _null_distribution(rows: tuple[DoubledRanks, ...]) -> _NullDistribution | None:
    """Return the distribution for the sorted doubled ranks of each data set, or None to use F.

    The arguments are tuples in sorted order, so that equal problems share a result.
    """
    exact = _count_orders(rows)
    if exact is None and len(rows) >= MIN_DATASETS_FOR_F:
        return None
    return exact or _sample_orders(rows)


def _count_orders(rows: tuple[DoubledRanks, ...]) -> _NullDistribution | None:
    """Return the distribution over all orders on all data sets, or None if they are too many.

    The methods are exchangeable, so that rank sums that are a permutation of each other are one state.
    """
    n_methods = len(rows[0])
    base = 2 * len(rows) * n_methods  # every sum of doubled ranks is within half the base
    if n_methods > MAX_COUNTED_METHODS:
        return None
    states: IntArray = np.array([rows[0]], dtype=np.int32)
    probability: Array = np.ones(1)  # of each state
    n_pairs = 0
    for row in rows[1:-1]:
        n_pairs += len(states) * _number_of_orders(row)
        if n_pairs > MAX_COUNTED_PAIRS or base**n_methods > np.iinfo(np.int64).max:
            return None
        orders = _orders(row)
        sums = np.sort((states[:, None] + orders).reshape(-1, n_methods), axis=1)
        keys = (sums + base // 2) @ (base ** np.arange(n_methods))
        _, first, state = np.unique(keys, return_index=True, return_inverse=True)
        states = sums[first]
        probability = np.bincount(state, np.repeat(probability / len(orders), len(orders)))
    if len(states) * _number_of_orders(rows[-1]) > MAX_COUNTED_LAST_PAIRS:
        return None
    orders = _orders(rows[-1])
    squares = np.sum(states.astype(np.int64) ** 2, axis=1)[:, None] + np.sum(np.square(rows[-1]))
    totals = squares + (2.0 * states @ orders.T).astype(np.int64)
    probabilities = np.bincount(totals.ravel(), np.repeat(probability / len(orders), len(orders)))
    possible = np.flatnonzero(probabilities)
    # Summed from the small end, so that a tail of 1e-12 keeps its digits.
    tails = np.minimum(1.0, np.cumsum(probabilities[possible][::-1])[::-1])
    return _NullDistribution(possible, tails, "exact")


def _number_of_orders(row: DoubledRanks) -> int:
    """Return the number of different orders of numbers, some of which may be equal."""
    return factorial(len(row)) // prod(factorial(row.count(value)) for value in set(row))


@lru_cache(maxsize=8)
def _orders(row: DoubledRanks) -> IntArray:
    """Return the different orders of numbers, one per row; the array is kept and must not be changed."""
    known: dict[DoubledRanks, IntArray] = {(): np.zeros((1, 0), dtype=np.int32)}
    for n in range(1, len(row) + 1):
        for part in sorted(set(combinations(row, n))):
            places = [part.index(value) for value in sorted(set(part))]
            tails = [known[part[:i] + part[i + 1 :]] for i in places]
            known[part] = np.vstack([np.insert(tail, 0, part[i], axis=1) for i, tail in zip(places, tails)])
    return known[row]


def _sample_orders(rows: tuple[DoubledRanks, ...]) -> _NullDistribution:
    """Return the distribution over random orders and the observed one, so that no p-value is 0."""
    rng = np.random.default_rng(RANDOM_ORDERS_SEED)
    sums = np.zeros((N_RANDOM_ORDERS, len(rows[0])), dtype=np.int64)
    for row in rows:
        sums += rng.permuted(np.tile(row, (N_RANDOM_ORDERS, 1)), axis=1)
    totals, counts = np.unique(np.sum(sums**2, axis=1), return_counts=True)
    tails = (np.cumsum(counts[::-1])[::-1] + 1) / (N_RANDOM_ORDERS + 1)
    return _NullDistribution(totals, tails, "permutation")
