"""Kernel models from the kernel matrix: over a spectrum of single precision, which costs half, where that can be proved to
do, and of double precision otherwise."""

import warnings
from dataclasses import replace

import numpy as np

from rbrl.designs import SpectralDesign
from rbrl.exceptions import ConvergenceWarning
from rbrl.solvers.base import relative_gap
from rbrl.solvers.certificate import kernel_bound
from rbrl.solvers.quasi_newton import QuasiNewton

# A smaller decomposition is too cheap to halve.
SMALLEST = 800
# Rounding moves the scores by its share of K times the coefficients, which are as large as 1 / ridge. Measured on yeast:
# single precision does down to this value of tol * ridge / trace(K), and rarely below.
FINEST = 5e-9
# Share of the tolerance that the rounded problem is solved to; the rest is for what rounding costs.
SHARE = 0.9


def solve_kernel(solver, K, low_rank, ridge, objective_of, start=None, tol=1e-4, max_iter=1000):
    """Decompose a kernel matrix, and solve.

    Parameters
    ----------
    solver : Solver
    K : array (n_samples, n_samples)
        Its memory is reused.
    low_rank : {"coefficients", "function"}
    ridge : float
    objective_of : callable
        From a design to its objective, with that ridge.
    start : array (n_samples, n_labels), default=None
        Coefficients to start at.

    Returns
    -------
    design : SpectralDesign
    result : SolverResult
        Objective and gap are those of K, whatever the precision.
    """
    evaluations = 0.0
    if isinstance(solver, QuasiNewton) and low_rank == "coefficients" and _single_may_do(K, ridge, tol):
        design = SpectralDesign(K.astype(np.float32))
        result = _solve_rounded(solver, K, objective_of(design), start, tol, max_iter)
        if result.converged:
            return design, result
        start, evaluations = design.coefficients(result.weights), result.evaluations
    design = SpectralDesign(K, low_rank)
    weights = None if start is None else design.weights(start)
    result = solver.solve(objective_of(design), start=weights, tol=tol, max_iter=max_iter)
    return design, replace(result, evaluations=result.evaluations + evaluations)


def _single_may_do(K, ridge, tol):
    return len(K) >= SMALLEST and tol * ridge >= FINEST * np.trace(K)


def _solve_rounded(solver, K, objective, start, tol, max_iter):
    """Solve over the rounded spectrum, and certify the coefficients for K as it is."""
    weights = None if start is None else objective.design.weights(start)
    with warnings.catch_warnings():
        # Whether it arrived is decided below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solver.solve(objective, start=weights, tol=SHARE * tol, max_iter=max_iter)
    A = objective.design.coefficients(result.weights)
    scores = K @ A
    loss, residual = objective.loss.evaluate(objective.Y, scores, objective.sample_weight)
    ridge = 0.5 * objective.ridge.weight * float(np.sum(A * scores))
    value = loss.value + ridge + objective.nuclear.value(A)
    gap = relative_gap(value, kernel_bound(objective, K, result.weights, loss, residual))
    # Three products with K and one with the spectrum.
    evaluations = result.evaluations + 2
    return replace(result, objective=value, gap=gap, scores=scores, evaluations=evaluations, converged=gap <= tol)
