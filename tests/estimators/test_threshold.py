"""The threshold of classifiers with an objective: given, or learned from the scores of the training rows."""

import json
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold

import rbrl
from rbrl import CPNL, BRLClassifier, RBRLClassifier, RBRLClassifierCV
from rbrl.decision import best_global_threshold, best_label_thresholds, relevant_labels
from rbrl.estimators.coefficients import kernel_values
from rbrl.estimators.streaming import BlockProblem
from rbrl.estimators.training_scores import (
    TrainingRows,
    count_effective_parameters,
    estimate_held_out_scores,
    estimate_kernel_parameters,
)
from rbrl.exceptions import EmptyPredictionsWarning
from rbrl.metrics import evaluate, f1_example, f1_macro, f1_micro
from rbrl.selection import PathSearchCV, tune
from rbrl.selection.thresholds import held_out_scores
from rbrl.targets import SignedTargets

X, Y = make_multilabel_classification(120, 9, n_classes=5, n_labels=2, random_state=1, allow_unlabeled=False)
X = (X - X.mean(axis=0)) / X.std(axis=0)
RARE = (Y * (np.random.default_rng(0).random(Y.shape) < 0.4)).astype(int)  # a third of the rows have no label
LEARNED = ("f1_micro", "f1_samples", "f1_macro")
METRIC = {"f1_micro": f1_micro, "f1_samples": f1_example, "f1_macro": f1_macro}
TIGHT = {"tol": 1e-9, "max_iter": 20_000}
convex = pytest.mark.parametrize("cls", [RBRLClassifier, BRLClassifier, CPNL])
learned = pytest.mark.parametrize("metric", LEARNED)
QUIET = pytest.mark.filterwarnings("ignore::rbrl.exceptions.EmptyPredictionsWarning")
KINDS = {
    "linear": {}, "rbf": {"kernel": "rbf"}, "function": {"kernel": "rbf", "low_rank": "function"},
    "approximation": {"kernel": "rbf", "approximation": "nystroem", "n_components": 20, "random_state": 0},
}  # fmt: skip
kinds = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)


def in_form(form, X, Y):
    """Arguments of fit."""
    if form == "blocks":
        return ([(X[:50], Y[:50]), (X[50:], Y[50:])],)
    if form == "dask":
        da = pytest.importorskip("dask.array")
        return da.from_array(X, chunks=(50, -1)), da.from_array(Y, chunks=(50, -1))
    return (sparse.csr_array(X) if form == "sparse" else X), Y


@convex
def test_a_number_is_subtracted_from_the_scores(cls):
    plain, model = cls().fit(X, Y), cls(threshold=-0.3).fit(X, Y)
    assert plain.threshold_ == 0.0
    assert model.threshold_ == -0.3
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X) + 0.3)
    np.testing.assert_array_equal(model.predict(X), relevant_labels(model.decision_function(X), model.non_empty_))


@convex
@kinds
@learned
def test_a_learned_threshold_is_subtracted_and_helps(cls, options, metric):
    if cls is CPNL and {"low_rank", "approximation"} & set(options):
        pytest.skip("CPNL has no such parameter")
    plain, model = (cls(threshold=value, **options).fit(X, Y) for value in (0.0, metric))
    assert np.shape(model.threshold_) == ((5,) if metric == "f1_macro" else ())
    np.testing.assert_allclose(
        model.decision_function(X), plain.decision_function(X) - model.threshold_, rtol=0, atol=1e-12
    )
    assert METRIC[metric](Y, model.predict(X)) >= METRIC[metric](Y, plain.predict(X)) - 0.02


@learned
@pytest.mark.parametrize("form", ["sparse", "blocks", "dask"])
def test_every_form_of_the_rows_learns_the_same(form, metric):
    expected = RBRLClassifier(threshold=metric, **TIGHT).fit(X, Y)
    found = RBRLClassifier(threshold=metric, **TIGHT).fit(*in_form(form, X, Y))
    np.testing.assert_allclose(found.threshold_, expected.threshold_, atol=1e-4)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


def test_blocks_take_no_further_pass():
    def passes(threshold):
        parts = rbrl.out_of_core.LocalBlocks([(X[:50], Y[:50]), (X[50:], Y[50:])])
        count = 0
        total = parts.total

        def counted(*args):
            nonlocal count
            count += 1
            return total(*args)

        parts.total = counted
        model = CPNL(threshold=threshold)
        model._check_parameters()
        model._fit_problem(BlockProblem(model, parts))
        return count

    assert passes("f1_micro") == passes(0.0)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@learned
def test_weights_are_repetitions(kernel, metric):
    weights = np.repeat([0, 2], [20, 100])
    options = {"kernel": kernel, "gamma": 0.1, "ridge": 5.0, "threshold": metric}
    # Weights, and with them scores, agree to the root of the gap: five digits take a gap of 1e-12.
    model = RBRLClassifier(low_rank="function", **options, **TIGHT | {"tol": 1e-12})
    weighted = clone(model).fit(X, Y, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    np.testing.assert_allclose(weighted.threshold_, repeated.threshold_, atol=1e-5)


@learned
def test_missing_labels_teach_nothing(metric):
    """Entries that are masked, NaN or of weight 0 are the same, and their values do not count."""
    mask = np.random.default_rng(0).random(Y.shape) < 0.8
    other = np.where(mask, Y, 1 - Y)
    model = RBRLClassifier(threshold=metric, **TIGHT)
    found = [
        clone(model).fit(X, np.where(mask, Y, np.nan)),
        clone(model).fit(X, Y, label_mask=mask),
        clone(model).fit(X, other, label_mask=mask),
        clone(model).fit(X, Y, sample_weight=mask.astype(float)),
    ]
    for one in found[1:]:
        np.testing.assert_allclose(one.threshold_, found[0].threshold_, atol=1e-6)


@learned
def test_a_precomputed_kernel_learns_the_same(metric):
    direct = RBRLClassifier(kernel="rbf", gamma=0.1, threshold=metric).fit(X, Y)
    K = kernel_values(direct, X)
    found = RBRLClassifier(kernel="precomputed", fit_intercept=False, threshold=metric).fit(K, Y)
    np.testing.assert_allclose(found.threshold_, direct.threshold_, atol=1e-6)
    weights = np.r_[np.zeros(10), np.ones(110)]
    absent = RBRLClassifier(kernel="precomputed", fit_intercept=False, threshold=metric).fit(K, Y, weights)
    present = RBRLClassifier(kernel="rbf", gamma=0.1, threshold=metric).fit(X[10:], Y[10:])
    np.testing.assert_allclose(absent.threshold_, present.threshold_, atol=1e-6)


@learned
def test_single_precision_stays(metric):
    model = RBRLClassifier(threshold=metric).fit(X.astype(np.float32), Y)
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32


class TestCorrection:
    """Scores of training rows, corrected for the fit to these rows."""

    def test_it_is_exact_on_the_average_for_a_squared_loss(self):
        """With equal leverages, here by symmetry, the estimates are the scores of models that leave a row out."""
        n, ridge = 7, 2.0
        X = np.eye(n) + 0.3
        # A large margin is never reached, so that the squared hinge is a squared loss.
        model = BRLClassifier(ridge=ridge, nuclear=0, fit_intercept=False, **TIGHT)
        labels = np.array([[1], [0], [0], [1], [0], [0], [1]])
        fitted = clone(model).fit(X, labels)
        problem = model.problem(X, labels)
        rows = TrainingRows(problem.Y, fitted.decision_function(X).reshape(n, 1))
        slack = problem.Y * rows.scores
        assert (slack < 1).all()
        found = estimate_held_out_scores(fitted.loss(), rows, problem.count_parameters()).ravel()
        for i in range(n):
            others = np.arange(n) != i
            without = clone(model).fit(X[others], labels[others])
            assert found[i] == pytest.approx(without.decision_function(X[[i]]).item(), abs=1e-4)

    @pytest.mark.parametrize("ridge", [0.1, 10.0, 1e4])
    def test_the_number_of_parameters_is_a_trace(self, ridge):
        Z = np.hstack([X, np.full((len(X), 1), np.sqrt(ridge))])
        trace = np.trace(Z @ np.linalg.solve(Z.T @ Z + ridge * np.eye(10), Z.T))
        assert RBRLClassifier(ridge=ridge).problem(X, Y).count_parameters() == pytest.approx(trace)
        K = kernel_values(RBRLClassifier(kernel="rbf", gamma=0.1).fit(X, Y), X)
        trace = np.trace(K @ np.linalg.inv(K + ridge * np.eye(len(K))))
        for low_rank in ("coefficients", "function"):
            problem = RBRLClassifier(kernel="rbf", gamma=0.1, ridge=ridge, low_rank=low_rank).problem(X, Y)
            assert problem.count_parameters() == pytest.approx(trace)
            assert count_effective_parameters(problem.design, ridge) == pytest.approx(trace)

    @pytest.mark.parametrize("shape", [(60, 400), (400, 60)])
    @pytest.mark.parametrize("ridge", [0.01, 1.0, 100.0])
    def test_a_design_that_is_not_whitened_has_an_upper_bound(self, shape, ridge):
        rows = sparse.random_array(shape, density=0.05, rng=np.random.default_rng(0), format="csr")
        labels = np.eye(shape[0], 2, dtype=int)
        problem = RBRLClassifier(ridge=ridge).problem(rows, labels)
        assert not problem.design.whitened
        Z = np.hstack([rows.toarray(), np.full((shape[0], 1), np.sqrt(ridge))])
        values = np.linalg.svd(Z, compute_uv=False) ** 2
        exact, found = (values / (values + ridge)).sum(), problem.count_parameters()
        assert exact <= found * (1 + 1e-9)
        assert found < shape[0] + 1

    def test_a_sample_of_a_kernel_estimates_it(self):
        rng = np.random.default_rng(0)
        rows = rng.standard_normal((1200, 3))
        K = np.exp(-0.1 * ((rows[:, None] - rows) ** 2).sum(axis=2))
        exact, found = estimate_kernel_parameters(K, 1.0, 1200), estimate_kernel_parameters(K[:300, :300], 1.0, 1200)
        assert found == pytest.approx(exact, rel=0.15)

    def test_weak_ridges_need_it(self):
        """With a weak ridge training scores mislead; corrected ones are as good as those of cross-validation."""
        rng = np.random.default_rng(0)
        rows, weights = rng.standard_normal((900, 40)), rng.standard_normal((40, 8))
        labels = (rows @ weights + 6 * rng.standard_normal((900, 8)) > 7).astype(int)
        model = RBRLClassifier(kernel="rbf", ridge=0.05, non_empty=False).fit(rows[:200], labels[:200])
        scores = model.decision_function(rows[200:])
        problem = model.problem(rows[:200], labels[:200])
        training = model.decision_function(rows[:200])
        corrected = estimate_held_out_scores(
            model.loss(), TrainingRows(problem.Y, training), problem.count_parameters()
        )
        folds = held_out_scores(clone(model), rows[:200], labels[:200], SignedTargets().fit(labels), 5)
        values = [
            f1_macro(labels[200:], (scores > best_label_thresholds(source, labels[:200])).astype(int))
            for source in (training, corrected, folds)
        ]
        assert values[1] > values[0] + 0.03
        assert values[1] > values[2] - 0.02


@learned
def test_filling_is_taken_into_account(metric):
    """Learned for predictions in which a row without a label gets its best one."""
    single = (Y * (np.arange(5) == Y.argmax(axis=1)[:, None])).astype(int)
    filled, bare = (RBRLClassifier(threshold=metric, non_empty=value).fit(X, single) for value in (True, False))
    if metric == "f1_macro":
        np.testing.assert_array_equal(filled.threshold_, bare.threshold_)
    else:
        assert filled.threshold_ > bare.threshold_ or metric == "f1_samples"
        assert METRIC[metric](single, filled.predict(X)) >= METRIC[metric](single, bare.predict(X))


def test_labels_that_no_row_has_keep_their_threshold():
    labels = np.hstack([Y, np.zeros((len(Y), 1), dtype=int)])
    model = RBRLClassifier(threshold="f1_macro").fit(X, labels)
    assert model.threshold_[5] == 0.0
    assert not model.predict(X)[:, 5].any()


@convex
@pytest.mark.parametrize("value", ["f1", "auto", None, np.nan, np.inf])
def test_other_values_are_refused(cls, value):
    with pytest.raises(ValueError, match=f"The threshold parameter of {cls.__name__} must be 'f1_micro' or .*Got {value}"
                       if not isinstance(value, str) else f"The threshold parameter of {cls.__name__} must be"):  # fmt: skip
        cls(threshold=value).fit(X, Y)


class TestClasses:
    """Targets of one dimension."""

    @learned
    def test_two_classes_have_one_threshold(self, metric):
        y = np.where(RARE[:, 0] > 0, "yes", "no")
        plain, model = (RBRLClassifier(threshold=value).fit(X, y) for value in (0.0, metric))
        np.testing.assert_allclose(
            model.decision_function(X), plain.decision_function(X) - model.threshold_, atol=1e-12
        )
        np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)
        assert f1_micro(RARE[:, :1], (model.predict(X) == "yes")[:, None].astype(int)) >= f1_micro(
            RARE[:, :1], (plain.predict(X) == "yes")[:, None].astype(int)
        )

    @pytest.mark.parametrize("threshold", ["f1_micro", 0.2])
    def test_of_three_the_largest_score_decides(self, threshold):
        y = Y.argmax(axis=1)
        with pytest.raises(ValueError, match=r"class with the largest score.*Got threshold=.* leave threshold at 0"):
            RBRLClassifier(threshold=threshold).fit(X, y)
        with pytest.raises(ValueError, match="class with the largest score"):
            BRLClassifier(ridge=1.0, threshold=0.2).partial_fit(X, y, classes=np.unique(y))


@QUIET
class TestStreams:
    def test_a_number_is_kept_and_a_metric_refused(self):
        model = RBRLClassifier(ridge=10.0, threshold=-0.2).partial_fit(X, Y)
        plain = RBRLClassifier(ridge=10.0).partial_fit(X, Y)
        np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X) + 0.2)
        with pytest.raises(AttributeError, match="threshold='f1_micro' depends on the scores of all rows"):
            RBRLClassifier(ridge=10.0, threshold="f1_micro").partial_fit(X, Y)

    def test_a_stream_after_a_fit_has_its_own(self):
        model = RBRLClassifier(ridge=10.0, threshold="f1_micro").fit(X, Y)
        number = model.threshold_
        model.set_params(threshold=number).partial_fit(X, Y)
        assert model.threshold_ == number
        model.set_params(threshold=0.0, warm_start=True).fit(X, Y)
        assert model.threshold_ == 0.0

    def test_a_warm_start_does_not_see_the_threshold(self):
        model = RBRLClassifier(ridge=50.0, warm_start=True, threshold="f1_macro", tol=1e-8).fit(X, Y)
        before = model.threshold_
        assert model.fit(X, Y).n_iter_ <= 2
        np.testing.assert_allclose(model.threshold_, before, atol=1e-3)


@QUIET
class TestElsewhere:
    """Files, graphs, explanations and searches."""

    @kinds
    @pytest.mark.parametrize("threshold", [0.25, *LEARNED])
    def test_model_files_keep_it(self, tmp_path, options, threshold):
        model = RBRLClassifier(threshold=threshold, **options).fit(X, RARE)
        rbrl.save(model, tmp_path / "model")
        again = rbrl.load(tmp_path / "model")
        np.testing.assert_array_equal(again.threshold_, model.threshold_)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_a_file_with_a_threshold_of_other_labels_is_refused(self, tmp_path):
        model = RBRLClassifier(threshold="f1_macro").fit(X, Y)
        model.threshold_ = model.threshold_[:3]
        with pytest.raises(rbrl.exceptions.ModelFileError, match="threshold_"):
            rbrl.save(model, tmp_path / "model")

    @kinds
    @pytest.mark.parametrize("threshold", [0.25, *LEARNED])
    def test_graphs_have_it(self, options, threshold):
        runtime = pytest.importorskip("onnxruntime")
        model = RBRLClassifier(threshold=threshold, **options).fit(X, RARE)
        session = runtime.InferenceSession(rbrl.to_onnx(model).SerializeToString())
        labels, scores = session.run(None, {"X": X})
        np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-9)
        np.testing.assert_array_equal(labels, model.predict(X))

    @pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}])
    @pytest.mark.parametrize("threshold", [0.25, *LEARNED])
    def test_explanations_add_up(self, options, threshold):
        model = RBRLClassifier(threshold=threshold, **options).fit(X, RARE)
        found = rbrl.explain(model, X[0], label=1)
        assert found.score == pytest.approx(model.decision_function(X[:1])[0, 1])
        of_label = np.broadcast_to(model.threshold_, 5)[1]
        assert found.constants[f"threshold ({threshold})"] == pytest.approx(-of_label)
        assert list(rbrl.explain(RBRLClassifier().fit(X, Y), X[0]).constants) == ["intercept"]

    @pytest.mark.parametrize("threshold", [-0.2, *LEARNED])
    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_a_search_judges_by_it(self, threshold, kernel):
        model = RBRLClassifier(kernel=kernel, threshold=threshold)
        grid = {"ridge": [30.0, 3.0]}
        search = PathSearchCV(model, grid, cv=3, search_tol=1e-9, scoring="f1_macro").fit(X, RARE)
        table = tune(model, grid, X, RARE, folds=3, metrics=["f1_macro"], tol=1e-9)
        expected = []
        for train, test in KFold(3, shuffle=True, random_state=0).split(X):
            for ridge in grid["ridge"]:
                fitted = clone(model).set_params(ridge=ridge, **TIGHT).fit(X[train], RARE[train])
                expected.append(evaluate(RARE[test], fitted.predict(X[test]), None, ["f1_macro"])["f1_macro"])
        assert table["f1_macro"].to_numpy() == pytest.approx(expected, abs=0.02)
        mean = np.reshape(expected, (3, 2)).mean(axis=0)
        assert search.cv_results_["mean_test_f1_macro"] == pytest.approx(mean, abs=0.02)
        best = clone(model).set_params(**search.best_params_).fit(X, RARE)
        np.testing.assert_allclose(search.best_estimator_.threshold_, best.threshold_)

    def test_the_threshold_can_be_searched_itself(self):
        search = PathSearchCV(RBRLClassifier(), {"threshold": [0.0, -3.0]}, cv=2, scoring="f1_micro").fit(X, RARE)
        assert len(set(search.cv_results_["mean_test_f1_micro"])) == 2

    def test_the_search_of_the_weights_takes_an_estimator_with_one(self):
        search = RBRLClassifierCV(ridges=[10, 1], rankings=[1], nuclears=[0], cv=2,
                                  estimator=RBRLClassifier(threshold="f1_micro")).fit(X, RARE)  # fmt: skip
        assert search.best_estimator_.threshold_ != 0
        np.testing.assert_array_equal(search.decision_function(X), search.best_estimator_.decision_function(X))

    def test_many_points_are_fitted_one_by_one(self):
        points = [{"threshold": value} for value in (0.0, *LEARNED)]
        for model, point in zip(RBRLClassifier().fit_many(X, Y, points), points):
            np.testing.assert_array_equal(model.threshold_, RBRLClassifier(**point).fit(X, Y).threshold_)

    def test_a_plan_may_name_it(self):
        json.dumps(RBRLClassifier(threshold="f1_micro").get_params()["threshold"])
        assert clone(RBRLClassifier(threshold="f1_micro")).threshold == "f1_micro"


STRONG = {"ridge": 1e6}


class TestWarning:
    """Most rows with labels get none."""

    @convex
    @pytest.mark.parametrize("form", ["dense", "sparse", "blocks"])
    def test_a_fit_warns_and_names_the_ways_out(self, cls, form):
        with pytest.warns(EmptyPredictionsWarning, match="no label, and") as caught:
            model = cls(**STRONG).fit(*in_form(form, X, RARE))
        assert caught[0].filename == __file__
        message = str(caught[0].message)
        assert f"{model.empty_share_:.0%} have none" in message
        for way_out in ("threshold='f1_micro'", "non_empty=True"):
            assert way_out in message
        with warnings.catch_warnings():
            warnings.simplefilter("error", EmptyPredictionsWarning)
            for choice in ({"threshold": "f1_micro"}, {"non_empty": True}, {"non_empty": False}):
                cls(**STRONG, **choice).fit(*in_form(form, X, RARE))

    def test_ordinary_fits_do_not_warn(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", EmptyPredictionsWarning)
            for labels in (Y, RARE[:, :3] | Y[:, :3]):
                RBRLClassifier().fit(X, labels)
                RBRLClassifier(kernel="rbf").fit(X, labels)
            RBRLClassifier(**STRONG).fit(X, RARE[:, 0])  # classes of one dimension


def test_the_same_rules_as_everywhere():
    """`threshold_` is what the rules of rbrl.decision learn from the corrected scores."""
    model = RBRLClassifier(threshold="f1_micro").fit(X, Y)
    problem = model.problem(X, Y)
    raw = model.decision_function(X) + model.threshold_
    estimates = estimate_held_out_scores(model.loss(), TrainingRows(problem.Y, raw), problem.count_parameters())
    assert model.threshold_ == pytest.approx(best_global_threshold(estimates, Y, never_empty=True), abs=1e-6)
