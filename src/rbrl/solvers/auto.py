"""The choice of a solver for a linear model, where the user leaves it open."""

from rbrl._loops import COMPILED
from rbrl.problem import MatrixDesign, Objective
from rbrl.solvers.base import Solver
from rbrl.solvers.dual_ascent import DualAscent
from rbrl.solvers.quasi_newton import QuasiNewton


def choose_solver(objective: Objective, max_iter: int = 1000) -> Solver:
    """Return the solver that is faster on problems of this kind.

    Dual ascent serves linear models in memory whose loss is made of squared hinges, if its loop is compiled. It needs a
    ridge that is not too weak for the length of the rows. The quasi-Newton solver serves everything else.
    `python -m benchmarks.text` has the times of dual ascent on text.

    Parameters
    ----------
    objective : Objective
        Over the rows as they are, :func:`rbrl.problem.linear.row_design`.
    max_iter : int, default=1000

    Returns
    -------
    Solver

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> from rbrl.solvers import choose_solver
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> choose_solver(Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=0.0, nuclear=0.0))
    QuasiNewton(memory=20)
    """
    of_rows = isinstance(objective.design, MatrixDesign) and objective.design.turn is None
    hinges = objective.loss.row_hinges(objective.Y.shape[1])
    if COMPILED and of_rows and hinges is not None and objective.ridge.weight > 0:
        ascent = DualAscent()
        if ascent.is_fit_for(objective, max_iter):
            return ascent
    return QuasiNewton()
