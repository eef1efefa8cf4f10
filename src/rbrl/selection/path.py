"""Solutions along a grid of parameters, and their metrics in one fold.

The models of a grid share an objective, and each is solved from the solutions of its neighbours. A
search only compares models. It therefore stops the solution of a model early, as soon as a step is
expected to gain less than a share of the objective.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.metrics import get_scorer

from rbrl._common.bases import BaseEstimator, ClassifierMixin
from rbrl._common.environment import one_thread
from rbrl._common.linalg import gram_singular_values
from rbrl._common.typing import Array, BoolArray, FloatArray, IntArray, Matrix, MatrixLike
from rbrl.decision import empty_share, filling_pays, relevant_labels
from rbrl.estimators.convex import ConvexClassifier
from rbrl.estimators.convex_problem import ConvexProblem
from rbrl.estimators.entries import apply_label_mask, check_entry_weights
from rbrl.estimators.training_scores import TrainingRows, learn_threshold
from rbrl.losses.weights import entry_weights
from rbrl.metrics import METRICS, PAPER_METRICS, Metric
from rbrl.problem import Design, Objective, in_single_precision
from rbrl.solvers import Descent, SolverResult
from rbrl.targets import SignedTargets

# A metric of rbrl or a scorer of scikit-learn, or the name of one.
Scorer: TypeAlias = str | Metric | Callable[..., float]
Scorers: TypeAlias = Scorer | Iterable[Scorer] | Mapping[str, Scorer] | None
# Values of parameters, and results at their combinations.
Grid: TypeAlias = Mapping[str, Sequence[Any]]
Table: TypeAlias = list[dict[str, Any]]

# Steps by which the line through the last two solutions along an axis is extrapolated.
EXTRAPOLATIONS = (0.5, 1.0)
# Maximal number of steps of a model. The few models that need more steps have hardly any penalty, and are not chosen.
MAX_PATH_STEPS = 100
# Smallest tolerance for which products in single precision are accurate enough.
SINGLE_PRECISION_TOL = 1e-5


class Solution(NamedTuple):
    """Weights over a design and their scores; without a design, the weights are coefficients."""

    weights: FloatArray
    scores: FloatArray
    design: Design | None

    def over(self, design: Design) -> tuple[FloatArray, FloatArray]:
        """Return weights over a design of the same rows, and the scores."""
        if self.design is design:
            return self.weights, self.scores
        return design.weights(self.without_design().weights), self.scores

    def without_design(self) -> "Solution":
        """Return the solution with coefficients instead of weights, so that no design is kept."""
        return self if self.design is None else Solution(self.design.coefficients(self.weights), self.scores, None)


# Solutions by the values of the parameters, in the order of the axes.
Solutions: TypeAlias = dict[tuple[Any, ...], Solution]


@dataclass
class SolvedPoint:
    """A grid point with its solution.

    Attributes
    ----------
    params : dict
        Parameters of the point.
    result : SolverResult
        Result of the solver.
    design : Design
        Design of the weights. Points share it, unless their ridges differ and the intercept has a
        penalty of its own.
    seconds : float
        Solution time.
    """

    params: dict[str, Any]
    result: SolverResult
    design: Design
    seconds: float


def solve_grid(
    problem: ConvexProblem, axes: Grid, tol: float = 1e-4, known: Solutions | None = None
) -> Iterator[SolvedPoint]:
    """Yield the solution of every grid point, in an order in which neighbours come first.

    Parameters
    ----------
    problem : ConvexProblem
        Problem of an estimator. Its parameters hold for all points, except those in `axes`.
    axes : dict of str to sequence
        Values of the parameters, in the order in which they are visited; the first axis changes slowest.
    tol : float, default=1e-4
        Tolerance. The solver stops when the next step is expected to gain less than this share of
        the objective, or the last step gained less.
    known : dict, default=None
        Solutions of this problem on other grids with the same axis names. These points are not
        solved again, but serve as neighbours. New solutions are added.

    Yields
    ------
    SolvedPoint

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
            f"A search along a path finds optima of any rank. Got max_rank={problem.model.max_rank}; search with "
            "sklearn.model_selection.GridSearchCV, or set max_rank=None."
        )
    exact: Design | None = None
    indices = list(itertools.product(*(range(len(values)) for values in axes.values())))
    points = {index: tuple(values[i] for values, i in zip(axes.values(), index)) for index in indices}
    solved = {index: known[point] for index, point in points.items() if point in known} if known else {}
    for index in indices:
        if index in solved:
            continue
        started = time.perf_counter()
        params = dict(zip(axes, points[index]))
        point_design = problem.design_of(**params)
        if point_design is not exact:
            exact = point_design
            design = in_single_precision(exact) if tol >= SINGLE_PRECISION_TOL else exact
        objective = problem.objective(design, **params)
        start, scores = _best_start(objective, _candidates(solved, index, exact))
        result = Descent().solve(objective, start, tol, MAX_PATH_STEPS, scores)
        solved[index] = Solution(result.weights, result.scores, exact)
        if known is not None:
            known[points[index]] = solved[index].without_design()
        # No later point needs a solution further back than two steps along the slowest axis.
        solved.pop((index[0] - 3, *index[1:]), None)
        yield SolvedPoint(params, result, exact, time.perf_counter() - started)


def _candidates(
    solved: Mapping[tuple[int, ...], Solution], index: tuple[int, ...], design: Design
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield weights and scores of the neighbours of a grid point, and extrapolations along the axes.

    A neighbour ahead exists if another grid had it. An extrapolation needs no evaluation, because
    scores are linear in the weights.
    """
    for axis, place in enumerate(index):
        near, far, ahead = (solved.get((*index[:axis], place + steps, *index[axis + 1 :])) for steps in (-1, -2, 1))
        if ahead is not None:
            yield ahead.over(design)
        if near is not None:
            W, F = near.over(design)
            yield W, F
            if far is not None:
                W_far, F_far = far.over(design)
                yield from ((W + s * (W - W_far), F + s * (F - F_far)) for s in EXTRAPOLATIONS)


def _best_start(
    objective: Objective, candidates: Iterable[tuple[FloatArray, FloatArray]]
) -> tuple[FloatArray, FloatArray] | tuple[None, None]:
    """Return the candidate with the smallest objective, or (None, None) without candidates."""
    return min(candidates, key=lambda candidate: objective.value_at(*candidate), default=(None, None))


class Prediction(ClassifierMixin, BaseEstimator):
    """A fitted classifier with stored predictions for held-out rows, for scikit-learn scorers."""

    def __init__(self, scores: FloatArray, relevant: BoolArray, targets: SignedTargets) -> None:
        self.scores = scores
        self.relevant = relevant
        self.targets = targets
        self.classes_ = targets.sklearn_classes()

    def decision_function(self, X: Any) -> FloatArray:
        """Return the stored scores."""
        return self.scores.ravel() if self.targets.kind == "binary" else self.scores

    def predict(self, X: Any) -> Any:
        """Return the stored labels."""
        return self.targets.decode(self.relevant, self.scores)


class Scoring:
    """A named set of metrics and scorers.

    Parameters
    ----------
    scoring : None, str, Metric, callable, or a list or dict of these
        Metrics and scorers; None means the six metrics of the paper. A name is that of a metric of
        rbrl, or else that of a scorer of scikit-learn.
    convention : {"paper", "sklearn"}
        Convention of the metrics.

    Examples
    --------
    >>> list(Scoring(["hamming_loss", "f1_macro"]).scorers)
    ['hamming_loss', 'f1_macro']
    """

    def __init__(self, scoring: Scorers = None, convention: str = "paper") -> None:
        self.convention = convention
        self.scorers = _scorers_by_name(scoring)

    def greater_is_better(self, name: str) -> bool:
        """Return the direction of a metric; a larger value of a scorer is always better."""
        return not isinstance(self.scorers[name], Metric) or self.scorers[name].greater_is_better

    def __call__(
        self, X: Any, y: Any, Y: Array, scores: FloatArray, relevant: BoolArray, targets: SignedTargets
    ) -> dict[str, float]:
        """Return the values by name, for held-out rows X with targets y, as given, and Y in 0/1.

        Y has floats, with NaN for missing labels, if labels are missing.
        """
        prediction = Prediction(scores, relevant, targets)
        labels = relevant.astype(np.int8)
        missing = "ignore" if Y.dtype.kind == "f" else None
        values = {}
        for name, scorer in self.scorers.items():
            if isinstance(scorer, Metric):
                values[name] = scorer.value(Y, labels, scores, self.convention, missing)
            else:
                values[name] = float(scorer(prediction, X, y))
        return values


def _scorers_by_name(scoring: Any) -> dict[str, Any]:
    if isinstance(scoring, str) or callable(scoring):  # metrics are callable
        scoring = [scoring]
    elif scoring is None:
        scoring = PAPER_METRICS
    if not isinstance(scoring, Mapping):
        scoring = {_scorer_name(scorer): scorer for scorer in scoring}
    return {name: _find_scorer(scorer) for name, scorer in scoring.items()}


def _scorer_name(scorer: Scorer) -> str:
    if isinstance(scorer, str):
        return scorer
    return scorer.name if isinstance(scorer, Metric) else getattr(scorer, "__name__", "score")


def _find_scorer(scorer: Scorer) -> Any:
    """Return the metric or the scorer with a name; return anything else unchanged."""
    if not isinstance(scorer, str):
        return scorer
    return METRICS[scorer] if scorer in METRICS else get_scorer(scorer)


class SearchData:
    """Checked rows and labels of a search.

    Attributes
    ----------
    X, y
        Features and targets, as given.
    weights : array (n_samples,) or (n_samples, n_labels), or None
        Weights of the rows or entries.
    targets : SignedTargets
        Coding of the targets.
    signed, truth : arrays (n_samples, n_columns)
        Targets in {-1, +1} for models, and in 0/1 for metrics. Both are NaN where a label is
        missing, is masked, or has weight 0 in a matrix of weights.
    """

    def __init__(
        self, X: Matrix, y: Array, sample_weight: MatrixLike | None = None, label_mask: MatrixLike | None = None
    ) -> None:
        self.X = X
        self.y = y
        self.targets = SignedTargets().fit(y)
        Y = apply_label_mask(self.targets.encode(y), label_mask)
        self.weights = check_entry_weights(sample_weight, Y, self.targets.is_matrix)
        if self.weights is not None and self.weights.ndim == 2:
            Y = np.where(self.weights > 0, Y, np.int8(0))
        self.signed, self.truth = (M if Y.all() else np.where(Y == 0, np.nan, M) for M in (Y, Y > 0))


class Fold:
    """Training rows and test rows of a search, and the solutions so far.

    Parameters
    ----------
    estimator : ConvexClassifier
    data : SearchData
    train, test : arrays of row indices
    scoring : Scoring
    tol : float
        Tolerance of :func:`solve_grid`.

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
        self, estimator: ConvexClassifier, data: SearchData, train: IntArray, test: IntArray, scoring: Scoring, tol: float
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.scoring = scoring
        self.tol = tol
        # A kernel matrix has a column for each training row.
        X = data.X[:, train] if estimator.kernel == "precomputed" else data.X
        self.X_train = X[train]
        self.X_test = X[test]
        self.Y_train = data.signed[train]
        self.Y_test = data.truth[test]
        self.y_test = data.y[test]
        self.targets = data.targets
        self.weights = None if data.weights is None else data.weights[train]
        # A row whose entries all have weight 0 has no known label.
        row_weights = self.weights if self.weights is None or self.weights.ndim == 1 else None
        non_empty = estimator.non_empty
        if non_empty == "auto":
            non_empty = filling_pays(empty_share(self.Y_train, row_weights))
        self.never_empty = data.targets.is_matrix and bool(non_empty)
        self._known: Solutions = {}

    @cached_property
    def problem(self) -> ConvexProblem:
        """Problem of the training rows."""
        return self.estimator.problem(self.X_train, self.Y_train, self.weights)

    def search(self, axes: Grid, final: bool = False) -> Iterator[dict[str, Any]]:
        """Yield a row with parameters, metrics, gap, evaluations and seconds of every new grid point.

        The axes are those of :func:`solve_grid`, with the same names in every call. Solutions are
        kept for the next call, unless the call is the `final` one.
        """
        # If the intercept has a ridge of its own, each value of the ridge has a design of its own.
        shared = [name for name in axes if name != "ridge" or self.estimator.intercept_ridge in (None, "ridge")]
        # One thread gives the same digits with any number of processes.
        with one_thread():
            problem = self.problem
            problem.form.n_problems = math.prod(len(axes[name]) for name in shared)
            design = None
            for solved in solve_grid(problem, axes, self.tol, known=None if final else self._known):
                if design is not solved.design:
                    design = solved.design
                    test_matrix = problem.matrix_of_rows(self.X_test, design)
                scores = test_matrix @ solved.result.weights - self._threshold(solved)
                relevant = relevant_labels(scores, self.never_empty)
                values = self.scoring(self.X_test, self.y_test, self.Y_test, scores, relevant, self.targets)
                solver_values = {"gap": solved.result.gap, "evaluations": solved.result.evaluations}
                yield {"params": solved.params, **values, **solver_values, "seconds": solved.seconds}

    def _threshold(self, solved: SolvedPoint) -> float | FloatArray:
        """Return the threshold of a solved model: a number, or learned from the training scores."""
        params = self.estimator.get_params(deep=False) | solved.params
        metric = params["threshold"]
        if not isinstance(metric, str):
            return float(metric)
        problem = self.problem
        design = solved.design
        loss = problem.objective(design, **solved.params).loss
        rows = TrainingRows(problem.Y, design.scores(solved.result.weights), problem.weights, problem.counted)
        ridge = problem.ridge if params["ridge"] == "auto" else float(params["ridge"])
        return learn_threshold(metric, loss, rows, problem.count_parameters(design, ridge), self.never_empty)

    def nuclear_reference(self, params: dict[str, Any]) -> float:
        r"""Compute the weight of the nuclear norm above which little more than the intercepts is left.

        It is the spectral norm of the gradient of the loss with respect to the weights. The gradient
        is taken at the mean scores :math:`2 \bar y_j - 1` of the labels. The mean over rows is
        subtracted from the derivatives with respect to the scores, because free intercepts would
        remove it. The parameters are those of the model, such as the weight of the ranking term.
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
