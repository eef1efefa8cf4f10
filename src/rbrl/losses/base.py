"""What a loss is: a sum over rows of a convex function of labels and scores.

Conventions: ``Y`` (n, l) int8 in {-1, +1}, ``F`` (n, l) scores, ``weights`` (n,) row weights or None for ones.
A loss never sees features or model weights, so the same loss serves dense, sparse, kernel, chunked and
distributed training.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np


class Terms(NamedTuple):
    r"""A loss at given scores, and what a dual bound needs of it.

    With R its gradient, :math:`-\text{loss}^*(\theta R) \ge \theta\,\text{linear} - \theta^2\,\text{quadratic}`
    holds for all :math:`\theta` between 0 and `reach`.
    """

    value: float
    linear: float
    quadratic: float
    reach: float = np.inf


class LineValue(NamedTuple):
    """A loss at F + D diag(t): value, derivatives in each t_j, and the second derivative when all t_j move as one."""

    value: float
    slopes: np.ndarray
    bends: np.ndarray
    joint_bend: float


class Loss(ABC):
    """A convex loss of labels and scores, summed over rows."""

    @abstractmethod
    def accumulate(self, Y, F, weights, scale, R):
        """Add scale x gradient to R; return the :class:`Terms` of the scaled loss."""

    @abstractmethod
    def hessian_diagonal(self, Y, F, weights=None):
        """Diagonal of the generalised Hessian, one entry per score: (n, l)."""

    @abstractmethod
    def hessian_product(self, Y, F, D, weights=None):
        """Generalised Hessian at F times D: (n, l)."""

    @abstractmethod
    def curvature(self, Y, weights=None):
        """Upper bound on the largest Hessian eigenvalue of each row, over all scores: (n,)."""

    def evaluate(self, Y, F, weights=None):
        """Terms and gradient in F, in one pass."""
        R = np.zeros(F.shape)
        return self.accumulate(Y, F, weights, 1.0, R), R

    def value(self, Y, F, weights=None):
        """The loss."""
        return self.evaluate(Y, F, weights)[0].value

    def gradient(self, Y, F, weights=None):
        """Its gradient in the scores: (n, l)."""
        return self.evaluate(Y, F, weights)[1]

    def label_hessian(self, Y, F, weights=None):
        """Sum of the rows' generalised Hessians: (n_labels, n_labels)."""
        units = np.eye(F.shape[1])
        columns = [self.hessian_product(Y, F, np.broadcast_to(e, F.shape), weights).sum(axis=0) for e in units]
        return np.array(columns)

    def line(self, Y, F, D, t, weights=None):
        """The loss along directions, one step length per label: a :class:`LineValue`."""
        at = F + D * t
        terms, R = self.evaluate(Y, at, weights)
        bends = (self.hessian_diagonal(Y, at, weights) * D**2).sum(axis=0)
        joint = np.vdot(D, self.hessian_product(Y, at, D, weights))
        return LineValue(terms.value, (R * D).sum(axis=0), bends, float(joint))


def row_weights(weights, n_samples):
    """Weights as a float64 vector: ones when there are none."""
    return np.ones(n_samples) if weights is None else np.asarray(weights, dtype=np.float64)
