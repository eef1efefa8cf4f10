"""A fold of a search: its problem, which all models share, and what they score on the rows that it holds out."""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from rbrl._common.linalg import gram_singular_values, one_thread
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix, MatrixLike
from rbrl.decision import empty_share, filling_pays, relevant_labels
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.estimators.convex_problem import ConvexProblem
from rbrl.estimators.entries import checked_weights, known_entries
from rbrl.estimators.training_scores import TrainingRows, learn_threshold, parameters_of_problem
from rbrl.losses.base import entry_weights
from rbrl.selection.choose import Grid, Scoring
from rbrl.selection.path import KnownPoints, Solved, solve_grid
from rbrl.targets import SignedTargets


class SearchData:
    """Checked rows and labels of a search.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    y : array
        The targets as they were given.
    sample_weight : array (n_samples,) or (n_samples, n_labels), default=None
    label_mask : bool array or sparse matrix (n_samples, n_labels), default=None

    Attributes
    ----------
    X, y
        As they were given.
    weights : array (n_samples,) or (n_samples, n_labels), or None
    targets : SignedTargets
        The coding of the targets.
    signed, truth : arrays (n_samples, n_columns)
        The targets in {-1, +1}, for models, and in 0/1, for metrics; both have NaN where one is missing, masked or of weight
        0 in a matrix of weights.
    """

    def __init__(
        self, X: Matrix, y: Array, sample_weight: MatrixLike | None = None, label_mask: MatrixLike | None = None
    ) -> None:
        self.X, self.y, self.targets = X, y, SignedTargets().fit(y)
        Y = known_entries(self.targets.encode(y), label_mask)
        self.weights = checked_weights(sample_weight, Y, self.targets.is_matrix)
        if self.weights is not None and self.weights.ndim == 2:
            Y = np.where(self.weights > 0, Y, np.int8(0))
        self.signed, self.truth = (M if Y.all() else np.where(Y == 0, np.nan, M) for M in (Y, Y > 0))


class Fold:
    """Some rows to learn from and others to judge by, and what a search has solved so far.

    Parameters
    ----------
    estimator : ObjectiveClassifier
    data : SearchData
    train, test : arrays of row indices
    scoring : Scoring
    tol : float
        A model is done when a step is expected to gain less than this share of its objective.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> fold = Fold(RBRLClassifier(), SearchData(X, Y), np.arange(40), np.arange(40, 60), Scoring("coverage"), 1e-4)
    >>> [row["params"] for row in fold.search({"ridge": [10, 1]})]
    [{'ridge': 10}, {'ridge': 1}]
    >>> [row["params"] for row in fold.search({"ridge": [10, 3, 1]})]
    [{'ridge': 3}]
    """

    def __init__(
        self, estimator: ObjectiveClassifier, data: SearchData, train: IntArray, test: IntArray, scoring: Scoring, tol: float
    ) -> None:  # fmt: skip
        self.estimator, self.scoring, self.tol = estimator, scoring, tol
        # Of a kernel matrix, the values to the training rows only.
        values = data.X[:, train] if estimator.kernel == "precomputed" else data.X
        self.X_train, self.X_test, self.y_test = values[train], values[test], data.y[test]
        self.Y_train, self.Y_test = data.signed[train], data.truth[test]
        self.weights, self.targets = None if data.weights is None else data.weights[train], data.targets
        # A row of which every weight is 0 has no label that is known.
        of_rows = self.weights if self.weights is None or self.weights.ndim == 1 else None
        labelled = filling_pays(empty_share(self.Y_train, of_rows))
        non_empty = labelled if estimator.non_empty == "auto" else bool(estimator.non_empty)
        self.never_empty = data.targets.is_matrix and non_empty
        self._known: KnownPoints = {}

    @cached_property
    def problem(self) -> ConvexProblem:
        """That of the rows to learn from."""
        return self.estimator.problem(self.X_train, self.Y_train, self.weights)

    def search(self, axes: Grid, final: bool = False) -> Iterator[dict[str, Any]]:
        """Yield rows of a search table: parameters, metrics, gap, evaluations and seconds of every new grid point.

        Parameters
        ----------
        axes : dict of str to sequence
            In the order of :func:`solve_grid`; with the same names in every call.
        final : bool, default=False
            Whether no other grid will follow: nothing is remembered then.

        Yields
        ------
        dict
        """
        # Where the intercept has a ridge of its own, each value of the ridge has a design of its own.
        shared = [name for name in axes if name != "ridge" or self.estimator.intercept_ridge in (None, "ridge")]
        # One thread whatever runs beside it, so that the same search gives the same digits on any number of processes.
        with one_thread():
            problem, design = self.problem, None
            problem.n_problems = math.prod(len(axes[name]) for name in shared)
            for solved in solve_grid(problem, axes, self.tol, known=None if final else self._known):
                if design is not solved.design:
                    design, held_out = solved.design, problem.score_matrix(self.X_test, solved.design)
                scores = held_out @ solved.result.weights - self._threshold(solved)
                relevant = relevant_labels(scores, self.never_empty)
                values = self.scoring(self.X_test, self.y_test, self.Y_test, scores, relevant, self.targets)
                measured = {"gap": solved.result.gap, "evaluations": solved.result.evaluations}
                yield {"params": solved.params, **values, **measured, "seconds": solved.seconds}

    def _threshold(self, solved: Solved) -> float | FloatArray:
        """The threshold of a model of the grid, which `fit` would set: a number, or learned from the training scores."""
        params = self.estimator.get_params(deep=False) | solved.params
        metric = params["threshold"]
        if not isinstance(metric, str):
            return float(metric)
        problem, design = self.problem, solved.design
        loss = problem.objective(design, **solved.params).loss
        scores = design.scores(solved.result.weights)
        rows = TrainingRows(problem.Y, scores, problem.weights, problem.counted)
        ridge = problem.ridge if params["ridge"] == "auto" else float(params["ridge"])
        return learn_threshold(metric, loss, rows, parameters_of_problem(problem, design, ridge), self.never_empty)

    def nuclear_reference(self, params: dict[str, Any]) -> float:
        r"""The weight of the nuclear norm that leaves hardly more than the intercepts.

        It is the spectral norm of the gradient of the loss in the weights, at the scores :math:`2 \bar y_j - 1` that each
        label has on the average, with the mean over rows taken out of its derivatives in the scores: free intercepts would
        take it.

        Parameters
        ----------
        params : dict
            Of the model, such as the weight of the ranking term.

        Returns
        -------
        float
        """
        with one_thread():
            problem = self.problem
            objective = problem.objective(**params)
            weights = entry_weights(problem.Y, problem.weights)
            known = np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
            scores = np.broadcast_to((weights * problem.Y).sum(axis=0) / known, problem.Y.shape).copy()
            residual = objective.loss.gradient(problem.Y, scores, problem.weights)
            residual -= weights * (residual.sum(axis=0) / known)
            return float(gram_singular_values(objective.design.adjoint(residual))[-1])
