"""Solvers: minimise an objective, return weights with a certificate. `SOLVERS` maps names to what makes them."""

from functools import partial

from rbrl.solvers.apg import APG
from rbrl.solvers.auto import KernelBlocks, choose_solver
from rbrl.solvers.base import Solver, SolverResult
from rbrl.solvers.certificate import lower_bound
from rbrl.solvers.descent import Descent
from rbrl.solvers.dual_ascent import DualAscent
from rbrl.solvers.factored import LowRank
from rbrl.solvers.quasi_newton import QuasiNewton
from rbrl.solvers.solve import Posed, Solution, solve_kernel, solve_posed

# What the parameter `solver` may name, and what makes it.
SOLVERS = {
    "auto": QuasiNewton, "apg": partial(APG, restart=True), "dual-ascent": DualAscent, "low-rank": LowRank,
    "quasi-newton": QuasiNewton,
}  # fmt: skip

__all__ = [
    "APG", "SOLVERS", "Descent", "DualAscent", "KernelBlocks", "LowRank", "Posed", "QuasiNewton", "Solution", "Solver",
    "SolverResult",
    "choose_solver", "lower_bound", "solve_kernel", "solve_posed",
]  # fmt: skip
