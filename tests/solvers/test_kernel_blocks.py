"""Kernels block by block: the optimum of the decomposed kernel, certified, without the decomposition."""

import numpy as np
import pytest

from problems import random_gram, random_labels, rbrl_loss
from rbrl import RBRLClassifier
from rbrl.estimators import convex_problem as estimator_module
from rbrl.estimators import kernel_model
from rbrl.problem import BlockKernel, SpectralDesign
from rbrl.problem import kernel as block_kernel
from rbrl.problem.objective import Objective
from rbrl.solvers import KernelBlocks, QuasiNewton


def block_design(K):
    return BlockKernel(lambda rows: K[rows], len(K))


def test_products_and_leading_spectrum_are_those_of_the_matrix(monkeypatch):
    monkeypatch.setattr(block_kernel, "BLOCK_ENTRIES", 30 * 7)
    rng = np.random.default_rng(0)
    K, A = random_gram(rng, 30), rng.standard_normal((30, 3))
    design = block_design(K)
    np.testing.assert_allclose(design.scores(A), K @ A, atol=1e-5)
    assert design.columns == 3
    values, U, rest = design.leading(24)
    s, Q = np.linalg.eigh(K)
    np.testing.assert_allclose(values[:5], s[::-1][:5], rtol=1e-5)
    np.testing.assert_allclose(np.abs(U[:, :3].T @ Q[:, ::-1][:, :3]), np.eye(3), atol=1e-4)
    assert rest == pytest.approx((np.trace(K) - values.sum()) / 6, abs=1e-6)


@pytest.mark.parametrize("entries", [False, True])
@pytest.mark.parametrize("leading", [3, 200])
@pytest.mark.parametrize("lambdas", [(1.0, 0.5, 0.3), (0.1, 1.0, 3.0), (1.0, 0.0, 0.0), (0.5, 0.1, 20.0)], ids=str)
def test_it_ends_at_the_certified_optimum(lambdas, leading, entries):
    rng = np.random.default_rng(1)
    K, Y = random_gram(rng, 40).astype(np.float32).astype(float), random_labels(rng, 40, 5)
    ridge, ranking, nuclear = lambdas
    weights = rng.random(40)
    if entries:
        Y[rng.random(Y.shape) < 0.3] = 0
        weights = rng.random(Y.shape)
    exact = Objective(SpectralDesign(K.copy(), "function"), Y, rbrl_loss(ranking), ridge, nuclear, weights)
    optimum = QuasiNewton().solve(exact, tol=1e-8)
    result = KernelBlocks(leading=leading).solve(
        Objective(block_design(K), Y, rbrl_loss(ranking), ridge, nuclear, weights), tol=1e-5, max_iter=3000
    )
    assert result.gap <= 1e-5
    assert result.objective == pytest.approx(optimum.objective, rel=2e-5)
    assert result.objective >= optimum.objective * (1 - 1e-7)
    assert exact.value(exact.design.weights(result.weights)) == pytest.approx(result.objective, rel=1e-5)
    assert len(result.history) == len(result.costs) == result.n_iter


def test_too_few_iterations_are_said_and_a_start_is_used():
    rng = np.random.default_rng(2)
    K, Y = random_gram(rng, 40), random_labels(rng, 40, 5)
    objective = Objective(block_design(K), Y, rbrl_loss(0.5), 0.1, 0.1)
    (message,) = KernelBlocks().solve(objective, tol=1e-9, max_iter=2).messages
    assert "block kernel solver" in message
    done = KernelBlocks().solve(objective, tol=1e-5)
    assert KernelBlocks().solve(objective, start=done.weights, tol=1e-5).n_iter == 1


def test_the_estimator_turns_to_blocks_where_the_kernel_is_large(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 4))
    Y = (X @ rng.standard_normal((4, 3)) > 0).astype(int)
    model = RBRLClassifier(kernel="rbf", low_rank="function", tol=1e-6)
    small = model.fit(X, Y).decision_function(X)
    monkeypatch.setattr(estimator_module, "LARGEST_DECOMPOSITION", 50)
    monkeypatch.setattr(estimator_module, "SpectralDesign", None)
    monkeypatch.setattr(estimator_module, "solve_kernel", None)
    monkeypatch.setattr(kernel_model, "BLOCK_ENTRIES", 60 * 7)
    model.fit(X, Y)
    assert model.gap_ <= 1e-6
    assert model.dual_coef_.shape == (60, 3)
    np.testing.assert_allclose(model.decision_function(X), small, atol=1e-2)
