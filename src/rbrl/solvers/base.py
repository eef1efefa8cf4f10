"""The protocol and the result of every solver, the record of a run, and the message of a run that did not converge.

A solver returns its messages and does not warn, because its caller may still improve the result.
The estimators turn the messages that remain into warnings.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.problem.objective import Objective
from rbrl.solvers.certificate import lower_bound, relative_gap

# Largest gap that is rounding. A tolerance that is not larger asks for the most exact weights.
ROUNDING_GAP = 1e-15


@dataclass
class SolverResult:
    """Weights with a certificate.

    Attributes
    ----------
    weights : array or LowRankMatrix (n_columns, n_labels), or None
        Weights in the coordinates of the objective's design. None in a :class:`Solution` whose
        coefficients are the weights.
    objective : float
        Value of the objective at the weights.
    gap : float
        Rigorous upper bound on the relative distance of `objective` from the optimum.
    evaluations : float
        Number of evaluations. One evaluation is a product with the design and one with its
        transpose.
    n_iter : int
    converged : bool
        Whether the solver's own stopping rule was met.
    history : array
        Objective values, one per iteration.
    costs : array
        Number of evaluations after each iteration; empty if the solver does not record them.
    scores : array or LowRankMatrix (n_samples, n_labels), or None
        Scores of the weights, if the solver keeps them.
    dual_scores : array (n_samples, n_labels) or None
        Scores whose loss gradient gave the best lower bound. None means `scores`.
    messages : tuple of str
        Reasons why the stopping rule was not met, with the remedy; empty if it was met.
    gave_up : bool
        Whether the solver stopped because it expected that the iterations would not be enough.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> from rbrl.solvers import QuasiNewton
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> result = QuasiNewton().solve(objective)
    >>> result.weights.round(2).tolist(), result.converged, result.gap <= 1e-4
    ([[0.5]], True, True)
    """

    weights: Any
    objective: float
    gap: float
    evaluations: float
    n_iter: int
    converged: bool
    history: FloatArray = field(repr=False)
    costs: FloatArray = field(repr=False, default_factory=lambda: np.empty(0))
    scores: Any = field(repr=False, default=None)
    dual_scores: Any = field(repr=False, default=None)
    messages: tuple[str, ...] = ()
    gave_up: bool = False


# First weights of a solver (n_columns, n_labels); None lets the solver choose them.
Start = FloatArray | None


class Solver(Protocol):
    """Protocol of all solvers.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> from rbrl.solvers import APG, LowRank, QuasiNewton
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> [solver.solve(objective, tol=1e-6).weights.round(2).tolist() for solver in (APG(), LowRank(), QuasiNewton())]
    [[[0.5]], [[0.5]], [[0.5]]]
    """

    def solve(self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000) -> SolverResult:
        """Minimise an objective.

        Parameters
        ----------
        objective : Objective
        start : array (n_columns, n_labels), default=None
            First weights, in the coordinates of the design. They are not changed. None lets the
            solver choose them.
        tol : float, default=1e-4
            Largest certified relative gap at which the solver stops.
        max_iter : int, default=1000
            Largest number of iterations.

        Returns
        -------
        SolverResult
            If the stopping rule was not met, `converged` is False and `messages` has the reason.
        """


class Bound(NamedTuple):
    """A lower bound on the optimum, and the scores whose loss gradient gave it."""

    value: float = 0.0
    scores: Any = None


class Run:
    """Record of a minimisation: objective values with their costs, the current point, and the best lower bound.

    Parameters
    ----------
    objective : Objective
    tol : float
    max_iter : int

    Attributes
    ----------
    way : list of (value, evaluations)
        Objective value of each iteration, and the number of evaluations after it. The first entry
        has the number of evaluations before the first iteration.
    n_iter : int
        Number of iterations so far.
    now : point with a `value`, a `loss` and `scores`
        Current point.
    bound : Bound
        Best lower bound so far.
    stopped_by : str
        "callback" if `on_gap` of the objective returned True, "itself" if the solver has no further
        step to try, "forecast" if it expects not to reach the tolerance, and empty while it may
        continue.
    """

    # Number of iterations without descent after which the value no longer changes. With a tolerance
    # that is rounding, a run goes on until then, because the gap falls with the square of the
    # gradient: it is rounding long before the weights are exact.
    STANDSTILL_ITERATIONS: ClassVar[int] = 5

    now: Any

    def __init__(self, objective: Objective, tol: float, max_iter: int) -> None:
        self.objective = objective
        self.tol = tol
        self.max_iter = max_iter
        self.way = [(np.inf, objective.evaluations)]
        self.n_iter = 0
        self.bound = Bound()
        self.stopped_by = ""

    def note(self, value: float, evaluations: float | None = None) -> None:
        """Record the objective value of an iteration, and the number of evaluations after it.

        The default of `evaluations` is the number of evaluations so far. The caller certifies
        separately.
        """
        self.way.append((value, self.objective.evaluations if evaluations is None else evaluations))
        self.n_iter += 1

    def certify(self, W: FloatArray, adjoint: FloatArray) -> float:
        """Return the lower bound at the current point; keep it if it is the best one.

        `W` and `adjoint` (n_columns, n_labels) must belong to `now`: its weights, and Z' times its
        residual. The scores of the best point are kept without a copy. The callback of the
        objective is called with the gap.
        """
        return self.keep_bound(lower_bound(self.objective, W, self.now.loss, adjoint))

    def keep_bound(self, bound: float) -> float:
        """Keep a lower bound at the current point if it is the best one, call the callback, and return the bound."""
        if bound >= self.bound.value:
            self.bound = Bound(bound, self.now.scores)
        if self.objective.on_gap is not None and self.objective.on_gap(self.gap()):
            self.stopped_by = "callback"
        return bound

    def gap(self) -> float:
        """Return the certified relative gap of the current point, infinite until a bound is above 0."""
        return relative_gap(self.now.value, self.bound.value)

    def is_finished(self) -> bool:
        """Return whether the run has reached its tolerance, was stopped, or has used all its iterations.

        A tolerance of at most `ROUNDING_GAP` also needs objective values that no longer fall.
        """
        first_of_last = self.way[-1 - self.STANDSTILL_ITERATIONS :][0][0]
        is_exact = self.tol > ROUNDING_GAP or self.way[-1][0] >= first_of_last
        is_certified = is_exact and self.gap() <= max(self.tol, ROUNDING_GAP)
        return is_certified or bool(self.stopped_by) or self.n_iter >= self.max_iter

    def result(self, solver: str, weights: Any, converged: bool, remedy: str | None = None) -> SolverResult:
        """Return the result of a run, with a message if its stopping rule was not met.

        Parameters
        ----------
        solver : str
            Name of the solver in the message.
        weights : array or LowRankMatrix (n_columns, n_labels)
        converged : bool
            Whether the stopping rule was met.
        remedy : str, default=None
            Remedy in the message of a solver whose stopping rule is not the tolerance.
        """
        before = self.way[0][1]
        history, costs = np.reshape(self.way[1:], (-1, 2)).T - [[0.0], [before]]
        spent = self.objective.evaluations - before
        scores = self.now.scores, self.bound.scores
        point = weights, self.now.value, self.gap(), spent, self.n_iter, converged
        result = SolverResult(*point, history, costs, *scores)
        if not converged:
            tol = None if remedy else self.tol
            if remedy is None:
                has_penalty = self.objective.ridge.weight or self.objective.nuclear.weight
                remedy = REMEDY if has_penalty else UNCERTIFIED
                remedy = STOPPED if self.stopped_by == "callback" else remedy
            result.messages = (explain_unconverged(solver, result, tol, self.max_iter, remedy),)
        return result


@dataclass
class GapForecast:
    """Forecast of the passes that a solver still needs, if the gap falls by the same factor in each pass.

    Parameters
    ----------
    tol : float
        Gap at which the solver stops.

    Attributes
    ----------
    n_iter : int
        Number of passes at the last check.
    gap : float
        Gap at the last check.
    rate : float
        Fall of the logarithm of the gap in a pass; 0 if it is not known.
    passes_left : float
        Number of passes until the gap is the tolerance; 0 if it is not known.
    next_check : int
        Pass after which the gap is computed next.

    Examples
    --------
    >>> from rbrl.solvers.base import GapForecast
    >>> forecast = GapForecast(tol=1e-4)
    >>> forecast.update(2, 1e-1)
    >>> forecast.update(4, 1e-2)
    >>> round(forecast.passes_left), forecast.next_check
    (4, 6)
    """

    tol: float
    n_iter: int = 0
    gap: float = np.inf
    rate: float = 0.0
    passes_left: float = 0.0
    next_check: int = 2

    def update(self, n_iter: int, gap: float) -> None:
        """Take in the gap after `n_iter` passes.

        The next check comes when the gap is expected to be the tolerance, but not later than after
        half as many passes again as there were.
        """
        passes = n_iter - self.n_iter
        gap_before = self.gap
        self.n_iter = n_iter
        self.gap = gap
        latest = max(n_iter + (n_iter + 1) // 2, 2)
        if np.isfinite(gap_before) and 0 < gap < gap_before and self.tol > 0:
            self.rate = float(np.log(gap_before / gap) / passes)
            self.passes_left = float(np.log(gap / self.tol) / self.rate)
            self.next_check = int(np.clip(np.ceil(n_iter + self.passes_left), n_iter + 1, latest))
        else:
            self.rate = 0.0
            self.passes_left = 0.0
            self.next_check = latest


STOPPED = "A callback asked it to stop."
REMEDY = "Raise max_iter or tol, scale X, or use a larger ridge."
UNCERTIFIED = "With ridge=0 and nuclear=0 no weights have a certificate. Use a small ridge, such as 1e-4, to have one."


def explain_unconverged(solver: str, result: Any, tol: float | None, max_iter: int, remedy: str = REMEDY) -> str:
    """Return the message of a solver that did not converge, with its gap and a remedy.

    `solver` is its name at the start of the sentence. `result` needs `gap`, `objective` and
    `n_iter`. A `tol` of None is left out.
    """
    excess = "" if tol is None else f", above tol={tol:g}"
    certified = f"a certified relative gap of {result.gap:.1e}{excess}"
    outcome = certified if np.isfinite(result.gap) else f"an objective of {result.objective:.6g}, not certified"
    return f"{solver} stopped after {result.n_iter} iterations (max_iter={max_iter}) with {outcome}. {remedy}"
