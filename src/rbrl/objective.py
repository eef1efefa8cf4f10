"""The one sentence that every model here is: a loss of labels and scores, plus penalties on the weights, over a design."""

from typing import NamedTuple

import numpy as np

from rbrl._linalg import gram_singular_values
from rbrl.losses import Loss, Terms
from rbrl.penalties import NuclearNorm, Ridge


class Point(NamedTuple):
    """Weights with everything one evaluation of the objective there gives."""

    W: np.ndarray
    scores: np.ndarray
    loss: Terms
    residual: np.ndarray
    value: float


class Objective:
    r"""loss(Y, Z W) + ridge(W) + nuclear(W).

    Parameters
    ----------
    design : Design
    Y : array (n_samples, n_labels) of int8
        Labels in {-1, +1}.
    loss : Loss
    ridge, nuclear : float
        :math:`\lambda_1` and :math:`\lambda_3`.
    sample_weight : array (n_samples,) or None
    """

    def __init__(self, design, Y, loss: Loss, ridge, nuclear, sample_weight=None):
        if design.shape[0] != len(Y):
            raise ValueError(f"The design has {design.shape[0]} rows, but Y has {len(Y)}.")
        self.design, self.Y, self.loss, self.sample_weight = (
            design,
            np.ascontiguousarray(Y, np.int8),
            loss,
            sample_weight,
        )
        self.ridge = Ridge(float(ridge), design.ridge_weights)
        self.nuclear = NuclearNorm(float(nuclear))

    @property
    def shape(self):
        """Shape of the weights: (n_columns, n_labels)."""
        return self.design.shape[1], self.Y.shape[1]

    def with_ridge(self, ridge):
        """The same objective with another ridge weight; the design, and its count of products, is shared."""
        return Objective(self.design, self.Y, self.loss, ridge, self.nuclear.weight, self.sample_weight)

    @property
    def evaluations(self):
        """Products so far, in pairs of full width: one with the design and one with its transpose."""
        return self.design.columns / (2 * self.Y.shape[1])

    def zeros(self):
        """The zero weights, where every method may start."""
        return np.zeros(self.shape)

    def at(self, W, scores=None):
        """Evaluate at W; half an evaluation, none if the scores are known."""
        scores = self.design.scores(W) if scores is None else scores
        loss, residual = self.loss.evaluate(self.Y, scores, self.sample_weight)
        return Point(W, scores, loss, residual, loss.value + self.ridge.value(W) + self.nuclear.value(W))

    def value(self, W):
        """The objective at W."""
        return self.at(W).value

    def value_at(self, W, scores):
        """The objective where scores are known, to the eight digits that the Gram matrix of W leaves: for comparisons."""
        loss = self.loss.value(self.Y, scores, self.sample_weight)
        nuclear = self.nuclear.weight * float(gram_singular_values(W).sum()) if self.nuclear.weight else 0.0
        return loss + self.ridge.value(W) + nuclear

    def smooth_gradient(self, W, residual):
        """Gradient of loss and ridge, from the loss gradient in the scores: half an evaluation."""
        return self.design.adjoint(residual) + self.ridge.gradient(W)
