"""Classifiers whose parameters fit themselves to the data: the same in every form of the rows, and certified."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold
from sklearn.svm import SVC

import rbrl
from rbrl import CPNL, BinaryRelevance, BRLClassifier, RankSVM, RBRLClassifier, TunedThresholdClassifier
from rbrl.exceptions import ScalingWarning
from rbrl.metrics import evaluate
from rbrl.scales import ColumnScales
from rbrl.selection import PathSearchCV, tune

X, Y = make_multilabel_classification(90, 7, n_classes=4, random_state=0, allow_unlabeled=False)
# Five of ninety rows, more than one in fifty.
EMPTY = np.vstack([np.zeros((5, 4), dtype=Y.dtype), Y[5:]])
TIGHT = {"tol": 1e-9, "max_iter": 20_000}
convex = pytest.mark.parametrize("cls", [RBRLClassifier, BRLClassifier, CPNL])


def in_form(form, X, Y):
    """Arguments of fit."""
    if form == "blocks":
        return ([(X[:30], Y[:30]), (X[30:], Y[30:])],)
    if form == "dask":
        da = pytest.importorskip("dask.array")
        return da.from_array(X, chunks=(40, -1)), da.from_array(Y, chunks=(40, -1))
    return (sparse.csr_array(X) if form == "sparse" else X), Y


@convex
@pytest.mark.parametrize("form", ["sparse", "blocks", "dask"])
def test_every_form_of_the_rows_gives_the_same_model(cls, form):
    # Weights agree to the root of the gap, so that five digits take a gap of 1e-11.
    tight = {**TIGHT, "tol": 1e-11}
    expected, found = cls(**tight).fit(X, Y), cls(**tight).fit(*in_form(form, X, Y))
    assert expected.ridge_ == ColumnScales.from_rows(X).ridge()
    assert found.ridge_ == pytest.approx(expected.ridge_, rel=1e-12)
    assert found.gap_ <= 1e-11
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-5)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-5)
    assert found.non_empty_ is expected.non_empty_ is True
    assert cls().fit(*in_form(form, X, EMPTY)).non_empty_ is False
    few = np.vstack([EMPTY[:1], Y[1:]])
    model = cls().fit(*in_form(form, X, few))
    assert model.non_empty_ is True
    assert model.empty_share_ == pytest.approx(1 / 90)


@pytest.mark.parametrize("intercept_ridge", [1e-3, 1.0, 50.0, None])
@pytest.mark.parametrize("form", ["dense", "sparse", "blocks", "single", "few rows"])
@pytest.mark.parametrize("nuclear", [0.0, 5.0])
def test_the_intercept_has_a_penalty_of_its_own(intercept_ridge, form, nuclear):
    """The reported objective is that of the stored numbers, and the gap holds against a tight solution."""
    rows, labels = (X[:5], Y[:5]) if form == "few rows" else (X, Y)
    rows = rows.astype(np.float32) if form == "single" else rows
    model = BRLClassifier(ridge=20.0, nuclear=nuclear, intercept_ridge=intercept_ridge, tol=1e-3)
    best = clone(model).set_params(**TIGHT).fit(rows.astype(float), labels)
    model.fit(*in_form(form, rows, labels))
    penalty = 20.0 if intercept_ridge is None else intercept_ridge
    coef, b = model.coef_.astype(float), model.intercept_.astype(float)
    slack = np.maximum(1 - (2 * labels - 1) * (rows.astype(float) @ coef.T + b), 0)
    W = np.column_stack([coef, b * np.sqrt(penalty / 20.0)])
    value = 0.5 * np.sum(slack**2) + 10.0 * np.sum(coef**2) + 0.5 * penalty * np.sum(b**2)
    assert model.objective_ == pytest.approx(value + nuclear * np.linalg.norm(W, "nuc"), rel=1e-9)
    assert model.gap_ <= 1e-3
    assert best.objective_ * (1 - 1e-8) <= model.objective_ <= best.objective_ * (1 + model.gap_ + 1e-8)


@pytest.mark.parametrize("solver", ["auto", "apg", "low-rank"])
def test_every_solver_finds_the_same_intercept(solver):
    expected = RBRLClassifier(ridge=30.0, nuclear=2.0, **TIGHT).fit(X, Y)
    found = RBRLClassifier(ridge=30.0, nuclear=2.0, solver=solver, tol=1e-7, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-2)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)


def test_a_free_ridge_frees_the_intercept():
    models = [BRLClassifier(ridge=0, nuclear=1.0, intercept_ridge=value).fit(X, Y) for value in (1.0, None)]
    np.testing.assert_array_equal(models[0].intercept_, models[1].intercept_)


def test_a_warm_start_goes_on_from_the_stored_intercept():
    for form in ("dense", "sparse", "blocks"):
        rows = in_form(form, X, Y)
        model = RBRLClassifier(ridge=50.0, warm_start=True, tol=1e-8).fit(*rows)
        n_iter = model.n_iter_
        assert model.fit(*rows).n_iter_ <= 2 < n_iter


@pytest.mark.parametrize("cls", [RBRLClassifier, BRLClassifier])
def test_a_nuclear_norm_of_auto_is_none_without_max_rank(cls):
    automatic, stated = cls().fit(X, Y), cls(nuclear=0).fit(X, Y)
    assert automatic.nuclear_ == stated.nuclear_ == 0.0
    np.testing.assert_array_equal(automatic.coef_, stated.coef_)
    kernel, stated = cls(kernel="rbf").fit(X, Y), cls(kernel="rbf", nuclear=0).fit(X, Y)
    assert kernel.nuclear_ == stated.nuclear_ == 0.0
    np.testing.assert_array_equal(kernel.dual_coef_, stated.dual_coef_)
    assert cls(max_rank=2).nuclear_ == 0.1
    blocks = cls().fit([(X[:30], Y[:30]), (X[30:], Y[30:])])
    assert blocks.objective_ == pytest.approx(automatic.objective_, rel=2e-4)


@convex
@pytest.mark.parametrize(
    ("name", "value"),
    [("ridge", "much"), ("ridge", -1), ("intercept_ridge", 0), ("intercept_ridge", "auto"), ("non_empty", "never"),
     ("gamma", "wide")],
)  # fmt: skip
def test_other_words_are_refused(cls, name, value):
    with pytest.raises(ValueError, match=f"The {name} parameter of {cls.__name__} must be .* Got {value!r}"):
        cls(**{name: value}).fit(X, Y)


def test_weights_are_repetitions():
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    for kernel in ("linear", "rbf"):
        model = RBRLClassifier(kernel=kernel, low_rank="function", **TIGHT)
        weighted = clone(model).fit(X, Y, sample_weight=weights)
        repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
        assert weighted.ridge_ == pytest.approx(repeated.ridge_, rel=1e-12)
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)


def test_constant_features():
    model = RBRLClassifier().fit(np.ones((90, 3)), Y)
    assert model.ridge_ == 1.0
    assert model.gap_ <= 1e-4


def test_the_width_is_that_of_the_fit():
    model = RBRLClassifier(kernel="rbf", gamma="scale").fit(X, Y)
    assert model.gamma_ == pytest.approx(SVC(gamma="scale").fit(X, Y[:, 0])._gamma, rel=1e-12)
    same = RBRLClassifier(kernel="rbf", gamma=model.gamma_).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X + 1), same.decision_function(X + 1))
    assert RBRLClassifier(kernel="rbf").fit(X, Y).ridge_ == 1.0
    assert not hasattr(model.set_params(kernel="linear").fit(X, Y), "gamma_")


@pytest.mark.parametrize(
    "options", [{"approximation": "nystroem", "n_components": 20}, {"low_rank": "function"}], ids=str
)
def test_every_kind_of_kernel_model_has_the_same_width(options):
    model = RBRLClassifier(kernel="rbf", random_state=0, **options).fit(X, Y)
    assert model.gamma_ == RBRLClassifier(kernel="rbf").fit(X, Y).gamma_
    fixed = clone(model).set_params(gamma=model.gamma_).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), fixed.decision_function(X))


@pytest.mark.parametrize("model", [RankSVM(kernel="rbf"), BinaryRelevance(kernel="rbf"), rbrl.EnsembleOfChains(kernel="rbf",
                         n_chains=2, random_state=0), rbrl.RAkEL(kernel="rbf", random_state=0)], ids=str)  # fmt: skip
def test_other_methods_take_the_words_too(model):
    wide = clone(model).set_params(gamma="median").fit(X, Y)
    fixed = clone(model).set_params(gamma=wide.gamma_).fit(X, Y)
    np.testing.assert_array_equal(wide.decision_function(X), fixed.decision_function(X))
    paper = clone(model).set_params(gamma="paper").fit(X, Y)
    np.testing.assert_array_equal(paper.decision_function(X), clone(model).fit(X, Y).decision_function(X))


class TestNonEmpty:
    """Rows of zeros get no label from a model with rare ones."""

    def test_it_is_on_if_nearly_every_training_row_has_a_label(self):
        few = Y * (np.arange(4) == Y.argmax(axis=1)[:, None])
        far = np.zeros((3, 7))
        assert RBRLClassifier(ridge=1e6, intercept_ridge=1e6).fit(X, few).predict(far).any(axis=1).all()
        lacking = np.where(np.arange(90)[:, None] < 5, 0, few)
        model = RBRLClassifier(fit_intercept=False).fit(X, lacking)
        assert not model.predict(far).any()
        assert model.set_params(non_empty=True).predict(far).any(axis=1).all()
        assert not model.set_params(non_empty="auto").predict(far).any()

    def test_a_row_of_no_weight_does_not_count(self):
        weights = np.ones(90)
        assert not RBRLClassifier().fit(X, EMPTY, sample_weight=weights).non_empty_
        weights[:4] = 0
        model = RBRLClassifier().fit(X, EMPTY, sample_weight=weights)
        assert model.non_empty_
        assert model.empty_share_ == 1 / 86

    @pytest.mark.parametrize("class_weight", ["balanced", {0: (0.01, 9.0)}])
    def test_weights_of_classes_do_not_change_the_share_of_empty_rows(self, class_weight):
        assert RBRLClassifier(class_weight=class_weight).fit(X, EMPTY).empty_share_ == pytest.approx(5 / 90)
        parts = [(X[:40], EMPTY[:40]), (X[40:], EMPTY[40:])]
        assert RBRLClassifier(class_weight=class_weight).fit(parts).empty_share_ == pytest.approx(5 / 90)

    def test_a_model_of_a_file_from_before_goes_by_all_rows(self):
        model = RBRLClassifier().fit(X, EMPTY)
        del model.empty_share_
        for all_labelled in (True, False):
            model.all_labelled_ = all_labelled
            assert model.non_empty_ is all_labelled

    def test_other_methods_may_have_it(self):
        assert BinaryRelevance(non_empty="auto").fit(X, Y).non_empty_
        assert not BinaryRelevance(non_empty="auto").fit(X, EMPTY).non_empty_
        assert not BinaryRelevance().fit(X, Y).non_empty_

    def test_classes_of_one_dimension_are_not_touched(self):
        model = RBRLClassifier().fit(X, Y[:, 0])
        np.testing.assert_array_equal(model.predict(X), model.classes_[(model.decision_function(X) > 0).astype(int)])

    @pytest.mark.parametrize("labels", [Y, EMPTY], ids=["all", "not all"])
    def test_a_search_judges_by_it(self, labels):
        strong = {"ridge": [1e5]}
        search = PathSearchCV(RBRLClassifier(), strong, cv=3, search_tol=1e-9, scoring="f1_example").fit(X, labels)
        tables = [tune(RBRLClassifier(), strong, X, labels, folds=3, metrics=["f1_example"], tol=1e-9)]
        others = [({}, "paper")]
        tables += [tune(RBRLClassifier(**TIGHT), strong, X, labels, folds=3, metrics=["f1_example"], others=others)]
        expected = []
        for train, test in KFold(3, shuffle=True, random_state=0).split(X):
            model = RBRLClassifier(ridge=1e5, **TIGHT).fit(X[train], labels[train])
            expected.append(evaluate(labels[test], model.predict(X[test]), None, ["f1_example"])["f1_example"])
        assert search.cv_results_["mean_test_f1_example"][0] == pytest.approx(np.mean(expected))
        for table in tables:
            own = table[table.rule == 0] if "rule" in table else table
            assert own["f1_example"].to_numpy() == pytest.approx(expected)


def test_a_search_gives_each_ridge_its_intercept():
    grid = {"ridge": [100.0, 10.0, 1.0], "ranking": [0.1, 1.0]}
    table = tune(RBRLClassifier(), grid, X, Y, folds=2, metrics=["ranking_loss", "hamming_loss"], tol=1e-9)
    for (_, row), (train, test) in zip(
        table.iterrows(), [s for s in KFold(2, shuffle=True, random_state=0).split(X) for _ in range(6)]
    ):
        model = RBRLClassifier(row.param_ridge, row.param_ranking, **TIGHT).fit(X[train], Y[train])
        expected = evaluate(
            Y[test], model.predict(X[test]), model.decision_function(X[test]), ["ranking_loss", "hamming_loss"]
        )
        assert row.ranking_loss == pytest.approx(expected["ranking_loss"], abs=2e-3)
        assert row.hamming_loss == pytest.approx(expected["hamming_loss"], abs=6e-3)


def test_a_design_of_another_ridge_is_refused():
    problem = RBRLClassifier(ridge=4.0).problem(X, Y)
    expected = r"intercept column of this design is 2, but ridge=9.0 and intercept_ridge=1.0 require 3"
    with pytest.raises(ValueError, match=expected):
        problem.objective(problem.design, ridge=9.0)


def test_raw_columns_are_warned_of_and_learned():
    raw = X * [1e7, 1, 1, 1, 1, 1, 1]
    for form in ("dense", "blocks"):
        with pytest.warns(ScalingWarning, match="RBRLClassifier: columns of X differ in scale") as said:
            model = RBRLClassifier().fit(*in_form(form, raw, Y))
        assert said[0].filename == __file__
        assert np.isfinite(model.coef_).all()
    for model, rows in ((RBRLClassifier(), sparse.csr_array(raw)), (RBRLClassifier(kernel="rbf"), raw)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ScalingWarning)
            model.fit(rows, Y)


@pytest.mark.parametrize(
    "options", [{}, {"kernel": "rbf"}, {"kernel": "rbf", "approximation": "nystroem", "n_components": 9}]
)
def test_what_was_found_is_in_model_files(tmp_path, options):
    model = RBRLClassifier(**options).fit(X, EMPTY)
    rbrl.save(model, tmp_path / "model")
    again = rbrl.load(tmp_path / "model")
    assert (again.ridge_, getattr(again, "gamma_", None)) == (model.ridge_, getattr(model, "gamma_", None))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_model_of_a_file_from_before_is_the_papers():
    """Without the attributes of today it predicts, is copied and learns on as it did."""
    for options in ({}, {"kernel": "rbf"}):
        model = RBRLClassifier(1.0, 0.1, 0.1, gamma=None, intercept_ridge=None, non_empty=False, **options).fit(X, Y)
        expected = model.predict(X)
        for name in ("gamma_", "ridge_", "empty_share_", "intercept_ridge", "threshold", "threshold_"):
            vars(model).pop(name, None)
        np.testing.assert_array_equal(model.predict(X), expected)
        assert clone(model).intercept_ridge is None
        np.testing.assert_array_equal(clone(model).fit(X, Y).predict(X), expected)


def test_a_tuned_threshold_takes_the_place_of_the_rule():
    model = TunedThresholdClassifier(RBRLClassifier(), cv=2).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))
