"""The search from coarse to fine: its stages, its growth beyond edges, and that it is one search with the others."""

import io

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold

from rbrl import RBRLClassifier, RBRLClassifierCV
from rbrl._common.progress import Lines, Models
from rbrl.registry import WEIGHTS
from rbrl.selection import PathSearchCV
from rbrl.selection.path import SETTINGS, Best, Fold, Scoring, SearchData, coarse_to_fine, solve_grid

X, Y = make_multilabel_classification(n_samples=90, n_features=8, n_classes=4, random_state=1)
START = {"ridge": 1.0, "ranking": 1.0, "nuclear": 0.1}
MEASURED = [f"{kind}_test_{name}" for kind in ("mean", "std") for name in ("average_precision", "hamming_loss")]


def stages_for(score, ridge=1.0, reference=100.0, ranked=True):
    """All stages of a search in which a point is worth `score(**point)`, and the point chosen."""
    tried, found = [], []

    def search(stage):
        found.append(stage)
        tried.extend(
            {"ridge": r, "ranking": p, "nuclear": s}
            for r in stage.axes["ridge"]
            for p in stage.axes["ranking"]
            for s in stage.axes["nuclear"]
        )
        best = max(tried, key=lambda point: score(**point))
        return Best(best, [point for point in tried if score(**point) == score(**best)])

    coarse_to_fine(search, ridge, lambda point: reference, ranked)
    best = max(tried, key=lambda point: score(**point))
    return found, best, len({tuple(point.values()) for point in tried})


def near(ridge, ranking, nuclear):
    """A score with its peak there."""
    peak = {"ridge": ridge, "ranking": ranking, "nuclear": nuclear}
    return lambda **point: -sum(np.log(point[name] / peak[name]) ** 2 for name in peak)


def same(one, two, names=MEASURED):
    assert one.cv_results_["params"] == two.cv_results_["params"]
    for name in names:
        np.testing.assert_array_equal(one.cv_results_[name], two.cv_results_[name])
    assert one.best_params_ == two.best_params_


def test_a_best_point_in_the_middle_takes_three_stages_and_eleven_points():
    found, best, n_points = stages_for(near(1.0, 1.0, 3.0))
    assert [stage.axes for stage in found] == [
        {"ridge": [3.0, 1.0, 0.3, 0.1], "ranking": [1.0], "nuclear": [0.1]},
        {"ridge": [1.0], "ranking": [0.1, 1.0, 10.0], "nuclear": [0.1]},
        {"ridge": [1.0, 1 / 3], "ranking": [1.0], "nuclear": [0.1, 3.0, 10.0]},
    ]
    assert best == {"ridge": 1.0, "ranking": 1.0, "nuclear": 3.0}
    assert n_points == 11
    assert [stage.n_later for stage in found] == [7, 5, 0]
    # A third of 0.3 is what was tried as 0.1.
    assert stages_for(near(0.3, 1.0, 3.0), ridge=1.1)[0][-1].axes["ridge"] == [0.3 * 1.1, 0.1 * 1.1]
    assert not any(stage.final for stage in found)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ridge", [3.0, 9.0, 27.0]),
        ("ridge", [0.1, 0.1 / 3, 0.1 / 9]),
        ("ranking", [10.0, 100.0, 1000.0]),
        ("ranking", [0.1, 0.01, 0.001]),
        ("nuclear", [10.0, 30.0, 90.0]),
    ],
)
def test_an_axis_grows_where_the_best_point_lies_at_its_edge(name, values):
    _, best, n_points = stages_for(near(**START | {"nuclear": 3.0} | {name: values[1]}))
    assert best[name] == pytest.approx(values[1])
    _, best, _ = stages_for(near(**START | {"nuclear": 3.0} | {name: values[2]}))
    assert best[name] == pytest.approx(values[2])
    assert n_points <= 11 + 2 * SETTINGS.max_steps


@pytest.mark.parametrize("sign", [1, -1])
def test_growth_is_bounded(sign):
    found, best, n_points = stages_for(lambda **point: sign * sum(np.log(value) for value in point.values()))
    assert n_points <= 11 + 4 * SETTINGS.max_steps
    # Less than this share of the reference is not tried, nor more than all of it.
    assert {s for stage in found for s in stage.axes["nuclear"]} <= {0.1, 3.0, 10.0, 30.0, 90.0}
    assert best["ranking"] == (1e4 if sign > 0 else 1e-4)


def test_nothing_grows_where_a_point_inside_is_as_good():
    assert stages_for(lambda **point: 0.0)[2] <= 11
    search = RBRLClassifierCV(scoring={"tied": lambda estimator, X, y: 1.0}, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 11
    # The rule for ties: the strongest of what was tried.
    assert search.best_params_ == {
        name: max(search.cv_results_[f"param_{name}"]) for name in ("ridge", "ranking", "nuclear")
    }


def test_weights_of_the_nuclear_norm_may_shrink_to_a_hundredth_of_the_reference():
    _, best, _ = stages_for(near(1.0, 1.0, 1e-9), reference=1.5)
    assert best["nuclear"] == pytest.approx(0.015)
    _, best, n_points = stages_for(
        lambda **point: near(1.0, 1.0, 1.0)(**point | {"nuclear": 1.0}) - point["nuclear"], reference=0.0
    )
    assert best["nuclear"] == 0.0
    assert n_points == 4 + 2 + 3


def test_a_single_label_has_no_ranking_to_weigh():
    found, _, _ = stages_for(near(**START), ranked=False)
    assert {p for stage in found for p in stage.axes["ranking"]} == {1.0}
    search = RBRLClassifierCV().fit(X, Y[:, 0])
    assert set(search.cv_results_["param_ranking"]) == {1.0}


@pytest.fixture(scope="module")
def searched():
    return RBRLClassifierCV().fit(X, Y)


def test_ridges_are_multiples_of_what_the_rows_suggest(searched):
    ridges, auto = searched.cv_results_["param_ridge"][:4], RBRLClassifier().fit(X, Y).ridge_
    np.testing.assert_allclose(ridges / auto, [3, 1, 0.3, 0.1])
    assert sum(key.startswith("split") and key.endswith("test_coverage") for key in searched.cv_results_) == 3


def test_no_point_is_tried_twice_and_the_best_of_all_stages_is_chosen(searched):
    results = searched.cv_results_
    points = {tuple(params.values()) for params in results["params"]}
    assert 11 <= len(points) == len(results["params"])
    assert searched.best_score_ == results["mean_test_average_precision"].max()
    assert results["rank_test_average_precision"][searched.best_index_] == 1
    assert searched.best_estimator_.gap_ <= 1e-4


def test_every_point_scores_as_in_a_search_of_its_own(searched):
    fine = RBRLClassifierCV(search_tol=1e-9).fit(X, Y)
    for i, params in enumerate(fine.cv_results_["params"]):
        axes = {name: [value] for name, value in params.items()}
        alone = PathSearchCV(RBRLClassifier(), axes, cv=3, search_tol=1e-9).fit(X, Y)
        for name in MEASURED:
            assert fine.cv_results_[name][i] == pytest.approx(alone.cv_results_[name][0], abs=1e-3)


def test_equal_seeds_give_equal_results_on_any_number_of_jobs(searched):
    same(searched, RBRLClassifierCV().fit(X, Y))
    same(searched, RBRLClassifierCV(n_jobs=2).fit(X, Y), [*MEASURED, "mean_gap", "mean_evaluations"])
    other = RBRLClassifierCV(random_state=1).fit(X, Y)
    assert np.any(
        other.cv_results_["mean_test_average_precision"][:4] != searched.cv_results_["mean_test_average_precision"][:4]
    )


def test_the_papers_grid_is_all_of_its_combinations_in_five_folds():
    axes = {"ridge": WEIGHTS[::-1], "ranking": WEIGHTS, "nuclear": WEIGHTS}
    options = {"cv": [(np.arange(30), np.arange(30, 60))], "scoring": ["average_precision", "hamming_loss"]}
    paper = RBRLClassifierCV(grid="paper", **options).fit(X, Y[:, :2])
    whole = PathSearchCV(RBRLClassifier(), axes, **options).fit(X, Y[:, :2])
    assert len(paper.cv_results_["params"]) == 343
    same(paper, whole, [*MEASURED, "mean_gap", "mean_evaluations"])
    assert RBRLClassifierCV(grid="paper")._folds() == 5


def test_values_that_are_given_are_combined_with_the_papers():
    axes = RBRLClassifierCV(ridges=[1, 10])._axes()
    assert (axes["ridge"], axes["ranking"]) == ([10, 1], list(WEIGHTS))
    search = RBRLClassifierCV(ridges=[1, 10], rankings=[1], nuclears=[0.1], grid="paper").fit(X, Y)
    assert len(search.cv_results_["params"]) == 2
    assert "split4_test_coverage" in search.cv_results_


def test_an_unknown_grid_is_refused():
    with pytest.raises(ValueError, match=r"grid.*'fine'"):
        RBRLClassifierCV(grid="fine").fit(X, Y)


def test_a_weight_is_as_good_as_a_repetition():
    times = 1 + np.arange(60) % 3
    whole, repeated = np.arange(90), np.concatenate([np.repeat(np.arange(60), times), np.arange(60, 90)])
    weights = np.concatenate([times, np.ones(30)])
    weighted = RBRLClassifierCV(cv=[(whole[:60], whole[60:])], search_tol=1e-9).fit(X, Y, weights)
    n = len(repeated)
    rows = [(np.arange(n - 30), np.arange(n - 30, n))]
    plain = RBRLClassifierCV(cv=rows, search_tol=1e-9).fit(X[repeated], Y[repeated])
    for one, two in zip(weighted.cv_results_["params"], plain.cv_results_["params"], strict=True):
        assert one == pytest.approx(two, rel=1e-6)
    np.testing.assert_allclose(weighted.cv_results_[MEASURED[0]], plain.cv_results_[MEASURED[0]], atol=1e-3)


def test_sparse_rows_are_searched_as_dense_ones_are(searched):
    of_sparse = RBRLClassifierCV().fit(sparse.csr_array(X), Y)
    for one, two in zip(of_sparse.cv_results_["params"][:4], searched.cv_results_["params"][:4]):
        assert one == pytest.approx(two)
    np.testing.assert_allclose(of_sparse.cv_results_[MEASURED[0]][:4], searched.cv_results_[MEASURED[0]][:4], atol=5e-3)
    assert of_sparse.best_score_ == pytest.approx(searched.best_score_, abs=0.01)


@pytest.mark.parametrize(
    ("estimator", "rows"),
    [
        (RBRLClassifier(kernel="rbf"), X),
        (RBRLClassifier(kernel="rbf", approximation="nystroem", n_components=30, random_state=0), X),
        (RBRLClassifier(kernel="precomputed", fit_intercept=False, low_rank="function"), X @ X.T / 100 + 1.0),
    ],
)
def test_with_a_kernel_ridges_are_multiples_of_one(estimator, rows):
    search = RBRLClassifierCV(estimator=estimator, cv=2).fit(rows, Y)
    np.testing.assert_allclose(search.cv_results_["param_ridge"][:4], [3, 1, 0.3, 0.1])
    assert search.best_estimator_.gap_ <= 1e-4


def fold_of(estimator, rows=X, weights=None):
    return Fold(
        estimator, SearchData(rows, Y, weights), np.arange(60), np.arange(60, 90), Scoring("average_precision"), 1e-6
    )


def test_a_nuclear_norm_of_the_reference_leaves_intercepts_alone_and_a_tenth_does_not():
    fold = fold_of(RBRLClassifier(ranking=0.0))
    reference = fold.nuclear_reference({})
    by_hand = RBRLClassifier(ranking=0.0).problem(X[:60], Y[:60])
    constant = by_hand.Y.mean(axis=0)
    # The squared hinge within its margins: derivatives f - y.
    residual = constant - by_hand.Y
    assert reference == pytest.approx(np.linalg.norm(X[:60].T @ (residual - residual.mean(axis=0)), 2), rel=1e-6)
    for share, is_constant in ((1.05, True), (0.1, False)):
        model = RBRLClassifier(ridge=1e-6, ranking=0.0, nuclear=share * reference, intercept_ridge=1e-12)
        assert (np.abs(model.fit(X[:60], Y[:60]).coef_).max() < 1e-3) == is_constant


def test_the_reference_counts_weights_as_repetitions_and_is_the_same_for_any_design():
    weights = np.concatenate([1.0 + np.arange(60) % 3, np.ones(30)])
    repeated = np.repeat(np.arange(60), weights[:60].astype(int))
    reference = fold_of(RBRLClassifier(), weights=weights).nuclear_reference(START)
    data = SearchData(X[repeated], Y[repeated])
    plain = Fold(RBRLClassifier(), data, np.arange(len(repeated)), np.arange(5), Scoring("coverage"), 1e-4)
    assert plain.nuclear_reference(START) == pytest.approx(reference, rel=1e-6)
    for other in (
        fold_of(RBRLClassifier(), sparse.csr_array(X), weights),
        fold_of(RBRLClassifier(intercept_ridge=None), weights=weights),
        fold_of(RBRLClassifier(kernel="precomputed", fit_intercept=False, low_rank="function"), X @ X.T, weights),
    ):
        assert other.nuclear_reference(START) == pytest.approx(reference, rel=1e-6)


@pytest.mark.parametrize("estimator", [RBRLClassifier(), RBRLClassifier(kernel="rbf")])
def test_what_is_known_is_not_solved_again_and_serves_as_a_start(estimator):
    problem, known = estimator.problem(X, Y), {}
    first = {"ridge": [10.0, 1.0], "ranking": [1.0], "nuclear": [0.1]}
    assert len(list(solve_grid(problem, first, known=known))) == 2
    assert all(found.design is None for found in known.values())
    second = {"ridge": [10.0], "ranking": [0.9, 1.0, 1.1], "nuclear": [0.1]}
    warm = list(solve_grid(problem, second, known=known))
    assert [solved.params["ranking"] for solved in warm] == [0.9, 1.1]
    assert len(known) == 4
    cold = list(solve_grid(problem, second))
    assert warm[0].result.evaluations < cold[0].result.evaluations
    assert list(solve_grid(problem, second, known=known)) == []


def test_progress_counts_models_with_the_time_left():
    stream = io.StringIO()
    models = Models("Search", Lines(stream), pause=0.0)
    models.expect(3)
    for _ in range(3):
        models.advance(1)
    models.expect(1)
    models.advance(1)
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("Search: 1 of 3 models, about ")
    assert [line.partition(",")[0] for line in lines[-2:]] == ["Search: 3 of 3 models", "Search: 4 of 4 models"]


@pytest.mark.parametrize("options", [{}, {"ridges": [1, 10], "rankings": [1], "nuclears": [0.1]}])
def test_both_kinds_of_search_tell_how_far_they_are(options, capsys):
    search = RBRLClassifierCV(**options, cv=KFold(2), verbose=1).fit(X, Y)
    n_models = 2 * len(search.cv_results_["params"])
    assert f"RBRLClassifierCV: {n_models} of {n_models} models, " in capsys.readouterr().err.splitlines()[-1]
    RBRLClassifierCV(**options, cv=2).fit(X, Y)
    assert capsys.readouterr().err == ""
