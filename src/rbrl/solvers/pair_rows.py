"""Rows of a ranking SVM, as dual coordinate ascent needs them: one row's scores, and the effect of changing one row."""

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from rbrl._loops import pairs as loops
from rbrl.designs import rows_tell_columns

# Gram matrices are formed for dense features up to this many rows.
LARGEST_GRAM = 8000


class GramRows:
    """Rows known by their kernel values; a model is its coefficients.

    Parameters
    ----------
    K : array (n_samples, n_samples)
        Symmetric and positive semidefinite.
    """

    patience = 2000

    def __init__(self, K):
        self.K = np.ascontiguousarray(K, dtype=np.float64)
        self.norms = np.diag(self.K).copy()
        self.n_features = len(self.K)

    def place(self, B):
        """Go to the coefficients B (n_samples, n_labels); return scores and squared norm of the weights."""
        F = self.K @ B
        self._scores = np.ascontiguousarray(F.T)
        return F, float(np.vdot(B, F))

    def ascend(self, pairs, alpha, biases, lift, order, inner):
        """One sweep over the rows in `order`."""
        loops.ascend_gram(self.K, self._scores, *pairs.arrays, alpha, biases, lift, order, inner)

    def scores(self):
        """Scores after the last sweep, without biases."""
        return np.ascontiguousarray(self._scores.T)

    def weights(self, B):
        """What the model keeps: the coefficients themselves."""
        return B

    def inner(self, one, other):
        """Inner product of two models in feature space, each with its `weights` and scores `F`."""
        return float(np.vdot(one.weights, other.F))

    def features(self):
        """Features whose inner products are the kernel values, and a function from weights of them to coefficients."""
        s, Q = eigh(self.K, driver="evd")
        keep = s > 1e-13 * max(s[-1], np.finfo(float).tiny)
        root = np.sqrt(s[keep])
        return np.ascontiguousarray(Q[:, keep] * root), lambda W: (Q[:, keep] / root) @ W


class FeatureRows:
    """Rows known by their features; a model is its weights.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    """

    patience = 300

    def __init__(self, X):
        self.X = sparse.csr_array(X, dtype=np.float64)
        self._transposed = self.X.T.tocsr()
        self.norms = np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        self.n_features = self.X.shape[1]

    def place(self, B):
        """Go to the coefficients B (n_samples, n_labels); return scores and squared norm of the weights."""
        self._W = self._transposed @ B
        return self.X @ self._W, float(np.vdot(self._W, self._W))

    def ascend(self, pairs, alpha, biases, lift, order, inner):
        """One sweep over the rows in `order`."""
        X = self.X
        loops.ascend_rows(
            X.data, X.indices, X.indptr, self.norms, self._W, *pairs.arrays, alpha, biases, lift, order, inner
        )

    def scores(self):
        """Scores after the last sweep, without biases."""
        return self.X @ self._W

    def weights(self, B):
        """What the model keeps: the weights X'B."""
        return self._transposed @ B

    def inner(self, one, other):
        """Inner product of two models in feature space, each with its `weights` and scores `F`."""
        return float(np.vdot(one.weights, other.weights))

    def features(self):
        """The features, dense where that is shorter, and a function from weights of them to what the model keeps."""
        dense = self.X.nnz > 0.3 * np.prod(self.X.shape)
        return self.X.toarray() if dense else self.X, lambda W: W


def feature_rows(X):
    """Features as they are, or their Gram matrix where a sweep over it is shorter."""
    n, stored = X.shape[0], X.nnz if sparse.issparse(X) else X.size
    if n > LARGEST_GRAM or 2 * stored < n * n or not rows_tell_columns(X):
        return FeatureRows(X)
    return GramRows((X @ X.T).toarray() if sparse.issparse(X) else X @ X.T)
