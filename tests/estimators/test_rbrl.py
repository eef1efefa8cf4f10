"""RBRL and BRL as people use them: labels of every coding, frames, weights, searches, kernels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import BRLClassifier, RBRLClassifier
from rbrl.solvers import APG

X, Y = make_multilabel_classification(60, 6, n_classes=4, n_labels=2, random_state=0)
X = (X - X.mean(axis=0)) / X.std(axis=0)
NAMES = [f"x{j}" for j in range(6)]
TIGHT = {"tol": 1e-9, "max_iter": 50_000}
KINDS = [{}, {"kernel": "rbf"}, {"kernel": "rbf", "low_rank": "function"}, {"kernel": "poly", "degree": 2}]
every_kind = pytest.mark.parametrize("options", KINDS, ids=str)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint8", "uint64", "float32"])
@pytest.mark.parametrize(
    "wrap", [np.asarray, sparse.csr_matrix, sparse.csr_array, pd.DataFrame], ids=lambda f: f.__name__
)
def test_every_coding_learns_the_same_and_answers_in_kind(dtype, wrap):
    expected = RBRLClassifier().fit(X, Y)
    model = RBRLClassifier().fit(X, wrap(Y.astype(dtype)))
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    answer = model.predict(X)
    assert answer.dtype == dtype
    assert sparse.issparse(answer) == (wrap in (sparse.csr_matrix, sparse.csr_array))
    np.testing.assert_array_equal(answer.toarray() if sparse.issparse(answer) else answer, expected.predict(X))


def test_signed_labels_are_answered_signed():
    signed = RBRLClassifier().fit(X, 2 * Y - 1).predict(X)
    np.testing.assert_array_equal(signed, 2 * RBRLClassifier().fit(X, Y).predict(X) - 1)


def test_300_labels_of_a_byte():
    many = (np.random.default_rng(0).random((60, 300)) < 0.3).astype(np.uint8)
    bytes_, integers = (RBRLClassifier(tol=0.1).fit(X, many.astype(t)).decision_function(X) for t in ("uint8", int))
    np.testing.assert_array_equal(bytes_, integers)


@pytest.mark.parametrize(
    ("y", "shape"), [(Y[:, 0], (60,)), (np.where(Y[:, 0], "a", "b"), (60,)), (np.argmax(Y, axis=1), (60, 4))]
)
def test_one_dimensional_targets(y, shape):
    model = RBRLClassifier(ridge=0.1).fit(X, y)
    assert model.decision_function(X).shape == shape
    assert set(model.predict(X)) <= set(y)
    assert model.score(X, y) > 0.5


@every_kind
def test_predict_is_the_sign_of_the_scores(options):
    model = RBRLClassifier(**options).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
    assert model.score(X, Y) == np.mean((model.predict(X) == Y).all(axis=1))


@every_kind
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_float32_in_float32_out(options, wrap):
    single, double = (RBRLClassifier(**options).fit(wrap(X.astype(t)), Y) for t in (np.float32, np.float64))
    scores = single.decision_function(wrap(X.astype(np.float32)))
    assert scores.dtype == np.float32
    assert getattr(single, "dual_coef_", getattr(single, "coef_", None)).dtype == np.float32
    np.testing.assert_allclose(scores, double.decision_function(wrap(X)), atol=2e-3)


def test_attributes_of_the_linear_and_the_kernel_model():
    linear, kernel = RBRLClassifier().fit(X, Y), RBRLClassifier(kernel="rbf").fit(X, Y)
    assert (linear.coef_.shape, linear.intercept_.shape, kernel.dual_coef_.shape) == ((4, 6), (4,), (60, 4))
    np.testing.assert_allclose(linear.decision_function(X), X @ linear.coef_.T + linear.intercept_)
    for model in (linear, kernel):
        assert model.gap_ <= model.tol
        assert model.history_[-1] == model.objective_
        assert model.rank_ == 4
        assert len(model.history_) == model.n_iter_
        assert model.n_evaluations_ >= 1


def test_strong_nuclear_norm_lowers_the_rank_to_nothing():
    ranks = [RBRLClassifier(ridge=1.0, nuclear=v).fit(X, Y).rank_ for v in (0.1, 20, 1e4)]
    assert ranks[0] == 4 > ranks[1] > ranks[2] == 0


def test_brl_is_rbrl_without_ranking():
    without = RBRLClassifier(ranking=0, **TIGHT).fit(X, Y)
    np.testing.assert_allclose(BRLClassifier(**TIGHT).fit(X, Y).coef_, without.coef_, atol=1e-12)


def test_sparse_x_learns_the_same():
    thin = np.where(np.abs(X) > 1, X, 0)
    dense = RBRLClassifier(**TIGHT).fit(thin, Y)
    for container in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix):
        model = RBRLClassifier(**TIGHT).fit(container(thin), Y)
        np.testing.assert_allclose(model.decision_function(container(thin)), dense.decision_function(thin), atol=1e-6)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_are_remembered_and_checked(frame):
    data = frame(dict(zip(NAMES, X.T, strict=True)))
    labels = frame(dict(zip("abcd", Y.T, strict=True)))
    model = RBRLClassifier().fit(data, labels)
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.predict(data), RBRLClassifier().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(data[NAMES[::-1]])


@pytest.mark.parametrize("options", [o for o in KINDS if o.get("low_rank") == "function" or not o], ids=str)
def test_a_weight_is_a_number_of_copies(options):
    times = np.random.default_rng(0).integers(0, 4, 60)
    weighted = RBRLClassifier(**options, **TIGHT).fit(X, Y, sample_weight=times)
    repeated = RBRLClassifier(**options, **TIGHT).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)


@every_kind
def test_a_row_of_weight_zero_is_absent(options):
    present = np.arange(60) % 3 > 0
    weighted = RBRLClassifier(**options).fit(X, Y, sample_weight=present)
    absent = RBRLClassifier(**options).fit(X[present], Y[present])
    np.testing.assert_allclose(weighted.decision_function(X), absent.decision_function(X), atol=1e-12)


def test_weights_are_routed_through_a_search():
    weights = np.arange(60) % 3 > 0
    with sklearn.config_context(enable_metadata_routing=True):
        model = RBRLClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        search = GridSearchCV(make_pipeline(scaler, model), {"rbrlclassifier__ridge": [1.0]}, cv=2)
        search.fit(X, Y, sample_weight=weights)
    X_scaled = StandardScaler().fit_transform(X)
    expected = RBRLClassifier(ridge=1.0).fit(X_scaled, Y, sample_weight=weights).predict(X_scaled)
    np.testing.assert_array_equal(search.predict(X), expected)


def test_pipeline_search_and_cross_validation():
    model = make_pipeline(StandardScaler(), RBRLClassifier(kernel="rbf"))
    search = GridSearchCV(model, {"rbrlclassifier__nuclear": [1e6, 0.1], "rbrlclassifier__solver": ["apg"]}, cv=3)
    assert search.fit(X, Y).best_params_["rbrlclassifier__nuclear"] == 0.1
    scores = cross_validate(search.best_estimator_, X, Y, cv=3, scoring=["f1_samples", "accuracy"])
    assert np.isfinite(scores["test_f1_samples"]).all()


def test_a_precomputed_kernel_is_split_in_both_directions():
    K = X @ X.T + 1
    model = RBRLClassifier(kernel="precomputed", fit_intercept=False)
    scores = cross_validate(model, K, Y, cv=3)["test_score"]
    expected = cross_validate(RBRLClassifier(kernel=lambda a, b: a @ b.T + 1), X, Y, cv=3)["test_score"]
    np.testing.assert_array_equal(scores, expected)


def test_clone_keeps_parameters_and_forgets_the_fit():
    model = RBRLClassifier(0.5, 0.6, 0.7, solver=APG("paper", "paper")).fit(X, Y)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    assert (copy.ridge, copy.ranking, copy.nuclear, copy.solver) == (0.5, 0.6, 0.7, model.solver)


@every_kind
def test_warm_start_goes_on_where_it_was(options):
    model = RBRLClassifier(**options, warm_start=True, tol=1e-6, max_iter=50_000).fit(X, Y)
    cold, objective = model.n_iter_, model.objective_
    model.fit(X, Y)
    assert model.n_iter_ <= 2 < cold
    assert model.objective_ <= objective * (1 + 1e-12)
    assert model.fit(X[:20], Y[:20, :2]).decision_function(X).shape == (60, 2)


def test_linear_kernels_with_the_function_norm_are_the_linear_model():
    K = X @ X.T
    options = {"ridge": 1.0, "nuclear": 0.1, "fit_intercept": False, **TIGHT}
    linear = RBRLClassifier(**options).fit(X, Y)
    kernel = RBRLClassifier(kernel="precomputed", low_rank="function", **options).fit(K, Y)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-8)
    np.testing.assert_allclose(kernel.decision_function(K), linear.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(X.T @ kernel.dual_coef_, linear.coef_.T, atol=1e-4)


def test_verbose_writes_one_line(capsys):
    RBRLClassifier(verbose=1).fit(X, Y)
    assert "certified gap" in capsys.readouterr().err
