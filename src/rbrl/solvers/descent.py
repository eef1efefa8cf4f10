"""A descent that certifies only its last point: for models that are compared, each started near its optimum.

The certificate of a good model takes more steps than the model. So the last step of a run, which would show that nothing is
left to gain, is not taken: the preconditioned gradient predicts its gain.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rbrl.problem.objective import Objective
from rbrl.solvers.base import Run, SolverResult, Start
from rbrl.solvers.iterate import Iterate
from rbrl.solvers.line_search import NewtonLineSearch
from rbrl.solvers.preconditioner import first_point
from rbrl.solvers.quasi_newton import LBFGSDirection


@dataclass(frozen=True)
class Descent:
    """Quasi-Newton steps on the weights until the next one is not worth its evaluation.

    It ends where the next step is expected to gain at most `tol` of the objective, or the last one did. The gap of the last
    point may be much larger.

    Parameters
    ----------
    memory : int, default=10
        Number of steps that are remembered.
    line_search : NewtonLineSearch
        Search for the length of a step, with one correction by default.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective, linear_design
    >>> from rbrl.solvers import Descent
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(linear_design(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> Descent().solve(objective, start=np.array([[0.4]])).weights.round(3).tolist()
    [[0.5]]
    """

    memory: int = 10
    line_search: NewtonLineSearch = field(default=NewtonLineSearch(max_corrections=1), repr=False)

    def solve(
        self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000, scores: Any = None
    ) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult`. The scores of `start`, if known, save a product."""
        run = Run(objective, tol, max_iter)
        now = Iterate(objective, *first_point(objective, start, scores), tol)
        direction = LBFGSDirection(objective, now.W, self.memory)
        gained = np.inf
        while True:
            run.note(now.value, now.evaluations)
            direction.visit(now)
            there = None
            while there is None:
                D, slope = direction.compute(now)
                # A full step gains half its slope where the model is right, and seldom the whole of it.
                converged = min(-slope, gained) <= tol * now.value
                if converged or run.n_iter >= max_iter:
                    break
                there = self.line_search.take_step(objective, now, D, slope, direction.is_joint, tol)
                if there is None and not direction.forget():
                    break
            if there is None:
                break
            gained = now.value - there.value
            now = there
        run.now = now
        run.certify(now.W, now.adjoint)
        return run.result("The descent", now.W, converged, "Raise max_iter or tol, or start nearer.")
