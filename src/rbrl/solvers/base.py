"""The protocol and the result of every solver, the record of a run, and the message of an unconverged one.

A solver returns its messages and does not warn: its caller decides whether they still hold. The estimators give them as
warnings.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.problem.objective import Objective
from rbrl.solvers.certificate import lower_bound, relative_gap

# Gaps that are rounding, and steps without descent after which a value stands: weights of equal problems then agree to 13
# digits, by the gap alone to 7 (what is left of the gradient is squared in it).
ROUNDING, STANDING = 1e-15, 5


@dataclass
class SolverResult:
    """Weights with a certificate.

    Attributes
    ----------
    weights : array (n_columns, n_labels), or None
        In the coordinates of the objective's design. None in a :class:`Solution` whose coefficients hold them.
    objective : float
    gap : float
        Rigorous upper bound on the relative distance of `objective` from the optimum.
    evaluations : float
        One is a product with the design and one with its transpose.
    n_iter : int
    converged : bool
        Whether the solver's own stopping rule was met.
    history : array
        Objective values, one per iteration.
    costs : array
        Evaluations after which each of them was known; empty where a solver does not keep them.
    scores : array (n_samples, n_labels)
        Both may be None: not every solver keeps them.
    dual_scores : array (n_samples, n_labels)
        The scores whose loss gradient gave the best lower bound; None means `scores`.
    messages : tuple of str
        Why the stopping rule was not met, and what to do about it; empty if it was.
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


Start = FloatArray | None


class Solver(Protocol):
    """Objective in, result out.

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
        """Minimise `objective` from `start`, weights in the coordinates of its design, or from where the solver likes.

        Parameters
        ----------
        objective : Objective
        start : array (n_columns, n_labels), default=None
        tol : float, default=1e-4
            The gap to stop at.
        max_iter : int, default=1000

        Returns
        -------
        SolverResult
        """


class Bound(NamedTuple):
    """A lower bound of the optimum, and the scores whose loss gradient gave it."""

    value: float = 0.0
    scores: Any = None


class Run:
    """What is kept in a minimisation: the values on the way and what they cost, the point reached, the best lower bound.

    Parameters
    ----------
    objective : Objective
    tol : float
    max_iter : int

    Attributes
    ----------
    way : list of (value, evaluations)
        Objective values, one per iteration, and what the objective had cost by then; before them, what it cost at first.
    now : point with a `value`, a `loss` and `scores`
    bound : Bound
        The best so far.
    stopped_by : str
        "itself" where nothing is left to try, "callback" where the one who watches asked for it.
    """

    now: Any

    def __init__(self, objective: Objective, tol: float, max_iter: int) -> None:
        self.objective, self.tol, self.max_iter = objective, tol, max_iter
        self.way, self.bound, self.stopped_by = [(np.inf, objective.evaluations)], Bound(), ""

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        return len(self.way) - 1

    def note(self, value: float, evaluations: float | None = None) -> None:
        """Record an objective value and what it had cost."""
        self.way.append((value, self.objective.evaluations if evaluations is None else evaluations))

    def certify(self, W: FloatArray, adjoint: FloatArray) -> float:
        """The lower bound of the point reached, from Z' times its residual, kept if it is the best; tell who watches."""
        bound = lower_bound(self.objective, W, self.now.loss, adjoint)
        if bound >= self.bound.value:
            self.bound = Bound(bound, self.now.scores)
        if self.objective.reached is not None and self.objective.reached(self.gap()):
            self.stopped_by = "callback"
        return bound

    def gap(self) -> float:
        """The certified relative gap of the point reached."""
        return relative_gap(self.now.value, self.bound.value)

    def finished(self) -> bool:
        """Whether there is nothing more to do. A tolerance that is rounding asks for steps until the value stands."""
        stands = self.tol > ROUNDING or self.way[-1][0] >= self.way[-1 - STANDING :][0][0]
        proved = stands and self.gap() <= max(self.tol, ROUNDING)
        return proved or bool(self.stopped_by) or self.n_iter >= self.max_iter

    def result(self, solver: str, weights: FloatArray, converged: bool, remedy: str | None = None) -> SolverResult:
        """Return the result of `solver`, with a message if its stopping rule was not met: `remedy` says what to do where the
        rule is not the tolerance."""
        history, costs = np.reshape(self.way[1:], (-1, 2)).T - [[0.0], [self.way[0][1]]]
        spent, scores = self.objective.evaluations - self.way[0][1], (self.now.scores, self.bound.scores)
        reached = weights, self.now.value, self.gap(), spent, self.n_iter, converged
        result = SolverResult(*reached, history, costs, *scores)
        if not converged:
            penalised, tol = self.objective.ridge.weight or self.objective.nuclear.weight, None if remedy else self.tol
            remedy = remedy or (STOPPED if self.stopped_by == "callback" else WAY_OUT if penalised else UNCERTIFIED)
            result.messages = (message_unconverged(solver, result, tol, self.max_iter, remedy),)
        return result


STOPPED = "A callback asked it to stop."
WAY_OUT = "Raise max_iter or tol, scale X, or use a larger ridge."
UNCERTIFIED = "With ridge=0 and nuclear=0 no weights have a certificate. Use a small ridge, such as 1e-4, to have one."


def message_unconverged(solver: str, result: Any, tol: float | None, max_iter: int, way_out: str = WAY_OUT) -> str:
    """Return a message with the gap that was reached and the way out; a `tol` of None is not mentioned."""
    aim = "" if tol is None else f", above tol={tol:g}"
    certified = f"a certified relative gap of {result.gap:.1e}{aim}"
    reached = certified if np.isfinite(result.gap) else f"an objective of {result.objective:.6g}, not certified"
    return f"{solver} stopped after {result.n_iter} iterations (max_iter={max_iter}) with {reached}. {way_out}"
