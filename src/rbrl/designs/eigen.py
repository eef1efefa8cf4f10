"""Features in the coordinates of their own covariance, where Z'Z is diagonal."""

import numpy as np
from scipy import sparse

from rbrl.designs.base import Design
from rbrl.designs.whitening import whiten

# Entries of a dense block of rows: 32 MB.
BLOCK_ENTRIES = 2**22


class EigenDesign(Design):
    r"""The linear model in the eigenbasis of :math:`X'X = V \operatorname{diag}(c) V'`.

    With weights :math:`W = VB` the scores are :math:`ZB`, :math:`Z = XV`, and :math:`Z'Z` is diagonal. Ridge and nuclear
    norm are unitarily invariant and keep their form. Directions without variance carry no weight at the optimum, and are
    left out.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    """

    def __init__(self, X):
        self.basis, self.gram_diagonal = whiten(gram(X), lambda V: projected_gram(X, V))
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


def gram(X):
    """X'X, dense."""
    G = X.T @ X
    return G.toarray() if sparse.issparse(G) else np.asarray(G)


def projected_gram(X, V):
    """(XV)'(XV), some rows at a time."""
    step, total = max(1, BLOCK_ENTRIES // V.shape[1]), np.zeros((V.shape[1], V.shape[1]))
    for start in range(0, X.shape[0], step):
        Z = np.asarray(X[start : start + step] @ V)
        total += Z.T @ Z
    return total


def _sparse_is_cheaper(X, n_columns):
    """Measured: a sparse entry costs about three dense ones; the rotation is one dense product."""
    return 3 * X.nnz + X.shape[1] * n_columns < X.shape[0] * n_columns
