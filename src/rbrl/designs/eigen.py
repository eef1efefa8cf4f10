"""Features in the coordinates of their own covariance, where Z'Z is diagonal."""

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from rbrl.designs.base import Design


class EigenDesign(Design):
    r"""The linear model in the eigenbasis of :math:`X'X = V \operatorname{diag}(c) V'`.

    With weights :math:`W = VB` the scores are :math:`ZB`, :math:`Z = XV`, and :math:`Z'Z` is diagonal. Ridge and nuclear
    norm are unitarily invariant and keep their form. Directions without variance carry no weight at the optimum.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    floor : float
        Directions with less than this share of the largest variance are left out.
    """

    def __init__(self, X, floor=1e-14):
        G = X.T @ X
        c, V = eigh(G.toarray() if sparse.issparse(G) else G, driver="evd", overwrite_a=True)
        keep = c > floor * max(c[-1], np.finfo(float).tiny)
        self.gram_diagonal = c[keep][::-1].copy()
        self.basis = np.ascontiguousarray(V[:, keep][:, ::-1])
        super().__init__((X.shape[0], len(self.gram_diagonal)))
        self._keep_sparse = sparse.issparse(X) and _sparse_is_cheaper(X, len(self.gram_diagonal))
        self._X = X if self._keep_sparse else None
        self._Xt = X.T.tocsr() if self._keep_sparse else None
        self.Z = None if self._keep_sparse else np.asarray(X @ self.basis)

    def _product(self, W):
        return np.asarray(self._X @ (self.basis @ W)) if self._keep_sparse else self.Z @ W

    def _adjoint(self, R):
        return self.basis.T @ np.asarray(self._Xt @ R) if self._keep_sparse else self.Z.T @ R

    def coefficients(self, W):
        return self.basis @ W

    def weights(self, coefficients):
        return self.basis.T @ coefficients

    def transform(self, rows):
        return np.asarray(rows @ self.basis)

    def row_norms(self):
        if self._keep_sparse:
            return np.sqrt(np.asarray(self._X.multiply(self._X).sum(axis=1)).ravel())
        return np.linalg.norm(self.Z, axis=1)


def _sparse_is_cheaper(X, n_columns):
    """Measured: a sparse entry costs about three dense ones; the rotation is one dense product."""
    return 3 * X.nnz + X.shape[1] * n_columns < X.shape[0] * n_columns
