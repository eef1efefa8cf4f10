"""The compared models: each returns the facts that are recorded."""

import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.svm import SVC

from rbrl import RBRLClassifier, decision
from rbrl.metrics import average_precision, evaluate
from rbrl.selection.path import solve_grid
from studies.benchmarks.defaults.protocol import (
    CS,
    FOLDS,
    GRID_TOL,
    MANY,
    METRICS,
    NUCLEARS,
    RANKINGS,
    RIDGES,
    TUNING_ROWS,
    grid,
)

FIRST = {"ridge": 1, "ranking": 0.1, "nuclear": 0.1, "intercept_ridge": None}
# Labels on which the two solvers of logistic regression are timed.
TIMED = 5


def defaults(rows, kernel="linear"):
    """RBRLClassifier as it is."""
    started = time.process_time()
    model = RBRLClassifier(kernel=kernel).fit(rows.X, rows.Y)
    seconds = time.process_time() - started
    scores, labels = model.decision_function(rows.X_test), model.predict(rows.X_test)
    # Without the rule that no row is empty, for the sake of a fair comparison with a method that has none.
    bare = judged(rows.Y_test, scores, scores > 0)
    facts = judged(rows.Y_test, scores, labels) | {f"bare_{name}": bare[name] for name in ("f1_micro", "hamming_loss")}
    return facts | {"seconds": seconds, "fit_seconds": seconds, "note": f"ridge {model.ridge_:.4g}"}


def logistic(rows, solver=None):
    """One-vs-rest logistic regression, C tuned by average precision in cross-validation; by default the faster solver."""
    solver = solver or faster_solver(rows.X, rows.Y)
    n_tuning = TUNING_ROWS if rows.Y.shape[1] > MANY else len(rows.Y)
    started = time.process_time()
    C = best_C(rows.X[:n_tuning], rows.Y[:n_tuning], solver)
    tuned = time.process_time()
    scores_of = one_vs_rest(LogisticRegression(C=C, solver=solver), rows.X, rows.Y)
    ended = time.process_time()
    times = {"seconds": ended - started, "fit_seconds": ended - tuned, "note": f"C {C:g}, {solver}"}
    return rival(rows, scores_of(rows.X_test)) | times


def svc(rows):
    """Fit a one-vs-rest SVC with its defaults."""
    started = time.process_time()
    scores_of = one_vs_rest(SVC(), rows.X, rows.Y)
    seconds = time.process_time() - started
    return rival(rows, scores_of(rows.X_test)) | {"seconds": seconds, "fit_seconds": seconds, "note": ""}


def rival(rows, scores):
    """Return the metrics of a method without a rule for empty rows ("bare_"), and with our rule."""
    bare = judged(rows.Y_test, scores, scores > 0)
    filled = decision.filling_pays(decision.empty_share(rows.Y))
    facts = judged(rows.Y_test, scores, decision.relevant_labels(scores, filled))
    return facts | {f"bare_{name}": bare[name] for name in ("f1_micro", "hamming_loss")}


def judged(Y, scores, labels):
    return evaluate(Y, np.asarray(labels).astype(int), scores, METRICS)


def one_vs_rest(model, X, Y):
    """Fit a model per label; return the function of rows that gives all scores.

    A label that no row has ranks last, one that every row has first: a constant that is no score would do worse.
    """
    counts, n_samples = Y.sum(axis=0), len(Y)
    learned = np.flatnonzero((counts > 0) & (counts < n_samples))
    fitted = [type(model)(**model.get_params()).fit(X, Y[:, j]) for j in learned]

    def scores_of(X):
        scores = np.empty((X.shape[0], Y.shape[1]))
        scores[:, learned] = np.column_stack([each.decision_function(X) for each in fitted])
        low, high = scores[:, learned].min(axis=1), scores[:, learned].max(axis=1)
        scores[:, counts == 0] = np.minimum(low, 0)[:, None] - 1
        scores[:, counts == n_samples] = np.maximum(high, 0)[:, None] + 1
        return scores

    return scores_of


def best_C(X, Y, solver):
    """Return the C with the highest mean average precision over the folds; the smallest of equals."""
    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(Y))
    means = []
    for C in CS:
        model = LogisticRegression(C=C, solver=solver)
        means.append(np.mean([average_precision(Y[b], one_vs_rest(model, X[a], Y[a])(X[b])) for a, b in folds]))
    return CS[int(np.argmax(means))]


def faster_solver(X, Y):
    """Return the faster solver of logistic regression on a few labels, at a small and at the largest C."""
    counts = Y.sum(axis=0)
    few = np.flatnonzero((counts > 0) & (counts < len(Y)))[:TIMED]
    took = {}
    for solver in ("liblinear", "lbfgs"):
        started = time.process_time()
        for C in (1, max(CS)):
            for j in few:
                LogisticRegression(C=C, solver=solver).fit(X, Y[:, j])
        took[solver] = time.process_time() - started
    return min(took, key=took.__getitem__)


def fitted(rows, **parameters):
    """RBRLClassifier with these parameters."""
    started = time.process_time()
    model = RBRLClassifier(**parameters).fit(rows.X, rows.Y)
    seconds = time.process_time() - started
    facts = judged(rows.Y_test, model.decision_function(rows.X_test), model.predict(rows.X_test))
    return facts | {"seconds": seconds, "fit_seconds": seconds, "note": f"ridge {model.ridge_:.4g}"}


def grid_points(rows):
    """(name, facts) of every point of the grid."""
    problem = RBRLClassifier().problem(rows.X, rows.Y, n_problems=len(grid()))
    never_empty = decision.filling_pays(decision.empty_share(rows.Y))
    unit, norm = problem.ridge, reference(rows)
    weights = {name: float(name.split()[0]) * (norm if name.endswith("ref") else 1) for name in NUCLEARS}
    axes = {"ridge": [each * unit for each in RIDGES], "ranking": RANKINGS, "nuclear": list(weights.values())}
    for place, solved in zip(grid(), solve_grid(problem, axes, GRID_TOL), strict=True):
        scores = problem.matrix_of_rows(rows.X_test, solved.design) @ solved.result.weights
        facts = judged(rows.Y_test, scores, decision.relevant_labels(scores, never_empty))
        yield point(*place), facts | {"note": f"nuclear {weights[place[2]]:.4g}"}


def point(multiple, ranking, nuclear):
    return f"ridge x {multiple:g}, ranking {ranking:g}, nuclear {nuclear}"


def reference(rows):
    """Spectral norm of the gradient at constant scores, with ranking 1, the mean of its residual taken away."""
    Y = np.where(rows.Y > 0, 1, -1).astype(np.int8)
    R = RBRLClassifier(ranking=1).loss().gradient(Y, np.tile(Y.mean(axis=0), (len(Y), 1)))
    return float(np.linalg.norm(rows.X.T @ (R - R.mean(axis=0)), 2))
