"""The default solver: quasi-Newton in whitened coordinates, preconditioned in blocks of labels, with a certificate."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbrl._common.checks import check_choice
from rbrl._common.typing import FloatArray
from rbrl.problem.objective import Objective
from rbrl.solvers.base import Run, SolverResult, Start
from rbrl.solvers.factored import FAINT, descend, join_violations, split
from rbrl.solvers.lbfgs import FADING, Iterate, Memory, Ray, first_descent, step_lengths
from rbrl.solvers.preconditioner import MeanModel, full_hessian, label_coupling, model_start

# Steps, in coordinates that are not whitened, before the rank of the weights is believed.
SETTLING_STEPS = 12
# Measured on 180 problems: with less coupling than this, a quasi-Newton method per label needs fewer evaluations.
WEAK_COUPLING = 0.9
# Steps remembered may take this much memory; five are kept in any case.
MEMORY_BYTES = 2**28
# Scores shrunk by this share show the terms of the loss that are about to become active.
CAUTION = 0.01
# Factors pay at once where ranks are small, or at this share of the full rank; elsewhere when the last ten steps on the
# weights together gained less than SLOW of the tolerance.
SMALL_RANK, LOW_RANK, SLOW = 50, 0.7, 0.5
# Iterations in factors between two steps with the full Hessian.
ROUND = 50
# Where a path of falling ridges starts.
HIGHEST_RIDGE = 1.0
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

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective, linear_design
    >>> from rbrl.solvers import QuasiNewton
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> result = QuasiNewton().solve(Objective(linear_design(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0))
    >>> result.weights.round(3).tolist(), result.gap <= 1e-4
    ([[0.5]], True)
    """

    memory: int = 20
    stop: str = "gap"

    def solve(
        self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000, scores: Any = None
    ) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult`. The scores of `start`, if known, save a product."""
        check_choice("QuasiNewton", "stop", self.stop, ("gap", "progress"))
        run = _Run(objective, self, tol, max_iter)
        run.begin(start, scores)
        while run.advance():
            pass
        run.tidy()
        return run.result(run.now.W, run.converged())


def best_scale(
    objective: Objective, W: FloatArray, scores: FloatArray, halvings: int = 12
) -> tuple[FloatArray, FloatArray]:
    """W and its scores, halved until the objective stops falling: the model overshoots where columns are correlated."""
    value = objective.value_at(W, scores)
    for _ in range(halvings):
        smaller = objective.value_at(0.5 * W, 0.5 * scores)
        if smaller >= value:
            break
        W, scores, value = 0.5 * W, 0.5 * scores, smaller
    return W, scores


class _Run(Run):
    """The current iterate, the one before it, and the memory of the steps between; and the turns that a run can take."""

    now: Iterate

    def __init__(self, objective: Objective, solver: QuasiNewton, tol: float, max_iter: int) -> None:
        super().__init__("The quasi-Newton solver", objective, tol, max_iter)
        self.solver, self.gained, self.joint = solver, np.inf, False
        self.memory: Memory | None = None
        self.old: Iterate | None = None
        self.steps, self.round_tol = 0, 0.3 * tol
        self.full, self.caution, self.stalled, self.lost = False, 0.0, False, False
        # The full Hessian pays after iterations that cost as much as ten factorisations, at most half of those allowed.
        self.patience = np.inf
        if np.prod(objective.shape) <= FULL_HESSIAN_SIZE and objective.lines_are_exact():
            (n, k), l = objective.design.shape, objective.Y.shape[1]
            # Its flops, ten times faster in such large products, in iterations of the quasi-Newton method.
            cost = (n * k**2 * l * (l + 1) + (k * l) ** 3 / 3) / max(10 * 4 * n * k * l, 1)
            self.patience = np.clip(10 * cost, 40, max(max_iter // 2, 40))

    def begin(self, start: Start, scores: Any = None) -> None:
        """Go to `start`, or to the minimiser of the mean model."""
        W = model_start(self.objective) if start is None else start
        scores = self.objective.design.scores(W) if scores is None else scores
        if start is None:
            W, scores = best_scale(self.objective, W, scores)
        self.joint = label_coupling(self.objective, W) > WEAK_COUPLING
        self.n_iter += 1
        self.arrive(W, scores)

    def arrive(self, W: FloatArray, scores: Any) -> None:
        """Evaluate at W, whose scores are known."""
        last = self.history[-1] if self.history else np.inf
        self.now = Iterate(self.objective, W, scores, self.tol)
        self.note(self.now.value, self.now.evaluations)
        self.gained = (last - self.now.value) / self.now.value if self.now.value > 0 else 0.0
        if self.solver.stop == "gap":
            self.certify(W, self.now.adjoint)

    def converged(self) -> bool:
        """Whether the stopping rule is met."""
        if self.solver.stop == "gap":
            return self.gap() <= self.tol
        return self.n_iter >= 2 and self.gained <= self.tol

    def advance(self) -> bool:
        """Take the step that suits the iterate, if there is one more to take; return whether there was.

        With the full Hessian, factors are for when steps on the weights stall.
        """
        # The full Hessian has its turn after some iterations, or half as many if nothing else helps.
        impatient = not self.full and self.n_iter >= (0.5 if self.stuck else 1.0) * self.patience
        if self.converged() or (self.stuck and not impatient) or self.n_iter >= self.max_iter:
            return False
        if impatient:
            self.follow_path()
        elif self.now.rank_fades and (self.stalled if self.full else self.settled() and self.factors_pay()):
            self.factored_round()
        else:
            self.step()
        return True

    def settled(self) -> bool:
        """Whether the rank can be believed; if no step helps, it has to be."""
        return self.objective.design.whitened or self.n_iter > SETTLING_STEPS or self.lost

    def factors_pay(self) -> bool:
        """Whether the rank is so low that factors are the better weights, or the steps on the weights so small."""
        sigma = self.now.nuclear.sigma
        if len(sigma) <= SMALL_RANK or np.count_nonzero(sigma > FADING * sigma[-1]) <= LOW_RANK * len(sigma):
            return True
        slow = self.steps > 10 and self.history[-11] - self.history[-1] <= SLOW * self.tol * self.history[-1]
        return self.lost or slow

    def step(self) -> None:
        """One quasi-Newton step on the weights."""
        self.n_iter, self.steps = self.n_iter + 1, self.steps + 1
        objective, now = self.objective, self.now
        if self.memory is None:
            size = 5 if self.full else min(self.solver.memory, max(5, MEMORY_BYTES // (16 * now.W.size)))
            self.memory = Memory(now.W.shape, size, self.joint)
        if self.old is not None:
            self.memory.push(now.W - self.old.W, now.gradient - self.old.gradient)
        if self.full:
            seed = full_hessian(objective, (1 - self.caution) * now.scores, now.nuclear)
        else:
            seed = MeanModel(objective, now.scores).inverse(now.nuclear)
        D, slope = self.memory.descent(now.gradient, seed)
        scores = objective.design.scores(D)
        t = step_lengths(Ray(objective, now, D, scores), slope, self.joint)
        if not objective.lines_are_exact():
            ray = Ray(objective, now, D, scores, objective.loss.exact_line)
            t = first_descent(ray, t if t.any() else t + 1, self.joint)
        if t.any():
            self.old = now
            self.arrive(now.W + D * t, now.scores + scores * t)
            self.stalled = self.gained <= 0.01 * min(self.gap(), 1.0)
        else:
            self.lose_the_way()

    def lose_the_way(self) -> None:
        """No step descends: forget the past, or expect terms of the loss to become active soon, or end."""
        if self.old is None:
            factors_wait = self.now.rank_fades and (self.full or not self.settled())
            self.stuck = not (factors_wait or (self.full and self.caution == 0))
            self.caution, self.lost = CAUTION, True
        self.memory, self.old, self.stalled = None, None, True

    def factored_round(self) -> None:
        """Descend in factors, the directions that the last round missed included."""
        objective, now = self.objective, self.now
        self.memory, self.old, self.stalled, self.steps = None, None, False, 0
        factors = split(now.W, now.nuclear, FAINT if self.full else min(max(self.round_tol, 1e-4), FADING))
        H, spare = MeanModel(objective, now.scores).hessian, self.round_tol * now.value
        U, V = join_violations(objective, *factors, now.smooth_gradient, H, spare=spare) or factors
        most = ROUND if self.full else max(self.patience - self.n_iter, 1)
        allowed: Any = min(self.max_iter - self.n_iter - 1, most)
        point, used = descend(
            objective, U, V, self.round_tol, allowed, 5 if self.full else self.solver.memory, self.note, self.full
        )
        self.n_iter += used + 1
        self.round_tol *= 0.2 if used < allowed else 1.0
        self.stuck = self.round_tol < 1e-15
        self.arrive(point.U @ point.V.T, point.scores)

    def follow_path(self) -> None:
        """Start again from a larger ridge, and come down with the full Hessian: where the mean model is far off, active
        sets that change little from ridge to ridge are found in few steps."""
        self.full, self.joint, self.stuck, self.round_tol = True, True, False, 0.3 * self.tol
        self.memory = self.old = None
        W, former, ridges = None, self.now, []
        lowest = self.objective.ridge.weight or self.objective.nuclear.weight
        if 0 < lowest < HIGHEST_RIDGE:
            # Down to ten times the ridge, or the nuclear weight, of the problem, in factors of ten.
            ridges = [lowest * 10.0**k for k in range(int(np.floor(np.log10(HIGHEST_RIDGE / lowest) + 1e-9)), 0, -1)]
        share = (self.max_iter - self.n_iter) // (2 * max(len(ridges), 1))
        for ridge in ridges:
            run = _Run(self.objective.with_ridge(ridge), replace(self.solver, stop="gap"), 1e-2, self.n_iter + share)
            run.full, run.n_iter = True, self.n_iter
            run.begin(W)
            run.joint = True
            while run.advance():
                pass
            W, self.n_iter = run.now.W, run.n_iter
        if W is not None:
            self.arrive(W, self.objective.design.scores(W))
        if former.value < self.now.value:
            self.now = former
            self.note(former.value)

    def tidy(self) -> None:
        """Drop the singular values that fade, or all of them, where that costs no more than a tenth of `tol`, nor the
        certificate."""
        if self.solver.stop == "progress":
            self.certify(self.now.W, self.now.adjoint)
        objective, nuclear, W = self.objective, self.now.nuclear, self.now.W
        if nuclear is None:
            return
        # The Gram matrix blurs the smallest singular values: what is reported has the exact ones.
        now: Any = objective.at(W, self.now.scores)
        self.now = now
        limit = now.value + 0.1 * self.tol * self.bound
        if self.gap() <= self.tol:
            limit = max(now.value, min(limit, self.bound * (1 + self.tol)))
        _, V = nuclear.right_vectors(W, FADING)
        faded = [V] if V.shape[1] < len(nuclear.sigma) else []
        for basis in (V[:, :0], *faded):
            lean: Any = objective.at((W @ basis) @ basis.T, (now.scores @ basis) @ basis.T)
            if lean.value <= limit:
                self.now = lean
                break
        self.history[-1] = self.now.value
