"""Small spectral tools against NumPy's."""

import numpy as np
import pytest

from rbrl._common.linalg import clip_singular_values, gram_spectrum, singular_value_clip, small_eigh


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_small_eigh_is_eigh(size):
    A = np.random.default_rng(size).standard_normal((size, size))
    A = A + A.T
    values, V = small_eigh(A)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A), atol=1e-13)
    np.testing.assert_allclose(V * values @ V.T, A, atol=1e-13)


def test_singular_values_are_clipped_from_the_right():
    W = np.random.default_rng(0).standard_normal((9, 4)) * [1.0, 10.0, 1e3, 1e-2]
    clipped = clip_singular_values(W, 2.0)
    np.testing.assert_allclose(W @ singular_value_clip(W, 2.0), clipped)
    expected = np.minimum(np.linalg.svd(W, compute_uv=False), 2.0)
    np.testing.assert_allclose(np.sort(gram_spectrum(clipped)[0]), np.sort(expected), rtol=1e-6)
