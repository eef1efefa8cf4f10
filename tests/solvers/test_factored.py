"""Low rank by factors: the objective in them, its derivatives, and the moves between factors and weights."""

import numpy as np
import pytest

from problems import DESIGNS, central_differences, random_objective
from rbrl.solvers import APG, factored
from rbrl.solvers.factored import Factors, balance, descend, join_violations, split
from rbrl.solvers.preconditioner import MeanModel

every_design = pytest.mark.parametrize("kind", DESIGNS)


def problem(kind="dense", lambdas=(0.7, 0.5, 2.0), rank=2, seed=0):
    """An objective with row weights, and random factors."""
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, kind, lambdas, weights=rng.random(12))
    U, V = rng.standard_normal((objective.shape[0], rank)), rng.standard_normal((objective.shape[1], rank))
    return objective, U, V


def at(objective, U, V):
    return Factors(objective, U, V, objective.design.scores(U))


@every_design
def test_value_is_the_objective_for_balanced_factors_and_no_lower_for_others(kind):
    objective, U, V = problem(kind)
    value = objective.value(U @ V.T)
    assert at(objective, *balance(U, V)).value == pytest.approx(value, rel=1e-9)
    assert at(objective, U, V).value > value
    assert at(objective, 3 * U, V / 3).value > at(objective, *balance(U, V)).value


@every_design
def test_gradient_and_slope_match_finite_differences(kind):
    objective, U, V = problem(kind)
    point, k = at(objective, U, V), len(U)
    numeric = central_differences(lambda S: at(objective, S[:k], S[k:]).value, np.vstack([U, V]))
    gradient = point.gradient(objective)
    np.testing.assert_allclose(gradient.ravel(), numeric, rtol=1e-4, atol=1e-5)
    rng = np.random.default_rng(1)
    dU, dV = rng.standard_normal(U.shape), rng.standard_normal(V.shape)
    slope = point.slope(objective, dU, dV, objective.design.scores(dU))
    assert slope == pytest.approx(np.vdot(gradient, np.vstack([dU, dV])), rel=1e-10)


def test_points_may_share_the_memory_of_their_scores():
    objective, U, V = problem()
    close = 1e-12
    space, scores_U = np.empty((2, *objective.Y.shape)), objective.design.scores(U)
    for scale in (1.0, 0.5):
        own, shared = at(objective, U, scale * V), Factors(objective, U, scale * V, scores_U, space)
        assert np.shares_memory(shared.scores, space)
        assert np.shares_memory(shared.residual, space)
        assert shared.value == pytest.approx(own.value, rel=close)
        expected = own.gradient(objective)
        np.testing.assert_allclose(shared.gradient(objective), expected, atol=close * np.abs(expected).max())


def test_a_gradient_costs_a_product_of_the_width_of_the_rank():
    objective, U, V = problem()
    point, before = at(objective, U, V), objective.design.columns_multiplied
    point.gradient(objective)
    assert objective.design.columns_multiplied == before + 2


def test_balance_keeps_the_product_and_drops_what_has_faded():
    _, U, V = problem(rank=3)
    for factors in ((U, V), (U * [1, 1e-9, 1], V), (100 * U, V / 7)):
        P, Q = balance(*factors)
        np.testing.assert_allclose(P @ Q.T, factors[0] @ factors[1].T, atol=1e-6)
        np.testing.assert_allclose(P.T @ P, Q.T @ Q, atol=1e-9 * np.sum(P**2))
        np.testing.assert_allclose(Q.T @ Q, np.diag(np.diag(Q.T @ Q)), atol=1e-9 * np.sum(P**2))
    assert balance(U * [1, 1e-9, 1], V)[0].shape[1] == 2


@pytest.mark.parametrize("wide", [False, True])
def test_split_balances_and_drops_what_has_faded(wide):
    _, U, V = problem(rank=3)
    W = V @ U.T if wide else U @ V.T
    P, Q = split(W, 1e-4)
    assert P.shape[1] == 3
    assert split(W, most=2)[1].shape[1] == 2
    np.testing.assert_allclose(P @ Q.T, W, atol=1e-9)
    np.testing.assert_allclose(P.T @ P, Q.T @ Q, atol=1e-9)


@every_design
def test_violating_directions_join_and_the_objective_falls(kind):
    objective, U, V = problem(kind, (0.7, 0.5, 0.1))
    U, V = balance(1e-3 * U, V)
    W = U @ V.T
    gradient = objective.smooth_gradient(W, objective.at(W).residual)
    H = MeanModel(objective, objective.design.scores(W)).hessian
    violations = np.count_nonzero(np.linalg.svd(gradient, compute_uv=False) > 0.1)
    joined = join_violations(objective, U, V, gradient, H)
    assert joined[0].shape[1] == min(2 + violations, 4)
    assert at(objective, *joined).value < at(objective, U, V).value


def test_directions_that_a_lower_bound_can_spare_do_not_join():
    objective, U, V = problem(lambdas=(0.7, 0.5, 0.1))
    U, V = balance(1e-3 * U, V)
    W = U @ V.T
    gradient = objective.smooth_gradient(W, objective.at(W).residual)
    H = MeanModel(objective, objective.design.scores(W)).hessian
    excess = np.maximum(np.linalg.svd(gradient, compute_uv=False) - 0.1, 0.0)
    cost = np.cumsum(excess[::-1] ** 2)[::-1] / (2 * 0.7)
    assert cost[1] > 0
    (one, _), none = (join_violations(objective, U, V, gradient, H, spare=1.001 * c) for c in (cost[1], cost[0]))
    assert one.shape[1] == U.shape[1] + 1
    assert none is None


def test_nothing_joins_at_the_optimum():
    objective, *_ = problem(lambdas=(0.7, 0.5, 6.0))
    best = APG(restart=True).solve(objective, tol=1e-13, max_iter=20_000).weights
    gradient = objective.smooth_gradient(best, objective.at(best).residual)
    U, s, Vt = np.linalg.svd(best, full_matrices=False)
    U, V = U[:, s > 1e-9] * np.sqrt(s[s > 1e-9]), Vt[s > 1e-9].T * np.sqrt(s[s > 1e-9])
    assert 0 < U.shape[1] < 4
    assert (
        join_violations(objective, U, V, gradient, MeanModel(objective, objective.design.scores(best)).hessian) is None
    )


@every_design
def test_descending_in_factors_of_enough_columns_ends_at_the_optimum(kind):
    objective, U, V = problem(kind, (0.7, 0.5, 3.0), rank=4)
    best = APG(restart=True).solve(objective, tol=1e-9, max_iter=20_000)
    values = []
    point = descend(objective, U, V, 1e-13, 500, 20, values.append)
    assert 0 < len(values) < 500
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    assert point.value == pytest.approx(best.objective, rel=1e-7)
    assert point.U.shape[1] == np.linalg.matrix_rank(best.weights), "columns that fade are dropped"


def test_the_scores_are_those_of_the_point_where_no_step_descends(monkeypatch):
    objective, U, V = problem()

    def useless(along, value, slope):
        along(1.0)

    monkeypatch.setattr(factored, "wolfe_step", useless)
    values = []
    point = descend(objective, U, V, 1e-5, 500, 20, values.append)
    assert not values
    np.testing.assert_allclose(point.scores, objective.design.scores(point.U @ point.V.T), atol=1e-12)
