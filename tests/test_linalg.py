"""Small spectral tools against NumPy's."""

import numpy as np
import pytest

from rbrl._common.linalg import clip_singular_values, gram_eigh


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_gram_eigh_is_eigh_of_a_gram_matrix(size):
    A = np.random.default_rng(size).standard_normal((size + 1, size))
    A = A.T @ A
    values, V = gram_eigh(A)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A), atol=1e-13)
    np.testing.assert_allclose(V * values @ V.T, A, atol=1e-13)


def test_eigenvalues_of_a_gram_matrix_are_not_negative():
    assert np.array_equal(gram_eigh(np.diag([-1e-17, 1.0]))[0], [0.0, 1.0])


def test_singular_values_far_outside_are_clipped():
    W = np.random.default_rng(0).standard_normal((9, 4)) * [1.0, 10.0, 1e3, 1e-2]
    clipped = clip_singular_values(W, 2.0)
    expected = np.minimum(np.linalg.svd(W, compute_uv=False), 2.0)
    np.testing.assert_allclose(np.linalg.svd(clipped, compute_uv=False), expected, rtol=1e-6)
