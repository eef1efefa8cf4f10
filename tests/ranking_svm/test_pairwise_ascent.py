"""Ranking SVMs are solved: bounds hold, both methods agree, free biases are balanced."""

import numpy as np
import pytest
from scipy.optimize import linprog

from problems import random_labels
from rbrl.ranking_svm.pairs import (
    FeatureRows,
    GramRows,
    balance,
    calibrated_pairs,
    choose_rows,
    ranking_pairs,
    zero_label_pairs,
)
from rbrl.ranking_svm.pairwise_ascent import solve_pairs

BUILDERS = (ranking_pairs, zero_label_pairs, calibrated_pairs)
every_problem = pytest.mark.parametrize("build", BUILDERS)
every_lift = pytest.mark.parametrize("lift", [0.0, 1.0, np.inf])


def problem(build, C=1.0, n=30, m=5, l=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, m)), build(random_labels(rng, n, l), C)


def primal(X, pairs, lift, W, b):
    penalty = np.sum(W**2) + (np.sum(b**2) / lift if lift else 0.0)
    return 0.5 * penalty + pairs.value(X @ W + b)


@every_problem
@every_lift
@pytest.mark.parametrize("C", [1e-3, 1.0, 10.0])
def test_sweeps_and_interior_points_agree(build, lift, C):
    X, pairs = problem(build, C)
    options = {"tol": 1e-7, "max_iter": 200_000}
    sweeps = solve_pairs(GramRows(X @ X.T), pairs, lift, **options, patience=200_000)
    inside = solve_pairs(FeatureRows(X), pairs, lift, **options, patience=0)
    assert max(sweeps.gap, inside.gap) <= 1e-7
    assert inside.n_iter < 200
    assert sweeps.objective == pytest.approx(inside.objective, rel=1e-6)
    for result, W in ((sweeps, X.T @ sweeps.weights), (inside, inside.weights)):
        assert result.objective == pytest.approx(primal(X, pairs, lift, W, result.biases), rel=1e-9)
    np.testing.assert_allclose(X.T @ sweeps.weights, inside.weights, atol=2e-2)


@every_problem
@every_lift
def test_a_large_c_is_left_to_interior_points(build, lift):
    X, pairs = problem(build, 1e4)
    result = solve_pairs(FeatureRows(X), pairs, lift)
    assert result.gap <= 1e-3
    assert result.n_iter < 400


@every_problem
@every_lift
def test_the_dual_value_is_below_every_primal_one(build, lift):
    X, pairs = problem(build, seed=1)
    rng = np.random.default_rng(1)
    best = solve_pairs(FeatureRows(X), pairs, lift, tol=1e-8)
    W = best.weights
    duals = [solve_pairs(FeatureRows(X), pairs, lift, tol=1e-8, max_iter=k).dual_objective for k in (1, 3, 30)]
    for size in (0.0, 1e-6, 1e-2, 1.0):
        noisy = primal(X, pairs, lift, W + size * rng.standard_normal(W.shape), best.biases * (1 + size))
        assert max(*duals, best.dual_objective) <= noisy * (1 + 1e-12)


@every_problem
@pytest.mark.parametrize("cap", [1e-4, 1.0, 1e4])
def test_balanced_variables_meet_box_and_constraints(build, cap):
    X, pairs = problem(build, cap, seed=2)
    rng = np.random.default_rng(2)
    F = 3 * rng.standard_normal((len(X), pairs.n_labels))
    alpha = rng.random(len(pairs.cap)) * pairs.cap
    new, _, imbalance = balance(pairs, F, np.zeros(pairs.n_labels), alpha, np.full(len(X), min(cap, 1.0)))
    assert imbalance <= 1e-11 * new.sum()
    np.testing.assert_allclose(pairs.coefficients(new).sum(axis=0), 0, atol=1e-11 * new.sum())
    assert np.all((new >= 0) & (new <= pairs.cap))


def test_free_biases_of_vanishing_weights_are_a_linear_programme():
    """With C near 0 the weights vanish, and biases minimise the hinges: a linear programme in biases and slacks."""
    X, pairs = problem(ranking_pairs, 1e-6, n=40)
    differences = np.zeros((len(pairs.cap), pairs.n_labels))
    differences[np.arange(len(pairs.cap)), pairs.winner] = 1
    differences[np.arange(len(pairs.cap)), pairs.loser] -= 1
    best = linprog(
        np.r_[np.zeros(pairs.n_labels), pairs.cap],
        A_ub=-np.hstack([differences, np.eye(len(pairs.cap))]),
        b_ub=-pairs.margin,
        bounds=[(None, None)] * pairs.n_labels + [(0, None)] * len(pairs.cap),
    ).fun
    result = solve_pairs(GramRows(X @ X.T), pairs, np.inf, tol=1e-4)
    assert result.objective == pytest.approx(best, rel=2e-4)


@pytest.mark.parametrize("seed", range(12))
def test_nested_labels_need_biases_only(seed):
    """No row has the later of two labels without the earlier: the optimum is 0, where rounding alone is left to sum up."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((16, 4))
    labels = np.where(X[:, :1] > np.sort(rng.uniform(-1, 1, 100)), 1, -1).astype(np.int8)
    result = solve_pairs(GramRows(X @ X.T), ranking_pairs(labels, 1.0), np.inf, tol=1e-4, max_iter=100)
    assert (result.converged, result.gap, result.objective) == (True, 0.0, 0.0)


def test_a_label_that_is_never_relevant_is_pushed_down():
    rng = np.random.default_rng(0)
    Y = random_labels(rng, 30, 4)
    Y[:, 3] = -1
    result = solve_pairs(GramRows(np.eye(30)), ranking_pairs(Y, 1.0), np.inf, tol=1e-6)
    assert result.gap <= 1e-6
    assert result.biases.argmin() == 3


@pytest.mark.parametrize(("shape", "kind"), [((10, 200), GramRows), ((200, 10), FeatureRows)])
def test_rows_of_the_shorter_sweep_are_chosen(shape, kind):
    assert isinstance(choose_rows(np.ones(shape)), kind)


def test_no_pairs_are_solved_by_nothing():
    result = solve_pairs(GramRows(np.eye(3)), ranking_pairs(np.ones((3, 2), np.int8), 1.0), np.inf)
    assert (result.objective, result.gap, result.n_iter) == (0, 0, 0)


def test_stopping_early_is_part_of_the_result():
    X, pairs = problem(ranking_pairs, 1e4)
    assert not solve_pairs(GramRows(X @ X.T), pairs, 1.0, tol=1e-9, max_iter=5).converged
