"""Features of rows in blocks, in whitened coordinates where their Gram matrix fits."""

import numpy as np
from scipy.linalg import eigh

from rbrl.blocks import Blocks, BlockScores, take_survey
from rbrl.blocks.products import add_adjoint, scores
from rbrl.designs.base import Design
from rbrl.designs.rotation import directions_worth, rotated

# The Gram matrix and its decomposition take 4 x 8 x size^2 bytes: 0.8 GB, on every machine that holds blocks.
LARGEST_GRAM = 5000


class BlockDesign(Design):
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
    floor : float
        Directions with less than this share of the largest variance are left out.
    """

    def __init__(self, blocks: Blocks, intercept=True, largest_gram=LARGEST_GRAM, floor=1e-14):
        self.blocks = blocks
        self.found = found = take_survey(blocks, largest_gram)
        self.sample = found.sample
        gram = _with_ones(found.gram, found.sums, found.n_samples) if intercept else found.gram
        self.whitened = gram.ndim == 2
        if self.whitened:
            c, V = eigh(gram, driver="evd", overwrite_a=True)
            keep = c > floor * max(c[-1], np.finfo(float).tiny)
            self.gram_diagonal, self._turn = c[keep][::-1].copy(), np.ascontiguousarray(V[:, keep][:, ::-1])
        else:
            self._turn, self.gram_diagonal = rotated(
                self._sample_gram, gram, directions_worth(found.n_entries, len(gram))
            )
        super().__init__((found.n_samples, len(self.gram_diagonal)))

    def _sample_gram(self, V):
        X, _, weights = self.sample
        G = np.zeros(V.shape)
        add_adjoint(X, weights[:, None] * scores(X, V), G)
        return G

    @property
    def label_shape(self):
        """Shape of all labels: (n_samples, n_labels)."""
        return self.found.n_samples, self.found.n_labels

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


_ROW_BY_ROW = "Rows in blocks are not kept row by row; only sums over them are known. Use the solver 'auto'."


def _with_ones(gram, sums, n_samples):
    """The Gram matrix, or its diagonal, of the features with a last column of ones."""
    if gram.ndim == 1:
        return np.append(gram, n_samples)
    return np.block([[gram, sums[:, None]], [sums[None, :], np.full((1, 1), float(n_samples))]])
