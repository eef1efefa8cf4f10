"""Fit of a linear model to rows in blocks."""

from collections.abc import Callable
from contextlib import closing

import numpy as np

from rbrl._common.progress import PATIENCE_SECONDS, Passes, display_for
from rbrl._common.typing import FloatArray
from rbrl.losses import Loss
from rbrl.losses.label_graph import LabelCounts
from rbrl.out_of_core.block import count_labels
from rbrl.out_of_core.design import BlockDesign, Survey, take_survey
from rbrl.out_of_core.objective import BlockObjective
from rbrl.out_of_core.sources import Blocks
from rbrl.scales import InterceptStrength, Strength, intercept_column
from rbrl.solvers import Certifier, QuasiNewton, Solution, Solver, solve_and_certify


def fit_blocks(
    blocks: Blocks, loss: Callable[[Callable[[], LabelCounts]], Loss], ridge: Strength, nuclear: float, *,
    intercept: bool = True, intercept_ridge: InterceptStrength = None, solver: Solver | None = None,
    start: FloatArray | None = None, tol: float = 1e-4, max_iter: int = 1000, verbose: int = 0,
    callback: Callable[[float], bool] | None = None,
) -> tuple[Survey, Solution]:  # fmt: skip
    """Minimise loss + ridge + nuclear norm over the coefficients of the features.

    Parameters
    ----------
    blocks : Blocks
    loss : callable
        Function that returns the loss. Its argument is a function that counts the labels in one pass.
    ridge : float or "auto"
        Ridge penalty; "auto" uses :meth:`rbrl.scales.ColumnScales.ridge` of the survey.
    nuclear : float
        Weight of the nuclear norm.
    intercept : bool, default=True
        Whether a constant column is appended.
    intercept_ridge : float, "ridge" or None, default=None
        Ridge penalty of the intercept; None and "ridge" use the penalty of the other columns.
    solver : QuasiNewton or LowRank, default=None
        None means ``QuasiNewton()``.
    start : array (n_columns, n_labels), default=None
        Initial coefficients. They are ignored if their shape does not fit the rows.
    tol : float, default=1e-4
        Relative gap at which the solver stops.
    max_iter : int, default=1000
    verbose : int, default=0
        Whether progress is written to standard error.
    callback : callable, default=None
        Function that is called with every certified gap and returns True to stop the solver.

    Returns
    -------
    survey : Survey
        Results of the first pass over the rows.
    solution : Solution
        Coefficients of the features, and of the intercept in the last row, with their proof.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.out_of_core import LocalBlocks, fit_blocks
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> parts = LocalBlocks([(X[:30], Y[:30]), (X[30:], Y[30:])])
    >>> survey, solution = fit_blocks(parts, lambda count_labels: SquaredHinge(), ridge=1.0, nuclear=0.1)
    >>> survey.n_samples, solution.coefficients.shape, solution.proof.gap <= 1e-4
    (60, (9, 4), True)
    """
    display = display_for(bool(verbose), patience=PATIENCE_SECONDS)
    blocks.progress = Passes(tol, display, callback)
    with closing(display):
        survey = take_survey(blocks)
        weight = survey.scales.ridge() if isinstance(ridge, str) else float(ridge)
        design = BlockDesign(blocks, intercept, intercept_column(weight, intercept_ridge), survey)
        block_loss = loss(lambda: LabelCounts(*blocks.total(count_labels)))
        objective = BlockObjective(design, block_loss, weight, nuclear)
        if start is not None:
            fits = start.shape == (survey.n_features + intercept, survey.n_labels)
            start = design.weights(start) if fits else None
        solver = QuasiNewton() if solver is None else solver
        certifier = Certifier(objective.prove, np.dtype(np.float64), evaluations=0.0)
        return survey, solve_and_certify(solver, objective, certifier, start, tol=tol, max_iter=max_iter)
