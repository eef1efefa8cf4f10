"""ML-kNN against Mulan's figures and against its definition, written out."""

import numpy as np
import pytest
from scipy import sparse

from rbrl import datasets, metrics
from rbrl.estimators import MLkNN


def six_metrics(Y, labels, scores):
    """As Mulan reports them: coverage not divided by the number of labels, F1 of two empty sets 1."""
    both, sizes = (Y * labels).sum(axis=1), Y.sum(axis=1) + labels.sum(axis=1)
    f1 = np.divide(2 * both, sizes, out=np.ones(len(Y)), where=sizes > 0).mean()
    return [
        metrics.hamming_loss(Y, labels),
        metrics.subset_accuracy(Y, labels),
        f1,
        metrics.ranking_loss(Y, scores),
        Y.shape[1] * metrics.coverage(Y, scores),
        metrics.average_precision(Y, scores),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("emotions", [0.2087, 0.2624, 0.5866, 0.1586, 1.8762, 0.7965]),
        ("scene", [0.0953, 0.6012, 0.6816, 0.0925, 0.5652, 0.8513]),
    ],
)
def test_mulan_figures(data_home, name, expected):
    train, test = datasets.load(name, data_home=data_home).split("source")
    model = MLkNN(n_neighbors=10, smoothing=1.0, scale="minmax").fit(*train)
    values = six_metrics(test.Y, model.predict(test.X), model.decision_function(test.X))
    np.testing.assert_array_equal(np.round(values, 4), expected)


@pytest.fixture
def problem():
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 3)) * [1, 10, 100]
    return X, (X[:, :2] + 0.3 * random.standard_normal((40, 2)) > 0).astype(int)


def by_definition(X, Y, query, k, s):
    """P(relevant given c), one row and label at a time."""
    n = len(X)

    def count(row, j, leave_out=None):
        near = [i for i in np.argsort(np.linalg.norm(X - row, axis=1)) if i != leave_out][:k]
        return sum(Y[i, j] for i in near)

    answers = np.empty((len(query), Y.shape[1]))
    for j in range(Y.shape[1]):
        counts = np.array([count(X[i], j, leave_out=i) for i in range(n)])
        n_j = Y[:, j].sum()
        for i, row in enumerate(query):
            c = count(row, j)
            with_label = np.sum((counts == c) & (Y[:, j] == 1))
            without = np.sum((counts == c) & (Y[:, j] == 0))
            p_in = (s + n_j) / (2 * s + n) * (s + with_label) / (s * (k + 1) + n_j)
            p_out = (s + n - n_j) / (2 * s + n) * (s + without) / (s * (k + 1) + n - n_j)
            answers[i, j] = p_in / (p_in + p_out)
    return answers


@pytest.mark.parametrize(("k", "s"), [(1, 1.0), (5, 0.5), (10, 2.0)])
def test_scores_follow_the_definition(problem, k, s):
    X, Y = problem
    query = X[:10] + 0.01
    model = MLkNN(n_neighbors=k, smoothing=s).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(query) + 0.5, by_definition(X, Y, query, k, s), rtol=1e-12)


def test_a_row_is_not_its_own_neighbour_in_fit_only():
    X, Y = np.array([[0.0], [1.0], [10.0], [11.0]]), np.array([[1], [0], [1], [0]])
    model = MLkNN(n_neighbors=1).fit(X, Y)
    # In fit, the neighbour of a relevant row is irrelevant and vice versa ...
    np.testing.assert_array_equal(model.likelihood_relevant_[0], [3 / 4, 1 / 4])
    # ... in prediction a known row is its own neighbour, which speaks against its label here.
    np.testing.assert_array_equal(model.predict(X)[:, 0], [0, 1, 0, 1])


def test_equal_probabilities_are_irrelevant():
    X, Y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    model = MLkNN(n_neighbors=3).fit(X, Y)
    model.likelihood_relevant_[:] = model.likelihood_irrelevant_[:] = 0.25
    assert not model.decision_function(X).any()
    assert not model.predict(X).any()


def test_minmax_makes_the_units_of_features_irrelevant(problem):
    X, Y = problem
    expected = MLkNN(scale="minmax").fit(X, Y).decision_function(X)
    np.testing.assert_allclose(MLkNN(scale="minmax").fit(8 * X + 3, Y).decision_function(8 * X + 3), expected)
    with_constant = np.column_stack([X, np.full(len(X), 7.0)])
    model = MLkNN(scale="minmax").fit(with_constant, Y)
    with_constant[:, -1] = 1e6
    np.testing.assert_allclose(model.decision_function(with_constant), expected)


def test_minmax_of_sparse_rows(problem):
    # Enough features that no two distances are equal.
    X, Y = np.random.default_rng(0).standard_normal((40, 20)), problem[1]
    X[np.abs(X) < 0.7] = 0
    dense = MLkNN(scale="minmax").fit(X, Y).decision_function(X)
    np.testing.assert_allclose(
        MLkNN(scale="minmax").fit(sparse.csr_array(X), Y).decision_function(sparse.csr_array(X)), dense
    )


def test_fewer_rows_than_neighbours(problem):
    X, Y = problem
    few = MLkNN(n_neighbors=100).fit(X, Y)
    np.testing.assert_allclose(few.decision_function(X), MLkNN(n_neighbors=39).fit(X, Y).decision_function(X))
    assert MLkNN().fit(X[:1], Y[:1]).decision_function(X).shape == Y.shape


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors parameter of MLkNN must be an integer >= 1. Got 0"),
        ({"smoothing": 0.0}, "smoothing parameter of MLkNN must be a finite number > 0. Got 0.0"),
        ({"scale": "max"}, "Got 'max'"),
    ],
)
def test_parameters_are_checked(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        MLkNN(**parameters).fit(*problem)
