r"""Scores of rows that are elsewhere, by the weights that they belong to.

Scores are linear in the weights, residuals enter a gradient through the design alone; so whatever a solver does with tall
matrices can be done with their small images, and nothing with as many rows as the data is ever kept:

.. math:: ZW + (ZD)t = Z(W + Dt), \quad (ZU)V' = Z(UV'), \quad Z'(RV) = (Z'R)V, \quad R'(ZU) = (Z'R)'U.
"""

import numpy as np


class BlockScores:
    """Z @ weights, not computed."""

    def __init__(self, weights, design):
        self.weights, self._design = weights, design

    def __len__(self):
        return self._design.shape[0]

    @property
    def shape(self):
        return len(self), self.weights.shape[1]

    def __add__(self, other):
        return BlockScores(self.weights + other.weights, self._design)

    def __sub__(self, other):
        return BlockScores(self.weights - other.weights, self._design)

    def __mul__(self, factors):
        return BlockScores(self.weights * factors, self._design)

    __rmul__ = __mul__

    def __matmul__(self, matrix):
        return BlockScores(self.weights @ matrix, self._design)

    @property
    def T(self):
        return _TransposedScores(self.weights, self._design)


class _TransposedScores:
    def __init__(self, weights, design):
        self.weights, self._design = weights, design

    def __matmul__(self, other):
        """Scores times scores, with Z'Z as far as the design knows it: its diagonal."""
        return self.weights.T @ (self._design.gram_diagonal[:, None] * other.weights)


class BlockResidual:
    """R, of which only Z'R is known."""

    def __init__(self, adjoint):
        self.adjoint = adjoint

    def __matmul__(self, matrix):
        return BlockResidual(self.adjoint @ matrix)

    @property
    def T(self):
        return _TransposedResidual(self.adjoint)

    def __array_function__(self, function, types, arguments, options):
        """<R, ZW> = <Z'R, W>."""
        if function is not np.vdot:
            return NotImplemented
        residual, scores = arguments
        return np.vdot(residual.adjoint, scores.weights)


class _TransposedResidual:
    def __init__(self, adjoint):
        self.adjoint = adjoint

    def __matmul__(self, scores):
        return self.adjoint.T @ scores.weights
