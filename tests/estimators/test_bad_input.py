"""Bad input works with a stated meaning, or is an error that prints what was received; never a silent NaN."""

import re

import numpy as np
import pytest
from scipy import sparse

from rbrl import BRLClassifier, RBRLClassifier
from rbrl.exceptions import InvalidLabelsError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 3))
Y = (RNG.random((8, 4)) < 0.5).astype(int)
K = X @ X.T
PRECOMPUTED = {"kernel": "precomputed", "fit_intercept": False}


def with_entry(A, value):
    A = A.astype(float).copy()
    A[2, 1] = value
    return A


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_nan_and_infinity_in_x(value, wrap):
    word = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError, match=f"Input X contains {word}"):
        RBRLClassifier().fit(wrap(with_entry(X, value)), Y)
    model = RBRLClassifier().fit(X, Y)
    with pytest.raises(ValueError, match=f"Input X contains {word}"):
        model.predict(wrap(with_entry(X, value)))


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (X, with_entry(Y, np.nan)[:, 1], "Input y contains NaN"),
        (X, np.full(Y.shape, np.nan), "No label of any row is known: all 32 entries of y are missing"),
        (X, with_entry(Y + 3, np.nan)[:, 1:2], "Classes must be known in every row"),
        (X, sparse.csr_array(with_entry(Y, np.nan)), "Input y contains NaN"),
        (X, with_entry(Y, np.inf), "Input y contains infinity"),
        (X, Y[:5], "inconsistent numbers of samples: [8, 5]"),
        (X[0], Y, "Expected 2D array, got 1D array"),
        (X[None], Y, "Found array with dim 3"),
        (X[:0], Y[:0], "Found array with 0 sample(s) (shape=(0, 3))"),
        (X[:, :0], Y, "Found array with 0 feature(s) (shape=(8, 0))"),
        (X, Y[:, :0], "Found array with 0 feature(s) (shape=(8, 0))"),
        (X, Y[None], "Found array with dim 3"),
        (X, None, "requires y to be passed, but the target y is None"),
        (X, Y * 2, "0/1 or -1/+1. Got the values 0, 2 in a matrix of 4 columns"),
        (X, Y * 3 - 1, "Got the values -1, 2"),
        (X, with_entry(Y, 0.5), "Unknown label type: continuous-multioutput"),
        (X, [[3], [1, 2]] * 4, "Got lists of numbers, such as [3], of different lengths"),
        (with_entry(X, 1).astype(str) + "x", Y, "RBRLClassifier needs numbers. Got text in columns 0, 1, 2 of X"),
        (X + 1j, Y, "Complex data not supported"),
    ],
)
def test_wrong_data(X, Y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        RBRLClassifier().fit(X, Y)


def test_label_errors_are_the_packages_own():
    with pytest.raises(InvalidLabelsError):
        RBRLClassifier().fit(X, Y * 2)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.arange(8.0), "sample_weight must be finite and >= 0. Got values from -7.0 to -0.0"),
        (np.full(8, np.nan), "finite and >= 0. Got values from nan to nan"),
        (np.where(np.arange(8) == 3, np.inf, 1.0), "finite and >= 0. Got values from 1.0 to inf"),
        (np.ones(5), "sample_weight must have shape (8,), one weight per row of X. Got (5,)"),
        (np.ones((8, 2)), "Got (8, 2)"),
        (np.zeros(8), "sample_weight is zero for all 8 rows"),
    ],
)
def test_bad_sample_weights(weights, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        RBRLClassifier().fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("ridge", -1.0, "'auto' or a finite number >= 0"),
        ("ridge", np.nan, "'auto' or a finite number >= 0"),
        ("ridge", "1", "'auto' or a finite number >= 0"),
        ("threshold", "f1", "'f1_micro' or 'f1_samples' or 'f1_macro' or a finite number"),
        ("ranking", -0.1, "a finite number >= 0"),
        ("nuclear", np.inf, "'auto' or a finite number >= 0"),
        ("gamma", 0.0, "'median' or 'scale' or 'paper' or None or a finite number > 0"),
        ("tol", 0.0, "a finite number > 0"),
        ("max_iter", 0, "an integer >= 1"),
        ("max_iter", 1.5, "an integer >= 1"),
        ("degree", -2, "an integer >= 1"),
        ("coef0", np.nan, "a finite number >= 0"),
        ("kernel", "gaussian", "one of 'linear', 'rbf', 'poly', 'precomputed'"),
        ("kernel", None, "one of 'linear', 'rbf', 'poly', 'precomputed'"),
        ("low_rank", "both", "one of 'coefficients', 'function'"),
        ("solver", "newton", "one of 'auto'"),
        ("solver", 3, "a name or a solver object"),
    ],
)
def test_bad_parameters(name, value, rule):
    message = f"The {name} parameter of RBRLClassifier must be {rule}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}.*Got {re.escape(repr(value))} instead"):
        RBRLClassifier(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (K[:, :5], r"square.*Got \(8, 5\)"),
        (K + np.triu(K, 1), r"symmetric. Got entries that differ by"),
        (K - 5 * np.eye(8), r"positive semidefinite. Got eigenvalues from -5 to"),
        (-K, r"positive semidefinite. Got eigenvalues from"),
    ],
)
def test_a_precomputed_matrix_that_is_no_kernel(kernel, message):
    with pytest.raises(ValueError, match=message):
        RBRLClassifier(**PRECOMPUTED).fit(kernel, Y)


def test_a_kernel_function_that_returns_nan():
    with pytest.raises(ValueError, match=r"finite. Got 64 NaN or infinite values"):
        RBRLClassifier(kernel=lambda a, b: np.full((len(a), len(b)), np.nan)).fit(X, Y)


def test_precomputed_refuses_an_intercept_and_other_widths():
    with pytest.raises(ValueError, match=r"cannot add an intercept.*Got fit_intercept=True"):
        RBRLClassifier(kernel="precomputed").fit(K, Y)
    model = RBRLClassifier(**PRECOMPUTED).fit(K, Y)
    with pytest.raises(ValueError, match="X has 5 features, but RBRLClassifier is expecting 8"):
        model.predict(K[:, :5])


LABELS = {
    "one label": Y[:, :1],
    "constant labels": np.hstack([Y, np.zeros((8, 1), int), np.ones((8, 1), int)]),
    "rows with none and all": np.vstack([np.zeros((3, 4), int), np.ones((3, 4), int), Y[:2]]),
    "none relevant": np.zeros((8, 4), int),
    "all relevant": np.ones((8, 4), int),
    "one class": np.full(8, 7),
}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(
    ("options", "X"),
    [
        ({}, X),
        ({"kernel": "rbf"}, X),
        ({"kernel": "rbf", "low_rank": "function"}, X),
        (PRECOMPUTED, np.zeros((8, 8))),
        (PRECOMPUTED, K),
        ({}, np.zeros((8, 3))),
        ({"fit_intercept": False}, np.zeros((8, 3))),
        ({"ridge": 0, "nuclear": 0, "fit_intercept": False}, np.zeros((8, 3))),
    ],
    ids=["linear", "rbf", "function", "zero kernel", "singular kernel", "zero X", "no intercept", "no penalty"],
)
def test_degenerate_data_has_a_meaning(labels, options, X):
    with np.errstate(all="raise", under="ignore"):
        model = RBRLClassifier(**options).fit(X, LABELS[labels])
        scores, answer = model.decision_function(X), model.predict(X)
    assert np.isfinite(scores).all()
    assert model.gap_ <= 1e-4
    assert answer.shape == LABELS[labels].shape
    assert set(np.unique(answer)) <= ({7} if labels == "one class" else {0, 1})


@pytest.mark.parametrize(
    "model", [RBRLClassifier(), RBRLClassifier(kernel="rbf"), BRLClassifier(non_empty=True)], ids=str
)
def test_one_sample(model):
    with np.errstate(all="raise", under="ignore"):
        model.fit(X[:1], [[1, 0, 0]])
    np.testing.assert_array_equal(model.predict(X[:1]), [[1, 0, 0]])


def test_nothing_relevant_predicted_gets_the_best_label_only_on_request():
    rare = np.zeros((8, 3), int)
    rare[0, 1] = 1
    plain, filled = (RBRLClassifier(ridge=1e3, non_empty=flag).fit(X, rare).predict(X) for flag in (False, True))
    assert not plain.any()
    assert (filled.sum(axis=1) == 1).all()
