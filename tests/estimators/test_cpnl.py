"""CPNL: costs and graphs worked out by hand, and the authors' own run replayed."""

import json

import numpy as np
import pytest

from rbrl import evaluate
from rbrl.estimators import CPNL
from rbrl.losses.label_graph import costs_of_counts, label_counts, laplacians_of_products
from rbrl.solvers import APG

FOLDER = "cpnl_kernel_1_0.1_0.1"


@pytest.fixture(scope="module")
def split(golden):
    return np.load(golden / "emotions-split.npz")


def table(path):
    return np.loadtxt(path, delimiter=",")


def graphs(Y, n_neighbors=3):
    counts = label_counts(Y)
    return laplacians_of_products(counts.products, counts.n_samples, n_neighbors)


def test_costs_by_hand():
    Y = np.array([[1, 1, -1], [-1, 1, -1], [-1, 1, -1], [-1, 1, -1]])
    counts, weighted = label_counts(Y), label_counts(Y, [3, 1, 1, 1])
    np.testing.assert_allclose(costs_of_counts(counts.relevant, counts.irrelevant), [3**0.5, 0, 1])
    np.testing.assert_allclose(costs_of_counts(weighted.relevant, weighted.irrelevant, 1.0), [1, 0, 1])


def test_graphs_by_hand():
    """Labels 0 and 1 agree in 3/4 of the rows, 0 and 2 in 1/4, 1 and 2 in none: one entry a row is above the second."""
    Y = np.array([[1, 1, -1], [1, 1, -1], [-1, -1, 1], [1, -1, 1]])
    positive, negative = graphs(Y, n_neighbors=2)
    a, b = 0.75, 0.125
    np.testing.assert_allclose(positive, [[a + b, -a, -b], [-a, a, 0], [-b, 0, b]])
    c = 0.375
    np.testing.assert_allclose(negative, [[c, 0, c], [0, 1, 1], [c, 1, 1 + c]])


def test_graphs_are_those_of_the_authors(golden, split):
    positive, negative = graphs(split["Y_train"])
    np.testing.assert_allclose(positive, table(golden / FOLDER / "L_pos.csv"), atol=1e-12)
    np.testing.assert_allclose(negative, table(golden / FOLDER / "L_neg.csv"), atol=1e-12)


@pytest.mark.filterwarnings("ignore:APG stopped")
def test_the_authors_iteration_is_replayed(golden, split):
    solver = APG(lipschitz="paper", stop="paper")
    model = CPNL(1, 0.1, 0.1, kernel="rbf", gamma="paper", solver=solver, non_empty=True).fit(
        split["X_train"], split["Y_train"]
    )
    assert model.n_iter_ == 1999
    np.testing.assert_allclose(model.history_, table(golden / FOLDER / "objective.csv")[:, 1], rtol=1e-9)
    np.testing.assert_allclose(model.dual_coef_, table(golden / FOLDER / "param.csv"), atol=1e-6)
    scores, labels = model.decision_function(split["X_test"]), model.predict(split["X_test"])
    np.testing.assert_allclose(scores, table(golden / FOLDER / "scores_test.csv"), atol=1e-6)
    np.testing.assert_array_equal(labels, table(golden / FOLDER / "labels_test.csv"))


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_our_solver_goes_lower(golden, split, tol):
    summary = json.loads((golden / FOLDER / "summary.json").read_text())
    model = CPNL(1, 0.1, 0.1, kernel="rbf", gamma="paper", non_empty=True, tol=tol).fit(
        split["X_train"], split["Y_train"]
    )
    assert model.objective_ <= summary["final_objective"]
    assert model.gap_ <= tol
    assert model.dual_objective_ <= model.objective_
    figures = evaluate(
        split["Y_test"] > 0, model.predict(split["X_test"]) > 0, model.decision_function(split["X_test"])
    )
    assert figures["ranking_loss"] == pytest.approx(summary["Ranking_Loss"], abs=0.01)


def test_a_linear_kernel_is_the_linear_model(split):
    X, Y = split["X_train"], split["Y_train"]
    linear = CPNL(ridge=1.0, fit_intercept=False, tol=1e-10).fit(X, Y)
    kernel = CPNL(kernel="precomputed", fit_intercept=False, tol=1e-10).fit(X @ X.T, Y)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-9)
    np.testing.assert_allclose(X.T @ kernel.dual_coef_, linear.coef_.T, atol=1e-4)


@pytest.mark.parametrize("l", [1, 2, 3])
def test_few_and_constant_labels(split, l):
    X, Y = split["X_train"][:50], split["Y_train"][:50, :l].copy()
    Y[:, -1] = 1
    model = CPNL().fit(X, Y)
    assert model.gap_ <= 1e-4
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("name", "value"), [("positive", -1.0), ("negative", np.nan), ("beta", -0.5), ("n_neighbors", 0)]
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"The {name} parameter of CPNL must be .* Got {value!r}"):
        CPNL(**{name: value}).fit([[0.0], [1.0]], [[0, 1], [1, 0]])
