"""Rotated coordinates are orthogonal, begin with the leading directions, and save evaluations."""

import numpy as np
import pytest
from scipy import sparse

from problems import random_labels, rbrl_loss
from rbrl.problem import MatrixDesign, with_constant
from rbrl.problem.linear import Rotation, count_directions, rotate_to_leading_directions, rotated_design
from rbrl.problem.objective import Objective
from rbrl.solvers import QuasiNewton


def text_like(n=400, m=60, seed=0):
    """Non-negative sparse rows, which share a mean."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, m)) < 0.3, rng.random((n, m)), 0.0)


@pytest.mark.parametrize("k", [1, 4, 9])
def test_the_first_columns_are_the_directions(k):
    rng = np.random.default_rng(k)
    V = np.linalg.qr(rng.standard_normal((9, k)))[0]
    Q = Rotation(V) @ np.eye(9)
    np.testing.assert_allclose(Q.T @ Q, np.eye(9), atol=1e-12)
    np.testing.assert_allclose(np.abs(Q[:, :k].T @ V), np.eye(k), atol=1e-12)
    np.testing.assert_allclose(Rotation(V).T @ np.eye(9), Q.T, atol=1e-12)
    d = rng.random(9)
    np.testing.assert_allclose(Rotation(V).diagonal_of(d), np.diag(Q.T @ np.diag(d) @ Q), atol=1e-12)


def test_leading_curvatures_are_those_of_the_gram_matrix():
    X = with_constant(text_like())
    G = X.T @ X
    rotation, diagonal = rotate_to_leading_directions(lambda V: G @ V, np.diag(G), 3)
    assert diagonal.max() == pytest.approx(np.linalg.eigvalsh(G)[-1], rel=1e-6)
    Q = rotation @ np.eye(len(G))
    np.testing.assert_allclose(diagonal, np.diag(Q.T @ G @ Q), rtol=1e-9)


def test_axes_of_small_columns_stay_where_they_are():
    rng = np.random.default_rng(0)
    sizes = np.where(np.arange(40) % 4 == 3, 1e4, 1.0)
    X = rng.standard_normal((100, 40)) * sizes
    G = X.T @ X
    rotation, diagonal = rotate_to_leading_directions(lambda V: G @ V, np.diag(G), 10)
    small = np.flatnonzero(sizes == 1.0)
    np.testing.assert_allclose((rotation @ np.eye(40))[small[:, None], small], np.eye(len(small)), atol=1e-3)
    assert diagonal[small].max() < 1e3


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_a_rotated_design_is_the_same_model(storage):
    X = with_constant(text_like())
    design, rng = rotated_design(storage(X)), np.random.default_rng(1)
    W, R = rng.standard_normal((61, 3)), rng.standard_normal((400, 3))
    np.testing.assert_allclose(design.scores(W), X @ design.coefficients(W), atol=1e-10)
    np.testing.assert_allclose(design.coefficients(design.adjoint(R)), X.T @ R, atol=1e-10)
    np.testing.assert_allclose(design.weights(design.coefficients(W)), W, atol=1e-12)
    np.testing.assert_allclose(design.transform(storage(X[:5])) @ W, design.scores(W)[:5], atol=1e-10)
    np.testing.assert_allclose(design.row_norms(), np.linalg.norm(X, axis=1))
    np.testing.assert_allclose(np.linalg.norm(design.coefficients(W), "nuc"), np.linalg.norm(W, "nuc"))


def test_it_saves_evaluations():
    X, Y = with_constant(text_like()), random_labels(np.random.default_rng(2), 400, 6)
    plain, turned = (
        QuasiNewton().solve(Objective(design(X), Y, rbrl_loss(0.1), 0.5, 0.1), tol=1e-4)
        for design in (MatrixDesign, rotated_design)
    )
    assert turned.objective == pytest.approx(plain.objective, rel=1e-4)
    assert turned.evaluations < 0.8 * plain.evaluations


def test_directions_cost_little_beside_a_product():
    assert count_directions(10**8, 10**4) == 50
    assert count_directions(10**5, 10**4) == 2
    assert count_directions(0, 10) == 1
    assert count_directions(10**5, 3) == 3
