"""Designs and objectives of rows that are elsewhere: in blocks, or gone by. Only sums over rows are known."""

from dataclasses import dataclass

import numpy as np

from rbrl._common.linalg import whiten
from rbrl.losses import Loss
from rbrl.problem.design import Design, add_adjoint, scores
from rbrl.problem.features import directions_worth, rotated
from rbrl.problem.objective import NuclearNorm, Objective, Ridge
from rbrl.rows.places import Blocks
from rbrl.rows.sums import BlockLoss, BlockScores, block_projected_gram
from rbrl.rows.survey import take_survey

# The Gram matrix and its decomposition take 4 x 8 x size^2 bytes: 0.8 GB, on every machine that holds blocks.
LARGEST_GRAM = 5000


class SummedDesign(Design):
    """Coordinates W of the coefficients ``turn @ W``; scores are named, not computed."""

    def __init__(self, n_samples, turn, gram_diagonal):
        self._turn, self.gram_diagonal = turn, gram_diagonal
        super().__init__((n_samples, len(gram_diagonal)))

    def scores(self, W):
        """Z @ W, by name: nothing is computed before a loss is evaluated there."""
        return BlockScores(W, self)

    def adjoint(self, R):
        """Z' @ R, which came with the loss."""
        return R.adjoint

    def coefficients(self, W):
        return self._turn @ W

    def weights(self, coefficients):
        return self._turn.T @ coefficients

    def row_norms(self):
        raise NotImplementedError(_ROW_BY_ROW)

    def _product(self, W):
        raise NotImplementedError(_ROW_BY_ROW)

    def _adjoint(self, R):
        raise NotImplementedError(_ROW_BY_ROW)


_ROW_BY_ROW = "Only sums over these rows are known, not their scores. Use the solver 'auto'."


class GramDesign(SummedDesign):
    """The linear model in whitened coordinates, from the Gram matrix of the features; its memory is reused."""

    def __init__(self, n_samples, gram):
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

    def __init__(self, blocks: Blocks, intercept=True, largest_gram=LARGEST_GRAM):
        self.blocks = blocks
        self.found = found = take_survey(blocks, largest_gram)
        self.sample = found.sample
        gram = with_ones_gram(found.gram, found.sums, found.n_samples) if intercept else found.gram
        self.whitened = gram.ndim == 2
        self.column_squares = gram.diagonal().copy() if self.whitened else gram
        turned = self._whitening(gram) if self.whitened else self._rotation(gram)
        super().__init__(found.n_samples, *turned)

    def _whitening(self, gram):
        """Passes over the blocks again only where the Gram matrix has too few digits for all directions."""
        return whiten(gram, lambda V: self.blocks.total(block_projected_gram, V)[0])

    def _rotation(self, diagonal):
        return rotated(self._sample_gram, diagonal, directions_worth(self.found.n_entries, len(diagonal)))

    def _sample_gram(self, V):
        X, _, weights = self.sample
        G = np.zeros(V.shape)
        add_adjoint(X, weights[:, None] * scores(X, V), G)
        return G


def with_ones_gram(gram, sums, n_samples):
    """The Gram matrix, or its diagonal, of the features with a last column of ones."""
    if gram.ndim == 1:
        return np.append(gram, n_samples)
    return np.block([[gram, sums[:, None]], [sums[None, :], np.full((1, 1), float(n_samples))]])


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

    def __init__(self, design, loss: Loss, ridge, nuclear):
        super().__init__(design, design.found.n_labels, BlockLoss(loss, design), ridge, nuclear)

    def lines_are_exact(self):
        return False

    def with_ridge(self, ridge):
        return BlockObjective(self.design, self.loss.loss, ridge, self.nuclear.weight)

    def _known_loss(self, scores):
        return self.loss.estimate(scores)

    def reached(self, gap):
        self.design.blocks.progress.reached(gap)
