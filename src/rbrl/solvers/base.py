"""What every solver is and returns, the points and runs that solvers share, and how one says that it did not arrive."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.exceptions import ConvergenceWarning
from rbrl.problem.objective import Objective, SmoothedNuclear
from rbrl.solvers.certificate import lower_bound, relative_gap


@dataclass
class SolverResult:
    """Weights with a certificate.

    Attributes
    ----------
    weights : array (n_columns, n_labels)
        In the coordinates of the objective's design.
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
        Evaluations after which each of them was known.
    scores : array (n_samples, n_labels)
        Both may be None: not every solver keeps them.
    dual_scores : array (n_samples, n_labels)
        The scores whose loss gradient gave the best lower bound; None means `scores`.
    """

    weights: FloatArray
    objective: float
    gap: float
    evaluations: float
    n_iter: int
    converged: bool
    history: FloatArray = field(repr=False)
    costs: FloatArray | None = field(repr=False, default=None)
    scores: Any = field(repr=False, default=None)
    dual_scores: Any = field(repr=False, default=None)


class Solver(Protocol):
    """Objective in, result out."""

    def solve(
        self, objective: Objective, start: FloatArray | None = None, tol: float = 1e-4, max_iter: int = 1000
    ) -> SolverResult:
        """Minimise `objective` from `start`, weights in the coordinates of its design, or from where the solver likes."""


class SmoothedPoint:
    """Scores with all that is known of the objective there, its nuclear norm smoothed.

    Parameters
    ----------
    objective : Objective
    scores : array (n_samples, n_labels)
    ridge : float
        Value of the ridge.
    nuclear : SmoothedNuclear or None
        Not smoothed yet: its width is chosen so that the value moves by a tenth of `tol` at most.

    Attributes
    ----------
    value, smooth_value : float
        The objective, and the same with the smoothed nuclear norm.
    evaluations : float
        What the objective had cost when `value` was known.
    """

    def __init__(
        self, objective: Objective, scores: Any, ridge: float, nuclear: SmoothedNuclear | None = None, tol: float = 0.0
    ) -> None:
        self.scores, self.ridge = scores, ridge
        self.nuclear: Any = nuclear
        self.loss, self.residual = objective.loss_at(scores)
        self.evaluations = objective.evaluations
        self.value = self.smooth_value = self.loss.value + ridge
        if nuclear is not None:
            self.value += nuclear.exact
            nuclear.smooth(0.1 * tol * self.value / (nuclear.weight * len(nuclear.sigma)))
            self.smooth_value += nuclear.value


class Run(ABC):
    """One minimisation: the values on the way and what they cost, the point reached, and the best lower bound so far.

    Parameters
    ----------
    objective : Objective
    tol : float
    max_iter : int

    Attributes
    ----------
    now : point with a `value` and `scores`
    bound : float
        The best lower bound of the optimum so far, from the scores `dual_scores`.
    """

    name: str
    now: Any

    def __init__(self, objective: Objective, tol: float, max_iter: int) -> None:
        self.objective, self.tol, self.max_iter = objective, tol, max_iter
        self._before = objective.evaluations
        self.history: list[float] = []
        self.costs: list[float] = []
        self.n_iter, self.bound, self.stuck = 0, 0.0, False
        self.dual_scores: Any = None

    @abstractmethod
    def begin(self, start: FloatArray | None, scores: Any = None) -> None:
        """Go to where the run starts; the scores of `start`, if known, save a product."""

    @abstractmethod
    def advance(self) -> None:
        """One step, or some."""

    @abstractmethod
    def end(self) -> FloatArray:
        """What is left to do at the end; return the weights reached."""

    def note(self, value: float, evaluations: float | None = None) -> None:
        """Record an objective value and what it had cost."""
        self.history.append(value)
        self.costs.append((self.objective.evaluations if evaluations is None else evaluations) - self._before)

    def certify(self, W: FloatArray, adjoint: FloatArray) -> None:
        """Keep the lower bound of the point reached, from Z' times its residual, if it is the best; tell who watches."""
        bound = lower_bound(self.objective, W, self.now.loss, adjoint)
        if bound >= self.bound:
            self.bound, self.dual_scores = bound, self.now.scores
        self.objective.reached(self.gap())

    def gap(self) -> float:
        """The certified relative gap of the point reached."""
        return relative_gap(self.now.value, self.bound)

    def converged(self) -> bool:
        """Whether the stopping rule is met: here, that the gap is at most `tol`."""
        return self.gap() <= self.tol

    def finished(self) -> bool:
        """Whether there is nothing more to do."""
        return self.converged() or self.stuck or self.n_iter >= self.max_iter

    def minimise(self, start: FloatArray | None, scores: Any = None) -> SolverResult:
        """The run from its beginning to its result."""
        self.begin(start, scores)
        while not self.finished():
            self.advance()
        return self.result()

    def asked(self) -> tuple[float | None, int, str]:
        """The tolerance and the iterations allowed, and what to do where they were not enough."""
        penalised = self.objective.ridge.weight or self.objective.nuclear.weight
        return self.tol, self.max_iter, WAY_OUT if penalised else NO_CERTIFICATE

    def result(self) -> SolverResult:
        """What was reached, and a warning if that is not what was asked for."""
        weights = self.end()
        result = SolverResult(
            weights=weights,
            objective=self.now.value,
            gap=self.gap(),
            evaluations=self.objective.evaluations - self._before,
            n_iter=self.n_iter,
            converged=self.converged(),
            history=np.array(self.history),
            costs=np.array(self.costs),
            scores=self.now.scores,
            dual_scores=self.dual_scores,
        )
        if not result.converged:
            warn_unconverged(self.name, result, *self.asked(), stacklevel=5)
        return result


WAY_OUT = "Raise max_iter or tol, scale X, or use a larger ridge."
NO_CERTIFICATE = (
    "With ridge=0 and nuclear=0 no weights have a certificate. Use a small ridge, such as 1e-4, to have one."
)


def warn_unconverged(
    solver: str, result: Any, tol: float | None, max_iter: int, way_out: str = WAY_OUT, stacklevel: int = 3
) -> None:
    """One warning that names what was reached and the way out; a `tol` of None is not mentioned."""
    aim = "" if tol is None else f", above tol={tol:g}"
    certified = f"a certified relative gap of {result.gap:.1e}{aim}"
    reached = certified if np.isfinite(result.gap) else f"an objective of {result.objective:.6g}, not certified"
    warnings.warn(
        f"{solver} stopped after {result.n_iter} iterations (max_iter={max_iter}) with {reached}. {way_out}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
