"""The problem that a classifier poses: the same design, objective and solution that its fit has, without a fit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification

from rbrl import CPNL, BRLClassifier, RBRLClassifier
from rbrl.estimators.forms import FeatureMapForm, LinearForm

X, Y = make_multilabel_classification(60, 6, n_classes=4, n_labels=2, random_state=0)
X = (X - X.mean(axis=0)) / X.std(axis=0)
K = X @ X.T + 1
WEIGHTS = np.random.default_rng(0).integers(0, 3, 60)
MODELS = {
    "linear": (RBRLClassifier(), X),
    "sparse": (BRLClassifier(fit_intercept=False), sparse.csr_array(X)),
    "kernel": (RBRLClassifier(kernel="rbf"), X),
    "function": (RBRLClassifier(kernel="poly", low_rank="function"), X),
    "precomputed": (RBRLClassifier(kernel="precomputed", fit_intercept=False), K),
    "approximation": (RBRLClassifier(kernel="rbf", approximation="nystroem", n_components=20, random_state=0), X),
    "labels count": (CPNL(), X),
}
every_model = pytest.mark.parametrize(("model", "rows"), MODELS.values(), ids=MODELS)
every_weight = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["no weights", "weights"])


def stored(model, problem):
    """Coefficients of a fitted model as its problem has them."""
    if isinstance(problem.form, LinearForm):
        return np.hstack([model.coef_, model.intercept_[:, None]] if model.fit_intercept else [model.coef_]).T
    return model.feature_coef_ if isinstance(problem.form, FeatureMapForm) else model.dual_coef_[problem.rows]


@every_model
@every_weight
def test_its_solution_is_that_of_a_fit_and_nothing_is_stored(model, rows, weights):
    model, fitted = clone(model), clone(model).fit(rows, Y, weights)
    before = dict(vars(model))
    problem = model.problem(rows, Y, weights)
    solution = problem.solve()
    np.testing.assert_array_equal(solution.coefficients, stored(fitted, problem))
    assert (solution.proof.objective, solution.proof.gap) == (fitted.objective_, fitted.gap_)
    assert vars(model) == before


@every_model
@every_weight
def test_its_objective_is_what_a_fit_reports_at_any_parameters(model, rows, weights):
    problem = clone(model).problem(rows, Y, weights)
    for parameters in ({}, {"ridge": 3.0}):
        fitted = clone(model).set_params(**parameters).fit(rows, Y, weights)
        W = problem.design_of(**parameters).weights(stored(fitted, problem))
        assert problem.objective(**parameters).value(W) == pytest.approx(fitted.objective_, rel=1e-9)


@every_model
@every_weight
def test_its_matrix_scores_other_rows_as_the_model_does(model, rows, weights):
    model = clone(model).fit(rows, Y, weights)
    problem = clone(model).problem(rows, Y, weights)
    found = problem.matrix_of_rows(rows) @ problem.design.weights(stored(model, problem))
    np.testing.assert_allclose(found, model.decision_function(rows), atol=1e-8)


def test_a_start_is_where_the_solver_begins():
    problem = RBRLClassifier(tol=1e-6).problem(X, Y)
    cold = problem.solve()
    again = problem.solve(cold.coefficients, cold.result.dual_scores)
    assert again.result.n_iter <= 2 < cold.result.n_iter
    assert problem.solve(cold.coefficients).result.n_iter < cold.result.n_iter


def test_a_target_of_classes_and_a_parameter_that_makes_no_sense():
    classes = np.argmax(Y, axis=1)
    assert RBRLClassifier().problem(X, classes).Y.shape == (60, len(np.unique(classes)))
    with pytest.raises(
        ValueError, match="The ridge parameter of RBRLClassifier must be 'auto' or a finite number >= 0"
    ):
        RBRLClassifier(ridge=-1).problem(X, Y)
