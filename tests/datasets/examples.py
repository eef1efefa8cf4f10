"""Small data sets for the readers and writers."""

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from rbrl.datasets import Dataset

ODD_NAMES = [
    "plain",
    "two words",
    "it's",
    'say "hi"',
    "a,b;c",
    "50 %",
    "{x}",
    "Größe",
    "重さ",
    "вес",
    "back\\slash",
    "?",
    "@data",
]


def small(is_sparse=False, seed=0, n_samples=12, n_features=13, n_labels=5):
    """Return a data set with odd names, empty rows, negative and tiny numbers."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) * 10.0 ** rng.integers(-9, 9, (n_samples, n_features))
    X[rng.random(X.shape) < 0.6] = 0
    Y = (rng.random((n_samples, n_labels)) < 0.3).astype(np.int8)
    X[1], Y[1], Y[2] = 0, 0, 1
    labels = [f"{name} (label)" for name in reversed(ODD_NAMES)]
    names = (ODD_NAMES * n_features)[:n_features], (labels * n_labels)[:n_labels]
    return Dataset(sparse.csr_array(X) if is_sparse else X, Y, *names, name="small")


def assert_same(first, second):
    """Assert that two data sets have the same matrices and names."""
    assert sparse.issparse(first.X) == sparse.issparse(second.X)
    np.testing.assert_array_equal(dense(first.X), dense(second.X))
    np.testing.assert_array_equal(dense(first.Y), dense(second.Y))
    assert list(first.feature_names) == list(second.feature_names)
    assert list(first.label_names) == list(second.label_names)


def dense(A):
    """Return `A` as an ndarray."""
    return A.toarray() if sparse.issparse(A) else A


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
numbers = st.one_of(st.just(0.0), st.integers(-3, 3).map(float), st.floats(allow_nan=False, allow_infinity=False))


@st.composite
def datasets(draw, missing=False):
    """Any small data set with distinct names."""
    n_samples, n_features, n_labels = (draw(st.integers(1, 4)) for _ in range(3))
    values = st.one_of(numbers, st.just(np.nan)) if missing else numbers
    X = np.array(draw(st.lists(values, min_size=n_samples * n_features, max_size=n_samples * n_features)))
    Y = np.array(draw(st.lists(st.integers(0, 1), min_size=n_samples * n_labels, max_size=n_samples * n_labels)))
    n_names = n_features + n_labels
    names = draw(st.lists(texts, min_size=n_names, max_size=n_names, unique=True))
    X, Y = X.reshape(n_samples, n_features), Y.reshape(n_samples, n_labels)
    X = sparse.csr_array(X) if draw(st.booleans()) else X
    return Dataset(X, Y, names[:n_features], names[n_features:], name=draw(texts))
