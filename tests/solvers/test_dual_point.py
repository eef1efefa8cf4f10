"""Lower bounds of ridge models from the size of Z'R, in blocks, against bounds from Z'R as a whole."""

import numpy as np
import pytest
from scipy import sparse

from problems import random_labels, rbrl_loss, row_design
from rbrl._common import environment
from rbrl.problem import MatrixDesign, Objective, with_constant
from rbrl.solvers import DualAscent, certificate, lower_bound
from rbrl.solvers.certificate import Blur, DualPoint, ridge_bound
from rbrl.solvers.proof import prove_linear


def small_blocks(monkeypatch):
    """Make blocks of a few entries, so that a small problem has many of them."""
    monkeypatch.setattr(environment, "SMALLEST_BLOCK", 8)
    monkeypatch.setattr(environment, "LARGEST_BLOCK", 8)
    monkeypatch.setattr(certificate, "SMALLEST_BLOCK", 8)
    monkeypatch.setattr(certificate, "FEWEST_LABELS", 2)


def ridge_problem(n_samples, n_features, is_sparse, constant):
    """Return rows, the norms of their columns with the intercept's, and the objective of a model with an intercept."""
    rng = np.random.default_rng(n_samples)
    X = rng.standard_normal((n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.3)
    X[:, : n_features // 2 + 1] = 0.0
    norms = np.sqrt(np.append((X**2).sum(axis=0), n_samples))
    design = MatrixDesign(with_constant(X, constant))
    design.constant = constant
    problem = Objective(design, random_labels(rng, n_samples, 5), rbrl_loss(0.5), ridge=0.7, nuclear=0.0)
    return sparse.csr_array(X) if is_sparse else X, norms, problem


@pytest.mark.parametrize("constant", [1.0, 3.0])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("n_samples", "n_features"), [(30, 8), (10, 40)])
def test_a_bound_from_blocks_is_that_from_the_whole_gradient(monkeypatch, n_samples, n_features, is_sparse, constant):
    X, norms, problem = ridge_problem(n_samples, n_features, is_sparse, constant)
    F = np.random.default_rng(1).standard_normal((n_samples, 5))
    whole, R = DualPoint.at(problem, F)
    G = problem.design.adjoint(R)
    norms_of_design = np.append(norms[:-1], constant * norms[-1])
    expected = lower_bound(problem, np.zeros_like(G), whole.loss, G, Blur(norms_of_design, whole.blur))
    small_blocks(monkeypatch)
    dual = DualPoint.sum_rows(problem, F.__getitem__)
    np.testing.assert_allclose(dual.blur, whole.blur, rtol=1e-12)
    assert expected > 0
    assert ridge_bound(problem, X, norms, F) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n_samples", "n_features"), [(30, 8), (10, 40)])
def test_rounding_lowers_a_bound(monkeypatch, n_samples, n_features):
    X, norms, problem = ridge_problem(n_samples, n_features, False, 1.0)
    F = np.zeros((n_samples, 5))
    exact = ridge_bound(problem, X, norms, F)
    monkeypatch.setattr(certificate, "PRODUCT_ROUNDING", 1e-3)
    assert 0 < ridge_bound(problem, X, norms, F) < exact


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("n_samples", "n_features"), [(30, 8), (10, 40)])
def test_a_proof_is_the_same_in_blocks(monkeypatch, n_samples, n_features, is_sparse):
    X, _, problem = ridge_problem(n_samples, n_features, is_sparse, 3.0)
    problem = Objective(
        row_design(with_constant(X, 3.0), 3.0), problem.Y, problem.loss, problem.ridge.weight, nuclear=0.0
    )
    result = DualAscent().solve(problem, tol=1e-6)
    W = problem.design.coefficients(result.weights)
    proof = prove_linear(problem, X, W, result.dual_scores)
    assert proof.objective == pytest.approx(result.objective, rel=1e-12)
    assert proof.gap == pytest.approx(result.gap, rel=1e-4, abs=1e-12)
    small_blocks(monkeypatch)
    again = prove_linear(problem, X, W, result.dual_scores)
    assert again.objective == pytest.approx(proof.objective, rel=1e-13)
    assert again.gap == pytest.approx(proof.gap, rel=1e-6)


def test_weights_of_empty_columns_count():
    X, _, problem = ridge_problem(10, 40, True, 1.0)
    W = np.zeros((41, 5))
    without = prove_linear(problem, X, W, np.zeros((10, 5)))
    W[0] = 2.0
    assert X[:, [0]].nnz == 0
    with_weights = prove_linear(problem, X, W, np.zeros((10, 5)))
    assert with_weights.objective == pytest.approx(without.objective + 0.5 * 0.7 * 5 * 4.0, rel=1e-12)
