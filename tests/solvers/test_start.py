"""Where the quasi-Newton method starts, and what it knows at a point."""

import numpy as np
import pytest

from problems import DESIGNS, central_differences, random_design, random_objective, rbrl_loss
from rbrl.problem import eigen_design
from rbrl.problem.objective import Objective
from rbrl.solvers import QuasiNewton
from rbrl.solvers.line_search import Iterate
from rbrl.solvers.preconditioner import label_coupling, model_start
from rbrl.solvers.quasi_newton import QuasiNewtonRun


def all_active(kind, ranking=0.5):
    """Every row has the same labels and the ridge is strong: scores stay inside all margins, where the loss is quadratic."""
    rng = np.random.default_rng(0)
    design = eigen_design(rng.standard_normal((12, 5))) if kind == "eigen" else random_design(rng, kind)
    Y = np.tile(np.array([1, -1, -1, 1], np.int8), (12, 1))
    return Objective(design, Y, rbrl_loss(ranking), 300.0, 0.0)


@pytest.mark.parametrize("kind", ["eigen", "coefficients", "function", "low_rank"])
def test_the_start_is_the_optimum_when_every_margin_is_active_and_rows_curve_alike(kind):
    objective = all_active(kind)
    W = model_start(objective)
    point = objective.at(W)
    assert np.abs(point.scores).max() < 1
    assert np.abs(objective.smooth_gradient(W, point.residual)).max() < 1e-9 * np.abs(W).max() * 300
    result = QuasiNewton().solve(objective, tol=1e-9)
    assert result.n_iter == 1


@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("nuclear", [0.0, 3.0])
def test_the_start_costs_half_an_evaluation_and_beats_zero(kind, nuclear):
    objective = random_objective(np.random.default_rng(1), kind, (1.0, 0.5, nuclear))
    W = model_start(objective)
    assert objective.evaluations == 0.5
    first = QuasiNewtonRun(objective, QuasiNewton(), None, 1e-4, 1).now
    np.testing.assert_allclose(first.W, W, atol=1e-12)
    np.testing.assert_allclose(first.scores, objective.design.scores(W), atol=1e-12)
    assert objective.value(W) < objective.value(objective.zeros())


def test_coupling_is_that_of_the_labels():
    def coupling(lambdas):
        objective = random_objective(np.random.default_rng(2), "dense", lambdas)
        return label_coupling(objective, model_start(objective))

    assert coupling((1.0, 0.0, 0.0)) == 0
    assert 0 < coupling((1.0, 0.1, 0.0)) < coupling((1.0, 10.0, 0.0))


def test_a_large_nuclear_weight_starts_at_almost_nothing():
    objective = random_objective(np.random.default_rng(3), "coefficients", (1.0, 0.5, 1e4))
    W = model_start(objective)
    assert np.abs(objective.design.scores(W)).max() < 1e-2


@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("nuclear", [0.0, 2.0])
def test_an_iterate_knows_value_and_gradients(kind, nuclear):
    rng = np.random.default_rng(4)
    objective = random_objective(rng, kind, (0.7, 0.5, nuclear), weights=rng.random(12))
    W = rng.standard_normal(objective.shape)
    now = Iterate(objective, W, objective.design.scores(W), tol=1e-2)
    assert now.value == pytest.approx(objective.value(W), rel=1e-12)
    assert now.value <= now.smooth_value <= now.value * (1 + 1e-3)
    smooth = central_differences(lambda V: objective.at(V).loss.value + objective.ridge.value(V), W)
    np.testing.assert_allclose(now.smooth_gradient.ravel(), smooth, rtol=1e-4, atol=1e-5)
    width = now.nuclear.width if nuclear else None

    def smoothed(V):
        there = Iterate(objective, V, objective.design.scores(V), tol=1e-2)
        if nuclear:
            there.nuclear.smooth(width)
        return there.loss.value + there.ridge + (there.nuclear.value if nuclear else 0.0)

    np.testing.assert_allclose(now.gradient.ravel(), central_differences(smoothed, W), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(now.adjoint, objective.design.adjoint(objective.at(W).residual), atol=1e-12)


@pytest.mark.parametrize(("sigma", "fades"), [((5.0, 1.0), False), ((5.0, 1e-4), True)])
def test_a_fading_singular_value_is_noticed(sigma, fades):
    objective = random_objective(np.random.default_rng(5), "dense", (1.0, 0.5, 1.0), l=2)
    W = np.zeros(objective.shape)
    W[0, 0], W[1, 1] = sigma
    assert (Iterate(objective, W, objective.design.scores(W), 1e-4).rank_share(1e-3) < 1) == fades
