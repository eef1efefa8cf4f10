"""Seeded splits."""

import numpy as np


def random_split(n_samples, seed, train_fraction=0.6):
    """Return sorted (train, test) row indexes, drawn at random with `seed`."""
    order = np.random.default_rng(seed).permutation(n_samples)
    n_train = round(train_fraction * n_samples)
    return np.sort(order[:n_train]), np.sort(order[n_train:])
