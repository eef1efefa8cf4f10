"""Compressed models have the stated objective, a true certificate, and the predictions of their weights."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

from rbrl import CPNL, BRLClassifier, MLkNN, RBRLClassifier, compress, explain, load, save
from rbrl.estimators import convex_problem
from rbrl.estimators.coefficients import dense_weights, stored_weights

FORMS = ("sparse", "factors")
MODELS = (
    RBRLClassifier(ridge=0.5, nuclear=0),
    RBRLClassifier(ridge=0.5, nuclear=3.0, intercept_ridge=None),
    RBRLClassifier(ridge=0.5, nuclear=3.0, fit_intercept=False),
    BRLClassifier(ridge=2.0, class_weight="balanced"),
    CPNL(ridge=0.5),
)


def text_problem(dtype=np.float64):
    rng = np.random.default_rng(3)
    X = sparse.random_array((90, 120), density=0.1, rng=rng, format="csr")
    factors = rng.standard_normal((120, 5)), rng.standard_normal((5, 17))
    return X.astype(dtype), sparse.csr_array(((X @ factors[0] @ factors[1]) > 1.5).astype(np.int64))


def exact_objective(model, X, Y):
    """Return the objective of the stored weights in extended precision, besides the singular values."""
    problem = model.problem(X, Y)
    objective = problem.row_objective
    W = dense_weights(model).astype(np.longdouble)
    rows = X.toarray() if sparse.issparse(X) else X
    F = rows.astype(np.longdouble) @ W[: X.shape[1]] + (W[-1] if model.fit_intercept else 0)
    penalised = W.copy()
    if model.fit_intercept:
        penalised[-1] /= objective.design.constant
    loss = objective.loss.value(np.asarray(objective.Y), F.astype(np.float64), objective.sample_weight)
    sigma = np.linalg.svd(penalised.astype(np.float64), compute_uv=False)
    return loss + float(0.5 * objective.ridge.weight * (penalised**2).sum()) + objective.nuclear.weight * sigma.sum()


@pytest.mark.parametrize(
    ("form", "tol"), [("sparse", 0.0), ("sparse", 0.003), ("sparse", 0.1), ("factors", 0.1), ("factors", 0.5)]
)
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_objective_rises_by_no_more_than_the_tolerance(form, model, dtype, tol):
    X, Y = text_problem(dtype)
    model.fit(X, Y)
    before = {name: value.copy() for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    small = compress(model, X, Y, tol=tol, form=form)
    # Rounding to single precision changes the objective, too.
    assert small.objective_ <= model.objective_ * (1 + tol + 1e-6)
    assert small.objective_ == pytest.approx(exact_objective(small, X, Y), rel=1e-9)
    optimum = type(model)(**{**model.get_params(), "tol": 1e-10}).fit(X, Y)
    assert small.objective_ <= optimum.objective_ * (1 + small.gap_)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value)


def test_more_weights_are_removed_with_a_larger_tolerance():
    X, Y = text_problem()
    model = RBRLClassifier(ridge=0.5, nuclear=0).fit(X, Y)
    counts = [compress(model, X, Y, tol=tol).coef_.nnz for tol in (0.0, 0.001, 0.01, 0.1, 1.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < 0.5 * counts[0]
    again = compress(compress(model, X, Y, tol=0.01), X, Y, tol=0.1)
    assert again.coef_.nnz < counts[2]
    assert again.gap_ <= (1 + model.gap_) * 1.01 * 1.1 - 1 + 1e-6


@pytest.mark.parametrize("ranking", [0.0, 1.0])
def test_a_fit_compresses_its_weights_in_groups_too(ranking, monkeypatch):
    X, Y = text_problem()
    model = RBRLClassifier(ridge=0.5, ranking=ranking, nuclear=0, compress=0.02)
    plain = RBRLClassifier(ridge=0.5, ranking=ranking, nuclear=0).fit(X, Y)
    whole = model.fit(X, Y)
    expected = compress(plain, X, Y, tol=0.02)
    np.testing.assert_allclose(whole.coef_.toarray(), expected.coef_.toarray())
    assert whole.gap_ == pytest.approx(expected.gap_, rel=1e-6)
    monkeypatch.setattr(convex_problem, "LARGEST_GROUP", 8 * (90 + 121) * 4)
    model.fit(X, Y)
    assert sparse.issparse(model.coef_)
    assert model.coef_.shape == (17, 120)
    assert plain.objective_ < model.objective_ <= plain.objective_ * (1.02 + 1e-6)
    assert model.objective_ == pytest.approx(exact_objective(model, X, Y), rel=1e-9)
    assert model.objective_ / plain.objective_ - 1 <= model.gap_ <= 0.0202


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dense_rows", [False, True])
def test_all_predictions_are_of_the_stored_weights(form, dense_rows, tmp_path):
    X, Y = text_problem()
    model = RBRLClassifier(ridge=0.5, nuclear=3.0, threshold="f1_macro").fit(X, Y)
    small = compress(model, X, Y, tol=0.1, form=form)
    X = X.toarray() if dense_rows else X
    W = dense_weights(small)
    expected = X @ W[:-1] + W[-1] - small.threshold_
    np.testing.assert_allclose(small.decision_function(X), expected, atol=1e-12)
    labels, scores = small.predict_top(X, 3)
    np.testing.assert_array_equal(labels, np.argsort(-expected, axis=1, kind="stable")[:, :3])
    np.testing.assert_allclose(scores, np.take_along_axis(expected, labels, axis=1), atol=1e-12)
    np.testing.assert_array_equal(small.predict_top(X[:1], 17)[0][0], np.argsort(-expected[0], kind="stable"))
    save(small, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(X), small.decision_function(X))
    assert stored_weights(again).shape == (121, 17)
    assert "coef_" not in vars(again) or form == "sparse"
    explanation = explain(small, X[:1], label=2)
    assert explanation.score == pytest.approx(expected[0, 2], abs=1e-9)
    assert small.rank_ == np.linalg.matrix_rank(W, tol=1e-6 * np.linalg.norm(W, 2))


def test_a_pipeline_keeps_its_steps():
    X, Y = text_problem()
    pipeline = make_pipeline(TfidfTransformer(), RBRLClassifier(ridge=0.5)).fit(X, Y)
    small = compress(pipeline, X, Y, tol=0.1)
    assert small.steps[0] == pipeline.steps[0]
    assert sparse.issparse(small[-1].coef_)
    assert not sparse.issparse(pipeline[-1].coef_)
    assert small[-1].objective_ <= 1.1 * pipeline[-1].objective_


def test_a_new_fit_forgets_the_old_form():
    X, Y = text_problem()
    model = RBRLClassifier(ridge=0.5, nuclear=3.0, warm_start=True).fit(X, Y)
    for form in FORMS:
        small = compress(model, X, Y, tol=0.1, form=form)
        small.fit(X, Y)
        assert isinstance(vars(small)["coef_"], np.ndarray)
        assert not hasattr(small, "label_factors_")
        assert small.gap_ <= small.tol


def test_factors_compute_the_weights_on_request():
    X, Y = text_problem()
    model = RBRLClassifier(ridge=0.5, nuclear=0).fit(X, Y)
    left, sigma, right = np.linalg.svd(model.coef_, full_matrices=False)
    small = compress(model, X, Y, tol=0.2, form="factors")
    rank = small.label_factors_.shape[1]
    assert "coef_" not in vars(small)
    assert rank < 17
    truncated = (left[:, :rank] * sigma[:rank]) @ right[:rank]
    np.testing.assert_allclose(small.coef_, truncated, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda model, X, Y: compress(model, X[:50], Y[:50]), ["data of the fit", "objective", "Got data", "pass the X"]),
        (lambda model, X, Y: compress(MLkNN().fit(X, Y), X, Y), ["linear model", "RBRLClassifier", "Got MLkNN"]),
        (lambda model, X, Y: compress(RBRLClassifier(kernel="rbf").fit(X, Y), X, Y), ["kernel='linear'", "kernel='rbf'"]),
        (lambda model, X, Y: compress(BRLClassifier(ridge=1).partial_fit(X, Y), X, Y), ["after partial_fit", "use fit"]),
        (lambda model, X, Y: compress(model, X, Y, tol=0, form="factors"), ["no factors that are smaller", "tol=0"]),
        (lambda model, X, Y: compress(model, X, Y, form="tree"), ["form", "'sparse'", "'factors'", "'tree'"]),
        (lambda model, X, Y: compress(model, X, Y, tol=-1), ["tol", "-1"]),
        (lambda model, X, Y: RBRLClassifier(compress=0.1, kernel="rbf").fit(X, Y), ["kernel='rbf'", "compress=None"]),
        (lambda model, X, Y: RBRLClassifier(compress=0.1).fit([(X, Y)]), ["rows in blocks", "compress=0.1"]),
    ],
)  # fmt: skip
def test_other_input_is_rejected(change, words):
    X, Y = text_problem()
    with pytest.raises(ValueError) as error:
        change(RBRLClassifier(ridge=0.5).fit(X, Y), X, Y)
    for word in words:
        assert word in str(error.value)
