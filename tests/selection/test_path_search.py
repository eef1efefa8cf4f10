"""The search along a path: it chooses what separate fits choose, and says what it measured."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.utils import get_tags

from problems import random_objective
from rbrl import BRLClassifier, RankSVM, RBRLClassifier, RBRLClassifierCV
from rbrl.metrics import PAPER_METRICS, evaluate, hamming_loss
from rbrl.registry import WEIGHTS
from rbrl.selection import PathSearchCV, tune
from rbrl.selection.grid_search import SOLVER_COLUMNS, best_index, best_point, choose, results_table
from rbrl.selection.path import Scoring, _best_start, solve_grid

X, Y = make_multilabel_classification(n_samples=90, n_features=8, n_classes=4, random_state=1)
GRID = {"ridges": [0.1, 1, 10], "rankings": [0.01, 1], "nuclears": [0.1, 3]}
MODELS = {
    "linear": (RBRLClassifier(), X),
    "sparse": (RBRLClassifier(), sparse.csr_array(X)),
    "rbf": (RBRLClassifier(kernel="rbf"), X),
    "precomputed": (RBRLClassifier(kernel="precomputed", fit_intercept=False), X @ X.T + 1.0),
    "more features than rows": (RBRLClassifier(), np.hstack([X, np.random.default_rng(0).normal(size=(90, 90))])),
}


@pytest.fixture(params=MODELS, scope="module")
def searched(request):
    estimator, rows = MODELS[request.param]
    return rows, RBRLClassifierCV(**GRID, estimator=estimator, cv=3, search_tol=1e-9).fit(rows, Y)


def test_every_point_scores_as_a_fit_of_its_own(searched):
    rows, search = searched
    folds = list(KFold(3, shuffle=True, random_state=0).split(rows))
    for point in (0, 5, 11):
        params = search.cv_results_["params"][point]
        for i, (train, test) in enumerate(folds):
            model = clone(search.estimator).set_params(**params, tol=1e-9)
            kernel = model.kernel == "precomputed"
            model.fit(rows[train][:, train] if kernel else rows[train], Y[train])
            held_out = rows[test][:, train] if kernel else rows[test]
            alone = evaluate(Y[test], model.predict(held_out), model.decision_function(held_out))
            for name, value in alone.items():
                assert search.cv_results_[f"split{i}_test_{name}"][point] == pytest.approx(value, abs=1e-3)


def test_the_best_point_is_refitted_at_full_tolerance(searched):
    rows, search = searched
    alone = clone(search.estimator).set_params(**search.best_params_).fit(rows, Y)
    np.testing.assert_array_equal(search.predict(rows), alone.predict(rows))
    assert search.best_estimator_.gap_ <= search.estimator.tol
    means = search.cv_results_["mean_test_average_precision"]
    assert search.best_score_ == means[search.best_index_] == means.max()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_after_a_search_in_single_precision_the_best_point_is_certified_in_double(kernel):
    search = RBRLClassifierCV(**GRID, estimator=RBRLClassifier(kernel=kernel), cv=3).fit(X, Y)
    alone = RBRLClassifier(kernel=kernel, **search.best_params_).fit(X, Y)
    assert search.best_estimator_.gap_ == alone.gap_ <= alone.tol
    assert search.best_estimator_.objective_ == alone.objective_


def test_results_look_like_scikit_learns(searched):
    results = searched[1].cv_results_
    assert len(results["params"]) == 12
    for metric in PAPER_METRICS:
        folds = [results[f"split{i}_test_{metric.name}"] for i in range(3)]
        np.testing.assert_allclose(results[f"mean_test_{metric.name}"], np.mean(folds, axis=0))
        assert results[f"rank_test_{metric.name}"].min() == 1
    assert np.all(results["mean_gap"] >= 0)
    assert np.all(results["mean_evaluations"] >= 1)


def test_the_answer_does_not_depend_on_the_number_of_jobs():
    one, two = (RBRLClassifierCV(**GRID, cv=3, n_jobs=n).fit(X, Y) for n in (1, 2))
    assert one.best_params_ == two.best_params_
    for name in one.cv_results_:
        if "test" in name or "gap" in name or "evaluations" in name:
            np.testing.assert_array_equal(one.cv_results_[name], two.cv_results_[name])


def test_neighbours_save_evaluations():
    problem = RBRLClassifier().problem(X, Y)
    axes = {"ridge": [10.0, 1.0, 0.1], "ranking": [0.01, 0.1], "nuclear": [0.01, 0.1]}
    warm = sum(solved.result.evaluations for solved in solve_grid(problem, axes))
    cold = 0.0
    for ridge in axes["ridge"]:
        for ranking in axes["ranking"]:
            for nuclear in axes["nuclear"]:
                alone = {"ridge": [ridge], "ranking": [ranking], "nuclear": [nuclear]}
                cold += sum(solved.result.evaluations for solved in solve_grid(problem, alone))
    assert warm < 0.9 * cold


def test_ties_go_to_the_stronger_penalties():
    points = [{"ridge": r, "nuclear": s} for r in (1.0, 10.0) for s in (1.0, 0.1)]
    assert best_index(points, [0.2, 0.2, 0.2, 0.2]) == 2
    assert best_index(points, [0.2, 0.1, 0.2, 0.3]) == 1
    assert best_index(points, [0.2, np.nan, 0.2 + 1e-15, np.nan]) == 2, "what differs by rounding alone is tied"
    assert best_index([{"estimator__C": 1.0}, {"estimator__C": 0.1}], [0.0, 0.0]) == 1
    assert best_index([{"max_iter": 5, "ridge": 1.0}, {"nuclear": 2.0}, {"nuclear": 3.0}], [1, 1, 1]) == 2


def test_a_comparison_and_a_search_break_ties_alike():
    """Of ridge 1, nuclear 10 and ridge 10, nuclear 1 both take the same, whoever searches."""
    grid = {"ridge": [1.0, 10.0], "nuclear": [1.0, 10.0]}
    points = [point for point in ParameterGrid(grid) if point["ridge"] != point["nuclear"]]
    values = {json.dumps(point): {"hamming_loss": [0.5, 0.5]} for point in points}
    compared = choose(values, "hamming_loss", ["hamming_loss"])
    scoring = {"tied": lambda estimator, X, y: 1.0}
    searched = results_table(
        [[{"params": p, "tied": 1.0, **dict.fromkeys(SOLVER_COLUMNS, 0.0)} for p in points]], Scoring(scoring)
    )
    assert points[best_point(searched, Scoring(scoring), "tied")] == compared == {"ridge": 1.0, "nuclear": 10.0}


def test_a_search_takes_the_strongest_of_points_that_tie():
    scoring = {"tied": lambda estimator, X, y: 1.0}
    search = RBRLClassifierCV([1, 10], [0.1, 1], [1, 10], cv=2, scoring=scoring).fit(X, Y)
    assert search.best_params_ == {"ridge": 10, "ranking": 1, "nuclear": 10}
    assert set(search.cv_results_["rank_test_tied"]) == {1}


def test_any_scorer_and_several_at_once():
    scoring = {"macro": make_scorer(f1_score, average="macro"), "jaccard": "jaccard_samples", "hal": "hamming_loss"}
    search = RBRLClassifierCV([1], [0.1], [0.1, 1], cv=3, scoring=scoring, refit="macro").fit(X, Y)
    assert {"mean_test_macro", "mean_test_jaccard", "mean_test_hal"} <= set(search.cv_results_)
    assert 0 < search.best_score_ < 1


def test_a_criterion_that_is_not_measured_is_refused():
    with pytest.raises(ValueError, match=r"one of the metrics searched, \['hamming_loss'\]. Got 'coverage'"):
        RBRLClassifierCV([1], [1], [1], scoring="hamming_loss", refit="coverage").fit(X, Y)


def test_the_papers_grid():
    assert pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100]) == WEIGHTS


def test_other_models_search_along_the_same_path():
    search = PathSearchCV(BRLClassifier(), {"ridge": [10, 1], "nuclear": [0.1, 1]}, cv=3).fit(X, Y)
    assert set(search.best_params_) == {"ridge", "nuclear"}


def test_tune_gives_a_row_per_point_and_fold():
    table = tune(RBRLClassifier(), {"ridge": [1, 10], "ranking": [0.1], "nuclear": [0.1, 1]}, X, Y, folds=3)
    assert len(table) == 12
    assert {"param_ridge", "fold", "average_precision", "fit_seconds", "gap"} <= set(table)
    two = tune(RBRLClassifier(), {"ridge": [1, 10], "ranking": [0.1], "nuclear": [0.1, 1]}, X, Y, folds=3, n_jobs=2)
    np.testing.assert_array_equal(table["average_precision"], two["average_precision"])


class Majority(ClassifierMixin, BaseEstimator):
    """Predicts a label that more than a share of the rows have; it has no scores."""

    def __init__(self, share=0.5):
        self.share = share

    def fit(self, X, y):
        self.labels_ = (y.mean(axis=0) > self.share).astype(int)
        return self

    def predict(self, X):
        return np.tile(self.labels_, (len(X), 1))


def test_tune_asks_for_scores_only_where_a_metric_needs_them():
    table = tune(Majority(), {"share": [0.3, 0.6]}, X, Y, folds=2, metrics=["hamming_loss"])
    train, test = next(KFold(2, shuffle=True, random_state=0).split(X))
    expected = hamming_loss(Y[test], Majority(0.3).fit(X[train], Y[train]).predict(X[test]))
    assert table.query("param_share == 0.3 and fold == 0").hamming_loss.item() == expected
    with pytest.raises(TypeError, match="Majority has neither decision_function nor predict_proba"):
        tune(Majority(), {"share": [0.3]}, X, Y, folds=2, metrics=["ranking_loss"])


def test_tune_searches_kernels_too():
    table = tune(RBRLClassifier(kernel="rbf"), {"gamma": [0.01, 0.1], "ridge": [1, 10]}, X, Y, folds=2)
    assert sorted(set(zip(table["param_gamma"], table["param_ridge"]))) == [(0.01, 1), (0.01, 10), (0.1, 1), (0.1, 10)]


def test_tune_goes_along_a_path_over_C_and_finds_what_single_fits_find():
    Cs = [10.0, 0.1, 1.0]
    table = tune(RankSVM(tol=1e-6), {"C": Cs}, X, Y, folds=2)
    alone = pd.concat([tune(RankSVM(tol=1e-6), {"C": [C]}, X, Y, folds=2) for C in Cs])
    keys, names = ["param_C", "fold"], ["ranking_loss", "coverage"]
    expected = alone.set_index(keys)[names].reindex(pd.MultiIndex.from_frame(table[keys]))
    np.testing.assert_allclose(table[names], expected, atol=1e-3)


def test_rows_of_weight_zero_are_absent_from_a_search():
    train, test = np.arange(60), np.arange(60, 90)
    weights = np.arange(90) % 3 > 0
    for estimator, rows in (MODELS["linear"], MODELS["precomputed"]):
        options = {"ridges": [1], "rankings": [0.1], "nuclears": [0.1, 1], "estimator": estimator}
        weighted = RBRLClassifierCV(**options, cv=[(train, test)]).fit(rows, Y, weights).cv_results_
        absent = RBRLClassifierCV(**options, cv=[(train[weights[train]], test)]).fit(rows, Y).cv_results_
        for name in ("mean_gap", "mean_evaluations", "mean_test_coverage"):
            np.testing.assert_array_equal(weighted[name], absent[name])


def test_one_class_of_two_is_never_an_empty_answer():
    options = {"ridges": [1, 10], "rankings": [0], "nuclears": [0.1], "cv": 3, "scoring": ["hamming_loss", "accuracy"]}
    filled = RBRLClassifierCV(**options, estimator=RBRLClassifier(non_empty=True)).fit(X, Y[:, 0])
    plain = RBRLClassifierCV(**options).fit(X, Y[:, 0])
    for name in ("mean_test_hamming_loss", "mean_test_accuracy"):
        np.testing.assert_array_equal(filled.cv_results_[name], plain.cv_results_[name])


def test_a_model_starts_from_the_neighbour_with_the_lowest_objective():
    objective = random_objective(np.random.default_rng(0))
    known = [
        (W, objective.design.scores(W)) for W in (objective.zeros(), 0.1 + objective.zeros(), 9 + objective.zeros())
    ]
    lowest = min(range(3), key=lambda i: objective.value(known[i][0]))
    for order in ([0, 1, 2], [2, 1, 0]):
        assert _best_start(objective, [known[i] for i in order])[0] is known[lowest][0]
    assert _best_start(objective, []) == (None, None)


def test_numbers_beyond_single_precision_are_searched_too():
    search = RBRLClassifierCV([1], [0.1], [0.1, 1], cv=2).fit(1e20 * X, Y)
    assert np.isfinite(search.best_score_)


def test_a_search_says_that_it_takes_several_labels():
    tags = get_tags(PathSearchCV(RBRLClassifier(), {"ridge": [1.0]})).target_tags
    assert tags.multi_output
