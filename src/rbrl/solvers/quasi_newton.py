"""The quasi-Newton solver: limited-memory BFGS, preconditioned by the mean quadratic model of the loss.

start at the minimiser of the mean model
until the certified gap is small enough:
    if many singular values vanish     a round in factors W = U V', where a low rank is smooth
    else                               a step along the quasi-Newton direction,
                                       or along Newton's direction if the gap falls too slowly
drop the singular values that vanish
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rbrl._common.linalg import leading_singular
from rbrl._common.matrices import split
from rbrl._common.typing import FloatArray
from rbrl.problem.objective import Objective
from rbrl.solvers.base import ROUNDING_GAP, Run, SolverResult, Start
from rbrl.solvers.factored import descend, join_violations
from rbrl.solvers.lbfgs import Memory
from rbrl.solvers.line_search import Iterate, NewtonLineSearch
from rbrl.solvers.newton import NewtonDirection
from rbrl.solvers.preconditioner import MeanModel, first_point, label_coupling


class LBFGSDirection:
    """The quasi-Newton direction from a memory of steps; its first guess is the inverse Hessian of the mean model.

    Parameters
    ----------
    objective : Objective
    W : array (n_columns, n_labels)
        Weights of the first point.
    memory : int
        Number of steps that are remembered.
    weak_coupling : float, default=0.9
        Largest coupling of labels at which each label has a memory and step lengths of its own, see
        :func:`rbrl.solvers.preconditioner.label_coupling`.
    diagonal_coupling : float, default=0.01
        Largest coupling of labels at which the first guess is diagonal, so that it needs no product of matrices.
    memory_bytes : int, default=2**28
        Largest size of the memory, unless five steps need more.
    """

    def __init__(
        self, objective: Objective, W: FloatArray, memory: int, weak_coupling: float = 0.9,
        diagonal_coupling: float = 0.01, memory_bytes: int = 2**28,
    ) -> None:  # fmt: skip
        coupling = label_coupling(objective, W)
        self.is_joint = coupling > weak_coupling
        self.has_diagonal_seed = coupling <= diagonal_coupling
        # A pair is a step and a change of the gradient, with 16 bytes for each weight.
        room = max(5, memory_bytes // (16 * max(W.size, 1)))
        self.memory = Memory(W.shape, min(memory, room), self.is_joint)
        self._objective = objective

    def compute(self, iterate: Iterate) -> tuple[FloatArray, float]:
        """Return the direction at an iterate, and the slope along it.

        The direction is a new array (n_columns, n_labels). The memory is cleared if the objective
        does not descend along the remembered direction.
        """
        model = MeanModel(self._objective, iterate.scores)
        seed = model.inverse_diagonal if self.has_diagonal_seed else model.inverse
        return self.memory.descent(iterate.gradient, seed(iterate.nuclear))


@dataclass(frozen=True)
class QuasiNewton:
    """Limited-memory quasi-Newton method, started and preconditioned by the mean quadratic model of the loss.

    It works on the weights while their rank is nearly full, and on factors U V' if many singular
    values vanish. If the gap falls slowly, it takes Newton's direction. The settings affect the speed,
    but not the validity of the gap.
    `python -m studies.benchmarks.ablation` prints the effect of each setting.

    Parameters
    ----------
    memory : int, default=20
        Number of steps that are remembered.
    weak_coupling : float, default=0.9
        Largest coupling of labels at which each label has a memory and step lengths of its own.
    diagonal_coupling : float, default=0.01
        Largest coupling of labels at which the first guess of the inverse Hessian is diagonal.
    smoothing_share : float, default=0.1
        The nuclear norm is smoothed for a tolerance of this share of the last gap, but not below `tol`.
    low_rank : float, default=0.7
        The solver continues in factors if at most this share of the singular values is left; 0 for never.
    negligible : float, default=1e-3
        Share of the largest singular value below which a singular value vanishes.
    newton : NewtonDirection or None
        Newton's direction. It is taken if dividing the gap by e takes more steps than it costs; None for never.
    line_search : NewtonLineSearch
        Search for the length of a step.
    evaluations_per_iteration : float, default=5
        Number of evaluations that every iteration of `max_iter` allows: one iteration of Newton's method takes many.
    small_size : int, default=4096
        Number of scores up to which a problem may take twice as many evaluations, which take little time.

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
    weak_coupling: float = field(default=0.9, repr=False)
    diagonal_coupling: float = field(default=0.01, repr=False)
    smoothing_share: float = field(default=0.1, repr=False)
    low_rank: float = field(default=0.7, repr=False)
    negligible: float = field(default=1e-3, repr=False)
    newton: NewtonDirection | None = field(default=NewtonDirection(), repr=False)
    line_search: NewtonLineSearch = field(default=NewtonLineSearch(), repr=False)
    evaluations_per_iteration: float = field(default=5.0, repr=False)
    small_size: int = field(default=4096, repr=False)

    def solve(
        self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000, scores: Any = None
    ) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult`. The scores of `start`, if known, save a product."""
        return QuasiNewtonRun(objective, self, start, tol, max_iter, scores).run()


class QuasiNewtonRun(Run):
    """One minimisation: the current iterate, the memory of steps, and the gaps since the direction was chosen.

    Parameters
    ----------
    objective : Objective
    settings : QuasiNewton
    start : array (n_columns, n_labels) or None
        First weights; None means the minimiser of the mean model.
    tol : float
    max_iter : int
    scores : array (n_samples, n_labels), default=None
        Scores of `start`, if they are known.

    Attributes
    ----------
    newton : NewtonDirection or None
        Newton's direction while it is taken; None while the quasi-Newton direction is taken.
    round_tol : float
        Tolerance of the next round in factors; each round makes it smaller.
    max_evaluations : float
        Number of evaluations of the objective after which the run ends.
    """

    now: Iterate

    def __init__(
        self, objective: Objective, settings: QuasiNewton, start: Start, tol: float, max_iter: int, scores: Any = None
    ) -> None:
        super().__init__(objective, tol, max_iter)
        self.settings = settings
        self.newton: NewtonDirection | None = None
        self.gaps = [np.inf]
        # The rest of the tolerance is left for directions that a round misses.
        self.round_tol = 0.3 * tol
        is_small = objective.Y.size <= settings.small_size
        each = settings.evaluations_per_iteration * (2.0 if is_small else 1.0)
        self.max_evaluations = each * max_iter + objective.evaluations
        W, scores = first_point(objective, start, scores)
        self.direction = LBFGSDirection(
            objective, W, settings.memory, settings.weak_coupling, settings.diagonal_coupling
        )
        self.accept_iterate(Iterate(objective, W, scores, max(self.tol, settings.smoothing_share)))

    def run(self) -> SolverResult:
        """Minimise until a stopping rule is met; return the result with the last iterate.

        The rules are the tolerance, a callback, `max_iter`, and the largest number of evaluations.
        A run can be run once.
        """
        settings = self.settings
        objective = self.objective
        # Without a nuclear norm, no singular value vanishes.
        has_nuclear_norm = self.now.nuclear is not None
        while not self.is_finished() and objective.evaluations < self.max_evaluations:
            if has_nuclear_norm and self.is_factored_round_due():
                self.run_factored_round()
                continue
            if self.is_slow():
                self.switch_direction(settings.newton)
            elif self.newton is not None and self.has_stalled():
                self.switch_direction(None)
            self.take_step()
        if has_nuclear_norm:
            self.truncate_singular_values()
        return self.result("The quasi-Newton solver", self.now.W, self.gap() <= self.tol)

    def accept_iterate(self, iterate: Iterate) -> None:
        """Make an iterate the current one, certify it, and remember the step to it.

        It counts as one iteration. Its weights and gradient are kept without a copy and must not
        change.
        """
        self.now = iterate
        self.note(iterate.value, iterate.evaluations)
        self.certify(iterate.W, iterate.adjoint)
        self.gaps.append(self.gap())
        self.direction.memory.visit(iterate.W, iterate.gradient)

    def take_step(self) -> None:
        """Take one step on the weights.

        The step changes `now`. If no step length descends, the run recovers instead. The residual
        of the previous iterate is overwritten.
        """
        settings = self.settings
        if self.newton is None:
            D, slope = self.direction.compute(self.now)
        else:
            D, slope = self.newton.compute(self.objective, self.now)
        smoothing = max(self.tol, settings.smoothing_share * min(self.gaps[-1], 1.0))
        is_joint = self.direction.is_joint
        there = settings.line_search.take_step(self.objective, self.now, D, slope, is_joint, smoothing)
        if there is None:
            self.recover_from_failed_step()
        else:
            self.accept_iterate(there)

    def recover_from_failed_step(self) -> None:
        """Forget the past steps, then continue in factors, then along Newton's direction, then stop."""
        if self.direction.memory.clear():
            self.switch_direction(None)
        elif self.now.rank_share(self.settings.negligible) < 1 and self.round_tol > ROUNDING_GAP:
            self.run_factored_round()
        elif self.newton is None and self.newton_cost() < np.inf:
            self.switch_direction(self.settings.newton)
        else:
            self.stopped_by = "itself"

    def switch_direction(self, newton: NewtonDirection | None) -> None:
        """Continue with Newton's direction, or with the quasi-Newton direction if None, without past steps and gaps."""
        self.newton = newton
        self.gaps = self.gaps[-1:]
        self.direction.memory.clear()

    def newton_cost(self) -> float:
        """Return the cost of Newton's direction in quasi-Newton steps; infinite if it is not available.

        It refers to the current iterate.
        """
        newton = self.settings.newton
        return np.inf if newton is None else newton.cost(self.objective, self.now)

    def is_slow(self) -> bool:
        """Return whether dividing the gap by e takes more quasi-Newton steps than Newton's direction costs.

        The number of steps is estimated every five steps, from the last two thirds of the gaps.

        The result is True only while the quasi-Newton direction is taken.
        """
        later = self.gaps[len(self.gaps) // 3 :]
        # The gap falls in leaps, so fewer than ten gaps do not show its rate.
        is_known = len(self.gaps) >= 10 and not len(self.gaps) % 5 and np.isfinite(later[0])
        if self.newton is not None or not is_known:
            return False
        steps = (len(later) - 1) / max(np.log(later[0] / max(later[-1], 1e-300)), 1e-9)
        return bool(steps > self.newton_cost())

    def has_stalled(self) -> bool:
        """Return whether the gap has fallen by less than 3 % in ten steps."""
        return len(self.gaps) > 10 and self.gaps[-1] > 0.97 * self.gaps[-11]

    def is_factored_round_due(self) -> bool:
        """Return whether few singular values are left, or some vanish and the gap falls slowly.

        A round is not possible without vanishing singular values, or once its tolerance is
        rounding.
        """
        share = self.now.rank_share(self.settings.negligible)
        if share == 1 or self.round_tol <= ROUNDING_GAP:
            return False
        return share <= self.settings.low_rank or self.is_slow()

    def run_factored_round(self) -> None:
        """Descend in factors, which include the directions that the last round missed.

        The end becomes the current iterate. The next round has a fifth of the tolerance, and the
        quasi-Newton direction starts without past steps.
        """
        objective, now = self.objective, self.now
        # Singular values that the round cannot see may be dropped, but none that counts towards the rank.
        U, V = split(now.W, min(max(self.round_tol, 1e-4), self.settings.negligible))
        H = MeanModel(objective, now.scores).hessian
        joined = join_violations(objective, U, V, now.smooth_gradient, H, spare=self.round_tol * now.value)
        U, V = joined or (U, V)
        room = int(np.ceil(max(self.max_evaluations - objective.evaluations, 0.0)))
        most = min(self.max_iter - self.n_iter - 1, room)
        point = descend(objective, U, V, self.round_tol, most, self.settings.memory, self.note)
        self.accept_iterate(Iterate(objective, point.U @ point.V.T, point.scores, self.tol))
        self.round_tol *= 0.2
        self.switch_direction(None)

    def truncate_singular_values(self) -> None:
        """Drop singular values that vanish, or all of them; replace `now` and the last value in `way`.

        The objective may rise by a tenth of `tol` times the lower bound. A gap of at most `tol`
        stays at most `tol`. It is called once, at the end of a run with a nuclear norm.
        """
        objective, W, bound = self.objective, self.now.W, self.bound.value
        # The Gram matrix of the iterate blurs the smallest singular values. The result has the exact ones.
        exact: Any = objective.at(W, self.now.scores)
        limit = exact.value + 0.1 * self.tol * bound
        if exact.value <= bound * (1 + self.tol):
            limit = min(limit, bound * (1 + self.tol))
        full = len(self.now.nuclear.sigma)
        _, sigma, V = leading_singular(W, full)
        # The objective decides which of these ranks is large enough; the smaller floor is the usual one.
        floors = np.array([10.0, 1.0]) * self.settings.negligible * sigma.max(initial=0.0)
        ranks = {0, *(int(np.count_nonzero(sigma > floor)) for floor in floors)}
        bases = (V[:, :rank] for rank in sorted(ranks - {full}))
        leaner: Any = (objective.at((W @ B) @ B.T, (exact.scores @ B) @ B.T) for B in bases)
        self.now = next((point for point in leaner if point.value <= limit), exact)
        self.way[-1] = self.now.value, self.way[-1][1]


@dataclass(frozen=True)
class Descent:
    """Quasi-Newton steps until the next one is not worth its evaluation.

    Only the last point is certified.

    It serves models that are compared, each of which starts near its optimum. It ends where the
    next step is expected to gain at most `tol` of the objective, or the last one did. The
    preconditioned gradient predicts this gain. The gap of the last point may be much larger.

    Parameters
    ----------
    memory : int, default=10
        Number of steps that are remembered.
    line_search : NewtonLineSearch
        Search for the length of a step, with one correction by default.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective, linear_design
    >>> from rbrl.solvers import Descent
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(linear_design(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> Descent().solve(objective, start=np.array([[0.4]])).weights.round(3).tolist()
    [[0.5]]
    """

    memory: int = 10
    line_search: NewtonLineSearch = field(default=NewtonLineSearch(max_corrections=1), repr=False)

    def solve(
        self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000, scores: Any = None
    ) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult`. The scores of `start`, if known, save a product."""
        run = Run(objective, tol, max_iter)
        now = Iterate(objective, *first_point(objective, start, scores), tol)
        direction = LBFGSDirection(objective, now.W, self.memory)
        gained = np.inf
        while True:
            run.note(now.value, now.evaluations)
            direction.memory.visit(now.W, now.gradient)
            there = None
            while there is None:
                D, slope = direction.compute(now)
                # A full step gains half its slope where the model is right, and seldom the whole of it.
                converged = min(-slope, gained) <= tol * now.value
                if converged or run.n_iter >= max_iter:
                    break
                there = self.line_search.take_step(objective, now, D, slope, direction.is_joint, tol)
                if there is None and not direction.memory.clear():
                    break
            if there is None:
                break
            gained = now.value - there.value
            now = there
        run.now = now
        run.certify(now.W, now.adjoint)
        return run.result("The descent", now.W, converged, "Raise max_iter or tol, or start nearer.")
