"""Algorithms 1 and 2 of the paper: the accelerated proximal gradient method with a constant step.

step b:  W = prox(G - gradient(G) / L),  G = W + momentum (W - previous W)

The gradient is that of loss and ridge, and prox shrinks the singular values by nuclear / L. L is a
Lipschitz constant of the gradient: the rigorous one, or the one in the authors' program.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rbrl._common.checks import check_choice
from rbrl._common.typing import Array, FloatArray
from rbrl.losses import CostWeightedSquaredHinge, LabelGraph, PairwiseSquaredHinge, SquaredHinge, WeightedSum
from rbrl.problem import Objective, RowDesign
from rbrl.solvers.base import Bound, Run, SolverResult, Start


def rigorous(objective: Objective) -> float:
    """Return the largest eigenvalue of Z' diag(row curvature of the loss) Z plus the curvature of the ridge.

    It is an upper bound on the curvature of loss and ridge at all weights.
    """
    row_curvature = objective.loss.curvature(objective.Y, objective.sample_weight)
    if not np.isfinite(row_curvature).all():
        raise ValueError(
            f"A constant step needs a loss of bounded curvature. Got {objective.loss!r}, whose curvature has no bound; "
            "use a solver that searches for its step."
        )
    return objective.design.largest_curvature(row_curvature) + objective.ridge.curvature


def paper(objective: Objective) -> float:
    """Return the constant of the authors' program for RBRL or for CPNL.

    The factors are theirs, so that iterations can be replayed. The constant for RBRL, eqs. (23) and
    (31) of the paper, is not always an upper bound on the curvature. Its proof changes the weights
    of one label while the others are fixed. The constant for CPNL is an upper bound: it bounds
    every term by its Frobenius norm.
    """
    terms = objective.loss.terms if isinstance(objective.loss, WeightedSum) else ((1.0, objective.loss),)
    norms = objective.design.row_norms()
    squares = np.sum(norms**2)
    ridge = objective.ridge.weight * np.linalg.norm(objective.ridge.row_weights)
    if all(isinstance(loss, (SquaredHinge, PairwiseSquaredHinge)) for _, loss in terms):
        weight = sum(c for c, loss in terms if isinstance(loss, PairwiseSquaredHinge))
        ranking = weight * _paper_pairwise(objective.Y, norms)
        return float(np.sqrt(3 * squares**2 + 3 * ridge**2 + 3 * ranking**2))
    if all(isinstance(loss, (CostWeightedSquaredHinge, LabelGraph)) for _, loss in terms):
        cost = max(np.max(np.where(objective.Y > 0, loss.costs, 1.0)) for _, loss in terms if hasattr(loss, "costs"))
        graphs = sum((c * np.linalg.norm(loss.matrix)) ** 2 for c, loss in terms if isinstance(loss, LabelGraph))
        Z = objective.design.matrix()
        return float(2 * np.sqrt(squares**2 * cost**2 + ridge**2 + graphs * np.linalg.norm(Z.T @ Z) ** 2))
    raise ValueError(
        f"lipschitz='paper' is defined for the losses of RBRL and CPNL only. Got {objective.loss!r}; "
        "use lipschitz='rigorous'."
    )


def _paper_pairwise(Y: Array, norms: FloatArray) -> float:
    """Return sqrt(max_j A_j B_j) of Proposition 1 of the paper, without rows that have no pair.

    Y (n_samples, n_labels) are the labels, and `norms` (n_samples,) the norms of the rows.
    """
    has_pair = (Y > 0).any(axis=1) & (Y < 0).any(axis=1)
    Y = Y[has_pair]
    norms = norms[has_pair]
    p = (Y > 0).sum(axis=1)
    q = (Y < 0).sum(axis=1)
    partners = np.select([Y > 0, Y < 0], [q[:, None], p[:, None]], 0).astype(float)
    B = (partners * (norms**4 / (p * q) ** 2.0)[:, None]).sum(axis=0)
    return float(np.sqrt(np.max(partners.sum(axis=0) * B, initial=0.0)))


CONSTANTS = {"paper": paper, "rigorous": rigorous}


@dataclass(frozen=True)
class APG:
    """Accelerated proximal gradient with a constant step.

    ``APG(lipschitz="paper", stop="paper")`` replays the authors' program iteration by iteration.

    Parameters
    ----------
    lipschitz : {"rigorous", "paper"}
        Constant whose inverse is the step length. The constant of the paper is larger on most data,
        and no upper bound on the curvature on some.
    stop : {"gap", "paper"}
        Stopping rule. "gap" stops when the certified relative gap is at most `tol`. "paper" stops
        as the authors' program does: when the objective changes by less than 1e-6 of itself, or
        after 1999 iterations. `tol` and `max_iter` then have no effect.
    restart : bool
        Whether the momentum starts again at zero when it points uphill.
    check_every : int
        Number of iterations between two certificates. A certificate costs half an evaluation.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> from rbrl.solvers import APG
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> result = APG(restart=True).solve(Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0))
    >>> result.weights.round(3).tolist(), result.gap <= 1e-4
    ([[0.5]], True)
    """

    # Tolerance and number of iterations of the stopping rule "paper".
    PAPER_TOL: ClassVar[float] = 1e-6
    PAPER_MAX_ITER: ClassVar[int] = 1999

    lipschitz: str = "rigorous"
    stop: str = "gap"
    restart: bool = False
    check_every: int = 10

    def solve(self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult`."""
        check_choice("APG", "lipschitz", self.lipschitz, tuple(CONSTANTS))
        check_choice("APG", "stop", self.stop, ("gap", "paper"))
        if not isinstance(objective.design, RowDesign):
            raise ValueError(
                "APG computes its constant step from rows in memory. Got a "
                f"{type(objective.design).__name__}, which has sums over its rows only; use the solver 'auto'."
            )
        if self.stop == "paper":
            tol = self.PAPER_TOL
            max_iter = self.PAPER_MAX_ITER
        run = Run(objective, tol, max_iter)
        # A constant of 0 means that the gradient is 0 everywhere. Any step length is then right.
        L = CONSTANTS[self.lipschitz](objective) or 1.0
        b = 1.0
        converged = False
        run.now = G = objective.at(objective.zeros() if start is None else start)
        while not converged and not run.stopped_by and run.n_iter < max_iter:
            old = run.now
            W = objective.nuclear.prox(G.W - objective.smooth_gradient(G.W, G.residual) / L, 1.0 / L)
            if self.restart and np.vdot(G.W - W, W - old.W) > 0:
                b = 1.0
            run.now = now = objective.at(W)
            b_old = b
            b = (1.0 + np.sqrt(1.0 + 4.0 * b**2)) / 2.0
            momentum = (b_old - 1.0) / b
            # Scores are linear in the weights, so the scores of G need no product.
            G = objective.at(W + momentum * (W - old.W), now.scores + momentum * (now.scores - old.scores))
            # The product at the start is not counted, so that an iteration costs one evaluation.
            run.note(now.value, objective.evaluations - 0.5)
            converged = self._meets_stopping_rule(run)
        remedy = "The paper's rule allows no more; lipschitz='rigorous' with stop='gap' goes on to the optimum."
        return run.result("APG", run.now.W, converged, remedy if self.stop == "paper" else None)

    def _meets_stopping_rule(self, run: Run) -> bool:
        """Return whether the run may stop. The last iterate and every tenth one, by default, are certified."""
        by_paper = self.stop == "paper"
        (before, _), (now, _) = run.way[-2:]
        is_settled = run.n_iter > 1 and (abs(now - before) / before if before > 0 else 0.0) <= run.tol
        if run.n_iter < run.max_iter and not (is_settled if by_paper else run.n_iter % self.check_every == 0):
            return False
        # The bound is that of this iterate, not the best one of all iterates.
        run.bound = Bound()
        run.certify(run.now.W, run.objective.design.adjoint(run.now.residual))
        return is_settled if by_paper else run.gap() <= run.tol
