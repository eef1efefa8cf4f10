"""The quasi-Newton memory is BFGS: exact on quadratics, for all labels as one or for each alone."""

import numpy as np
import pytest

from rbrl.solvers.lbfgs import Memory

K, L = 8, 3


def identity(G):
    return G.copy()


def quadratic(rng, joint, spread=30.0):
    """Hessian product of a convex quadratic in matrices (K, L): one dense Hessian, or one per label."""
    if joint:
        Q = np.linalg.qr(rng.standard_normal((K * L, K * L)))[0]
        H = (Q * np.geomspace(1, spread, K * L)) @ Q.T
        return lambda W: (H @ W.ravel()).reshape(W.shape)
    bases = [np.linalg.qr(rng.standard_normal((K, K)))[0] for _ in range(L)]
    H = np.array([(Q * np.geomspace(1, spread, K)) @ Q.T for Q in bases])
    return lambda W: np.einsum("jab,bj->aj", H, W)


def remember(memory, step, change):
    """Come to two points, a step apart."""
    memory.visit(np.zeros_like(step), np.zeros_like(step))
    memory.visit(step, change)


def dots(A, B, joint):
    return np.full(L, np.vdot(A, B)) if joint else np.sum(A * B, axis=0)


def minimise(H, b, joint, seed, steps, size=100):
    """Steps of exact length on <W, H W> / 2 - <b, W>; return the iterates' gradients."""
    W, memory, gradients = np.zeros((K, L)), Memory((K, L), size, joint), [-b]
    memory.visit(W, -b)
    for _ in range(steps):
        D, slope = memory.descent(gradients[-1], seed)
        assert slope < 0
        t = -dots(gradients[-1], D, joint) / dots(D, H(D), joint)
        W = W + D * t
        gradients.append(H(W) - b)
        memory.visit(W, gradients[-1])
    return gradients


def conjugate_gradients(H, b, joint, steps):
    gradients, D = [-b], b
    for _ in range(steps):
        t = dots(gradients[-1], gradients[-1], joint) / dots(D, H(D), joint)
        gradients.append(gradients[-1] + H(D) * t)
        D = -gradients[-1] + D * (dots(gradients[-1], gradients[-1], joint) / dots(gradients[-2], gradients[-2], joint))
    return gradients


@pytest.mark.parametrize("joint", [True, False])
def test_exact_steps_on_a_quadratic_are_those_of_conjugate_gradients(joint):
    rng = np.random.default_rng(0)
    H, b = quadratic(rng, joint), rng.standard_normal((K, L))
    for mine, theirs in zip(minimise(H, b, joint, identity, 6), conjugate_gradients(H, b, joint, 6), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)


@pytest.mark.parametrize(("joint", "dimension"), [(True, K * L), (False, K)])
def test_a_quadratic_is_minimised_in_as_many_steps_as_it_has_dimensions(joint, dimension):
    """Per label that is the number of rows, not of entries: each label has a method of its own."""
    rng = np.random.default_rng(1)
    gradients = minimise(quadratic(rng, joint), rng.standard_normal((K, L)), joint, identity, dimension)
    assert np.linalg.norm(gradients[-1]) < 1e-7 * np.linalg.norm(gradients[0])
    assert np.linalg.norm(gradients[dimension // 2]) > 1e-4 * np.linalg.norm(gradients[0])


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("factor", [1.0, 7.0])
def test_an_exact_seed_is_newtons_method_whatever_its_scale(joint, factor):
    """The newest pair corrects a seed that is off by a factor."""
    rng = np.random.default_rng(2)
    H, b = quadratic(rng, joint), rng.standard_normal((K, L))
    dense = np.stack([H(e.reshape(K, L)).ravel() for e in np.eye(K * L)], axis=1)
    inverse = factor * np.linalg.inv(dense)
    memory = Memory((K, L), 4, joint)
    if factor != 1:
        step = rng.standard_normal((K, L))
        remember(memory, step, H(step))
    direction = memory.descent(b, lambda G: (inverse @ G.ravel()).reshape(G.shape))[0]
    np.testing.assert_allclose(H(direction), -b, atol=1e-9)


@pytest.mark.parametrize("joint", [True, False])
def test_the_secant_equation_holds_for_the_newest_pair_also_after_the_oldest_made_room(joint):
    rng = np.random.default_rng(3)
    H, memory = quadratic(rng, joint), Memory((K, L), 3, joint)
    for _ in range(5):
        step = rng.standard_normal((K, L))
        remember(memory, step, H(step))
        np.testing.assert_allclose(memory.descent(H(step), identity)[0], -step, atol=1e-10)


def test_pairs_without_curvature_are_not_used():
    memory, G = Memory((K, L), 3, joint=False), np.ones((K, L))
    step = np.ones((K, L))
    change = np.ones((K, L)) * [-1.0, 0.0, 2.0]
    remember(memory, step, change)
    D = memory.descent(G, identity)[0]
    np.testing.assert_allclose(D[:, :2], -1.0)
    np.testing.assert_allclose(D[:, 2], -0.5)


def test_a_memory_that_misleads_is_cleared():
    memory, G = Memory((K, L), 3, joint=True), np.ones((K, L))
    remember(memory, G, G)
    uphill = iter([-1.0, -1.0, 1.0])
    D, slope = memory.descent(G, lambda Z: Z * next(uphill))
    assert slope == -K * L
    np.testing.assert_array_equal(D, -G)
    np.testing.assert_array_equal(memory.descent(G, identity)[0], -G)
