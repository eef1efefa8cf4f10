"""The squared hinge of every label by itself, at equal costs or at those of its label."""

from dataclasses import dataclass

import numpy as np

from rbrl._common.typing import Array, FloatArray
from rbrl._loops import rows
from rbrl.losses.base import LineValue, Loss, Terms, Weights, row_weights


class _LabelwiseHinge(Loss):
    """Squares of slacks of one score at a time: the dual terms are the sum of cost x slack, and the loss itself.

    Labels do not couple: the Hessian is its diagonal.
    """

    costs: float | FloatArray

    def accumulate(self, Y: Array, F: FloatArray, weights: Weights, scale: float, R: FloatArray) -> Terms:
        costs = np.ones(Y.shape[1]) * self.costs
        value, linear = rows.squared_hinge(Y, F, row_weights(weights, len(Y)), scale, costs, R)
        return Terms(value, linear, value)

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        H, costs = np.zeros_like(F), np.ones(Y.shape[1]) * self.costs
        rows.squared_hinge_diagonal(Y, F, row_weights(weights, len(Y)), 1.0, costs, H)
        return H

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        return self.hessian_diagonal(Y, F, weights) * D

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        M, costs = np.zeros((F.shape[1], F.shape[1])), np.ones(Y.shape[1]) * self.costs
        rows.squared_hinge_labels(Y, F, row_weights(weights, len(Y)), 1.0, costs, M)
        return M

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """The highest cost in the row."""
        costs, w = np.where(Y > 0, self.costs, np.abs(Y)), row_weights(weights, len(Y))
        return costs.max(axis=1) * w if w.ndim == 1 else (costs * w).max(axis=1)

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: Weights = None) -> LineValue:
        w, costs = row_weights(weights, len(Y)), np.ones(Y.shape[1]) * self.costs
        slopes, curvatures = np.zeros((2, F.shape[1]))
        value, joint = rows.squared_hinge_line(Y, F, D, t, w, 1.0, costs, slopes, curvatures)
        return LineValue(value, slopes, curvatures, joint)


@dataclass(frozen=True)
class SquaredHinge(_LabelwiseHinge):
    r"""Squared hinge of every label: the Hamming part of RBRL, eq. (8).

    .. math:: \tfrac12 \sum_{ij} |1 - y_{ij} f_{ij}|_+^2

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> SquaredHinge().value(np.array([[1, -1]], dtype=np.int8), np.array([[0.5, 0.0]]))
    0.625
    """

    costs = 1.0


@dataclass(frozen=True, eq=False)
class CostWeightedSquaredHinge(_LabelwiseHinge):
    r"""Squared hinge of every label, relevant entries at the cost of their label: the loss of CPNL.

    .. math:: \tfrac12 \sum_{ij} c_{ij} |1 - y_{ij} f_{ij}|_+^2, \qquad
              c_{ij} = c_j \text{ if } y_{ij} = 1, \text{ else } 1

    Parameters
    ----------
    costs : array (n_labels,)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import CostWeightedSquaredHinge
    >>> loss = CostWeightedSquaredHinge(np.array([4.0, 1.0]))
    >>> loss.value(np.array([[1, -1]], dtype=np.int8), np.array([[0.5, 0.0]]))
    1.0
    """

    costs: FloatArray


def costs_of_counts(relevant: FloatArray, irrelevant: FloatArray, power: float = 0.5) -> FloatArray:
    r"""Costs of relevant entries that rise with their rarity.

    .. math:: c_j = (n_j^- / n_j^+)^\beta

    Parameters
    ----------
    relevant, irrelevant : arrays (n_labels,)
        How often each label is so.
    power : float
        :math:`\beta`.

    Returns
    -------
    array (n_labels,)
        1 for a label that is nowhere relevant: it has no entry to be used on.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses.hinge import costs_of_counts
    >>> costs_of_counts(np.array([1, 3]), np.array([4, 2]), power=1.0).round(2).tolist()
    [4.0, 0.67]
    """
    ratio = np.divide(irrelevant, relevant, out=np.ones(len(relevant)), where=relevant > 0)
    return ratio**power
