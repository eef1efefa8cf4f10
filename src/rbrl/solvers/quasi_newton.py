"""The default solver: quasi-Newton steps, Newton's where these would be too many, factors where the rank fades.

start at the minimiser of the mean model
until the certified gap is small enough:
    the rank fades            a round in factors
    a forecast says so        Newton's direction: conjugate gradients, preconditioned by blocks of labels
    else                      the quasi-Newton direction, seeded by the mean model
    step lengths on the scores; if nothing descends, forget the past, then try Newton's direction, then stop
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from rbrl._common.linalg import leading_singular
from rbrl._common.typing import FloatArray
from rbrl.losses import Terms
from rbrl.problem.objective import Objective
from rbrl.solvers.base import Bound, Run, SolverResult, Start
from rbrl.solvers.certificate import Mixture, best_mixture, relative_gap
from rbrl.solvers.factored import descend, join_violations, split
from rbrl.solvers.lbfgs import FADING, InverseHessian, Iterate, Memory, stepped
from rbrl.solvers.newton import LEAST_COST, LabelBlocks, conjugate_gradients, hessian_product, newton_cost
from rbrl.solvers.preconditioner import WEAK_COUPLING, MeanModel, first_point, label_coupling

# Steps remembered may take 256 MB, which 20 of 1,600 features and 500 labels do; five are kept in any case. Labels with a
# memory each remember SEPARATE steps at most: with 20, emotions at (.01, .01, .01) takes 50 instead of 36 evaluations to a
# gap of 1e-3, cal500 at (.01, 100, .01) 1.6 times as many in all, and yeast with a kernel at (.01, 1, 1) .53 times.
MEMORY_BYTES, SEPARATE = 2**28, 12
# The nuclear norm is smoothed as if this share of the last gap, at least, were the tolerance: without, enron at (1, 1, 1)
# takes 94 evaluations instead of 68, and arts at (1, 100, 100) 38 instead of 34.
SMOOTHED = 0.1
# Where more labels than FEW_LABELS keep more than LOW_RANK of the full rank, factors gain nothing (delicious, 983 labels,
# at (100, 100, 100) takes 93 s with rounds and 21 without; enron, 53, at (1, 1, 1) 10 and 3), unless the gap stands: it is
# above STANDS of what it was FEW steps before (corel5k at (100, 100, 1) takes 5 s with that round and 10 without). Where it
# stands for twice FEW of Newton's steps, the other direction is taken again (yeast at (1e-4, 100, 1e-4) is certified after
# 352 evaluations, and not at all without).
LOW_RANK, FEW_LABELS, STANDS = 0.7, 50, 0.97
# After a round that does not divide the gap by PAYS, or by less than Newton's steps would have done, with few labels or
# nearly full rank, REST steps on the weights follow, with many labels all others: without the forecast, slashdot at
# (.01, .01, .01) ends uncertified after 960 evaluations instead of certified after 522.
PAYS, REST = 3.0, 20
# Newton's direction is tried above this share of the full rank; at any, enron at (.01, 100, 100) ends uncertified after
# 2,000 evaluations instead of certified after 353.
NEARLY_FULL = 0.9
# Evaluations that every iteration allowed may cost: a quasi-Newton step is one, Newton's may be fifty. langlog at
# (1, 100, 1) needs 1.8 for its certificate; without a limit, what nothing certifies takes minutes. Up to SMALL scores it
# may be five times as many, which take no time: one of 500 such problems needs 4.9.
EVALUATIONS, SMALL = 2, 2**12
# Gaps that a forecast needs at least, and that lie between two of them; and steps, in coordinates that are not whitened,
# before the rank of the weights is believed: without, slashdot at (.01, 100, 100) takes 98 evaluations instead of 85, and
# four times as long; with twelve, at (1, 1, 100) 28 instead of 21, and arts at (1, .01, 100) 18 instead of 12, but
# slashdot at (1, .1, .1) 43 instead of 56.
FEW = 5
# Of so many of the last loss gradients, in so many bytes, a mixture is tried as a dual point, every FEW steps: 20ng at
# (.01, .01, .01) takes 740 instead of 867 evaluations, and human3106 at (1, .1, .1) 71 instead of 84. Forecasts go by the
# gaps without it, which fall more evenly: else cal500 at (.01, 100, .01) takes 174 evaluations instead of 109.
MIXED, MIXED_BYTES = 30, 2**27


@dataclass(frozen=True)
class QuasiNewton:
    """Limited-memory quasi-Newton method, started and preconditioned by the mean quadratic model of the loss.

    It works on the weights while their rank is full, and on factors U V' once singular values fade. Where a forecast from
    the gaps so far says that it would take too long, it goes on with Newton's method.

    Parameters
    ----------
    memory : int, default=20
        Steps remembered; with 12, slashdot in blocks at (1, 1, .1) takes 96 passes instead of 88.

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

    def solve(
        self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000, scores: Any = None
    ) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult`. The scores of `start`, if known, save a product."""
        return QuasiNewtonRun(objective, self.memory, tol, max_iter).minimised(start, scores)


@dataclass
class Phase:
    """Steps in one kind of direction, by the gaps on the way: how fast they fall says whether the other would be better.

    The gaps are those of single dual points, whose best bound is `bound`. `seed` is the first guess of the inverse Hessian
    that the steps start from; `duals` are the last `mixed` dual points: loss, gradient of the loss in the weights, scores.
    """

    newton: bool
    gaps: list[float]
    seed: InverseHessian | None = None
    bound: float = 0.0
    mixed: int = 0
    duals: list[tuple[Terms, FloatArray, Any]] = field(default_factory=list)

    def stands(self, steps: int) -> bool:
        """Whether the gap is nearly what it was so many steps before."""
        return len(self.gaps) > steps and self.gaps[-1] > STANDS * self.gaps[-1 - steps]

    def rate(self) -> float:
        """By how much the logarithm of the gap fell in a step, over the later half of them; infinite if not known."""
        half = len(self.gaps) // 2
        known = len(self.gaps) > FEW and np.isfinite(self.gaps[half])
        return np.log(max(self.gaps[half] / self.gaps[-1], 1.0)) / (len(self.gaps) - 1 - half) if known else np.inf


@dataclass
class Rounds:
    """Rounds in factors: the steps each remembers, the tolerance of the next one, and the iteration that it waits for."""

    memory: int
    tol: float
    after: int = 0


class QuasiNewtonRun(Run):
    """The current iterate, the memory of the steps to it, and the kind of direction that is taken."""

    name = "The quasi-Newton solver"
    now: Iterate
    memory: Memory

    def __init__(self, objective: Objective, remembered: int, tol: float, max_iter: int) -> None:
        super().__init__(objective, tol, max_iter)
        self.phase, self.rounds = Phase(False, [np.inf]), Rounds(remembered, 0.3 * tol)

    def minimised(self, start: Start, scores: Any = None) -> SolverResult:
        """From `start`, or from the minimiser of the mean model, to the end."""
        self.arrive(self.first(start, scores))
        each = EVALUATIONS if self.objective.Y.size > SMALL else 5 * EVALUATIONS
        most = each * self.max_iter + self.way[0][1]
        while not self.finished() and self.objective.evaluations < most:
            if self.phase.newton and self.phase.stands(2 * FEW):
                self.turn(newton=False)
            if self.now.rank_share > NEARLY_FULL and len(self.phase.gaps) % FEW == 0 and self.newton_pays():
                self.turn(newton=True)
            if self.now.rank_share < 1 and self.factors_pay():
                self.factored_round(most - self.objective.evaluations)
            else:
                self.step()
        self.tidy()
        return self.result(self.name, self.now.W, self.gap() <= self.tol)

    def first(self, start: Start, scores: Any) -> Iterate:
        """The first iterate, and a memory for the steps from there: of all labels together where they couple."""
        W, scores = first_point(self.objective, start, scores)
        joint = label_coupling(self.objective, W) > WEAK_COUPLING
        room, most = max(5, MEMORY_BYTES // (16 * max(W.size, 1))), np.inf if joint else SEPARATE
        self.memory = Memory(W.shape, int(min(self.rounds.memory, most, room)), joint)
        if isinstance(scores, np.ndarray) and self.objective.ridge.weight:
            fitting = MIXED_BYTES // (8 * max(scores.size + 2 * W.size, 1))
            self.phase.mixed = min(MIXED, fitting) if fitting >= FEW else 0
        return Iterate(self.objective, W, scores, max(self.tol, SMOOTHED))

    def arrive(self, there: Iterate) -> None:
        """Note and certify the iterate reached, and remember the step to it."""
        self.now = there
        self.note(there.value, there.evaluations)
        if self.phase.mixed:
            self.phase.duals = [*self.phase.duals, (there.loss, there.adjoint, there.scores)][-self.phase.mixed :]
            if len(self.phase.duals) == self.phase.mixed and self.n_iter % FEW == 0:
                self.mix()
        self.phase.bound = max(self.phase.bound, self.certify(there.W, there.adjoint))
        self.phase.gaps.append(relative_gap(there.value, self.phase.bound))
        self.memory.visit(there.W, there.gradient, *there.images)

    def mix(self) -> None:
        """Keep the lower bound of a mixture of the last loss gradients, if it is the best."""
        losses, adjoints, scores = zip(*self.phase.duals, strict=True)
        bound, shares = best_mixture(self.objective, self.now.W, losses, adjoints)
        if bound > self.bound.value:
            self.bound = Bound(bound, Mixture(shares, scores))

    def turn(self, newton: bool) -> None:
        """Go on with one kind of direction; the gaps of the other say nothing of it."""
        self.phase = Phase(newton, self.phase.gaps[-1:], bound=self.phase.bound, mixed=self.phase.mixed)
        self.memory.clear()

    def newton_pays(self) -> bool:
        """Whether the steps that are left cost more than Newton's, of which one is taken to divide the gap by e."""
        gap = self.phase.gaps[-1]
        if self.phase.newton or not self.tol < gap < np.inf:
            return False
        left = np.log(gap / self.tol)
        steps = min(left / max(self.phase.rate(), 1e-9), self.max_iter - self.n_iter)
        return bool(steps > left * LEAST_COST and steps > left * newton_cost(self.objective, self.now))

    def factors_pay(self) -> bool:
        """Whether a rank below the full one is known well enough; for many labels, far below it."""
        if self.n_iter < self.rounds.after or self.rounds.tol <= 1e-15:
            return False
        settled = self.objective.design.whitened or self.n_iter > FEW
        return settled and (self.few_labels() or self.now.rank_share <= LOW_RANK or self.phase.stands(FEW))

    def few_labels(self) -> bool:
        """Whether a round in factors costs so little that it may be tried at any rank."""
        return len(self.now.nuclear.sigma) <= FEW_LABELS

    def step(self) -> None:
        """One step on the weights."""
        objective, now = self.objective, self.now
        if self.phase.newton:
            D = conjugate_gradients(now.gradient, partial(hessian_product, objective, now), LabelBlocks(objective, now))
            slope = float(np.vdot(now.gradient, D))
        else:
            D, slope = self.memory.descent(now.gradient, self.seed(now), *now.images[1:])
        smoothing = max(self.tol, SMOOTHED * min(self.phase.gaps[-1], 1.0))
        there = stepped(objective, now, D, slope, self.memory.joint, smoothing)
        if there is None:
            self.lose_the_way()
        else:
            self.arrive(there)

    def seed(self, now: Iterate) -> InverseHessian:
        """The first guess of the inverse Hessian: that of the mean model, as long as the nuclear norm is held."""
        if self.phase.seed is None or now.nuclear is None or now.nuclear.age == 0:
            self.phase.seed = MeanModel(self.objective, now.scores).inverse(now.nuclear)
        return self.phase.seed

    def lose_the_way(self) -> None:
        """No step descends: forget the past, then end a rest from factors, then try the other direction, then stop."""
        fresh, newton = not len(self.memory), self.phase.newton
        self.memory.clear()
        if fresh and self.rounds.after > self.n_iter:
            self.rounds.after = self.n_iter
        elif fresh or newton:
            if fresh and (newton or newton_cost(self.objective, self.now) == np.inf):
                self.stopped_by = "itself"
            self.turn(newton=not newton)

    def factored_round(self, evaluations: float) -> None:
        """Descend in factors, the directions that the last round missed included, in so many evaluations at most."""
        objective, now, rounds, before = self.objective, self.now, self.rounds, (self.phase.gaps[-1], self.n_iter)
        factors = split(now.W, min(max(rounds.tol, 1e-4), FADING))
        H, spare = MeanModel(objective, now.scores).hessian, rounds.tol * now.value
        U, V = join_violations(objective, *factors, now.smooth_gradient, H, spare=spare) or factors
        most = int(min(self.max_iter - self.n_iter - 1, np.ceil(evaluations)))
        point = descend(objective, U, V, rounds.tol, most, rounds.memory, self.note)
        self.arrive(Iterate(objective, point.U @ point.V.T, point.scores, self.tol))
        rounds.tol *= 0.2
        if (self.few_labels() or now.rank_share > NEARLY_FULL) and not self.paid(*before):
            rounds.after = self.n_iter + (REST if self.few_labels() else self.max_iter)
        self.turn(newton=False)

    def paid(self, gap: float, n_iter: int) -> bool:
        """Whether the steps since then, from this gap, did more than a few of Newton's would have done in that time."""
        won = np.log(max(gap, 1e-300) / max(self.phase.gaps[-1], 1e-300))
        return not (won < np.log(PAYS) or self.n_iter - 1 - n_iter > won * newton_cost(self.objective, self.now))

    def tidy(self) -> None:
        """Drop the singular values that fade, or all of them, where that costs no more than a tenth of `tol`, nor the
        certificate."""
        objective, nuclear, W, proved = self.objective, self.now.nuclear, self.now.W, self.bound.value
        if nuclear is None:
            return
        # The Gram matrix blurs the smallest singular values: what is reported has the exact ones.
        now: Any = objective.at(W, self.now.scores)
        limit = now.value + 0.1 * self.tol * proved
        if now.value <= proved * (1 + self.tol):
            limit = min(limit, proved * (1 + self.tol))
        _, sigma, V = leading_singular(W, len(nuclear.sigma))
        kept = int(np.count_nonzero(sigma > FADING * sigma.max(initial=0.0)))
        bases = (V[:, :rank] for rank in sorted({0, kept} - {len(nuclear.sigma)}))
        leaner: Any = (objective.at((W @ B) @ B.T, (now.scores @ B) @ B.T) for B in bases)
        self.now = next((lean for lean in leaner if lean.value <= limit), now)
        self.way[-1] = self.now.value, self.way[-1][1]
