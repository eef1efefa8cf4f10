"""The one sentence that every model here is: a loss of labels and scores, plus penalties on the weights, over a design."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rbrl._linalg import gram_singular_values
from rbrl.blocks import BlockLoss
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

    Attributes
    ----------
    lines_are_estimates : bool
        Whether ``loss.line`` is known from some of the rows only, so that a step found with it has to be confirmed.
    """

    lines_are_estimates = False

    def __init__(self, design, Y, loss: Loss, ridge, nuclear, sample_weight=None):
        if design.shape[0] != len(Y):
            raise ValueError(f"The design has {design.shape[0]} rows, but Y has {len(Y)}.")
        self.design, self.sample_weight = design, sample_weight
        self.Y: Any = np.ascontiguousarray(Y, np.int8)
        self.loss: Any = loss
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

    def zero_scores(self):
        """The scores of the zero weights."""
        return np.zeros(self.Y.shape)

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
        loss = self._known_loss(scores)
        nuclear = self.nuclear.weight * float(gram_singular_values(W).sum()) if self.nuclear.weight else 0.0
        return loss + self.ridge.value(W) + nuclear

    def _known_loss(self, scores):
        return self.loss.value(self.Y, scores, self.sample_weight)

    def reached(self, gap):
        """A solver has certified this gap: for those who watch."""

    def smooth_gradient(self, W, residual):
        """Gradient of loss and ridge, from the loss gradient in the scores: half an evaluation."""
        return self.design.adjoint(residual) + self.ridge.gradient(W)


@dataclass(frozen=True)
class LabelsElsewhere:
    """Labels that stay with their rows: only their shape is known here."""

    shape: tuple[int, int]

    def __len__(self):
        return self.shape[0]


class SummedObjective(Objective):
    """An objective of which only sums over rows are known, by a loss that has them.

    Parameters
    ----------
    design : SummedDesign
    n_labels : int
    loss : BlockLoss or LossAtZero
    ridge, nuclear : float
    """

    def __init__(self, design, n_labels, loss, ridge, nuclear):
        self.design, self.Y, self.sample_weight = design, LabelsElsewhere((design.shape[0], n_labels)), None
        self.loss = loss
        self.ridge = Ridge(float(ridge), design.ridge_weights)
        self.nuclear = NuclearNorm(float(nuclear))

    def zero_scores(self):
        return self.design.scores(self.zeros())


class BlockObjective(SummedObjective):
    """The objective over rows in blocks: one pass over them is one evaluation.

    Parameters
    ----------
    design : BlockDesign
    loss : Loss
    ridge, nuclear : float
    """

    lines_are_estimates = True

    def __init__(self, design, loss: Loss, ridge, nuclear):
        super().__init__(design, design.found.n_labels, BlockLoss(loss, design), ridge, nuclear)

    def with_ridge(self, ridge):
        return BlockObjective(self.design, self.loss.loss, ridge, self.nuclear.weight)

    def _known_loss(self, scores):
        return self.loss.estimate(scores)

    def reached(self, gap):
        self.design.blocks.progress.reached(gap)
