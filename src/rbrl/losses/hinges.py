"""Squared hinges of single labels, and of the pairs of a relevant and an irrelevant label of a row."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rbrl._common.typing import Array, FloatArray
from rbrl._loops import rows
from rbrl.losses.base import LineValue, Loss, RowTerms, Terms
from rbrl.losses.weights import Weights, entry_weights, mean_weights, row_weights


class _LabelwiseHinge(Loss):
    """Sum of squared hinges of single scores, whose Hessian is diagonal.

    The linear term of the dual bound is the sum of cost x slack. The quadratic term is the loss itself.
    """

    costs: float | FloatArray

    def accumulate(self, Y: Array, F: FloatArray, weights: Weights, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R; the dual terms are the sum of cost x slack, and the loss."""
        costs = np.ones(Y.shape[1]) * self.costs
        value, linear = rows.squared_hinge(Y, F, row_weights(weights, len(Y)), scale, costs, R)
        return Terms(value, linear, value)

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the weighted cost of every active hinge, and 0 for the others."""
        H = np.zeros_like(F)
        costs = np.ones(Y.shape[1]) * self.costs
        rows.squared_hinge_diagonal(Y, F, row_weights(weights, len(Y)), 1.0, costs, H)
        return H

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the diagonal Hessian at F times D."""
        return self.hessian_diagonal(Y, F, weights) * D

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the sum of the diagonal Hessians of the rows."""
        M = np.zeros((F.shape[1], F.shape[1]))
        costs = np.ones(Y.shape[1]) * self.costs
        rows.squared_hinge_labels(Y, F, row_weights(weights, len(Y)), 1.0, costs, M)
        return M

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """Return the highest weighted cost in each row."""
        costs = np.where(Y > 0, self.costs, np.abs(Y))
        w = row_weights(weights, len(Y))
        return costs.max(axis=1) * w if w.ndim == 1 else (costs * w).max(axis=1)

    def rounding_reach(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the weighted cost of every entry times its score, because an inactive hinge may become active."""
        return entry_weights(Y, weights) * np.where(Y > 0, self.costs, 1.0) * F

    def row_terms(self, n_labels: int) -> RowTerms:
        """Return the terms of the compiled loop: hinges of labels with weight 1, no pairs and an empty graph."""
        return RowTerms(1.0, np.ones(n_labels) * self.costs, 0.0, 0.0, sparse.csr_array((n_labels, n_labels)))

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: Weights = None) -> LineValue:
        """Return the loss at F + D diag(t) and its derivatives, computed in one pass."""
        w = row_weights(weights, len(Y))
        costs = np.ones(Y.shape[1]) * self.costs
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
    r"""Squared hinge of every label, in which relevant entries have the cost of their label: the loss of CPNL.

    .. math:: \tfrac12 \sum_{ij} c_{ij} |1 - y_{ij} f_{ij}|_+^2, \qquad
              c_{ij} = c_j \text{ if } y_{ij} = 1, \text{ else } 1

    Parameters
    ----------
    costs : array (n_labels,)
        Costs :math:`c_j` of the relevant entries.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import CostWeightedSquaredHinge
    >>> loss = CostWeightedSquaredHinge(np.array([4.0, 1.0]))
    >>> loss.value(np.array([[1, -1]], dtype=np.int8), np.array([[0.5, 0.0]]))
    1.0
    """

    costs: FloatArray


@dataclass(frozen=True)
class PairwiseSquaredHinge(Loss):
    r"""Squared hinge over the (relevant, irrelevant) label pairs of each row: the ranking part of RBRL, eq. (16).

    .. math:: \tfrac12 \sum_i \tfrac{1}{|Y_i^+||Y_i^-|} \sum_{p \in Y_i^+,\, q \in Y_i^-} |c - (f_{ip} - f_{iq})|_+^2

    A row whose labels are all relevant or all irrelevant has no pair and contributes 0.

    Parameters
    ----------
    margin : float, default=2
        Margin c. A relevant score of +1 and an irrelevant score of -1 differ by 2.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import PairwiseSquaredHinge
    >>> PairwiseSquaredHinge().value(np.array([[1, -1]], dtype=np.int8), np.array([[0.5, 0.0]]))
    1.125
    """

    margin: float = 2.0

    def accumulate(self, Y: Array, F: FloatArray, weights: Weights, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R; the dual terms are the margin times the sum of slacks, and the loss."""
        value, linear = rows.pairwise_hinge(Y, F, row_weights(weights, len(Y)), scale, float(self.margin), R)
        return Terms(value, linear, value)

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the diagonal of the generalised Hessian: (n_samples, n_labels), a new array."""
        return self.hessian_product(Y, F, np.ones_like(F), weights, coupling=0.0)

    def hessian_product(
        self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None, coupling: float = 1.0
    ) -> FloatArray:
        """Return the Hessian at F times D, a new array.

        Entries off its diagonal are multiplied by `coupling`; 0 leaves the diagonal times D.
        """
        P = np.zeros_like(F)
        w = row_weights(weights, len(Y))
        rows.pairwise_hinge_product(Y, F, D, w, 1.0, float(self.margin), coupling, P)
        return P

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the sum of the generalised Hessians of the rows."""
        M = np.zeros((F.shape[1], F.shape[1]))
        rows.pairwise_hinge_labels(Y, F, row_weights(weights, len(Y)), 1.0, float(self.margin), M)
        return M

    def rounding_reach(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return, for each row and label, the sum over its pairs of their weight times the sum of both absolute scores.

        All pairs count, because an inactive pair may become active.
        """
        u = entry_weights(Y, weights if weights is not None and weights.ndim == 2 else None)
        v = u * np.abs(F)
        relevant = (Y > 0).astype(np.float64)
        u_relevant, v_relevant = (np.einsum("ij,ij->i", A, relevant)[:, None] for A in (u, v))
        u_all, v_all = (A.sum(axis=1, keepdims=True) for A in (u, v))
        pairs = u_relevant * (u_all - u_relevant)
        # A relevant label has a pair with each irrelevant label, and an irrelevant one with each relevant label.
        reach = v * (u_relevant + relevant * (u_all - 2 * u_relevant))
        reach += u * (v_relevant + relevant * (v_all - 2 * v_relevant))
        reach *= np.divide(mean_weights(Y, weights)[:, None], pairs, out=np.zeros_like(pairs), where=pairs > 0)
        return reach

    def row_terms(self, n_labels: int) -> RowTerms:
        """Return hinges of pairs, and none of labels."""
        graph = sparse.csr_array((n_labels, n_labels))
        return RowTerms(0.0, np.ones(n_labels), 1.0, float(self.margin), graph)

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: Weights = None) -> LineValue:
        """Return the loss at F + D diag(t) and its derivatives, computed in one pass over the pairs."""
        w = row_weights(weights, len(Y))
        slopes, curvatures = np.zeros((2, F.shape[1]))
        value, joint = rows.pairwise_hinge_line(Y, F, D, t, w, 1.0, float(self.margin), slopes, curvatures)
        return LineValue(value, slopes, curvatures, joint)

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """Return, for each row, an upper bound on the largest eigenvalue of its Hessian with respect to the scores.

        The Hessian is at most the Laplacian of the graph of its label pairs. Pair (p, q) has the
        weight w_p w_q / (sum of relevant w x sum of irrelevant w), times the mean weight of the row.
        The bound is the largest sum of the degrees of two neighbours in this graph. Without weights
        of entries, it is `1/|Y+| + 1/|Y-|`, times the weight of the row.
        """
        w = row_weights(weights, len(Y))
        if w.ndim == 1:
            p = np.count_nonzero(Y > 0, axis=1)
            q = np.count_nonzero(Y < 0, axis=1)
            return np.divide(p + q, p * q, out=np.zeros(len(Y)), where=p * q > 0) * w
        sides = [np.where(side, w, 0.0) for side in (Y > 0, Y < 0)]
        sums = [side.sum(axis=1) for side in sides]
        has_pairs = np.minimum(*sums) > 0
        zeros = np.zeros(len(Y))
        degrees = [np.divide(A.max(axis=1), s, out=zeros.copy(), where=has_pairs) for A, s in zip(sides, sums)]
        return mean_weights(Y, w) * sum(degrees)
