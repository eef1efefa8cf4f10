"""The scorers of scikit-learn measure what a classifier answers, whatever the number of its labels."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer, get_scorer_names, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import (
    BRLClassifier,
    CalibratedMultiLabelClassifier,
    MLkNN,
    RBRLClassifier,
    TunedThresholdClassifier,
)
from rbrl.persistence import load, save
from rbrl.registry import REGISTRY
from rbrl.selection import PathSearchCV, RBRLClassifierCV

# Parameters that keep a method quick here.
SMALL = {"ecc": {"n_chains": 2, "random_state": 0}, "rakel": {"random_state": 0}, "ml-knn": {"n_neighbors": 3}}
LINEAR = BRLClassifier(ridge=0.1)
CLASSIFIERS = {
    **{name: cls(**SMALL.get(name, {})) for name, cls in REGISTRY.items()},
    "calibrated": CalibratedMultiLabelClassifier(LINEAR, cv=KFold(2)),
    "tuned": TunedThresholdClassifier(LINEAR, cv=KFold(2)),
    "path search": PathSearchCV(BRLClassifier(), {"ridge": [1.0, 0.1]}, cv=2),
    "rbrl search": RBRLClassifierCV([1.0], [0.1], [0.1], cv=2),
    "pipeline": make_pipeline(StandardScaler(), LINEAR),
}
pytestmark = pytest.mark.filterwarnings("ignore")


def problem(n_labels, n_samples=40):
    random = np.random.default_rng(1)
    X = random.standard_normal((n_samples, 4))
    noise = 0.7 * random.standard_normal((n_samples, n_labels))
    return X, (X @ random.standard_normal((4, n_labels)) + noise > 0.1).astype(np.int64)


def answered(function, *args):
    """The value that a function returns, or the type of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.asarray(function(*args), dtype=float)
        except (ValueError, IndexError, TypeError, AttributeError) as error:
            return type(error)


def by_hand(name, model, X, Y, responses):
    """What a scorer measures, from the methods of the classifier and the metric alone.

    `responses` has the answers of the methods that were called before, by name.
    """
    scorer = get_scorer(name)
    methods = scorer._response_method
    methods = (methods,) if isinstance(methods, str) else methods
    method = next((method for method in methods if hasattr(model, method)), None)
    if method is None:
        return AttributeError
    if method not in responses:
        responses[method] = getattr(model, method)(X)
    return answered(lambda: scorer._sign * scorer._score_func(Y, responses[method], **scorer._kwargs))


@pytest.mark.parametrize(
    ("n_labels", "low"),
    [(1, 0), (1, -1), (2, -1), (3, 0), *(pytest.param(*case, marks=pytest.mark.soak) for case in [(2, 0), (3, -1)])],
)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_scorer_measures_what_the_classifier_answers(name, n_labels, low):
    X, Y = problem(n_labels)
    Y = np.where(Y > 0, 1, low)
    model = clone(CLASSIFIERS[name]).fit(X[:25], Y[:25])
    numbers, responses = 0, {}
    for scorer in get_scorer_names():
        found = answered(get_scorer(scorer), model, X[25:], Y[25:])
        expected = by_hand(scorer, model, X[25:], Y[25:], responses)
        if isinstance(expected, type):
            assert isinstance(found, type), scorer
        else:
            np.testing.assert_allclose(found, expected, err_msg=scorer)
            numbers += 1
    # Of a single label nearly all scorers of binary targets, of several at least those of label matrices.
    assert numbers >= (30 if n_labels == 1 else 10)


@pytest.mark.parametrize("low", [0, pytest.param(-1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_label_scores_as_a_flat_target_does(name, low):
    X, Y = problem(1)
    Y = np.where(Y > 0, 1, low)
    column, flat = (clone(CLASSIFIERS[name]).fit(X[:25], y) for y in (Y[:25], Y[:25, 0]))
    for scorer in get_scorer_names():
        if get_scorer(scorer)._score_func.__module__.startswith("sklearn.metrics.cluster"):
            continue  # of flat targets alone
        expected = answered(get_scorer(scorer), flat, X[25:], Y[25:, 0])
        if not isinstance(expected, type):
            found = answered(get_scorer(scorer), column, X[25:], Y[25:])
            assert not isinstance(found, type), (scorer, found)
            np.testing.assert_allclose(found, expected, atol=1e-6, err_msg=scorer)
    assert roc_auc_score(Y[25:], column.decision_function(X[25:])) > 0.6


def test_a_search_chooses_the_best_ridge_of_a_label():
    X, Y = problem(1, n_samples=90)
    grid = {"ridge": [1e-2, 1.0, 1e4]}
    of_column, of_flat = (
        GridSearchCV(RBRLClassifier(), grid, scoring="roc_auc", cv=3).fit(X, y) for y in (Y, Y.ravel())
    )
    assert of_column.best_params_ == of_flat.best_params_
    np.testing.assert_allclose(
        of_column.cv_results_["mean_test_score"], of_flat.cv_results_["mean_test_score"], atol=1e-6
    )
    assert of_column.best_score_ > 0.6


@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_a_path_search_takes_scorers_of_scikit_learn(n_labels):
    X, Y = problem(n_labels)
    search = PathSearchCV(BRLClassifier(), {"ridge": [1.0]}, cv=2, scoring="roc_auc").fit(X, Y)
    assert search.best_score_ > 0.6


@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_cross_validated_predictions_have_a_column_for_each_label(n_labels):
    X, Y = problem(n_labels)
    for method, model in {"decision_function": LINEAR, "predict_proba": MLkNN(3)}.items():
        found = cross_val_predict(model, X, Y, cv=KFold(3), method=method)
        for train, test in KFold(3).split(X):
            expected = getattr(clone(model).fit(X[train], Y[train]), method)(X[test])
            np.testing.assert_array_equal(found[test], expected)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([[0], [1]], [[0, 1]]),
        ([[-1], [1]], [[-1, 1]]),
        ([[False], [True]], [[False, True]]),
        ([[0, 1], [1, 0]], [[0, 1], [0, 1]]),
        ([[0, 1, 1], [1, 0, 0]], [0, 1, 2]),
        (["no", "yes"], ["no", "yes"]),
    ],
)
def test_classes_are_never_those_of_a_binary_target_by_chance(y, classes, tmp_path):
    model = BRLClassifier().fit([[0.0], [1.0]], y)
    assert model.classes_.tolist() == classes
    save(model, tmp_path / "model.rbrl")
    assert load(tmp_path / "model.rbrl").classes_.tolist() == classes
    assert not hasattr(BRLClassifier(), "classes_")


def test_a_model_file_from_before_has_the_classes_that_scorers_need(tmp_path):
    X, Y = problem(1)
    model = BRLClassifier().fit(X, Y)
    vars(model)["classes_"] = np.arange(1)  # as the files of version 0.1.0 have it
    save(model, tmp_path / "model.rbrl")
    loaded = load(tmp_path / "model.rbrl")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert get_scorer("roc_auc")(loaded, X, Y) == roc_auc_score(Y, model.decision_function(X)) > 0.6
