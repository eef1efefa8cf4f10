"""Solutions along a grid of parameters, their metrics in one fold, and a search from coarse to fine.

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
        """Return weights over a design of the same rows, and the scores, perhaps without a copy."""
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
    """A grid point with its solution and the solution time.

    Points share the design of the weights, unless their ridges differ and the intercept has a
    penalty of its own.
    """

    params: dict[str, Any]
    result: SolverResult
    design: Design
    seconds: float


def solve_grid(
    problem: ConvexProblem, axes: Grid, tol: float = 1e-4, known: Solutions | None = None
) -> Iterator[SolvedPoint]:
    """Solve the grid points that are not in `known`, and yield each solution.

    The first axis changes slowest. Each solve starts from the best of its solved neighbours and of
    their extrapolations. The parameters of the problem hold for all points, except those in `axes`.
    The solver stops when the next step is expected to gain less than the share `tol` of the
    objective, or the last step gained less. `known` has solutions of this problem on
    other grids with the same axis names. These points are neither solved nor yielded; they only
    serve as starting points. New solutions are added.
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

    `solved` has the solutions by indices of grid points, and `design` the coordinates of the
    weights. A neighbour ahead exists if another grid had it. An extrapolation needs no evaluation,
    because scores are linear in the weights. The arrays may belong to a solution and must not be
    changed.
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
    """Return the weights and scores with the smallest objective, or (None, None), without a copy."""
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
    """A named set of metrics and scorers; None means the six metrics of the paper.

    A name is that of a metric of rbrl, or else that of a scorer of scikit-learn. The convention of
    the metrics is "paper", "mulan" or "sklearn".
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
    """Return the scorers or metrics by name, from any value of the parameter `scoring`."""
    if isinstance(scoring, str) or callable(scoring):  # metrics are callable
        scoring = [scoring]
    elif scoring is None:
        scoring = PAPER_METRICS
    if not isinstance(scoring, Mapping):
        scoring = {_scorer_name(scorer): scorer for scorer in scoring}
    return {name: _find_scorer(scorer) for name, scorer in scoring.items()}


def _scorer_name(scorer: Scorer) -> str:
    """Return the name of a scorer in the table of results."""
    if isinstance(scorer, str):
        return scorer
    return scorer.name if isinstance(scorer, Metric) else getattr(scorer, "__name__", "score")


def _find_scorer(scorer: Scorer) -> Any:
    """Return the metric or the scorer with a name; return anything else unchanged."""
    if not isinstance(scorer, str):
        return scorer
    return METRICS[scorer] if scorer in METRICS else get_scorer(scorer)


class SearchData:
    """Checked rows and labels of a search, with the features and targets as given.

    The weights are those of rows or entries, or None. `signed` and `truth` (n_samples, n_columns)
    are the targets in {-1, +1} for models, and in 0/1 for metrics. Both are NaN where a label is
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
    """Training rows and test rows of a search, and the solutions so far."""

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
        """Return the threshold of a solved model: a number, or one for each label, perhaps learned."""
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
        r"""Compute the weight of the nuclear norm above which nearly all weights except the intercepts are 0.

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


class Stage(NamedTuple):
    """A grid to try in one stage of a search; points of earlier stages are not tried again.

    `n_later` is the number of points of later stages, as far as it is known. After a `final` stage,
    no other can follow.
    """

    axes: Grid
    n_later: int = 0
    final: bool = False


class Best(NamedTuple):
    """The best point of all stages so far, after breaking ties, and all points with its value."""

    point: dict[str, Any]
    ties: list[dict[str, Any]]


@dataclass(frozen=True)
class CoarseToFineSettings:
    """Values that :func:`coarse_to_fine` tries.

    The first stage has one weight of the ranking term and one of the nuclear norm, and ridges that
    are multiples of the ridge "auto". The second stage has several weights of the ranking term. In
    the third stage the best ridge is also divided by `weaker_ridge`, since a weaker ridge needs a
    stronger nuclear norm, whose weights are shares of the reference. A step is the factor between a
    best value at an edge and the next value beyond it, of which there are at most `max_steps`.
    Below its range the nuclear norm has no effect, and above it only the intercepts are left.
    """

    ridge_multiples: tuple[float, ...] = (3.0, 1.0, 0.3, 0.1)
    ranking: float = 1.0
    nuclear: float = 0.1
    rankings: tuple[float, ...] = (0.1, 1.0, 10.0)
    weaker_ridge: float = 3.0
    nuclear_shares: tuple[float, ...] = (0.03, 0.1)
    ridge_step: float = 3.0
    ranking_step: float = 10.0
    nuclear_step: float = 3.0
    max_steps: int = 3
    nuclear_range: tuple[float, float] = (0.01, 1.0)


SETTINGS = CoarseToFineSettings()


def coarse_to_fine(
    search: Callable[[Stage], Best], ridge: float, reference: Callable[[dict[str, Any]], float],
    ranked: bool = True,
) -> None:  # fmt: skip
    """Search over the ridge, over the ranking term, and over ridge and nuclear norm.

    After each stage, if all best points lie at an edge of an axis, the axis is extended beyond the
    edge, one point at a time. There are eleven points, or ten if the weaker ridge was tried before,
    and the points beyond edges. The ridge is "auto"; the ridges of the first stage are multiples of
    it. `search` tries a stage and returns the best point so far. `reference` returns the reference
    weight of the nuclear norm at a point. A single label has no ranking term, and no second stage.
    """
    s = SETTINGS
    # One point of the second stage is in the first, and one point of the third stage in the second.
    n_third = 2 * (1 + len(s.nuclear_shares)) - 1
    n_second = len(s.rankings) - 1 if ranked else 0
    tried = [multiple * ridge for multiple in s.ridge_multiples]
    first = {"ridge": list(tried), "ranking": [s.ranking], "nuclear": [s.nuclear]}
    best = search(Stage(first, n_second + n_third))
    best = _beyond_edges(search, "ridge", tried, best, s.ridge_step, n_later=n_second + n_third)
    if ranked:
        best = search(Stage(_around(best.point, ranking=s.rankings), n_third))
        rankings = list(s.rankings)
        best = _beyond_edges(search, "ranking", rankings, best, s.ranking_step, n_later=n_third)
    largest = reference(best.point)
    strong = best.point["ridge"]
    weak = strong / s.weaker_ridge
    # A ridge that differs from one tried before only by rounding is not tried again.
    ridges = [strong, next((value for value in tried if math.isclose(value, weak)), weak)]
    nuclears = sorted({s.nuclear, *(share * largest for share in s.nuclear_shares)})
    best = search(Stage(_around(best.point, ridge=ridges, nuclear=nuclears)))
    tried += ridges
    least, most = (share * largest for share in s.nuclear_range)
    best = _beyond_edges(search, "nuclear", nuclears, best, s.nuclear_step, least, most)
    _beyond_edges(search, "ridge", tried, best, s.ridge_step)


def _around(point: dict[str, Any], **axes: Iterable[float]) -> Grid:
    """Return the grid of these axes through a point; other parameters keep the value of the point."""
    return {name: list(axes.get(name, [value])) for name, value in point.items()}


def _beyond_edges(
    search: Callable[[Stage], Best], name: str, tried: list[float], best: Best, step: float,
    least: float = 0.0, most: float = math.inf, n_later: int = 0,
) -> Best:  # fmt: skip
    """Try further values of one axis while all best points are at an edge; return the best point.

    At most `max_steps` values are tried, each between `least` and `most`. They are appended to
    `tried`, which has the values of the axis so far. `step` is above 1.
    """
    for _ in range(SETTINGS.max_steps):
        value = best.point[name]
        is_extreme = value in (min(tried), max(tried)) and all(point[name] == value for point in best.ties)
        further = value * step if value == max(tried) else value / step
        if not is_extreme or not least <= further <= most or further == value:
            break
        best = search(Stage(_around(best.point, **{name: [value, further]}), n_later))
        tried.append(further)
    return best
