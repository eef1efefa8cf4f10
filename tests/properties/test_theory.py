"""The paper's lemmas, propositions and theorems, one test each; docs/theory.md states them."""

import numpy as np
import pytest

from problems import DESIGNS, random_design, random_labels, random_objective, rbrl_loss
from rbrl.losses import PairwiseSquaredHinge, SquaredHinge
from rbrl.problem import MatrixDesign, SpectralDesign
from rbrl.problem.objective import Objective
from rbrl.solvers import APG
from rbrl.solvers.apg import _paper_pairwise, paper, rigorous


def test_lemma_1_the_hinge_is_nonexpansive():
    """||a|_+ - |b|_+| <= |a - b|: the gradient of the squared hinge moves no more than the scores."""
    rng = np.random.default_rng(0)
    Y = random_labels(rng, 50, 6)
    F, G = rng.standard_normal((2, 50, 6)) * np.logspace(-3, 3, 50)[:, None]
    moved = np.abs(SquaredHinge().gradient(Y, F) - SquaredHinge().gradient(Y, G))
    assert np.all(moved <= np.abs(F - G) * (1 + 1e-12))
    assert np.any(np.isclose(moved, np.abs(F - G)))


def test_lemma_2_square_of_a_sum():
    """||a_1 + ... + a_n||^2 <= n sum ||a_i||^2, with a_i the part of row i in an adjoint product."""
    rng = np.random.default_rng(1)
    X, R = rng.standard_normal((9, 5)), rng.standard_normal((9, 3))
    parts = np.sum((X[:, :, None] * R[:, None, :]) ** 2)
    assert np.sum(MatrixDesign(X).adjoint(R) ** 2) <= 9 * parts
    equal = MatrixDesign(np.ones((9, 1))).adjoint(np.ones((9, 1)))
    assert np.sum(equal**2) == 9 * 9


def ranking_gradient(design, Y, W):
    return design.adjoint(PairwiseSquaredHinge().gradient(Y, design.scores(W)))


@pytest.mark.parametrize("kind", ["dense", "sparse", "coefficients"])
def test_propositions_1_and_2_hold_label_by_label(kind):
    """With all labels but one fixed, the ranking gradient of that label is sqrt(max A_j B_j)-Lipschitz."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        design, Y = random_design(rng, kind), random_labels(rng, 12, 4)
        constant = _paper_pairwise(Y, design.row_norms())
        for j in range(4):
            W = rng.standard_normal((design.shape[1], 4))
            V = W.copy()
            V[:, j] += rng.standard_normal(len(V)) * rng.choice([0.01, 1, 10])
            change = ranking_gradient(design, Y, V)[:, j] - ranking_gradient(design, Y, W)[:, j]
            assert np.linalg.norm(change) <= constant * np.linalg.norm(V - W)


def test_propositions_1_and_2_fail_when_labels_move_together():
    """One row, one pair: the constant is 1, but moving both labels apart has curvature 2."""
    design, Y = MatrixDesign(np.array([[1.0]])), np.array([[1, -1]], np.int8)
    step = np.array([[1.0, -1.0]])
    change = ranking_gradient(design, Y, 0 * step) - ranking_gradient(design, Y, -step)
    assert _paper_pairwise(Y, design.row_norms()) == pytest.approx(1.0)
    assert np.linalg.norm(change) / np.linalg.norm(step) == pytest.approx(2.0)


def curvature(objective, W, V):
    """How much the smooth gradient changes from W to V, relative to their distance."""
    gradients = [objective.smooth_gradient(U, objective.at(U).residual) for U in (W, V)]
    return np.linalg.norm(gradients[1] - gradients[0]) / np.linalg.norm(V - W)


@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("lambdas", [(0.0, 0.0, 1.0), (1.0, 2.0, 0.0), (0.1, 100.0, 0.0), (100.0, 0.1, 0.0)])
def test_theorems_2_and_3_with_the_rigorous_constant(kind, lambdas):
    """Never exceeded by random pairs, nor by the pair built to exceed: a step along the top eigenvector from zero."""
    rng = np.random.default_rng(3)
    objective = random_objective(rng, kind, lambdas, weights=rng.random(12))
    L = rigorous(objective)
    shape, worst = objective.shape, rng.standard_normal(objective.shape)
    for _ in range(100):
        gradient = [objective.smooth_gradient(U, objective.at(U).residual) for U in (0 * worst, 1e-6 * worst)]
        worst = gradient[1] - gradient[0]
        worst /= np.linalg.norm(worst)
    pairs = [(s * rng.standard_normal(shape), s * rng.standard_normal(shape)) for s in (1e-3, 0.1, 1, 10)]
    assert max(curvature(objective, *pair) for pair in [*pairs, (0 * worst, 1e-6 * worst)]) <= L * (1 + 1e-6)
    assert curvature(objective, 0 * worst, 1e-6 * worst) >= 0.3 * L


def test_theorem_2_with_the_papers_constant():
    """Larger than needed on ordinary data, too small on the counterexample."""
    ordinary = [random_objective(np.random.default_rng(s), kind, n=30) for s in range(5) for kind in DESIGNS]
    assert all(rigorous(objective) < paper(objective) for objective in ordinary)
    tiny = Objective(MatrixDesign(np.array([[1.0]])), np.array([[1, -1]]), rbrl_loss(2.0), 1.0, 0.0)
    assert curvature(tiny, tiny.zeros(), np.array([[-0.1, 0.1]])) == pytest.approx(6.0)
    assert paper(tiny) == pytest.approx(np.sqrt(18))


def test_theorem_1_representer():
    """Projecting the weights on the span of the rows keeps scores, lowers both norms and no rank; A inherits the rank."""
    rng = np.random.default_rng(4)
    X, Y = rng.standard_normal((6, 20)), random_labels(rng, 6, 5)
    objective = Objective(MatrixDesign(X), Y, rbrl_loss(0.5), 1.0, 0.3)
    W = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 5))
    A = np.linalg.pinv(X.T) @ W
    projected = X.T @ A
    np.testing.assert_allclose(X @ projected, X @ W, atol=1e-10)
    assert objective.value(projected) < objective.value(W)
    assert np.linalg.matrix_rank(A) == np.linalg.matrix_rank(projected) == 2
    best = APG(restart=True).solve(objective, tol=1e-10, max_iter=20_000).weights
    np.testing.assert_allclose(X.T @ (np.linalg.pinv(X.T) @ best), best, atol=1e-8)


@pytest.mark.parametrize(
    ("nuclear", "low_rank", "same"),
    [(0.0, "coefficients", True), (0.0, "function", True), (2.0, "function", True), (2.0, "coefficients", False)],
)
def test_linear_and_kernel_model_agree_exactly_when_they_should(nuclear, low_rank, same):
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal((10, 14)), random_labels(rng, 10, 4)
    solver, precise = APG(restart=True), {"tol": 1e-9, "max_iter": 100_000}
    values = [
        solver.solve(Objective(design, Y, rbrl_loss(0.5), 1.0, nuclear), **precise).objective
        for design in (MatrixDesign(X), SpectralDesign(X @ X.T, low_rank))
    ]
    assert (abs(values[1] / values[0] - 1) < 1e-8) == same


@pytest.mark.filterwarnings("ignore:APG stopped")
@pytest.mark.parametrize("kind", DESIGNS)
def test_apg_keeps_its_rate(kind):
    """F(W_t) - F(W*) <= 2 L ||W_0 - W*||^2 / (t + 1)^2 with the rigorous constant, for every t."""
    objective = random_objective(np.random.default_rng(6), kind, (0.01, 1.0, 0.5))
    best = APG(restart=True).solve(objective, tol=1e-10, max_iter=2000)
    run = APG(check_every=10**9).solve(objective, tol=1e-15, max_iter=300)
    t = np.arange(1, 301)
    bound = 2 * rigorous(objective) * np.sum(best.weights**2) / (t + 1) ** 2
    assert np.all(run.history - best.objective <= bound + 1e-9)


class CountingDesign(MatrixDesign):
    """Adds up the multiplications of its products."""

    multiplications = 0

    def _product(self, W):
        self.multiplications += self.X.size * W.shape[1]
        return super()._product(W)

    def _adjoint(self, R):
        self.multiplications += self.X.size * R.shape[1]
        return super()._adjoint(R)


@pytest.mark.filterwarnings("ignore:APG stopped")
@pytest.mark.parametrize("sizes", [(12, 5, 4), (24, 5, 4), (12, 10, 4), (12, 5, 8)], ids=str)
def test_cost_per_iteration(sizes):
    """An iteration multiplies 2 n m l times: two products, none of them X'X; the paper allows n m^2 + m^2 l + n m l^2."""
    n, m, l = sizes
    rng = np.random.default_rng(7)
    X, Y, counts = rng.standard_normal((n, m)), random_labels(rng, n, l), []
    for n_iter in (5, 15):
        design = CountingDesign(X)
        APG(check_every=10**9).solve(Objective(design, Y, rbrl_loss(1.0), 1.0, 1.0), tol=1e-15, max_iter=n_iter)
        counts.append(design.multiplications)
    assert counts[1] - counts[0] == 10 * 2 * n * m * l
