"""Kernel models over a rounded spectrum: what is reported holds for the kernel itself."""

import itertools

import numpy as np
import pytest

from problems import random_gram, random_labels, rbrl_loss
from rbrl import RBRLClassifier
from rbrl.designs import SpectralDesign
from rbrl.objective import Objective
from rbrl.solvers import APG, QuasiNewton, kernel_precision, solve_kernel
from rbrl.solvers.certificate import kernel_bound

WEIGHTS = list(itertools.product((1e-4, 1e-2, 1.0, 1e2), (0.0, 1.0), (0.0, 1e-2, 10.0)))


@pytest.fixture(autouse=True)
def always_try(monkeypatch):
    """Small kernels are rounded too."""
    monkeypatch.setattr(kernel_precision, "SMALLEST", 1)


def problem(ridge, ranking, nuclear, seed=0, n=40, l=4):
    rng = np.random.default_rng(seed)
    K, Y = random_gram(rng, n), random_labels(rng, n, l)
    weights = None if seed % 2 else rng.random(n) + 0.1
    return K, lambda design: Objective(design, Y, rbrl_loss(ranking), ridge, nuclear, weights)


def value_for(K, objective, A):
    """The objective by its definition."""
    scores = K @ A
    loss = objective.loss.value(objective.Y, scores, objective.sample_weight)
    singular = np.linalg.svd(A, compute_uv=False).sum()
    return loss + 0.5 * objective.ridge.weight * np.sum(A * scores) + objective.nuclear.weight * singular


@pytest.mark.filterwarnings("ignore:The quasi-Newton solver stopped")
@pytest.mark.parametrize(("seed", "tol"), [(0, 1e-3), (1, 1e-5)])
def test_the_gap_is_never_below_the_true_gap(seed, tol):
    for lambdas in WEIGHTS:
        K, objective_of = problem(*lambdas, seed=seed)
        design, result = solve_kernel(QuasiNewton(), K.copy(), "coefficients", lambdas[0], objective_of, tol=tol)
        value = value_for(K, objective_of(design), design.coefficients(result.weights))
        optimum = QuasiNewton().solve(objective_of(SpectralDesign(K.copy())), tol=1e-10).objective
        assert value == pytest.approx(result.objective, rel=1e-9)
        assert value / optimum - 1 <= result.gap + 1e-9, lambdas
        assert result.gap <= tol, lambdas


def test_the_bound_holds_anywhere():
    rng = np.random.default_rng(3)
    for lambdas in WEIGHTS:
        K, objective_of = problem(*lambdas)
        optimum = QuasiNewton().solve(objective_of(SpectralDesign(K.copy())), tol=1e-8).objective
        objective = objective_of(SpectralDesign(K.astype(np.float32)))
        for W in (objective.zeros(), rng.standard_normal(objective.shape), 1e3 * rng.standard_normal(objective.shape)):
            loss, residual = objective.loss.evaluate(
                objective.Y, K @ objective.design.coefficients(W), objective.sample_weight
            )
            assert kernel_bound(objective, K, W, loss, residual) <= optimum * (1 + 1e-9)


def test_a_large_ridge_needs_single_precision_only():
    K, objective_of = problem(1.0, 0.1, 0.1)
    design, result = solve_kernel(QuasiNewton(), K.copy(), "coefficients", 1.0, objective_of, tol=1e-4)
    assert result.converged
    assert not np.array_equal(design.s, SpectralDesign(K.copy()).s)


@pytest.mark.parametrize("ridge", [1e-8, 1e-3])
def test_double_precision_where_single_does_not_do(monkeypatch, ridge):
    monkeypatch.setattr(kernel_precision, "FINEST", 0.0)
    K, objective_of = problem(ridge, 0.1, 0.1)
    design, result = solve_kernel(QuasiNewton(), K.copy(), "coefficients", ridge, objective_of, tol=1e-8)
    assert result.gap <= 1e-8
    np.testing.assert_array_equal(design.s, SpectralDesign(K.copy()).s)


def test_other_solvers_and_the_low_rank_function_are_as_ever():
    K, objective_of = problem(1.0, 0.1, 0.1)
    for solver, low_rank in ((APG(restart=True), "coefficients"), (QuasiNewton(), "function")):
        design, result = solve_kernel(solver, K.copy(), low_rank, 1.0, objective_of, tol=1e-3)
        np.testing.assert_array_equal(design.s, SpectralDesign(K.copy(), low_rank).s)
        assert result.converged


def test_the_estimator_is_the_same_in_either_precision(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    Y = X @ rng.standard_normal((5, 3)) + 0.3 * rng.standard_normal((60, 3)) > 0
    single = RBRLClassifier(kernel="rbf", tol=1e-6).fit(X, Y)
    monkeypatch.setattr(kernel_precision, "SMALLEST", 10**9)
    double = RBRLClassifier(kernel="rbf", tol=1e-6).fit(X, Y)
    assert single.gap_ <= 1e-6
    assert not np.array_equal(single.dual_coef_, double.dual_coef_)
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=2e-3)
