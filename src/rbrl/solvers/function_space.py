r"""Kernel models of more rows than can be decomposed: quasi-Newton in the space of the functions themselves.

The variable is the function :math:`\Phi(X)'A`, held as A with its scores KA. A gradient in that space is
:math:`R + \lambda_1 A + AH`, with R the loss gradient in the scores and H the nuclear norm as a reweighted ridge; inner
products are :math:`\operatorname{tr}(A'KB)`. So an iteration is two products with K, as for any other design, and the part
of the spectrum that stands out is enough for a preconditioner, because what is left curvatures little beside the ridge.
"""

from dataclasses import dataclass

import numpy as np

from rbrl._common.linalg import small_eigh
from rbrl.problem.objective import SmoothedNuclear
from rbrl.solvers.base import SolverResult, relative_gap, warn_unconverged, way_out
from rbrl.solvers.certificate import lower_bound
from rbrl.solvers.descent import wolfe_step
from rbrl.solvers.preconditioner import PencilSolver


@dataclass(frozen=True)
class KernelBlocks:
    """Limited-memory quasi-Newton method over a :class:`rbrl.problem.BlockKernel`, with a certificate.

    Parameters
    ----------
    memory : int, default=20
        Steps remembered.
    leading : int, default=200
        Eigenvectors of the kernel in the preconditioner.
    """

    memory: int = 20
    leading: int = 200

    def solve(self, objective, start=None, tol=1e-4, max_iter=1000):
        """Minimise `objective`; return a :class:`SolverResult` whose weights are the coefficients A."""
        run = _Run(objective, self, tol)
        run.begin(start)
        while run.gap() > tol and not run.stuck and len(run.history) < max_iter:
            run.step()
        result = run.result(tol)
        if not result.converged:
            warn_unconverged("The block kernel solver", result, tol, max_iter, way_out(objective))
        return result


class _Function:
    """A function by its coefficients A and scores KA, with everything known there."""

    def __init__(self, objective, A, scores, tol):
        self.A, self.scores = A, scores
        self.loss, self.residual = objective.loss.evaluate(objective.Y, scores, objective.sample_weight)
        self.gram = A.T @ scores
        self.gram = 0.5 * (self.gram + self.gram.T)
        self.value = self.smooth_value = self.loss.value + 0.5 * objective.ridge.weight * float(np.trace(self.gram))
        self.nuclear, self.pull = None, objective.ridge.weight * np.eye(A.shape[1])
        if weight := objective.nuclear.weight:
            self.nuclear = SmoothedNuclear(self.gram, weight)
            self.value += self.nuclear.exact
            self.nuclear.smooth(0.1 * tol * self.value / (weight * A.shape[1]))
            self.smooth_value += self.nuclear.value
            self.pull = self.pull + self.nuclear.hessian

    def differentiate(self, objective):
        """Gradient and its product with K, and the lower bound that comes with them: one product."""
        K_residual = objective.design.scores(self.residual)
        self.gradient = self.residual + self.A @ self.pull
        self.K_gradient = K_residual + self.scores @ self.pull
        squares, V = small_eigh(self.residual.T @ K_residual)
        adjoint = np.sqrt(np.maximum(squares, 0.0))[:, None] * V.T
        return lower_bound(objective, self.A, self.loss, adjoint)


class _Run:
    """One minimisation: the current function, the pairs remembered, and the best bound so far."""

    def __init__(self, objective, solver, tol):
        self.objective, self.solver, self.tol = objective, solver, tol
        self.before = objective.evaluations
        self.spectrum = objective.design.leading(solver.leading)
        self.pairs, self.history, self.costs, self.bound, self.stuck = [], [], [], 0.0, False
        self.dual_scores = None

    def begin(self, start):
        """Go to `start`, or to the minimiser of the mean model without the nuclear norm."""
        objective = self.objective
        if start is None:
            zero = np.zeros(objective.Y.shape)
            here = _Function(objective, zero, zero, self.tol)
            start = -self._inverse(here, objective.ridge.weight * np.eye(zero.shape[1]))(here.residual)
        self.arrive(_Function(objective, start, objective.design.scores(start), self.tol))

    def arrive(self, function):
        self.now = function
        self.history.append(function.value)
        self.costs.append(self.objective.evaluations - self.before)
        bound = function.differentiate(self.objective)
        if bound >= self.bound:
            self.bound, self.dual_scores = bound, function.scores

    def gap(self):
        return relative_gap(self.now.value, self.bound)

    def step(self):
        """One quasi-Newton step, its length searched on scores that are known."""
        objective, now = self.objective, self.now
        D = self._direction()
        slope = float(np.vdot(now.K_gradient, D))
        if not slope < 0:
            self.pairs = []
            D = self._direction()
            slope = float(np.vdot(now.K_gradient, D))
        KD, trial = objective.design.scores(D), {}

        def along(t):
            here = trial["at"] = _Function(objective, now.A + t * D, now.scores + t * KD, self.tol)
            if now.nuclear is not None:
                here.nuclear.smooth(now.nuclear.width)
            value = here.smooth_value if now.nuclear is None else here.value - here.nuclear.exact + here.nuclear.value
            pull = objective.ridge.weight * np.eye(len(here.gram)) + (
                0 if now.nuclear is None else here.nuclear.hessian
            )
            return value, float(np.vdot(here.residual, KD) + np.sum((here.A.T @ KD) * pull))

        if slope < 0 and wolfe_step(along, now.smooth_value, slope):
            at = trial["at"]
            self.arrive(_Function(objective, at.A, at.scores, self.tol))
            self._remember(now)
        elif self.pairs:
            self.pairs = []
        else:
            self.stuck = True

    def _remember(self, old):
        now = self.now
        s, Ks = now.A - old.A, now.scores - old.scores
        y, Ky = now.gradient - old.gradient, now.K_gradient - old.K_gradient
        along = float(np.vdot(Ks, y))
        if along > 1e-10 * np.sqrt(abs(float(np.vdot(s, Ks)) * float(np.vdot(y, Ky)))):
            self.pairs = [*self.pairs, (s, y, Ks, Ky, along)][-self.solver.memory :]

    def _direction(self):
        """Minus the inverse Hessian times the gradient: two loops, with inner products through K."""
        seed, q, taken = self._inverse(self.now, self.now.pull), self.now.gradient.copy(), []
        for _, y, Ks, _, along in reversed(self.pairs):
            taken.append(float(np.vdot(Ks, q)) / along)
            q -= taken[-1] * y
        q = seed(q)
        for (s, _, _, Ky, along), a in zip(self.pairs, reversed(taken)):
            q += (a - float(np.vdot(Ky, q)) / along) * s
        return -q

    def _inverse(self, function, pull):
        """Inverse Hessian of the mean model, exact in the eigenvectors that are known; the others bend alike."""
        objective, (values, U, rest) = self.objective, self.spectrum
        H = objective.loss.label_hessian(objective.Y, function.scores, objective.sample_weight) / len(objective.Y)
        none = np.zeros_like(H)
        inside, outside = (PencilSolver(v, H, 0.0, none, pull) for v in (values, np.array([rest])))

        def inverse(G):
            known = U.T @ G
            return outside(G - U @ known) + U @ inside(known)

        return inverse

    def result(self, tol):
        now = self.now
        return SolverResult(
            weights=now.A,
            objective=now.value,
            gap=self.gap(),
            evaluations=self.objective.evaluations - self.before,
            n_iter=len(self.history),
            converged=self.gap() <= tol,
            history=np.array(self.history),
            costs=np.array(self.costs),
            scores=now.scores,
            dual_scores=self.dual_scores,
        )
