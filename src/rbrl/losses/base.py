"""What a loss is: a sum over rows of a convex function of labels and scores; and losses made of losses.

Conventions: ``Y`` (n, l) int8 in {-1, 0, +1}, where 0 is an entry that nobody looked at; ``F`` (n, l) scores; ``weights``
(n,) of the rows, (n, l) of the entries, or None for ones. Weights of entries are positive where Y is not 0.

A loss never sees features or model weights, so the same loss serves dense, sparse, kernel, chunked and
distributed training.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.typing import Array, FloatArray
from rbrl.losses.weights import Weights, class_weighted


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


class RowTerms(NamedTuple):
    """The terms of a row's loss, by their parameters: dual ascent minimises such a loss over one row at a time.

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
        Matrix L of the quadratic form f' L f / 2 of the row's scores; empty where there is no such term.

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

    @property
    def numbers(self) -> tuple[Any, ...]:
        """The parameters as numbers and arrays, the matrix of the graph by its three arrays."""
        graph = self.graph
        return *self[:4], graph.data, graph.indices, graph.indptr


def no_graph(n_labels: int) -> Any:
    """Return the empty matrix that stands for no quadratic form: a CSR matrix (n_labels, n_labels)."""
    return sparse.csr_array((n_labels, n_labels))


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

    def row_terms(self, n_labels: int) -> RowTerms | None:
        """Return the terms that the loss of a row is made of; None for a loss that has others.

        Parameters
        ----------
        n_labels : int

        Returns
        -------
        RowTerms or None
        """
        return None

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
        value, linear, quadratic, reach = 0.0, 0.0, 0.0, np.inf
        for part in parts:
            value, linear, quadratic = value + part.value, linear + part.linear, quadratic + part.quadratic
            reach = min(reach, part.reach)
        return Terms(value, linear, quadratic, reach)

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

    def rounding_reach(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the weighted sum of the terms' own: (n, l)."""
        return sum((c * loss.rounding_reach(Y, F, weights) for c, loss in self.terms), np.zeros(F.shape))

    def row_terms(self, n_labels: int) -> RowTerms | None:
        """Return the sum of the terms; None if two of them are hinges of labels, or two hinges of pairs."""
        parts = [(c, loss.row_terms(n_labels)) for c, loss in self.terms]
        of_labels = [(c * part.hinge, part.costs) for c, part in parts if part is not None and part.hinge]
        of_pairs = [(c * part.pairs, part.margin) for c, part in parts if part is not None and part.pairs]
        if any(part is None for _, part in parts) or max(len(of_labels), len(of_pairs)) > 1:
            return None
        hinge, costs = of_labels[0] if of_labels else (0.0, np.ones(n_labels))
        pairs, margin = of_pairs[0] if of_pairs else (0.0, 0.0)
        graphs = (c * part.graph for c, part in parts if part is not None)
        return RowTerms(hinge, costs, pairs, margin, sparse.csr_array(sum(graphs, no_graph(n_labels))))

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

    def rounding_reach(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return that of the loss, with these weights: (n, l)."""
        Y, weights = self._entries(Y, weights)
        return self.loss.rounding_reach(Y, F, weights)

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """The bounds of the loss, with these weights: (n,)."""
        return self.loss.curvature(*self._entries(Y, weights))
