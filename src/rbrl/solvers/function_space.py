r"""Kernel models of more rows than can be decomposed: quasi-Newton in the space of the functions themselves.

The variable is the function :math:`\Phi(X)'A`, held as A with its scores KA. A gradient in that space is
:math:`R + \lambda_1 A + AH`, with R the loss gradient in the scores and H the nuclear norm as a reweighted ridge; inner
products are :math:`\operatorname{tr}(A'KB)`. So an iteration is two products with K, as for any other design, and the part
of the spectrum that stands out is enough for a preconditioner, because what is left has little
curvature beside the ridge.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rbrl._common.linalg import gram_eigh
from rbrl._common.typing import FloatArray
from rbrl.problem.objective import Objective, SmoothedNuclear
from rbrl.solvers.base import SmoothedPoint, SolverResult, Start
from rbrl.solvers.lbfgs import InverseHessian, Iterate, Memory
from rbrl.solvers.preconditioner import MeanModel, PencilSolver
from rbrl.solvers.quasi_newton import SMOOTHED, QuasiNewtonRun


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
        return _Run(objective, self, tol, max_iter).minimised(start)


class Function(Iterate):
    """A function by its coefficients A, with its scores KA for the image of A. What is `held` is taken anew: its small
    eigenproblem is nothing beside two products with K."""

    def __init__(
        self, objective: Objective, A: FloatArray, scores: FloatArray, tol: float, out: Any = None, held: Any = None
    ) -> None:
        gram, ridge, weight = A.T @ scores, objective.ridge.weight, objective.nuclear.weight
        nuclear = SmoothedNuclear(0.5 * (gram + gram.T), False, weight) if weight else None
        SmoothedPoint.__init__(self, objective, scores, 0.5 * ridge * float(np.trace(gram)), nuclear, tol, out)
        self.W, self.rank_share = A, 1.0
        # Ridge and nuclear norm as one reweighted ridge: their gradient is A times it.
        self.pull = ridge * np.eye(A.shape[1]) + (0.0 if nuclear is None else nuclear.hessian)
        pulled = objective.design.scores(self.residual)
        self.gradient, self.images = self.residual + A @ self.pull, (scores, pulled + scores @ self.pull)
        squares, V = gram_eigh(self.residual.T @ pulled)
        self.adjoint = np.sqrt(squares)[:, None] * V.T


class _Run(QuasiNewtonRun):
    """The same steps with other points, another seed, and inner products through K."""

    name = "The block kernel solver"

    def __init__(self, objective: Objective, solver: KernelBlocks, tol: float, max_iter: int) -> None:
        super().__init__(objective, solver.memory, tol, max_iter)
        self.spectrum = objective.design.leading(solver.leading)
        self.memory = Memory(objective.Y.shape, solver.memory, joint=True, images=True)

    def first(self, start: Start, scores: Any = None) -> Function:
        """`start`, or the minimiser of the mean model without the nuclear norm."""
        objective, zero = self.objective, np.zeros(self.objective.Y.shape)
        if start is None:
            eye = np.eye(zero.shape[1])
            residual = objective.loss.evaluate(objective.Y, zero, objective.sample_weight)[1]
            start = -self._inverse(zero, objective.ridge.weight * eye)(residual)
        return Function(objective, start, objective.design.scores(start), max(self.tol, SMOOTHED))

    def seed(self, now: Any) -> InverseHessian:
        """The inverse Hessian of the mean model."""
        return self._inverse(now.scores, now.pull)

    def _inverse(self, scores: FloatArray, pull: FloatArray) -> InverseHessian:
        """Exact in the eigenvectors that are known; the others are taken for equal."""
        values, U, rest = self.spectrum
        H = MeanModel(self.objective, scores).hessian
        inside, outside = (PencilSolver(v, H, pull) for v in (values, np.array([rest])))

        def inverse(G: FloatArray) -> FloatArray:
            known = U.T @ G
            return outside(G - U @ known) + U @ inside(known)

        return inverse

    def tidy(self) -> None:
        """Nothing: the rank of a function is not that of its coefficients."""
