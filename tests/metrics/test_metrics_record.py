"""Metrics as records and as scikit-learn scorers."""

import pickle

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier

from rbrl.metrics import METRICS, PAPER_METRICS, Metric, evaluate, get_metric, ndcg_at_k, scores_of

CLASSIFIERS = [
    OneVsRestClassifier(LogisticRegression()),
    MultiOutputClassifier(LogisticRegression()),
    KNeighborsClassifier(),
    RandomForestClassifier(n_estimators=5, random_state=0),
]


@pytest.fixture(scope="module")
def problem():
    return make_multilabel_classification(80, 6, n_classes=4, random_state=0)


def test_the_papers_six_in_the_papers_order():
    assert [metric.abbreviation for metric in PAPER_METRICS] == ["Hal", "Sa", "F1e", "Ral", "Cov", "Ap"]
    assert [metric.greater_is_better for metric in PAPER_METRICS] == [False, True, True, False, False, True]


def test_names_and_abbreviations_are_unique():
    assert all(name == metric.name for name, metric in METRICS.items())
    assert len({metric.abbreviation for metric in METRICS.values()}) == len(METRICS)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
def test_every_metric_is_a_scorer(classifier, problem):
    known = {
        name: metric
        for name, metric in METRICS.items()
        if metric.needs != "probabilities" or hasattr(classifier, "predict_proba")
    }
    scores = cross_validate(classifier, *problem, scoring=known, cv=3, error_score="raise")
    for name, metric in known.items():
        values = scores[f"test_{name}"]
        assert np.all(values >= 0 if metric.greater_is_better else values <= 0), name


def test_a_loss_is_negated_as_a_scorer(problem):
    X, Y = problem
    model = KNeighborsClassifier().fit(X, Y)
    metric = METRICS["hamming_loss"]
    assert metric(model, X, Y) == -metric.value(Y, labels=model.predict(X))


def test_grid_search_takes_a_metric(problem):
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, scoring=METRICS["ranking_loss"], cv=3)
    assert search.fit(*problem).best_score_ <= 0


def test_scorer_of_the_other_convention(problem):
    X, Y = problem
    model = KNeighborsClassifier().fit(X, Y)
    scorer = METRICS["coverage"].scorer(convention="sklearn")
    assert scorer(model, X, Y) == -METRICS["coverage"].value(Y, scores=scores_of(model, X), convention="sklearn")


def test_scores_of_a_label_that_is_constant_in_training(problem):
    X, Y = problem
    Y = Y.copy()
    Y[:, 0], Y[:, 1] = 0, 1
    scores = scores_of(RandomForestClassifier(n_estimators=3, random_state=0).fit(X, Y), X)
    assert scores.shape == Y.shape
    assert np.all(scores[:, 0] == 0)
    assert np.all(scores[:, 1] == 1)


def test_an_estimator_without_scores_is_named(problem):
    X, Y = problem
    model = MultiOutputClassifier(Perceptron()).fit(X, Y)
    with pytest.raises(TypeError, match="Got MultiOutputClassifier, which has neither"):
        METRICS["coverage"](model, X, Y)


def test_evaluate_follows_the_order_asked_for(prediction):
    values = evaluate(*prediction, metrics=["Ap", "hamming_loss", "ndcg_at_2", get_metric("recall_at_2")])
    assert list(values) == ["average_precision", "hamming_loss", "ndcg_at_2", "recall_at_2"]
    assert list(evaluate(*prediction)) == [metric.name for metric in PAPER_METRICS]


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match=r"coverage compares Y with scores\. Got scores=None"):
        evaluate([[1, 0]], labels=[[1, 0]], metrics=["coverage"])
    with pytest.raises(ValueError, match="Got 'accuracy'"):
        get_metric("accuracy")
    with pytest.raises(ValueError, match="Got 'f1_at_3'"):
        get_metric("f1_at_3")
    with pytest.raises(ValueError, match="Got 'ndcg_at_0'"):
        get_metric("ndcg_at_0")
    with pytest.raises(ValueError, match="Got 0"):
        ndcg_at_k([[1, 0]], [[1, 0]], k=0)


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_records_travel_to_other_processes(metric, prediction):
    copy = pickle.loads(pickle.dumps(metric))
    assert isinstance(copy, Metric)
    P = expit(prediction[2])
    assert copy.value(*prediction, probabilities=P) == metric.value(*prediction, probabilities=P)


def test_direction():
    loss, gain = METRICS["hamming_loss"], METRICS["subset_accuracy"]
    assert (loss.better(0.1, 0.2), gain.better(0.1, 0.2)) == (True, False)
    assert (loss.arrow, gain.arrow) == ("↓", "↑")
