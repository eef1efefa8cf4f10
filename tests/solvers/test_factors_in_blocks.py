"""Factors whose scores are computed in blocks of rows, and the proof of coefficients that are factors."""

import numpy as np
import pytest
from scipy import sparse

from problems import DESIGNS, random_labels, random_objective, rbrl_loss, row_design
from rbrl._common import linalg
from rbrl._common.linalg import leading_singular
from rbrl._common.matrices import LowRankMatrix, SparseLabels, split
from rbrl.problem import Objective, objective, with_constant
from rbrl.solvers import LowRank, QuasiNewton, certificate, factor_proof
from rbrl.solvers.certificate import DualPoint, lower_bound
from rbrl.solvers.factor_proof import factor_bound, prove_factors
from rbrl.solvers.factored import Factors, FactorsInBlocks, join_violations
from rbrl.solvers.preconditioner import MeanModel, model_start
from rbrl.solvers.proof import prove_linear

every_design = pytest.mark.parametrize("kind", DESIGNS)
PENALTIES = [(0.7, 0.0), (0.7, 0.3), (0.7, 5.0), (0.01, 3.0), (0.0, 2.0), (50.0, 1e4)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make blocks of three rows, and groups of two labels."""
    monkeypatch.setattr(objective, "PRODUCT_BLOCK", 15)
    monkeypatch.setattr(certificate, "FEWEST_LABELS", 2)
    monkeypatch.setattr(certificate, "LARGEST_PULL", 1)


def problem(kind="dense", lambdas=(0.7, 0.5, 2.0), rank=2, n=14, l=5):
    """Return an objective with weights of rows, and random factors."""
    rng = np.random.default_rng(0)
    found = random_objective(rng, kind, lambdas, n=n, l=l, weights=rng.random(n))
    return found, rng.standard_normal((found.shape[0], rank)), rng.standard_normal((l, rank))


def both_points(found, U, V):
    scores_U = found.design.scores(U)
    return Factors(found, U, V, scores_U), FactorsInBlocks(found, U, V, scores_U)


@every_design
@pytest.mark.parametrize("exact_below", [0, 1000])
def test_a_point_in_blocks_is_the_point_of_all_rows(kind, exact_below, monkeypatch):
    monkeypatch.setattr("rbrl.solvers.preconditioner.EXACT_BELOW", exact_below)
    found, U, V = problem(kind)
    dense, blocks = both_points(found, U, V)
    assert blocks.value == pytest.approx(dense.value, rel=1e-13)
    np.testing.assert_allclose(blocks.loss, dense.loss, rtol=1e-12)
    gradient = dense.gradient(found)
    close = 1e-12 * np.abs(gradient).max()
    np.testing.assert_allclose(blocks.gradient(found), gradient, atol=close)
    direction = U + 1.0, V - 1.0, found.design.scores(U + 1.0)
    assert blocks.slope(found, *direction) == pytest.approx(dense.slope(found, *direction), rel=1e-11)
    hessian = dense.mean_model(found).hessian
    expected = hessian if exact_below else np.diag(hessian)
    np.testing.assert_allclose(blocks.mean_model(found).hessian, expected, atol=1e-12 * hessian.max())


@every_design
def test_the_gradient_operator_is_the_gradient(kind):
    found, U, V = problem(kind)
    _, blocks = both_points(found, U, V)
    W = U @ V.T
    expected = found.smooth_gradient(W, found.at(W).residual)
    close = 1e-11 * np.abs(expected).max()
    operator = blocks.smooth_gradient(found)
    np.testing.assert_allclose(operator @ np.eye(found.shape[1]), expected, atol=close)
    np.testing.assert_allclose(operator.T @ np.eye(found.shape[0]), expected.T, atol=close)


def test_an_operator_has_the_leading_singular_vectors_of_its_array():
    found, U, V = problem(lambdas=(0.7, 0.5, 0.1))
    _, blocks = both_points(found, U, V)
    operator = blocks.smooth_gradient(found)
    P, sigma, Q = leading_singular(operator @ np.eye(found.shape[1]), 2)
    left, values, right = leading_singular(operator, 2)
    np.testing.assert_allclose(values, sigma, rtol=1e-8)
    np.testing.assert_allclose((left * values) @ right.T, (P * sigma) @ Q.T, atol=1e-4 * sigma[0])


@every_design
def test_the_same_directions_join(kind):
    found, U, V = problem(kind, (0.7, 0.5, 0.1))
    dense, blocks = both_points(found, 1e-3 * U, V)
    operator = blocks.smooth_gradient(found)
    gradient = operator @ np.eye(found.shape[1])
    H = MeanModel(found, dense.scores).hessian
    expected = join_violations(found, dense.U, dense.V, gradient, H, most=2)
    joined = join_violations(found, dense.U, dense.V, operator, np.diag(H), most=2)
    assert joined[0].shape == expected[0].shape
    product = expected[0] @ expected[1].T
    np.testing.assert_allclose(joined[0] @ joined[1].T, product, atol=1e-4 * np.abs(product).max())


@every_design
def test_the_first_factors_minimise_the_mean_model_of_independent_labels(kind, monkeypatch):
    monkeypatch.setattr(linalg, "EXACT_BELOW", 0)
    found, *_ = problem(kind, (0.7, 0.0, 0.0))
    expected = np.multiply(*np.broadcast_arrays(model_start(found, rounds=0), 1.0))
    U, V = FactorsInBlocks.minimise_mean_model(found, 2)
    P, Q = split(expected, most=2)
    np.testing.assert_allclose(U @ V.T, P @ Q.T, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("max_rank", [None, 1, 3])
@pytest.mark.parametrize("nuclear", [0.0, 1.0])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_solver_finds_the_same_optimum_in_blocks(max_rank, nuclear, is_sparse):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 8)) * (rng.random((30, 8)) < 0.6)
    Y = random_labels(rng, 30, 5)
    labels = SparseLabels(sparse.csr_array(Y > 0)) if is_sparse else Y
    found = Objective(row_design(X), Y, rbrl_loss(0.5), 1.0, nuclear)
    in_blocks = Objective(row_design(sparse.csr_array(X) if is_sparse else X), labels, rbrl_loss(0.5), 1.0, nuclear)
    expected = LowRank(max_rank).solve(found, tol=1e-7)
    result = LowRank(max_rank, in_blocks=True).solve(in_blocks, tol=1e-7)
    assert isinstance(result.weights, LowRankMatrix)
    assert isinstance(result.scores, LowRankMatrix)
    assert result.weights.rank <= (max_rank or 5)
    assert result.converged is (max_rank is not None)
    assert result.objective == pytest.approx(found.value(result.weights.to_dense()), rel=1e-9)
    # A limited rank leaves several local optima.
    assert result.objective == pytest.approx(expected.objective, rel=1e-5 if max_rank is None else 1e-2)


def test_a_run_in_blocks_calls_the_callback_with_no_bound():
    gaps = []
    found, *_ = problem(lambdas=(0.7, 0.5, 0.0))
    found.on_gap = gaps.append
    LowRank(2, in_blocks=True).solve(found)
    assert gaps
    assert all(np.isinf(gaps))


def linear_problem(ridge, nuclear, constant=1.0, n=25, m=7, l=6):
    """Return rows, the norms of their columns with the intercept's, an objective, and factors near its optimum."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, m))
    found = Objective(
        row_design(with_constant(X, constant), constant), random_labels(rng, n, l), rbrl_loss(0.5), ridge, nuclear
    )
    best = QuasiNewton().solve(found, tol=1e-9)
    norms = np.sqrt(np.append((X**2).sum(axis=0), n))
    P, s, Qt = np.linalg.svd(best.weights, full_matrices=False)
    return X, norms, found, best, LowRankMatrix(P * np.sqrt(s), Qt.T * np.sqrt(s))


def scores_of(found, W):
    return LowRankMatrix(found.design.scores(W.left), W.right)


@pytest.mark.parametrize("rank", [0, 1, 3, 6])
@pytest.mark.parametrize("constant", [1.0, 4.0])
@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
def test_a_bound_is_never_above_the_optimum_nor_above_the_best_bound(penalties, constant, rank):
    X, norms, found, best, W = linear_problem(*penalties, constant)
    W = LowRankMatrix(W.left[:, :rank], W.right[:, :rank])
    F = scores_of(found, W)
    bound = factor_bound(found, X, norms, F, W.right)
    loss, R = found.loss.evaluate(found.Y, F.to_dense())
    dense = lower_bound(found, W.to_dense(), loss, found.design.adjoint(R))
    assert 0 <= bound <= dense * (1 + 1e-9)
    assert bound <= best.objective
    if penalties[0] and not penalties[1]:
        assert bound == pytest.approx(dense, rel=1e-10)


@pytest.mark.parametrize("penalties", [(0.7, 5.0), (50.0, 1e4), (2.0, 30.0)], ids=str)
def test_a_bound_at_the_optimum_is_the_optimum_if_the_right_factor_has_all_violations(penalties):
    X, norms, found, best, W = linear_problem(*penalties)
    bound = factor_bound(found, X, norms, scores_of(found, W), W.right)
    assert bound == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("penalties", [(0.7, 0.3), (0.7, 5.0), (0.01, 3.0)], ids=str)
def test_a_bound_is_that_of_the_feasible_matrix_of_its_formula(penalties, monkeypatch):
    X, norms, found, _, W = linear_problem(*penalties)
    W = LowRankMatrix(W.left[:, :2], W.right[:, :2])
    F = scores_of(found, W)
    thetas = []
    real = factor_proof.loss_bound
    monkeypatch.setattr(factor_proof, "loss_bound", lambda loss, theta, **_: thetas.append(theta) or real(loss, theta))
    bound = factor_bound(found, X, norms, F, W.right)
    loss, R = found.loss.evaluate(found.Y, F.to_dense())
    M, Q = -found.design.adjoint(R), np.linalg.qr(W.right)[0]
    P, s, turn = np.linalg.svd(M @ Q, full_matrices=False)
    Q = Q @ turn.T
    rest = (M - P @ (P.T @ M)) @ (np.eye(len(Q)) - Q @ Q.T)
    size = np.linalg.norm(rest)
    theta, ridge, nuclear = thetas[-1], *penalties
    N = (P * np.minimum(theta * s, nuclear)) @ Q.T + min(theta, nuclear / size) * rest
    assert np.linalg.svd(N, compute_uv=False)[0] <= nuclear * (1 + 1e-12)
    expected = theta * loss.linear - theta**2 * loss.quadratic - np.sum((theta * M - N) ** 2) / (2 * ridge)
    assert expected > 0
    assert bound == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("penalties", PENALTIES[:5], ids=str)
def test_rounding_lowers_the_bound_and_raises_the_upper_value(penalties, monkeypatch):
    X, _, found, _, W = linear_problem(*penalties)
    exact = prove_factors(found, X, W, scores_of(found, W))
    monkeypatch.setattr(certificate, "PRODUCT_ROUNDING", 1e-6)
    monkeypatch.setattr(factor_proof, "PRODUCT_ROUNDING", 1e-6)
    monkeypatch.setattr("rbrl.solvers.proof.PRODUCT_ROUNDING", 1e-6)
    blurred = prove_factors(found, X, W, scores_of(found, W))
    assert blurred.lower < exact.lower
    assert blurred.upper > exact.upper
    assert blurred.objective == pytest.approx(exact.objective, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("penalties", PENALTIES[:4], ids=str)
def test_a_proof_is_that_of_the_product(penalties, is_sparse, dtype):
    X, _, found, best, W = linear_problem(*penalties, constant=3.0)
    W = LowRankMatrix(found.design.coefficients(W.left), W.right).astype(dtype)
    left, right = (factor.astype(np.float64) for factor in W)
    F = LowRankMatrix(X @ left[:-1] + left[-1], right)
    rows = sparse.csr_array(X) if is_sparse else X
    proof = prove_factors(found, rows, W, F)
    dense = prove_linear(found, rows, left @ right.T, F.to_dense())
    assert proof.objective == pytest.approx(dense.objective, rel=1e-12)
    assert proof.lower <= dense.lower * (1 + 1e-9)
    assert proof.lower <= best.objective
    exact = [factor.astype(np.longdouble) for factor in W]
    scores = (X.astype(np.longdouble) @ exact[0][:-1] + exact[0][-1]) @ exact[1].T
    value = found.loss.value(found.Y, scores.astype(np.float64))
    B = (exact[0] * np.append(np.ones(7), 1 / 3.0)[:, None]) @ exact[1].T
    value += 0.5 * penalties[0] * float(np.sum(B**2))
    value += penalties[1] * np.linalg.svd(B.astype(np.float64), compute_uv=False).sum()
    assert abs(value - proof.objective) <= proof.upper - proof.objective


def test_groups_of_labels_do_not_change_a_bound(monkeypatch):
    X, norms, found, _, W = linear_problem(0.7, 0.0)
    F = scores_of(found, W)
    in_groups = factor_bound(found, X, norms, F, W.right)
    monkeypatch.setattr(certificate, "LARGEST_PULL", 10**6)
    assert factor_bound(found, X, norms, F, W.right) == pytest.approx(in_groups, rel=1e-13)
    dual = DualPoint.sum_rows(found, F)
    np.testing.assert_allclose(dual.blur, DualPoint.at(found, F.to_dense())[0].blur, rtol=1e-10)
