"""The worked example of docs/add-a-loss.md holds what every loss of the package must hold."""

import numpy as np
import pytest
from exponential_loss import BacktrackingGradient, ExponentialClassifier, ExponentialLoss
from scipy.optimize import approx_fprime, minimize
from sklearn.datasets import make_multilabel_classification

from rbrl.losses import PairwiseSquaredHinge, WeightedSum
from rbrl.problem import MatrixDesign
from rbrl.problem.objective import Objective
from rbrl.solvers import APG

LOSSES = [ExponentialLoss(), WeightedSum((0.5, ExponentialLoss()), (0.3, PairwiseSquaredHinge()))]


@pytest.fixture
def rows():
    """Signed labels (row 0 all relevant, row 1 all irrelevant), scores, a direction and row weights."""
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((7, 4)) < 0.4, 1, -1).astype(np.int8)
    Y[0], Y[1] = 1, -1
    return Y, rng.standard_normal((7, 4)), rng.standard_normal((7, 4)), rng.uniform(0.5, 2.0, 7)


def test_value_by_hand():
    Y, F = np.array([[1, -1]], dtype=np.int8), np.array([[0.0, -np.log(2.0)]])
    assert ExponentialLoss().value(Y, F, weights=[2.0]) == pytest.approx(3.0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradient_matches_finite_differences(loss, rows):
    Y, F, _, weights = rows
    numeric = approx_fprime(F.ravel(), lambda f: loss.value(Y, f.reshape(F.shape), weights))
    np.testing.assert_allclose(loss.gradient(Y, F, weights).ravel(), numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_hessian_matches_finite_differences_of_the_gradient(loss, rows):
    Y, F, D, weights = rows
    step = 1e-6
    numeric = (loss.gradient(Y, F + step * D, weights) - loss.gradient(Y, F - step * D, weights)) / (2 * step)
    np.testing.assert_allclose(loss.hessian_product(Y, F, D, weights), numeric, rtol=1e-5, atol=1e-6)


def test_diagonal_is_that_of_the_hessian(rows):
    Y, F, _, weights = rows
    diagonal = ExponentialLoss().hessian_product(Y, F, np.ones_like(F), weights)
    np.testing.assert_allclose(ExponentialLoss().hessian_diagonal(Y, F, weights), diagonal)


def test_loss_is_the_sum_over_its_rows(rows):
    Y, F, _, weights = rows
    parts = sum(ExponentialLoss().value(Y[i : i + 1], F[i : i + 1], weights[i : i + 1]) for i in range(len(Y)))
    assert ExponentialLoss().value(Y, F, weights) == pytest.approx(parts)


@pytest.mark.parametrize("theta", [0.0, 0.2, 0.9, 1.0, 1.3, 4.0])
def test_dual_terms_bound_the_conjugate(rows, theta):
    Y, F, _, weights = rows
    terms, R = ExponentialLoss().evaluate(Y, F, weights)
    v = theta * np.abs(R) / weights[:, None]
    conjugate = np.sum(weights[:, None] * (np.where(v > 0, v * np.log(np.where(v > 0, v, 1.0)), 0.0) - v))
    bound = theta * terms.linear - theta**2 * terms.quadratic
    assert bound <= -conjugate + 1e-12
    if theta == 1.0:
        assert bound == pytest.approx(-conjugate)


@pytest.fixture(scope="module")
def problem():
    X, Y = make_multilabel_classification(n_samples=40, n_features=5, n_classes=3, random_state=1)
    return X, np.where(Y > 0, 1, -1).astype(np.int8)


def test_the_certified_gap_is_never_below_the_true_one(problem):
    X, Y = problem
    objective = Objective(MatrixDesign(X), Y, ExponentialLoss(), ridge=5.0, nuclear=0.0)
    exact = minimize(lambda w: objective.value(w.reshape(objective.shape)), np.zeros(15), options={"gtol": 1e-8}).fun
    for tol in (1e-1, 1e-2, 1e-4):
        result = BacktrackingGradient(check_every=1).solve(objective, tol=tol, max_iter=5000)
        assert (result.objective - exact) / exact <= result.gap + 1e-9
        assert result.gap <= tol
        assert np.all(np.diff(result.history) <= 1e-9 * result.history[0])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_classifier_learns_with_it(problem, kernel):
    X, Y = problem
    model = ExponentialClassifier(ridge=10, kernel=kernel, gamma=0.01, solver=BacktrackingGradient(), tol=1e-2)
    assert model.fit(X, Y).gap_ <= 1e-2
    assert np.mean(model.predict(X) == Y) > 0.75


def test_a_constant_step_refuses_unbounded_curvature(problem):
    X, Y = problem
    objective = Objective(MatrixDesign(X), Y, LOSSES[1], ridge=1.0, nuclear=0.0)
    with pytest.raises(ValueError, match=r"bounded curvature.*ExponentialLoss"):
        APG().solve(objective)
