"""The feature matrix itself, dense or CSR, as a design."""

import numpy as np
from scipy import sparse

from rbrl.designs.base import Design


class MatrixDesign(Design):
    """Scores are X @ W. A sparse X stays sparse.

    Columns are correlated, so `gram_diagonal` is only part of Z'Z and a solver needs more evaluations than in whitened
    coordinates: for problems whose decomposition does not fit.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_columns)
    """

    whitened = False

    def __init__(self, X):
        super().__init__(X.shape)
        self.X = X
        self._transposed = X.T.tocsr() if sparse.issparse(X) else X.T
        self.gram_diagonal = column_squares(X)

    def _product(self, W):
        return np.asarray(self.X @ W)

    def _adjoint(self, R):
        return np.asarray(self._transposed @ R)

    def row_norms(self):
        return np.sqrt(row_squares(self.X))


def column_squares(X):
    """Sums of squares of the columns."""
    return _squares(X, axis=0)


def row_squares(X):
    """Sums of squares of the rows."""
    return _squares(X, axis=1)


def _squares(X, axis):
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=axis)).ravel()
    return np.einsum("ij,ij->j" if axis == 0 else "ij,ij->i", X, X)


def with_ones(X):
    """X with a last column of ones: the intercept as one more feature."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_array(ones)], format="csr")
    return np.hstack([X, ones])
