"""One fold of a search: a design computed once, a path of models over it, their scores on the rows held out."""

import numpy as np
from threadpoolctl import threadpool_limits

from rbrl.decision import non_empty
from rbrl.search.path import solve_grid


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
    with threadpool_limits(limits=1):
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
