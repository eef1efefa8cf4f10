"""Label powerset: label sets as classes."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from rbrl.estimators import LabelPowerset
from rbrl.estimators.reductions import encode_sets


@pytest.fixture
def problem():
    random = np.random.default_rng(1)
    X = random.standard_normal((90, 8))
    return X, (X[:, :4] + random.standard_normal((90, 4)) > 0.3).astype(int)


@pytest.mark.parametrize("n_labels", [1, 7, 8, 9, 300])
def test_label_sets_are_encoded_without_loss(n_labels):
    relevant = np.random.default_rng(0).random((50, n_labels)) < 0.3
    relevant[10] = relevant[20]
    sets, code = encode_sets(relevant)
    np.testing.assert_array_equal(sets[code], relevant)
    assert len(np.unique(sets, axis=0)) == len(sets)


@pytest.mark.parametrize(
    ("model", "single"),
    [
        (LabelPowerset(), LinearSVC(dual=False)),
        (LabelPowerset(kernel="rbf", gamma=0.2), SVC(gamma=0.2)),
        (LabelPowerset(LogisticRegression()), LogisticRegression()),
    ],
    ids=repr,
)
def test_equals_a_classifier_of_label_sets(problem, model, single):
    X, Y = problem
    names = np.array(["".join(map(str, row)) for row in Y[:60]])
    predicted = single.fit(X[:60], names).predict(X[60:])
    expected = np.array([[int(c) for c in name] for name in predicted])
    np.testing.assert_array_equal(model.fit(X[:60], Y[:60]).predict(X[60:]), expected)


def test_predicts_only_sets_it_has_seen(problem):
    X, Y = problem
    seen = {tuple(row) for row in Y[:20]}
    assert {tuple(row) for row in LabelPowerset().fit(X[:20], Y[:20]).predict(X)} <= seen


def test_soft_votes_add_up_the_sets_of_a_label(problem):
    X, Y = problem
    model = LabelPowerset(LogisticRegression(), votes="soft").fit(X, Y)
    P = model.estimator_.predict_proba(X)
    np.testing.assert_allclose(model.decision_function(X), P @ model.label_sets_ - 0.5)


def test_a_single_label_set(problem):
    X, Y = problem
    Y[:] = [0, 1, 1, 0]
    np.testing.assert_array_equal(LabelPowerset().fit(X, Y).predict(X), Y)
