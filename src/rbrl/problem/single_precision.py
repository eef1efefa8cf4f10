"""Designs with their matrix in single precision, for solutions that need no more digits."""

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.problem.design import Design, RowDesign
from rbrl.problem.kernel import SpectralDesign
from rbrl.problem.linear import EigenDesign

# Columns of larger squared norms may have entries near the largest number there is, 3e38.
LARGEST_SQUARE = 1e30


class SinglePrecision(RowDesign):
    """A design with its matrix in single precision: products take half the time, and keep seven digits.

    What is computed from them, lower bounds too, is off by as much.

    Parameters
    ----------
    design : RowDesign
    """

    def __init__(self, design: RowDesign) -> None:
        self.shape, self.whitened, self.constant = design.shape, design.whitened, design.constant
        self.ridge_weights, self.gram_diagonal = design.ridge_weights, design.gram_diagonal
        # In this order neither product copies it.
        self._Z = np.asfortranarray(design.matrix(), dtype=np.float32)

    def _product(self, W: FloatArray) -> FloatArray:
        return (self._Z @ W.astype(np.float32)).astype(np.float64)

    def _adjoint(self, R: FloatArray) -> FloatArray:
        return (self._Z.T @ R.astype(np.float32)).astype(np.float64)

    def row_norms(self) -> FloatArray:
        """Euclidean norms of the rows of Z: (n_samples,)."""
        return np.linalg.norm(self._Z, axis=1).astype(np.float64)


def in_single_precision(design: Design) -> Design:
    """The design in single precision where its matrix is dense and has no huge entries; the design itself elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import linear_design
    >>> type(in_single_precision(linear_design(np.eye(3)))).__name__
    'SinglePrecision'
    """
    dense = isinstance(design, SpectralDesign) or (isinstance(design, EigenDesign) and not design.stays_sparse)
    small = np.max(design.gram_diagonal, initial=0.0) < LARGEST_SQUARE
    return SinglePrecision(design) if isinstance(design, RowDesign) and dense and small else design
