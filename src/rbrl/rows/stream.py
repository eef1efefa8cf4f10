"""Rows that come once, in batches, and are not kept: what is remembered of them, and the model that follows from it.

A state is a dict of arrays and numbers, so that it can be written to a model file; the empty one has seen nothing.
"""

from typing import Any

import numpy as np

from rbrl._common.typing import FloatArray, IntArray, Matrix
from rbrl.losses import Loss
from rbrl.problem import with_ones
from rbrl.rows.design import LARGEST_GRAM, GramDesign, SummedObjective
from rbrl.rows.sums import LossAtZero, Sums, at_zero
from rbrl.solvers.preconditioner import model_start
from rbrl.solvers.stream import BATCH_ROWS, BatchSteps


def learn_batch(
    state: dict[str, Any], X: Matrix, Y: IntArray, weights: FloatArray | None, loss: Loss, ridge: float,
    nuclear: float, intercept: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """The state after some further rows.

    Up to `LARGEST_GRAM` columns the sums of all rows are kept; beyond, every `BATCH_ROWS` rows are a step of a stochastic
    quasi-Newton method.

    Parameters
    ----------
    state : dict
    X : array or CSR matrix (n_rows, n_features), float64
    Y : array (n_rows, n_labels)
        Labels in {-1, +1}.
    weights : array (n_rows,) or None
    loss : Loss
    ridge, nuclear : float
        Of the objective of all rows seen so far.
    intercept : bool, default=True
        Whether a column of ones is appended.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.rows.stream import learn_batch, streamed_coefficients
    >>> X, Y = np.array([[1.0], [-1.0]]), np.array([[1], [-1]], dtype=np.int8)
    >>> state = learn_batch({}, X, Y, None, SquaredHinge(), ridge=2.0, nuclear=0.0, intercept=False)
    >>> state = learn_batch(state, X, Y, None, SquaredHinge(), ridge=2.0, nuclear=0.0, intercept=False)
    >>> streamed_coefficients(state, 4, ridge=2.0, nuclear=0.0).round(3)
    array([[0.667]])
    """
    if X.shape[1] + intercept <= LARGEST_GRAM:
        new = at_zero(loss, with_ones(X) if intercept else X, Y, weights)
        return {name: value + state.get(name, 0.0) for name, value in new._asdict().items()}
    rows = slice(None) if weights is None else np.flatnonzero(weights)
    X, Y, weights = X[rows], Y[rows], None if weights is None else weights[rows]
    steps = BatchSteps(**state) if state else BatchSteps.begin(X, Y.shape[1], intercept)
    for start in range(0, len(Y), BATCH_ROWS):
        batch = slice(start, start + BATCH_ROWS)
        steps.learn(X[batch], Y[batch], loss, ridge, nuclear, None if weights is None else weights[batch])
    return vars(steps)


def streamed_coefficients(state: dict[str, Any], n_samples: int, ridge: float, nuclear: float) -> FloatArray:
    """The coefficients (n_columns, n_labels) of a state that has seen `n_samples` rows.

    From sums, the minimiser of the objective with the quadratic model of its loss at zero scores in place of the loss;
    from steps, their average.
    """
    if "directions" in state:
        return BatchSteps(**state).coefficients()
    sums = Sums(**state)
    design = GramDesign(n_samples, sums.gram.copy())
    objective = SummedObjective(design, sums.adjoint.shape[1], LossAtZero(sums, design), ridge, nuclear)
    return design.coefficients(model_start(objective))
