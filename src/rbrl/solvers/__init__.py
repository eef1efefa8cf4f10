"""Solvers: algorithms that minimise an objective and return weights with a certificate."""

from functools import partial

from rbrl.solvers.apg import APG
from rbrl.solvers.base import Solver, SolverResult
from rbrl.solvers.certificate import lower_bound
from rbrl.solvers.dual_ascent import DualAscent
from rbrl.solvers.dual_ascent import KernelBlocks as KernelBlocks
from rbrl.solvers.factored import LowRank
from rbrl.solvers.quasi_newton import Descent as Descent
from rbrl.solvers.quasi_newton import QuasiNewton
from rbrl.solvers.solve import Certifier as Certifier
from rbrl.solvers.solve import Solution as Solution
from rbrl.solvers.solve import SolverRule as SolverRule
from rbrl.solvers.solve import solve_and_certify as solve_and_certify
from rbrl.solvers.solve import solve_kernel as solve_kernel

# Names that the parameter `solver` of an estimator accepts, each with the function that makes the solver.
SOLVERS = {
    "auto": QuasiNewton, "apg": partial(APG, restart=True), "dual-ascent": DualAscent, "low-rank": LowRank,
    "quasi-newton": QuasiNewton,
}  # fmt: skip

__all__ = [
    "APG", "SOLVERS", "DualAscent", "LowRank", "QuasiNewton", "Solver", "SolverResult", "lower_bound",
]  # fmt: skip
