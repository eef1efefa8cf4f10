"""Losses made of losses: weighted sums, and weights that follow from the label and from whether it is relevant."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rbrl._common.typing import Array, FloatArray
from rbrl.losses.base import LineValue, Loss, Terms, Weights, entry_weights


@dataclass(frozen=True, init=False)
class WeightedSum(Loss):
    """A sum of (weight, loss) terms; terms of weight 0 are left out.

    Parameters
    ----------
    *terms : pairs (float, Loss)

    Examples
    --------
    >>> from rbrl.losses import PairwiseSquaredHinge, SquaredHinge, WeightedSum
    >>> WeightedSum((1.0, SquaredHinge()), (0.0, PairwiseSquaredHinge()))
    WeightedSum(terms=((1.0, SquaredHinge()),))
    """

    terms: tuple[tuple[float, Loss], ...]

    def __init__(self, *terms: tuple[float, Loss]) -> None:
        object.__setattr__(self, "terms", tuple((float(c), loss) for c, loss in terms if c != 0))

    def accumulate(self, Y: Array, F: FloatArray, weights: Weights, scale: float, R: FloatArray) -> Terms:
        """Add the gradients of all terms to R; return the sums of their :class:`Terms`, with the shortest reach."""
        parts = [loss.accumulate(Y, F, weights, scale * c, R) for c, loss in self.terms]
        value, linear, quadratic = (sum(part[k] for part in parts) for k in range(3))
        return Terms(value, linear, quadratic, min((part.reach for part in parts), default=np.inf))

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Weighted sum of the terms' diagonals: (n, l)."""
        return sum((c * loss.hessian_diagonal(Y, F, weights) for c, loss in self.terms), np.zeros(F.shape))

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        """Weighted sum of the terms' products with D: (n, l)."""
        return sum((c * loss.hessian_product(Y, F, D, weights) for c, loss in self.terms), np.zeros(F.shape))

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Weighted sum of the terms' own: (n_labels, n_labels)."""
        zero = np.zeros((F.shape[1], F.shape[1]))
        return sum((c * loss.label_hessian(Y, F, weights) for c, loss in self.terms), zero)

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """Weighted sum of the terms' bounds: (n,)."""
        return sum((c * loss.curvature(Y, weights) for c, loss in self.terms), np.zeros(len(Y)))

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: Weights = None) -> LineValue:
        """Weighted sum of the terms' :class:`LineValue`."""
        parts = [(c, loss.line(Y, F, D, t, weights)) for c, loss in self.terms]
        if not parts:
            return LineValue(0.0, np.zeros(F.shape[1]), np.zeros(F.shape[1]), 0.0)
        totals: list[Any] = [sum(c * part[k] for c, part in parts) for k in range(4)]
        return LineValue(*totals)


def class_weighted(Y: Array, weights: Weights, table: FloatArray) -> FloatArray:
    """Weights of entries (n, l): those given, times what `table` (2, l) says of irrelevant and relevant entries of a label.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}, 0 where nobody looked.
    weights : array (n_samples,) or (n_samples, n_labels), or None
    table : array (2, n_labels)
        What irrelevant and relevant entries of a label count.

    Returns
    -------
    array (n_samples, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import class_weighted
    >>> class_weighted(np.array([[1, -1], [-1, 0]]), np.array([1.0, 2.0]), np.array([[1.0, 5.0], [3.0, 1.0]])).tolist()
    [[3.0, 5.0], [2.0, 0.0]]
    """
    return np.where(Y > 0, table[1], table[0]) * entry_weights(Y, weights)


@dataclass(frozen=True, eq=False)
class ClassWeighted(Loss):
    """A loss with weights of entries that follow from the label and from whether it is relevant.

    For rows that are elsewhere: of those in memory, weights of entries made once serve better.

    Parameters
    ----------
    loss : Loss
    table : array (2, n_labels)
        Weights of the irrelevant and the relevant entries of each label; an entry of weight 0 is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import ClassWeighted, SquaredHinge
    >>> loss = ClassWeighted(SquaredHinge(), np.array([[1.0, 0.0], [4.0, 1.0]]))
    >>> loss.value(np.array([[1, -1]], dtype=np.int8), np.zeros((1, 2)))
    2.0
    """

    loss: Loss
    table: FloatArray

    def _entries(self, Y: Array, weights: Weights) -> tuple[Array, FloatArray]:
        of_entries = class_weighted(Y, weights, self.table)
        return np.where(of_entries > 0, Y, np.int8(0)), of_entries

    def accumulate(self, Y: Array, F: FloatArray, weights: Weights, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R; return the :class:`Terms` of the scaled loss."""
        Y, weights = self._entries(Y, weights)
        return self.loss.accumulate(Y, F, weights, scale, R)

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Diagonal of the generalised Hessian: (n, l)."""
        Y, weights = self._entries(Y, weights)
        return self.loss.hessian_diagonal(Y, F, weights)

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        """Generalised Hessian at F times D: (n, l)."""
        Y, weights = self._entries(Y, weights)
        return self.loss.hessian_product(Y, F, D, weights)

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Sum of the rows' generalised Hessians: (n_labels, n_labels)."""
        Y, weights = self._entries(Y, weights)
        return self.loss.label_hessian(Y, F, weights)

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: Weights = None) -> LineValue:
        """The loss along directions, one step length per label."""
        Y, weights = self._entries(Y, weights)
        return self.loss.line(Y, F, D, t, weights)

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """The bounds of the loss, with these weights: (n,)."""
        return self.loss.curvature(*self._entries(Y, weights))
