"""The default solver: quasi-Newton in whitened coordinates, preconditioned in blocks of labels, with a certificate."""

from dataclasses import dataclass, replace

import numpy as np

from rbrl._common.checks import check_choice
from rbrl.problem.objective import SmoothedNuclear
from rbrl.solvers.base import SolverResult, relative_gap, warn_unconverged, way_out
from rbrl.solvers.certificate import lower_bound
from rbrl.solvers.descent import Memory, find_step
from rbrl.solvers.factored import FAINT, descend, join_violations, split
from rbrl.solvers.preconditioner import MeanModel, full_hessian, full_hessian_cost

# Below this share of the largest, a singular value is on its way to zero.
FADING = 1e-3


class Iterate:
    """Weights with everything known there: scores, loss, penalties, gradient.

    Attributes
    ----------
    value : float
        The objective; `smooth_value` has the smoothed nuclear norm in it.
    gradient : array
        Gradient of `smooth_value`; `smooth_gradient` is that of loss and ridge alone.
    evaluations : float
        What the objective had cost when `value` was known.
    """

    def __init__(self, objective, W, scores, tol):
        self.W, self.scores = W, scores
        self.loss, residual = objective.loss.evaluate(objective.Y, scores, objective.sample_weight)
        self.evaluations = objective.evaluations
        self.ridge = objective.ridge.value(W)
        self.smooth_value = self.value = self.loss.value + self.ridge
        self.adjoint = objective.design.adjoint(residual)
        self.gradient = self.smooth_gradient = self.adjoint + objective.ridge.gradient(W)
        self.nuclear = None
        if objective.nuclear.weight:
            self._add_nuclear(objective.nuclear.weight, tol)

    def _add_nuclear(self, weight, tol):
        self.nuclear = SmoothedNuclear.at(self.W, weight)
        self.value += self.nuclear.exact
        self.nuclear.smooth(0.1 * tol * self.value / (weight * len(self.nuclear.sigma)))
        self.smooth_value += self.nuclear.value
        self.gradient = self.smooth_gradient + self.nuclear.reweigh(self.W)

    def rank_fades(self):
        """Whether some singular value is on its way to zero."""
        return self.nuclear is not None and self.nuclear.sigma[0] < FADING * self.nuclear.sigma[-1]


def model_start(objective, rounds=20):
    """Minimiser of the objective with its loss replaced by the mean quadratic model at zero scores.

    The nuclear norm is met by reweighting, which needs no product: the whole start costs half an evaluation. Its rank is
    that of the optimum more often than not.
    """
    zero = objective.zero_scores()
    _, residual = objective.loss.evaluate(objective.Y, zero, objective.sample_weight)
    model = MeanModel(objective, zero)
    pull = -objective.design.adjoint(residual)
    W = model.inverse()(pull)
    for _ in range(rounds if objective.nuclear.weight else 0):
        nuclear = _slightly_smoothed(objective, W)
        if nuclear is None:
            break
        W = model.inverse(nuclear)(pull)
    return W


def best_scale(objective, W, scores, halvings=12):
    """W and its scores, halved until the objective stops falling: the model overshoots where columns are correlated."""
    value = objective.value_at(W, scores)
    for _ in range(halvings):
        smaller = objective.value_at(0.5 * W, 0.5 * scores)
        if smaller >= value:
            break
        W, scores, value = 0.5 * W, 0.5 * scores, smaller
    return W, scores


def label_coupling(objective, W):
    """How much labels depend on one another, off-diagonal against diagonal, in the mean Hessian at zero scores.

    The larger of two figures: for the loss alone, and for a typical column of the design with the penalties at W.
    """
    if objective.shape[0] == 0:
        return 0.0
    H = MeanModel(objective, objective.zero_scores()).hessian
    typical = np.median(objective.design.gram_diagonal) * H
    typical = typical + objective.ridge.weight * np.median(objective.ridge.row_weights) * np.eye(len(H))
    nuclear = _slightly_smoothed(objective, W) if objective.nuclear.weight else None
    if nuclear is not None and not nuclear.left:
        typical = typical + nuclear.hessian
    return max(_off_diagonal(H), _off_diagonal(typical))


def _slightly_smoothed(objective, W):
    """The nuclear norm at W, smooth at 1e-4 of its largest singular value; None where W is zero."""
    nuclear = SmoothedNuclear.at(W, objective.nuclear.weight)
    if nuclear.sigma[-1] == 0:
        return None
    nuclear.smooth(1e-4 * nuclear.sigma[-1])
    return nuclear


def _off_diagonal(M):
    trace = float(np.trace(M))
    return (float(np.abs(M).sum()) - trace) / trace if trace > 0 else 0.0


# Measured on 180 problems: with less coupling than this, a quasi-Newton method per label needs fewer evaluations.
WEAK_COUPLING = 0.9
# Steps remembered may take this much memory; five are kept in any case.
MEMORY_BYTES = 2**28
# Scores shrunk by this share show the terms of the loss that are about to become active.
CAUTION = 0.01
# Factors pay at once where ranks are small, or at this share of the full rank; elsewhere when the last ten steps on the
# weights together gained less than SLOW of the tolerance.
SMALL_RANK, LOW_RANK, SLOW = 50, 0.7, 0.5
# Steps on the weights, in coordinates that are not whitened, before their rank is believed.
FIRST_STEPS = 12
# Iterations in factors between two steps with the full Hessian.
ROUND = 50
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
            warn_unconverged("The quasi-Newton solver", result, tol, max_iter, way_out(objective))
        return result


class _Run:
    """One minimisation: the current iterate, what is remembered, and the best bound so far."""

    def __init__(self, objective, solver, tol, max_iter):
        self.objective, self.solver, self.tol, self.max_iter = objective, solver, tol, max_iter
        self.before = objective.evaluations
        self.history, self.costs = [], []
        self.n_iter, self.bound, self.gained, self.stuck = 0, 0.0, np.inf, False
        self.dual_scores = None
        self.memory, self.old, self.steps = None, None, 0
        self.round_tol = 0.3 * tol
        self.patience = _patience(objective, max_iter)
        self.full, self.caution, self.stalled, self.lost = False, 0.0, False, False

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
        bound = lower_bound(self.objective, self.now.W, self.now.loss, self.now.adjoint)
        if bound >= self.bound:
            self.bound, self.dual_scores = bound, self.now.scores
        self.objective.reached(self.gap())

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
        return self.converged() or (self.stuck and not self.impatient()) or self.n_iter >= self.max_iter

    def impatient(self):
        """Whether the full Hessian has its turn: after some iterations, or half as many if nothing else helps."""
        return not self.full and self.n_iter >= (0.5 if self.stuck else 1.0) * self.patience

    def advance(self):
        """The step that suits the iterate; with the full Hessian, factors are for when steps on the weights stall."""
        if self.impatient():
            self.follow_path()
        elif self.now.rank_fades() and (self.stalled if self.full else self.settled() and self.factors_pay()):
            self.factored_round()
        else:
            self.step()

    def settled(self):
        """Whether the rank can be believed: in whitened coordinates at once, in others after some steps or if none helps."""
        return self.objective.design.whitened or self.n_iter > FIRST_STEPS or self.lost

    def factors_pay(self):
        """Whether the rank is so low that factors are the better weights, or the steps on the weights so small."""
        sigma = self.now.nuclear.sigma
        if len(sigma) <= SMALL_RANK or np.count_nonzero(sigma > FADING * sigma[-1]) <= LOW_RANK * len(sigma):
            return True
        return self.lost or (
            self.steps > 10 and self.history[-11] - self.history[-1] <= SLOW * self.tol * self.history[-1]
        )

    def step(self):
        """One quasi-Newton step on the weights."""
        self.n_iter, self.steps = self.n_iter + 1, self.steps + 1
        objective, now = self.objective, self.now
        if self.memory is None:
            size = 5 if self.full else min(self.solver.memory, max(5, MEMORY_BYTES // (16 * now.W.size)))
            self.memory = Memory(now.W.shape, size, self.joint)
        if self.old is not None:
            self.memory.push(now.W - self.old.W, now.gradient - self.old.gradient)
        D, slope = self.memory.descent(now.gradient, self._seed())
        scores = objective.design.scores(D)
        t = find_step(objective, now, D, scores, slope, self.joint)
        if t.any():
            self.old = now
            self.arrive(now.W + D * t, now.scores + scores * t)
            self.stalled = self.gained <= 0.01 * min(self.gap(), 1.0)
        else:
            self.lose_the_way()

    def lose_the_way(self):
        """No step descends: forget the past, or expect terms of the loss to become active soon, or end."""
        if self.old is None:
            factors_wait = self.now.rank_fades() and (self.full or not self.settled())
            self.stuck = not (factors_wait or (self.full and self.caution == 0))
            self.caution, self.lost = CAUTION, True
        self.memory, self.old, self.stalled = None, None, True

    def _seed(self):
        now = self.now
        if self.full:
            return full_hessian(self.objective, (1 - self.caution) * now.scores, now.nuclear)
        return MeanModel(self.objective, now.scores).inverse(now.nuclear)

    def factored_round(self):
        """Descend in factors, the directions that the last round missed included."""
        objective, now = self.objective, self.now
        self.memory, self.old, self.stalled, self.steps = None, None, False, 0
        factors = split(now.W, now.nuclear, FAINT if self.full else 1e-4)
        H = MeanModel(objective, now.scores).hessian
        U, V = join_violations(objective, *factors, now.smooth_gradient, H) or factors
        allowed = min(self.max_iter - self.n_iter - 1, ROUND if self.full else max(self.patience - self.n_iter, 1))
        point, used = descend(
            objective, U, V, self.round_tol, allowed, 5 if self.full else self.solver.memory, self.note, self.full
        )
        self.n_iter += used + 1
        self.round_tol *= 0.2 if used < allowed else 1.0
        self.stuck = self.round_tol < 1e-15
        self.arrive(point.U @ point.V.T, point.scores)

    def follow_path(self):
        """Start again from a larger ridge, and come down with the full Hessian: where the mean model is far off, active
        sets that change little from ridge to ridge are found in few steps."""
        self.full, self.joint, self.stuck, self.round_tol = True, True, False, 0.3 * self.tol
        self.memory = self.old = None
        W, former = None, self.now
        ridges = _falling_ridges(self.objective.ridge.weight or self.objective.nuclear.weight)
        share = (self.max_iter - self.n_iter) // (2 * max(len(ridges), 1))
        for ridge in ridges:
            run = _Run(self.objective.with_ridge(ridge), replace(self.solver, stop="gap"), 1e-2, self.n_iter + share)
            run.full, run.n_iter = True, self.n_iter
            run.begin(W)
            run.joint = True
            while not run.finished():
                run.advance()
            W, self.n_iter = run.now.W, run.n_iter
        if W is not None:
            self.arrive(W, self.objective.design.scores(W))
        if former.value < self.now.value:
            self.now = former
            self.note(former.value)

    def tidy(self):
        """Drop the singular values that fade, or all of them, where that costs no more than a tenth of `tol`, nor the
        certificate."""
        objective, nuclear = self.objective, self.now.nuclear
        if nuclear is None:
            return
        # The Gram matrix blurs the smallest singular values: what is reported has the exact ones.
        now = self.now = objective.at(self.now.W, self.now.scores)
        limit = now.value + 0.1 * self.tol * self.bound
        if self.gap() <= self.tol:
            limit = max(now.value, min(limit, self.bound * (1 + self.tol)))
        _, V = nuclear.right_vectors(now.W, FADING)
        faded = [V] if V.shape[1] < len(nuclear.sigma) else []
        for basis in (V[:, :0], *faded):
            lean = objective.at((now.W @ basis) @ basis.T, (now.scores @ basis) @ basis.T)
            if lean.value <= limit:
                self.now = lean
                break
        self.history[-1] = self.now.value

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
            dual_scores=self.dual_scores,
        )


def _patience(objective, max_iter):
    """Iterations after which the full Hessian pays: the cost of ten factorisations, at most half of what is allowed."""
    if np.prod(objective.shape) > FULL_HESSIAN_SIZE or objective.lines_are_estimates:
        return np.inf
    return np.clip(10 * full_hessian_cost(objective), 40, max(max_iter // 2, 40))


def _falling_ridges(ridge, first=1.0):
    """Ridges from `first` down to ten times `ridge`, in factors of ten."""
    if ridge <= 0:
        return []
    steps = int(np.floor(np.log10(first / ridge) + 1e-9)) if ridge < first else 0
    return [ridge * 10.0**k for k in range(steps, 0, -1)]
