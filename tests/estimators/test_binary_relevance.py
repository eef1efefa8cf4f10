"""Binary relevance against one scikit-learn classifier per label."""

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from rbrl.estimators import BinaryRelevance, _reduction


@pytest.fixture
def problem():
    X, Y = make_multilabel_classification(n_samples=80, n_features=10, n_classes=5, random_state=0)
    return StandardScaler().fit_transform(X), Y


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    ("model", "single"),
    [
        (BinaryRelevance(C=0.5), LinearSVC(C=0.5, dual=False)),
        (BinaryRelevance(kernel="rbf", C=2.0), SVC(C=2.0, gamma=0.1)),
        (BinaryRelevance(kernel="rbf", gamma=0.3), SVC(gamma=0.3)),
        (BinaryRelevance(LogisticRegression()), LogisticRegression()),
    ],
    ids=repr,
)
def test_equals_one_classifier_per_label(problem, model, single, n_jobs):
    X, Y = problem
    scores = model.set_params(n_jobs=n_jobs).fit(X[:60], Y[:60]).decision_function(X[60:])
    expected = np.column_stack([single.fit(X[:60], y).decision_function(X[60:]) for y in Y[:60].T])
    np.testing.assert_allclose(scores, expected, atol=2e-3)
    np.testing.assert_array_equal(model.predict(X[60:]), scores > 0)


def test_hard_scores_know_two_values(problem):
    X, Y = problem
    soft, hard = (BinaryRelevance(scores=s).fit(X, Y).decision_function(X) for s in ("decision", "hard"))
    np.testing.assert_array_equal(hard, np.where(soft > 0, 0.5, -0.5))


@pytest.mark.parametrize("learner", [KNeighborsClassifier(3), DecisionTreeClassifier(max_depth=2, random_state=0)])
def test_learners_without_decision_values(problem, learner):
    X, Y = problem
    model = BinaryRelevance(learner).fit(X, Y)
    P = np.column_stack([learner.fit(X, y).predict_proba(X)[:, 1] for y in Y.T])
    np.testing.assert_allclose(model.decision_function(X), P - 0.5)


def test_the_kernel_matrix_is_computed_once(problem, monkeypatch):
    calls = []
    counted = _reduction.gram
    monkeypatch.setattr(_reduction, "gram", lambda *a, **k: calls.append(1) or counted(*a, **k))
    BinaryRelevance(kernel="rbf").fit(*problem)
    assert len(calls) == 1


@pytest.mark.parametrize(
    "model", [BinaryRelevance(), BinaryRelevance(kernel="rbf"), BinaryRelevance(LogisticRegression())]
)
def test_constant_labels_have_constant_scores(problem, model):
    X, Y = problem
    Y[:, 0], Y[:, 1] = 0, 1
    scores = model.fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(scores[:, 0], -1)
    np.testing.assert_array_equal(scores[:, 1], 1)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_are_repetitions(problem, kernel):
    X, Y = problem
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = BinaryRelevance(kernel=kernel, tol=1e-8).fit(X, Y, weights)
    repeated = BinaryRelevance(kernel=kernel, tol=1e-8).fit(X.repeat(weights, axis=0), Y.repeat(weights, axis=0))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


def test_weights_are_refused_by_name_where_the_learner_has_none(problem):
    with pytest.raises(ValueError, match="Got KNeighborsClassifier"):
        BinaryRelevance(KNeighborsClassifier()).fit(*problem, sample_weight=np.ones(80))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C parameter of BinaryRelevance must be a finite number > 0. Got 0"),
        ({"kernel": "poly"}, "Got 'poly'"),
        ({"scores": "soft"}, "Got 'soft'"),
        ({"gamma": -1.0}, "Got -1.0"),
        ({"estimator": "svm"}, "Got 'svm'"),
    ],
)
def test_parameters_are_checked(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        BinaryRelevance(**parameters).fit(*problem)
