"""What a loss is: a sum over rows of a convex function of labels and scores; sums of losses; and the squared hinges.

Conventions: ``Y`` (n, l) int8 in {-1, 0, +1}, where 0 is an entry that nobody looked at; ``F`` (n, l) scores; ``weights``
(n,) of the rows, (n, l) of the entries, or None for ones. Weights of entries are positive where Y is not 0.

An entry that nobody looked at is in no hinge and in no pair. With weights of entries, the hinge of entry (i, j) counts
:math:`w_{ij}`, and a pair (p, q) of row i counts :math:`r_i w_{ip} w_{iq} / (S_i^+ S_i^-)`, with the sums S of the weights
of the row's relevant and irrelevant entries, and the mean :math:`r_i` of both: a row of equal weights has that weight.

A loss never sees features or model weights, so the same loss serves dense, sparse, kernel, chunked and
distributed training.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.typing import Array, FloatArray
from rbrl._loops import rows

# Weights of the rows (n,), or of the entries (n, l); None for ones.
Weights = FloatArray | None


class Terms(NamedTuple):
    r"""A loss at given scores, and what a dual bound needs of it.

    With R its gradient, :math:`-\text{loss}^*(\theta R) \ge \theta\,\text{linear} - \theta^2\,\text{quadratic}`
    holds for all :math:`\theta` between 0 and `reach`.

    Attributes
    ----------
    value : float
        The loss.
    linear, quadratic : float
        Coefficients of the bound.
    reach : float
        The largest :math:`\theta` that it holds for.

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
    def accumulate(self, Y: Array, F: FloatArray, weights: Weights, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R; return the :class:`Terms` of the scaled loss.

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            Labels in {-1, 0, +1}, 0 where nobody looked.
        F : array (n_samples, n_labels)
            Scores.
        weights : array (n_samples,) or (n_samples, n_labels), or None
            Of rows or of entries; None is ones.
        scale : float
        R : array (n_samples, n_labels)
            Is added to.

        Returns
        -------
        Terms
        """

    @abstractmethod
    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Diagonal of the generalised Hessian, one entry per score: (n, l).

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            Labels in {-1, 0, +1}, 0 where nobody looked.
        F : array (n_samples, n_labels)
            Scores.
        weights : array (n_samples,) or (n_samples, n_labels), default=None
            Of rows or of entries; None is ones.

        Returns
        -------
        array (n_samples, n_labels)
        """

    @abstractmethod
    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        """Generalised Hessian at F times D: (n, l).

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            Labels in {-1, 0, +1}, 0 where nobody looked.
        F, D : arrays (n_samples, n_labels)
            Scores, and a direction.
        weights : array (n_samples,) or (n_samples, n_labels), default=None
            Of rows or of entries; None is ones.

        Returns
        -------
        array (n_samples, n_labels)
        """

    @abstractmethod
    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """Upper bound on the largest Hessian eigenvalue of each row, over all scores: (n,).

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            Labels in {-1, 0, +1}, 0 where nobody looked.
        weights : array (n_samples,) or (n_samples, n_labels), default=None
            Of rows or of entries; None is ones.

        Returns
        -------
        array (n_samples,)
        """

    def evaluate(self, Y: Array, F: FloatArray, weights: Weights = None) -> tuple[Terms, FloatArray]:
        """Terms and gradient in F, in one pass.

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            Labels in {-1, 0, +1}, 0 where nobody looked.
        F : array (n_samples, n_labels)
            Scores.
        weights : array (n_samples,) or (n_samples, n_labels), default=None
            Of rows or of entries; None is ones.

        Returns
        -------
        terms : Terms
        gradient : array (n_samples, n_labels)
        """
        R = np.zeros(F.shape)
        return self.accumulate(Y, F, weights, 1.0, R), R

    def value(self, Y: Array, F: FloatArray, weights: Weights = None) -> float:
        """The loss.

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            Labels in {-1, 0, +1}, 0 where nobody looked.
        F : array (n_samples, n_labels)
            Scores.
        weights : array (n_samples,) or (n_samples, n_labels), default=None
            Of rows or of entries; None is ones.

        Returns
        -------
        float
        """
        return self.evaluate(Y, F, weights)[0].value

    def gradient(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Its gradient in the scores: (n, l).

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            Labels in {-1, 0, +1}, 0 where nobody looked.
        F : array (n_samples, n_labels)
            Scores.
        weights : array (n_samples,) or (n_samples, n_labels), default=None
            Of rows or of entries; None is ones.

        Returns
        -------
        array (n_samples, n_labels)
        """
        return self.evaluate(Y, F, weights)[1]

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Sum of the rows' generalised Hessians: (n_labels, n_labels).

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            Labels in {-1, 0, +1}, 0 where nobody looked.
        F : array (n_samples, n_labels)
            Scores.
        weights : array (n_samples,) or (n_samples, n_labels), default=None
            Of rows or of entries; None is ones.

        Returns
        -------
        array (n_labels, n_labels)
        """
        units = np.eye(F.shape[1])
        columns = [self.hessian_product(Y, F, np.broadcast_to(e, F.shape), weights).sum(axis=0) for e in units]
        return np.array(columns)

    def rounding_reach(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """How far the gradient moves where scores move by a share of themselves, as a multiple of that share: (n, l).

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            Labels in {-1, 0, +1}, 0 where nobody looked.
        F : array (n_samples, n_labels)
            Scores.
        weights : array (n_samples,) or (n_samples, n_labels), default=None
            Of rows or of entries; None is ones.

        Returns
        -------
        array (n_samples, n_labels)
        """
        return self.hessian_diagonal(Y, F, weights).sum(axis=1)[:, None] * F

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: Weights = None) -> LineValue:
        """The loss along directions, one step length per label: a :class:`LineValue`.

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            Labels in {-1, 0, +1}, 0 where nobody looked.
        F, D : arrays (n_samples, n_labels)
            Scores, and directions.
        t : array (n_labels,)
            Step lengths.
        weights : array (n_samples,) or (n_samples, n_labels), default=None
            Of rows or of entries; None is ones.

        Returns
        -------
        LineValue
        """
        at = F + D * t
        terms, R = self.evaluate(Y, at, weights)
        curvatures = (self.hessian_diagonal(Y, at, weights) * D**2).sum(axis=0)
        joint = np.vdot(D, self.hessian_product(Y, at, D, weights))
        return LineValue(terms.value, (R * D).sum(axis=0), curvatures, float(joint))


def row_weights(weights: Weights, n_samples: int) -> FloatArray:
    """Weights as float64, of rows or entries as they are: ones of the rows when there are none."""
    return np.ones(n_samples) if weights is None else np.asarray(weights, dtype=np.float64)


def mean_weights(Y: Array, weights: Weights) -> FloatArray:
    """What each row counts as a whole: its weight, or the mean of those of its entries; 0 if nobody looked at any: (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses.hinges import mean_weights
    >>> Y = np.array([[1, -1, 0], [0, 0, 0]], dtype=np.int8)
    >>> mean_weights(Y, None), mean_weights(Y, np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0]]))
    (array([1., 0.]), array([2., 0.]))
    """
    w = row_weights(weights, len(Y))
    if w.ndim == 1:
        # To look at all at once takes a hundredth of the time of looking at each row.
        return w if Y.all() else w * Y.any(axis=1)
    return np.where(Y != 0, w, 0.0).sum(axis=1) / np.maximum(np.count_nonzero(Y, axis=1), 1)


def entry_weights(Y: Array, weights: Weights) -> FloatArray:
    """What each entry counts: its weight or that of its row, and 0 where nobody looked: (n, l).

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses.hinges import entry_weights
    >>> entry_weights(np.array([[1, -1, 0]], dtype=np.int8), np.array([2.0]))
    array([[2., 2., 0.]])
    """
    w = row_weights(weights, len(Y))
    return np.abs(Y) * (w[:, None] if w.ndim == 1 else w)


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

    def accumulate(self, Y: Array, F: FloatArray, weights: Weights, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R; the dual terms are the margin times the sum of slacks, and the loss itself."""
        value, linear = rows.pairwise_hinge(Y, F, row_weights(weights, len(Y)), scale, float(self.margin), R)
        return Terms(value, linear, value)

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Diagonal of the generalised Hessian: (n, l)."""
        # A coupling of 0 leaves the entries off the diagonal out.
        H, w, coupling = np.zeros_like(F), row_weights(weights, len(Y)), 0.0
        rows.pairwise_hinge_product(Y, F, np.ones_like(F), w, 1.0, float(self.margin), coupling, H)
        return H

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        """Generalised Hessian at F times D: (n, l)."""
        P, w, coupling = np.zeros_like(F), row_weights(weights, len(Y)), 1.0
        rows.pairwise_hinge_product(Y, F, D, w, 1.0, float(self.margin), coupling, P)
        return P

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Sum of the rows' generalised Hessians: (n_labels, n_labels)."""
        M = np.zeros((F.shape[1], F.shape[1]))
        rows.pairwise_hinge_labels(Y, F, row_weights(weights, len(Y)), 1.0, float(self.margin), M)
        return M

    def line(self, Y: Array, F: FloatArray, D: FloatArray, t: FloatArray, weights: Weights = None) -> LineValue:
        """The loss along directions, one step length per label: one pass over the pairs."""
        w, (slopes, curvatures) = row_weights(weights, len(Y)), np.zeros((2, F.shape[1]))
        value, joint = rows.pairwise_hinge_line(Y, F, D, t, w, 1.0, float(self.margin), slopes, curvatures)
        return LineValue(value, slopes, curvatures, joint)

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """The Hessian of a row is at most the Laplacian of a bipartite graph, whose largest eigenvalue is at most the
        largest sum of the degrees of two neighbours: `1/|Y+| + 1/|Y-|`, and less the more even the weights of entries."""
        w = row_weights(weights, len(Y))
        if w.ndim == 1:
            p, q = np.count_nonzero(Y > 0, axis=1), np.count_nonzero(Y < 0, axis=1)
            return np.divide(p + q, p * q, out=np.zeros(len(Y)), where=p * q > 0) * w
        sides = [np.where(side, w, 0.0) for side in (Y > 0, Y < 0)]
        sums = [side.sum(axis=1) for side in sides]
        paired = np.minimum(*sums) > 0
        degrees = [np.divide(side.max(axis=1), of, out=np.zeros(len(Y)), where=paired) for side, of in zip(sides, sums)]
        return mean_weights(Y, w) * sum(degrees)
