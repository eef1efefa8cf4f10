"""The certificate: never above the optimum, tight at it, and worse the worse the weights."""

import itertools

import numpy as np
import pytest

from problems import DESIGNS, random_design, random_labels, random_objective, rbrl_loss
from rbrl.problem.objective import Objective
from rbrl.solvers import APG, lower_bound
from rbrl.solvers.certificate import Mixture, best_mixture, relative_gap
from rbrl.solvers.proof import DualPoint

LAMBDAS = (0.0, 1e-4, 1.0, 1e2)


def bound_at(objective, W):
    point = objective.at(W)
    return lower_bound(objective, W, point.loss, objective.design.adjoint(point.residual))


def gap_at(objective, W):
    return relative_gap(objective.at(W).value, bound_at(objective, W))


def mixed_bound(objective, weights):
    """That of a mixture of loss gradients at several weights, and their shares."""
    points = [objective.at(W) for W in weights]
    losses, adjoints = [point.loss for point in points], [objective.design.adjoint(point.residual) for point in points]
    return best_mixture(objective, weights[-1], losses, adjoints)


def degenerate(rng, n, l, kind):
    """Label matrices of every awkward sort."""
    Y = random_labels(rng, n, l)
    if kind == "constant label":
        Y[:, 0], Y[:, 1] = 1, -1
    elif kind == "one label":
        Y = Y[:, :1]
    elif kind != "random":
        Y[:] = 1 if kind == "all relevant" else -1
    return np.ascontiguousarray(Y)


LABELS = ("random", "random", "random", "constant label", "one label", "all relevant", "none relevant")


def problems(kind, seed):
    """One problem for each triple of penalties: labels of all sorts, weights on every other."""
    rng = np.random.default_rng(seed)
    for k, (ridge, ranking, nuclear) in enumerate(itertools.product(LAMBDAS, repeat=3)):
        design = random_design(rng, kind, n=10, m=4)
        Y = degenerate(rng, 10, 4, LABELS[rng.integers(len(LABELS))])
        weights = rng.integers(0, 3, 10) * rng.random() + 0.01 if k % 2 else None
        if k % 3 == 2:
            Y[rng.random(Y.shape) < 0.3] = 0
            weights = 0.1 + rng.random(Y.shape)
        yield Objective(design, Y, rbrl_loss(ranking), ridge, nuclear, weights)


def check_bounds(kind, seed, iterations):
    """The bound at weights near and far is no higher than the best value seen; return the gaps certified at the end."""
    rng, gaps = np.random.default_rng(seed), []
    solver = APG(restart=True, check_every=10**9)
    for objective in problems(kind, seed):
        early = solver.solve(objective, tol=1e-15, max_iter=7).weights
        best = solver.solve(objective, early, tol=1e-15, max_iter=iterations)
        lowest = min(best.history.min(), objective.value(best.weights))
        noise = rng.standard_normal(objective.shape)
        points = [0 * noise, early, best.weights, best.weights + 1e-6 * noise, best.weights * 1.01, noise, 100 * noise]
        for W in points:
            bound = bound_at(objective, W)
            assert np.isfinite(bound)
            assert bound <= lowest * (1 + 1e-11), (objective.ridge.weight, objective.loss, objective.nuclear)
        if objective.ridge.weight:
            bound, _ = mixed_bound(objective, [*points, early])
            assert np.isfinite(bound)
            assert bound <= lowest * (1 + 1e-11), (objective.ridge.weight, objective.loss, objective.nuclear)
        gaps.append(best.gap)
    return np.array(gaps)


@pytest.mark.filterwarnings("ignore:APG stopped")
@pytest.mark.parametrize("kind", DESIGNS)
def test_never_above_the_optimum(kind):
    gaps = check_bounds(kind, seed=0, iterations=300)
    assert np.mean(gaps < 1e-6) > 0.3, "most problems are too easy on the bound to test it"


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:APG stopped")
@pytest.mark.parametrize(("kind", "seed"), list(itertools.product(DESIGNS, range(1, 11))))
def test_never_above_the_optimum_on_thousands(kind, seed):
    check_bounds(kind, seed, iterations=3000)


@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("lambdas", [(1.0, 0.5, 0.3), (1.0, 0.0, 0.0), (0.5, 3.0, 20.0)])
def test_tight_at_the_optimum_and_growing_with_corruption(kind, lambdas):
    rng = np.random.default_rng(1)
    objective = random_objective(rng, kind, lambdas)
    best = APG(restart=True).solve(objective, tol=1e-8, max_iter=50_000)
    noise = rng.standard_normal(objective.shape)
    gaps = [gap_at(objective, best.weights + size * noise) for size in (0.0, 1e-3, 1e-2, 1e-1, 1.0)]
    assert gaps[0] == pytest.approx(best.gap, abs=1e-14)
    assert gaps[0] <= 1e-8
    assert np.all(np.diff(gaps) > 0)


@pytest.mark.parametrize("kind", DESIGNS)
def test_a_mixture_proves_more_than_the_points_that_it_is_of(kind):
    rng = np.random.default_rng(1)
    objective = random_objective(rng, kind, (0.1, 10.0, 0.0))
    best = APG(restart=True).solve(objective, tol=1e-8, max_iter=50_000)
    around = [best.weights + sign * 1e-2 * D for D in rng.standard_normal((5, *objective.shape)) for sign in (1, -1)]
    bound, shares = mixed_bound(objective, around)
    single = max(bound_at(objective, W) for W in around)
    assert np.all(shares >= 0)
    assert shares.sum() == pytest.approx(1)
    assert best.objective - bound < 0.8 * (best.objective - single)


def test_the_dual_point_of_a_mixture_is_that_of_its_gradients():
    rng = np.random.default_rng(3)
    objective = random_objective(rng, "dense")
    scores, shares = rng.standard_normal((3, *objective.Y.shape)), np.array([0.5, 0.3, 0.2])
    points = [DualPoint.at(objective, F) for F in scores]
    mixture, R = DualPoint.at(objective, Mixture(shares, tuple(scores)))
    np.testing.assert_allclose(R, sum(share * each for share, (_, each) in zip(shares, points, strict=True)))
    assert mixture.loss.linear == pytest.approx(
        sum(s * point.loss.linear for s, (point, _) in zip(shares, points, strict=True))
    )
    assert np.all(mixture.sizes >= np.linalg.norm(R, axis=0))
    assert np.all(
        mixture.blur >= sum(share * point.blur for share, (point, _) in zip(shares, points, strict=True)) * (1 - 1e-9)
    )
    alone, same = DualPoint.at(objective, Mixture(np.ones(1), (scores[0],)))
    np.testing.assert_array_equal(same, points[0][1])
    np.testing.assert_allclose(alone.blur, points[0][0].blur)


def test_nothing_is_mixed_of_gradients_that_are_zero():
    objective = random_objective(np.random.default_rng(3), "dense")
    zero, loss = objective.zeros(), objective.at(objective.zeros()).loss
    assert best_mixture(objective, zero, [loss, loss], [zero, zero])[0] == 0.0


def test_the_weights_are_only_a_hint():
    """With other weights than those of the loss gradient the bound still holds."""
    rng = np.random.default_rng(2)
    objective = random_objective(rng, "coefficients")
    best = APG(restart=True).solve(objective, tol=1e-6, max_iter=20_000)
    point = objective.at(best.weights)
    adjoint = objective.design.adjoint(point.residual)
    for size in (1e-3, 1.0, 1e3):
        hint = best.weights + size * rng.standard_normal(objective.shape)
        assert lower_bound(objective, hint, point.loss, adjoint) <= best.objective


@pytest.mark.parametrize(
    ("value", "bound", "gap"), [(2.0, 1.0, 1.0), (1.0, 1.0, 0.0), (1.0, 1.1, 0.0), (1.0, 0.0, np.inf), (0.0, 0.0, 0.0)]
)
def test_relative_gap(value, bound, gap):
    assert relative_gap(value, bound) == gap
