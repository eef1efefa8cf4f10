"""The three stages of MLFE, each against a plain version of itself or against optimality."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime, lsq_linear
from sklearn.datasets import make_multilabel_classification

from rbrl import datasets, metrics
from rbrl.estimators import MLFE
from rbrl.estimators.label_enrichment import RidgeInverse, enrich_labels, reconstruct
from rbrl.estimators.mlfe import SignedRegression
from rbrl.kernels import gram


def plain_lasso(X, i, max_iter=1000):
    """Weights of row i by ADMM, one problem at a time, from the formulas."""
    A, b = np.delete(X, i, axis=0).T, X[i]
    n, limit = A.shape[1], 0.01 * np.abs(A.T @ b).max()
    z, u = np.zeros(n), np.zeros(n)
    for _ in range(max_iter):
        x = np.linalg.solve(A.T @ A + np.eye(n), A.T @ b + z - u)
        z_old, v = z, 0.5 * x + 0.5 * z + u
        z = np.sign(v) * np.maximum(np.abs(v) - limit, 0)
        u = v - z
        norm, floor = np.linalg.norm, np.sqrt(n) * 1e-4
        if norm(x - z) < floor + 1e-2 * max(norm(x), norm(z)) and norm(z - z_old) < floor + 1e-2 * norm(u):
            break
    return np.insert(z, i, 0.0)


@pytest.mark.parametrize("shape", [(30, 5), (20, 30)])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_all_lassos_at_once(shape, container):
    X = np.random.default_rng(0).standard_normal(shape)
    X[4] = 0
    W = reconstruct(container(X), n_jobs=2).toarray()
    np.testing.assert_allclose(W, [plain_lasso(X, i) for i in range(len(X))], atol=1e-9)
    assert not np.diag(W).any()
    assert not W[4].any()


@pytest.mark.parametrize("shape", [(12, 5), (8, 20)])
def test_inverse_without_one_row(shape):
    random = np.random.default_rng(0)
    X, n = random.standard_normal(shape), shape[0]
    Q, left_out = random.standard_normal((n, 3)), np.array([0, 4, n - 1])
    Q[left_out, np.arange(3)] = 0
    found = RidgeInverse(X, rho=0.7).leave_one_out(Q, left_out)
    for column, i in enumerate(left_out):
        others = np.delete(np.arange(n), i)
        G = X[others] @ X[others].T + 0.7 * np.eye(n - 1)
        np.testing.assert_allclose(found[others, column], np.linalg.solve(G, Q[others, column]), atol=1e-10)
        assert found[i, column] == 0


def test_enriched_labels_are_optimal():
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 6))
    Y = np.where(random.random((40, 3)) < 0.4, 1, -1)
    W = reconstruct(X)
    MU = enrich_labels(W, Y, tol=1e-9)
    A = np.eye(40) - W.toarray()
    for k in range(3):
        bounds = np.where(Y[:, k] > 0, 1.0, -2.0), np.where(Y[:, k] > 0, 2.0, -1.0)
        exact = lsq_linear(A, np.zeros(40), bounds=bounds, tol=1e-12)
        assert np.sum((A @ MU[:, k]) ** 2) == pytest.approx(2 * exact.cost, rel=1e-6)
    np.testing.assert_array_equal(np.sign(MU), Y)
    assert np.abs(MU).max() <= 2
    assert np.abs(MU).min() >= 1


@pytest.fixture
def regression_problem():
    random = np.random.default_rng(0)
    X = random.standard_normal((30, 4))
    MU = np.sign(X[:, :3] + random.standard_normal((30, 3))) * random.uniform(1, 2, (30, 3))
    return gram(X, kernel="rbf", gamma=0.2), MU


def objective(K, MU, problem, B, b):
    F, relevant = K @ B + b, MU > 0
    u = np.linalg.norm(MU - F, axis=1)
    contrast = sum(
        F[i, r].mean() * r.any() - F[i, ~r].mean() * (~r).any()
        for i, r in enumerate(relevant)
        if r.any() and not r.all()
    )
    contrast += sum(F[i, r].mean() for i, r in enumerate(relevant) if r.all())
    contrast -= sum(F[i].mean() for i, r in enumerate(relevant) if not r.any())
    fit = np.sum(np.maximum(u - problem.epsilon, 0) ** 2)
    signs = np.sum(np.maximum(-np.sign(MU) * F, 0))
    return 0.5 * np.trace(B.T @ K @ B) + problem.beta1 * fit + problem.beta2 * signs - problem.beta3 * contrast


def test_regression_is_stationary_where_it_is_smooth(regression_problem):
    K, MU = regression_problem
    problem = SignedRegression(beta1=2.0, beta2=0.0, beta3=0.7, tol=1e-14)
    found = problem.fit(K, MU)

    def value(v):
        return objective(K, MU, problem, v[:90].reshape(30, 3), v[90:])

    best = np.concatenate([found.dual_coef.ravel(), found.intercept])
    assert found.objective == pytest.approx(value(best))
    np.testing.assert_allclose(approx_fprime(best, value, 1e-7), 0, atol=2e-4)


@pytest.mark.parametrize("betas", [(1.0, 1.0, 1.0), (10.0, 15.0, 10.0), (1.0, 10.0, 0.0)])
def test_no_small_step_improves_the_regression_much(regression_problem, betas):
    K, MU = regression_problem
    problem = SignedRegression(*betas, tol=1e-10)
    found = problem.fit(K, MU)
    random = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(50):
            B = found.dual_coef + size * random.standard_normal(MU.shape)
            b = found.intercept + size * random.standard_normal(3)
            assert objective(K, MU, problem, B, b) > found.objective - 1e-3 * abs(found.objective)


def test_a_score_of_zero_is_relevant():
    X, Y = np.eye(4), np.eye(4, dtype=int)
    model = MLFE().fit(X, Y)
    model.dual_coef_[:], model.intercept_[:] = 0, 0
    assert (model.decision_function(X) > 0).all()
    assert model.predict(X).all()


def test_emotions_as_the_reconstruction_was_judged(data_home):
    train, test = datasets.load("emotions", data_home=data_home).split(seed=0)
    mean, spread = train.X.mean(axis=0), train.X.std(axis=0)
    X, X_test = (train.X - mean) / spread, (test.X - mean) / spread
    model = MLFE().fit(X, train.Y)
    assert 45 < model.reconstruction_.nnz / len(X) < 57
    assert 0.63 < np.mean(np.abs(model.enriched_labels_) < 1 + 1e-6) < 0.75
    # Within three standard deviations of the paper's means.
    values = metrics.evaluate(test.Y, model.predict(X_test), model.decision_function(X_test))
    assert values["hamming_loss"] == pytest.approx(0.186, abs=0.03)
    assert values["ranking_loss"] == pytest.approx(0.142, abs=0.04)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"beta1": 0.0}, "Got 0.0"), ({"beta2": -1.0}, "Got -1.0"), ({"bounds": (2.0, 1.0)}, r"Got \(2.0, 1.0\)")],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        MLFE(**parameters).fit(np.eye(3), np.eye(3, dtype=int))


def test_many_models_share_the_first_stages(monkeypatch):
    X, Y = make_multilabel_classification(40, 6, n_classes=3, random_state=0)
    points = [{"beta1": 1.0}, {"beta1": 5.0, "beta2": 10.0}, {"beta3": 0.0}]
    alone = [MLFE(**params).fit(X, Y).decision_function(X) for params in points]
    solved = []
    monkeypatch.setattr("rbrl.estimators.mlfe.reconstruct", lambda *args: solved.append(1) or reconstruct(*args))
    for model, expected in zip(MLFE().fit_many(X, Y, points), alone):
        np.testing.assert_array_equal(model.decision_function(X), expected)
    assert len(solved) == 1
    list(MLFE().fit_many(X, Y, [{"gamma": 0.1}, {"gamma": 1.0}]))
    assert len(solved) == 3
