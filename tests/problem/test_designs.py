"""Every design is the linear map it says, with the penalties that belong to its coordinates."""

import numpy as np
import pytest
from scipy import sparse

from problems import DESIGNS, random_design, random_gram
from rbrl.problem import MatrixDesign, SpectralDesign, with_constant
from rbrl.problem.linear import drop_empty_columns

every_design = pytest.mark.parametrize("kind", DESIGNS)


def dense(design):
    return design.scores(np.eye(design.shape[1]))


@every_design
def test_adjoint_is_the_transpose_and_both_count_their_columns(kind):
    rng = np.random.default_rng(0)
    design = random_design(rng, kind)
    W, R = rng.standard_normal((design.shape[1], 3)), rng.standard_normal((design.shape[0], 3))
    assert np.vdot(design.scores(W), R) == pytest.approx(np.vdot(W, design.adjoint(R)), rel=1e-12)
    assert design.columns_multiplied == 6


@every_design
def test_norms_curvature_and_coordinates_match_the_dense_matrix(kind):
    rng = np.random.default_rng(1)
    design = random_design(rng, kind)
    Z, c = dense(design), rng.random(design.shape[0])
    np.testing.assert_allclose(design.row_norms(), np.linalg.norm(Z, axis=1), rtol=1e-12)
    assert design.largest_curvature(c) == pytest.approx(np.linalg.norm(np.sqrt(c)[:, None] * Z, 2) ** 2, rel=1e-10)
    W = rng.standard_normal((design.shape[1], 3))
    np.testing.assert_allclose(design.weights(design.coefficients(W)), W, atol=1e-8)


@pytest.mark.parametrize("low_rank", ["coefficients", "function"])
@pytest.mark.parametrize("gram", ["rbf", "low_rank"])
def test_spectral_coordinates_are_the_kernel_model(low_rank, gram):
    """Scores K A, ridge tr(A'KA), and the nuclear norm of A or of Phi(X)'A."""
    rng = np.random.default_rng(2)
    K = random_gram(rng, 12, gram)
    design = SpectralDesign(K, low_rank)
    A = design.coefficients(rng.standard_normal((design.shape[1], 3)))
    B = design.weights(A)
    root = np.linalg.cholesky(K + 1e-13 * np.eye(12)).T
    np.testing.assert_allclose(design.scores(B), K @ A, atol=1e-10)
    assert np.sum(design.ridge_weights * B**2) == pytest.approx(np.trace(A.T @ K @ A), rel=1e-9)
    norm = np.linalg.norm(A if low_rank == "coefficients" else root @ A, "nuc")
    assert np.linalg.norm(B, "nuc") == pytest.approx(norm, rel=1e-5)


def test_spectrum_is_cut_at_the_noise():
    assert SpectralDesign(random_gram(np.random.default_rng(0), 12, "low_rank")).shape == (12, 6)


def test_an_indefinite_kernel_is_refused_with_its_spectrum():
    with pytest.raises(ValueError, match=r"positive semidefinite. Got eigenvalues from -1 to 1"):
        SpectralDesign(np.array([[0.0, 1.0], [1.0, 0.0]]))


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
def test_a_sparse_matrix_is_never_densified(container, monkeypatch):
    X = np.random.default_rng(0).standard_normal((6, 40)) * (np.arange(40) % 3 == 0)
    design = MatrixDesign(with_constant(container(X)))
    for method in ("toarray", "todense"):
        monkeypatch.setattr(sparse.csr_matrix, method, None)
        monkeypatch.setattr(sparse.csr_array, method, None)
    W = np.ones((41, 2))
    np.testing.assert_allclose(design.scores(W), (X.sum(axis=1) + 1)[:, None] * np.ones(2))
    np.testing.assert_allclose(design.adjoint(np.ones((6, 2)))[-1], 6)
    np.testing.assert_allclose(design.row_norms(), np.sqrt((X**2).sum(axis=1) + 1))
    assert design.largest_curvature(np.ones(6)) == pytest.approx(np.linalg.norm(with_constant(X), 2) ** 2)


@pytest.mark.parametrize("kind", ["canonical", "duplicates", "empty rows", "csc", "float32"])
def test_a_constant_is_appended_to_sparse_rows(kind):
    if kind == "duplicates":
        places = np.array([3, 1, 1, 0]), np.array([0, 3, 3, 4])
        X = sparse.csr_array((np.array([1.0, 2.0, -3.0, 4.0]), *places), shape=(3, 4))
    else:
        X = sparse.random_array((6, 4), density=0.1 if kind == "empty rows" else 0.5, rng=0, format="csr")
    X = X.tocsc() if kind == "csc" else X
    X = X.astype(np.float32) if kind == "float32" else X
    n_entries = X.nnz
    found = with_constant(X, 3.0)
    np.testing.assert_array_equal(found.toarray(), np.hstack([X.toarray(), np.full((X.shape[0], 1), 3.0)]))
    assert found.has_canonical_format
    assert found.dtype == X.dtype
    assert X.nnz == n_entries, "the rows that were given do not change"


@pytest.mark.parametrize("n_empty", [0, 2])
def test_empty_columns_are_dropped_without_a_copy_of_the_entries(n_empty):
    dense = np.hstack([np.eye(3), np.zeros((3, n_empty))])[:, ::-1]
    X = sparse.csr_array(dense)
    found, present = drop_empty_columns(X)
    np.testing.assert_array_equal(found.toarray(), dense[:, n_empty:])
    np.testing.assert_array_equal(present, np.arange(n_empty, n_empty + 3))
    assert np.shares_memory(found.data, X.data)
