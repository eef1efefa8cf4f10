"""The ranking SVMs as people use them, and Rank-SVM beside the widely used program."""

import json
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import cross_validate
from sklearn.svm import SVC

from rbrl import evaluate
from rbrl.exceptions import ConvergenceWarning
from rbrl.ranking_svm.estimators import CalibratedRankSVM, RankSVM, RankSVMz

X, Y = make_multilabel_classification(60, 6, n_classes=4, n_labels=2, random_state=0)
X = (X - X.mean(axis=0)) / X.std(axis=0)
MODELS = (RankSVM, RankSVMz, CalibratedRankSVM)
every_model = pytest.mark.parametrize("model", MODELS)
every_bias = pytest.mark.parametrize("bias", ["free", "absorbed", "none"])
AUTHORS_NAMES = {
    "hamming_loss": "HammingLoss",
    "subset_accuracy": "SubsetAccuracy",
    "f1_example": "F1_Example",
    "ranking_loss": "Ranking_Loss",
    "coverage": "Coverage",
    "average_precision": "Average_Precision",
}


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_golden_rank_svm(golden, tol):
    """Their 50 iterations reach a dual of 129.309 and a primal of 130.316; the optimum is about 129.386."""
    split = np.load(golden / "emotions-split.npz")
    model = RankSVM(kernel="rbf", gamma=1 / 72, threshold="smallest", tol=tol).fit(split["X_train"], split["Y_train"])
    assert 129.309 <= model.dual_objective_ <= 129.387
    assert 129.385 <= model.objective_ <= 130.316
    assert model.gap_ <= tol
    figures = json.loads((golden / "ranksvm_rbf_C1" / "summary.json").read_text())["test"]
    labels, scores = model.predict(split["X_test"]), model.decision_function(split["X_test"])
    for name, value in evaluate(split["Y_test"] > 0, labels > 0, scores).items():
        assert value == pytest.approx(figures[AUTHORS_NAMES[name]], abs=0.01), name


@every_model
@every_bias
@pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}, {"kernel": "poly", "degree": 2}], ids=str)
def test_certified_and_its_sign_is_the_prediction(model, bias, options):
    fitted = model(bias=bias, **options).fit(X, Y)
    assert fitted.gap_ <= 1e-3
    assert fitted.dual_objective_ <= fitted.objective_
    np.testing.assert_array_equal(fitted.predict(X), fitted.decision_function(X) > 0)
    assert fitted.score(X, Y) > 0.3


@every_model
@every_bias
def test_linear_kernels_are_the_linear_model(model, bias):
    options = {"bias": bias, "tol": 1e-9, "max_iter": 100_000}
    linear = model(**options).fit(X, Y)
    kernel = model(kernel="precomputed", **options).fit(X @ X.T, Y)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-8)
    np.testing.assert_allclose(X.T @ kernel.dual_coef_, linear.coef_.T, atol=1e-3)


@every_model
def test_absorbed_biases_are_weights_of_a_constant_feature(model):
    ones = np.hstack([X, np.ones((60, 1))])
    absorbed, appended = model(bias="absorbed", tol=1e-8).fit(X, Y), model(bias="none", tol=1e-8).fit(ones, Y)
    assert absorbed.objective_ == pytest.approx(appended.objective_, rel=1e-7)
    np.testing.assert_allclose(absorbed.intercept_, appended.coef_[:, -1], atol=1e-3)


def test_one_label_with_a_zero_label_is_an_svm():
    """w_1 = -w_0, so that twice the norm is penalised: an SVM of C / 2 that counts every row once."""
    y = Y[:, 0]
    weights = np.full(60, 0.5)
    ours = RankSVMz(C=0.7, kernel="rbf", gamma=0.2, tol=1e-8).fit(X, y[:, None])
    theirs = SVC(C=1.4, gamma=0.2, tol=1e-8).fit(X, y, sample_weight=2 * weights)
    np.testing.assert_allclose(ours.decision_function(X).ravel(), theirs.decision_function(X), atol=1e-3)


@every_model
def test_sparse_rows_learn_the_same(model):
    thin = np.where(np.abs(X) > 1, X, 0)
    dense, other = (model(tol=1e-9, max_iter=50_000).fit(wrap(thin), Y) for wrap in (np.asarray, sparse.csr_array))
    np.testing.assert_allclose(
        other.decision_function(sparse.csr_array(thin)), dense.decision_function(thin), atol=1e-3
    )


@every_model
def test_a_weight_is_a_number_of_copies(model):
    times = np.random.default_rng(0).integers(0, 4, 60)
    weighted = model(tol=1e-9, max_iter=50_000).fit(X, Y, sample_weight=times)
    repeated = model(tol=1e-9, max_iter=50_000).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-2)


def test_rank_svm_leaves_rows_of_one_kind_out():
    one_kind = np.vstack([Y, np.zeros((3, 4), int), np.ones((3, 4), int)])
    rows = np.vstack([X, np.full((6, 6), 9.0)])
    np.testing.assert_allclose(RankSVM().fit(rows, one_kind).coef_, RankSVM().fit(X, Y).coef_, atol=1e-12)


def test_a_score_at_the_threshold_is_relevant():
    model = RankSVM(bias="none").fit(X, Y)
    model.coef_[:], model.threshold_coef_[:], model.threshold_intercept_ = 0.0, 0.0, 0.0
    assert model.predict(X).all()
    assert (model.decision_function(X) > 0).all()


def test_the_two_thresholds_differ_only_in_what_they_fit():
    middle, smallest = (RankSVM(threshold=rule).fit(X, Y) for rule in ("middle", "smallest"))
    np.testing.assert_array_equal(middle.coef_, smallest.coef_)
    assert middle.threshold_intercept_ != smallest.threshold_intercept_


LABELS = {
    "one label": Y[:, :1],
    "constant labels": np.hstack([Y, np.zeros((60, 1), int), np.ones((60, 1), int)]),
    "none relevant": np.zeros((60, 4), int),
    "all relevant": np.ones((60, 4), int),
    "more labels than rows": np.random.default_rng(0).integers(0, 2, (60, 70)).astype(np.uint8),
    "one class": np.full(60, 7),
}


@every_model
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("data", [X, np.zeros((60, 2))], ids=["X", "zero X"])
@pytest.mark.parametrize("options", [{}, {"bias": "absorbed"}, {"bias": "none", "kernel": "rbf"}], ids=str)
def test_degenerate_data_has_a_meaning(model, labels, data, options):
    with np.errstate(all="raise", under="ignore"):
        fitted = model(**options).fit(data, LABELS[labels])
        scores, answer = fitted.decision_function(data), fitted.predict(data)
    assert np.isfinite(scores).all()
    assert fitted.gap_ <= 1e-3
    assert answer.shape == LABELS[labels].shape
    if labels.endswith("relevant"):
        np.testing.assert_array_equal(answer, LABELS[labels])


def test_rare_labels_are_certified_at_a_small_c():
    """Biases of labels whose pairs are all at a bound have a flat place to cross, and went in circles there."""
    rng = np.random.default_rng(10)
    n, m, l = 200, 40, 30
    X = rng.random((n, m)) * (rng.random((n, m)) < 0.2)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    share = np.geomspace(0.3, 0.01, l)
    Y = (rng.random((n, l)) < share).astype(int)
    Y[np.arange(n), rng.choice(l, n, p=share / share.sum())] = 1
    assert RankSVMz(C=0.01, max_iter=100).fit(X, Y).gap_ <= 1e-3


def test_300_labels_of_a_byte():
    many = (np.random.default_rng(0).random((30, 300)) < 0.05).astype(np.uint8)
    scores = [RankSVMz(C=0.01).fit(X[:30], many.astype(t)).decision_function(X) for t in ("uint8", int)]
    np.testing.assert_array_equal(*scores)


@every_model
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_path_is_the_models_one_by_one(model, kernel):
    Cs = [10.0, 0.01, 1.0]
    path = model(kernel=kernel).path(X, Y, Cs)
    for C, fitted in zip(Cs, path, strict=True):
        assert fitted.C == C
        alone = model(C=C, kernel=kernel).fit(X, Y)
        assert fitted.gap_ <= 1e-3
        assert fitted.objective_ == pytest.approx(alone.objective_, rel=1.1e-3)


def test_warm_start_goes_on_where_it_was():
    model = RankSVM(C=10, warm_start=True).fit(X, Y)
    cold = model.n_iter_
    assert model.fit(X, Y).n_iter_ < cold
    assert clone(model).set_params(warm_start=True).fit(X, Y).n_iter_ == cold


def test_what_is_stored_is_plain():
    model = RankSVM(kernel="rbf").fit(X, Y)
    kept = {k: v for k, v in vars(model).items() if k.endswith("_") and k != "targets_"}
    assert all(isinstance(v, np.ndarray | float | int | np.number) for v in kept.values())
    assert model._last is None
    assert model._shared_rows is None


def test_a_precomputed_kernel_is_split_in_both_directions():
    scores = cross_validate(RankSVMz(kernel="precomputed"), X @ X.T, Y, cv=3)["test_score"]
    np.testing.assert_allclose(scores, cross_validate(RankSVMz(kernel=lambda a, b: a @ b.T), X, Y, cv=3)["test_score"])


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("C", 0.0, "a finite number > 0"),
        ("bias", "some", "one of 'free', 'absorbed', 'none'"),
        ("threshold", "largest", "one of 'middle', 'smallest'"),
        ("tol", -1.0, "a finite number > 0"),
        ("max_iter", 0, "an integer >= 1"),
        ("kernel", "gaussian", "one of 'linear'"),
    ],
)
def test_bad_parameters(name, value, rule):
    message = f"The {name} parameter of RankSVM must be {rule}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}.*Got {re.escape(repr(value))} instead"):
        RankSVM(**{name: value}).fit(X, Y)


def test_a_matrix_that_is_no_kernel():
    with pytest.raises(ValueError, match=r"positive semidefinite\. Got eigenvalues from -6"):
        RankSVM(kernel="precomputed").fit(X @ X.T - 6 * np.eye(60), Y)


def test_verbose_writes_one_line(capsys):
    RankSVM(verbose=1).fit(X, Y)
    assert "certified gap" in capsys.readouterr().err


@every_model
def test_stopping_early_warns(model):
    with pytest.warns(ConvergenceWarning, match=r"Dual ascent stopped after 5 iterations \(max_iter=5\)"):
        model(C=1e4, tol=1e-9, max_iter=5).fit(X, Y)


def test_rounding_to_single_precision_is_part_of_the_certificate():
    rng = np.random.default_rng(0)
    rows = (300 * rng.standard_normal((20, 30))).astype(np.float32)
    labels = (rng.random((20, 4)) < 0.5).astype(int)
    with pytest.warns(ConvergenceWarning, match="Coefficients of type float32 could be certified only to"):
        model = RankSVM(C=1000, bias="none", tol=1e-6).fit(rows, labels)
    assert model.objective_ > model.dual_objective_ * (1 + 1e-6)
    assert model.gap_ > 1e-6
    exact = RankSVM(C=1000, bias="none", tol=1e-6).fit(rows.astype(np.float64), labels)
    assert exact.gap_ <= 1e-6
