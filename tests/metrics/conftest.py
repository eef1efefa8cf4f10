"""Predictions with ties, empty and full rows, and labels that nobody or everybody has."""

import numpy as np
import pytest


def _random_prediction(rng, n_samples=None, n_labels=None):
    """Labels, predicted labels and scores with many ties."""
    n_samples = n_samples or int(rng.integers(1, 9))
    n_labels = n_labels or int(rng.integers(2, 8))
    shape = (n_samples, n_labels)
    Y = (rng.random(shape) < rng.choice([0.05, 0.3, 0.6, 0.95])).astype(int)
    labels = (rng.random(shape) < rng.choice([0.05, 0.3, 0.6, 0.95])).astype(int)
    scores = rng.integers(-2, 3, size=shape) / 2 if rng.random() < 0.5 else rng.standard_normal(shape)
    return Y, labels, scores


@pytest.fixture(scope="session")
def random_prediction():
    """The function that draws a small prediction."""
    return _random_prediction


@pytest.fixture
def prediction():
    """A prediction of 60 samples and 7 labels, with an empty row and a full one."""
    Y, labels, scores = _random_prediction(np.random.default_rng(3), 60, 7)
    Y[0], Y[1] = 0, 1
    return Y, labels, np.round(scores, 1)
