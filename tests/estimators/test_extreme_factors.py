"""Linear models of low rank with many labels: factors from the first point to the stored model."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from rbrl import BRLClassifier, RBRLClassifier
from rbrl._common import environment
from rbrl._common.matrices import LowRankMatrix, SparseLabels
from rbrl.estimators import forms
from rbrl.problem import objective
from rbrl.solvers import LowRank, certificate


def text_problem(n=120, m=90, l=23, dtype=np.float64):
    """Return sparse rows and sparse labels; every label follows some of the features."""
    rng = np.random.default_rng(1)
    X = sparse.random_array((n, m), density=0.05, rng=rng, format="csr", dtype=np.float64)
    scores = X @ rng.standard_normal((m, l)) + 0.1 * rng.standard_normal((n, l))
    return X.astype(dtype), sparse.csr_array((scores > 0.4).astype(np.int64))


@pytest.fixture
def large_model(monkeypatch):
    """Make every model large, and blocks small; fail if a matrix of all labels is dense."""
    monkeypatch.setattr(forms, "LARGEST_DENSE", 0)
    monkeypatch.setattr(objective, "PRODUCT_BLOCK", 5 * 23)
    monkeypatch.setattr(certificate, "LARGEST_PULL", 90 * 8)
    monkeypatch.setattr(environment, "SMALLEST_BLOCK", 5 * 23)
    monkeypatch.setattr(environment, "LARGEST_BLOCK", 5 * 23)
    for form in (SparseLabels, LowRankMatrix):
        name = "__array__" if form is SparseLabels else "to_dense"
        monkeypatch.setattr(form, name, lambda *_, name=name: pytest.fail(f"{name} makes all labels dense"))


@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("nuclear", [0.0, 2.0])
@pytest.mark.parametrize("ranking", [0.0, 1.0])
def test_a_large_model_of_full_rank_is_the_same_as_a_small_one(ranking, nuclear, is_dense, request):
    X, Y = text_problem()
    X = X.toarray() if is_dense else X
    model = RBRLClassifier(ridge=0.5, ranking=ranking, nuclear=nuclear, max_rank=23)
    expected = model.fit(X, Y.toarray()).objective_, model.gap_
    request.getfixturevalue("large_model")
    model.fit(X, Y)
    assert {"feature_factors_", "label_factors_"} <= set(vars(model))
    assert model.gap_ <= 1e-4
    assert model.objective_ <= expected[0] * (1 + model.gap_)
    assert expected[0] <= model.objective_ * (1 + expected[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_limited_rank_is_kept_and_its_objective_is_that_of_the_model(fit_intercept, dtype, large_model):
    X, Y = text_problem(dtype=dtype)
    model = BRLClassifier(ridge=0.5, nuclear=0.0, max_rank=4, fit_intercept=fit_intercept, intercept_ridge=2.0)
    model.set_params(non_empty=False).fit(X, Y)
    coef = model.label_factors_.astype(np.float64) @ model.feature_factors_.astype(np.float64).T
    assert model.label_factors_.dtype == dtype
    weights = np.column_stack([coef, model.intercept_])
    sigma = np.linalg.svd(weights, compute_uv=False)
    assert np.count_nonzero(sigma > 1e-5 * sigma[0]) <= 4
    scores = X.astype(np.float64) @ coef.T + model.intercept_
    signed = np.where(Y.toarray() > 0, 1, -1)
    value = 0.5 * np.sum(np.maximum(1 - signed * scores, 0) ** 2) + 0.25 * np.sum(coef**2)
    value += np.sum(model.intercept_.astype(np.float64) ** 2)
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    assert np.isfinite(model.gap_)


def test_a_warm_start_takes_few_steps(large_model):
    X, Y = text_problem()
    model = RBRLClassifier(ridge=0.5, ranking=0.0, nuclear=0.0, max_rank=4, warm_start=True, non_empty=False)
    first = model.fit(X, Y).n_iter_
    objective_value = model.objective_
    assert model.fit(X, Y).n_iter_ <= first / 3
    assert model.objective_ <= objective_value * (1 + 1e-6)


def test_a_label_that_is_missing_in_every_row_has_weights_of_zero(large_model, monkeypatch):
    X, Y = text_problem()
    Y = Y.toarray().astype(float)
    Y[:, 3] = np.nan
    Y[::3, 5] = np.nan
    with pytest.warns(Warning, match="missing"):
        model = RBRLClassifier(ridge=0.5, max_rank=4, non_empty=False).fit(X, Y)
    assert not model.label_factors_[3].any()
    assert model.intercept_[3] == 0
    assert model.label_factors_[5].any()


def test_without_a_largest_rank_a_weak_bound_is_explained(large_model):
    X, Y = text_problem()
    with pytest.warns(Warning, match="lower bound of a nuclear norm is weak"):
        model = RBRLClassifier(ridge=0.5, nuclear=9.0, solver="low-rank", non_empty=False).fit(X, Y)
    assert model.gap_ > model.tol


@pytest.mark.parametrize(
    ("model", "shape", "stays_factored"),
    [
        (RBRLClassifier(max_rank=5), (4096, 10, 4096), False),
        (RBRLClassifier(max_rank=5), (4097, 10, 4096), True),
        (RBRLClassifier(max_rank=5), (10, 4097, 4096), True),
        (RBRLClassifier(solver="low-rank"), (10, 4097, 4096), True),
        (RBRLClassifier(solver=LowRank()), (10, 4097, 4096), True),
        (RBRLClassifier(), (10, 4097, 4096), False),
    ],
)
def test_only_large_models_of_low_rank_stay_factored(model, shape, stays_factored):
    n, m, l = shape
    X = sparse.csr_array((np.ones(n), (np.arange(n), np.arange(n) % m)), shape=(n, m))
    Y = sparse.csr_array((np.ones(n), (np.arange(n), np.arange(n) % l)), shape=(n, l))
    problem = model.problem(X, Y)
    assert problem.form.stays_factored is stays_factored
    assert getattr(problem.solver, "in_blocks", False) is stays_factored


def test_the_memory_is_that_of_factors_and_as_estimated():
    """Dense weights have 640 MB, and dense scores 32 MB."""
    X, Y = text_problem(n=1000, m=20_000, l=60)
    Y = sparse.hstack([Y, sparse.csr_array((1000, 3940), dtype=np.int64)], format="csr")
    model = RBRLClassifier(ridge=0.5, ranking=0.0, nuclear=0.0, max_rank=10, max_iter=25, non_empty=False)
    problem = model.problem(X, Y)
    assert problem.form.stays_factored
    needs = problem.estimate_memory()
    tracemalloc.start()
    problem.solve()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert needs.least <= peak <= needs.usual * 1.5
    assert needs.usual <= peak * 1.5
    assert peak < 0.5 * 8 * 20_000 * 4000
    assert "smaller max_rank" in needs.remedy
