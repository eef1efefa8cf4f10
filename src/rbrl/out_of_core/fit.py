"""Fit of a linear model to rows in blocks, and to batches of rows that are seen only once.

A fit to batches keeps a state, which is a dict of arrays and numbers, so that a model file can store it. An
empty dict is the state before the first batch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.linalg import whiten
from rbrl._common.progress import PATIENCE_SECONDS, Passes, display_for
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl.losses import Loss, Terms
from rbrl.losses.label_graph import LabelCounts
from rbrl.losses.weights import mean_weights
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
from rbrl.out_of_core.sums import BlockResidual, BlockScores, block_label_counts
from rbrl.problem import with_constant
from rbrl.problem.design import last_row_times
from rbrl.scales import InterceptStrength, Strength, intercept_column
from rbrl.solvers import Certifier, QuasiNewton, Solution, Solver, solve_and_certify
from rbrl.solvers.minibatch import BATCH_ROWS, BatchSteps
from rbrl.solvers.preconditioner import model_start


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
    with Passes(tol, display, callback) as blocks.progress:
        survey = take_survey(blocks)
        weight = survey.scales.ridge() if isinstance(ridge, str) else float(ridge)
        design = BlockDesign(blocks, intercept, intercept_column(weight, intercept_ridge), survey)
        block_loss = loss(lambda: LabelCounts(*blocks.total(block_label_counts)))
        objective = BlockObjective(design, block_loss, weight, nuclear)
        if start is not None:
            fits = start.shape == (survey.n_features + intercept, survey.n_labels)
            start = design.weights(start) if fits else None
        solver = QuasiNewton() if solver is None else solver
        certifier = Certifier(objective.prove, np.dtype(np.float64), evaluations=0.0)
        return survey, solve_and_certify(solver, objective, certifier, start, tol=tol, max_iter=max_iter)


class Sums(NamedTuple):
    """Sums over rows, for the loss and its gradient R at zero scores. Sums of two batches can be added.

    Attributes
    ----------
    n_samples : float
        Sum of the weights of the rows.
    gram : array (n_columns, n_columns)
        Weighted product X'X.
    adjoint : array (n_columns, n_labels)
        Product X'R.
    label_hessian : array (n_labels, n_labels)
        Sum of the generalised Hessians of the rows.
    value : float
        Value of the loss.
    """

    n_samples: float
    gram: FloatArray
    adjoint: FloatArray
    label_hessian: FloatArray
    value: float


def sum_rows(loss: Loss, X: Matrix, Y: IntArray, weights: FloatArray | None = None) -> Sums:
    """Return the sums of a batch of rows.

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
    >>> sum_rows(SquaredHinge(), np.eye(2), np.array([[1], [-1]])).value
    1.0
    """
    zero = np.zeros(Y.shape)
    w = mean_weights(Y, weights)
    terms, R = loss.evaluate(Y, zero, weights)
    gram = X.T @ (sparse.diags_array(w) @ X if issparse(X) else w[:, None] * X)
    gram = gram.toarray() if issparse(gram) else gram
    return Sums(float(w.sum()), gram, np.asarray(X.T @ R), loss.label_hessian(Y, zero, weights), terms.value)


class LossAtZero:
    """Loss of earlier batches, known only at zero scores; Y and weights are ignored.

    Parameters
    ----------
    sums : Sums
    design : SummedDesign
    """

    def __init__(self, sums: Sums, design: SummedDesign) -> None:
        self._sums = sums
        self._design = design

    def evaluate(self, Y: Any, at: BlockScores, weights: None = None) -> tuple[Terms, BlockResidual]:
        """Return the terms and the residual at zero scores."""
        return Terms(self._sums.value, 0.0, 0.0), BlockResidual(self._design.to_weight_gradient(self._sums.adjoint))

    def label_hessian(self, Y: Any, at: BlockScores, weights: None = None) -> FloatArray:
        """Return the sum of the generalised Hessians at zero scores, scaled to the number of rows of the design."""
        return self._sums.label_hessian * (len(at) / self._sums.n_samples)


def learn_batch(
    state: dict[str, Any], X: Matrix, Y: IntArray, weights: FloatArray | None, loss: Loss, ridge: float,
    nuclear: float, intercept: bool = True, intercept_ridge: InterceptStrength = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the state after a further batch of rows. The given state is not changed.

    With up to `LARGEST_GRAM` columns, the state holds sums over all rows. With more columns, every `BATCH_ROWS`
    rows are one step of a stochastic quasi-Newton method.

    Parameters
    ----------
    state : dict
        State before the batch.
    X : array or CSR matrix (n_rows, n_features), float64
    Y : array (n_rows, n_labels)
        Labels in {-1, 0, +1}.
    weights : array (n_rows,) or (n_rows, n_labels), or None
    loss : Loss
    ridge, nuclear : float
        Penalties of the objective over all rows seen so far.
    intercept : bool, default=True
        Whether a constant column is appended. Sums use a column of ones, which serves any penalty of the
        intercept. Steps use the value that follows from the ridge penalties of the first call.
    intercept_ridge : float, "ridge" or None, default=None
        Ridge penalty of the intercept; see :func:`fit_blocks`.

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
        new = sum_rows(loss, with_constant(X) if intercept else X, Y, weights)
        return {name: value + state.get(name, 0.0) for name, value in new._asdict().items()}
    if weights is not None or not Y.any(axis=1).all():
        rows = np.flatnonzero(mean_weights(Y, weights))
        X = X[rows]
        Y = Y[rows]
        weights = None if weights is None else weights[rows]
    constant = intercept_column(ridge, intercept_ridge)
    steps = BatchSteps(**state) if state else BatchSteps.begin(X, Y.shape[1], intercept, constant)
    for start in range(0, len(Y), BATCH_ROWS):
        batch = slice(start, start + BATCH_ROWS)
        steps.learn(X[batch], Y[batch], loss, ridge, nuclear, None if weights is None else weights[batch])
    return vars(steps)


def streamed_coefficients(
    state: dict[str, Any], n_samples: int, ridge: float, nuclear: float, constant: float = 1.0
) -> FloatArray:
    """Return the coefficients of a state.

    If the state holds sums, the loss is replaced by its quadratic model at zero scores, and the result
    minimises this objective. If the state holds steps, the result is their average.

    Parameters
    ----------
    state : dict
        State that :func:`learn_batch` returned.
    n_samples : int
        Number of rows seen so far.
    ridge, nuclear : float
        Penalties of the objective.
    constant : float, default=1.0
        Value of the constant column. It is ignored if the state holds steps.

    Returns
    -------
    array (n_columns, n_labels)
        Coefficients, with those of the intercept in the last row.
    """
    # A label that is missing in all rows only has rounding errors.
    is_known = state["label_hessian"].any(axis=1)
    if "directions" in state:
        return BatchSteps(**state).coefficients() * is_known
    sums = Sums(**state)
    gram = last_row_times(last_row_times(sums.gram, constant).T, constant).copy()
    design = SummedDesign(n_samples, *whiten(gram), constant=constant)
    objective = SummedObjective(design, sums.adjoint.shape[1], LossAtZero(sums, design), ridge, nuclear)
    return design.coefficients(model_start(objective, rounds=20, settled=2e-8)) * is_known
