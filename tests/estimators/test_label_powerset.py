"""Label powerset: label sets as classes."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from rbrl.estimators import LabelPowerset
from rbrl.estimators.base_learners import compute_probabilities, encode_sets, fit_sharpness


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


def text_like(n_rows=600, n_labels=12, seed=0):
    """Rows whose labels follow from their features, with dozens of label sets."""
    random = np.random.default_rng(seed)
    Y = (random.random((n_rows, n_labels)) < 0.15).astype(int)
    X = Y @ random.standard_normal((n_labels, 40)) + 0.3 * random.standard_normal((n_rows, 40))
    return X[:400], Y[:400], X[400:], Y[400:]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_soft_votes_of_many_sets_predict_labels(kernel):
    """The softmax of margins alone spreads over a hundred sets, and no label reaches one half."""
    X, Y, X_test, Y_test = text_like()
    model = LabelPowerset(kernel=kernel, gamma="median").fit(X, Y)
    assert len(model.label_sets_) > 50
    hard = model.predict(X_test)
    soft = model.set_params(votes="soft").predict(X_test)
    hard_accuracy, soft_accuracy = ((labels == Y_test).all(axis=1).mean() for labels in (hard, soft))
    assert hard_accuracy > 0.1
    assert soft_accuracy > 0.8 * hard_accuracy
    assert soft.sum() > 0.8 * hard.sum()


def test_the_sharpness_maximises_the_likelihood(problem):
    X, Y = problem
    model = LabelPowerset().fit(X, Y)
    _, code = encode_sets(Y > 0)

    def likelihood(factor):
        P = compute_probabilities(model.estimator_, X, factor)
        return np.log(P[np.arange(len(code)), code]).sum()

    best = likelihood(model.sharpness_)
    assert all(likelihood(model.sharpness_ * share) <= best for share in (0.5, 0.9, 1.1, 2.0))
    assert fit_sharpness(LogisticRegression().fit(X, code), X, code) == 1.0
