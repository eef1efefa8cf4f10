"""The certificate: never above the optimum, tight at it, and worse the worse the weights."""

import itertools

import numpy as np
import pytest

from problems import DESIGNS, random_design, random_labels, random_objective, rbrl_loss
from rbrl.problem.objective import Objective
from rbrl.solvers import APG, lower_bound
from rbrl.solvers.certificate import relative_gap

LAMBDAS = (0.0, 1e-4, 1.0, 1e2)


def bound_at(objective, W):
    point = objective.at(W)
    return lower_bound(objective, W, point.loss, objective.design.adjoint(point.residual))


def gap_at(objective, W):
    return relative_gap(objective.at(W).value, bound_at(objective, W))


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
