"""The feature matrix itself, dense or CSR, as a design."""

import numpy as np
from scipy import sparse

from rbrl.designs.base import Design


class MatrixDesign(Design):
    """Scores are X @ W. A sparse X stays sparse.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_columns)
    """

    def __init__(self, X):
        super().__init__(X.shape)
        self.X = X
        self._transposed = X.T.tocsr() if sparse.issparse(X) else X.T

    def _product(self, W):
        return np.asarray(self.X @ W)

    def _adjoint(self, R):
        return np.asarray(self._transposed @ R)

    def row_norms(self):
        squares = self.X.multiply(self.X) if sparse.issparse(self.X) else self.X**2
        return np.sqrt(np.asarray(squares.sum(axis=1)).ravel())


def with_ones(X):
    """X with a last column of ones: the intercept as one more feature."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_array(ones)], format="csr")
    return np.hstack([X, ones])
