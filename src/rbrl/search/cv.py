"""Grid search over models of one objective, many times faster than fitting each point alone.

All models of a fold have one design, and each starts from its solved neighbours in the grid.
"""

import itertools
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.validation import check_is_fitted, validate_data

from rbrl._common.bases import BaseEstimator, ClassifierMixin
from rbrl._common.checks import check_number, check_row_weights
from rbrl._common.threads import one_thread
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix, MatrixLike
from rbrl.decision import relevant_labels
from rbrl.estimators.base import FLOATS
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.estimators.convex_problem import ConvexProblem
from rbrl.estimators.rbrl import RBRLClassifier
from rbrl.exceptions import ConvergenceWarning
from rbrl.problem import Objective
from rbrl.registry import WEIGHTS
from rbrl.search.choose import Grid, Scorers, Scoring, Table, best_point, results_table
from rbrl.solvers import QuasiNewton, SolverResult
from rbrl.targets import SignedTargets, check_not_label_sets

# 10^-4, ..., 10^2: what the paper searched for each of the three weights.
PAPER_GRID = WEIGHTS
# How far along a grid line the last two solutions are extrapolated.
EXTRAPOLATIONS = (0.5, 1.0)
# Weights and their scores.
Known: TypeAlias = tuple[FloatArray, FloatArray]
# Steps of a model in a search. The few that take more are corners of a grid with hardly any penalty: on education they
# took up to two fifths of a search, and none of them was chosen.
MOST_STEPS = 100


@dataclass
class Solved:
    """A grid point with its solution.

    Attributes
    ----------
    params : dict
    result : SolverResult
    seconds : float
        That it took.
    """

    params: dict[str, Any]
    result: SolverResult
    seconds: float


def solve_grid(problem: ConvexProblem, axes: Grid, tol: float = 1e-4, max_iter: int = MOST_STEPS) -> Iterator[Solved]:
    """Yield the solution of every point of a grid, in an order in which neighbours come first.

    Parameters
    ----------
    problem : ConvexProblem
        Of an estimator whose parameters other than those in `axes` hold for all points.
    axes : dict of str to sequence
        Parameter values, each in the order in which they are visited; the first axis changes slowest.
    tol : float, default=1e-4
        A model is done when a step gains less than this share of its objective.
    max_iter : int, default=100
        Steps after which it is done in any case.

    Yields
    ------
    Solved

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> problem = RBRLClassifier().problem(X, Y)
    >>> [solved.params for solved in solve_grid(problem, {"ridge": [10, 1], "nuclear": [0.1]})]
    [{'ridge': 10, 'nuclear': 0.1}, {'ridge': 1, 'nuclear': 0.1}]
    """
    if problem.model.max_rank is not None:
        raise ValueError(
            f"A search along a path finds optima, of any rank. Got max_rank={problem.model.max_rank}; search with "
            "sklearn.model_selection.GridSearchCV, or set max_rank=None."
        )
    solved: dict[tuple[int, ...], Known] = {}
    solver = QuasiNewton(stop="progress")
    for index in itertools.product(*(range(len(values)) for values in axes.values())):
        params = {name: axes[name][i] for name, i in zip(axes, index)}
        started = time.perf_counter()
        objective = problem.objective(**params)
        start, scores = _best_start(objective, _candidates(solved, index))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = solver.solve(objective, start=start, scores=scores, tol=tol, max_iter=max_iter)
        solved[index] = result.weights, result.scores
        # No later point looks back further than two steps along the slowest axis.
        solved.pop((index[0] - 3, *index[1:]), None)
        yield Solved(params, result, time.perf_counter() - started)


def _candidates(solved: Mapping[tuple[int, ...], Known], index: tuple[int, ...]) -> Iterator[Known]:
    """Weights and scores of the neighbours behind `index`, and their extrapolations, free because scores are linear."""
    for axis, place in enumerate(index):
        near, far = (solved.get((*index[:axis], place - steps, *index[axis + 1 :])) for steps in (1, 2))
        if near is not None:
            yield near
            if far is not None:
                (W, F), (older, theirs) = near, far
                yield from ((W + s * (W - older), F + s * (F - theirs)) for s in EXTRAPOLATIONS)


def _best_start(objective: Objective, candidates: Iterable[Known]) -> Known | tuple[None, None]:
    """The candidate with the smallest objective; (None, None) if there is none."""
    return min(candidates, key=lambda known: objective.value_at(*known), default=(None, None))


@dataclass
class SearchData:
    """Checked rows and labels of a search.

    Attributes
    ----------
    X : array or CSR matrix (n_samples, n_features)
    y : array
        The targets as they were given.
    weights : array (n_samples,) or None
    targets : SignedTargets
        The coding of the targets.
    signed : array (n_samples, n_columns)
        The targets in {-1, +1}.
    """

    X: Matrix
    y: Array
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        self.targets = SignedTargets().fit(self.y)
        self.signed = self.targets.encode(self.y)


def search_fold(
    estimator: ObjectiveClassifier, axes: Grid, data: SearchData, train: IntArray, test: IntArray, scoring: Scoring,
    tol: float,
) -> Table:  # fmt: skip
    """Rows of a search table: parameters, metrics on `test`, gap, evaluations and seconds of every grid point.

    Parameters
    ----------
    estimator : ObjectiveClassifier
    axes : dict of str to sequence
        In the order of :func:`solve_grid`.
    data : SearchData
    train, test : arrays of row indices
    scoring : Scoring
    tol : float
        A model is done when a step gains less than this share of its objective.

    Returns
    -------
    list of dict
    """
    # One thread whatever runs beside it, so that the same search gives the same digits on any number of processes.
    with one_thread():
        # Of a kernel matrix, the values to the training rows only.
        values = data.X[:, train] if estimator.kernel == "precomputed" else data.X
        X_train, X_test = values[train], values[test]
        weights = None if data.weights is None else data.weights[train]
        problem = estimator.problem(X_train, data.signed[train], weights)
        held_out = problem.score_matrix(X_test)
        never_empty = estimator.non_empty and data.targets.is_matrix
        table = []
        for solved in solve_grid(problem, axes, tol):
            scores = held_out @ solved.result.weights
            relevant = relevant_labels(scores, never_empty)
            values = scoring(X_test, data.y[test], data.signed[test] > 0, scores, relevant, data.targets)
            row = {"gap": solved.result.gap, "evaluations": solved.result.evaluations, "seconds": solved.seconds}
            table.append({"params": solved.params, **values, **row})
    return table


class PathSearchCV(ClassifierMixin, BaseEstimator):
    """Choose the parameters of a model with an objective by cross-validation.

    The design of each fold (its kernel, its decomposition) is computed once; every grid point starts from its solved
    neighbours and stops when a step gains less than `search_tol`; the best point is fitted again to the estimator's own
    tolerance.

    Parameters
    ----------
    estimator : ObjectiveClassifier
        Such as :class:`rbrl.RBRLClassifier`.
    param_grid : dict of str to list
        Values of parameters that change the objective but not the design: weights of losses and penalties. Each list is
        visited in the given order; put strong ridges first.
    cv : int or splitter, default=5
        An int means shuffled folds.
    scoring : None, str, Metric, callable, or a list or dict of these, default=None
        None means the paper's six metrics. Ours are recorded as they are, losses not negated.
    refit : str, default=None
        The metric that chooses. None means average precision where labels can be ranked, else Hamming loss.
    search_tol : float, default=1e-4
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, default=None
        Folds in parallel; the answer is the same for any number.
    verbose : int, default=0
        1 writes a line per fold, with the time left, to standard error.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As in scikit-learn, with gap and evaluations of every point and fold.
    best_params_, best_index_, best_score_, best_estimator_

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import BRLClassifier
    >>> from rbrl.search import PathSearchCV
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> search = PathSearchCV(BRLClassifier(), {"ridge": [100, 10, 1]}, cv=3).fit(X, Y)
    >>> list(search.best_params_), search.cv_results_["mean_test_average_precision"].shape
    (['ridge'], (3,))
    """

    cv_results_: dict[str, Any]
    best_params_: dict[str, Any]
    best_index_: int
    best_score_: float
    best_estimator_: ObjectiveClassifier
    classes_: Array
    targets_: SignedTargets

    def __init__(
        self, estimator: ObjectiveClassifier | None, param_grid: Grid | None, *, cv: Any = 5, scoring: Scorers = None,
        refit: str | None = None, search_tol: float = 1e-4, random_state: int = 0, n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        self.estimator, self.param_grid = estimator, param_grid
        self.cv, self.scoring, self.refit = cv, scoring, refit
        self.search_tol, self.random_state = search_tol, random_state
        self.n_jobs, self.verbose = n_jobs, verbose

    def fit(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Search, then fit the best point to all rows.

        Parameters
        ----------
        X, y, sample_weight
            As for the estimator.

        Returns
        -------
        self
        """
        estimator = clone(self._estimator())
        check_number(type(self).__name__, "search_tol", self.search_tol, strict=True)
        check_not_label_sets(y)
        X, y = validate_data(self, X, y, multi_output=True, accept_sparse="csr", dtype=FLOATS)
        weights = None if sample_weight is None else check_row_weights(sample_weight, X.shape[0])
        data = SearchData(X, y, weights)
        scoring = Scoring(self.scoring)
        metric = self._deciding(scoring, data)
        self.cv_results_ = results_table(self._search(estimator, data, scoring), scoring)
        self.best_index_ = best_point(self.cv_results_, scoring, metric)
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_[f"mean_test_{metric}"][self.best_index_])
        self.best_estimator_ = estimator.set_params(**self.best_params_).fit(X, y, sample_weight)
        self.classes_, self.targets_ = data.targets.classes_, data.targets
        return self

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Scores by the best estimator.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features)

        Returns
        -------
        array (n_samples, n_labels); (n_samples,) for a binary 1-D target
        """
        X = self._checked_rows(X)
        return self.best_estimator_.decision_function(X)

    def predict(self, X: MatrixLike) -> Any:
        """Labels by the best estimator.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features)

        Returns
        -------
        array or sparse matrix, in the coding that `fit` received
        """
        X = self._checked_rows(X)
        return self.best_estimator_.predict(X)

    def _estimator(self) -> Any:
        return self.estimator

    def _axes(self) -> dict[str, list[Any]]:
        return {name: list(values) for name, values in (self.param_grid or {}).items()}

    def _checked_rows(self, X: MatrixLike) -> Matrix:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)

    def _deciding(self, scoring: Scoring, data: SearchData) -> str:
        """The metric that chooses, checked."""
        default = "average_precision" if data.signed.shape[1] > 1 else "hamming_loss"
        metric = self.refit or (default if default in scoring.scorers else next(iter(scoring.scorers)))
        if metric not in scoring.scorers:
            raise ValueError(
                f"refit must be one of the metrics searched, {list(scoring.scorers)}. Got {metric!r} instead."
            )
        return metric

    def _search(self, estimator: ObjectiveClassifier, data: SearchData, scoring: Scoring) -> list[Table]:
        """Tables of all folds, in their order."""
        count = isinstance(self.cv, int | np.integer)
        cv = KFold(int(self.cv), shuffle=True, random_state=self.random_state) if count else self.cv
        folds = list(check_cv(cv, data.y, classifier=True).split(data.X, data.y))
        axes, started, tables = self._axes(), time.perf_counter(), []
        jobs = (delayed(search_fold)(estimator, axes, data, *fold, scoring, self.search_tol) for fold in folds)
        for table in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
            tables.append(table)
            if self.verbose:
                done, total, seconds = len(tables), len(folds), time.perf_counter() - started
                left = f"{seconds:.0f} s, about {seconds / done * (total - done):.0f} s left"
                sys.stderr.write(f"{type(self).__name__}: fold {done} of {total} done, {left}\n")
        return tables

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._estimator().__sklearn_tags__().input_tags
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


class RBRLClassifierCV(PathSearchCV):
    r"""RBRL with :math:`\lambda_1, \lambda_2, \lambda_3` chosen by cross-validation.

    All combinations are tried: 343 with the paper's grid, in each of five folds, in seconds to minutes.

    Parameters
    ----------
    ridges, rankings, nuclears : sequences of float, default=(1e-4, ..., 1e2)
        Values of :math:`\lambda_1, \lambda_2, \lambda_3`.
    estimator : RBRLClassifier, default=None
        The model, for every parameter but these three: kernel, decision rule, tolerance. None means the linear model.
    cv, scoring, refit, search_tol, random_state, n_jobs, verbose
        As for :class:`PathSearchCV`.

    Attributes
    ----------
    best_params_, best_index_, best_score_, best_estimator_, cv_results_
        As for :class:`PathSearchCV`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifierCV
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> search = RBRLClassifierCV(ridges=[1, 10, 100], rankings=[0, 1], nuclears=[0, 1], cv=3).fit(X, Y)
    >>> len(search.cv_results_["params"])
    12
    >>> search.predict(X[:2]).shape
    (2, 4)
    """

    best_estimator_: RBRLClassifier

    def __init__(
        self, ridges: Sequence[float] = PAPER_GRID, rankings: Sequence[float] = PAPER_GRID,
        nuclears: Sequence[float] = PAPER_GRID, *, estimator: RBRLClassifier | None = None, cv: Any = 5,
        scoring: Scorers = None, refit: str | None = None, search_tol: float = 1e-4, random_state: int = 0,
        n_jobs: int | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        self.ridges, self.rankings, self.nuclears, self.estimator = ridges, rankings, nuclears, estimator
        self.cv, self.scoring, self.refit = cv, scoring, refit
        self.search_tol, self.random_state = search_tol, random_state
        self.n_jobs, self.verbose = n_jobs, verbose

    def _estimator(self) -> Any:
        return RBRLClassifier() if self.estimator is None else self.estimator

    def _axes(self) -> dict[str, list[Any]]:
        """Strong ridges, weak ranking and weak nuclear norm first: the order in which neighbours help most."""
        given = {"ridge": self.ridges, "ranking": self.rankings, "nuclear": self.nuclears}
        axes = {name: np.unique(np.asarray(values, dtype=float)).tolist() for name, values in given.items()}
        return axes | {"ridge": axes["ridge"][::-1]}
