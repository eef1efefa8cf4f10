"""Kernel models by dual ascent: the optimum of the decomposed kernel, certified, without the decomposition."""

import numpy as np
import pytest

from problems import random_gram, random_labels, rbrl_loss
from rbrl import CPNL, RBRLClassifier
from rbrl.estimators import forms as estimator_module
from rbrl.problem import KernelDesign, MatrixDesign, SpectralDesign
from rbrl.problem import kernel as kernel_module
from rbrl.problem.kernel import KernelValues, check_semidefinite, kernel_design
from rbrl.problem.objective import Objective
from rbrl.solvers import DualAscent, QuasiNewton

LAMBDAS = [(1.0, 0.5, 0.3), (0.1, 1.0, 3.0), (1.0, 0.0, 0.0), (0.01, 0.1, 0.0), (0.5, 0.1, 20.0)]


@pytest.fixture
def small_parts(monkeypatch):
    """Seven rows at a time, in products and in visits."""
    monkeypatch.setattr(kernel_module, "PART_BYTES", 8 * 30 * 7)
    monkeypatch.setattr(kernel_module, "VISITED_TOGETHER", 7)


def designs_of(K):
    """The designs of a matrix in double precision, in single precision, and not stored."""
    rounded = K.astype(np.float32)
    return {
        "double": KernelDesign(K),
        "single": KernelDesign(rounded, lambda rows: K[rows]),
        "computed": KernelDesign(KernelValues(lambda rows: K[rows], len(K))),
    }


@pytest.mark.parametrize("stored", ["double", "single", "computed"])
def test_products_are_those_of_the_matrix(small_parts, stored):
    rng = np.random.default_rng(0)
    K, A, B = random_gram(rng, 30), rng.standard_normal((30, 3)), rng.standard_normal((30, 3))
    design = designs_of(K)[stored]
    atol = 1e-5 if stored == "single" else 1e-12
    np.testing.assert_allclose(design.scores(A), K @ A, atol=atol)
    assert design.columns_multiplied == 3
    np.testing.assert_allclose(design.row_squares, np.diag(K), atol=atol)
    np.testing.assert_allclose(design.label_gram(A), A.T @ K @ A, atol=10 * atol)
    assert design.inner(A, B) == pytest.approx(np.vdot(A, K @ B), abs=10 * atol)
    np.testing.assert_allclose(design.exact_product(A), K @ A, atol=1e-12)
    np.testing.assert_allclose(design.exact_row_norms(), np.linalg.norm(K, axis=1), rtol=1e-12)


@pytest.mark.parametrize("stored", ["double", "single", "computed"])
@pytest.mark.parametrize("entries", [False, True])
@pytest.mark.parametrize("lambdas", LAMBDAS, ids=str)
def test_it_ends_at_the_certified_optimum(small_parts, lambdas, entries, stored):
    rng = np.random.default_rng(1)
    K, Y = random_gram(rng, 40).astype(np.float32).astype(float), random_labels(rng, 40, 5)
    ridge, ranking, nuclear = lambdas
    weights = rng.random(40)
    if entries:
        Y[rng.random(Y.shape) < 0.3] = 0
        weights = rng.random(Y.shape)
    exact = Objective(SpectralDesign(K.copy(), "function"), Y, rbrl_loss(ranking), ridge, nuclear, weights)
    optimum = QuasiNewton().solve(exact, tol=1e-8)
    objective = Objective(designs_of(K)[stored], Y, rbrl_loss(ranking), ridge, nuclear, weights)
    result = DualAscent().solve(objective, tol=1e-5, max_iter=3000)
    assert result.gap <= 1e-5
    assert result.objective == pytest.approx(optimum.objective, rel=2e-5)
    assert result.objective >= optimum.objective * (1 - 1e-7)
    assert exact.value(exact.design.weights(result.weights)) == pytest.approx(result.objective, rel=1e-5)
    assert len(result.history) == len(result.costs) == result.n_iter


@pytest.mark.parametrize("nuclear", [0.0, 0.3])
def test_a_linear_kernel_takes_the_steps_of_the_linear_model(nuclear):
    """The rows visited and the steps taken are the same, so that the scores are."""
    rng = np.random.default_rng(4)
    X, Y = rng.standard_normal((70, 6)), random_labels(rng, 70, 4)
    designs = MatrixDesign(X), KernelDesign(X @ X.T)
    found = [
        DualAscent().solve(Objective(design, Y, rbrl_loss(0.5), 0.05, nuclear), tol=1e-6, max_iter=2000)
        for design in designs
    ]
    assert found[0].n_iter == found[1].n_iter
    first, second = (design.scores(result.weights) for design, result in zip(designs, found, strict=True))
    np.testing.assert_allclose(second, first, atol=1e-6)
    np.testing.assert_allclose(X.T @ found[1].weights, found[0].weights, atol=1e-6)


def test_too_few_iterations_are_said_and_a_start_is_used():
    rng = np.random.default_rng(2)
    K, Y = random_gram(rng, 40), random_labels(rng, 40, 5)
    objective = Objective(KernelDesign(K), Y, rbrl_loss(0.5), 0.1, 0.1)
    (message,) = DualAscent().solve(objective, tol=1e-9, max_iter=2).messages
    assert "Dual ascent stopped after 2 iterations" in message
    done = DualAscent().solve(objective, tol=1e-5)
    again = DualAscent(dual_scores=done.dual_scores).solve(objective, start=done.weights, tol=1e-5)
    assert again.n_iter <= 3 < done.n_iter


@pytest.mark.parametrize("stored", ["double", "single", "computed"])
@pytest.mark.parametrize("model", [RBRLClassifier(kernel="rbf", low_rank="function", nuclear=0.1), CPNL(kernel="rbf")])
def test_the_estimator_stores_the_kernel_as_memory_allows(monkeypatch, model, stored):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 4))
    Y = (X @ rng.standard_normal((4, 3)) > 0).astype(int)
    model.set_params(tol=1e-6, solver="quasi-newton")
    scores = model.fit(X, Y).decision_function(X)
    monkeypatch.setattr(estimator_module, "SpectralDesign", None)
    monkeypatch.setattr(estimator_module, "solve_kernel", None)
    if stored != "double":
        monkeypatch.setattr(kernel_module, "IN_DOUBLE_PRECISION", 8 * 50**2)
    if stored == "computed":
        monkeypatch.setattr(estimator_module, "available_bytes", lambda: 8 * 59**2)
    model.set_params(solver="auto").fit(X, Y)
    assert model.gap_ <= 1e-6
    assert model.dual_coef_.shape == (60, 3)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-2)


def test_a_kernel_matrix_is_stored_in_single_precision_where_double_takes_too_much(monkeypatch):
    K = random_gram(np.random.default_rng(5), 20)
    assert kernel_design(K.__getitem__, 20).K.dtype == np.float64
    monkeypatch.setattr(kernel_module, "IN_DOUBLE_PRECISION", 1000)
    assert kernel_design(K.__getitem__, 20).K.dtype == np.float32
    assert isinstance(kernel_design(K.__getitem__, 20, memory=100).K, KernelValues)


def test_an_indefinite_matrix_is_refused_and_a_singular_one_is_not():
    check_semidefinite(np.ones((5, 5)))
    check_semidefinite(np.diag([1.0, -1e-9]))
    with pytest.raises(ValueError, match=r"positive semidefinite\. Got eigenvalues from -0.1 to 1"):
        check_semidefinite(np.diag([1.0, -0.1]))
    model = RBRLClassifier(kernel="precomputed", fit_intercept=False)
    with pytest.raises(ValueError, match=r"positive semidefinite\. Got eigenvalues from -1 to 1"):
        model.fit(np.array([[0.0, 1.0], [1.0, 0.0]]), [[0, 1], [1, 0]])


def test_kernel_values_that_overflow_are_refused():
    X = np.array([[1e200, 0.0], [0.0, 1e200], [1.0, 1.0]])
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="A kernel matrix must be finite"):
        RBRLClassifier(kernel="poly", gamma=1.0, nuclear=0).fit(X, [[0, 1], [1, 0], [1, 1]])
