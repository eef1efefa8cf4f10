"""The choice of a solver for a problem, where the user leaves it open."""

from rbrl._loops import COMPILED
from rbrl.losses import Loss
from rbrl.solvers.base import Solver
from rbrl.solvers.dual_ascent import DualAscent
from rbrl.solvers.quasi_newton import QuasiNewton


def choose_solver(loss: Loss, n_labels: int, ridge: float, linear: bool) -> Solver:
    """Return the solver that is faster on problems of this kind.

    Dual ascent serves every linear model in memory whose loss is made of squared hinges, if there is a ridge and its loop is
    compiled. `python -m benchmarks.solver` has its time beside that of the quasi-Newton solver, which serves everything else.

    Parameters
    ----------
    loss : Loss
    n_labels : int
    ridge : float
    linear : bool
        Whether the model is linear in features that are in memory.

    Returns
    -------
    Solver

    Examples
    --------
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.solvers.auto import choose_solver
    >>> choose_solver(SquaredHinge(), n_labels=3, ridge=0.0, linear=True)
    QuasiNewton(memory=20)
    """
    served = linear and COMPILED and ridge > 0 and loss.row_hinges(n_labels) is not None
    return DualAscent() if served else QuasiNewton()
