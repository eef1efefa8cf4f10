"""The smoothed nuclear norm: value, derivative, and what the reweighted ridge majorises."""

import numpy as np
import pytest

from problems import central_differences
from rbrl._common.linalg import small_gram
from rbrl.problem.objective import SmoothedNuclear

WEIGHT = 0.7


every_shape = pytest.mark.parametrize("shape", [(9, 4), (4, 9)], ids=["tall", "wide"])


def smoothed(W, width=0.1):
    return SmoothedNuclear(*small_gram(W), WEIGHT, width)


def weights(rank=4, seed=0, shape=(9, 4)):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))


@every_shape
@pytest.mark.parametrize("rank", [1, 4])
def test_values_are_those_of_the_singular_values(rank, shape):
    W = weights(rank, shape=shape)
    sigma = np.linalg.svd(W, compute_uv=False)
    norm = smoothed(W)
    np.testing.assert_allclose(norm.sigma, sigma[::-1], atol=1e-7)
    assert norm.exact == pytest.approx(WEIGHT * sigma.sum(), abs=1e-6)
    assert norm.value == pytest.approx(WEIGHT * np.sqrt(sigma**2 + 0.01).sum())
    assert norm.exact < norm.value <= norm.exact + WEIGHT * 4 * 0.1


@every_shape
@pytest.mark.parametrize("rank", [0, 1, 4])
def test_gradient_is_the_reweighted_ridges(rank, shape):
    W = weights(rank, shape=shape)
    numeric = central_differences(lambda V: smoothed(V).value, W).reshape(W.shape)
    np.testing.assert_allclose(smoothed(W).reweigh(W), numeric, atol=1e-7)


@every_shape
def test_the_reweighted_ridge_majorises(shape):
    """value(V) <= value(W) + (<V, V H> - <W, W H>) / 2 for all V, with equality at W: sqrt is concave."""
    W = weights(2, shape=shape)
    here, rng = smoothed(W), np.random.default_rng(1)
    for size in (0.0, 1e-3, 0.1, 1.0, 10.0):
        V = W + size * rng.standard_normal(W.shape)
        bound = here.value + 0.5 * (np.vdot(V, here.reweigh(V)) - np.vdot(W, here.reweigh(W)))
        assert smoothed(V).value <= bound * (1 + 1e-12)
    assert smoothed(0 * W).value < here.value


def test_the_width_is_never_below_the_noise_of_squaring():
    norm = smoothed(weights(1), width=0.0)
    assert norm.width == pytest.approx(1e-13 * norm.sigma[-1])
    assert np.isfinite(norm.hessian).all()
    assert np.isfinite(smoothed(np.zeros((3, 2)), width=0.0).hessian).all()


def test_no_width_is_below_what_squaring_leaves_of_the_largest_singular_value():
    norm = smoothed(np.diag([1e-6, 1.0, 1e6]), width=0.0)
    assert norm.width == pytest.approx(1e-13 * 1e6)
    assert smoothed(np.zeros((3, 2)), width=0.0).width > 0
