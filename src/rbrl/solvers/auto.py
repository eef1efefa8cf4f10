"""The rule that chooses a solver if the user does not."""

import warnings
from dataclasses import dataclass

import numpy as np

from rbrl._common.typing import issparse
from rbrl._loops import COMPILED
from rbrl.problem import LARGEST_DECOMPOSITION, KernelDesign, MatrixDesign, Objective
from rbrl.solvers.base import Solver
from rbrl.solvers.dual_ascent import DualAscent, is_visitable
from rbrl.solvers.proximal_points import ProximalPoints
from rbrl.solvers.quasi_newton import QuasiNewton


@dataclass(frozen=True)
class KernelBlocks(DualAscent):
    """Old name of dual ascent, which model files of version 0.1.0 may contain.

    Parameters
    ----------
    memory, leading : int
        Old parameters without effect.
    """

    memory: int = 20
    leading: int = 200

    def __post_init__(self) -> None:
        warnings.warn(
            "KernelBlocks is an old name: use rbrl.solvers.DualAscent, or the solver 'auto'.",
            DeprecationWarning,
            stacklevel=3,
        )


@dataclass(frozen=True)
class SolverRule:
    r"""The rule that chooses between dual ascent and the quasi-Newton solver.

    It uses only what is known before the fit. Dual ascent is possible if

    - the design has rows that it can visit, and its loop is compiled;
    - the loss of a row consists of squared hinges and quadratic forms;
    - there is a ridge. With the ridge R of its proximal problems, momentum needs about
      :math:`\sqrt{R / \lambda_1}` of them.

    The quasi-Newton solver serves all other objectives. It also serves dense data with no more
    columns than rows and a weak ridge, because the eigenvectors of the columns then give a good
    model of the loss. A kernel matrix that is too large to be decomposed is always left to dual
    ascent. `python -m studies.benchmarks.text` prints the times of dual ascent on text,
    `python -m studies.benchmarks.kernel_rows` the times with kernels, and `python -m studies.benchmarks.solver` the
    times on problems of all kinds.

    Parameters
    ----------
    passes_per_problem : float, default=8
        Expected number of passes over the rows for each proximal problem.
    quasi_newton_evaluations : float, default=30
        Expected number of evaluations of the quasi-Newton solver on dense data with few columns.
    give_up : float, default=0.25
        Share of `max_iter` after which dual ascent gives up if it expects not to reach the
        tolerance. The quasi-Newton solver then continues.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> from rbrl.solvers.auto import SolverRule
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> SolverRule().choose(Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=0.0, nuclear=0.0))
    QuasiNewton(memory=20)
    """

    passes_per_problem: float = 8.0
    quasi_newton_evaluations: float = 30.0
    give_up: float = 0.25

    def choose(self, objective: Objective, max_iter: int = 1000) -> Solver:
        """Return the solver that is faster on problems of this kind.

        Parameters
        ----------
        objective : Objective
            Objective over the original rows, with a design of
            :func:`rbrl.problem.linear.row_design` or a :class:`rbrl.problem.KernelDesign`.
        max_iter : int, default=1000
            Largest number of iterations.

        Returns
        -------
        Solver
        """
        if not is_visitable(objective) or not objective.ridge.weight > 0:
            return QuasiNewton()
        if objective.loss.row_terms(objective.Y.shape[1]) is None:
            return QuasiNewton()
        if isinstance(objective.design, KernelDesign) and len(objective.Y) > LARGEST_DECOMPOSITION:
            return DualAscent()
        ascent = DualAscent(give_up=self.give_up)
        n_problems = ProximalPoints.of(objective, ascent.proximal_share).n_problems
        is_hopeless = ascent.passes * n_problems > max_iter
        if not COMPILED or is_hopeless or self.passes_per_problem * n_problems > self.expect_evaluations(objective):
            return QuasiNewton()
        return ascent

    def expect_evaluations(self, objective: Objective) -> float:
        """Return the number of evaluations that the quasi-Newton solver needs, its decomposition included.

        It is infinite if it is not known in advance.
        """
        design = objective.design
        n_samples, n_columns = design.shape
        is_known = isinstance(design, MatrixDesign) and not issparse(design.X) and n_columns <= n_samples
        # A decomposition takes n m^2 operations, and an evaluation 4 n m l.
        set_up = n_columns / (4 * objective.Y.shape[1])
        return self.quasi_newton_evaluations + set_up if is_known else np.inf
