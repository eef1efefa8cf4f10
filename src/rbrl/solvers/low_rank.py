"""The factored solver on its own: weights that are never more than two thin factors, of any rank or of a given one."""

from dataclasses import dataclass

import numpy as np

from rbrl._common.checks import check_number
from rbrl._common.linalg import EXACT_BELOW, leading_singular
from rbrl.solvers.base import SolverResult, relative_gap, warn_unconverged, way_out
from rbrl.solvers.certificate import lower_bound
from rbrl.solvers.factored import Factors, balance, descend, join_violations
from rbrl.solvers.preconditioner import MeanModel
from rbrl.solvers.quasi_newton import FADING, model_start

# Columns that the factors of very large weights start with, and as many as may join after a round at least.
FIRST = 20
# Slope and progress, relative to the objective, at which a round ends while columns are still missing.
LOOSE = 1e-2
# With a limited rank, a stationary point has neither above this share of the tolerance; without, the certificate decides,
# and below ROUNDING nothing is to be gained.
STATIONARY, ROUNDING = 0.01, 1e-14


@dataclass(frozen=True)
class LowRank:
    """Quasi-Newton on factors W = U V', which grow by the directions that the optimum still misses.

    Without `max_rank` it ends at the optimum, certified, as every other solver does; it pays where the rank is far below
    both sides of W, or where these are so long that their decomposition is not to be had in every iteration.

    With `max_rank` it ends at a stationary point of the problem with the constraint rank(W) <= max_rank, which is not
    convex: a local optimum. The gap is that to the lower bound of the problem without the constraint. It is a proof, for no
    weights of any rank are better by more, but it need not be small.

    Parameters
    ----------
    max_rank : int, default=None
        Columns of the factors at most; None for as many as the optimum needs.
    memory : int, default=20
        Steps remembered.
    """

    max_rank: int | None = None
    memory: int = 20

    def solve(self, objective, start=None, tol=1e-4, max_iter=1000):
        """Minimise `objective`; return a :class:`SolverResult`."""
        if self.max_rank is not None:
            check_number("LowRank", "max_rank", self.max_rank, low=1, integer=True)
        run = _Run(objective, self, tol, max_iter)
        run.begin(start)
        run.round()
        while not run.finished():
            run.round()
        result = run.result()
        if not result.converged:
            warn_unconverged("The low-rank solver", result, tol, max_iter, way_out(objective))
        return result


class _Run:
    """One minimisation: the factors, and the best bound so far."""

    def __init__(self, objective, solver, tol, max_iter):
        self.objective, self.solver, self.tol, self.max_iter = objective, solver, tol, max_iter
        self.most = min(*objective.shape, solver.max_rank or np.inf)
        self.before = objective.evaluations
        self.history, self.costs, self.point = [], [], None
        self.n_iter, self.bound, self.dual_scores, self.stationary = 0, 0.0, None, False

    def begin(self, start):
        """Factors of `start`, or of the minimiser of the mean model, as far as its singular values stand out."""
        objective, rank = self.objective, self.most
        large = min(objective.shape) > EXACT_BELOW
        if start is None:
            start = _ridge_start(objective) if large else model_start(objective)
            rank = min(rank, self.solver.max_rank or FIRST) if large else rank
        P, sigma, Q = leading_singular(start, int(rank))
        keep = sigma > FADING * sigma.max(initial=0.0)
        P, Q, root = P[:, keep], Q[:, keep], np.sqrt(sigma[keep])
        self.factors = P * root, Q * root
        # Columns can join only below the largest rank; a round that is the last one need not end early.
        self.small = 0.3 * self.tol if len(root) == self.most else max(LOOSE, 0.3 * self.tol)

    def round(self):
        """Descend to a stationary point, certify, and let the missing directions join."""
        objective = self.objective
        U, V = self.factors
        self.n_iter += 1
        if U.shape[1]:
            allowed = self.max_iter - self.n_iter
            point, used = descend(objective, U, V, self.small, allowed, self.solver.memory, self.note)
            self.n_iter, self.point = self.n_iter + used, _balanced(objective, point)
        else:
            self.point = Factors(objective, U, V, objective.design.scores(U))
        self.note(self.point.value)
        W = self.point.U @ self.point.V.T
        adjoint = objective.design.adjoint(self.point.residual)
        bound = lower_bound(objective, W, self.point.loss, adjoint)
        if bound >= self.bound:
            self.bound, self.dual_scores = bound, self.point.scores
        self.grow(W, adjoint, ended=self.n_iter < self.max_iter)

    def grow(self, W, adjoint, ended):
        """New columns for another round, within the rank that is allowed; a closer look unless many are missing still."""
        rank = self.point.U.shape[1]
        step, joined = max(rank, FIRST), None
        room = int(min(self.most - rank, step))
        if room > 0:
            gradient = adjoint + self.objective.ridge.gradient(W)
            H = MeanModel(self.objective, self.point.scores).hessian
            joined = join_violations(self.objective, self.point.U, self.point.V, gradient, H, room)
        self.factors = joined or (self.point.U, self.point.V)
        enough = ROUNDING if self.solver.max_rank is None else STATIONARY * self.tol
        self.stationary = joined is None and ended and self.small <= enough
        if joined is None or joined[0].shape[1] < rank + step:
            self.small *= 0.1

    def note(self, value):
        """Record an objective value and what it had cost."""
        self.history.append(value)
        self.costs.append(self.objective.evaluations - self.before)

    def gap(self):
        return relative_gap(self.point.value, self.bound)

    def finished(self):
        return self.converged() or self.stationary or self.n_iter >= self.max_iter

    def converged(self):
        """Certified; or, where the rank is limited, at a local optimum."""
        return self.gap() <= self.tol or (self.stationary and self.solver.max_rank is not None)

    def result(self):
        point = self.point
        return SolverResult(
            weights=point.U @ point.V.T,
            objective=point.value,
            gap=self.gap(),
            evaluations=self.objective.evaluations - self.before,
            n_iter=self.n_iter,
            converged=self.converged(),
            history=np.array(self.history),
            costs=np.array(self.costs),
            scores=point.scores,
            dual_scores=self.dual_scores,
        )


def _ridge_start(objective):
    """Minimiser of the mean model at zero scores, without the nuclear norm: half an evaluation."""
    zero = objective.zero_scores()
    _, residual = objective.loss.evaluate(objective.Y, zero, objective.sample_weight)
    return -MeanModel(objective, zero).inverse()(objective.design.adjoint(residual))


def _balanced(objective, point):
    """The same weights in balanced factors, whose value is that of the weights; none where that is better still."""
    U, V = balance(point.U, point.V)
    best = Factors(objective, U, V, point.scores_U @ (point.V.T @ V / np.sum(V**2, axis=0)))
    zero = Factors(objective, U[:, :0], V[:, :0], objective.design.scores(U[:, :0]))
    return zero if zero.value <= best.value else best
