"""What a loss is: a sum over rows of a convex function of labels and scores; sums of losses; and the squared hinges.

Conventions: ``Y`` (n, l) int8 in {-1, +1}, ``F`` (n, l) scores, ``weights`` (n,) row weights or None for ones.
A loss never sees features or model weights, so the same loss serves dense, sparse, kernel, chunked and
distributed training.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.typing import Array, FloatArray
from rbrl._loops import rows

# Weights of the rows, or None for ones.
RowWeights = FloatArray | None


class Terms(NamedTuple):
    r"""A loss at given scores, and what a dual bound needs of it.

    With R its gradient, :math:`-\text{loss}^*(\theta R) \ge \theta\,\text{linear} - \theta^2\,\text{quadratic}`
    holds for all :math:`\theta` between 0 and `reach`.

    Examples
    --------
    >>> from rbrl.losses import Terms
    >>> Terms(value=1.0, linear=2.0, quadratic=1.0).reach
    inf
    """

    value: float
    linear: float
    quadratic: float
    reach: float = np.inf


class LineValue(NamedTuple):
    """A loss at F + D diag(t), and its derivatives.

    Attributes
    ----------
    value : float
    slopes, curvatures : arrays (n_labels,)
        First and second derivatives in each step length t_j.
    joint_curvature : float
        The second derivative when all t_j move as one.
    """

    value: float
    slopes: FloatArray
    curvatures: FloatArray
    joint_curvature: float


class Loss(ABC):
    """A convex loss of labels and scores, summed over rows.

    A subclass gives the four abstract methods; the rest follows from them, and may be overridden by what is faster.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> Y, F = np.array([[1, -1]], dtype=np.int8), np.array([[0.5, 0.0]])
    >>> SquaredHinge().value(Y, F)
    0.625
    >>> SquaredHinge().gradient(Y, F)
    array([[-0.5,  1. ]])
    """

    @abstractmethod
    def accumulate(self, Y: Array, F: FloatArray, weights: RowWeights, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R; return the :class:`Terms` of the scaled loss."""

    @abstractmethod
    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> FloatArray:
        """Diagonal of the generalised Hessian, one entry per score: (n, l)."""

    @abstractmethod
    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: RowWeights = None) -> FloatArray:
        """Generalised Hessian at F times D: (n, l)."""

    @abstractmethod
    def curvature(self, Y: Array, weights: RowWeights = None) -> FloatArray:
        """Upper bound on the largest Hessian eigenvalue of each row, over all scores: (n,)."""

    def evaluate(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> tuple[Terms, FloatArray]:
        """Terms and gradient in F, in one pass."""
        R = np.zeros(F.shape)
        return self.accumulate(Y, F, weights, 1.0, R), R

    def value(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> float:
        """The loss."""
        return self.evaluate(Y, F, weights)[0].value

    def gradient(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> FloatArray:
        """Its gradient in the scores: (n, l)."""
        return self.evaluate(Y, F, weights)[1]

    def label_hessian(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> FloatArray:
        """Sum of the rows' generalised Hessians: (n_labels, n_labels)."""
        units = np.eye(F.shape[1])
        columns = [self.hessian_product(Y, F, np.broadcast_to(e, F.shape), weights).sum(axis=0) for e in units]
        return np.array(columns)

    def rounding_reach(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> FloatArray:
        """How far the gradient moves where scores move by a share of themselves, as a multiple of that share: (n, l)."""
        return self.hessian_diagonal(Y, F, weights).sum(axis=1)[:, None] * F

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: RowWeights = None) -> LineValue:
        """The loss along directions, one step length per label: a :class:`LineValue`."""
        at = F + D * t
        terms, R = self.evaluate(Y, at, weights)
        curvatures = (self.hessian_diagonal(Y, at, weights) * D**2).sum(axis=0)
        joint = np.vdot(D, self.hessian_product(Y, at, D, weights))
        return LineValue(terms.value, (R * D).sum(axis=0), curvatures, float(joint))


def row_weights(weights: RowWeights, n_samples: int) -> FloatArray:
    """Weights as a float64 vector: ones when there are none."""
    return np.ones(n_samples) if weights is None else np.asarray(weights, dtype=np.float64)


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

    def accumulate(self, Y: Array, F: FloatArray, weights: RowWeights, scale: float, R: FloatArray) -> Terms:
        """Add the gradients of all terms to R; return the sums of their :class:`Terms`, with the shortest reach."""
        parts = [loss.accumulate(Y, F, weights, scale * c, R) for c, loss in self.terms]
        value, linear, quadratic = (sum(part[k] for part in parts) for k in range(3))
        return Terms(value, linear, quadratic, min((part.reach for part in parts), default=np.inf))

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> FloatArray:
        """Weighted sum of the terms' diagonals: (n, l)."""
        return sum((c * loss.hessian_diagonal(Y, F, weights) for c, loss in self.terms), np.zeros(F.shape))

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: RowWeights = None) -> FloatArray:
        """Weighted sum of the terms' products with D: (n, l)."""
        return sum((c * loss.hessian_product(Y, F, D, weights) for c, loss in self.terms), np.zeros(F.shape))

    def label_hessian(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> FloatArray:
        """Weighted sum of the terms' own: (n_labels, n_labels)."""
        zero = np.zeros((F.shape[1], F.shape[1]))
        return sum((c * loss.label_hessian(Y, F, weights) for c, loss in self.terms), zero)

    def curvature(self, Y: Array, weights: RowWeights = None) -> FloatArray:
        """Weighted sum of the terms' bounds: (n,)."""
        return sum((c * loss.curvature(Y, weights) for c, loss in self.terms), np.zeros(len(Y)))

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: RowWeights = None) -> LineValue:
        """Weighted sum of the terms' :class:`LineValue`."""
        parts = [(c, loss.line(Y, F, D, t, weights)) for c, loss in self.terms]
        if not parts:
            return LineValue(0.0, np.zeros(F.shape[1]), np.zeros(F.shape[1]), 0.0)
        totals: list[Any] = [sum(c * part[k] for c, part in parts) for k in range(4)]
        return LineValue(*totals)


class _LabelwiseHinge(Loss):
    """Squares of slacks of one score at a time: the dual terms are the sum of cost x slack, and the loss itself.

    Labels do not couple: the Hessian is its diagonal.
    """

    costs: float | FloatArray

    def accumulate(self, Y: Array, F: FloatArray, weights: RowWeights, scale: float, R: FloatArray) -> Terms:
        costs = np.ones(Y.shape[1]) * self.costs
        value, linear = rows.squared_hinge(Y, F, row_weights(weights, len(Y)), scale, costs, R)
        return Terms(value, linear, value)

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> FloatArray:
        H, costs = np.zeros_like(F), np.ones(Y.shape[1]) * self.costs
        rows.squared_hinge_diagonal(Y, F, row_weights(weights, len(Y)), 1.0, costs, H)
        return H

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: RowWeights = None) -> FloatArray:
        return self.hessian_diagonal(Y, F, weights) * D

    def label_hessian(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> FloatArray:
        M, costs = np.zeros((F.shape[1], F.shape[1])), np.ones(Y.shape[1]) * self.costs
        rows.squared_hinge_labels(Y, F, row_weights(weights, len(Y)), 1.0, costs, M)
        return M

    def curvature(self, Y: Array, weights: RowWeights = None) -> FloatArray:
        """The highest cost in the row."""
        return np.where(Y > 0, self.costs, 1.0).max(axis=1) * row_weights(weights, len(Y))

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: RowWeights = None) -> LineValue:
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
    >>> from rbrl.losses.hinges import costs_of_counts
    >>> costs_of_counts(np.array([1, 3]), np.array([4, 2]), power=1.0).round(2).tolist()
    [4.0, 0.67]
    """
    ratio = np.divide(irrelevant, relevant, out=np.ones(len(relevant)), where=relevant > 0)
    return ratio**power


@dataclass(frozen=True)
class PairwiseSquaredHinge(Loss):
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

    def accumulate(self, Y: Array, F: FloatArray, weights: RowWeights, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R; the dual terms are the margin times the sum of slacks, and the loss itself."""
        value, linear = rows.pairwise_hinge(Y, F, row_weights(weights, len(Y)), scale, float(self.margin), R)
        return Terms(value, linear, value)

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> FloatArray:
        """Diagonal of the generalised Hessian: (n, l)."""
        # A coupling of 0 leaves the entries off the diagonal out.
        H, w, coupling = np.zeros_like(F), row_weights(weights, len(Y)), 0.0
        rows.pairwise_hinge_product(Y, F, np.ones_like(F), w, 1.0, float(self.margin), coupling, H)
        return H

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: RowWeights = None) -> FloatArray:
        """Generalised Hessian at F times D: (n, l)."""
        P, w, coupling = np.zeros_like(F), row_weights(weights, len(Y)), 1.0
        rows.pairwise_hinge_product(Y, F, D, w, 1.0, float(self.margin), coupling, P)
        return P

    def label_hessian(self, Y: Array, F: FloatArray, weights: RowWeights = None) -> FloatArray:
        """Sum of the rows' generalised Hessians: (n_labels, n_labels)."""
        M = np.zeros((F.shape[1], F.shape[1]))
        rows.pairwise_hinge_labels(Y, F, row_weights(weights, len(Y)), 1.0, float(self.margin), M)
        return M

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: RowWeights = None) -> LineValue:
        """The loss along directions, one step length per label: one pass over the pairs."""
        w, (slopes, curvatures) = row_weights(weights, len(Y)), np.zeros((2, F.shape[1]))
        value, joint = rows.pairwise_hinge_line(Y, F, D, t, w, 1.0, float(self.margin), slopes, curvatures)
        return LineValue(value, slopes, curvatures, joint)

    def curvature(self, Y: Array, weights: RowWeights = None) -> FloatArray:
        """The Hessian of a row is at most the Laplacian of a complete bipartite graph over |Y+||Y-|: l / (|Y+||Y-|)."""
        p = np.count_nonzero(Y > 0, axis=1)
        pairs = p * (Y.shape[1] - p)
        largest = np.divide(Y.shape[1], pairs, out=np.zeros(len(Y)), where=pairs > 0)
        return largest * row_weights(weights, len(Y))
