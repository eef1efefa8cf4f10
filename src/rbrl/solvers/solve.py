"""A problem solved as it was posed: coefficients as they will be stored, with a proof that does not trust the coordinates in
which they were found."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rbrl._common.linalg import squares
from rbrl._common.typing import FloatArray
from rbrl.exceptions import ConvergenceWarning
from rbrl.problem import Objective, SpectralDesign
from rbrl.solvers.base import Solver, SolverResult
from rbrl.solvers.certificate import DualPoint, Proof, prove_function, prove_kernel, prove_sums
from rbrl.solvers.quasi_newton import QuasiNewton

# A smaller decomposition of a kernel is too cheap to halve by single precision.
SMALLEST = 800
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
    """Coefficients as they are stored, the proof of what they are worth, and how the solver came to them."""

    coefficients: FloatArray
    proof: Proof
    result: SolverResult


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
    """

    prove: Callable[[FloatArray, Any], Proof]
    dtype: np.dtype[Any]
    evaluations: float = 1.0

    def judge(self, objective: Objective, result: SolverResult) -> Solution:
        """The :class:`Solution` that a solver's result is."""
        coefficients = objective.design.coefficients(result.weights).astype(self.dtype, copy=False)
        duals = result.scores if result.dual_scores is None else result.dual_scores
        duals = objective.design.scores(result.weights) if duals is None else duals
        # Products with what is stored are in double precision, whatever that is stored in.
        proof = self.prove(coefficients.astype(np.float64, copy=False), duals)
        return Solution(coefficients, proof, replace(result, evaluations=result.evaluations + self.evaluations))


def solve_posed(
    solver: Solver, objective: Objective, posed: Posed, start: FloatArray | None = None, tol: float = 1e-4,
    max_iter: int = 1000,
) -> Solution:  # fmt: skip
    """Solve and prove; where rounding took what was missing, once more with what it leaves of the tolerance.

    Parameters
    ----------
    solver : Solver
    objective : Objective
    posed : Posed
    start : array
        Weights over the objective's design.

    Returns
    -------
    Solution
        A proof above `tol` was said in a `ConvergenceWarning`, unless the solver stops by a rule of its own.
    """
    result, said = _quietly(solver, objective, start, tol, max_iter)
    solution = posed.judge(objective, result)
    left = tol - 1.5 * (solution.proof.gap - result.gap)
    if result.gap <= tol < solution.proof.gap and left > 0 and result.n_iter < max_iter:
        more, said = _quietly(solver, objective, result.weights, left, max_iter - result.n_iter)
        solution = posed.judge(objective, _joined(solution.result, more))
    gap, result = solution.proof.gap, solution.result
    stopped_by_own_rule = result.converged and result.gap > tol
    if gap <= tol or stopped_by_own_rule:
        return solution
    if gap > 2 * result.gap or not said:
        reached = f"only a relative gap of {gap:.1e}" if np.isfinite(gap) else "no relative gap"
        said = [
            f"Double precision proves {reached} of this solution, not tol={tol:g}. {AT_ITS_LIMIT if gap < FINE else SCALE}"
        ]
    for text in said:
        warnings.warn(text, ConvergenceWarning, stacklevel=2)
    return solution


def posed_blocks(objective: Objective) -> Posed:
    """The proof of a linear model over rows in blocks: of passes that the solver has made."""

    def point(known: Any) -> DualPoint:
        return DualPoint.of_squares(known.terms, known.gradient_squares, known.rounding_squares, known.score_squares)

    def prove(W: FloatArray, _: Any) -> Proof:
        here, others = objective.loss.remembered(W)
        design = objective.design
        duals = [(point(known), known.gradient) for known in others]
        norms, extended_loss = np.sqrt(design.column_squares), lambda: objective.loss.extended(W)
        return prove_sums(objective, norms, design.shape[0], W, point(here), duals, extended_loss)

    return Posed(prove, np.dtype(np.float64), evaluations=0.0)


def solve_kernel(
    solver: Solver, K: FloatArray, low_rank: str, ridge: float, objective_of: Callable[[SpectralDesign], Objective],
    dtype: np.dtype[Any], start: FloatArray | None = None, tol: float = 1e-4, max_iter: int = 1000,
) -> Solution:  # fmt: skip
    """Decompose a kernel matrix, and solve: over a spectrum of single precision, which costs half, where that is proved to
    do, and of double precision otherwise.

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

    Returns
    -------
    Solution
        Its result's weights are over a design that is not kept.
    """

    def over(K_of_design: FloatArray) -> tuple[Objective, Posed, FloatArray | None]:
        """The objective over the spectrum of a matrix, its proof by K itself, and the weights to start at."""
        objective = objective_of(SpectralDesign(K_of_design, low_rank))
        weights = None if start is None else objective.design.weights(start.astype(np.float64, copy=False))
        if low_rank == "coefficients":
            # With a nuclear norm a third matrix is multiplied, in the same pass over K.
            evaluations = 1.5 if objective.nuclear.weight else 1.0
            return objective, Posed(partial(prove_kernel, objective, K), dtype, evaluations), weights
        prove = partial(prove_function, objective, lambda V: (K @ V, np.sqrt(squares(K))))
        return objective, Posed(prove, dtype), weights

    single_may_do = len(K) >= SMALLEST and tol * ridge >= FINEST * np.trace(K)
    spent = 0.0
    if low_rank == "coefficients" and isinstance(solver, QuasiNewton) and single_may_do:
        objective, posed, weights = over(K.astype(np.float32))
        result, _ = _quietly(solver, objective, weights, SHARE * tol, max_iter)
        first = posed.judge(objective, result)
        if first.proof.gap <= tol:
            return first
        start, spent = first.coefficients, first.result.evaluations
    objective, posed, weights = over(K.copy())
    solution = solve_posed(solver, objective, posed, weights, tol, max_iter)
    solution.result = replace(solution.result, evaluations=solution.result.evaluations + spent)
    return solution


def _quietly(
    solver: Solver, objective: Objective, start: FloatArray | None, tol: float, max_iter: int
) -> tuple[SolverResult, list[str]]:
    """What a solver returns, and what it said of not having arrived, as a text: the proof decides whether that holds."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        result = solver.solve(objective, start=start, tol=tol, max_iter=max_iter)
    texts = []
    for warning in said:
        if issubclass(warning.category, ConvergenceWarning):
            texts.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return result, texts


def _joined(first: SolverResult, second: SolverResult) -> SolverResult:
    """One result of two runs, the second from where the first ended."""
    costs = None
    if first.costs is not None and second.costs is not None:
        costs = np.concatenate([first.costs, first.evaluations + second.costs])
    evaluations, n_iter = first.evaluations + second.evaluations, first.n_iter + second.n_iter
    history = np.concatenate([first.history, second.history])
    return replace(second, evaluations=evaluations, n_iter=n_iter, history=history, costs=costs)
