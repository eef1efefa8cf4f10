"""Seeded splits of samples: at random, or stratified by label."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.model_selection import BaseCrossValidator

from rbrl._common.frames import fill_masked_entries
from rbrl._common.typing import FloatArray, IntArray, MatrixLike
from rbrl.exceptions import InvalidLabelsError

__all__ = ["IterativeStratifiedKFold", "IterativeStratifiedShuffleSplit", "RandomSplits", "random_split"]

# Indices of the training samples and of the test samples.
Split: TypeAlias = tuple[IntArray, IntArray]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None

# Number of samples of each part that an exchange between two parts considers, and number of rounds
# over all pairs of parts.
_EXCHANGE_CANDIDATES = 50
_EXCHANGE_ROUNDS = 3
# Exchanges visit every pair of parts. With more parts than this they would take too long.
_MAX_EXCHANGE_PARTS = 30


def random_split(n_samples: int, seed: int | np.random.Generator, train_fraction: float = 0.6) -> Split:
    """Split samples at random into a training and a test part.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    seed : int or numpy.random.Generator
        Seed of the split. The same seed gives the same split on every machine.
    train_fraction : float, default=0.6
        Share of the training part, rounded to whole samples.

    Returns
    -------
    train, test : arrays of int64
        Sorted indices.

    Examples
    --------
    >>> from rbrl.splits import random_split
    >>> train, test = random_split(5, seed=0)
    >>> train, test
    (array([2, 3, 4]), array([0, 1]))
    """
    n_train = _train_size(n_samples, train_fraction)
    order = np.random.default_rng(seed).permutation(n_samples)
    return np.sort(order[:n_train]), np.sort(order[n_train:])


def _train_size(n_samples: int, train_fraction: float) -> int:
    """Return the number of training samples, rounded half to even.

    It raises ValueError if the share is not between 0 and 1, or if a part would be empty.
    """
    if not 0 < train_fraction < 1:
        raise ValueError(f"train_fraction must lie between 0 and 1, both excluded. Got {train_fraction!r} instead.")
    n_train = round(train_fraction * n_samples)
    if not 0 < n_train < n_samples:
        raise ValueError(
            f"A split needs a sample in each part: with n_samples={n_samples} and train_fraction={train_fraction} "
            f"the training part has {n_train}."
        )
    return n_train


class _Splitter(BaseCrossValidator):
    """Base class of the splitters, with a fixed number of splits."""

    def __init__(self, n_splits: int, at_least: int = 1):
        if n_splits != int(n_splits) or n_splits < at_least:
            raise ValueError(f"n_splits must be a whole number of at least {at_least}. Got {n_splits!r} instead.")
        self.n_splits = int(n_splits)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits; the arguments are ignored."""
        return self.n_splits


class RandomSplits(_Splitter):
    """Repeated random splits. The paper uses ten, with 60 % of the samples for training.

    Split i is ``random_split(n_samples, random_state + i, train_fraction)``.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits.
    train_fraction : float, default=0.6
        Share of the training part.
    random_state : int, default=0
        Seed of the first split.

    Examples
    --------
    >>> from rbrl.splits import RandomSplits
    >>> [test.tolist() for _, test in RandomSplits(2).split([[0], [1], [2], [3], [4]])]
    [[0, 1], [2, 3]]
    """

    def __init__(self, n_splits: int = 10, train_fraction: float = 0.6, random_state: int = 0):
        super().__init__(n_splits)
        self.train_fraction = train_fraction
        self.random_state = random_state

    def split(self, X: MatrixLike, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield the indices of the training and of the test samples.

        Parameters
        ----------
        X : array-like or sparse matrix
            Samples; only their number is used.
        y, groups : Any
            Ignored.

        Yields
        ------
        train, test : ndarray of int
        """
        for i in range(self.n_splits):
            yield random_split(np.shape(X)[0], self.random_state + i, self.train_fraction)


class IterativeStratifiedKFold(_Splitter):
    """Folds with the same label frequencies as the whole data, by iterative stratification.

    The samples of the rarest label are distributed first, each to the fold that lacks most samples
    of this label. The next label is the rarest one among the remaining samples, and so on. Then
    samples of two folds are exchanged as long as this makes the frequencies more equal. The sizes
    of the folds differ by at most one sample. With more than 30 folds, no samples are exchanged.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    random_state : int, Generator, RandomState or None, default=None
        Seed for ties and for the order of samples. An int gives the same folds at every call.

    References
    ----------
    K. Sechidis, G. Tsoumakas, I. Vlahavas: On the stratification of multi-label data. ECML PKDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.splits import IterativeStratifiedKFold
    >>> Y = np.array([[1, 0], [0, 1]] * 10)
    >>> folds = IterativeStratifiedKFold(n_splits=2, random_state=0)
    >>> [Y[test].sum(axis=0).tolist() for _, test in folds.split(Y, Y)]
    [[5, 5], [5, 5]]
    """

    def __init__(self, n_splits: int = 5, random_state: RandomState = None):
        super().__init__(n_splits, at_least=2)
        self.random_state = random_state

    def split(self, X: MatrixLike, y: MatrixLike, groups: Any = None) -> Iterator[Split]:
        """Yield the sorted indices of the training and of the test samples.

        Parameters
        ----------
        X : array-like or sparse matrix
            Samples; only their number is used.
        y : array-like or sparse matrix of shape (n_samples, n_labels)
            Labels, 0/1 or -1/+1; a missing label (NaN) counts as irrelevant.
        groups : Any
            Ignored.

        Yields
        ------
        train, test : ndarray of int
        """
        Y = _relevant(X, y)
        n_samples = Y.shape[0]
        if self.n_splits > n_samples:
            raise ValueError(f"n_splits={self.n_splits} folds need as many samples. Got {n_samples} instead.")
        sizes = np.bincount(np.arange(n_samples) % self.n_splits)  # as equal as can be, the larger ones first
        fold = _deal_samples(Y, sizes, _generator(self.random_state))
        for i in range(self.n_splits):
            yield np.flatnonzero(fold != i), np.flatnonzero(fold == i)


class IterativeStratifiedShuffleSplit(_Splitter):
    """Repeated splits whose parts have the same label frequencies as the whole data.

    See `IterativeStratifiedKFold` for the method. The sizes of the parts are those of `random_split`.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits.
    train_fraction : float, default=0.6
        Share of the training part.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the splits. An int gives the same splits at every call; the splits of one call
        differ from each other.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.splits import IterativeStratifiedShuffleSplit
    >>> Y = np.array([[1, 0], [0, 1]] * 10)
    >>> (train, test), = IterativeStratifiedShuffleSplit(n_splits=1, random_state=0).split(Y, Y)
    >>> Y[train].sum(axis=0), Y[test].sum(axis=0)
    (array([6, 6]), array([4, 4]))
    """

    def __init__(self, n_splits: int = 10, train_fraction: float = 0.6, random_state: RandomState = None):
        super().__init__(n_splits)
        self.train_fraction = train_fraction
        self.random_state = random_state

    def split(self, X: MatrixLike, y: MatrixLike, groups: Any = None) -> Iterator[Split]:
        """Yield the sorted indices; see :meth:`IterativeStratifiedKFold.split`."""
        Y = _relevant(X, y)
        n_train = _train_size(Y.shape[0], self.train_fraction)
        rng = _generator(self.random_state)
        for _ in range(self.n_splits):
            part = _deal_samples(Y, np.array([n_train, Y.shape[0] - n_train]), rng)
            yield np.flatnonzero(part == 0), np.flatnonzero(part == 1)


def _generator(random_state: RandomState) -> np.random.Generator:
    """Return a Generator: a Generator itself, or a new one seeded by an int, None or RandomState.

    A RandomState is advanced by one number.
    """
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)


def _relevant(X: MatrixLike, y: Any) -> sparse.csr_array:
    """Return the mask of the positive labels as a CSR array of bool, from 0/1 or -1/+1.

    NaN and masked entries count as irrelevant. X only gives the number of rows.
    """
    Y = y if sparse.issparse(y) else np.asarray(fill_masked_entries(y))
    if Y.ndim != 2:
        raise InvalidLabelsError(
            f"Multi-label stratification needs y of shape n_samples x n_labels. Got shape {Y.shape} instead; "
            "for one label per sample use scikit-learn's StratifiedKFold."
        )
    if np.shape(X)[0] != Y.shape[0]:
        raise ValueError(f"X and y must have the same number of rows. Got {np.shape(X)[0]} and {Y.shape[0]} instead.")
    return sparse.csr_array(Y > 0)


def _deal_samples(Y: sparse.csr_array, sizes: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the part of each sample (n_samples,), for parts of given sizes.

    The sizes sum to n_samples. The parts get label counts in proportion to their sizes. `rng` is
    advanced; Y is not changed.
    """
    totals = np.asarray(Y.sum(axis=0)).ravel().astype(np.int64)
    demand = np.outer(sizes / Y.shape[0], totals)
    part = _deal_by_label(Y, sizes, totals, demand, rng)
    if len(sizes) <= _MAX_EXCHANGE_PARTS:
        _exchange_samples(Y.astype(np.float64), part, -demand)
    return part


def _deal_by_label(
    Y: sparse.csr_array, sizes: IntArray, remaining: IntArray, demand: FloatArray, rng: np.random.Generator
) -> IntArray:
    """Distribute the samples of one label after the other; return the part of each sample.

    `remaining` (n_labels,), the numbers of samples without a part, and `demand` (n_parts,
    n_labels), the numbers of samples that the parts still lack, are updated in place. Only the
    demand of the current label and the free places influence its distribution. Therefore the demand
    of the other labels is updated once for each label.
    """
    part = np.full(Y.shape[0], -1)
    free = sizes.astype(float)
    by_label = Y.tocsc()
    tie_break = rng.random(Y.shape[1])
    while np.any(remaining > 0):
        rarest = remaining == remaining[remaining > 0].min()
        label = int(np.argmax(np.where(rarest, tie_break, -1.0)))
        rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        rows = rng.permutation(rows[part[rows] < 0])
        part[rows] = _deal(demand[:, label], free, rng.random((len(rows), len(sizes))))
        columns = Y[rows].indices
        owners = np.repeat(part[rows], np.diff(Y.indptr)[rows])
        np.subtract.at(demand, (owners, columns), 1.0)
        np.subtract.at(remaining, columns, 1)
    unlabelled = rng.permutation(np.flatnonzero(part < 0))
    part[unlabelled] = _deal(np.zeros(len(sizes)), free, rng.random((len(unlabelled), len(sizes))), wanted=0.0)
    return part


def _deal(demand: FloatArray, free: FloatArray, tie_break: FloatArray, wanted: float = 1.0) -> list[int]:
    """Assign each sample to the part with the largest demand; return the parts of the samples.

    Ties go to the part with the most free places, then to the one with the largest entry of
    `tie_break` (n_rows, n_parts). Each sample lowers the demand of its part by `wanted`. `free`
    (n_parts,) is updated in place; `demand` is not.
    """
    demands = demand.tolist()
    places = free.tolist()
    chosen = []
    for random in tie_break.tolist():
        open_parts = [j for j, n in enumerate(places) if n > 0]
        best = max(open_parts, key=lambda j: (demands[j], places[j], random[j]))
        demands[best] -= wanted
        places[best] -= 1
        chosen.append(best)
    free[:] = places
    return chosen


def _exchange_samples(Y: sparse.csr_array, part: IntArray, surplus: FloatArray) -> None:
    """Exchange samples of two parts while this lowers the sum of squared surpluses.

    `part` (n_samples,) and `surplus` (n_parts, n_labels), the label counts minus the wanted ones,
    are updated in place.
    """
    for _ in range(_EXCHANGE_ROUNDS):
        pairs = combinations(range(len(surplus)), 2)
        if not sum(_exchange_between(Y, part, surplus, p, q) for p, q in pairs):
            break


def _exchange_between(Y: sparse.csr_array, part: IntArray, surplus: FloatArray, p: int, q: int) -> int:
    """Exchange samples of parts p and q, and return the number of exchanges.

    `part` and `surplus` are updated in place. With u the difference of the two surpluses, an
    exchange of a (in p) for b (in q) changes the sum of squares by twice u'(b - a) + |b - a|^2.
    """
    pull = Y @ (surplus[p] - surplus[q])
    rows_p = _largest(pull, np.flatnonzero(part == p))
    rows_q = _largest(-pull, np.flatnonzero(part == q))
    # The entries are 0 and 1, so that |a|^2 is the sum of a.
    A, B = (Y[rows].toarray() for rows in (rows_p, rows_q))
    for n_exchanges in range(_EXCHANGE_CANDIDATES):
        u = surplus[p] - surplus[q]
        change = B @ u - (A @ u)[:, None] + (A.sum(axis=1)[:, None] + B.sum(axis=1) - 2 * A @ B.T)
        i, j = np.unravel_index(np.argmin(change), change.shape)
        # Changes are sums of products of shares: less is a rounding error.
        if change[i, j] > -1e-9:
            return n_exchanges
        step = B[j] - A[i]
        surplus[p] += step
        surplus[q] -= step
        A[i], B[j] = B[j].copy(), A[i].copy()
        part[rows_p[i]], part[rows_q[j]] = q, p
        rows_p[i], rows_q[j] = rows_q[j], rows_p[i]
    return _EXCHANGE_CANDIDATES


def _largest(values: FloatArray, members: IntArray) -> IntArray:
    """Return the members with the largest values, largest first, at most `_EXCHANGE_CANDIDATES`.

    `values` has one number for each sample, `members` are indices of samples. Of equal values, the
    first member comes first.
    """
    return members[np.argsort(-values[members], kind="stable")[:_EXCHANGE_CANDIDATES]]
