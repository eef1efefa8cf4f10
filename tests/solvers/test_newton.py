"""Newton's direction: exact products, blocks that are the Hessian where labels do not couple, and its price."""

import numpy as np
import pytest

from problems import DESIGNS, random_objective
from rbrl.losses import SquaredHinge
from rbrl.problem.objective import Objective
from rbrl.solvers.line_search import Iterate
from rbrl.solvers.newton import LabelBlocks, NewtonDirection, hessian_product, row_curvatures

LAMBDAS = (0.7, 0.5, 0.3)


def iterate(objective, seed=1):
    W = 0.3 * np.random.default_rng(seed).standard_normal(objective.shape)
    return Iterate(objective, W, objective.design.scores(W), 1e-4)


def hinge_alone(kind):
    objective = random_objective(np.random.default_rng(0), kind, (0.7, 0.0, 0.0))
    return Objective(objective.design, objective.Y, SquaredHinge(), 0.7, 0.0)


@pytest.mark.parametrize("kind", DESIGNS)
def test_products_are_the_change_of_the_gradient(kind):
    objective = random_objective(np.random.default_rng(0), kind, (0.7, 0.5, 0.0))
    now = iterate(objective)
    D, eps = np.random.default_rng(2).standard_normal(objective.shape), 1e-6
    moved = [Iterate(objective, now.W + s * D, objective.design.scores(now.W + s * D), 1e-4) for s in (eps, -eps)]
    change = (moved[0].gradient - moved[1].gradient) / (2 * eps)
    np.testing.assert_allclose(hessian_product(objective, now, D), change, rtol=1e-4, atol=1e-4 * np.abs(change).max())


@pytest.mark.parametrize("kind", DESIGNS)
def test_blocks_are_the_hessian_where_labels_do_not_couple(kind):
    objective = hinge_alone(kind)
    now = iterate(objective)
    D = np.random.default_rng(2).standard_normal(objective.shape)
    blocks = LabelBlocks(objective, now)
    assert not blocks.has_common_block
    np.testing.assert_allclose(blocks(hessian_product(objective, now, D)), D, atol=1e-6 * np.abs(D).max())


def test_a_block_is_factored_over_the_rows_that_curve_it_where_they_are_few():
    objective = hinge_alone("dense")
    blocks = LabelBlocks(objective, iterate(objective))
    active = np.count_nonzero(row_curvatures(objective, iterate(objective))[:, :-1], axis=0)
    assert [j for j, *_ in blocks.in_rows] == np.flatnonzero(active < objective.shape[0]).tolist()
    assert len(blocks.in_rows) + len(blocks.in_columns) == objective.shape[1]


@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("ranking", [0.5, 100.0])
def test_blocks_of_coupled_labels_leave_conjugate_gradients_little_to_do(kind, ranking):
    objective = random_objective(np.random.default_rng(0), kind, (0.7, ranking, 0.0))
    now, products = iterate(objective), []

    def product(D):
        products.append(1)
        return hessian_product(objective, now, D)

    D = NewtonDirection().conjugate_gradients(now.gradient, product, LabelBlocks(objective, now))
    left = now.gradient + hessian_product(objective, now, D)
    assert np.vdot(now.gradient, D) < 0
    assert np.linalg.norm(left) < np.linalg.norm(now.gradient)
    assert len(products) <= 15


def test_the_blocks_are_symmetric_and_positive():
    objective = random_objective(np.random.default_rng(0), "coefficients", (0.7, 100.0, 0.3))
    now = iterate(objective)
    inverse, size = LabelBlocks(objective, now), np.prod(objective.shape)
    H = np.column_stack([inverse(e.reshape(objective.shape)).ravel() for e in np.eye(size)])
    np.testing.assert_allclose(H, H.T, atol=1e-8 * np.abs(H).max())
    assert np.linalg.eigvalsh(0.5 * (H + H.T))[0] > 0


def test_scores_that_move_together_are_curved_by_the_hinges_alone():
    objective = random_objective(np.random.default_rng(0), "dense", (0.7, 5.0, 0.0))
    now = iterate(objective)
    hinges = SquaredHinge().hessian_diagonal(objective.Y, now.scores)
    np.testing.assert_allclose(row_curvatures(objective, now)[:, -1], hinges.sum(axis=1), atol=1e-9)


def test_a_newton_step_costs_more_where_labels_couple_and_is_not_available_where_rows_are_elsewhere():
    few, many = (random_objective(np.random.default_rng(0), "dense", (0.7, r, 0.0)) for r in (0.0, 100.0))
    newton = NewtonDirection()
    assert 0 < newton.cost(few, iterate(few)) < newton.cost(many, iterate(many)) < np.inf
    assert NewtonDirection(largest_blocks=1).cost(few, iterate(few)) == np.inf
    few.lines_are_exact = False
    assert newton.cost(few, iterate(few)) == np.inf
