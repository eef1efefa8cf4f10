r"""Kernel models of more rows than can be decomposed: quasi-Newton in the space of the functions themselves.

The variable is the function :math:`\Phi(X)'A`, held as A with its scores KA. A gradient in that space is
:math:`R + \lambda_1 A + AH`, with R the loss gradient in the scores and H the nuclear norm as a reweighted ridge; inner
products are :math:`\operatorname{tr}(A'KB)`. So an iteration is two products with K, as for any other design, and the part
of the spectrum that stands out is enough for a preconditioner, because what is left has little
curvature beside the ridge.
"""

from dataclasses import dataclass

import numpy as np

from rbrl._common.linalg import gram_eigh
from rbrl._common.typing import FloatArray
from rbrl.problem.objective import Objective, SmoothedNuclear
from rbrl.solvers.base import Run, SmoothedPoint, SolverResult, Start
from rbrl.solvers.lbfgs import InverseHessian, Memory, wolfe_step
from rbrl.solvers.preconditioner import MeanModel, PencilSolver


@dataclass(frozen=True)
class KernelBlocks:
    """Limited-memory quasi-Newton method over a :class:`rbrl.problem.BlockKernel`, with a certificate.

    Parameters
    ----------
    memory : int, default=20
        Steps remembered.
    leading : int, default=200
        Eigenvectors of the kernel in the preconditioner.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import BlockKernel, Objective
    >>> from rbrl.solvers import KernelBlocks
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(BlockKernel(lambda rows: K[rows], 2), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> KernelBlocks().solve(objective).weights.round(3).tolist()
    [[0.5], [-0.5]]
    """

    memory: int = 20
    leading: int = 200

    def solve(self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult` whose weights are the coefficients A."""
        run = _Run(objective, self, tol, max_iter)
        run.begin(start)
        while not run.finished():
            run.advance()
        return run.result(run.now.A, run.gap() <= tol)


class _Function(SmoothedPoint):
    """A function by its coefficients A and scores KA, with everything known there.

    Attributes
    ----------
    pull : array (n_labels, n_labels)
        Ridge and nuclear norm as one reweighted ridge: their gradient is A times it.
    """

    def __init__(
        self, objective: Objective, A: FloatArray, scores: FloatArray, tol: float, width: float | None = None
    ) -> None:
        gram, weight = A.T @ scores, objective.nuclear.weight
        gram = 0.5 * (gram + gram.T)
        ridge = 0.5 * objective.ridge.weight * float(np.trace(gram))
        nuclear = SmoothedNuclear(gram, False, weight) if weight else None
        super().__init__(objective, scores, ridge, nuclear, tol, width=width)
        self.A, self.width = A, None if nuclear is None else nuclear.width
        self.pull = objective.ridge.weight * np.eye(A.shape[1]) + (0.0 if nuclear is None else nuclear.hessian)


class _Run(Run):
    """The current function with its gradient, and the memory of the steps to it."""

    now: _Function

    def __init__(self, objective: Objective, solver: KernelBlocks, tol: float, max_iter: int) -> None:
        super().__init__("The block kernel solver", objective, tol, max_iter)
        self.spectrum = objective.design.leading(solver.leading)
        self.memory = Memory(objective.Y.shape, solver.memory, joint=True, images=True)

    def begin(self, start: Start) -> None:
        """Go to `start`, or to the minimiser of the mean model without the nuclear norm."""
        objective = self.objective
        if start is None:
            zero = np.zeros(objective.Y.shape)
            here = _Function(objective, zero, zero, self.tol)
            start = -self._inverse(here, objective.ridge.weight * np.eye(zero.shape[1]))(here.residual)
        self.arrive(start, objective.design.scores(start))

    def arrive(self, A: FloatArray, scores: FloatArray) -> None:
        """Evaluate at A, whose scores are known: value, gradient and its product with K, and the lower bound that comes
        with them."""
        self.now = now = _Function(self.objective, A, scores, self.tol)
        self.n_iter += 1
        self.note(now.value)
        K_residual = self.objective.design.scores(now.residual)
        self.gradient, self.K_gradient = now.residual + A @ now.pull, K_residual + scores @ now.pull
        squares, V = gram_eigh(now.residual.T @ K_residual)
        self.certify(A, np.sqrt(squares)[:, None] * V.T)

    def advance(self) -> None:
        """One quasi-Newton step, its length searched on scores that are known."""
        objective, now = self.objective, self.now
        D, slope = self.memory.descent(self.gradient, self._inverse(now, now.pull), self.K_gradient)
        KD = objective.design.scores(D)

        def along(t: float) -> tuple[float, float, _Function]:
            at = _Function(objective, now.A + t * D, now.scores + t * KD, self.tol, now.width)
            return at.smooth_value, float(np.vdot(at.residual, KD) + np.sum((at.A.T @ KD) * at.pull)), at

        at = wolfe_step(along, now.smooth_value, slope) if slope < 0 else None
        if at is not None:
            gradient, K_gradient = self.gradient, self.K_gradient
            self.arrive(at.A, at.scores)
            change, K_change = self.gradient - gradient, self.K_gradient - K_gradient
            self.memory.push(self.now.A - now.A, change, self.now.scores - now.scores, K_change)
        elif len(self.memory):
            self.memory.clear()
        else:
            self.stuck = True

    def _inverse(self, function: _Function, pull: FloatArray) -> InverseHessian:
        """Inverse Hessian of the mean model, exact in the eigenvectors that are known; the others are taken for equal."""
        values, U, rest = self.spectrum
        H = MeanModel(self.objective, function.scores).hessian
        inside, outside = (PencilSolver(v, H, 0.0, np.zeros_like(H), pull) for v in (values, np.array([rest])))

        def inverse(G: FloatArray) -> FloatArray:
            known = U.T @ G
            return outside(G - U @ known) + U @ inside(known)

        return inverse
