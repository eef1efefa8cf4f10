"""Every penalty's prox and gradient against their definitions; thresholding of badly scaled matrices."""

import numpy as np
import pytest

from problems import central_differences
from rbrl._common.linalg import GRAM_FLOOR, clip_singular_values, largest_eigenvalue, threshold_singular_values
from rbrl.problem.objective import NuclearNorm, Ridge

RIDGES = (Ridge(0.7), Ridge(0.7, np.array([[0.0], [0.5], [1.0], [3.0], [9.0]])))

every_penalty = pytest.mark.parametrize("penalty", [*RIDGES, NuclearNorm(0.7)], ids=repr)


@pytest.mark.parametrize("n_labels", [1, 3, 7])
@pytest.mark.parametrize("step", [0.0, 0.1, 2.0])
def test_prox_minimises_its_definition(n_labels, step):
    """q(V) = step value(V) + ||V - W||^2 / 2 is 1-strongly convex: its minimiser P has q(V) >= q(P) + ||V - P||^2 / 2."""
    rng = np.random.default_rng(n_labels)
    W, penalty = rng.standard_normal((5, n_labels)), NuclearNorm(0.7)
    P = penalty.prox(W, step)

    def q(V):
        return step * penalty.value(V) + 0.5 * np.sum((V - W) ** 2)

    for size in (1e-4, 1e-2, 1.0):
        for direction in [*rng.standard_normal((20, *W.shape)), P, W - P]:
            V = P + size * direction
            assert q(V) >= q(P) + 0.5 * np.sum((V - P) ** 2) - 1e-13


@every_penalty
def test_values_are_norms(penalty):
    W = np.random.default_rng(0).standard_normal((5, 3))
    degree = 1 if isinstance(penalty, NuclearNorm) else 2
    assert penalty.value(0 * W) == 0
    assert penalty.value(-2 * W) == pytest.approx(2**degree * penalty.value(W))


@pytest.mark.parametrize("penalty", RIDGES, ids=repr)
def test_gradient_and_curvature(penalty):
    W = np.random.default_rng(0).standard_normal((5, 3))
    numeric = central_differences(penalty.value, W).reshape(W.shape)
    np.testing.assert_allclose(penalty.gradient(W), numeric, atol=1e-8)
    curvature = np.linalg.norm(penalty.gradient(W + 1) - penalty.gradient(W)) / np.linalg.norm(np.ones_like(W))
    assert curvature <= penalty.curvature + 1e-12
    assert penalty.curvature == penalty.weight * np.max(penalty.row_weights)


def test_values_worked_out_by_hand():
    W = np.array([[3.0, 0.0], [0.0, -4.0], [0.0, 0.0]])
    assert NuclearNorm(0.5).value(W) == pytest.approx(3.5)
    assert Ridge(2.0, np.array([[1.0], [0.5], [9.0]])).value(W) == pytest.approx(9 + 8)
    np.testing.assert_allclose(NuclearNorm(1.0).prox(W, 3.5), [[0, 0], [0, -0.5], [0, 0]], atol=1e-15)


@pytest.mark.parametrize("shape", [(60, 12), (12, 12), (12, 60)])
@pytest.mark.parametrize("amount", [0.0, 1e-12, 1e-9, 1e-5, 1.01 * GRAM_FLOOR, 1e-3, 0.1, 2.0])
@pytest.mark.parametrize("size", [1e-150, 1.0, 1e100])
def test_thresholding_badly_scaled_matrices(shape, amount, size):
    """Singular values from 1 to 1e-12, known by construction: the answer is exact to 1e-12 of the largest."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((n, 12)))[0] for n in shape)
    s = np.logspace(0, -12, 12)
    expected = size * (U * np.maximum(s - amount, 0.0)) @ V.T
    got = threshold_singular_values(size * (U * s) @ V.T, size * amount)
    assert np.linalg.norm(got - expected) <= 1e-12 * size


def test_thresholding_zero():
    assert not threshold_singular_values(np.zeros((4, 2)), 1.0).any()
    W = np.ones((3, 2))
    kept = threshold_singular_values(W, 0.0)
    assert np.array_equal(kept, W)
    assert kept is not W


def test_clipping_lands_in_the_spectral_ball():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((9, 4))
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    np.testing.assert_allclose(clip_singular_values(W, 2.0), (U * np.minimum(s, 2.0)) @ Vt, atol=1e-13)
    assert not clip_singular_values(np.zeros((3, 2)), 1.0).any()


@pytest.mark.parametrize("size", [1, 40, 600])
@pytest.mark.parametrize("spectrum", ["flat", "spread", "clustered"])
def test_largest_eigenvalue_is_not_below_the_true_one(size, spectrum):
    s = {"flat": np.ones, "spread": lambda n: np.logspace(-8, 0, n), "clustered": lambda n: 1 - 1e-3 * np.arange(n) / n}
    values = s[spectrum](size)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))[0]
    got = largest_eigenvalue(lambda v: Q @ (values[:, None] * (Q.T @ v)), size)
    assert values.max() * (1 - 1e-12) <= got <= values.max() * 1.01
