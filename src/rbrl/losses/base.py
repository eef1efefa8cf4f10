"""What a loss is: a sum over rows of a convex function of labels and scores; and sums of losses.

Conventions: ``Y`` (n, l) int8 in {-1, +1}, ``F`` (n, l) scores, ``weights`` (n,) row weights or None for ones.
A loss never sees features or model weights, so the same loss serves dense, sparse, kernel, chunked and
distributed training.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.typing import Array, FloatArray

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
