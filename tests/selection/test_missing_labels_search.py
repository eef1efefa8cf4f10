"""Searches on labels of which some are missing: what is known is measured, and what cannot learn from it says so."""

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

from rbrl import BinaryRelevance, MLkNN, RBRLClassifierCV
from rbrl.exceptions import InvalidLabelsError
from rbrl.metrics import METRICS, evaluate
from rbrl.selection import tune
from rbrl.selection.path import Scoring, SearchData


@pytest.fixture
def problem():
    X, Y = make_multilabel_classification(60, 6, n_classes=4, random_state=0)
    return X, np.where(np.random.default_rng(0).random(Y.shape) < 0.4, np.nan, Y)


def test_a_table_measures_what_is_known(problem):
    X, Y = problem
    table = tune(BinaryRelevance(), {"C": [0.1, 1.0]}, X, Y, folds=2, metrics=METRICS)
    assert len(table) == 4
    of_probabilities = [name for name, metric in METRICS.items() if metric.needs == "probabilities"]
    assert table[[name for name in METRICS if name not in of_probabilities]].notna().all(axis=None)
    assert table[of_probabilities].isna().all(axis=None)  # which it does not have


def test_truth_is_nan_where_it_is_missing(problem):
    X, Y = problem
    data = SearchData(X, Y)
    np.testing.assert_array_equal(data.truth, Y)
    np.testing.assert_array_equal(data.signed, 2 * Y - 1)
    assert SearchData(X, np.nan_to_num(Y)).truth.dtype == bool


@pytest.mark.parametrize("said", ["mask", "weights"])
def test_what_has_no_weight_is_missing_in_a_search(problem, said):
    X, Y = problem
    known, filled = ~np.isnan(Y), np.nan_to_num(Y)
    masked = {"label_mask": known} if said == "mask" else {"sample_weight": known.astype(float)}
    expected, found = RBRLClassifierCV(cv=2).fit(X, Y), RBRLClassifierCV(cv=2).fit(X, filled, **masked)
    assert found.best_params_ == pytest.approx(expected.best_params_, rel=1e-9)
    scores = "mean_test_average_precision"
    np.testing.assert_allclose(found.cv_results_[scores], expected.cv_results_[scores], atol=1e-6)
    assert found.best_estimator_.objective_ == pytest.approx(expected.best_estimator_.objective_, rel=1e-9)


def test_a_row_of_equal_weights_is_a_weighted_row_in_a_search(problem):
    X, Y = problem
    of_rows = np.linspace(0.5, 2, len(Y))
    of_entries = np.tile(of_rows[:, None], Y.shape[1])
    searches = [RBRLClassifierCV(cv=2).fit(X, Y, weights) for weights in (of_rows, of_entries)]
    assert searches[0].best_params_ == pytest.approx(searches[1].best_params_, rel=1e-9)


def test_scoring_leaves_out_what_is_missing(problem):
    X, Y = problem
    data, scores = SearchData(X, Y), np.random.default_rng(1).standard_normal(Y.shape)
    values = Scoring()(X, Y, data.truth, scores, scores > 0, data.targets)
    assert values == evaluate(Y, (scores > 0).astype(int), scores, missing="ignore")


def test_a_method_that_cannot_is_refused(problem):
    with pytest.raises(InvalidLabelsError, match="MLkNN needs to know every label"):
        tune(MLkNN(), {"n_neighbors": [3]}, *problem, folds=2)


def test_a_search_takes_them_where_its_model_does(problem):
    search = RBRLClassifierCV(cv=2)
    if search.takes_missing:
        assert set(np.unique(search.fit(*problem).predict(problem[0]))) <= {0, 1}
    else:
        with pytest.raises(InvalidLabelsError, match="RBRLClassifier needs to know every label"):
            search.fit(*problem)
