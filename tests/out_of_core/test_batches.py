"""Steps of batches: exact where the model is, and never wild."""

import numpy as np
import pytest
from scipy import sparse

from problems import random_labels, rbrl_loss
from rbrl.losses import SquaredHinge
from rbrl.out_of_core.batches import BatchSteps
from rbrl.problem import eigen_design, with_constant
from rbrl.problem.objective import Objective
from rbrl.solvers import QuasiNewton


def rows(n=600, m=12, l=4, seed=0):
    """Correlated features, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)) @ rng.standard_normal((m, m)) + 1.0
    scores = X @ rng.standard_normal((m, l)) + 15.0 * rng.standard_normal((n, l))
    return X, np.where(scores > np.quantile(scores, 0.6, axis=0), 1, -1).astype(np.int8)


def learned(X, Y, size, ridge=1.0, nuclear=0.1, loss=None):
    steps = BatchSteps.begin(X[:size], Y.shape[1], intercept=True)
    for start in range(0, len(Y), size):
        steps.learn(X[start : start + size], Y[start : start + size], loss or rbrl_loss(0.1), ridge, nuclear)
    return steps


def distance(steps, X, Y, ridge=1.0, nuclear=0.1):
    """Relative distance of the objective from its optimum, and that of the zero weights."""
    objective = Objective(eigen_design(with_constant(X)), Y, rbrl_loss(0.1), ridge, nuclear)
    best = QuasiNewton().solve(objective, tol=1e-6).objective
    W = objective.design.weights(steps.coefficients())
    return objective.value(W) / best - 1, objective.value(objective.zeros()) / best - 1


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_first_step_is_exact_where_the_model_is(storage, weighted, monkeypatch):
    """All directions known, one batch, the squared hinge at zero scores: ridge regression of the signs."""
    monkeypatch.setattr(BatchSteps, "PRIOR_ROWS", 0)
    X, Y = rows()
    w = np.random.default_rng(1).integers(1, 4, len(Y)).astype(float) if weighted else np.ones(len(Y))
    Z = np.hstack([X, np.ones((len(X), 1))])
    root = np.sqrt(w)[:, None]
    expected = np.linalg.solve((root * Z).T @ (root * Z) + 2.0 * np.eye(13), (w[:, None] * Z).T @ Y)
    steps = BatchSteps.begin(storage(root * X), 4, intercept=True)
    steps.directions = np.linalg.svd(root * Z)[2].T
    steps.spread = np.zeros(13)
    steps.learn(storage(X), Y, SquaredHinge(), 2.0, 0.0, w if weighted else None)
    np.testing.assert_allclose(steps.coefficients(), expected, atol=1e-8)


@pytest.mark.parametrize("size", [1, 20, 150])
def test_one_pass_comes_near_the_optimum(size):
    X, Y = rows()
    steps = learned(X, Y, size)
    reached, at_zero = distance(steps, X, Y)
    assert steps.n_samples == 600
    assert reached < 0.15 * at_zero


def test_more_rows_come_nearer():
    distances = [distance(learned(*rows(n), 50), *rows(n))[0] for n in (100, 1000, 10_000)]
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 0.005


def test_a_poor_model_makes_short_steps():
    """Without leading directions the columns look independent; they are not, and steps of full length would explode."""
    rng = np.random.default_rng(0)
    X = rng.random((2000, 1)) + 0.1 * rng.random((2000, 40))
    Y = random_labels(rng, 2000, 4)
    blind = BatchSteps.begin(X[:50], 4, intercept=True)
    blind.directions, blind.spread = np.eye(41)[:, :1], np.zeros(1)
    for start in range(0, 2000, 50):
        blind.learn(X[start : start + 50], Y[start : start + 50], rbrl_loss(0.1), 1.0, 0.1)
    assert blind.excess > 5
    reached, at_zero = distance(blind, X, Y)
    assert reached < at_zero


def test_a_large_nuclear_norm_is_felt():
    X, Y = rows(4000)
    free, bound = (learned(X, Y, 100, nuclear=nuclear) for nuclear in (0.0, 500.0))
    norms = [np.linalg.norm(steps.coefficients(), "nuc") for steps in (free, bound)]
    assert norms[1] < 0.9 * norms[0]
