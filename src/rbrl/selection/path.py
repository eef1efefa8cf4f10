"""A grid of models of one objective, solved from neighbour to neighbour.

A search needs no more than to tell models apart: a model is done when a step is not worth its evaluation.
"""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from rbrl._common.typing import FloatArray
from rbrl.estimators.convex_problem import ConvexProblem
from rbrl.problem import Design, Objective
from rbrl.problem.design import in_single_precision
from rbrl.selection.choose import Grid
from rbrl.solvers import Descent, SolverResult

# How far along a grid line the last two solutions are extrapolated. The best combination of all neighbours, by Newton's
# method on its coefficients, saved 3 to 12 % of the evaluations and no time.
EXTRAPOLATIONS = (0.5, 1.0)
# Steps of a model in a search. The few that take more are corners of a grid with hardly any penalty: on education they
# took up to two fifths of a search, and none of them was chosen.
MOST_STEPS = 100
# Single precision serves tolerances down to this one: objectives of emotions, yeast and enron were off by up to 2e-7 of
# themselves. Gaps were too small by up to 1e-8, or 2e-4 of themselves; a product in double precision, with which the lower
# bound would hold for sure, took 2 to 14 % of a search.
SINGLE = 1e-5


class Known(NamedTuple):
    """Weights over a design, and their scores; without a design the weights are the model's own coefficients."""

    weights: FloatArray
    scores: FloatArray
    design: Design | None

    def over(self, design: Design) -> tuple[FloatArray, FloatArray]:
        """The weights of the same scores over a design of the same rows with another column for the intercept."""
        if self.design is design:
            return self.weights, self.scores
        return design.weights(self.without_design().weights), self.scores

    def without_design(self) -> "Known":
        """The same, as coefficients: what is kept for later needs no decomposition beside it."""
        return self if self.design is None else Known(self.design.coefficients(self.weights), self.scores, None)


# What was solved over a problem, by the values of the parameters in the order of the axes.
KnownPoints: TypeAlias = dict[tuple[Any, ...], Known]


@dataclass
class Solved:
    """A grid point with its solution.

    Attributes
    ----------
    params : dict
    result : SolverResult
    design : Design
        That its weights are over. Points share it, unless the intercept has a penalty of its own and their ridges differ.
    seconds : float
        That it took.
    """

    params: dict[str, Any]
    result: SolverResult
    design: Design
    seconds: float


def solve_grid(
    problem: ConvexProblem, axes: Grid, tol: float = 1e-4, max_iter: int = MOST_STEPS, known: KnownPoints | None = None
) -> Iterator[Solved]:
    """Yield the solution of every point of a grid, in an order in which neighbours come first.

    Parameters
    ----------
    problem : ConvexProblem
        Of an estimator whose parameters other than those in `axes` hold for all points.
    axes : dict of str to sequence
        Parameter values, each in the order in which they are visited; the first axis changes slowest.
    tol : float, default=1e-4
        A model is done when the next step is expected to gain less than this share of its objective, or the last one did.
    max_iter : int, default=100
        Steps after which it is done in any case.
    known : dict, default=None
        What was solved over this problem on other grids with the same names of axes. These points are not solved again, and
        serve as neighbours; what is solved here is added.

    Yields
    ------
    Solved

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.selection import solve_grid
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
    of_problem: Design | None = None
    places = list(itertools.product(*(range(len(values)) for values in axes.values())))
    solved = {index: known[_point(axes, index)] for index in places if _point(axes, index) in known} if known else {}
    for index in places:
        if index in solved:
            continue
        params, started = dict(zip(axes, _point(axes, index))), time.perf_counter()
        of_point = problem.design_of(**params)
        if of_point is not of_problem:
            of_problem = of_point
            design = in_single_precision(of_problem) if tol >= SINGLE else of_problem
        objective = problem.objective(design, **params)
        start, scores = _best_start(objective, _candidates(solved, index, of_problem))
        result = Descent().solve(objective, start, tol, max_iter, scores)
        solved[index] = Known(result.weights, result.scores, of_problem)
        if known is not None:
            known[_point(axes, index)] = solved[index].without_design()
        # No later point looks back further than two steps along the slowest axis.
        solved.pop((index[0] - 3, *index[1:]), None)
        yield Solved(params, result, of_problem, time.perf_counter() - started)


def _point(axes: Grid, index: tuple[int, ...]) -> tuple[Any, ...]:
    """The values of the parameters at a place of the grid."""
    return tuple(values[i] for values, i in zip(axes.values(), index))


def _candidates(
    solved: Mapping[tuple[int, ...], Known], index: tuple[int, ...], design: Design
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Weights and scores of the neighbours of `index`, and extrapolations of those behind, free because scores are linear.

    There are neighbours ahead where another grid had them.
    """
    for axis, place in enumerate(index):
        near, far, ahead = (solved.get((*index[:axis], place + steps, *index[axis + 1 :])) for steps in (-1, -2, 1))
        if ahead is not None:
            yield ahead.over(design)
        if near is not None:
            W, F = near.over(design)
            yield W, F
            if far is not None:
                older, theirs = far.over(design)
                yield from ((W + s * (W - older), F + s * (F - theirs)) for s in EXTRAPOLATIONS)


def _best_start(
    objective: Objective, candidates: Iterable[tuple[FloatArray, FloatArray]]
) -> tuple[FloatArray, FloatArray] | tuple[None, None]:
    """The candidate with the smallest objective; (None, None) if there is none."""
    return min(candidates, key=lambda known: objective.value_at(*known), default=(None, None))
