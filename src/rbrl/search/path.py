"""Many models of one design, each started from its solved neighbours in the grid: one fold of a search."""

import itertools
import time
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from rbrl._common.threads import one_thread
from rbrl.decision import non_empty
from rbrl.exceptions import ConvergenceWarning
from rbrl.solvers import QuasiNewton, SolverResult

# How far along a grid line the last two solutions are extrapolated.
EXTRAPOLATIONS = (0.5, 1.0)
# Steps of a model in a search. The few that take more are corners of a grid with hardly any penalty: on education they
# took up to two fifths of a search, and none of them was chosen.
MOST_STEPS = 100


@dataclass
class Solved:
    """A grid point with its solution."""

    params: dict
    result: SolverResult
    seconds: float


def solve_grid(estimator, axes, design, Y, weights=None, tol=1e-4, max_iter=MOST_STEPS):
    """Yield the solution of every point of a grid, in an order in which neighbours come first.

    Parameters
    ----------
    estimator : ObjectiveClassifier
        Its parameters other than those in `axes` hold for all points.
    axes : dict of str to sequence
        Parameter values, each in the order in which they are visited; the first axis changes slowest.
    design, Y, weights
        As for :class:`rbrl.problem.objective.Objective`.
    tol : float, default=1e-4
        A model is done when a step gains less than this share of its objective.
    max_iter : int, default=100
        Steps after which it is done in any case.
    """
    if estimator.max_rank is not None:
        raise ValueError(
            f"A search along a path finds optima, of any rank. Got max_rank={estimator.max_rank}; search with "
            "sklearn.model_selection.GridSearchCV, or set max_rank=None."
        )
    names, solved = tuple(axes), {}
    solver = QuasiNewton(stop="progress")
    for index in itertools.product(*(range(len(axes[name])) for name in names)):
        params = {name: axes[name][i] for name, i in zip(names, index)}
        started = time.perf_counter()
        objective = clone(estimator).set_params(**params)._objective(design, Y, weights)
        start, scores = _best_start(objective, _candidates(solved, index))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = solver.solve(objective, start=start, scores=scores, tol=tol, max_iter=max_iter)
        solved[index] = result.weights, result.scores
        # No later point looks back further than two steps along the slowest axis.
        solved.pop((index[0] - 3, *index[1:]), None)
        yield Solved(params, result, time.perf_counter() - started)


def _candidates(solved, index):
    """Weights and scores of the neighbours behind `index`, and their extrapolations, free because scores are linear."""
    for axis in range(len(index)):
        near, far = (solved.get(_behind(index, axis, steps)) for steps in (1, 2))
        if near is not None:
            yield near
            if far is not None:
                yield from (tuple(a + s * (a - b) for a, b in zip(near, far)) for s in EXTRAPOLATIONS)


def _behind(index, axis, steps):
    return tuple(i - steps if k == axis else i for k, i in enumerate(index))


def _best_start(objective, candidates):
    """The candidate with the smallest objective; (None, None) if there is none."""
    best, best_value = (None, None), np.inf
    for W, scores in candidates:
        value = objective.value_at(W, scores)
        if value < best_value:
            best, best_value = (W, scores), value
    return best


def search_fold(estimator, axes, data, train, test, scoring, tol):
    """Rows of a search table: parameters, metrics on `test`, gap, evaluations and seconds of every grid point.

    Parameters
    ----------
    estimator : ObjectiveClassifier
    axes : dict of str to sequence
        In the order of :func:`rbrl.search.path.solve_grid`.
    data : SearchData
    train, test : arrays of row indices
    scoring : Scoring
    tol : float
        A model is done when a step gains less than this share of its objective.
    """
    # One thread whatever runs beside it, so that the same search gives the same digits on any number of processes.
    with one_thread():
        X_train, X_test = data.rows(train, train), data.rows(test, train)
        design = estimator._design(X_train, np.arange(len(train)))
        held_out = design.transform(estimator._basis_rows(X_test, X_train))
        weights = None if data.weights is None else data.weights[train]
        table = []
        for solved in solve_grid(estimator, axes, design, data.signed[train], weights, tol):
            scores = held_out @ solved.result.weights
            relevant = scores > 0
            if estimator.non_empty:
                relevant = non_empty(relevant, scores)
            values = scoring(X_test, data.y[test], data.signed[test] > 0, scores, relevant, data.targets)
            row = {"gap": solved.result.gap, "evaluations": solved.result.evaluations, "seconds": solved.seconds}
            table.append({"params": solved.params, **values, **row})
    return table


class SearchData:
    """Checked rows and labels of a search."""

    def __init__(self, X, y, targets, weights, pairwise):
        self.X, self.y, self.targets, self.weights, self._pairwise = X, y, targets, weights, pairwise
        self.signed = targets.encode(y)

    def rows(self, rows, columns):
        """Rows of X; of a kernel matrix, their values to the `columns` only."""
        return self.X[rows][:, columns] if self._pairwise else self.X[rows]
