"""Approximated kernels: the kernel model of the features' own inner products, from a narrow design."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from rbrl import BRLClassifier, RBRLClassifier, load, save
from rbrl.kernels import fit_feature_map, gram
from rbrl.problem import FeatureMapDesign, SpectralDesign
from rbrl.selection import RBRLClassifierCV

TIGHT = {"tol": 1e-8, "max_iter": 5000}


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5))
    return X, (np.sin(X @ rng.standard_normal((5, 4))) > 0).astype(int)


@pytest.mark.parametrize("low_rank", ["coefficients", "function"])
def test_it_is_the_design_of_the_kernel_of_its_features(low_rank):
    rng = np.random.default_rng(1)
    features, other, W = rng.standard_normal((20, 6)), rng.standard_normal((3, 6)), rng.standard_normal((6, 2))
    design, kernel = FeatureMapDesign(features, low_rank), SpectralDesign(features @ features.T, low_rank)
    assert design.shape == (20, 6)
    np.testing.assert_allclose(np.ravel(design.gram_diagonal), np.ravel(kernel.gram_diagonal)[:-7:-1], rtol=1e-8)
    np.testing.assert_allclose(np.ravel(design.ridge_weights), np.ravel(kernel.ridge_weights)[:-7:-1], rtol=1e-8)
    coefficients = design.coefficients(W)
    np.testing.assert_allclose(design.scores(W), features @ coefficients, atol=1e-10)
    np.testing.assert_allclose(design.transform(other) @ W, other @ coefficients, atol=1e-10)
    np.testing.assert_allclose(design.weights(coefficients), W, atol=1e-10)
    np.testing.assert_allclose(design.adjoint(design.scores(W)), design.gram_diagonal[:, None] * W, atol=1e-8)


@pytest.mark.parametrize("low_rank", ["coefficients", "function"])
@pytest.mark.parametrize("model", [RBRLClassifier, BRLClassifier])
def test_with_every_row_a_landmark_it_is_the_exact_model(problem, model, low_rank):
    X, Y = problem
    parameters = {"kernel": "rbf", "gamma": 0.5, "low_rank": low_rank, **TIGHT}
    exact = model(**parameters).fit(X, Y)
    near = model(approximation="nystroem", n_components=80, **parameters).fit(X, Y)
    assert near.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    np.testing.assert_allclose(near.decision_function(X[:9]), exact.decision_function(X[:9]), atol=1e-3)


def test_more_components_come_nearer(problem):
    X, _ = problem
    K = rbf_kernel(X, gamma=0.2)
    for approximation, counts in (("nystroem", (5, 20, 60)), ("fourier", (50, 500, 5000))):
        maps = [fit_feature_map(X, approximation, k, kernel="rbf", gamma=0.2, random_state=0) for k in counts]
        errors = [np.linalg.norm((features := m.transform(X)) @ features.T - K) for m in maps]
        assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_kernels_of_the_map_are_ours(problem, kernel):
    X, _ = problem
    features = fit_feature_map(X, "nystroem", 80, kernel=kernel, degree=2, coef0=0.5).transform(X)
    np.testing.assert_allclose(features @ features.T, gram(X, kernel=kernel, degree=2, coef0=0.5), atol=1e-8)


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_a_model_is_repeatable_sparse_or_dense_and_can_be_kept(problem, approximation, tmp_path):
    X, Y = problem
    model = RBRLClassifier(kernel="rbf", approximation=approximation, n_components=20, random_state=3).fit(X, Y)
    assert model.feature_coef_.shape == (20, 4)
    assert model.gap_ <= 1e-4
    again = RBRLClassifier(**model.get_params()).fit(sparse.csr_array(X), Y)
    np.testing.assert_allclose(again.decision_function(sparse.csr_array(X)), model.decision_function(X), atol=1e-6)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").decision_function(X), model.decision_function(X))
    assert model.fit(X.astype(np.float32), Y).decision_function(X.astype(np.float32)).dtype == np.float32


def test_a_search_goes_over_the_features(problem):
    X, Y = problem
    model = RBRLClassifier(kernel="rbf", approximation="nystroem", n_components=30, random_state=0)
    search = RBRLClassifierCV([0.1, 1.0], [0.1], [0.1], estimator=model, cv=2).fit(X, Y)
    assert search.best_estimator_.feature_coef_.shape == (30, 4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"approximation": "nystroem"}, "needs kernel='rbf' or 'poly'. Got kernel='linear'"),
        ({"approximation": "fourier", "kernel": "poly"}, "needs kernel='rbf'. Got kernel='poly'"),
        ({"approximation": "fourier", "kernel": rbf_kernel}, "needs kernel='rbf'"),
        ({"approximation": "sketch", "kernel": "rbf"}, "must be one of 'nystroem', 'fourier'. Got 'sketch'"),
        ({"approximation": "nystroem", "kernel": "rbf", "n_components": 0}, "n_components"),
    ],
)
def test_impossible_approximations_are_refused(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        RBRLClassifier(**parameters).fit(*problem)


def test_a_path_has_no_limited_rank(problem):
    with pytest.raises(ValueError, match="max_rank=2"):
        RBRLClassifierCV([1.0], [0.1], [0.1], estimator=RBRLClassifier(max_rank=2), cv=2).fit(*problem)
