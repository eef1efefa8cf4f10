"""Dual points: summaries of a loss gradient R from which lower bounds of the optimum are computed.

Rounding changes R and Z'R. A lower bound is rigorous only if it holds for every possible rounding
error. Therefore a dual point has upper bounds of these errors.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rbrl._common.linalg import squares
from rbrl._common.typing import FloatArray, Matrix, issparse
from rbrl.losses import Terms
from rbrl.problem.design import add_adjoint, last_row_times
from rbrl.problem.linear import drop_empty_columns
from rbrl.problem.objective import SMALLEST_BLOCK, Objective, block_size, sum_terms
from rbrl.solvers.certificate import PRODUCT_ROUNDING, Blur, along, best_theta

# Smallest number of labels in a block of Z'R. Their numbers fill a line of the processor's cache.
FEWEST_LABELS = 8


class DualPoint:
    """Norms and rounding errors of a loss gradient R, and the terms of the loss.

    Parameters
    ----------
    loss : Terms
        Terms of the loss.
    n_samples : int
    sums : array (3, n_labels)
        Sums of squares of the columns of R, of `Loss.rounding_reach`, and of the scores.

    Attributes
    ----------
    sizes, score_sizes : arrays (n_labels,)
        Norms of the columns of R, and of the scores.
    own_rounding : array (n_labels,)
        Bounds of the norms of the rounding errors in the columns of R.
    blur : array (n_labels,)
        Bounds of the rounding errors in a row of X'R, divided by the norm of the corresponding
        column of X.
    """

    def __init__(self, loss: Terms, n_samples: float, sums: FloatArray) -> None:
        self.loss = loss
        self.sizes, reach, self.score_sizes = np.sqrt(sums)
        self.own_rounding = PRODUCT_ROUNDING * np.sqrt(len(reach)) * (self.sizes + reach)
        self.blur = PRODUCT_ROUNDING * np.sqrt(n_samples) * self.sizes + self.own_rounding

    @classmethod
    def at(cls, objective: Objective, F: FloatArray) -> "tuple[DualPoint, FloatArray]":
        """Return the dual point at scores F, and R."""
        data = objective.Y, F, objective.sample_weight
        loss, R = objective.loss.evaluate(*data)
        sums = np.array([squares(A) for A in (R, objective.loss.rounding_reach(*data), F)])
        return cls(loss, len(R), sums), R

    @classmethod
    def sum_rows(
        cls, objective: Objective, scores_of: Callable[[slice], FloatArray],
        receive: Callable[[slice, FloatArray], object] | None = None,
    ) -> "DualPoint":  # fmt: skip
        """Return the dual point at scores that are computed one block of rows at a time.

        Parameters
        ----------
        objective : Objective
        scores_of : callable
            Function from a slice of rows to their scores.
        receive : callable, default=None
            Called with the slice and the loss gradient of each block.

        Returns
        -------
        DualPoint
        """
        n_samples, n_labels = objective.Y.shape
        sums = np.zeros((3, n_labels))
        losses = []
        for rows, F, weights, loss, R in objective.evaluate_rows(scores_of):
            reach = objective.loss.rounding_reach(objective.Y[rows], F, weights)
            sums += [squares(A) for A in (R, reach, F)]
            losses.append(loss)
            if receive is not None:
                receive(rows, R)
        return cls(sum_terms(losses), n_samples, sums)


class AdjointSize(NamedTuple):
    """Squared norm of Z'R.

    Attributes
    ----------
    square : float
        Squared norm as it is computed.
    largest : float
        Upper bound of the squared norm, rounding errors included.
    """

    square: float
    largest: float

    @classmethod
    def of(cls, G: FloatArray, blur: Blur) -> "AdjointSize":
        """Compute the size of G in blocks of rows. G is overwritten."""
        square = 0.0
        largest = 0.0
        step = max(1, SMALLEST_BLOCK // max(G.shape[1], 1))
        for start in range(0, len(G), step):
            block = G[start : start + step]
            square += float(np.vdot(block, block))
            np.abs(block, out=block)
            block += np.outer(blur.rows[start : start + step], blur.labels)
            largest += float(np.vdot(block, block))
        return cls(square, largest)


def measure_dual(
    objective: Objective, X: Matrix, norms: FloatArray, dual_scores: FloatArray
) -> tuple[DualPoint, AdjointSize]:
    """Return the dual point at given scores, and the size of its Z'R.

    The smaller one of R and Z'R is in memory as a whole. The other one is computed in blocks: R in
    blocks of rows, Z'R in blocks of labels.

    Parameters
    ----------
    objective : Objective
    X : array or CSR matrix (n_samples, n_features)
    norms : array (n_columns,)
        Norms of the columns of X. If the model has an intercept, the last one is the norm of a
        column of ones.
    dual_scores : array (n_samples, n_labels)
        Scores at which the loss gradient is computed.

    Returns
    -------
    dual : DualPoint
    size : AdjointSize
    """
    if issparse(X) and 2 * np.count_nonzero(norms) < len(norms):
        last = norms[X.shape[1] :]
        X, present = drop_empty_columns(X)
        norms = np.append(norms[present], last)
    # The penalties apply to the weight of the constant column, not to the intercept itself.
    constant = objective.design.constant
    norms = last_row_times(norms, constant)
    shape = len(norms), objective.Y.shape[1]

    def size_of(G: FloatArray, labels: slice) -> AdjointSize:
        if constant != 1.0:
            G[-1] *= constant
        return AdjointSize.of(G, Blur(norms, dual.blur[labels]))

    if shape[0] <= X.shape[0]:
        G = np.zeros(shape)
        dual = DualPoint.sum_rows(objective, lambda rows: dual_scores[rows], lambda rows, R: add_adjoint(X[rows], R, G))
        return dual, size_of(G, slice(None))
    gradients = np.empty(objective.Y.shape)
    dual = DualPoint.sum_rows(objective, lambda rows: dual_scores[rows], gradients.__setitem__)
    sizes = []
    for labels in label_blocks(*shape):
        R = np.ascontiguousarray(gradients[:, labels])
        sizes.append(size_of(add_adjoint(X, R, np.zeros((shape[0], R.shape[1]))), labels))
    return dual, AdjointSize(sum(size.square for size in sizes), sum(size.largest for size in sizes))


def label_blocks(n_columns: int, n_labels: int) -> Iterator[slice]:
    """Return slices of labels, for a matrix (n_columns, n_labels) that is computed in blocks of labels."""
    step = max(FEWEST_LABELS, block_size(n_columns * n_labels) // max(n_columns, 1))
    return (slice(start, start + step) for start in range(0, n_labels, step))


def ridge_bound(objective: Objective, dual: DualPoint, size: AdjointSize) -> float:
    """Return a lower bound of the optimum of a problem without a nuclear norm. Rounding cannot have raised it.

    Parameters
    ----------
    objective : Objective
        Objective with a ridge whose row weights are all equal.
    dual : DualPoint
    size : AdjointSize
        Size of Z'R at the dual point.

    Returns
    -------
    float
    """
    if dual.loss.value <= 0:
        return 0.0
    ridge = 2 * objective.ridge.weight * float(objective.ridge.row_weights)
    theta = best_theta(dual.loss, size.square / ridge)
    return max(0.0, along(dual.loss, theta, n_terms=objective.Y.size) - theta**2 * (size.largest / ridge))
