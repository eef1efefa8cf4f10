"""Solvers: minimise an objective, return weights with a certificate. `SOLVERS` maps names to what makes them."""

from functools import partial

from rbrl.solvers.apg import APG
from rbrl.solvers.base import SolverResult
from rbrl.solvers.certificate import lower_bound

SOLVERS = {"auto": partial(APG, restart=True), "apg": partial(APG, restart=True)}

__all__ = ["APG", "SOLVERS", "SolverResult", "lower_bound"]
