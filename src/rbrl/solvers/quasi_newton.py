"""The default solver: quasi-Newton in whitened coordinates, preconditioned in blocks of labels, with a certificate."""

from dataclasses import dataclass, replace

import numpy as np

from rbrl._validation import check_choice
from rbrl.solvers.base import SolverResult, relative_gap, warn_unconverged
from rbrl.solvers.certificate import lower_bound
from rbrl.solvers.factored import descend, join_violations, split
from rbrl.solvers.iterate import FADING, Iterate, best_scale, label_coupling, mean_hessian, model_start
from rbrl.solvers.line_search import Ray, step_lengths
from rbrl.solvers.memory import Memory
from rbrl.solvers.preconditioner import full_hessian, full_hessian_cost, label_blocks

# Measured on 180 problems: with less coupling than this, a quasi-Newton method per label needs fewer evaluations.
WEAK_COUPLING = 0.9
# Steps remembered may take this much memory; five are kept in any case.
MEMORY_BYTES = 2**28
# The full Hessian is a matrix of this many rows at most.
FULL_HESSIAN_SIZE = 2500


@dataclass(frozen=True)
class QuasiNewton:
    """Limited-memory quasi-Newton method, started and preconditioned by the mean quadratic model of the loss.

    It works on the weights while their rank is full, and on factors U V' once singular values fade. A small problem that
    resists is solved again along a path of falling ridges, with the full Hessian as preconditioner.

    Parameters
    ----------
    memory : int, default=20
        Steps remembered.
    stop : {"gap", "progress"}, default="gap"
        "gap": the certified relative gap is at most `tol`. "progress": a step gained less than `tol` of the objective,
        which proves nothing but is cheap and selects the same models in a search; the gap is still reported.
    """

    memory: int = 20
    stop: str = "gap"

    def solve(self, objective, start=None, tol=1e-4, max_iter=1000, scores=None):
        """Minimise `objective`; return a :class:`SolverResult`. The scores of `start`, if known, save a product."""
        check_choice("QuasiNewton", "stop", self.stop, ("gap", "progress"))
        run = _Run(objective, self, tol, max_iter)
        run.begin(start, scores)
        while not run.finished():
            run.advance()
        result = run.result()
        if not result.converged:
            warn_unconverged("The quasi-Newton solver", result, tol, max_iter)
        return result


class _Run:
    """One minimisation: the current iterate, what is remembered, and the best bound so far."""

    def __init__(self, objective, solver, tol, max_iter):
        self.objective, self.solver, self.tol, self.max_iter = objective, solver, tol, max_iter
        self.before = objective.evaluations
        self.history, self.costs = [], []
        self.n_iter, self.bound, self.gained, self.stuck = 0, 0.0, np.inf, False
        self.memory = self.old = None
        self.round_tol = 0.3 * tol
        self.patience = _patience(objective, max_iter)
        self.full = False

    def begin(self, start, scores=None):
        """Go to `start`, or to the minimiser of the mean model."""
        W = model_start(self.objective) if start is None else start
        scores = self.objective.design.scores(W) if scores is None else scores
        if start is None:
            W, scores = best_scale(self.objective, W, scores)
        self.joint = label_coupling(self.objective, W) > WEAK_COUPLING
        self.n_iter += 1
        self.arrive(W, scores)

    def arrive(self, W, scores):
        """Evaluate at W, whose scores are known."""
        last = self.history[-1] if self.history else np.inf
        self.now = Iterate(self.objective, W, scores, self.tol)
        self.note(self.now.value, self.now.evaluations)
        self.gained = (last - self.now.value) / self.now.value if self.now.value > 0 else 0.0
        if self.solver.stop == "gap":
            self.certify()

    def certify(self):
        self.bound = max(self.bound, lower_bound(self.objective, self.now.W, self.now.loss, self.now.adjoint))

    def note(self, value, evaluations=None):
        """Record an objective value and what it had cost."""
        self.history.append(value)
        self.costs.append((self.objective.evaluations if evaluations is None else evaluations) - self.before)

    def gap(self):
        return relative_gap(self.now.value, self.bound)

    def converged(self):
        if self.solver.stop == "gap":
            return self.gap() <= self.tol
        return self.n_iter >= 2 and self.gained <= self.tol

    def finished(self):
        return self.converged() or self.stuck or self.n_iter >= self.max_iter

    def advance(self):
        """The step that suits the iterate."""
        if self.now.rank_fades():
            self.factored_round()
        elif self.n_iter >= self.patience and not self.full:
            self.follow_path()
        else:
            self.step()

    def step(self):
        """One quasi-Newton step on the weights."""
        self.n_iter += 1
        objective, now = self.objective, self.now
        if self.memory is None:
            size = 5 if self.full else min(self.solver.memory, max(5, MEMORY_BYTES // (16 * now.W.size)))
            self.memory = Memory(now.W.shape, size, self.joint)
        if self.old is not None:
            self.memory.push(now.W - self.old.W, now.gradient - self.old.gradient)
        D, slope = self.memory.descent(now.gradient, self._seed())
        scores = objective.design.scores(D)
        t = step_lengths(Ray(objective, now, D, scores), slope, self.joint)
        if t.any():
            self.old = now
            self.arrive(now.W + D * t, now.scores + scores * t)
        else:
            self.stuck = self.old is None
            self.memory = self.old = None

    def _seed(self):
        now = self.now
        if self.full:
            return full_hessian(self.objective, now.scores, now.nuclear_hessian())
        return label_blocks(self.objective, mean_hessian(self.objective, now.scores), now.nuclear_hessian())

    def factored_round(self):
        """Descend in factors, the directions that the last round missed included."""
        objective, now = self.objective, self.now
        self.memory = self.old = None
        factors = split(now.W, now.nuclear.sigma, now.nuclear.V)
        H = mean_hessian(objective, now.scores)
        U, V = join_violations(objective, *factors, now.smooth_gradient, H) or factors
        point, used = descend(
            objective, U, V, self.round_tol, self.max_iter - self.n_iter, self.solver.memory, self.note
        )
        self.n_iter += used + 1
        self.round_tol *= 0.2
        self.stuck = self.round_tol < 1e-15
        self.arrive(point.U @ point.V.T, point.scores)

    def follow_path(self):
        """Start again from a larger ridge, and come down with the full Hessian: where the mean model is far off, active
        sets that change little from ridge to ridge are found in few steps."""
        self.full = self.joint = True
        self.memory = self.old = None
        W = None
        for ridge in _falling_ridges(self.objective.ridge.weight):
            run = _Run(self.objective.with_ridge(ridge), replace(self.solver, stop="gap"), 1e-2, self.max_iter)
            run.full, run.n_iter = True, self.n_iter
            run.begin(W)
            run.joint = True
            while not run.finished():
                run.advance()
            W, self.n_iter = run.now.W, run.n_iter
        if W is not None:
            self.arrive(W, self.objective.design.scores(W))

    def tidy(self):
        """Drop the singular values that fade, or all of them, where that costs no more than a tenth of `tol`."""
        now, objective = self.now, self.objective
        if now.nuclear is None:
            return
        V = now.nuclear.V[:, now.nuclear.sigma > FADING * now.nuclear.sigma[-1]]
        for projection in (np.zeros((len(V), len(V))), V @ V.T):
            lean = objective.at(now.W @ projection, now.scores @ projection)
            if lean.value <= now.value + 0.1 * self.tol * self.bound:
                self.now, self.history[-1] = lean, lean.value
                return

    def result(self):
        if self.solver.stop == "progress":
            self.certify()
        self.tidy()
        return SolverResult(
            weights=self.now.W,
            objective=self.now.value,
            gap=self.gap(),
            evaluations=self.objective.evaluations - self.before,
            n_iter=self.n_iter,
            converged=self.converged(),
            history=np.array(self.history),
            costs=np.array(self.costs),
            scores=self.now.scores,
        )


def _patience(objective, max_iter):
    """Iterations after which the full Hessian pays: the cost of ten factorisations, at most half of what is allowed."""
    if np.prod(objective.shape) > FULL_HESSIAN_SIZE:
        return np.inf
    return np.clip(10 * full_hessian_cost(objective), 40, max(max_iter // 2, 40))


def _falling_ridges(ridge, first=1.0):
    """Ridges from `first` down to ten times `ridge`, in factors of ten."""
    if ridge <= 0:
        return []
    steps = int(np.floor(np.log10(first / ridge) + 1e-9)) if ridge < first else 0
    return [ridge * 10.0**k for k in range(steps, 0, -1)]
