"""Seeded random splits."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator


def random_split(n_samples: int, seed: Any, train_fraction: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """Split samples at random into a training and a test part.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    seed : int or numpy.random.Generator
        The same seed gives the same split on every machine.
    train_fraction : float, default=0.6
        Share of the training part, rounded to whole samples.

    Returns
    -------
    train, test : arrays of int64
        Sorted indices.

    Examples
    --------
    >>> train, test = random_split(5, seed=0)
    >>> train, test
    (array([2, 3, 4]), array([0, 1]))
    """
    n_train = train_size(n_samples, train_fraction)
    order = np.random.default_rng(seed).permutation(n_samples)
    return np.sort(order[:n_train]), np.sort(order[n_train:])


def train_size(n_samples: int, train_fraction: float) -> int:
    """Whole number of training samples; refuse a part without samples."""
    if not 0 < train_fraction < 1:
        raise ValueError(f"train_fraction must lie between 0 and 1, both excluded. Got {train_fraction!r} instead.")
    n_train = round(train_fraction * n_samples)
    if not 0 < n_train < n_samples:
        raise ValueError(
            f"A split needs a sample in each part: with n_samples={n_samples} and train_fraction={train_fraction} "
            f"the training part has {n_train}."
        )
    return n_train


class RandomSplits(BaseCrossValidator):
    """Repeated random splits, the paper's protocol: ten of 60 % for training and 40 % for testing.

    Split i is ``random_split(n_samples, random_state + i, train_fraction)``, so each can be had alone.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits.
    train_fraction : float, default=0.6
        Share of the training part.
    random_state : int, default=0
        Seed of the first split.
    """

    def __init__(self, n_splits: int = 10, train_fraction: float = 0.6, random_state: int = 0):
        self.n_splits = check_n_splits(n_splits, at_least=1)
        self.train_fraction = train_fraction
        self.random_state = random_state

    def get_n_splits(self, X=None, y=None, groups=None) -> int:
        """Number of splits."""
        return self.n_splits

    def split(self, X, y=None, groups=None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (train, test) indices; y and groups are not looked at."""
        for i in range(self.n_splits):
            yield random_split(np.shape(X)[0], self.random_state + i, self.train_fraction)


def check_n_splits(n_splits: int, at_least: int) -> int:
    """Refuse numbers of splits that make no sense."""
    if n_splits != int(n_splits) or n_splits < at_least:
        raise ValueError(f"n_splits must be a whole number of at least {at_least}. Got {n_splits!r} instead.")
    return int(n_splits)
