"""What a loss is: a sum over rows of a convex function of labels and scores.

Conventions: ``Y`` (n, l) int8 in {-1, 0, +1}, where 0 is an entry that nobody looked at; ``F`` (n, l) scores; ``weights``
(n,) of the rows, (n, l) of the entries, or None for ones. Weights of entries are positive where Y is not 0.

An entry that nobody looked at is in no hinge and in no pair. With weights of entries, the hinge of entry (i, j) counts
:math:`w_{ij}`, and a pair (p, q) of row i counts :math:`r_i w_{ip} w_{iq} / (S_i^+ S_i^-)`, with the sums S of the weights
of the row's relevant and irrelevant entries, and the mean :math:`r_i` of both: a row of equal weights has that weight.

A loss never sees features or model weights, so the same loss serves dense, sparse, kernel, chunked and
distributed training.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from rbrl._common.typing import Array, FloatArray

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
    >>> from rbrl.losses.base import mean_weights
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
    """What each entry counts: its weight or that of its row, and 0 where nobody looked.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}, 0 where nobody looked.
    weights : array (n_samples,) or (n_samples, n_labels), or None

    Returns
    -------
    array (n_samples, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import entry_weights
    >>> entry_weights(np.array([[1, -1, 0]], dtype=np.int8), np.array([2.0]))
    array([[2., 2., 0.]])
    """
    w = row_weights(weights, len(Y))
    return np.abs(Y) * (w[:, None] if w.ndim == 1 else w)
