"""The paper's results beside ours: cell by cell, claim by claim, and what made them."""

from rbrl.report.reproduction.beside import (
    friedman_beside,
    ranks_beside,
    results_beside,
    time_beside,
)

__all__ = ["friedman_beside", "ranks_beside", "results_beside", "time_beside"]
