"""The fit of a linear model to rows that stay where they are: passes over their blocks, with bounded memory."""

from collections.abc import Callable

from rbrl._common.progress import passes_for
from rbrl._common.typing import FloatArray
from rbrl.losses import Loss
from rbrl.rows.design import BlockDesign, BlockObjective
from rbrl.rows.places import Blocks
from rbrl.rows.sums import LabelCounts, block_label_counts
from rbrl.rows.survey import Survey
from rbrl.solvers import QuasiNewton, Solution, Solver, posed_blocks, solve_posed


def fit_blocks(
    blocks: Blocks, loss: Callable[[Callable[[], LabelCounts]], Loss], ridge: float, nuclear: float, *,
    intercept: bool = True, solver: Solver | None = None, start: FloatArray | None = None, tol: float = 1e-4,
    max_iter: int = 1000, verbose: int = 0,
) -> tuple[Survey, Solution]:  # fmt: skip
    """Minimise loss + ridge + nuclear norm over the weights of the features.

    Parameters
    ----------
    blocks : Blocks
    loss : callable
        From a function that counts the labels of all rows, in a pass of its own, to the loss.
    ridge, nuclear : float
    intercept : bool, default=True
        Whether a column of ones is appended.
    solver : QuasiNewton or LowRank, default=None
    start : array (n_columns, n_labels), default=None
        Coefficients to start at; left alone if the rows turn out to have other columns.
    tol, max_iter, verbose
        As for the classifiers.

    Returns
    -------
    found : Survey
        What the first pass told of the rows.
    solution : Solution
        Its coefficients are of the features, those of the intercept last.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.rows import LocalBlocks, fit_blocks
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> parts = LocalBlocks([(X[:30], Y[:30]), (X[30:], Y[30:])])
    >>> found, solution = fit_blocks(parts, lambda count_labels: SquaredHinge(), ridge=1.0, nuclear=0.1)
    >>> found.n_samples, solution.coefficients.shape, solution.proof.gap <= 1e-4
    (60, (9, 4), True)
    """
    with passes_for(tol, verbose) as blocks.progress:
        design = BlockDesign(blocks, intercept)
        found = design.found
        posed_loss = loss(lambda: LabelCounts(*blocks.total(block_label_counts)))
        objective = BlockObjective(design, posed_loss, ridge, nuclear)
        if start is not None:
            fits = start.shape == (found.n_features + intercept, found.n_labels)
            start = design.weights(start) if fits else None
        solver = QuasiNewton() if solver is None else solver
        return found, solve_posed(solver, objective, posed_blocks(objective), start, tol=tol, max_iter=max_iter)
