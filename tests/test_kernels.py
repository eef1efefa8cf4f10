"""Kernel values against their formulas, and what is refused."""

import numpy as np
import pytest
from scipy import sparse

from rbrl.kernels import SYMMETRY_TILE, _far_columns, check_gram, gram

X = np.random.default_rng(0).standard_normal((5, 3))
Z = np.random.default_rng(1).standard_normal((4, 3))
SQUARES = ((X[:, None] - Z[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"kernel": "linear"}, X @ Z.T),
        ({"kernel": "rbf"}, np.exp(-SQUARES / 3)),
        ({"kernel": "rbf", "gamma": 0.1}, np.exp(-0.1 * SQUARES)),
        ({"kernel": "poly"}, (X @ Z.T / 3 + 1) ** 3),
        ({"kernel": "poly", "gamma": 2.0, "degree": 2, "coef0": 0.5}, (2 * X @ Z.T + 0.5) ** 2),
        ({"kernel": lambda a, b: a @ b.T}, X @ Z.T),
    ],
    ids=["linear", "rbf", "rbf gamma", "poly", "poly quadratic", "callable"],
)
def test_values(options, expected, dtype):
    K = gram(X.astype(dtype), Z.astype(dtype), **options)
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, expected, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-6)


def test_one_argument_is_the_training_matrix():
    np.testing.assert_array_equal(gram(X, kernel="rbf"), gram(X, X, kernel="rbf"))
    for given in (X, sparse.csr_array(X), sparse.csr_matrix(X)):
        np.testing.assert_array_equal(gram(given, kernel="precomputed"), X)


def test_a_constant_feature_cancels_in_rbf():
    """The paper's appended column of ones gives the kernel model no bias."""
    ones = [np.hstack([A, np.ones((len(A), 1))]) for A in (X, Z)]
    np.testing.assert_allclose(gram(*ones, kernel="rbf", gamma=1 / 3), gram(X, Z, kernel="rbf"))


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((2, 3)), r"square.*Got \(2, 3\)"),
        (np.ones(3), r"square.*Got \(3,\)"),
        (np.array([[1.0, np.nan], [np.inf, 1.0]]), "finite. Got 2 NaN or infinite"),
        (np.array([[1.0, 0.5], [0.2, 1.0]]), "symmetric. Got entries that differ by 0.3"),
    ],
)
def test_a_bad_training_matrix_is_refused(K, message):
    with pytest.raises(ValueError, match=message):
        check_gram(K)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_matrix_is_mirrored_in_squares(order):
    """All of it, without a change to what was given, and what is wrong is found in any square."""
    n = 2 * SYMMETRY_TILE + 3
    K = np.asarray(np.random.default_rng(2).standard_normal((n, n)), order=order)
    K += 1e8 * np.eye(n)
    given = K.copy()
    np.testing.assert_array_equal(check_gram(K), 0.5 * (K + K.T))
    np.testing.assert_array_equal(K, given)
    K[n - 1, 0] += 1e4
    with pytest.raises(ValueError, match="differ by 1e\\+04"):
        check_gram(K)
    K[0, n - 1] = np.inf
    with pytest.raises(ValueError, match="Got 1 NaN or infinite"):
        check_gram(K)


def test_rounding_asymmetry_is_averaged_away():
    K = np.eye(3)
    K[0, 1] = 1e-9
    assert np.array_equal(check_gram(K), check_gram(K).T)


def test_a_kernel_function_must_return_one_value_per_pair():
    with pytest.raises(ValueError, match=r"shape \(5, 4\). Got \(5,\)"):
        gram(X, Z, kernel=lambda a, b: np.ones(len(a)))


def test_a_column_is_far_where_its_squares_reach_the_bound():
    X = np.array([[0.0, 99.0, -101.0], [1.0, 98.0, 7.0]])
    np.testing.assert_array_equal(_far_columns(1.0, X), [False, False, True])
    np.testing.assert_array_equal(_far_columns(1.0, sparse.csr_array(X)), [False, False, True])
