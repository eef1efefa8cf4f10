"""Features of few rows: the linear model in the coordinates of its row space."""

import numpy as np
from scipy import sparse

from rbrl.designs.eigen import gram, projected_gram
from rbrl.designs.spectral import SpectralDesign
from rbrl.designs.whitening import whiten


class RowSpaceDesign(SpectralDesign):
    r"""The linear model when there are fewer rows than features.

    The optimal weights lie in the row space of X, :math:`W = X'A`; with :math:`XX' = Q \operatorname{diag}(s) Q'` this is
    the kernel model whose low rank is that of the function, as small as the number of rows.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    """

    def __init__(self, X):
        Xt = X.T.tocsr() if sparse.issparse(X) else X.T
        self._set_spectrum(*whiten(gram(Xt), lambda V: projected_gram(Xt, V)), low_rank="function")
        self._X = X

    def coefficients(self, W):
        return np.asarray(self._X.T @ super().coefficients(W))

    def weights(self, coefficients):
        """Weights of the part of the coefficients inside the row space."""
        return (self.Q.T @ np.asarray(self._X @ coefficients)) / self._stretch

    def transform(self, rows):
        G = rows @ self._X.T
        return super().transform(G.toarray() if sparse.issparse(G) else G)
