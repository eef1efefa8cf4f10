"""A feature matrix too large to whiten, in coordinates turned towards its leading directions."""

import numpy as np
from scipy import sparse

from rbrl.designs.matrix import MatrixDesign
from rbrl.designs.rotation import directions_worth, rotated

# Rows that the leading directions are taken from.
SAMPLE_ROWS = 2**14


class RotatedDesign(MatrixDesign):
    r"""The linear model with weights :math:`W = QB` for a :class:`Rotation` Q: scores are :math:`X(QB)`.

    Ridge and nuclear norm are unitarily invariant and keep their form. In text the mean row alone holds most of the
    correlation between columns.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_columns)
    """

    def __init__(self, X):
        super().__init__(X)
        n, m = X.shape
        rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLE_ROWS)).round().astype(np.int64))
        sample, scale = X[rows], n / max(len(rows), 1)
        n_directions = directions_worth(X.nnz if sparse.issparse(X) else X.size, m)
        self._turn, self.gram_diagonal = rotated(
            lambda V: scale * np.asarray(sample.T @ (sample @ V)), self.gram_diagonal, n_directions
        )

    def _product(self, W):
        return super()._product(self._turn @ W)

    def _adjoint(self, R):
        return self._turn.T @ super()._adjoint(R)

    def coefficients(self, W):
        return self._turn @ W

    def weights(self, coefficients):
        return self._turn.T @ coefficients

    def transform(self, rows):
        return _Turned(rows, self._turn)


class _Turned:
    """rows @ Q, of which only products are asked for."""

    def __init__(self, rows, turn):
        self._rows, self._turn = rows, turn

    def __matmul__(self, W):
        return np.asarray(self._rows @ (self._turn @ W))
