r"""Low rank by factors: W = U V', with the nuclear norm as (||U||^2 + ||V||^2) / 2.

The optimum is the same, the problem is smooth at low rank, and products have the width of the rank. A round ends at a
stationary point. It is the optimum where no singular value of the gradient of loss and ridge exceeds the nuclear weight.
Directions that exceed it join the factors for another round.
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
from rbrl.solvers.base import Run, SolverResult, Start
from rbrl.solvers.lbfgs import Memory
from rbrl.solvers.line_search import SmoothedPoint, wolfe_step
from rbrl.solvers.preconditioner import MeanModel, factor_blocks, model_start


class Factors(SmoothedPoint):
    """Factors W = U V' with their scores, and the objective in U and V.

    Parameters
    ----------
    objective : Objective
    U : array (n_columns, rank)
    V : array (n_labels, rank)
    scores_U : array (n_samples, rank)
    space : array (2, n_samples, n_labels), default=None
        Array that scores and residual are written to. Points with the same array overwrite one another.
        None means new arrays.
    """

    def __init__(self, objective: Objective, U: FloatArray, V: FloatArray, scores_U: Any, space: Any = None) -> None:
        self.U = U
        self.V = V
        self.scores_U = scores_U
        self.space = space
        self._weighted_U = objective.ridge.row_weights * U
        self._gram_U = U.T @ self._weighted_U
        self._gram_V = V.T @ V
        ridge = 0.5 * objective.ridge.weight * float(np.sum(self._gram_U * self._gram_V))
        scores = scores_U @ V.T if space is None else np.dot(scores_U, V.T, out=space[0])
        super().__init__(objective, scores, ridge, out=None if space is None else space[1])
        self.value += 0.5 * objective.nuclear.weight * float(np.sum(U**2) + np.trace(self._gram_V))

    def replace_factors(self, objective: Objective, U: FloatArray, V: FloatArray, space: Any = None) -> "Factors":
        """Return the same weights in factors U and V, where the columns of V must be orthogonal."""
        return Factors(objective, U, V, self.scores_U @ (self.V.T @ V / np.sum(V**2, axis=0)), space)

    @cached_property
    def _pulls(self) -> tuple[FloatArray, FloatArray]:
        """The residual times V, and its transpose times the scores of U."""
        return self.residual @ self.V, self.residual.T @ self.scores_U

    def gradient(self, objective: Objective) -> FloatArray:
        """Return the derivatives in U and V, stacked. It costs a product with the design of the width of the rank."""
        ridge = objective.ridge.weight
        nuclear = objective.nuclear.weight
        in_U = objective.design.adjoint(self._pulls[0]) + ridge * self._weighted_U @ self._gram_V + nuclear * self.U
        in_V = self._pulls[1] + ridge * self.V @ self._gram_U + nuclear * self.V
        return np.vstack([in_U, in_V])

    def slope(self, objective: Objective, dU: FloatArray, dV: FloatArray, scores_dU: Any) -> float:
        """Return the derivative along (dU, dV), without a product with the design."""
        loss = np.vdot(self._pulls[0], scores_dU) + np.vdot(self._pulls[1], dV)
        ridge = np.vdot(dU.T @ self._weighted_U, self._gram_V) + np.vdot(self._gram_U, self.V.T @ dV)
        nuclear = np.vdot(self.U, dU) + np.vdot(self.V, dV)
        return float(loss + objective.ridge.weight * ridge + objective.nuclear.weight * nuclear)


def split(W: FloatArray, negligible: float = 1e-3, most: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return balanced factors of W, with at most `most` columns; None is no limit.

    Singular values below `negligible` times the largest one are left out.
    """
    P, sigma, Q = leading_singular(W, most or min(W.shape))
    return _scale_columns(P, sigma, Q, negligible)


def balance(U: FloatArray, V: FloatArray, negligible: float = 1e-7) -> tuple[FloatArray, FloatArray]:
    """Return factors of the same product with U'U = V'V = diag(sigma), without negligible sigma."""
    Q, T = np.linalg.qr(V)
    P, sigma, Ot = np.linalg.svd(U @ T.T, full_matrices=False)
    return _scale_columns(P, sigma, Q @ Ot.T, negligible)


def _scale_columns(P: FloatArray, sigma: FloatArray, Q: FloatArray, negligible: float) -> tuple[FloatArray, FloatArray]:
    """Return P and Q times the roots of the singular values that are not negligible."""
    keep = sigma > negligible * sigma.max(initial=0.0)
    root = np.sqrt(sigma[keep])
    return P[:, keep] * root, Q[:, keep] * root


def descend(
    objective: Objective, U: FloatArray, V: FloatArray, small: float, max_iter: int, memory_size: int,
    note: Callable[[float], None], refresh_every: int = 5, negligible: float = 1e-5,
) -> Factors:  # fmt: skip
    """Take quasi-Newton steps in the factors until neither slope nor progress exceeds `small` of the objective.

    Parameters
    ----------
    objective : Objective
    U : array (n_columns, rank)
    V : array (n_labels, rank)
    small : float
        Share of the objective.
    max_iter : int
    memory_size : int
        Number of steps that are remembered.
    note : callable
        Called with the value of every new point.
    refresh_every : int, default=5
        Number of steps after which columns that vanish are dropped.
    negligible : float, default=1e-5
        Columns vanish where their singular value is below this share of the largest one.

    Returns
    -------
    Factors
    """
    scores_U = objective.design.scores(U)
    # To allocate an array of the size of the scores takes longer than to compute the loss.
    space = np.empty((2, *objective.Y.shape)) if isinstance(scores_U, np.ndarray) else None
    point = Factors(objective, U, V, scores_U, space)
    memory: Memory | None = None
    k = len(U)
    last = np.inf
    for used in range(1, max_iter + 1):
        if memory is None:
            memory = Memory((k + len(V), point.U.shape[1]), memory_size, joint=True)
        gradient = point.gradient(objective)
        memory.visit(np.vstack([point.U, point.V]), gradient)
        seed = factor_blocks(objective, MeanModel(objective, point.scores), point.U, point.V, point.scores_U)
        D, slope = memory.descent(gradient, seed)
        if max(-slope, last - point.value) <= small * point.value:
            break
        moved = _step(objective, point, D[:k], D[k:], slope)
        if moved is None:
            # The trials have overwritten the scores.
            point = Factors(objective, point.U, point.V, point.scores_U, space)
            break
        last = point.value
        point = moved
        note(point.value)
        if used % refresh_every == 0 and (lean := _drop_columns(objective, point, negligible)) is not None:
            point = lean
            memory = None
    return _drop_columns(objective, point, negligible) or point


def _step(objective: Objective, point: Factors, dU: FloatArray, dV: FloatArray, slope: float) -> Factors | None:
    """Return the point after a step along (dU, dV), or None if no length descends."""
    scores_dU = objective.design.scores(dU)

    def along(t: float) -> tuple[float, float, Factors]:
        moved = point.U + t * dU, point.V + t * dV, point.scores_U + t * scores_dU
        at = Factors(objective, *moved, point.space)
        return at.value, at.slope(objective, dU, dV, scores_dU), at

    return wolfe_step(along, point.value, slope)


def _drop_columns(objective: Objective, point: Factors, negligible: float) -> Factors | None:
    """Return the same point in fewer columns, or None if no column vanishes."""
    U, V = balance(point.U, point.V, negligible)
    if U.shape[1] == point.U.shape[1]:
        return None
    return point.replace_factors(objective, U, V, point.space)


def join_violations(
    objective: Objective, U: FloatArray, V: FloatArray, gradient: FloatArray, mean_hessian: FloatArray,
    most: int | None = None, spare: float = 0.0,
) -> tuple[FloatArray, FloatArray] | None:  # fmt: skip
    """Return the factors with the directions in which the gradient exceeds the nuclear weight; None if there are none.

    Parameters
    ----------
    objective : Objective
    U : array (n_columns, rank)
    V : array (n_labels, rank)
    gradient : array (n_columns, n_labels)
        Gradient of loss and ridge.
    mean_hessian : array (n_labels, n_labels)
    most : int, default=None
        Largest number of directions.
    spare : float, default=0.0
        Directions that together lower the lower bound by no more than this are left out.

    Returns
    -------
    tuple of two arrays, or None
    """
    nuclear = objective.nuclear.weight
    r = objective.ridge.row_weights
    # An excess below 1e-6 is a rounding error of the singular values.
    P, sigma, Q = leading_singular(gradient, most or min(gradient.shape), nuclear * (1 + 1e-6), near=V)
    if objective.ridge.weight:
        excess = (sigma - nuclear) ** 2 * np.sum(P**2 / r, axis=0) / objective.ridge.weight
        needed = np.cumsum(0.5 * excess[::-1])[::-1] > spare
        P, sigma, Q = P[:, needed], sigma[needed], Q[:, needed]
    if not len(sigma):
        return None
    curvature = objective.design.gram_diagonal[:, None] * (np.trace(mean_hessian) / len(mean_hessian))
    curvature = curvature + objective.ridge.weight * r
    size = np.sqrt((sigma - nuclear) / np.sum(P**2 * curvature, axis=0))
    U = np.hstack([U, -P * size])
    V = np.hstack([V, Q * size])
    return balance(U, V) if U.shape[1] > V.shape[0] else (U, V)


@dataclass(frozen=True)
class LowRank:
    """Quasi-Newton on factors W = U V', which grow by the directions that the optimum still misses.

    Without `max_rank` it ends at the optimum, certified, as every other solver does. It is fast where the rank is far below
    both sides of W, or where these are so long that W cannot be decomposed in every iteration.

    With `max_rank` it ends at a stationary point of the problem with the constraint rank(W) <= max_rank. That problem is not
    convex, and the point is a local optimum. The gap is the distance from the lower bound on the optimum without the
    constraint: no weights of any rank are better by more. It need not be small.

    Parameters
    ----------
    max_rank : int, default=None
        Largest number of columns of the factors; as many as the optimum needs by default.
    memory : int, default=20
        Number of steps that are remembered.
    first_rank : int, default=20
        Number of columns that the factors of very large weights start with, and that may join after a round.
    first_tol : float, default=1e-2
        Tolerance of a round while columns are missing.

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
    first_rank: int = 20
    first_tol: float = 1e-2

    def solve(self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult`."""
        if self.max_rank is not None:
            check_number("LowRank", "max_rank", self.max_rank, low=1, integer=True)
        run = Run(objective, tol, max_iter)
        most = int(min(*objective.shape, self.max_rank or np.inf))
        U, V = self._first_factors(objective, start, most)
        # Columns can join only below the largest rank. Otherwise the first round is the last one.
        small = 0.3 * tol if U.shape[1] == most else max(self.first_tol, 0.3 * tol)
        # With a limited rank no certificate ends the run, but a stationary point does.
        smallest = 1e-14 if self.max_rank is None else 0.01 * tol
        while True:
            run.now = now = self._find_stationary_point(run, U, V, small)
            run.note(now.value)
            W = now.U @ now.V.T
            adjoint = objective.design.adjoint(now.residual)
            run.certify(W, adjoint)
            if run.is_finished():
                break
            rank = now.U.shape[1]
            wanted = max(rank, self.first_rank)
            joined = None
            if rank < most:
                gradient = adjoint + objective.ridge.gradient(W)
                H = MeanModel(objective, now.scores).hessian
                joined = join_violations(objective, now.U, now.V, gradient, H, min(most - rank, wanted))
            U, V = joined or (now.U, now.V)
            if joined is None and small <= smallest:
                run.stopped_by = "itself"
                break
            # Round to a smaller tolerance, unless many columns are missing.
            if U.shape[1] < rank + wanted:
                small *= 0.1
        is_local_optimum = run.stopped_by == "itself" and self.max_rank is not None
        return run.result("The low-rank solver", W, run.gap() <= tol or is_local_optimum)

    def _first_factors(self, objective: Objective, start: Start, most: int) -> tuple[FloatArray, FloatArray]:
        """Return the factors of `start`, or by default of the minimiser of the mean model."""
        rank = most
        if start is None and min(objective.shape) > EXACT_BELOW:
            start = model_start(objective, rounds=0)
            rank = min(most, self.max_rank or self.first_rank)
        return split(model_start(objective) if start is None else start, most=rank)

    def _find_stationary_point(self, run: Run, U: FloatArray, V: FloatArray, small: float) -> Factors:
        """Return the end of a round from these factors, or factors without columns if their value is lower.

        The factors are balanced, so that their value is the value of the weights.
        """
        objective = run.objective
        zero = Factors(objective, U[:, :0], V[:, :0], objective.design.scores(U[:, :0]))
        if not U.shape[1]:
            return zero
        end = descend(objective, U, V, small, run.max_iter - run.n_iter - 1, self.memory, run.note)
        best = end.replace_factors(objective, *balance(end.U, end.V))
        return zero if zero.value <= best.value else best
