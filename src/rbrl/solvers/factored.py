r"""Low rank by factors: W = U V' with the nuclear norm as (||U||^2 + ||V||^2) / 2; and the solver that has nothing else.

The optimum is the same, the problem is smooth at low rank, and products have the width of the rank. A round ends at a
stationary point; it is the optimum when no singular value of the smooth part's gradient exceeds the nuclear weight, and the
directions that do exceed it join the factors for another round.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rbrl._common.checks import check_number
from rbrl._common.linalg import EXACT_BELOW, leading_singular
from rbrl._common.typing import FloatArray
from rbrl.problem.objective import Objective
from rbrl.solvers.base import Run, SmoothedPoint, SolverResult, Start
from rbrl.solvers.lbfgs import FADING, Memory, wolfe_step
from rbrl.solvers.preconditioner import MANY_LABELS, MeanModel, factor_blocks, model_start

# Singular values above the tolerance of the round are kept, within these bounds, as shares of the largest: on delicious,
# 983 labels, factors are 150 instead of 240 wide.
COARSEST, FINEST = FADING, 1e-5
# Steps after which factors are looked at for faded columns, and the mean Hessian is taken anew where labels are many:
# 15.4 instead of 18.7 s on delicious at (100, 1, 100).
REFRESHED = 5
# Scores and residuals are in single precision in a round of at least this tolerance, where they have this many entries:
# 17 instead of 21 s on delicious, with the same steps. The point that a round ends at is in double precision.
SINGLE_TOL, SINGLE_ENTRIES = 1e-5, 2**20
# Columns that the factors of very large weights start with, and as many as may join after a round at least.
FIRST = 20
# Slope and progress, relative to the objective, at which a round ends while columns are still missing.
LOOSE = 1e-2
# With a limited rank, a stationary point has neither above this share of the tolerance; without, the certificate decides,
# and below ROUNDING nothing is to be gained.
STATIONARY, ROUNDING = 0.01, 1e-14


class Factors(SmoothedPoint):
    """W = U V' with its scores, the objective in factors and its gradient.

    Points that are given the same `space`, (2, n_samples, n_labels), write scores and residual there, in its precision:
    only the last of them has its own.
    """

    def __init__(self, objective: Objective, U: FloatArray, V: FloatArray, scores_U: Any, space: Any = None) -> None:
        self.U, self.V, self.scores_U, self.space = U, V, scores_U, space
        self._rU = objective.ridge.row_weights * U
        self._UU, self._VV = U.T @ self._rU, V.T @ V
        ridge = 0.5 * objective.ridge.weight * float(np.sum(self._UU * self._VV))
        self._factors = scores_U, V
        if space is None:
            super().__init__(objective, scores_U @ V.T, ridge)
        else:
            scores_U, V = self._factors = scores_U.astype(space.dtype, copy=False), V.astype(space.dtype, copy=False)
            super().__init__(objective, np.dot(scores_U, V.T, out=space[0]), ridge, out=space[1])
        self.value += 0.5 * objective.nuclear.weight * float(np.sum(U**2) + np.trace(self._VV))

    def in_factors(self, objective: Objective, U: FloatArray, V: FloatArray, space: Any = None) -> "Factors":
        """The same weights in other factors, V with orthogonal columns."""
        return Factors(objective, U, V, self.scores_U @ (self.V.T @ V / np.sum(V**2, axis=0)), space)

    @cached_property
    def _pulls(self) -> tuple[FloatArray, FloatArray]:
        """The residual times V, and its transpose times the scores of U."""
        scores_U, V = self._factors
        return self.residual @ V, self.residual.T @ scores_U

    def gradient(self, objective: Objective) -> FloatArray:
        """Derivatives in U and V, stacked; costs a product of the width of the rank."""
        ridge, nuclear = objective.ridge.weight, objective.nuclear.weight
        in_U = objective.design.adjoint(self._pulls[0]) + ridge * self._rU @ self._VV + nuclear * self.U
        in_V = self._pulls[1] + ridge * self.V @ self._UU + nuclear * self.V
        return np.vstack([in_U, in_V])

    def slope(self, objective: Objective, dU: FloatArray, dV: FloatArray, scores_dU: Any) -> float:
        """Derivative along (dU, dV): no product with the design."""
        ridge, nuclear = objective.ridge.weight, objective.nuclear.weight
        slope = np.vdot(self._pulls[0], scores_dU) + np.vdot(self._pulls[1], dV)
        slope += ridge * (np.vdot(dU.T @ self._rU, self._VV) + np.vdot(self._UU, self.V.T @ dV))
        return float(slope + nuclear * (np.vdot(self.U, dU) + np.vdot(self.V, dV)))


def split(W: FloatArray, floor: float = FADING, most: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Balanced factors of W, of `most` columns at most; singular values below `floor` of the largest are left out."""
    P, sigma, Q = leading_singular(W, most or min(W.shape))
    keep = sigma > floor * sigma.max(initial=0.0)
    root = np.sqrt(sigma[keep])
    return P[:, keep] * root, Q[:, keep] * root


def balance(U: FloatArray, V: FloatArray, floor: float = 1e-7) -> tuple[FloatArray, FloatArray]:
    """The same product with U'U = V'V = diag(sigma), tiny sigma dropped."""
    Q, T = np.linalg.qr(V)
    P, sigma, Ot = np.linalg.svd(U @ T.T, full_matrices=False)
    keep = sigma > floor * sigma.max(initial=0.0)
    root = np.sqrt(sigma[keep])
    return P[:, keep] * root, (Q @ Ot.T)[:, keep] * root


def descend(
    objective: Objective, U: FloatArray, V: FloatArray, small: float, max_iter: int, memory_size: int,
    note: Callable[[float], None],
) -> Factors:  # fmt: skip
    """Quasi-Newton in the factors until neither slope nor progress exceeds `small` of the objective.

    `note(value)` is called at every new point.
    """
    scores_U = objective.design.scores(U)
    at_hand = isinstance(scores_U, np.ndarray)
    single = at_hand and small >= SINGLE_TOL and objective.Y.size >= SINGLE_ENTRIES
    # A fresh array of the size of the scores costs more, in page faults, than the loss itself.
    space = np.empty((2, *objective.Y.shape), np.float32 if single else np.float64) if at_hand else None
    point = Factors(objective, U, V, scores_U, space)
    memory: Memory | None = None
    last, k, used, floor = np.inf, len(U), 0, float(np.clip(small, FINEST, COARSEST))
    model: MeanModel | None = None
    while used < max_iter:
        if memory is None:
            memory = Memory((k + len(V), point.U.shape[1]), memory_size, joint=True)
        gradient = point.gradient(objective)
        memory.visit(np.vstack([point.U, point.V]), gradient)
        if model is None or len(V) <= MANY_LABELS or used % REFRESHED == 0:
            model = MeanModel(objective, point.scores)
        seed = factor_blocks(objective, model, point.U, point.V, point.scores_U)
        D, slope = memory.descent(gradient, seed)
        if -slope <= small * point.value and last - point.value <= small * point.value:
            break
        last, moved = point.value, _step(objective, point, D[:k], D[k:], slope)
        if moved is None:
            point = Factors(objective, point.U, point.V, point.scores_U, space)
            break
        point, used = moved, used + 1
        note(point.value)
        if used % REFRESHED == 0 and (lean := _drop_rank(objective, point, floor)) is not None:
            point, memory = lean, None
    if single:
        return point.in_factors(objective, *balance(point.U, point.V, floor))
    return _drop_rank(objective, point, floor) or point


def _step(objective: Objective, point: Factors, dU: FloatArray, dV: FloatArray, slope: float) -> Factors | None:
    """The point after a step along (dU, dV); None if nothing descends."""
    scores_dU = objective.design.scores(dU)

    def along(t: float) -> tuple[float, float, Factors]:
        at = Factors(objective, point.U + t * dU, point.V + t * dV, point.scores_U + t * scores_dU, point.space)
        return at.value, at.slope(objective, dU, dV, scores_dU), at

    return wolfe_step(along, point.value, slope)


def _drop_rank(objective: Objective, point: Factors, floor: float) -> Factors | None:
    """The same point in fewer columns, if some have faded."""
    U, V = balance(point.U, point.V, floor)
    return None if U.shape[1] == point.U.shape[1] else point.in_factors(objective, U, V, point.space)


def join_violations(
    objective: Objective, U: FloatArray, V: FloatArray, gradient: FloatArray, mean_hessian: FloatArray,
    most: int | None = None, spare: float = 0.0,
) -> tuple[FloatArray, FloatArray] | None:  # fmt: skip
    """Factors with the directions, at most `most`, in which the smooth gradient exceeds the nuclear weight.

    None if there are none. Those that together cost a lower bound no more than `spare` are left out.
    """
    nuclear, design = objective.nuclear.weight, objective.design
    P, sigma, Q = leading_singular(gradient, most or min(gradient.shape), nuclear * (1 + 1e-6), near=V)
    if objective.ridge.weight:
        excess = (sigma - nuclear) ** 2 * np.sum(P**2 / objective.ridge.row_weights, axis=0) / objective.ridge.weight
        needed = np.cumsum(0.5 * excess[::-1])[::-1] > spare
        P, sigma, Q = P[:, needed], sigma[needed], Q[:, needed]
    if not len(sigma):
        return None
    curvature = design.gram_diagonal[:, None] * (np.trace(mean_hessian) / len(mean_hessian))
    curvature = curvature + objective.ridge.weight * objective.ridge.row_weights
    size = np.sqrt((sigma - nuclear) / np.sum(P**2 * curvature, axis=0))
    U, V = np.hstack([U, -P * size]), np.hstack([V, Q * size])
    return balance(U, V) if U.shape[1] > V.shape[0] else (U, V)


@dataclass(frozen=True)
class LowRank:
    """Quasi-Newton on factors W = U V', which grow by the directions that the optimum still misses.

    Without `max_rank` it ends at the optimum, certified, as every other solver does; it pays where the rank is far below
    both sides of W, or where these are so long that their decomposition is not to be had in every iteration.

    With `max_rank` it ends at a stationary point of the problem with the constraint rank(W) <= max_rank, which is not
    convex: a local optimum. The gap is that to the lower bound of the problem without the constraint. It is a proof, for no
    weights of any rank are better by more, but it need not be small.

    Parameters
    ----------
    max_rank : int, default=None
        Columns of the factors at most; None for as many as the optimum needs.
    memory : int, default=20
        Steps remembered.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective, linear_design
    >>> from rbrl.solvers import LowRank
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1, -1], [-1, 1]])
    >>> result = LowRank(max_rank=1).solve(Objective(linear_design(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.5))
    >>> result.weights.round(2).tolist()
    [[0.44, -0.44]]
    """

    max_rank: int | None = None
    memory: int = 20

    def solve(self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult`."""
        if self.max_rank is not None:
            check_number("LowRank", "max_rank", self.max_rank, low=1, integer=True)
        run, most = Run(objective, tol, max_iter), int(min(*objective.shape, self.max_rank or np.inf))
        rank, enough = most, ROUNDING if self.max_rank is None else STATIONARY * tol
        if start is None and min(objective.shape) > EXACT_BELOW:
            start, rank = model_start(objective, rounds=0), min(rank, self.max_rank or FIRST)
        U, V = split(model_start(objective) if start is None else start, most=rank)
        # Columns can join only below the largest rank; a round that is the last one need not end early.
        small = 0.3 * tol if U.shape[1] == most else max(LOOSE, 0.3 * tol)
        while True:
            run.now = now = self._stationary(run, U, V, small)
            run.note(now.value)
            W, adjoint, rank = now.U @ now.V.T, objective.design.adjoint(now.residual), now.U.shape[1]
            run.certify(W, adjoint)
            if run.finished():
                break
            wanted = max(rank, FIRST)
            room = min(most - rank, wanted)
            gradient, H = adjoint + objective.ridge.gradient(W), MeanModel(objective, now.scores).hessian
            joined = join_violations(objective, now.U, now.V, gradient, H, room) if room else None
            U, V = joined or (now.U, now.V)
            if joined is None and small <= enough:
                run.stopped_by = "itself"
                break
            # A closer look, unless many are missing still.
            if U.shape[1] < rank + wanted:
                small *= 0.1
        # Where the rank is limited, a stationary point is a local optimum.
        arrived = run.gap() <= tol or (run.stopped_by == "itself" and self.max_rank is not None)
        return run.result("The low-rank solver", W, arrived)

    def _stationary(self, run: Run, U: FloatArray, V: FloatArray, small: float) -> Factors:
        """Where a round from these factors ends: balanced, so that their value is that of the weights; or zero, if that is
        better."""
        objective = run.objective
        best = zero = Factors(objective, U[:, :0], V[:, :0], objective.design.scores(U[:, :0]))
        if U.shape[1]:
            end = descend(objective, U, V, small, run.max_iter - run.n_iter - 1, self.memory, run.note)
            best = end.in_factors(objective, *balance(end.U, end.V))
        return zero if zero.value <= best.value else best
