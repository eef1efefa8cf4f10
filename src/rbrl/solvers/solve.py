"""A problem solved as it was posed: coefficients as they will be stored, with a proof that does not trust the coordinates in
which they were found."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rbrl._common.linalg import squares
from rbrl._common.typing import FloatArray
from rbrl.problem import Design, MatrixDesign, Objective, SpectralDesign
from rbrl.solvers.base import Solver, SolverResult, Start
from rbrl.solvers.proof import Proof, prove_function, prove_kernel
from rbrl.solvers.quasi_newton import QuasiNewton

# A smaller decomposition of a kernel is too cheap to halve by single precision: of 356 rows, at (1, .1, .1), the whole takes
# 23 instead of 32 ms.
SMALLEST = 200
# Rounding moves the scores by its share of K times the coefficients, which are as large as 1 / ridge. Measured on yeast:
# single precision does down to this value of tol * ridge / trace(K), and rarely below.
FINEST = 5e-9
# Share of the tolerance that the rounded problem is solved to; the rest is for what rounding costs.
SHARE = 0.9
# A gap that is as small as this has nothing to do with how the problem is scaled.
FINE = 1e-9
AT_ITS_LIMIT = "That is its limit: raise tol."
SCALE = (
    "Columns of X, or values of the kernel, differ too much in size: scale X, for example with "
    "sklearn.preprocessing.StandardScaler."
)


@dataclass
class Solution:
    """Coefficients as they are stored, the proof of what they are worth, and how the solver came to them.

    Attributes
    ----------
    coefficients : array (n_features, n_labels), or (n_samples, n_labels) of a kernel
    proof : Proof
        The objective of these coefficients, and their gap.
    result : SolverResult
        Its own messages are those of the solver, before the proof.
    messages : tuple of str
        Why the proof is above the tolerance, and what to do about it; empty if it is not, or if the solver stops by a rule
        of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective
    >>> from rbrl.solvers import QuasiNewton, solve_kernel
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1], [-1]])
    >>> solution = solve_kernel(QuasiNewton(), K, "coefficients", 1.0, lambda design: Objective(
    ...     design, Y, SquaredHinge(), ridge=1.0, nuclear=0.0), np.dtype(np.float64))
    >>> solution.proof.objective > 0, solution.result.converged, solution.messages
    (True, True, ())
    """

    coefficients: FloatArray
    proof: Proof
    result: SolverResult
    messages: tuple[str, ...] = ()

    def after(self, first: "Solution") -> "Solution":
        """Return this solution with the iterations of another one, which it started from, before its own.

        Parameters
        ----------
        first : Solution

        Returns
        -------
        Solution
        """
        return replace(self, result=_joined(first.result, self.result))


@dataclass(frozen=True)
class Posed:
    """What is to be proved of a result.

    Attributes
    ----------
    prove : callable
        From coefficients as they are stored, and scores at which the solver found its best bound, to a :class:`Proof`.
    dtype : dtype
        Of the coefficients as they are stored.
    evaluations : float
        What a proof costs.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective, SpectralDesign
    >>> from rbrl.solvers import Posed, QuasiNewton
    >>> from rbrl.solvers.proof import prove_kernel
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(SpectralDesign(K.copy()), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> posed = Posed(partial(prove_kernel, objective, K), np.dtype(np.float64))
    >>> solution = posed.judge(objective, QuasiNewton().solve(objective))
    >>> solution.coefficients.shape, solution.proof.gap <= 1e-4
    ((2, 1), True)
    """

    prove: Callable[[FloatArray, Any], Proof]
    dtype: np.dtype[Any]
    evaluations: float = 1.0

    def judge(self, objective: Objective, result: SolverResult) -> Solution:
        """The :class:`Solution` that a solver's result is."""
        coefficients = objective.design.coefficients(result.weights).astype(self.dtype, copy=False)
        if (idle := objective.idle_labels()).any():
            # A solver leaves rounding there, whose sign would be taken for a prediction.
            coefficients[:, idle] = 0.0
        duals = result.scores if result.dual_scores is None else result.dual_scores
        duals = objective.design.scores(result.weights) if duals is None else duals
        if _holds_weights(coefficients, objective.design):
            # Weights are the largest arrays of a fit, and the proof needs room.
            result.weights = None
        # Products with what is stored are in double precision, whatever that is stored in.
        proof = self.prove(coefficients.astype(np.float64, copy=False), duals)
        return Solution(coefficients, proof, replace(result, evaluations=result.evaluations + self.evaluations))


def _holds_weights(coefficients: FloatArray, design: Design) -> bool:
    """Return whether weights over the design can be computed from coefficients as they are stored, to the last digit."""
    return isinstance(design, MatrixDesign) and design.turn is None and coefficients.dtype == np.float64


def solve_posed(
    solver: Solver, objective: Objective, posed: Posed, start: Start = None, tol: float = 1e-4, max_iter: int = 1000
) -> Solution:
    """Solve and prove; where rounding took what was missing, once more with what it leaves of the tolerance.

    Parameters
    ----------
    solver : Solver
    objective : Objective
    posed : Posed
    start : array
        Weights over the objective's design.
    tol : float, default=1e-4
        The gap to stop at.
    max_iter : int, default=1000

    Returns
    -------
    Solution
        Its messages say why a proof is above `tol`. Nothing is given as a warning: that is for the caller to do.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective, SpectralDesign
    >>> from rbrl.solvers import Posed, QuasiNewton, solve_posed
    >>> from rbrl.solvers.proof import prove_kernel
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(SpectralDesign(K.copy()), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> posed = Posed(partial(prove_kernel, objective, K), np.dtype(np.float64))
    >>> solve_posed(QuasiNewton(), objective, posed).proof.gap <= 1e-4
    True
    """
    solution = posed.judge(objective, solver.solve(objective, start=start, tol=tol, max_iter=max_iter))
    result = solution.result
    left = tol - 1.5 * (solution.proof.gap - result.gap)
    if result.gap <= tol < solution.proof.gap and left > 0 and result.n_iter < max_iter:
        again = objective.design.weights(solution.coefficients) if result.weights is None else result.weights
        more = solver.solve(objective, start=again, tol=left, max_iter=max_iter - result.n_iter)
        solution = posed.judge(objective, _joined(result, more))
    gap, result = solution.proof.gap, solution.result
    stopped_by_own_rule = result.converged and result.gap > tol
    if gap <= tol or stopped_by_own_rule:
        return solution
    messages = result.messages
    if gap > 2 * result.gap or not messages:
        reached = f"only a relative gap of {gap:.1e}" if np.isfinite(gap) else "no relative gap"
        remedy = AT_ITS_LIMIT if gap < FINE else SCALE
        messages = (f"Double precision proves {reached} of this solution, not tol={tol:g}. {remedy}",)
    return replace(solution, messages=messages)


def solve_kernel(
    solver: Solver, K: FloatArray, low_rank: str, ridge: float, objective_of: Callable[[SpectralDesign], Objective],
    dtype: np.dtype[Any], start: Start = None, tol: float = 1e-4, max_iter: int = 1000,
) -> Solution:  # fmt: skip
    """Decompose a kernel matrix, and solve.

    The spectrum is of single precision, which costs half, where that is proved to do, and of double precision otherwise.

    Parameters
    ----------
    solver : Solver
    K : array (n_samples, n_samples)
    low_rank : {"coefficients", "function"}
    ridge : float
    objective_of : callable
        From a design to its objective, with that ridge.
    dtype : dtype
        Of the coefficients as they are stored.
    start : array (n_samples, n_labels), default=None
        Coefficients to start at.
    tol : float, default=1e-4
        The gap to stop at.
    max_iter : int, default=1000

    Returns
    -------
    Solution
        Its result's weights are over a design that is not kept.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective
    >>> from rbrl.solvers import QuasiNewton, solve_kernel
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1], [-1]])
    >>> solution = solve_kernel(QuasiNewton(), K, "coefficients", 1.0, lambda design: Objective(
    ...     design, Y, SquaredHinge(), ridge=1.0, nuclear=0.0), np.dtype(np.float64))
    >>> solution.coefficients.shape, solution.proof.gap <= 1e-4
    ((2, 1), True)
    """

    def over(K_of_design: FloatArray) -> tuple[Objective, Posed, Start]:
        """The objective over the spectrum of a matrix, its proof by K itself, and the weights to start at."""
        objective = objective_of(SpectralDesign(K_of_design, low_rank))
        weights = None if start is None else objective.design.weights(start.astype(np.float64, copy=False))
        if low_rank == "function":
            prove = partial(prove_function, objective, K.dot, np.sqrt(squares(K)), K=K)
            return objective, Posed(prove, dtype), weights
        # With a nuclear norm a third matrix is multiplied, in the same pass over K.
        evaluations = 1.5 if objective.nuclear.weight else 1.0
        return objective, Posed(partial(prove_kernel, objective, K), dtype, evaluations), weights

    first, single_may_do = None, len(K) >= SMALLEST and tol * ridge >= FINEST * np.trace(K)
    if single_may_do and low_rank == "coefficients" and isinstance(solver, QuasiNewton):
        objective, posed, weights = over(K.astype(np.float32))
        first = posed.judge(objective, solver.solve(objective, start=weights, tol=SHARE * tol, max_iter=max_iter))
        if first.proof.gap <= tol:
            return first
        start, max_iter = first.coefficients, max(max_iter - first.result.n_iter, 1)
    solution = solve_posed(solver, *over(K.copy()), tol, max_iter)
    return solution if first is None else solution.after(first)


def _joined(first: SolverResult, second: SolverResult) -> SolverResult:
    """One result of two runs, the second from where the first ended."""
    history, costs = [first.history, second.history], [first.costs, first.evaluations + second.costs]
    joined = replace(second, history=np.concatenate(history), costs=np.concatenate(costs))
    joined.evaluations, joined.n_iter = first.evaluations + second.evaluations, first.n_iter + second.n_iter
    return joined
