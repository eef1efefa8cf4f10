"""Algorithms 1 and 2 of the paper: accelerated proximal gradient, and the Lipschitz constants it steps by."""

from dataclasses import dataclass

import numpy as np

from rbrl._common.checks import check_choice
from rbrl.losses import CostWeightedSquaredHinge, LabelGraph, PairwiseSquaredHinge, SquaredHinge, WeightedSum
from rbrl.solvers.base import SolverResult, relative_gap, warn_unconverged, way_out
from rbrl.solvers.certificate import lower_bound


def rigorous(objective):
    """Largest eigenvalue of Z' diag(row curvature of the loss) Z, plus that of the ridge: an upper bound, always."""
    row_curvature = objective.loss.curvature(objective.Y, objective.sample_weight)
    if not np.isfinite(row_curvature).all():
        raise ValueError(
            f"A constant step needs a loss of bounded curvature. Got {objective.loss!r}, whose curvature has no bound; "
            "use a solver that searches for its step."
        )
    return objective.design.largest_curvature(row_curvature) + objective.ridge.curvature


def paper(objective):
    """The constant of the authors' own program: RBRL's, or CPNL's."""
    terms = objective.loss.terms if isinstance(objective.loss, WeightedSum) else ((1.0, objective.loss),)
    for constant, losses in (
        (_rbrl, (SquaredHinge, PairwiseSquaredHinge)),
        (_cpnl, (CostWeightedSquaredHinge, LabelGraph)),
    ):
        if all(isinstance(loss, losses) for _, loss in terms):
            return constant(objective, terms)
    raise ValueError(
        f"lipschitz='paper' is defined for the losses of RBRL and CPNL only. Got {objective.loss!r}; "
        "use lipschitz='rigorous'."
    )


def _rbrl(objective, terms):
    """Eqs. (23) and (31) of the RBRL paper.

    It is not an upper bound in general: its proof varies one label's weights with the others fixed.
    """
    norms = objective.design.row_norms()
    weight = sum(c for c, loss in terms if isinstance(loss, PairwiseSquaredHinge))
    ranking = weight * _paper_pairwise(objective.Y, norms)
    return float(np.sqrt(3 * np.sum(norms**2) ** 2 + 3 * _ridge_norm(objective) ** 2 + 3 * ranking**2))


def _cpnl(objective, terms):
    """The constant of CPNL's program: an upper bound, every term bounded by its Frobenius norm."""
    cost = max(float(np.max(np.where(objective.Y > 0, loss.costs, 1.0))) for _, loss in terms if hasattr(loss, "costs"))
    graphs = sum((c * np.linalg.norm(loss.matrix)) ** 2 for c, loss in terms if isinstance(loss, LabelGraph))
    squares = float(np.sum(objective.design.row_norms() ** 2))
    Z = objective.design.matrix()
    gram = float(np.linalg.norm(Z.T @ Z))
    return float(2 * np.sqrt(squares**2 * cost**2 + _ridge_norm(objective) ** 2 + graphs * gram**2))


def _ridge_norm(objective):
    r = objective.ridge.row_weights
    return objective.ridge.weight * (1.0 if np.ndim(r) == 0 else float(np.linalg.norm(r)))


def _paper_pairwise(Y, norms):
    """sqrt(max_j A_j B_j) of the paper's Proposition 1; rows without a pair are left out."""
    relevant = Y > 0
    p = relevant.sum(axis=1)
    q = Y.shape[1] - p
    both = (p > 0) & (q > 0)
    relevant, p, q, norms = relevant[both], p[both], q[both], norms[both]
    partners = np.where(relevant, q[:, None], p[:, None]).astype(float)
    B = (partners * (norms**4 / (p * q) ** 2.0)[:, None]).sum(axis=0)
    return float(np.sqrt(np.max(partners.sum(axis=0) * B, initial=0.0)))


CONSTANTS = {"paper": paper, "rigorous": rigorous}


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
        check_choice("APG", "lipschitz", self.lipschitz, tuple(CONSTANTS))
        check_choice("APG", "stop", self.stop, ("gap", "paper"))
        if self.stop == "paper":
            tol, max_iter = PAPER_TOL, PAPER_MAX_ITER
        before = objective.evaluations
        run = _Run(objective, CONSTANTS[self.lipschitz](objective), start, self.restart)
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
