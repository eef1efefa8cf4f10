"""The objective is the paper's formula, its gradient the derivative of the smooth part."""

import numpy as np
import pytest

from problems import DESIGNS, central_differences, random_design, random_labels, random_objective, rbrl_loss
from rbrl.problem import MatrixDesign
from rbrl.problem.objective import Objective


def paper_objective(X, Y, W, ridge, ranking, nuclear):
    """Eq. (8), written as it is printed."""
    F, total = X @ W, 0.0
    for f, y in zip(F, Y, strict=True):
        total += 0.5 * sum(max(0, 1 - a * b) ** 2 for a, b in zip(f, y, strict=True))
        pairs = [(p, q) for p in f[y > 0] for q in f[y < 0]]
        total += sum(ranking / 2 / len(pairs) * max(0, 2 - (p - q)) ** 2 for p, q in pairs)
    return total + ridge / 2 * np.sum(W**2) + nuclear * np.linalg.norm(W, "nuc")


@pytest.mark.parametrize("lambdas", [(1.0, 0.5, 0.3), (0.0, 2.0, 0.0), (0.1, 0.0, 5.0)])
def test_value_is_the_papers_formula(lambdas):
    rng = np.random.default_rng(0)
    X, Y, W = rng.standard_normal((12, 5)), random_labels(rng, 12, 4), rng.standard_normal((5, 4))
    ridge, ranking, nuclear = lambdas
    objective = Objective(MatrixDesign(X), Y, rbrl_loss(ranking), ridge, nuclear)
    assert objective.value(W) == pytest.approx(paper_objective(X, Y, W, *lambdas), rel=1e-13)


@pytest.mark.parametrize("kind", DESIGNS)
def test_smooth_gradient_matches_finite_differences(kind):
    rng = np.random.default_rng(1)
    objective = random_objective(rng, kind, lambdas=(0.7, 0.5, 0.0), weights=rng.random(12))
    W = rng.standard_normal(objective.shape)
    gradient = objective.smooth_gradient(W, objective.at(W).residual)
    numeric = central_differences(objective.value, W).reshape(W.shape)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


def test_known_scores_cost_no_product():
    objective = random_objective(np.random.default_rng(2))
    W = np.ones(objective.shape)
    point = objective.at(W)
    assert objective.at(W, point.scores).value == point.value
    assert objective.evaluations == 0.5
    assert objective.zeros().shape == objective.shape == (6, 4)


def test_rows_of_design_and_labels_must_match():
    rng = np.random.default_rng(3)
    with pytest.raises(ValueError, match="design has 12 rows, but Y has 5"):
        Objective(random_design(rng, "dense"), random_labels(rng, 5), rbrl_loss(1.0), 1.0, 1.0)
