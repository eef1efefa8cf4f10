"""Small spectral tools against NumPy's."""

import numpy as np
import pytest
from scipy import sparse

from rbrl._common import linalg
from rbrl._common.linalg import clip_singular_values, gram_eigh, squares


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


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("form", ["csr", "csc", "duplicates", "integers"])
def test_sums_of_squares_of_a_sparse_matrix_are_those_of_its_dense_form(form, axis):
    X = sparse.random_array((7, 4), density=0.4, rng=0, format="csc" if form == "csc" else "csr")
    if form == "duplicates":
        X = sparse.csr_array((np.array([1.0, 2.0, -3.0]), np.array([1, 1, 0]), np.array([0, 2, 3, 3])), shape=(3, 4))
    X = (10 * X).astype(np.int8) if form == "integers" else X
    before = X.copy()
    np.testing.assert_allclose(squares(X, axis), (X.toarray().astype(float) ** 2).sum(axis=axis))
    assert X.nnz == before.nnz, "what was given stays as it is"


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_squares_in_many_blocks(monkeypatch, axis):
    X = sparse.random_array((50, 4), density=0.4, rng=0, format="csr")
    monkeypatch.setattr(linalg, "SPARSE_ENTRIES", 7)
    np.testing.assert_allclose(squares(X, axis), (X.toarray() ** 2).sum(axis=axis))
    np.testing.assert_array_equal(squares(sparse.csr_array((3, 2)), axis), np.zeros(3 if axis else 2))
