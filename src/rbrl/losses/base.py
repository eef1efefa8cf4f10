r"""Base class of the losses, and sums and weightings of losses.

A loss is a sum over rows of a convex function of labels and scores. A loss never sees features or model
weights. The same loss therefore serves dense, sparse, kernel, out-of-core and distributed training.

Conventions: ``Y`` (n_samples, n_labels) are labels in {-1, 0, +1}, where 0 is a missing label. ``F``
(n_samples, n_labels) are scores. ``weights`` are weights of the rows (n_samples,), weights of the entries
(n_samples, n_labels), or None for weights of 1. Weights of entries are positive where Y is not 0.

A missing label is in no hinge and in no pair. With weights of entries, the hinge of entry (i, j) has the
weight :math:`w_{ij}`, and the pair (p, q) of row i has the weight :math:`r_i w_{ip} w_{iq} / (S_i^+ S_i^-)`.
Here :math:`S_i^+` and :math:`S_i^-` are the sums of the weights of the relevant and of the irrelevant
entries of the row, and :math:`r_i` is the mean weight of its entries. If all entries of a row have the same
weight, this is the weight of the row.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.typing import Array, FloatArray
from rbrl.losses.weights import Weights, apply_class_weights


class Terms(NamedTuple):
    r"""Value of a loss at given scores, and the coefficients of its dual bound.

    With the gradient R, :math:`-\text{loss}^*(\theta R) \ge \theta\,\text{linear} - \theta^2\,\text{quadratic}`
    holds for all :math:`\theta` between 0 and `reach`.

    Attributes
    ----------
    value : float
        Value of the loss.
    linear, quadratic : float
        Coefficients of the bound.
    reach : float
        Largest :math:`\theta` for which the bound holds.

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


def sum_terms(parts: Sequence[Terms]) -> Terms:
    """Return the terms of a sum of losses, or of a loss over several blocks of rows.

    The reach is the shortest one. Without parts, all terms are 0 and the reach is infinite.

    Examples
    --------
    >>> from rbrl.losses import Terms
    >>> from rbrl.losses.base import sum_terms
    >>> sum_terms([Terms(1.0, 2.0, 3.0), Terms(1.0, 1.0, 1.0, reach=2.0)]) == (2.0, 3.0, 4.0, 2.0)
    True
    """
    value, linear, quadratic = np.sum([part[:3] for part in parts] or [(0.0, 0.0, 0.0)], axis=0).tolist()
    return Terms(value, linear, quadratic, min((part.reach for part in parts), default=np.inf))


class RowTerms(NamedTuple):
    """Parameters of the loss of a row. Dual ascent minimises such a loss over one row at a time.

    Attributes
    ----------
    hinge : float
        Weight of the squared hinges of single labels.
    costs : array (n_labels,)
        Factors of the hinges of relevant entries.
    pairs : float
        Weight of the squared hinges of pairs of a relevant and an irrelevant label.
    margin : float
        Margin of the pairs.
    graph : CSR matrix (n_labels, n_labels)
        Matrix L of the quadratic form f' L f / 2 of the row's scores. It may have no entries.

    Examples
    --------
    >>> from rbrl.losses import PairwiseSquaredHinge, SquaredHinge, WeightedSum
    >>> terms = WeightedSum((1.0, SquaredHinge()), (0.5, PairwiseSquaredHinge())).row_terms(2)
    >>> terms.hinge, terms.costs.tolist(), terms.pairs, terms.margin, terms.graph.nnz
    (1.0, [1.0, 1.0], 0.5, 2.0, 0)
    """

    hinge: float
    costs: FloatArray
    pairs: float
    margin: float
    graph: Any


class LineValue(NamedTuple):
    """Value and derivatives of a loss at the scores F + D diag(t).

    Attributes
    ----------
    value : float
        Value of the loss.
    slopes, curvatures : arrays (n_labels,)
        First and second derivatives in each step length t_j.
    joint_curvature : float
        Second derivative if all step lengths are equal.
    """

    value: float
    slopes: FloatArray
    curvatures: FloatArray
    joint_curvature: float


class Loss(ABC):
    """Convex loss of labels and scores, summed over rows.

    A subclass implements the four abstract methods. It may override the other methods with faster ones.

    Notes
    -----
    ``Y`` (n_samples, n_labels) are labels in {-1, 0, +1}, where 0 is a missing label. ``F`` (n_samples,
    n_labels) are scores, and ``D`` is a direction of the same shape. ``weights`` (n_samples,) are weights of
    rows, ``weights`` (n_samples, n_labels) are weights of entries, and None stands for weights of 1. Only the
    argument ``R`` of `accumulate` is changed. All results are new arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> Y = np.array([[1, -1]], dtype=np.int8)
    >>> F = np.array([[0.5, 0.0]])
    >>> SquaredHinge().value(Y, F)
    0.625
    >>> SquaredHinge().gradient(Y, F)
    array([[-0.5,  1. ]])
    """

    @abstractmethod
    def accumulate(self, Y: Array, F: FloatArray, weights: Weights, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R, in place; return the terms of the scaled loss.

        R (n_samples, n_labels) is float64 in C order. The other arrays are not changed.
        """

    @abstractmethod
    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the diagonal of the generalised Hessian: (n_samples, n_labels), a new array."""

    @abstractmethod
    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the generalised Hessian at F times D: (n_samples, n_labels), a new array."""

    @abstractmethod
    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """Return an upper bound on the largest Hessian eigenvalue of each row over all scores: (n_samples,).

        It is infinite if there is no bound.
        """

    def evaluate(self, Y: Array, F: FloatArray, weights: Weights = None) -> tuple[Terms, FloatArray]:
        """Return the terms of the loss and its gradient in F, a new array, computed in one pass."""
        R = np.zeros(F.shape)
        return self.accumulate(Y, F, weights, 1.0, R), R

    def value(self, Y: Array, F: FloatArray, weights: Weights = None) -> float:
        """Return the value of the loss, for arguments as in :meth:`evaluate`."""
        return self.evaluate(Y, F, weights)[0].value

    def gradient(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the gradient of the loss in F: (n_samples, n_labels)."""
        return self.evaluate(Y, F, weights)[1]

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the sum of the generalised Hessians of the rows: (n_labels, n_labels), symmetric."""
        units = np.eye(F.shape[1])
        columns = [self.hessian_product(Y, F, np.broadcast_to(e, F.shape), weights).sum(axis=0) for e in units]
        return np.array(columns)

    def row_terms(self, n_labels: int) -> RowTerms | None:
        """Return the parameters of the loss of a row, or None if it has terms that :class:`RowTerms` cannot express.

        Parameters
        ----------
        n_labels : int

        Returns
        -------
        RowTerms or None
        """
        return None

    def rounding_reach(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return a bound on the change of the gradient, per relative change of the scores.

        It has the shape (n_samples, n_labels). Only the sizes of the entries count; their signs
        have no meaning.
        """
        return self.hessian_diagonal(Y, F, weights).sum(axis=1)[:, None] * F

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: Weights = None) -> LineValue:
        """Return the loss at F + D diag(t), with a step length t_j for each label, and its derivatives in t."""
        scores = F + D * t
        terms, R = self.evaluate(Y, scores, weights)
        curvatures = (self.hessian_diagonal(Y, scores, weights) * D**2).sum(axis=0)
        joint = np.vdot(D, self.hessian_product(Y, scores, D, weights))
        return LineValue(terms.value, (R * D).sum(axis=0), curvatures, float(joint))


@dataclass(frozen=True, init=False)
class WeightedSum(Loss):
    """Weighted sum of losses; a loss of weight 0 is left out.

    Parameters
    ----------
    *terms : pairs (float, Loss)
        Weights and losses.

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
        """Add the gradients of all losses to R; return the sums of their terms, with the shortest reach."""
        return sum_terms([loss.accumulate(Y, F, weights, scale * c, R) for c, loss in self.terms])

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the weighted sum of the diagonals."""
        return sum((c * loss.hessian_diagonal(Y, F, weights) for c, loss in self.terms), np.zeros(F.shape))

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the weighted sum of the products with D, a new array."""
        return sum((c * loss.hessian_product(Y, F, D, weights) for c, loss in self.terms), np.zeros(F.shape))

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the weighted sum of the Hessians."""
        zero = np.zeros((F.shape[1], F.shape[1]))
        return sum((c * loss.label_hessian(Y, F, weights) for c, loss in self.terms), zero)

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """Return the weighted sum of the bounds."""
        return sum((c * loss.curvature(Y, weights) for c, loss in self.terms), np.zeros(len(Y)))

    def rounding_reach(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the weighted sum of the bounds."""
        return sum((c * loss.rounding_reach(Y, F, weights) for c, loss in self.terms), np.zeros(F.shape))

    def row_terms(self, n_labels: int) -> RowTerms | None:
        """Return the sum of the terms; None if two of them are hinges of labels, or two hinges of pairs."""
        total = RowTerms(0.0, np.ones(n_labels), 0.0, 0.0, sparse.csr_array((n_labels, n_labels)))
        for c, loss in self.terms:
            part = loss.row_terms(n_labels)
            if part is None or total.hinge * part.hinge or total.pairs * part.pairs:
                return None
            total = total._replace(graph=total.graph + c * part.graph)
            if part.hinge:
                total = total._replace(hinge=c * part.hinge, costs=part.costs)
            if part.pairs:
                total = total._replace(pairs=c * part.pairs, margin=part.margin)
        return total

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: Weights = None) -> LineValue:
        """Return the weighted sum of the values and derivatives."""
        value = joint = 0.0
        slopes, curvatures = np.zeros((2, F.shape[1]))
        for c, loss in self.terms:
            part = loss.line(Y, F, D, t, weights)
            value += c * part.value
            slopes += c * part.slopes
            curvatures += c * part.curvatures
            joint += c * part.joint_curvature
        return LineValue(value, slopes, curvatures, joint)


@dataclass(frozen=True, eq=False)
class ClassWeighted(Loss):
    """Loss with a weight for the relevant and for the irrelevant entries of each label.

    This class is meant for rows that are not in memory. For rows in memory, it is faster to compute the
    weights of the entries once.

    Parameters
    ----------
    loss : Loss
        Loss that gets the weights.
    table : array (2, n_labels)
        Weights of the irrelevant and the relevant entries of each label. Entries of weight 0 are left out.

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

    def _weigh(self, Y: Array, weights: Weights) -> tuple[Array, FloatArray]:
        """Return the labels without entries of weight 0, and the weights of the entries.

        Both are new arrays (n_samples, n_labels). A label of weight 0 becomes a missing label.
        """
        entries = apply_class_weights(Y, weights, self.table)
        return np.where(entries > 0, Y, np.int8(0)), entries

    def accumulate(self, Y: Array, F: FloatArray, weights: Weights, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R; return the terms of the scaled loss."""
        Y, weights = self._weigh(Y, weights)
        return self.loss.accumulate(Y, F, weights, scale, R)

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the diagonal of the weighted loss."""
        Y, weights = self._weigh(Y, weights)
        return self.loss.hessian_diagonal(Y, F, weights)

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the product of the weighted loss with D."""
        Y, weights = self._weigh(Y, weights)
        return self.loss.hessian_product(Y, F, D, weights)

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the Hessian of the weighted loss."""
        Y, weights = self._weigh(Y, weights)
        return self.loss.label_hessian(Y, F, weights)

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: Weights = None) -> LineValue:
        """Return the value and derivatives of the weighted loss."""
        Y, weights = self._weigh(Y, weights)
        return self.loss.line(Y, F, D, t, weights)

    def rounding_reach(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the bounds of the weighted loss: (n_samples, n_labels)."""
        Y, weights = self._weigh(Y, weights)
        return self.loss.rounding_reach(Y, F, weights)

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """Return the bounds of the weighted loss."""
        return self.loss.curvature(*self._weigh(Y, weights))
