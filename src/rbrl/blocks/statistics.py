"""What a stream of rows leaves behind: sums that give the quadratic model of a loss at zero scores."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from rbrl.blocks.scores import BlockResidual
from rbrl.losses import Terms
from rbrl.losses.base import row_weights


class Sums(NamedTuple):
    """Sums over rows; those of two streams together are the sums of both."""

    n_samples: float
    gram: np.ndarray
    adjoint: np.ndarray
    label_hessian: np.ndarray
    value: float


def at_zero(loss, X, Y, weights=None):
    """The sums of some rows: weights, X'X, X'R, Hessian and value, for the loss and its gradient R at zero scores."""
    zero, w = np.zeros(Y.shape), row_weights(weights, len(Y))
    terms, R = loss.evaluate(Y, zero, w)
    weighted = sparse.diags_array(w) @ X if sparse.issparse(X) else w[:, None] * X
    gram = X.T @ weighted
    gram = gram.toarray() if sparse.issparse(gram) else gram
    return Sums(float(w.sum()), gram, np.asarray(X.T @ R), loss.label_hessian(Y, zero, w), terms.value)


class LossAtZero:
    """A loss of rows that have gone by, known at zero scores only.

    Parameters
    ----------
    sums : Sums
    design : GramDesign
    """

    def __init__(self, sums, design):
        self._sums, self._design = sums, design

    def evaluate(self, Y, at, weights=None):
        """Terms and residual at zero."""
        return Terms(self._sums.value, 0.0, 0.0), BlockResidual(self._design.weights(self._sums.adjoint))

    def label_hessian(self, Y, at, weights=None):
        """Sum of the rows' generalised Hessians at zero; of as many rows as the design has, whatever their weights."""
        return self._sums.label_hessian * (len(at) / self._sums.n_samples)
