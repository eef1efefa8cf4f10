"""The certificate of a fit holds for the original X or K, and for the coefficients as they are stored."""

import inspect
import itertools
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from problems import random_gram, random_labels, rbrl_loss
from rbrl import BRLClassifier, RBRLClassifier
from rbrl.estimators import CPNL
from rbrl.exceptions import ConvergenceWarning
from rbrl.kernels import fit_feature_map, gram
from rbrl.problem import SpectralDesign
from rbrl.problem.objective import Objective
from rbrl.selection import PathSearchCV
from rbrl.solvers import APG, QuasiNewton, proof, solve_kernel
from rbrl.solvers import solve as solve_module
from rbrl.solvers.proof import prove_function, prove_kernel

WEIGHTS = list(itertools.product((1e-4, 1e-2, 1.0, 1e2), (0.0, 1.0), (0.0, 1e-2, 10.0)))


class TestScales:
    """Columns of very different size: the problem is solved, or a warning says that it could not be proved."""

    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 5))
        return X, (X @ rng.standard_normal((5, 3)) > 0).astype(int), rng.standard_normal((400, 1))

    models = pytest.mark.parametrize(
        ("model", "form"),
        [
            (BRLClassifier(ridge=1, nuclear=0), "dense"),
            (BRLClassifier(ridge=1, nuclear=5), "dense"),
            (RBRLClassifier(ridge=1, ranking=0.1), "dense"),
            (RBRLClassifier(ridge=1, ranking=0.1), "sparse"),
            (RBRLClassifier(ridge=1, ranking=0.1), "blocks"),
            (CPNL(), "dense"),
            (RBRLClassifier(kernel="rbf"), "dense"),
            (RBRLClassifier(kernel="rbf"), "sparse"),
            (RBRLClassifier(kernel="rbf", low_rank="function"), "dense"),
            (RBRLClassifier(kernel="rbf", approximation="nystroem", n_components=50, random_state=0), "dense"),
        ],
        ids=str,
    )

    @staticmethod
    def fit(model, form, X, Y):
        if form == "blocks":
            return model.fit([(X[:150], Y[:150]), (X[150:], Y[150:])])
        return model.fit(sparse.csr_array(X) if form == "sparse" else X, Y)

    @models
    @pytest.mark.parametrize("size", [1e6, 1.7e9])
    def test_a_large_constant_column_changes_nothing(self, data, model, form, size):
        X, Y, _ = data
        larger = np.hstack([X, np.full((len(X), 1), size)])
        plain, model = (self.fit(model, form, rows, Y) for rows in (X, larger))
        assert model.gap_ <= model.tol
        assert np.mean(model.predict(larger) == Y) > 0.98
        if model.kernel == "linear":
            # The column can replace the intercept, so the optimum is no higher, and hardly lower.
            assert model.objective_ == pytest.approx(plain.objective_, rel=1e-3)

    @pytest.mark.parametrize(("model", "form"), models.args[1][:6], ids=str)
    @pytest.mark.parametrize("size", [1.7e9, 1e12])
    def test_a_timestamp_is_learned_with_or_warned_of(self, data, model, form, size):
        X, Y, noise = data
        X = np.hstack([X, size * (1 + 1e-3 * noise)])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = self.fit(model, form, X, Y)
        assert (model.gap_ > model.tol) == any(issubclass(w.category, ConvergenceWarning) for w in said)
        assert np.mean(model.predict(X) == Y) > 0.98

    @pytest.mark.parametrize("kernel", ["poly", "rbf"])
    def test_kernels_of_large_values_fit_or_warn(self, data, kernel):
        X, Y, noise = data
        for size, spread in itertools.product((1e6, 1e12), (0.0, 1e-3)):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                model = RBRLClassifier(kernel=kernel, max_iter=50).fit(np.hstack([X, size * (1 + spread * noise)]), Y)
            assert (model.gap_ > model.tol) == any(issubclass(w.category, ConvergenceWarning) for w in said)
            assert not any(issubclass(w.category, RuntimeWarning) for w in said)

    def test_the_objective_is_that_of_the_stored_coefficients(self, data):
        X, Y, _ = data
        X = np.hstack([X, np.full((len(X), 1), 1e6)])
        for dtype in (np.float64, np.float32):
            model = BRLClassifier(ridge=1, nuclear=0.1).fit(X.astype(dtype), Y)
            W = np.hstack([model.coef_, model.intercept_[:, None]]).astype(np.longdouble)
            scores = X.astype(dtype).astype(np.longdouble) @ W[:, :-1].T + W[:, -1]
            hinge = 0.5 * np.sum(np.maximum(1 - np.where(Y > 0, 1, -1) * scores, 0) ** 2)
            singular = np.linalg.svd(W.astype(np.float64), compute_uv=False).sum()
            assert model.objective_ == pytest.approx(float(hinge + 0.5 * np.sum(W**2) + 0.1 * singular), rel=1e-9)

    def test_a_tolerance_beyond_double_precision_is_said(self, data):
        X, Y, _ = data
        with pytest.warns(ConvergenceWarning, match="raise tol"):
            BRLClassifier(tol=1e-16).fit(X, Y)


def test_every_point_of_a_search_has_a_finite_gap():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5))
    Y = (X @ rng.standard_normal((5, 4)) + 0.5 * rng.standard_normal((120, 4)) > 0).astype(int)
    grid = {"ridge": [1e-2, 1e-4], "ranking": [1e2, 1e4], "nuclear": [1.0, 100.0, 1e4]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        search = PathSearchCV(RBRLClassifier(kernel="rbf"), grid, cv=2).fit(X, Y)
        unpenalised = PathSearchCV(BRLClassifier(ridge=0), {"nuclear": [0.0]}, cv=2).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_gap"]).all()
    assert np.isinf(unpenalised.cv_results_["mean_gap"]).all()


class TestKernels:
    """Over a rounded spectrum too, what is reported holds for the kernel itself."""

    @pytest.fixture(autouse=True)
    def precisions(self, monkeypatch):
        """Small kernels are rounded too; the types of the matrices that are decomposed."""
        seen = []
        monkeypatch.setattr(solve_module, "SMALLEST_SINGLE_KERNEL", 1)
        monkeypatch.setattr(
            solve_module, "SpectralDesign", lambda K, *args: seen.append(K.dtype.char) or SpectralDesign(K, *args)
        )
        return seen

    @staticmethod
    def problem(ridge, ranking, nuclear, seed=0, n=40, l=4):
        rng = np.random.default_rng(seed)
        K, Y = random_gram(rng, n), random_labels(rng, n, l)
        weights = None if seed % 2 else rng.random(n) + 0.1
        return K, lambda design: Objective(design, Y, rbrl_loss(ranking), ridge, nuclear, weights)

    @staticmethod
    def solve(K, objective_of, solver=None, low_rank="coefficients", **options):
        ridge = objective_of(SpectralDesign(K.copy())).ridge.weight
        return solve_kernel(solver or QuasiNewton(), K, low_rank, ridge, objective_of, np.float64, **options)

    @pytest.mark.filterwarnings("ignore:The quasi-Newton solver stopped")
    @pytest.mark.parametrize(("seed", "tol"), [(0, 1e-3), (1, 1e-5)])
    def test_the_gap_is_never_below_the_true_gap(self, seed, tol):
        for lambdas in WEIGHTS:
            K, objective_of = self.problem(*lambdas, seed=seed)
            solution = self.solve(K, objective_of, tol=tol)
            objective, A = objective_of(SpectralDesign(K.copy())), solution.coefficients
            optimum = QuasiNewton().solve(objective, tol=1e-10).objective
            loss = objective.loss.value(objective.Y, K @ A, objective.sample_weight)
            value = loss + 0.5 * lambdas[0] * np.sum(A * (K @ A)) + objective.nuclear.value(A)
            assert value == pytest.approx(solution.proof.objective, rel=1e-9)
            assert value / optimum - 1 <= solution.proof.gap + 1e-9, lambdas
            assert solution.proof.gap <= tol, lambdas

    def test_the_bound_holds_anywhere(self):
        rng = np.random.default_rng(3)
        for lambdas in WEIGHTS:
            K, objective_of = self.problem(*lambdas)
            optimum = QuasiNewton().solve(objective_of(SpectralDesign(K.copy())), tol=1e-8).objective
            objective = objective_of(SpectralDesign(K.astype(np.float32)))
            for scale in (0.0, 1.0, 1e3):
                A = objective.design.coefficients(scale * rng.standard_normal(objective.shape))
                proof = prove_kernel(objective, K, A, K @ A)
                assert proof.objective / (1 + proof.gap) <= optimum * (1 + 1e-9)

    @pytest.mark.parametrize("low_rank", ["coefficients", "function"])
    def test_an_objective_that_rounding_moves_is_that_of_extended_precision(self, low_rank):
        """Large coefficients of rows that are nearly equal: products cancel to scores of 1."""
        if np.finfo(np.longdouble).eps >= np.finfo(float).eps:
            pytest.skip("a long double is a double here")
        rng = np.random.default_rng(0)
        rows = rng.standard_normal((6, 6)) * np.geomspace(1, 1e-4, 6)
        K, Y = rows @ rows.T, random_labels(rng, 6, 2)
        A = np.linalg.solve(K, Y * 1.0) + 1e-3 * rng.standard_normal((6, 2))
        objective = Objective(SpectralDesign(K.copy(), low_rank), Y, rbrl_loss(0.0), 0.0, 0.0)
        by_function = partial(prove_function, objective, K.dot, np.linalg.norm(K, axis=0), K=K)
        prove = by_function if low_rank == "function" else partial(prove_kernel, objective, K)
        F = (K.astype(np.longdouble) @ A.astype(np.longdouble)).astype(float)
        true = objective.loss.value(Y, F, None)
        assert abs(objective.loss.value(Y, K @ A, None) - true) > 1e-9 * true
        assert prove(A, K @ A).objective == pytest.approx(true, rel=1e-12)

    def test_a_large_ridge_needs_single_precision_only(self, precisions):
        assert self.solve(*self.problem(1.0, 0.1, 0.1)).proof.gap <= 1e-4
        assert precisions == ["f"]

    def test_a_small_ridge_is_not_tried_in_single_precision(self, precisions):
        self.solve(*self.problem(1e-5, 0.1, 0.1))
        assert precisions == ["d"]

    @pytest.mark.parametrize("ridge", [1e-8, 1e-3])
    def test_double_precision_where_single_does_not_do(self, monkeypatch, precisions, ridge):
        monkeypatch.setattr(solve_module, "FINEST_SINGLE_TOL", 0.0)
        steps = []

        class Counting(QuasiNewton):
            def solve(self, *args, **options):
                result = super().solve(*args, **options)
                steps.append(result.n_iter)
                return result

        solution = self.solve(*self.problem(ridge, 0.1, 0.1), Counting(), tol=1e-8)
        assert solution.proof.gap <= 1e-8
        assert precisions == ["f", "d"]
        assert solution.result.n_iter == sum(steps) == len(solution.result.history)

    def test_other_solvers_and_the_low_rank_function_are_of_double_precision(self, precisions):
        for solver, low_rank in ((APG(restart=True), "coefficients"), (QuasiNewton(), "function")):
            solution = self.solve(*self.problem(1.0, 0.1, 0.1), solver, low_rank, tol=1e-3)
            assert solution.proof.gap <= 1e-3
        assert precisions == ["d", "d"]

    def test_the_estimator_is_the_same_in_either_precision(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 5))
        Y = X @ rng.standard_normal((5, 3)) + 0.3 * rng.standard_normal((60, 3)) > 0
        single = RBRLClassifier(kernel="rbf", nuclear=0.1, tol=1e-6).fit(X, Y)
        monkeypatch.setattr(solve_module, "SMALLEST_SINGLE_KERNEL", 10**9)
        double = RBRLClassifier(kernel="rbf", nuclear=0.1, tol=1e-6).fit(X, Y)
        assert single.gap_ <= 1e-6
        assert not np.array_equal(single.dual_coef_, double.dual_coef_)
        np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=2e-3)


SHARED = ("tol", "max_iter", "degree", "coef0", "random_state")


@pytest.mark.parametrize(
    "function", [solve_kernel, solve_module.solve_and_certify, fit_feature_map, gram, QuasiNewton.solve, APG.solve]
)
def test_defaults_are_those_of_the_classifier(function):
    own, classifier = (inspect.signature(f).parameters for f in (function, RBRLClassifier))
    for name in (name for name in SHARED if name in own and own[name].default is not inspect.Parameter.empty):
        assert own[name].default == classifier[name].default, name


def small_problem(n=30, l=4):
    rng = np.random.default_rng(3)
    return rng.standard_normal((n, 5)), random_labels(rng, n, l)


@pytest.mark.parametrize("low_rank", ["coefficients", "function"])
def test_what_rounding_can_have_added_to_the_objective_is_in_the_gap(monkeypatch, low_rank):
    model = RBRLClassifier(kernel="rbf", low_rank=low_rank, tol=1e-3)
    fitted = model.fit(*small_problem())
    at = proof.DualPoint.at

    def doubtful(*args):
        point, R = at(*args)
        # Only the objective has the scores' own size in it.
        point.score_sizes = 0.5 * fitted.objective_ * np.linalg.pinv(point.own_rounding[None])[:, 0]
        return point, R

    monkeypatch.setattr(proof.DualPoint, "at", doubtful)
    with pytest.warns(ConvergenceWarning):
        assert 0.5 < clone(model).fit(*small_problem()).gap_ < 0.51


def test_a_kernel_model_without_ridge_is_certified():
    model = RBRLClassifier(kernel="rbf", ridge=0.0, nuclear=5.0, tol=1e-2).fit(*small_problem())
    assert model.gap_ <= 1e-2


def test_an_approximated_kernel_with_a_small_ridge_is_certified():
    model = RBRLClassifier(
        kernel="rbf", approximation="nystroem", n_components=10, ridge=0.05, nuclear=0.5, random_state=0
    )
    assert model.fit(*small_problem()).gap_ <= model.tol
