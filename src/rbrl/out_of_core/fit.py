"""The fit of a linear model to rows that are elsewhere: in blocks, by passes over them; or gone by, from what is kept.

What is kept of rows that come once, in batches, is a state: a dict of arrays and numbers, so that it can be written to a
model file; the empty one has seen nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.linalg import whiten
from rbrl._common.progress import PATIENCE_SECONDS, Passes, display_for
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl.losses import Loss, Terms
from rbrl.losses.base import mean_weights
from rbrl.out_of_core.design import (
    LARGEST_GRAM,
    BlockDesign,
    BlockObjective,
    SummedDesign,
    SummedObjective,
    Survey,
    take_survey,
)
from rbrl.out_of_core.sources import Blocks
from rbrl.out_of_core.sums import BlockResidual, BlockScores, Evaluated, LabelCounts, block_label_counts
from rbrl.problem import with_constant
from rbrl.problem.design import last_row_times
from rbrl.scales import InterceptStrength, Strength, intercept_column
from rbrl.solvers import Posed, QuasiNewton, Solution, Solver, solve_posed
from rbrl.solvers.minibatch import BATCH_ROWS, BatchSteps
from rbrl.solvers.preconditioner import model_start
from rbrl.solvers.proof import DualPoint, Proof, prove_sums


def fit_blocks(
    blocks: Blocks, loss: Callable[[Callable[[], LabelCounts]], Loss], ridge: Strength, nuclear: float, *,
    intercept: bool = True, intercept_ridge: InterceptStrength = None, solver: Solver | None = None,
    start: FloatArray | None = None, tol: float = 1e-4, max_iter: int = 1000, verbose: int = 0,
    callback: Callable[[float], bool] | None = None,
) -> tuple[Survey, Solution]:  # fmt: skip
    """Minimise loss + ridge + nuclear norm over the weights of the features.

    Parameters
    ----------
    blocks : Blocks
    loss : callable
        From a function that counts the labels of all rows, in a pass of its own, to the loss.
    ridge : float or "auto"
        "auto" follows from the survey, as :meth:`rbrl.scales.ColumnScales.ridge`.
    nuclear : float
    intercept : bool, default=True
        Whether a column is appended.
    intercept_ridge : float, "ridge" or None, default=None
        The ridge of the intercept; None, and "ridge", mean that of all columns.
    solver : QuasiNewton or LowRank, default=None
    start : array (n_columns, n_labels), default=None
        Coefficients to start at; left alone if the rows turn out to have other columns.
    tol : float, default=1e-4
    max_iter : int, default=1000
    verbose : int, default=0
        As for the classifiers.
    callback : callable, default=None
        Function that is called with every certified gap and returns True to stop the solver.

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
    >>> from rbrl.out_of_core import LocalBlocks, fit_blocks
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> parts = LocalBlocks([(X[:30], Y[:30]), (X[30:], Y[30:])])
    >>> found, solution = fit_blocks(parts, lambda count_labels: SquaredHinge(), ridge=1.0, nuclear=0.1)
    >>> found.n_samples, solution.coefficients.shape, solution.proof.gap <= 1e-4
    (60, (9, 4), True)
    """
    display = display_for(bool(verbose), patience=PATIENCE_SECONDS)
    with Passes(tol, display, callback) as blocks.progress:
        found = take_survey(blocks, LARGEST_GRAM)
        weight = found.scales.ridge() if isinstance(ridge, str) else float(ridge)
        design = BlockDesign(blocks, intercept, constant=intercept_column(weight, intercept_ridge), found=found)
        posed_loss = loss(lambda: LabelCounts(*blocks.total(block_label_counts)))
        objective = BlockObjective(design, posed_loss, weight, nuclear)
        if start is not None:
            fits = start.shape == (found.n_features + intercept, found.n_labels)
            start = design.weights(start) if fits else None
        solver = QuasiNewton() if solver is None else solver
        posed = Posed(partial(_prove, objective), np.dtype(np.float64), evaluations=0.0)
        return found, solve_posed(solver, objective, posed, start, tol=tol, max_iter=max_iter)


def _prove(objective: BlockObjective, W: FloatArray, dual_scores: BlockScores) -> Proof:
    """The proof of coefficients W: of passes that the solver has made, those at the dual scores among them."""

    def point(known: Evaluated) -> DualPoint:
        return DualPoint(known.terms, len(objective.Y), known.sums)

    design, constant = objective.design, objective.design.constant
    here, others = objective.loss.remembered(W, dual_scores)
    # The penalties see the weight of the intercept's column, not the intercept.
    duals = [(point(known), last_row_times(known.gradient, constant)) for known in others]
    posed, extended = last_row_times(W, 1 / constant), partial(objective.loss.extended, W)
    return prove_sums(objective, np.sqrt(design.column_squares), posed, point(here), duals, extended)


class Sums(NamedTuple):
    """Sums over rows; those of two streams together are the sums of both.

    Attributes
    ----------
    n_samples : float
        The rows, counted by their weights.
    gram : array (n_columns, n_columns)
        X'X.
    adjoint : array (n_columns, n_labels)
        X'R.
    label_hessian : array (n_labels, n_labels)
    value : float
    """

    n_samples: float
    gram: FloatArray
    adjoint: FloatArray
    label_hessian: FloatArray
    value: float


def at_zero(loss: Loss, X: Matrix, Y: IntArray, weights: FloatArray | None = None) -> Sums:
    """The sums of some rows: weights, X'X, X'R, Hessian and value, for the loss and its gradient R at zero scores.

    Parameters
    ----------
    loss : Loss
    X : array or CSR matrix (n_rows, n_columns)
    Y : array (n_rows, n_labels)
        Labels in {-1, 0, +1}.
    weights : array (n_rows,) or (n_rows, n_labels), or None

    Returns
    -------
    Sums

    Examples
    --------
    >>> from rbrl.losses import SquaredHinge
    >>> at_zero(SquaredHinge(), np.eye(2), np.array([[1], [-1]])).value
    1.0
    """
    zero, w = np.zeros(Y.shape), mean_weights(Y, weights)
    terms, R = loss.evaluate(Y, zero, weights)
    weighted = sparse.diags_array(w) @ X if issparse(X) else w[:, None] * X
    gram = X.T @ weighted
    gram = gram.toarray() if issparse(gram) else gram
    return Sums(float(w.sum()), gram, np.asarray(X.T @ R), loss.label_hessian(Y, zero, weights), terms.value)


class LossAtZero:
    """A loss of rows that have gone by, known at zero scores only.

    Parameters
    ----------
    sums : Sums
    design : SummedDesign
    """

    def __init__(self, sums: Sums, design: SummedDesign) -> None:
        self._sums, self._design = sums, design

    def evaluate(self, Y: Any, at: BlockScores, weights: None = None) -> tuple[Terms, BlockResidual]:
        """Terms and residual at zero.

        Parameters
        ----------
        Y, weights
            Of the protocol of losses; labels are with their rows.
        at : BlockScores

        Returns
        -------
        terms : Terms
        residual : BlockResidual
        """
        return Terms(self._sums.value, 0.0, 0.0), BlockResidual(self._design.pulled(self._sums.adjoint))

    def label_hessian(self, Y: Any, at: BlockScores, weights: None = None) -> FloatArray:
        """Sum of the rows' generalised Hessians at zero; of as many rows as the design has, whatever their weights.

        Parameters
        ----------
        Y, weights
            Of the protocol of losses; labels are with their rows.
        at : BlockScores

        Returns
        -------
        array (n_labels, n_labels)
        """
        return self._sums.label_hessian * (len(at) / self._sums.n_samples)


def learn_batch(
    state: dict[str, Any], X: Matrix, Y: IntArray, weights: FloatArray | None, loss: Loss, ridge: float,
    nuclear: float, intercept: bool = True, intercept_ridge: InterceptStrength = None,
) -> dict[str, Any]:  # fmt: skip
    """The state after some further rows.

    Up to `LARGEST_GRAM` columns the sums of all rows are kept; beyond, every `BATCH_ROWS` rows are a step of a stochastic
    quasi-Newton method.

    Parameters
    ----------
    state : dict
    X : array or CSR matrix (n_rows, n_features), float64
    Y : array (n_rows, n_labels)
        Labels in {-1, 0, +1}.
    weights : array (n_rows,) or (n_rows, n_labels), or None
    loss : Loss
    ridge, nuclear : float
        Of the objective of all rows seen so far.
    intercept : bool, default=True
        Whether a column is appended: of ones in sums, which serve any penalty of the intercept, and for steps of what the
        ridges of the first call make of it.
    intercept_ridge : float, "ridge" or None, default=None
        As for :func:`fit_blocks`.

    Returns
    -------
    dict

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.out_of_core.fit import learn_batch, streamed_coefficients
    >>> X, Y = np.array([[1.0], [-1.0]]), np.array([[1], [-1]], dtype=np.int8)
    >>> state = learn_batch({}, X, Y, None, SquaredHinge(), ridge=2.0, nuclear=0.0, intercept=False)
    >>> state = learn_batch(state, X, Y, None, SquaredHinge(), ridge=2.0, nuclear=0.0, intercept=False)
    >>> streamed_coefficients(state, 4, ridge=2.0, nuclear=0.0).round(3)
    array([[0.667]])
    """
    if not Y.any():
        return state
    if X.shape[1] + intercept <= LARGEST_GRAM:
        new = at_zero(loss, with_constant(X) if intercept else X, Y, weights)
        return {name: value + state.get(name, 0.0) for name, value in new._asdict().items()}
    rows = slice(None) if weights is None and Y.any(axis=1).all() else np.flatnonzero(mean_weights(Y, weights))
    X, Y, weights = X[rows], Y[rows], None if weights is None else weights[rows]
    constant = intercept_column(ridge, intercept_ridge)
    steps = BatchSteps(**state) if state else BatchSteps.begin(X, Y.shape[1], intercept, constant)
    for start in range(0, len(Y), BATCH_ROWS):
        batch = slice(start, start + BATCH_ROWS)
        steps.learn(X[batch], Y[batch], loss, ridge, nuclear, None if weights is None else weights[batch])
    return vars(steps)


def streamed_coefficients(
    state: dict[str, Any], n_samples: int, ridge: float, nuclear: float, constant: float = 1.0
) -> FloatArray:
    """The coefficients (n_columns, n_labels) of a state that has seen `n_samples` rows.

    From sums, the minimiser of the objective with the quadratic model of its loss at zero scores in place of the loss;
    from steps, their average.

    Parameters
    ----------
    state : dict
        Of :func:`learn_batch`.
    n_samples : int
    ridge, nuclear : float
    constant : float, default=1.0
        What the intercept's column holds; steps have one of their own.

    Returns
    -------
    array (n_columns, n_labels)
        Those of the intercept last.
    """
    # Rounding is all that labels have which nobody looked at.
    seen = state["label_hessian"].any(axis=1)
    if "directions" in state:
        return BatchSteps(**state).coefficients() * seen
    sums = Sums(**state)
    gram = last_row_times(last_row_times(sums.gram, constant).T, constant).copy()
    design = SummedDesign(n_samples, *whiten(gram), constant=constant)
    objective = SummedObjective(design, sums.adjoint.shape[1], LossAtZero(sums, design), ridge, nuclear)
    return design.coefficients(model_start(objective)) * seen
