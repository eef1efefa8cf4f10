"""Step lengths: derivatives along a ray, minimisation along it, the Wolfe conditions."""

import numpy as np
import pytest

from problems import DESIGNS, central_differences, random_objective
from rbrl.solvers.line_search import Iterate, NewtonLineSearch, Ray, wolfe_step


def ray_of(kind="dense", lambdas=(0.7, 0.5, 0.3), seed=0, scale=0.3, l=4):
    """A ray down the gradient from random weights, and the slopes per label at its start."""
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, kind, lambdas, l=l, weights=rng.random(12))
    W = rng.standard_normal(objective.shape)
    now = Iterate(objective, W, objective.design.scores(W), tol=1.0)
    D = -scale * now.gradient / objective.design.gram_diagonal[:, None]
    return Ray(objective, now, D, objective.design.scores(D)), np.sum(now.gradient * D, axis=0)


def smoothed_value(ray, t):
    now = ray.iterate
    there = Iterate(ray.objective, now.W + ray.D * t, now.scores + ray.scores * t, tol=1.0)
    if there.nuclear is None:
        return there.smooth_value
    there.nuclear.smooth(now.nuclear.width)
    return there.loss.value + there.ridge + there.nuclear.value


@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize(("nuclear", "l"), [(0.0, 4), (0.3, 4), (0.3, 15)])
def test_value_and_slopes_along_the_ray(kind, nuclear, l):
    ray, at_zero = ray_of(kind, (0.7, 0.5, nuclear), l=l)
    for t in (np.zeros(l), np.full(l, 0.7), np.resize([0.0, 0.3, 1.1, 2.0], l)):
        value, slopes, _, _ = ray(t)
        assert value == pytest.approx(smoothed_value(ray, t), rel=1e-12)
        numeric = central_differences(lambda s: ray(s)[0], t)
        np.testing.assert_allclose(slopes, numeric, rtol=1e-5, atol=1e-6 * np.abs(at_zero).max())
    np.testing.assert_allclose(ray(np.zeros(l))[1], at_zero, rtol=1e-9, atol=1e-12)


def test_curvatures_without_nuclear_norm_are_second_derivatives():
    ray, _ = ray_of(lambdas=(0.7, 0.5, 0.0))
    t = np.array([0.2, 0.4, 0.6, 0.8])
    _, _, curvatures, joint = ray(t)
    H = central_differences(lambda s: ray(s)[1], t)
    np.testing.assert_allclose(curvatures, np.diag(H), rtol=1e-5)
    assert joint == pytest.approx(H.sum(), rel=1e-5)


@pytest.mark.parametrize("l", [4, 15])
def test_curvatures_with_nuclear_norm_are_those_of_its_majoriser(l):
    """The reweighted ridge curves at least as much as the norm, so Newton's step does not overshoot."""
    with_norm, _ = ray_of(lambdas=(0.7, 0.5, 5.0), l=l)
    t = np.full(l, 0.4)
    _, _, curvatures, joint = with_norm(t)
    H = central_differences(lambda s: with_norm(s)[1], t)
    assert np.all(curvatures >= np.diag(H) * (1 - 1e-6))
    assert joint >= H.sum() * (1 - 1e-6)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("scale", [1e-3, 0.3, 30.0])
@pytest.mark.parametrize("nuclear", [0.0, 2.0])
def test_step_lengths_descend_to_a_tenth_of_the_slope(joint, scale, nuclear):
    ray, at_zero = ray_of(lambdas=(0.7, 0.5, nuclear), scale=scale)
    t = NewtonLineSearch().step_lengths(ray, at_zero.sum(), joint)
    value, slopes, _, _ = ray(t)
    assert value < ray.iterate.smooth_value
    assert np.all(t >= 0)
    assert np.ptp(t) == 0 or not joint
    if scale == 0.3:
        remaining = abs(slopes.sum()) if joint else np.abs(slopes).sum()
        assert remaining <= 0.1 * abs(at_zero.sum())


def test_no_step_uphill():
    ray, at_zero = ray_of(scale=-0.3)
    assert not NewtonLineSearch().step_lengths(ray, at_zero.sum(), joint=True).any()


@pytest.mark.parametrize("minimum", [1e-4, 0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("power", [2, 4])
def test_wolfe_step_on_a_power(minimum, power):
    """|t - minimum|^power, started with a step of 1 that may be far too long or too short."""
    tried = []

    def along(t):
        tried.append(t)
        return abs(t - minimum) ** power, power * abs(t - minimum) ** (power - 1) * np.sign(t - minimum), t

    start, slope, _ = along(0.0)
    assert wolfe_step(along, start, slope, tries=40) == tried[-1]
    value, here, _ = along(tried[-1])
    assert value <= start + 1e-4 * tried[-1] * slope
    assert abs(here) <= 0.5 * abs(slope)


def test_wolfe_step_says_when_nothing_descends():
    assert wolfe_step(lambda t: (1.0 + t, 1.0, t), 1.0, -1.0) is None
