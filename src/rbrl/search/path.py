"""Many models of one design, each started from its solved neighbours in the grid: one fold of a search."""

import itertools
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rbrl._common.threads import one_thread
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix
from rbrl.decision import relevant_labels
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.estimators.convex_problem import ConvexProblem
from rbrl.exceptions import ConvergenceWarning
from rbrl.problem import Objective
from rbrl.search.choose import Grid, Scoring, Table
from rbrl.solvers import QuasiNewton, SolverResult
from rbrl.targets import SignedTargets

# How far along a grid line the last two solutions are extrapolated.
EXTRAPOLATIONS = (0.5, 1.0)
# Weights and their scores.
Known: TypeAlias = tuple[FloatArray, FloatArray]
# Steps of a model in a search. The few that take more are corners of a grid with hardly any penalty: on education they
# took up to two fifths of a search, and none of them was chosen.
MOST_STEPS = 100


@dataclass
class Solved:
    """A grid point with its solution."""

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


def search_fold(
    estimator: ObjectiveClassifier, axes: Grid, data: "SearchData", train: IntArray, test: IntArray, scoring: Scoring,
    tol: float,
) -> Table:  # fmt: skip
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
