"""The choice of a solver, where the user leaves it open."""

import warnings
from dataclasses import dataclass

from rbrl._loops import COMPILED
from rbrl.problem import LARGEST_DECOMPOSITION, KernelDesign, Objective
from rbrl.solvers.base import Solver
from rbrl.solvers.dual_ascent import DualAscent, is_visitable
from rbrl.solvers.proximal_points import ProximalPoints
from rbrl.solvers.quasi_newton import QuasiNewton


@dataclass(frozen=True)
class KernelBlocks(DualAscent):
    """Dual ascent, by the name of the solver for large kernels in version 0.1.0, whose model files may have it.

    Parameters
    ----------
    memory, leading : int
        Parameters of that solver, which have no effect.
    """

    memory: int = 20
    leading: int = 200

    def __post_init__(self) -> None:
        warnings.warn(
            "KernelBlocks is an old name: use rbrl.solvers.DualAscent, or the solver 'auto'.",
            DeprecationWarning,
            stacklevel=3,
        )


def choose_solver(objective: Objective, max_iter: int = 1000) -> Solver:
    """Return the solver that is faster on problems of this kind.

    Dual ascent serves objectives whose rows it can visit, if its loop is compiled and the loss of a row has the terms that
    the loop knows. It needs a ridge that is not too weak for the length of the rows: momentum needs some sqrt(R / ridge)
    proximal problems of some passes each, and `max_iter` is the number of passes. The quasi-Newton solver serves everything
    else. Only a kernel matrix that is too large to be decomposed is left to dual ascent in any case.
    `python -m benchmarks.text` has the times of dual ascent on text, `python -m benchmarks.kernel_rows` those with kernels.

    Parameters
    ----------
    objective : Objective
        Objective over the rows as they are: :func:`rbrl.problem.linear.row_design`, :class:`rbrl.problem.KernelDesign`.
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
    ascent = DualAscent()
    if not is_visitable(objective) or not objective.ridge.weight > 0:
        return QuasiNewton()
    if objective.loss.row_terms(objective.Y.shape[1]) is None:
        return QuasiNewton()
    if isinstance(objective.design, KernelDesign) and len(objective.Y) > LARGEST_DECOMPOSITION:
        return ascent
    n_problems = ProximalPoints.of(objective, ascent.proximal_share).n_problems
    return ascent if COMPILED and ascent.passes * n_problems <= max_iter else QuasiNewton()
