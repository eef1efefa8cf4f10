"""Binary relevance against one scikit-learn classifier per label."""

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from rbrl.estimators import BinaryRelevance, reductions


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
    counted = reductions.gram
    monkeypatch.setattr(reductions, "gram", lambda *a, **k: calls.append(1) or counted(*a, **k))
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


def flat_problem(seed):
    """More features than rows: where LIBLINEAR ends by itself depends on rounding, so on the order of the rows."""
    rng = np.random.default_rng(seed)
    return rng.random((15, 30)), rng.integers(0, 2, (15, 3)), rng.integers(1, 5, 15), rng


def gradient_norms(model, X, Y, weights):
    """Of LIBLINEAR's objective, per label: at the model, and at zero. The solution is no farther than the first."""
    norms = []
    for coef in (np.column_stack([model.coef_, model.intercept_]).T, np.zeros((X.shape[1] + 1, Y.shape[1]))):
        rows, signs = np.column_stack([X, np.ones(len(X))]), 2 * Y - 1
        slack = np.maximum(1 - signs * (rows @ coef), 0)
        norms.append(np.linalg.norm(coef - 2 * model.C * rows.T @ (weights[:, None] * slack * signs), axis=0))
    return norms


@pytest.mark.parametrize("seed", range(20))
def test_the_tolerance_is_kept_beyond_what_liblinear_reaches(seed):
    X, Y, weights, _ = flat_problem(seed)
    model = BinaryRelevance(tol=1e-10).fit(X, Y, weights)
    reached, at_zero = gradient_norms(model, X, Y, weights)
    relevant = weights @ Y
    rarer = np.minimum(relevant, weights.sum() - relevant) / weights.sum()
    assert np.all(reached[rarer > 0] <= 1.001e-10 * (rarer * at_zero)[rarer > 0])


@pytest.mark.parametrize("tol", [None, 1e-10])
@pytest.mark.parametrize("seed", range(20))
def test_weights_and_repetitions_differ_by_no_more_than_their_gradients_allow(seed, tol):
    X, Y, weights, rng = flat_problem(seed)
    order = rng.permutation(weights.sum())
    X_all, Y_all = X.repeat(weights, axis=0)[order], Y.repeat(weights, axis=0)[order]
    weighted = BinaryRelevance(tol=tol).fit(X, Y, weights)
    repeated = BinaryRelevance(tol=tol).fit(X_all, Y_all)
    distance = (
        gradient_norms(weighted, X, Y, weights)[0] + gradient_norms(repeated, X_all, Y_all, np.ones(len(order)))[0]
    )
    allowed = np.sqrt(1 + np.sum(X**2, axis=1))[:, None] * distance
    apart = np.abs(weighted.decision_function(X) - repeated.decision_function(X))
    several = np.ptp(Y, axis=0) > 0
    assert np.all(apart[:, several] <= allowed[:, several] + 1e-12)
    if tol is not None:
        assert apart.max() < 1e-8


def test_a_tolerance_below_rounding_warns(problem):
    with pytest.warns(ConvergenceWarning, match="did not reach tol: the norm of the gradient is"):
        BinaryRelevance(tol=1e-30).fit(*problem)


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
