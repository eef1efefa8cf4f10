"""Algorithms 1 and 2 of the paper: accelerated proximal gradient."""

from dataclasses import dataclass

import numpy as np

from rbrl._validation import check_choice
from rbrl.solvers import lipschitz
from rbrl.solvers.base import SolverResult, relative_gap, warn_unconverged, way_out
from rbrl.solvers.certificate import lower_bound

PAPER_TOL, PAPER_MAX_ITER = 1e-6, 1999


@dataclass(frozen=True)
class APG:
    """Accelerated proximal gradient with a constant step.

    ``APG(lipschitz="paper", stop="paper")`` replays the authors' program iteration by iteration.

    Parameters
    ----------
    lipschitz : {"rigorous", "paper"}
        The constant whose inverse is the step. The paper's is larger on most data, and not an upper bound on some.
    stop : {"gap", "paper"}
        "gap": the certified relative gap is at most `tol`. "paper": the objective changed by less than 1e-6 of itself,
        or 1999 iterations, as in the authors' program; `tol` and `max_iter` then have no effect.
    restart : bool
        Forget the momentum whenever it points uphill.
    check_every : int
        Iterations between two certificates; each costs half an evaluation.
    """

    lipschitz: str = "rigorous"
    stop: str = "gap"
    restart: bool = False
    check_every: int = 10

    def solve(self, objective, start=None, tol=1e-4, max_iter=1000):
        """Minimise `objective`; return a :class:`SolverResult`."""
        check_choice("APG", "lipschitz", self.lipschitz, tuple(lipschitz.CONSTANTS))
        check_choice("APG", "stop", self.stop, ("gap", "paper"))
        if self.stop == "paper":
            tol, max_iter = PAPER_TOL, PAPER_MAX_ITER
        before = objective.evaluations
        run = _Run(objective, lipschitz.CONSTANTS[self.lipschitz](objective), start, self.restart)
        converged = False
        for t in range(1, max_iter + 1):
            run.step()
            if self.stop == "paper":
                converged = t > 1 and run.change() <= tol
            elif t % self.check_every == 0 or t == max_iter:
                converged = run.gap() <= tol
            if converged:
                break
        result = SolverResult(
            weights=run.point.W,
            objective=run.point.value,
            gap=run.gap(),
            evaluations=objective.evaluations - before,
            n_iter=t,
            converged=converged,
            history=np.array(run.history),
            costs=np.array(run.costs),
            scores=run.point.scores,
        )
        if not converged and self.stop == "paper":
            remedy = "The paper's rule allows no more; lipschitz='rigorous' with stop='gap' goes on to the optimum."
            warn_unconverged("APG", result, None, max_iter, remedy)
        elif not converged:
            warn_unconverged("APG", result, tol, max_iter, way_out(objective))
        return result


class _Run:
    """The iterates of Algorithm 1: W_t, and the extrapolated G_t with momentum b_t."""

    def __init__(self, objective, L, start, restart):
        # A constant of 0 means a gradient of 0 everywhere: any step will do.
        self.objective, self.L, self.restart = objective, L or 1.0, restart
        self.point = objective.at(objective.zeros() if start is None else start)
        self.G, self.b = self.point, 1.0
        self.before = objective.evaluations
        self.history, self.costs, self._certified = [], [], None

    def step(self):
        """One iteration. Scores are linear in the weights, so those of G cost no product."""
        objective, L, old = self.objective, self.L, self.point
        gradient = objective.smooth_gradient(self.G.W, self.G.residual)
        W = objective.nuclear.prox(self.G.W - gradient / L, 1.0 / L)
        if self.restart and np.vdot(self.G.W - W, W - old.W) > 0:
            self.b = 1.0
        self.point = objective.at(W)
        b_old, self.b = self.b, (1.0 + np.sqrt(1.0 + 4.0 * self.b**2)) / 2.0
        momentum = (b_old - 1.0) / self.b
        self.G = objective.at(
            W + momentum * (W - old.W), self.point.scores + momentum * (self.point.scores - old.scores)
        )
        self.history.append(self.point.value)
        self.costs.append(objective.evaluations - self.before)

    def change(self):
        """Relative change of the objective in the last iteration."""
        before, now = self.history[-2:]
        return abs(now - before) / before if before > 0 else 0.0

    def gap(self):
        """Certified relative gap of the current iterate; computed once per iterate."""
        if self._certified is None or self._certified[0] is not self.point:
            adjoint = self.objective.design.adjoint(self.point.residual)
            bound = lower_bound(self.objective, self.point.W, self.point.loss, adjoint)
            self._certified = self.point, relative_gap(self.point.value, bound)
        return self._certified[1]
