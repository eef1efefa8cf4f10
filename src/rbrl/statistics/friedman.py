"""Ranks of methods on data sets, and Friedman's test: do the methods differ at all?"""

from functools import lru_cache
from itertools import combinations
from math import exp, factorial, lgamma, prod
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import chdtrc, fdtrc, fdtri

from rbrl._common.typing import Array, ArrayLike, FloatArray, IntArray

TIES = ("average", "minimum")

# With fewer data sets than this the F distribution is not trusted.
FEW_DATASETS = 10
# Pairs of (rank sums, order on the next data set) that are counted one by one: about a second.
COUNTED = 2_000_000
# The same for the last data set, whose sums need not be told apart.
LAST = 6_000_000
# Orders of more methods are never counted: to list those of ten takes seconds.
MOST_METHODS = 9
# Where they are not counted, so many orders are drawn; with the observed one they make 100,000.
N_DRAWN, SEED = 99_999, 0

# Twice the distance of each method's rank from the mean rank, on one data set.
Doubled: TypeAlias = tuple[int, ...]


def mean_std(values: ArrayLike, axis: int = 0) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation over repetitions, the latter with n - 1; that of one repetition is NaN.

    Parameters
    ----------
    values : array
    axis : int, default=0
        That of the repetitions.

    Returns
    -------
    mean, std : arrays

    Examples
    --------
    >>> from rbrl.statistics import mean_std
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
        One metric.
    greater_is_better : bool
        Direction of the metric.
    ties : {"average", "minimum"}, default="average"
        What tied methods share: the mean of their ranks, as the tests need it, or the smallest of them, as the paper's
        table of average ranks has it.

    Returns
    -------
    array, shape (n_datasets, n_methods)

    Examples
    --------
    >>> from rbrl.statistics import ranks
    >>> ranks([[0.9, 0.8, 0.9, 0.7]], greater_is_better=True)
    array([[1.5, 3. , 1.5, 4. ]])
    """
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}. Got {ties!r} instead.")
    table = as_table(values)
    return np.array([ranks_of(row, ties) for row in (-table if greater_is_better else table)])


def ranks_of(numbers: FloatArray, ties: str = "average") -> FloatArray:
    """Ranks of numbers, 1 for the smallest: how many are smaller, and how many are not larger.

    Parameters
    ----------
    numbers : array, shape (n,)
    ties : {"average", "minimum"}, default="average"
        What tied numbers share: the mean of their ranks, or the smallest of them.

    Returns
    -------
    array, shape (n,)
    """
    ordered = np.sort(numbers)
    smaller, not_larger = (np.searchsorted(ordered, numbers, side=side) for side in ("left", "right"))
    return smaller + 1.0 if ties == "minimum" else (smaller + 1 + not_larger) / 2


def average_ranks(values: ArrayLike, greater_is_better: bool, ties: str = "average") -> FloatArray:
    """Rank of each method, averaged over data sets; see `ranks`.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric.
    greater_is_better : bool
        Direction of the metric.
    ties : {"average", "minimum"}, default="average"
        What tied methods share.

    Returns
    -------
    array, shape (n_methods,)

    Examples
    --------
    >>> from rbrl.statistics import average_ranks
    >>> average_ranks([[0.9, 0.8], [0.7, 0.7]], greater_is_better=True)
    array([1.25, 1.75])
    """
    return ranks(values, greater_is_better, ties).mean(axis=0)


def as_table(values: ArrayLike) -> FloatArray:
    """A table of numbers, data sets x methods, refused if there is nothing to compare.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)

    Returns
    -------
    array of floats, shape (n_datasets, n_methods)
    """
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise ValueError(f"values must be n_datasets x n_methods, with two methods. Got shape {table.shape} instead.")
    if np.isnan(table).any():
        missing = [tuple(map(int, place)) for place in np.argwhere(np.isnan(table))[:3]]
        raise ValueError(f"Every method needs a value on every data set. Got NaN at (data set, method) {missing}.")
    return table


def check_control(control: int, n_methods: int) -> None:
    """Refuse what is not the column of a method.

    Parameters
    ----------
    control, n_methods : int
    """
    if not 0 <= control < n_methods:
        raise ValueError(f"control is the column of a method, of 0 to {n_methods - 1}. Got {control!r} instead.")


class FriedmanResult(NamedTuple):
    """Friedman's test in both forms.

    Attributes
    ----------
    chi2, chi2_p_value : float
        Friedman's statistic and its p-value, from the chi-square distribution with n_methods - 1 degrees of freedom.
    f : float
        The less conservative F_F of Iman and Davenport; infinite where all data sets agree on one order.
    p_value : float
        Probability that chance alone gives such an F_F or a larger one.
    critical_value : float
        F_F from here on is significant; NaN where no F_F is: so few data sets could not prove anything.
    degrees : tuple of int
        Degrees of freedom of F_F.
    average_ranks : array, shape (n_methods,)
        Tied methods share the mean of their ranks.
    distribution : {"exact", "permutation", "F"}
        Where `p_value` and `critical_value` come from: all orders of the methods on every data set, counted; a seeded
        sample of them; or the F distribution, good for many data sets only.
    smallest_p_value : float
        The smallest p-value that these data sets and methods could have given.

    Examples
    --------
    >>> from rbrl.statistics import friedman
    >>> losses = [[0.3, 0.2, 0.1], [0.4, 0.3, 0.2], [0.3, 0.3, 0.1], [0.5, 0.4, 0.2]]  # data sets x methods
    >>> found = friedman(losses, greater_is_better=False)
    >>> found.average_ranks.tolist(), found.distribution, found.significant
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
        """Whether the methods differ more than by chance."""
        return self.f >= self.critical_value

    @property
    def decidable(self) -> bool:
        """Whether any outcome at all would have been significant."""
        return not np.isnan(self.critical_value)


def friedman(values: ArrayLike, greater_is_better: bool, alpha: float = 0.05) -> FriedmanResult:
    r"""Friedman's test over data sets, with the F statistic of Iman and Davenport.

    .. math:: \chi_F^2 = \frac{12 N}{k (k+1)} \Bigl(\sum_j R_j^2 - \frac{k (k+1)^2}{4}\Bigr), \qquad
        F_F = \frac{(N-1) \chi_F^2}{N (k-1) - \chi_F^2}

    for k methods with average ranks R on N data sets. There is no correction for ties, as in the paper and in
    Demšar's text; the corrected statistic is larger where there are ties.

    The p-value is exact where all orders of the methods on every data set can be counted: up to hundreds of data sets
    for two methods, 120 for three, 27 for four, ten for five, five for six, three for seven, two for eight and nine.
    Otherwise fewer than ten data sets are judged by 99,999 random orders (with a fixed seed), and ten or more by the F
    distribution, whose true level is 0.052 where 0.05 is asked for nine methods on ten. The first two hold with ties,
    too: a data set keeps its ties in every order.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric.
    greater_is_better : bool
        Direction of the metric.
    alpha : float, default=0.05
        Level of the critical value.

    Returns
    -------
    FriedmanResult

    Examples
    --------
    Two data sets that agree on the order of four methods do so by chance once in 24 times.

    >>> from rbrl.statistics import friedman
    >>> result = friedman([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]], greater_is_better=False)
    >>> result.f, round(1 / result.p_value)
    (inf, 24)
    """
    n_datasets, n_methods = as_table(values).shape
    if n_datasets < 2:
        raise ValueError(f"Friedman's test needs at least two data sets. Got {n_datasets} instead.")
    # Twice the distance from the mean rank is a whole number, so that equal statistics compare as equal.
    ranked = ranks(values, greater_is_better)
    doubled = np.rint(2 * ranked).astype(np.int64) - (n_methods + 1)
    total = int(np.sum(doubled.sum(axis=0) ** 2))
    chi2 = 3 * total / (n_methods * (n_methods + 1) * n_datasets)
    f = _iman_davenport(total, n_datasets, n_methods)
    degrees = (n_methods - 1, (n_methods - 1) * (n_datasets - 1))
    chance = _by_chance(tuple(sorted(tuple(sorted(row)) for row in doubled.tolist())))
    if chance is None:
        source, critical = "F", float(fdtri(*degrees, 1 - alpha))
        smallest = exp((1 - n_datasets) * lgamma(n_methods + 1))  # all agree; the F distribution would say 0
        p_value = max(smallest, float(fdtrc(*degrees, f)))
    else:
        source, p_value, smallest = chance.source, chance.tail(total), chance.smallest
        critical = _iman_davenport(chance.first_below(alpha), n_datasets, n_methods)
    chi2_p_value, means = float(chdtrc(degrees[0], chi2)), ranked.mean(axis=0)
    return FriedmanResult(chi2, chi2_p_value, f, p_value, critical, degrees, means, source, smallest)


def _iman_davenport(total: int | None, n_datasets: int, n_methods: int) -> float:
    """F_F of a sum over methods of (twice the distance of a rank sum from its mean) squared; NaN without one."""
    if total is None:
        return float("nan")
    rest = n_datasets**2 * n_methods * (n_methods**2 - 1) - 3 * total
    return (n_datasets - 1) * 3 * total / rest if rest else float("inf")


class _Chance(NamedTuple):
    """What the total of squares is where every order of the methods is as likely as any other.

    Attributes
    ----------
    totals : array of int
        That occur, ascending.
    tails : array
        Probability of each, or of a larger one.
    source : {"exact", "permutation"}
    """

    totals: IntArray
    tails: FloatArray
    source: str

    @property
    def smallest(self) -> float:
        """The smallest probability there is: of the largest total, or of one larger than all that were drawn."""
        return float(self.tails[-1]) if self.source == "exact" else 1 / (N_DRAWN + 1)

    def tail(self, total: int) -> float:
        """Probability of `total` or more."""
        i = np.searchsorted(self.totals, total)
        return float(self.tails[i]) if i < len(self.tails) else self.smallest

    def first_below(self, alpha: float) -> int | None:
        """The first total that is significant, if there is one."""
        below = np.flatnonzero(self.tails <= alpha)
        return int(self.totals[below[0]]) if len(below) else None


@lru_cache(maxsize=64)
def _by_chance(rows: tuple[Doubled, ...]) -> _Chance | None:
    """The distribution of the total for data sets with these doubled ranks, each sorted; None if F must do."""
    counted = _counted(rows)
    if counted is None and len(rows) >= FEW_DATASETS:
        return None
    return counted or _drawn(rows)


def _counted(rows: tuple[Doubled, ...]) -> _Chance | None:
    """All orders on all data sets; None if they are too many.

    The methods are exchangeable, so rank sums that are a permutation of each other are one state.
    """
    n_methods, base = len(rows[0]), 2 * len(rows) * len(rows[0])  # every sum of doubled ranks is within half the base
    if n_methods > MOST_METHODS:
        return None
    states: IntArray = np.array([rows[0]], dtype=np.int32)
    mass: Array = np.ones(1)  # the probability of each state
    work = 0
    for row in rows[1:-1]:
        work += len(states) * _n_orders(row)
        if work > COUNTED or base**n_methods > np.iinfo(np.int64).max:
            return None
        orders = _orders(row)
        sums = np.sort((states[:, None] + orders).reshape(-1, n_methods), axis=1)
        keys = (sums + base // 2) @ (base ** np.arange(n_methods))
        _, first, state = np.unique(keys, return_index=True, return_inverse=True)
        states = sums[first]
        mass = np.bincount(state, np.repeat(mass / len(orders), len(orders)))
    if len(states) * _n_orders(rows[-1]) > LAST:
        return None
    orders = _orders(rows[-1])
    squares = np.sum(states.astype(np.int64) ** 2, axis=1)[:, None] + np.sum(np.square(rows[-1]))
    totals = squares + (2.0 * states @ orders.T).astype(np.int64)
    masses = np.bincount(totals.ravel(), np.repeat(mass / len(orders), len(orders)))
    found = np.flatnonzero(masses)
    # From the small end, so that a tail of 1e-12 keeps its digits.
    return _Chance(found, np.minimum(1.0, np.cumsum(masses[found][::-1])[::-1]), "exact")


def _n_orders(row: Doubled) -> int:
    """Different orders of some numbers, of which some may be equal."""
    return factorial(len(row)) // prod(factorial(row.count(value)) for value in set(row))


@lru_cache(maxsize=8)
def _orders(row: Doubled) -> IntArray:
    """The different orders of some numbers, one per line."""
    known: dict[Doubled, IntArray] = {(): np.zeros((1, 0), dtype=np.int32)}
    for n in range(1, len(row) + 1):
        for some in sorted(set(combinations(row, n))):
            places = [some.index(value) for value in sorted(set(some))]
            tails = [known[some[:i] + some[i + 1 :]] for i in places]
            known[some] = np.vstack([np.insert(tail, 0, some[i], axis=1) for i, tail in zip(places, tails)])
    return known[row]


def _drawn(rows: tuple[Doubled, ...]) -> _Chance:
    """A sample of orders, and the observed one with it: the p-value is never 0, and never too small on average."""
    rng = np.random.default_rng(SEED)
    sums = np.zeros((N_DRAWN, len(rows[0])), dtype=np.int64)
    for row in rows:
        sums += rng.permuted(np.tile(row, (N_DRAWN, 1)), axis=1)
    found, counts = np.unique(np.sum(sums**2, axis=1), return_counts=True)
    return _Chance(found, (np.cumsum(counts[::-1])[::-1] + 1) / (N_DRAWN + 1), "permutation")
