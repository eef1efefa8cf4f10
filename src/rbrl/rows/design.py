"""Designs and objectives of rows that are elsewhere: in blocks, or gone by. Only sums over rows are known."""

from dataclasses import dataclass

import numpy as np

from rbrl._common.linalg import whiten
from rbrl._common.typing import FloatArray
from rbrl.losses import Loss
from rbrl.problem.design import Design, add_adjoint, scores
from rbrl.problem.features import Rotation, directions_worth, rotated
from rbrl.problem.objective import NuclearNorm, Objective, Ridge
from rbrl.rows.places import Blocks
from rbrl.rows.sums import BlockLoss, BlockResidual, BlockScores, LossAtZero, block_projected_gram
from rbrl.rows.survey import take_survey

# The Gram matrix and its decomposition take 4 x 8 x size^2 bytes: 0.8 GB, on every machine that holds blocks.
LARGEST_GRAM = 5000


class SummedDesign(Design):
    """Coordinates W of the coefficients ``turn @ W``; scores are named, not computed."""

    def __init__(self, n_samples: int, turn: FloatArray | Rotation, gram_diagonal: FloatArray) -> None:
        self._turn, self.gram_diagonal = turn, gram_diagonal
        self.shape = n_samples, len(gram_diagonal)

    def scores(self, W: FloatArray) -> BlockScores:
        """Z @ W, by name: nothing is computed before a loss is evaluated there."""
        return BlockScores(W, self)

    def adjoint(self, R: BlockResidual) -> FloatArray:
        """Z' @ R, which came with the loss."""
        return R.adjoint

    def coefficients(self, W: FloatArray) -> FloatArray:
        """Those of the features."""
        return self._turn @ W

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Their coordinates."""
        return self._turn.T @ coefficients


class GramDesign(SummedDesign):
    """The linear model in whitened coordinates, from the Gram matrix of the features; its memory is reused."""

    def __init__(self, n_samples: int, gram: FloatArray) -> None:
        super().__init__(n_samples, *whiten(gram))


class BlockDesign(SummedDesign):
    r"""The linear model over rows in blocks.

    With up to `LARGEST_GRAM` features the coordinates are those of :class:`EigenDesign`, from :math:`X'X` summed over the
    blocks; beyond, those of the features, turned towards the leading directions of a sample. Blocks see coefficients of
    features only, and give gradients in them.

    Parameters
    ----------
    blocks : Blocks
    intercept : bool
        Whether a column of ones is appended.
    largest_gram : int
    """

    def __init__(self, blocks: Blocks, intercept: bool = True, largest_gram: int = LARGEST_GRAM) -> None:
        self.blocks = blocks
        self.found = found = take_survey(blocks, largest_gram)
        self.sample = found.sample
        gram = with_ones_gram(found.gram, found.sums, found.n_samples) if intercept else found.gram
        self.whitened = gram.ndim == 2
        self.column_squares = gram.diagonal().copy() if self.whitened else gram
        turned: tuple[FloatArray | Rotation, FloatArray]
        if self.whitened:
            # Passes over the blocks again only where the Gram matrix has too few digits for all directions.
            turned = whiten(gram, lambda V: blocks.total(block_projected_gram, V)[0])
        else:
            turned = rotated(self._sample_gram, gram, directions_worth(found.n_entries, len(gram)))
        super().__init__(found.n_samples, *turned)

    def _sample_gram(self, V: FloatArray) -> FloatArray:
        X, _, weights = self.sample
        G = np.zeros(V.shape)
        add_adjoint(X, weights[:, None] * scores(X, V), G)
        return G


def with_ones_gram(gram: FloatArray, sums: FloatArray, n_samples: int) -> FloatArray:
    """The Gram matrix, or its diagonal, of the features with a last column of ones."""
    if gram.ndim == 1:
        return np.append(gram, n_samples)
    return np.block([[gram, sums[:, None]], [sums[None, :], np.full((1, 1), float(n_samples))]])


@dataclass(frozen=True)
class LabelsElsewhere:
    """Labels that stay with their rows: only their shape is known here."""

    shape: tuple[int, int]

    def __len__(self) -> int:
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

    design: SummedDesign

    def __init__(
        self, design: SummedDesign, n_labels: int, loss: BlockLoss | LossAtZero, ridge: float, nuclear: float
    ) -> None:
        self.design, self.Y, self.sample_weight = design, LabelsElsewhere((design.shape[0], n_labels)), None
        self.loss, self.shape = loss, (design.shape[1], n_labels)
        self.ridge = Ridge(float(ridge), design.ridge_weights)
        self.nuclear = NuclearNorm(float(nuclear))

    def zero_scores(self) -> BlockScores:
        """The scores of the zero weights."""
        return self.design.scores(self.zeros())


class BlockObjective(SummedObjective):
    """The objective over rows in blocks: one pass over them is one evaluation.

    Parameters
    ----------
    design : BlockDesign
    loss : Loss
    ridge, nuclear : float
    """

    design: BlockDesign
    # They are estimated on a sample of the rows.
    lines_are_exact = False

    def __init__(self, design: BlockDesign, loss: Loss, ridge: float, nuclear: float) -> None:
        super().__init__(design, design.found.n_labels, BlockLoss(loss, design), ridge, nuclear)

    def reached(self, gap: float) -> None:
        """Tell those who watch the passes."""
        self.design.blocks.progress.reached(gap)
