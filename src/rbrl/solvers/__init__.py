"""Solvers: minimise an objective, return weights with a certificate."""

from rbrl.solvers.apg import APG
from rbrl.solvers.base import SolverResult
from rbrl.solvers.certificate import lower_bound

__all__ = ["APG", "SolverResult", "lower_bound"]
