"""A feature matrix in any coordinates is the same model: scores, coefficients, penalties and optimum."""

import numpy as np
import pytest
from scipy import sparse

from problems import random_labels, rbrl_loss
from rbrl.problem import DenseDesign, MatrixDesign, eigen_design, linear_design, with_constant
from rbrl.problem import linear as choose
from rbrl.problem.linear import RowSpaceDesign
from rbrl.problem.objective import Objective
from rbrl.solvers import QuasiNewton

SHAPES = {"tall": (20, 6), "wide": (6, 20), "square": (9, 9), "very tall": (60, 3)}


def features(shape, kind):
    """Dense, sparse, with columns of zeros, or of rank 2 plus the ones column."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(SHAPES[shape])
    if kind == "deficient":
        X = rng.standard_normal((len(X), 2)) @ rng.standard_normal((2, X.shape[1]))
    if kind == "zero columns":
        X[:, ::2] = 0.0
    if kind == "sparse":
        X[rng.random(X.shape) < 0.8] = 0.0
    X = with_constant(X)
    return (sparse.csr_array(X), X) if kind == "sparse" else (X, X)


every_matrix = pytest.mark.parametrize("kind", ["dense", "sparse", "deficient", "zero columns"])
every_shape = pytest.mark.parametrize("shape", SHAPES)
every_class = pytest.mark.parametrize("design_class", [eigen_design, RowSpaceDesign])


@every_class
@every_matrix
@every_shape
def test_scores_are_those_of_the_coefficients(design_class, kind, shape):
    given, X = features(shape, kind)
    design, rank = design_class(given), np.linalg.matrix_rank(X)
    assert design.shape == (len(X), rank)
    rng = np.random.default_rng(1)
    B, R = rng.standard_normal((rank, 3)), rng.standard_normal((len(X), 3))
    W = design.coefficients(B)
    np.testing.assert_allclose(design.scores(B), X @ W, atol=1e-8)
    np.testing.assert_allclose(W.T @ W, B.T @ B, atol=1e-8, err_msg="ridge and nuclear norm are not those of the model")
    np.testing.assert_allclose(design.weights(W), B, atol=1e-8)
    np.testing.assert_allclose(design.coefficients(design.adjoint(R)), X.T @ R, atol=1e-8)
    np.testing.assert_allclose(design.row_norms(), np.linalg.norm(X, axis=1), atol=1e-8)


@every_class
@every_matrix
@every_shape
def test_the_gram_matrix_is_its_diagonal(design_class, kind, shape):
    design = design_class(features(shape, kind)[0])
    Z = design.matrix()
    np.testing.assert_allclose(Z.T @ Z, np.diag(design.gram_diagonal), atol=1e-9 * design.gram_diagonal.max())
    assert design.columns_multiplied == 0, "looking at the matrix is no product of the solver's"


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_the_gram_diagonal_of_a_matrix(container):
    X = features("tall", "sparse")[1]
    np.testing.assert_allclose(MatrixDesign(container(X)).gram_diagonal, np.diag(X.T @ X))
    np.testing.assert_allclose(MatrixDesign(container(X)).matrix(), X)


@every_matrix
@every_shape
@pytest.mark.parametrize("nuclear", [0.0, 2.0])
def test_all_designs_have_the_same_optimum(kind, shape, nuclear):
    given, X = features(shape, kind)
    Y = random_labels(np.random.default_rng(2), len(X), 3)
    models = []
    for design in (MatrixDesign(given), eigen_design(given), RowSpaceDesign(given), linear_design(given)):
        objective = Objective(design, Y, rbrl_loss(0.5), 1.0, nuclear)
        result = QuasiNewton().solve(objective, tol=1e-8)
        models.append((result.objective, design.coefficients(result.weights)))
    for value, W in models[1:]:
        assert value == pytest.approx(models[0][0], rel=2e-8)
        np.testing.assert_allclose(W, models[0][1], atol=2e-3)


def test_few_rows_few_columns_and_too_much_of_both_choose_the_coordinates(monkeypatch):
    tall, wide = sparse.csr_array(np.ones((9, 4))), sparse.csr_array(np.ones((4, 9)))
    assert linear_design(tall).whitened
    assert isinstance(linear_design(wide), RowSpaceDesign)
    monkeypatch.setattr(choose, "LARGEST_DECOMPOSITION", 3)
    assert not linear_design(tall).whitened


def test_a_thin_matrix_is_decomposed_for_a_nuclear_norm_over_many_labels_alone():
    thin = sparse.random_array((400, 20), density=0.01, rng=0, format="csr")
    assert linear_design(thin, n_labels=200).whitened
    assert not linear_design(thin, n_labels=200, low_rank=False).whitened
    assert not linear_design(sparse.csr_array(np.eye(40)), n_labels=1).whitened


def test_a_sparse_matrix_stays_sparse_where_that_is_cheaper():
    dense, thin = features("very tall", "dense")[1], sparse.random_array((400, 20), density=0.05, rng=0, format="csr")
    assert isinstance(eigen_design(sparse.csr_array(dense)), DenseDesign)
    assert isinstance(eigen_design(thin), MatrixDesign)
    W = np.random.default_rng(3).standard_normal((20, 2))
    design = eigen_design(thin)
    np.testing.assert_allclose(design.scores(design.weights(W)), thin @ W, atol=1e-10)


@pytest.mark.parametrize("design_class", [MatrixDesign, eigen_design, RowSpaceDesign])
def test_a_matrix_of_zeros_is_a_model_without_scores(design_class):
    objective = Objective(design_class(np.zeros((4, 3))), np.ones((4, 2)), rbrl_loss(0.5), 1.0, 0.5)
    result = QuasiNewton().solve(objective)
    assert result.objective == pytest.approx(4.0)
    assert result.gap == pytest.approx(0.0, abs=1e-12)
    assert objective.design.coefficients(result.weights).shape == (3, 2)
