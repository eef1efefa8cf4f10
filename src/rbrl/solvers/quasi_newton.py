"""The default solver: quasi-Newton in whitened coordinates, preconditioned in blocks of labels, with a certificate."""

from dataclasses import dataclass

import numpy as np

from rbrl.solvers.base import SolverResult, relative_gap, warn_unconverged
from rbrl.solvers.certificate import lower_bound
from rbrl.solvers.factored import descend, join_violations, split
from rbrl.solvers.line_search import Ray, step_lengths
from rbrl.solvers.memory import Memory
from rbrl.solvers.preconditioner import label_blocks
from rbrl.solvers.smoothing import SmoothedNuclear

# Below this share of the largest, a singular value is on its way to zero.
FADING = 1e-3


class Iterate:
    """Weights with everything known there: scores, loss, gradient, penalties."""

    def __init__(self, objective, W, scores, tol):
        self.W, self.scores = W, scores
        self.loss, residual = objective.loss.evaluate(objective.Y, scores, objective.sample_weight)
        self.evaluations = objective.evaluations
        self.adjoint = objective.design.adjoint(residual)
        self.ridge = objective.ridge.value(W)
        self.smooth_value = self.value = self.loss.value + self.ridge
        self.smooth_gradient = self.adjoint + objective.ridge.gradient(W)
        self.gradient, self.nuclear = self.smooth_gradient, None
        if objective.nuclear.weight:
            self._add_nuclear(objective.nuclear.weight, tol)

    def _add_nuclear(self, weight, tol):
        self.nuclear = SmoothedNuclear(self.W.T @ self.W, weight)
        self.value += self.nuclear.exact
        self.nuclear.smooth(0.1 * tol * self.value / (weight * self.W.shape[1]))
        self.smooth_value += self.nuclear.value
        self.gradient = self.smooth_gradient + self.W @ self.nuclear.hessian

    def fades(self):
        return self.nuclear is not None and self.nuclear.sigma[0] < FADING * self.nuclear.sigma[-1]


@dataclass(frozen=True)
class QuasiNewton:
    memory: int = 20

    def solve(self, objective, start=None, tol=1e-4, max_iter=1000):
        run = _Run(objective, tol, max_iter, self.memory)
        run.begin(start)
        while not run.finished():
            if run.now.fades():
                run.factored_round()
            else:
                run.step()
        result = run.result()
        if not result.converged:
            warn_unconverged("The quasi-Newton solver", result, tol, max_iter)
        return result


class _Run:
    def __init__(self, objective, tol, max_iter, memory):
        self.objective, self.tol, self.max_iter, self.memory_size = objective, tol, max_iter, memory
        self.before = objective.evaluations
        self.bound, self.n_iter, self.stuck = 0.0, 0, False
        self.history, self.costs = [], []
        self.joint = not _weakly_coupled(objective)
        self.memory, self.old, self.tight = None, None, 0.3

    def begin(self, start):
        ob = self.objective
        if start is None:
            start = model_start(ob)
        self.arrive(start, ob.design.scores(start))

    def arrive(self, W, scores):
        self.now = Iterate(self.objective, W, scores, self.tol)
        self.note(self.now.value, self.now.evaluations)
        self.bound = max(self.bound, lower_bound(self.objective, W, self.now.loss, self.now.adjoint))
        self.gap = relative_gap(self.now.value, self.bound)

    def note(self, value, evaluations=None):
        self.history.append(value)
        self.costs.append((self.objective.evaluations if evaluations is None else evaluations) - self.before)

    def finished(self):
        return self.gap <= self.tol or self.n_iter >= self.max_iter or self.stuck

    def mean_hessian(self, scores):
        ob = self.objective
        return ob.loss.label_hessian(ob.Y, scores, ob.sample_weight) / len(scores)

    def step(self):
        self.n_iter += 1
        ob, now = self.objective, self.now
        if self.memory is None:
            self.memory = Memory(now.W.shape, self.memory_size, self.joint)
        if self.old is not None:
            self.memory.push(now.W - self.old.W, now.gradient - self.old.gradient)
        seed = label_blocks(ob, self.mean_hessian(now.scores), now.nuclear.hessian if now.nuclear else 0.0)
        D, slope = self.memory.descent(now.gradient, seed)
        scores = ob.design.scores(D)
        t = step_lengths(Ray(ob, now, D, scores), slope, self.joint)
        if not t.any():
            self.stuck = self.old is None
            self.memory.clear()
            self.old = None
            return
        self.old = now
        self.arrive(now.W + D * t, now.scores + scores * t)

    def factored_round(self):
        ob, now = self.objective, self.now
        self.memory = self.old = None
        U, V = split(now.W, now.nuclear.sigma, now.nuclear.V)
        joined = join_violations(ob, U, V, now.smooth_gradient, self.mean_hessian(now.scores))
        U, V = joined or (U, V)
        point, used = descend(ob, U, V, self.tight * self.tol, self.max_iter - self.n_iter, self.memory_size, self.note)
        self.n_iter += used
        self.tight *= 0.2
        self.stuck = self.tight < 1e-12
        self.arrive(point.U @ point.V.T, point.scores)

    def result(self):
        now = self.now
        return SolverResult(now.W, now.value, self.gap, self.objective.evaluations - self.before, self.n_iter, self.gap <= self.tol,
                            np.array(self.history), now.scores, np.array(self.costs))


def _weakly_coupled(objective):
    n_negative = np.mean(np.count_nonzero(objective.Y < 0, axis=1))
    from rbrl.losses import PairwiseSquaredHinge, WeightedSum
    ranking = sum(c for c, l in objective.loss.terms if isinstance(l, PairwiseSquaredHinge)) if isinstance(objective.loss, WeightedSum) else 0
    return ranking / max(n_negative, 1e-9) <= 2 and objective.nuclear.weight <= 1


def model_start(objective, rounds=20):
    """Minimiser of the objective with the loss replaced by its quadratic model at zero scores: half an evaluation."""
    zero = np.zeros(objective.Y.shape)
    _, residual = objective.loss.evaluate(objective.Y, zero, objective.sample_weight)
    H = objective.loss.label_hessian(objective.Y, zero, objective.sample_weight) / len(zero)
    pull = -objective.design.adjoint(residual)
    W = label_blocks(objective, H)(pull)
    for _ in range(rounds if objective.nuclear.weight else 0):
        nuclear = SmoothedNuclear(W.T @ W, objective.nuclear.weight)
        nuclear.smooth(1e-4 * nuclear.sigma[-1])
        W = label_blocks(objective, H, nuclear.hessian)(pull)
    return W
