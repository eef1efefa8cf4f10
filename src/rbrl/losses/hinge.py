"""Squared hinges: of one score at a time, with a price on missed labels, and of pairs of labels of one row."""

from dataclasses import dataclass

import numpy as np

from rbrl._common.typing import Array, FloatArray
from rbrl.losses.base import RowKernelLoss, row_weights


class _LabelwiseHinge(RowKernelLoss):
    """Labels do not couple: the Hessian is its diagonal."""

    kernel = "squared_hinge"

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        H = np.zeros_like(F)
        self._call("_diagonal", Y, F, weights=weights, scale=1.0, out=(H,))
        return H

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        return self.hessian_diagonal(Y, F, weights) * D

    def label_hessian(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        return np.diag(self.hessian_diagonal(Y, F, weights).sum(axis=0))


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

    def _parameter(self, Y: Array) -> FloatArray:
        return np.ones(Y.shape[1])

    def curvature(self, Y: Array, weights: FloatArray | None = None) -> FloatArray:
        """The curvature of a label is at most 1, and labels do not couple."""
        return row_weights(weights, len(Y)).copy()


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

    def _parameter(self, Y: Array) -> FloatArray:
        return self.costs

    def curvature(self, Y: Array, weights: FloatArray | None = None) -> FloatArray:
        """Labels do not couple: the highest cost in the row."""
        return np.where(Y > 0, self.costs, 1.0).max(axis=1) * row_weights(weights, len(Y))


def imbalance_costs(Y: Array, power: float = 0.5, weights: FloatArray | None = None) -> FloatArray:
    r"""Costs of relevant entries that rise with their rarity.

    .. math:: c_j = (n_j^- / n_j^+)^\beta

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, +1}.
    power : float
        :math:`\beta`.
    weights : array (n_samples,) or None
        Rows count that often.

    Returns
    -------
    array (n_labels,)
        1 for a label that is nowhere relevant: it has no entry to be used on.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses.hinge import imbalance_costs
    >>> imbalance_costs(np.array([[1, 1], [-1, 1], [-1, 1], [-1, -1], [-1, -1]]), power=1.0).round(2).tolist()
    [4.0, 0.67]
    """
    counts = row_weights(weights, len(Y))
    return costs_of_counts(counts @ (Y > 0), counts @ (Y < 0), power)


def costs_of_counts(relevant: FloatArray, irrelevant: FloatArray, power: float = 0.5) -> FloatArray:
    """The costs of :func:`imbalance_costs`, from how often each label is relevant and irrelevant."""
    ratio = np.divide(irrelevant, relevant, out=np.ones(len(relevant)), where=relevant > 0)
    return ratio**power


@dataclass(frozen=True)
class PairwiseSquaredHinge(RowKernelLoss):
    r"""Squared hinge over each row's (relevant, irrelevant) label pairs: the ranking part of RBRL, eq. (16).

    .. math:: \tfrac12 \sum_i \tfrac{1}{|Y_i^+||Y_i^-|} \sum_{p \in Y_i^+,\, q \in Y_i^-} |c - (f_{ip} - f_{iq})|_+^2

    A row whose labels are all relevant or all irrelevant has no pair and contributes 0.

    Parameters
    ----------
    margin : float, default=2
        The margin c. Two is what a relevant score of +1 and an irrelevant one of -1 leave between them.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import PairwiseSquaredHinge
    >>> PairwiseSquaredHinge().value(np.array([[1, -1]], dtype=np.int8), np.array([[0.5, 0.0]]))
    1.125
    """

    margin: float = 2.0
    kernel = "pairwise_hinge"

    def _parameter(self, Y: Array) -> float:
        return float(self.margin)

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        return self._uncoupled(Y, F, np.ones_like(F), weights, coupling=0.0)

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        return self._uncoupled(Y, F, D, weights, coupling=1.0)

    def _uncoupled(
        self, Y: Array, F: FloatArray, D: FloatArray, weights: FloatArray | None, coupling: float
    ) -> FloatArray:
        """The Hessian with its off-diagonal entries times `coupling`, times D."""
        P = np.zeros_like(F)
        self._call("_product", Y, F, D, weights=weights, scale=1.0, out=(coupling, P))
        return P

    def label_hessian(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        M = np.zeros((F.shape[1], F.shape[1]))
        self._call("_labels", Y, F, weights=weights, scale=1.0, out=(M,))
        return M

    def curvature(self, Y: Array, weights: FloatArray | None = None) -> FloatArray:
        """The Hessian of a row is at most the Laplacian of a complete bipartite graph over |Y+||Y-|: l / (|Y+||Y-|)."""
        p = np.count_nonzero(Y > 0, axis=1)
        pairs = p * (Y.shape[1] - p)
        largest = np.divide(Y.shape[1], pairs, out=np.zeros(len(Y)), where=pairs > 0)
        return largest * row_weights(weights, len(Y))
