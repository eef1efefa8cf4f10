r"""Low rank by factors: W = U V', with the nuclear norm as (||U||^2 + ||V||^2) / 2.

The optimum is the same, the problem is smooth at low rank, and products have the width of the rank. A round ends at a
stationary point. It is the optimum where no singular value of the gradient of loss and ridge exceeds the nuclear weight.
Directions that exceed it join the factors for another round.

Large problems are evaluated in blocks of rows. Neither the weights nor the scores are then in memory as a whole, and the
memory grows with the rank times the numbers of rows, columns and labels.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from rbrl._common.checks import check_number
from rbrl._common.linalg import EXACT_BELOW, leading_singular
from rbrl._common.matrices import LowRankMatrix, balance, make_operator, split
from rbrl._common.typing import FloatArray
from rbrl.losses import Terms
from rbrl.losses.base import sum_terms
from rbrl.problem.objective import Objective
from rbrl.solvers.base import Run, SolverResult
from rbrl.solvers.lbfgs import Memory
from rbrl.solvers.line_search import SmoothedPoint, wolfe_step
from rbrl.solvers.preconditioner import MeanModel, factor_blocks, mean_curvature, model_start, row_hessian

WEAK_BOUND = (
    "The lower bound of a nuclear norm is weak for weights that stay in factors: `gap_` has the gap that it proves. Set "
    "max_rank to accept it, or use solver='auto'."
)


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
        super().__init__(objective, self._multiply(), ridge, out=None if space is None else space[1])
        self.value += 0.5 * objective.nuclear.weight * float(np.sum(U**2) + np.trace(self._gram_V))

    def _multiply(self) -> Any:
        """Return the scores."""
        if self.space is None:
            return self.scores_U @ self.V.T
        return np.dot(self.scores_U, self.V.T, out=self.space[0])

    @staticmethod
    def make_space(objective: Objective, scores_U: Any) -> FloatArray | None:
        """Return memory for scores and residual, which several points may share."""
        # To allocate an array of the size of the scores takes longer than to compute the loss.
        return np.empty((2, *objective.Y.shape)) if isinstance(scores_U, np.ndarray) else None

    def mean_model(self, objective: Objective) -> MeanModel:
        """Return the mean model of the objective at the scores."""
        return MeanModel(objective, self.scores)

    def replace_factors(self, objective: Objective, U: FloatArray, V: FloatArray, space: Any = None) -> "Factors":
        """Return the same weights in factors U and V, where the columns of V must be orthogonal."""
        return type(self)(objective, U, V, self.scores_U @ (self.V.T @ V / np.sum(V**2, axis=0)), space)

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


class FactorsInBlocks(Factors):
    """Factors whose scores and residual are computed in blocks of rows and not kept.

    Attributes
    ----------
    scores : LowRankMatrix (n_samples, n_labels)
    residual : LinearOperator (n_samples, n_labels)
        Each product computes the scores once more.
    hessian : array (n_labels, n_labels) or (n_labels,)
        Sum of the Hessians of the rows, or its diagonal.
    """

    def _multiply(self) -> LowRankMatrix:
        return LowRankMatrix(self.scores_U, self.V)

    def _evaluate_loss(self, objective: Objective, out: Any) -> tuple[Terms, LinearOperator]:
        terms = []
        pull_U = np.empty(self.scores_U.shape)
        pull_V = np.zeros(self.V.shape)
        self.hessian: Any = 0.0
        for rows, Y, weights in objective.row_blocks(of_factors=True):
            F, R = np.empty((2, *Y.shape)) if self.space is None else self.space[:, : len(Y)]
            np.dot(self.scores_U[rows], self.V.T, out=F)
            R.fill(0.0)
            terms.append(objective.loss.accumulate(Y, F, weights, 1.0, R))
            pull_U[rows] = R @ self.V
            pull_V += R.T @ self.scores_U[rows]
            self.hessian = self.hessian + row_hessian(objective, Y, F, weights)
        self._pulls = pull_U, pull_V
        return sum_terms(terms), objective.residual_operator(self.scores)

    @staticmethod
    def make_space(objective: Objective, scores_U: Any) -> FloatArray:
        """Return memory for the scores and the residual of a block."""
        labels = next(objective.row_blocks(of_factors=True))[1]
        return np.empty((2, *labels.shape))

    def mean_model(self, objective: Objective) -> MeanModel:
        """Return the mean model of the objective, from the Hessians of the rows."""
        return MeanModel(objective, None, self.hessian)

    def smooth_gradient(self, objective: Objective) -> LinearOperator:
        """Return the gradient of loss and ridge with respect to the weights: (n_columns, n_labels)."""
        design = objective.design
        weighted_U = objective.ridge.weight * self._weighted_U
        return make_operator(
            objective.shape,
            lambda Q: design.adjoint(self.residual @ Q) + weighted_U @ (self.V.T @ Q),
            lambda P: self.residual.T @ design.scores(P) + self.V @ (weighted_U.T @ P),
        )

    @classmethod
    def minimise_mean_model(cls, objective: Objective, rank: int) -> tuple[FloatArray, FloatArray]:
        """Return factors of the minimiser of the mean model at zero scores, in which all labels have one curvature.

        The minimiser is a linear operator, of which the leading singular vectors are computed.
        """
        n_columns, n_labels = objective.shape
        design = objective.design
        zero = cls(objective, np.zeros((n_columns, 0)), np.zeros((n_labels, 0)), np.zeros((design.shape[0], 0)))
        inverse = -zero.mean_model(objective).row_inverse()[:, None]
        minimiser = make_operator(
            objective.shape,
            lambda Q: inverse * design.adjoint(zero.residual @ Q),
            lambda P: zero.residual.T @ design.scores(inverse * P),
        )
        return split(minimiser, most=rank)


def descend(
    objective: Objective, U: FloatArray, V: FloatArray, small: float, max_iter: int, memory_size: int,
    note: Callable[[float], None], refresh_every: int = 5, negligible: float = 1e-5, kind: type[Factors] = Factors,
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
    kind : subclass of Factors, default=Factors
        Class of the points.
    """
    scores_U = objective.design.scores(U)
    space = kind.make_space(objective, scores_U)
    point = kind(objective, U, V, scores_U, space)
    memory: Memory | None = None
    k = len(U)
    last = np.inf
    for used in range(1, max_iter + 1):
        if memory is None:
            memory = Memory((k + len(V), point.U.shape[1]), memory_size, joint=True)
        gradient = point.gradient(objective)
        memory.visit(np.vstack([point.U, point.V]), gradient)
        seed = factor_blocks(objective, point.mean_model(objective), point.U, point.V, point.scores_U)
        D, slope = memory.descent(gradient, seed)
        if max(-slope, last - point.value) <= small * point.value:
            break
        moved = _step(objective, point, D[:k], D[k:], slope)
        if moved is None:
            # The trials have overwritten the scores.
            point = kind(objective, point.U, point.V, point.scores_U, space)
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
        at = type(point)(objective, *moved, point.space)
        return at.value, at.slope(objective, dU, dV, scores_dU), at

    return wolfe_step(along, point.value, slope)


def _drop_columns(objective: Objective, point: Factors, negligible: float) -> Factors | None:
    """Return the same point in fewer columns, or None if no column vanishes."""
    U, V = balance(point.U, point.V, negligible)
    if U.shape[1] == point.U.shape[1]:
        return None
    return point.replace_factors(objective, U, V, point.space)


def join_violations(
    objective: Objective, U: FloatArray, V: FloatArray, gradient: Any, mean_hessian: FloatArray,
    most: int | None = None, spare: float = 0.0,
) -> tuple[FloatArray, FloatArray] | None:  # fmt: skip
    """Return the factors with the directions in which the gradient exceeds the nuclear weight; None if there are none.

    Parameters
    ----------
    objective : Objective
    U : array (n_columns, rank)
    V : array (n_labels, rank)
    gradient : array or LinearOperator (n_columns, n_labels)
        Gradient of loss and ridge.
    mean_hessian : array (n_labels, n_labels) or (n_labels,)
        Mean Hessian of a row, or its diagonal.
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
    curvature = objective.design.gram_diagonal[:, None] * mean_curvature(mean_hessian)
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
    in_blocks : bool, default=False
        Whether scores are computed in blocks of rows, and the weights of the result are a
        :class:`LowRankMatrix`. The solver then certifies no bound above 0. The proof of the coefficients has a gap.
    memory_bytes : int, default=2**30
        Largest size of the steps that are remembered, unless five steps need more.

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
    in_blocks: bool = field(default=False, repr=False)
    memory_bytes: int = field(default=2**30, repr=False)

    def solve(
        self, objective: Objective, start: FloatArray | LowRankMatrix | None = None, tol: float = 1e-4,
        max_iter: int = 1000,
    ) -> SolverResult:  # fmt: skip
        """Minimise `objective`; return a :class:`SolverResult`."""
        if self.max_rank is not None:
            check_number("LowRank", "max_rank", self.max_rank, low=1, integer=True)
        run = Run(objective, tol, max_iter)
        most = int(min(*objective.shape, self.max_rank or np.inf))
        U, V = self._first_factors(objective, start, most)
        # Columns can join only below the largest rank. Otherwise the first round is the last one.
        small = 0.3 * tol if U.shape[1] == most else max(self.first_tol, 0.3 * tol)
        # With a limited rank no certificate ends the run, but a stationary point does.
        smallest = 1e-14 if self.max_rank is None and not self.in_blocks else 0.01 * tol
        if self.in_blocks and U.shape[1] == most:
            small = smallest
        while True:
            run.now = now = self._find_stationary_point(run, U, V, small)
            run.note(now.value)
            weights, gradient = self._certify(run, now)
            if run.is_finished():
                break
            rank = now.U.shape[1]
            wanted = max(rank, self.first_rank)
            joined = None
            if rank < most:
                H = now.mean_model(objective).hessian
                joined = join_violations(objective, now.U, now.V, gradient, H, min(most - rank, wanted))
            U, V = joined or (now.U, now.V)
            if joined is None and small <= smallest:
                run.stopped_by = "itself"
                break
            # Round to a smaller tolerance, unless many columns are missing.
            if U.shape[1] < rank + wanted:
                small *= 0.1
        is_stationary = run.stopped_by == "itself"
        converged = run.gap() <= tol or (is_stationary and self.max_rank is not None)
        return run.result(
            "The low-rank solver", weights, converged, WEAK_BOUND if is_stationary and self.in_blocks else None
        )

    def count_steps(self, n_entries: int) -> int:
        """Return the number of steps that are remembered for factors with `n_entries` entries."""
        return min(self.memory, max(5, self.memory_bytes // (16 * max(n_entries, 1))))

    def _certify(self, run: Run, now: Any) -> tuple[Any, Any]:
        """Certify the current point, and return its weights and the gradient of loss and ridge there."""
        objective = run.objective
        if self.in_blocks:
            # A good bound would take longer than a round.
            run.keep_bound(0.0)
            return LowRankMatrix(now.U, now.V), now.smooth_gradient(objective)
        W = now.U @ now.V.T
        adjoint = objective.design.adjoint(now.residual)
        run.certify(W, adjoint)
        return W, adjoint + objective.ridge.gradient(W)

    def _first_factors(
        self, objective: Objective, start: FloatArray | LowRankMatrix | None, most: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the factors of `start`, or by default of the minimiser of the mean model."""
        if isinstance(start, LowRankMatrix):
            U, V = balance(*start, negligible=1e-3)
            return U[:, :most], V[:, :most]
        rank = min(most, self.max_rank or self.first_rank)
        if start is None and self.in_blocks:
            return FactorsInBlocks.minimise_mean_model(objective, rank)
        if start is None and min(objective.shape) > EXACT_BELOW:
            return split(model_start(objective, rounds=0), most=rank)
        return split(model_start(objective) if start is None else start, most=most)

    def _find_stationary_point(self, run: Run, U: FloatArray, V: FloatArray, small: float) -> Factors:
        """Return the end of a round from these factors, or factors without columns if their value is lower.

        The factors are balanced, so that their value is the value of the weights.
        """
        objective = run.objective
        kind = FactorsInBlocks if self.in_blocks else Factors
        zero = kind(objective, U[:, :0], V[:, :0], objective.design.scores(U[:, :0]))
        if not U.shape[1]:
            return zero
        n_steps = self.count_steps(U.size + V.size)
        end = descend(objective, U, V, small, run.max_iter - run.n_iter - 1, n_steps, run.note, kind=kind)
        best = end.replace_factors(objective, *balance(end.U, end.V))
        return zero if zero.value <= best.value else best
