"""The preconditioners are inverse Hessians: of the true one, where every row curves alike or is counted alone."""

import numpy as np
import pytest

from problems import central_differences, random_design, random_labels, random_objective, rbrl_loss
from rbrl._common.linalg import small_gram
from rbrl.problem import SpectralDesign, eigen_design
from rbrl.problem.objective import Objective, SmoothedNuclear
from rbrl.solvers.factored import Factors
from rbrl.solvers.line_search import Iterate
from rbrl.solvers.preconditioner import (
    MeanModel,
    PencilSolver,
    factor_blocks,
)

WHITENED = ("eigen", "coefficients", "function")
# Without weights of the ridge.
PLAIN = ("eigen", "function")


def objective_of(kind, lambdas=(0.7, 0.5, 0.0), alike=False, n=12, l=3, seed=0):
    """RBRL over whitened coordinates; `alike` gives every row the same labels, so that all curve alike at small scores."""
    rng = np.random.default_rng(seed)
    design = eigen_design(rng.standard_normal((n, 5))) if kind == "eigen" else random_design(rng, kind, n)
    Y = np.tile(np.resize(np.array([1, -1, -1, 1], np.int8), l), (n, 1)) if alike else random_labels(rng, n, l)
    ridge, ranking, nuclear = lambdas
    return Objective(design, Y, rbrl_loss(ranking), ridge, nuclear, None if alike else rng.random(n))


def dense(seed, shape):
    """The matrix of a linear map of matrices, on their entries in a row."""
    return np.stack([seed(e.reshape(shape)).ravel() for e in np.eye(np.prod(shape))], axis=1)


def smooth_gradient(objective, W):
    return objective.smooth_gradient(W, objective.at(W).residual)


def numeric_hessian(objective, W):
    return central_differences(lambda V: smooth_gradient(objective, V).ravel(), W)


def random_psd(rng, size, rank=None):
    root = rng.standard_normal((size, rank or size))
    return root @ root.T


@pytest.mark.parametrize(("second", "rank"), [(0.8, 1), (0.8, 4), (np.linspace(0, 2, 6), 4)], ids=str)
def test_pencil_solver_is_a_dense_solve(second, rank):
    """With a `second` that varies where the three have one basis."""
    rng = np.random.default_rng(0)
    A, B, C, G = random_psd(rng, 4, rank), random_psd(rng, 4), random_psd(rng, 4), rng.standard_normal((6, 4))
    if np.ndim(second):
        Q = np.linalg.qr(B)[0]
        A, B, C = ((Q * (rng.random(4) + 0.1)) @ Q.T for _ in range(3))
    first = np.linspace(3, 0, 6)
    X = PencilSolver(first, A, C, second, B)(G)
    for k in range(6):
        M = first[k] * A + np.broadcast_to(second, 6)[k] * B + C
        np.testing.assert_allclose(M @ X[k], G[k], rtol=1e-8, atol=1e-8)


def test_pencil_solver_is_positive_where_it_is_not_exact():
    rng = np.random.default_rng(1)
    A, B, C = (random_psd(rng, 4, rank) for rank in (1, 4, 2))
    solver, G = PencilSolver(np.linspace(3, 0, 50), A, C, np.geomspace(1e-6, 1e6, 50), B), rng.standard_normal((50, 4))
    assert (np.sum(solver(G) * G, axis=1) > 0).all()


@pytest.mark.parametrize("second", [0.0, np.zeros(3)], ids=["one basis", "a block per row"])
def test_pencil_solver_survives_a_singular_pencil(second):
    X = PencilSolver(np.array([1.0, 0.5, 0.0]), np.eye(2), np.zeros((2, 2)), second)(np.ones((3, 2)))
    np.testing.assert_allclose(X[:2], [[1, 1], [2, 2]], rtol=1e-9)
    assert np.isfinite(X).all()


def reweighted(rng, shape, left):
    """A smoothed nuclear norm at random weights of the given shape, and its Hessian in all of them."""
    nuclear = SmoothedNuclear(*small_gram(rng.standard_normal(shape)), 0.6, 0.1)
    assert nuclear.left == left
    eye = np.eye(shape[1] if left else shape[0])
    return nuclear, np.kron(nuclear.hessian, eye) if left else np.kron(eye, nuclear.hessian)


@pytest.mark.parametrize("kind", WHITENED)
def test_the_mean_model_inverts_the_hessian_when_all_rows_curve_alike(kind):
    objective = objective_of(kind, alike=True)
    W = 1e-3 * np.random.default_rng(1).standard_normal(objective.shape)
    inverse = dense(MeanModel(objective, objective.design.scores(W)).inverse(), objective.shape)
    np.testing.assert_allclose(inverse @ numeric_hessian(objective, W), np.eye(W.size), atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "l", "left"), [*((kind, 3, False) for kind in PLAIN), *((kind, 16, True) for kind in WHITENED)]
)
def test_the_mean_model_adds_the_reweighted_ridge(kind, l, left):
    objective = objective_of(kind, alike=True, l=l)
    nuclear, S = reweighted(np.random.default_rng(2), objective.shape, left)
    W = np.zeros(objective.shape)
    inverse = MeanModel(objective, objective.design.scores(W)).inverse(nuclear)
    H = numeric_hessian(objective, W) + S
    np.testing.assert_allclose(dense(inverse, W.shape) @ H, np.eye(W.size), atol=1e-5)


def test_many_labels_keep_the_diagonal_of_the_mean_model_in_the_singular_vectors():
    """Exact where the mean Hessian is a multiple of the identity: no ranking, all margins active."""
    l = 54
    objective = objective_of("coefficients", (0.7, 0.0, 0.0), n=l, l=l)
    nuclear, _ = reweighted(np.random.default_rng(2), objective.shape, left=False)
    model = MeanModel(objective, np.zeros((l, l)))
    G = np.random.default_rng(3).standard_normal(objective.shape)
    r = objective.ridge.row_weights
    product = objective.design.gram_diagonal[:, None] * (G @ model.hessian) + 0.7 * r * G + G @ nuclear.hessian
    np.testing.assert_allclose(model.inverse(nuclear)(product), G, atol=1e-8)


def factors_of(objective, rank=2, scale=1.0, seed=5):
    rng = np.random.default_rng(seed)
    U, V = scale * rng.standard_normal((objective.shape[0], rank)), rng.standard_normal((objective.shape[1], rank))
    return Factors(objective, U, V, objective.design.scores(U))


def numeric_factor_hessian(objective, point):
    """Second derivatives in U and V stacked."""
    k = len(point.U)

    def gradient(stacked):
        moved = Factors(objective, stacked[:k], stacked[k:], objective.design.scores(stacked[:k]))
        return moved.gradient(objective).ravel()

    return central_differences(gradient, np.vstack([point.U, point.V]))


@pytest.mark.parametrize("kind", PLAIN)
def test_factor_blocks_invert_the_diagonal_blocks_when_all_rows_curve_alike(kind):
    objective = objective_of(kind, (0.7, 0.5, 0.3), alike=True)
    point = factors_of(objective, scale=1e-4)
    H, size = numeric_factor_hessian(objective, point), point.U.size
    seed = factor_blocks(objective, MeanModel(objective, point.scores), point.U, point.V, point.scores_U)
    inverse = dense(seed, (len(point.U) + len(point.V), 2))
    np.testing.assert_allclose(inverse[:size, :size] @ H[:size, :size], np.eye(size), atol=1e-4)
    np.testing.assert_allclose(inverse[size:, size:] @ H[size:, size:], np.eye(len(H) - size), atol=1e-4)
    assert not inverse[:size, size:].any()


def test_a_truncated_spectrum_keeps_its_blocks():
    rng = np.random.default_rng(6)
    K = random_psd(rng, 12, 4)
    objective = Objective(SpectralDesign(K), random_labels(rng, 12, 3), rbrl_loss(0.5), 0.7, 0.0)
    now = Iterate(objective, objective.zeros(), np.zeros((12, 3)), 1e-4)
    D = -MeanModel(objective, now.scores).inverse()(now.gradient)
    assert D.shape == (4, 3)
    assert np.vdot(D, now.gradient) < 0


@pytest.mark.parametrize(("ranking", "own"), [(0.0, True), (1e-4, False)])
def test_labels_are_their_own_eigenvectors_where_they_do_not_couple(ranking, own):
    objective = random_objective(np.random.default_rng(0), lambdas=(1.0, ranking, 0.0), l=9)
    assert (MeanModel(objective, objective.zero_scores()).curvatures[1] is None) == own


@pytest.mark.parametrize(("l", "left"), [(3, False), (16, True)])
def test_the_diagonal_of_the_mean_model_is_that_of_its_hessian(l, left):
    objective = objective_of("eigen", alike=True, l=l)
    nuclear, S = reweighted(np.random.default_rng(2), objective.shape, left)
    W = np.zeros(objective.shape)
    inverse = MeanModel(objective, objective.design.scores(W)).inverse_diagonal(nuclear)
    H = numeric_hessian(objective, W) + S
    np.testing.assert_allclose(inverse(np.ones(W.shape)).ravel() * np.diag(H), np.ones(W.size), atol=1e-5)
