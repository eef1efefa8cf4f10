"""The peak memory of a linear fit is at most twice that of X, Y, the scores and the weights together."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse

from rbrl import BRLClassifier, RBRLClassifier


def text_problem(n_rows, n_columns, n_labels, n_used=None, dtype=np.int8):
    """Return rows of 40 entries each, such as tf-idf of short texts, in the first `n_used` columns, and labels."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, n_used or n_columns, size=(n_rows, 40))
    values = rng.random((n_rows, 40)) / 6
    places = np.repeat(np.arange(n_rows), 40), columns.ravel()
    X = sparse.csr_array(sparse.coo_array((values.ravel(), places), shape=(n_rows, n_columns)))
    Y = (rng.random((n_rows, n_labels)) < 0.05).astype(dtype)
    return X, Y


def peak_of_fit(model, X, Y):
    """Return the largest number of bytes that a fit holds at one time, without X and Y."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:40], Y[:40])  # loads modules
        tracemalloc.start()
        try:
            model.fit(X, Y)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


WIDE = {"n_rows": 1000, "n_columns": 6000, "n_labels": 150}
TALL = {"n_rows": 3000, "n_columns": 600, "n_labels": 150}
# Most columns are empty: the vocabulary is that of more texts than the training rows.
VOCABULARY = {"n_rows": 1000, "n_columns": 6000, "n_labels": 150, "n_used": 2500}


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (RBRLClassifier(), WIDE),
        (RBRLClassifier(), TALL),
        (RBRLClassifier(fit_intercept=False), WIDE),
        (RBRLClassifier(), VOCABULARY),
        (RBRLClassifier(fit_intercept=False), VOCABULARY),
        (BRLClassifier(non_empty=False), VOCABULARY | {"dtype": np.float64}),
    ],
    ids=["wide", "tall", "wide-no-intercept", "vocabulary", "no-intercept", "float-labels"],
)
def test_a_fit_holds_at_most_twice_its_data(model, shape):
    X, Y = text_problem(**shape)
    given = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + Y.nbytes
    scores = 8 * X.shape[0] * Y.shape[1]
    weights = 8 * X.shape[1] * Y.shape[1]
    assert given + peak_of_fit(model, X, Y) <= 2 * (given + scores + weights)


def test_scores_of_sparse_rows_need_no_copy_of_the_weights():
    X, Y = text_problem(**VOCABULARY)
    model = RBRLClassifier(non_empty=False).fit(X, Y)
    rows = X[:50]
    model.decision_function(rows)  # loads modules
    tracemalloc.start()
    try:
        model.decision_function(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 0.1 * model.coef_.nbytes
