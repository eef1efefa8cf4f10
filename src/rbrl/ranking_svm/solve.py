"""Solve a ranking SVM, and certify the coefficients that its model stores."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.ranking_svm.certificate import Certificate, FeatureSpace, LinearSpace, certify
from rbrl.ranking_svm.pairs import GramRows, HingePairs, Rows
from rbrl.ranking_svm.pairwise_ascent import DualResult, PairwiseAscent, Start
from rbrl.solvers.base import message_unconverged

REMEDY = "Raise max_iter or tol, scale X, or use a smaller C."


@dataclass(frozen=True)
class PairProblem:
    """A ranking SVM to solve.

    Attributes
    ----------
    rows : GramRows or FeatureRows
        Rows as the solver needs them.
    space : LinearSpace or KernelSpace
        The same rows as the certificate needs them.
    pairs : HingePairs
    lift : float
        Square of the constant feature whose weights are the biases: 0 for no biases, `inf` for free ones.
    n_labels : int
        Number of labels without the zero label.
    dtype : dtype
        Type of the stored coefficients.
    """

    rows: Rows
    space: FeatureSpace
    pairs: HingePairs
    lift: float
    n_labels: int
    dtype: np.dtype[Any]

    def to_stored(self, result: DualResult) -> tuple[FloatArray, FloatArray]:
        """Return coefficients and biases as a model stores them, with the zero label subtracted."""
        coefficients = result.weights
        if isinstance(self.space, LinearSpace) and isinstance(self.rows, GramRows):
            coefficients = np.asarray(self.space.X.T @ coefficients)
        biases = result.biases
        if coefficients.shape[1] > self.n_labels:
            coefficients = coefficients[:, : self.n_labels] - coefficients[:, self.n_labels :]
            biases = biases[: self.n_labels] - biases[self.n_labels]
        return coefficients.astype(self.dtype, copy=False), biases.astype(self.dtype)


@dataclass(frozen=True)
class PairSolution:
    """Coefficients as they are stored, with their certificate.

    Attributes
    ----------
    coefficients, biases : arrays
    certificate : Certificate
    result : DualResult
        Result of the solver.
    message : str
        Text of a warning; empty if the certificate reaches the tolerance.
    """

    coefficients: FloatArray
    biases: FloatArray
    certificate: Certificate
    result: DualResult
    message: str = ""


def solve_and_certify(problem: PairProblem, start: Start | None, tol: float, max_iter: int) -> PairSolution:
    """Solve a ranking SVM, and certify what is stored.

    If rounding of the stored coefficients takes a part of the tolerance, the solver goes on once with the rest of it.

    Parameters
    ----------
    problem : PairProblem
    start : tuple (duals, biases) or None
    tol : float
        Relative gap to stop at.
    max_iter : int

    Returns
    -------
    PairSolution
    """
    solution = _solve(problem, start, tol, max_iter)
    result, gap = solution.result, solution.certificate.gap
    left = tol - 1.5 * (gap - result.gap)
    if result.gap <= tol < gap and left > 0 and result.n_iter < max_iter:
        again = _solve(problem, (result.duals, result.biases), left, max_iter - result.n_iter)
        n_iter = result.n_iter + again.result.n_iter
        history = np.concatenate([result.history, again.result.history])
        again = replace(again, result=replace(again.result, n_iter=n_iter, history=history))
        solution = min(again, solution, key=lambda found: found.certificate.gap)
    return replace(solution, message=_describe(solution, problem.dtype, tol, max_iter))


def _solve(problem: PairProblem, start: Start | None, tol: float, max_iter: int) -> PairSolution:
    result = PairwiseAscent().solve(problem.rows, problem.pairs, problem.lift, start, tol, max_iter)
    coefficients, biases = problem.to_stored(result)
    duals = result.best_duals
    certificate = certify(problem.space, problem.pairs, problem.lift, coefficients, biases, duals)
    return PairSolution(coefficients, biases, certificate, result)


def _describe(solution: PairSolution, dtype: np.dtype[Any], tol: float, max_iter: int) -> str:
    """Return the text of a warning, or an empty text where the certificate reaches the tolerance."""
    gap, result = solution.certificate.gap, solution.result
    if gap <= tol:
        return ""
    if result.gap > tol:
        reached = replace(result, objective=solution.certificate.objective, gap=gap)
        return message_unconverged("Dual ascent", reached, tol, max_iter, REMEDY)
    reached_gap = f"only to a relative gap of {gap:.1e}" if np.isfinite(gap) else "to no relative gap"
    remedy = "Pass X as float64, scale X" if dtype == np.float32 else "Scale X"
    return (
        f"Coefficients of type {dtype} could be certified {reached_gap}, not to tol={tol:g}, because of rounding. "
        f"{remedy}, use a smaller C, or raise tol."
    )
