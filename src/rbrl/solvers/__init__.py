"""Solvers: algorithms that minimise an objective and return weights with a certificate."""

from functools import partial

from rbrl.solvers.apg import APG
from rbrl.solvers.auto import KernelBlocks as KernelBlocks
from rbrl.solvers.base import Solver, SolverResult
from rbrl.solvers.certificate import lower_bound
from rbrl.solvers.descent import Descent
from rbrl.solvers.dual_ascent import DualAscent
from rbrl.solvers.factored import LowRank
from rbrl.solvers.quasi_newton import QuasiNewton
from rbrl.solvers.solve import Certifier, Solution, solve_and_certify, solve_kernel

# Names that the parameter `solver` of an estimator accepts, each with the function that makes the solver.
SOLVERS = {
    "auto": QuasiNewton, "apg": partial(APG, restart=True), "dual-ascent": DualAscent, "low-rank": LowRank,
    "quasi-newton": QuasiNewton,
}  # fmt: skip

__all__ = [
    "APG", "SOLVERS", "Certifier", "Descent", "DualAscent", "LowRank", "QuasiNewton", "Solution", "Solver", "SolverResult",
    "lower_bound", "solve_and_certify", "solve_kernel",
]  # fmt: skip
