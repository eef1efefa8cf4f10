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
from rbrl._loops import rows


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
    def accumulate(self, Y: Array, F: FloatArray, weights: FloatArray | None, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R; return the :class:`Terms` of the scaled loss."""

    @abstractmethod
    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Diagonal of the generalised Hessian, one entry per score: (n, l)."""

    @abstractmethod
    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Generalised Hessian at F times D: (n, l)."""

    @abstractmethod
    def curvature(self, Y: Array, weights: FloatArray | None = None) -> FloatArray:
        """Upper bound on the largest Hessian eigenvalue of each row, over all scores: (n,)."""

    def evaluate(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> tuple[Terms, FloatArray]:
        """Terms and gradient in F, in one pass."""
        R = np.zeros(F.shape)
        return self.accumulate(Y, F, weights, 1.0, R), R

    def value(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> float:
        """The loss."""
        return self.evaluate(Y, F, weights)[0].value

    def gradient(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Its gradient in the scores: (n, l)."""
        return self.evaluate(Y, F, weights)[1]

    def label_hessian(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Sum of the rows' generalised Hessians: (n_labels, n_labels)."""
        units = np.eye(F.shape[1])
        columns = [self.hessian_product(Y, F, np.broadcast_to(e, F.shape), weights).sum(axis=0) for e in units]
        return np.array(columns)

    def rounding_reach(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """How far the gradient moves where scores move by a share of themselves, as a multiple of that share: (n, l)."""
        return self.hessian_diagonal(Y, F, weights).sum(axis=1)[:, None] * F

    def line(
        self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: FloatArray | None = None
    ) -> LineValue:
        """The loss along directions, one step length per label: a :class:`LineValue`."""
        at = F + D * t
        terms, R = self.evaluate(Y, at, weights)
        curvatures = (self.hessian_diagonal(Y, at, weights) * D**2).sum(axis=0)
        joint = np.vdot(D, self.hessian_product(Y, at, D, weights))
        return LineValue(terms.value, (R * D).sum(axis=0), curvatures, float(joint))


def row_weights(weights: FloatArray | None, n_samples: int) -> FloatArray:
    """Weights as a float64 vector: ones when there are none."""
    return np.ones(n_samples) if weights is None else np.asarray(weights, dtype=np.float64)


class RowKernelLoss(Loss):
    """A loss made of squares of slacks: its dual terms are the sum of margin x slack, and its own value."""

    kernel: str

    @abstractmethod
    def _parameter(self, Y: Array) -> Any:
        """The argument of the kernels that is the loss's own."""

    def _call(
        self, suffix: str, Y: Array, *arrays: FloatArray, weights: FloatArray | None, scale: float, out: Any
    ) -> Any:
        function = getattr(rows, self.kernel + suffix)
        return function(Y, *arrays, row_weights(weights, len(Y)), scale, self._parameter(Y), *out)

    def accumulate(self, Y: Array, F: FloatArray, weights: FloatArray | None, scale: float, R: FloatArray) -> Terms:
        value, linear = self._call("", Y, F, weights=weights, scale=scale, out=(R,))
        return Terms(value, linear, value)

    def line(
        self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: FloatArray | None = None
    ) -> LineValue:
        slopes, curvatures = np.zeros((2, F.shape[1]))
        value, joint = self._call("_line", Y, F, D, t, weights=weights, scale=1.0, out=(slopes, curvatures))
        return LineValue(value, slopes, curvatures, joint)


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

    def accumulate(self, Y: Array, F: FloatArray, weights: FloatArray | None, scale: float, R: FloatArray) -> Terms:
        parts = [loss.accumulate(Y, F, weights, scale * c, R) for c, loss in self.terms]
        value, linear, quadratic = (sum(part[k] for part in parts) for k in range(3))
        return Terms(value, linear, quadratic, min((part.reach for part in parts), default=np.inf))

    def _total(self, method: str, shape: int | tuple[int, ...], *args: Any) -> FloatArray:
        total = np.zeros(shape)
        for c, loss in self.terms:
            total += c * getattr(loss, method)(*args)
        return total

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        return self._total("hessian_diagonal", F.shape, Y, F, weights)

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        return self._total("hessian_product", F.shape, Y, F, D, weights)

    def label_hessian(self, Y: Array, F: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        return self._total("label_hessian", (F.shape[1], F.shape[1]), Y, F, weights)

    def curvature(self, Y: Array, weights: FloatArray | None = None) -> FloatArray:
        return self._total("curvature", len(Y), Y, weights)

    def line(
        self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: FloatArray | None = None
    ) -> LineValue:
        parts = [(c, loss.line(Y, F, D, t, weights)) for c, loss in self.terms]
        if not parts:
            return LineValue(0.0, np.zeros(F.shape[1]), np.zeros(F.shape[1]), 0.0)
        totals: list[Any] = [sum(c * part[k] for c, part in parts) for k in range(4)]
        return LineValue(*totals)
