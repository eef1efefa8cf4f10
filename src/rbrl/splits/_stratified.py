"""Splits that keep the frequency of every label, as scikit-learn splitters."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import BaseCrossValidator

from rbrl.exceptions import InvalidLabelsError
from rbrl.splits._dealing import deal_samples
from rbrl.splits._random import check_n_splits, train_size


class IterativeStratifiedKFold(BaseCrossValidator):
    """Folds in which every label is as frequent as in the whole, by iterative stratification.

    The samples of the rarest label are dealt out first, each to the fold that still lacks it most; then those of the
    label that is then rarest, and so on. Where that leaves a label uneven, samples of two folds change places as long
    as it helps. Folds differ by at most one sample in size.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    random_state : int, Generator, RandomState or None, default=None
        Decides ties and the order of samples. An int gives the same folds at every call.

    References
    ----------
    K. Sechidis, G. Tsoumakas, I. Vlahavas: On the stratification of multi-label data. ECML PKDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0], [0, 1]] * 10)
    >>> folds = IterativeStratifiedKFold(n_splits=2, random_state=0)
    >>> [Y[test].sum(axis=0).tolist() for _, test in folds.split(Y, Y)]
    [[5, 5], [5, 5]]
    """

    def __init__(self, n_splits: int = 5, random_state: Any = None):
        self.n_splits = check_n_splits(n_splits, at_least=2)
        self.random_state = random_state

    def get_n_splits(self, X=None, y=None, groups=None) -> int:
        """Number of folds."""
        return self.n_splits

    def split(self, X, y, groups=None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (train, test) indices, sorted; y holds the labels, dense or sparse, and groups are not looked at."""
        Y = _relevant(X, y)
        n_samples = Y.shape[0]
        if self.n_splits > n_samples:
            raise ValueError(f"n_splits={self.n_splits} folds need as many samples. Got {n_samples} instead.")
        sizes = np.full(self.n_splits, n_samples // self.n_splits)
        sizes[: n_samples % self.n_splits] += 1
        fold = deal_samples(Y, sizes, _generator(self.random_state))
        for i in range(self.n_splits):
            yield np.flatnonzero(fold != i), np.flatnonzero(fold == i)


class IterativeStratifiedShuffleSplit(BaseCrossValidator):
    """Repeated splits in which every label is as frequent in both parts as in the whole.

    See `IterativeStratifiedKFold` for the method. The parts have exactly the sizes of `random_split`.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits.
    train_fraction : float, default=0.6
        Share of the training part.
    random_state : int, Generator, RandomState or None, default=None
        An int gives the same splits at every call; the splits of one call differ from each other.
    """

    def __init__(self, n_splits: int = 10, train_fraction: float = 0.6, random_state: Any = None):
        self.n_splits = check_n_splits(n_splits, at_least=1)
        self.train_fraction = train_fraction
        self.random_state = random_state

    def get_n_splits(self, X=None, y=None, groups=None) -> int:
        """Number of splits."""
        return self.n_splits

    def split(self, X, y, groups=None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (train, test) indices, sorted; y holds the labels, dense or sparse, and groups are not looked at."""
        Y = _relevant(X, y)
        n_train = train_size(Y.shape[0], self.train_fraction)
        rng = _generator(self.random_state)
        for _ in range(self.n_splits):
            part = deal_samples(Y, np.array([n_train, Y.shape[0] - n_train]), rng)
            yield np.flatnonzero(part == 0), np.flatnonzero(part == 1)


def _generator(random_state):
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)


def _relevant(X, y):
    """Positive entries of the labels, as a CSR matrix; 0/1 and -1/+1 are both understood."""
    Y = y if sparse.issparse(y) else np.asarray(y)
    if Y.ndim != 2:
        raise InvalidLabelsError(
            f"Multi-label stratification needs y of shape n_samples x n_labels. Got shape {Y.shape} instead; "
            "for one label per sample use scikit-learn's StratifiedKFold."
        )
    if np.shape(X)[0] != Y.shape[0]:
        raise ValueError(f"X and y must have as many rows. Got {np.shape(X)[0]} and {Y.shape[0]} instead.")
    return sparse.csr_array(Y > 0)
