"""Rows that come singly are scored without checks that could find nothing; whatever could be wrong is still found."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.utils.validation import validate_data

from rbrl import RBRLClassifier, RBRLClassifierCV
from rbrl.estimators.coefficients import score_linear
from rbrl.estimators.validation import FLOATS, can_skip_checks
from rbrl.kernels import LARGEST_SCALED_SQUARE, KernelRows, gram

X, Y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)


@pytest.fixture(scope="module")
def model():
    return RBRLClassifier().fit(X, Y)


@pytest.mark.parametrize(
    "rows",
    [X[:1], X[:5], X[::2], np.asfortranarray(X), X.astype(np.float32), sparse.csr_array(X), sparse.csr_matrix(X[:1])],
    ids=["one", "five", "strided", "by columns", "single precision", "sparse array", "sparse matrix"],
)
def test_what_is_not_checked_would_have_come_back_as_it_was(model, rows):
    assert can_skip_checks(model, rows)
    assert validate_data(model, rows, accept_sparse="csr", dtype=FLOATS, reset=False) is rows


def with_value(value):
    rows = X[:2].copy()
    rows[1, 3] = value
    return rows


NAN, INFINITE, BOTH = with_value(np.nan), with_value(np.inf), with_value(np.inf)
BOTH[0, 0] = -np.inf
WRONG = {
    "NaN": NAN, "infinite": INFINITE, "both infinite": BOTH, "sparse NaN": sparse.csr_array(NAN), "too few": X[:, :5],
    "too many": np.hstack([X, X]), "a vector": X[0], "no row": X[:0], "text": np.array([["sea"] * 6]),
    "a cube": X[None], "complex": X * 1j, "nothing": None,
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_what_is_wrong_is_refused_as_before(model, case, method):
    assert not can_skip_checks(model, WRONG[case])
    with pytest.raises((ValueError, TypeError)):
        getattr(model, method)(WRONG[case])


CONVERTED = {
    "whole numbers": X[:3].astype(int), "half precision": X[:3].astype(np.float16), "a list": X[:3].tolist(),
    "other bytes": X[:3].astype(">f8"), "by columns": sparse.csc_array(X[:3]), "objects": X[:3].astype(object),
}  # fmt: skip


@pytest.mark.parametrize("case", CONVERTED)
def test_what_must_be_converted_is(model, case):
    assert not can_skip_checks(model, CONVERTED[case])
    np.testing.assert_allclose(model.decision_function(CONVERTED[case]), model.decision_function(X[:3]), rtol=1e-12)


def test_large_numbers_are_no_reason_to_refuse(model):
    """Their sum overflows; they are checked one by one."""
    rows = np.full((1, 6), 1e308)
    assert not can_skip_checks(model, rows)
    assert model.decision_function(rows).shape == (1, 3)


def test_columns_with_names_are_compared():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcdef"))
    named = RBRLClassifier().fit(frame, Y)
    assert not can_skip_checks(named, X[:1])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(X[:1])


def test_a_search_takes_single_rows_the_same_way():
    search = RBRLClassifierCV([1.0, 10.0], [1.0], [0.1], cv=2).fit(X, Y)
    np.testing.assert_array_equal(search.predict(X[:1]), search.predict(X)[:1])
    with pytest.raises(ValueError, match="NaN"):
        search.predict(NAN)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("gamma", [None, 0.01])
@pytest.mark.parametrize("offset", [0.0, 1e3 * np.sqrt(LARGEST_SCALED_SQUARE)], ids=["near", "far"])
def test_prepared_rows_give_the_values_of_gram(container, kernel, gamma, offset):
    Z, rows, shape = container(X + offset), container(X[:4] + offset), {"kernel": kernel, "gamma": gamma, "degree": 2}
    np.testing.assert_allclose(KernelRows(Z, **shape).values(rows), gram(rows, Z, **shape), rtol=1e-12, atol=1e-14)


def test_single_precision_and_functions_have_values_too():
    def product(A, B):
        return A @ B.T

    np.testing.assert_array_equal(KernelRows(X, kernel=product).values(X[:2]), product(X[:2], X))
    found = KernelRows(X.astype(np.float32), kernel="rbf").values(X[:2].astype(np.float32))
    assert found.dtype == np.float64


def test_what_is_kept_of_training_rows_is_that_of_the_last_fit():
    """Also where the rows of another fit, or another parameter, are in the same array, or are set by hand."""
    rows = X.copy()
    model = RBRLClassifier(kernel="rbf", gamma=0.1).fit(rows, Y)
    model.predict(X[:1])
    rows *= 3.0
    again = RBRLClassifier(kernel="rbf", gamma=0.1).fit(X * 3.0, Y)
    np.testing.assert_array_equal(model.fit(rows, Y).decision_function(X), again.decision_function(X))
    model.gamma_ = 0.2
    expected = gram(X, rows, kernel="rbf", gamma=0.2) @ model.dual_coef_
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rows", [1, 5])
def test_scores_of_sparse_rows(rows):
    coef = np.random.default_rng(0).standard_normal((3, 6))
    thin = X[:rows] * (np.arange(6) % 2)
    model = SimpleNamespace(coef_=coef, intercept_=np.zeros(3))
    np.testing.assert_allclose(score_linear(model, sparse.csr_array(thin)), thin @ coef.T, rtol=1e-12)
