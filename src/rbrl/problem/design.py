"""What a design is: the linear map from weights to scores, in coordinates that suit the problem."""

from abc import ABC, abstractmethod

import numpy as np
from scipy import sparse

from rbrl._common.linalg import largest_eigenvalue
from rbrl._loops import rows

# Scores of this many entries at a time stay in the processor's cache.
SLICE_CELLS = 2**18


def slices(X, Y):
    """Yield (features, labels in {-1, +1}) of a few rows at a time."""
    step = max(1, SLICE_CELLS // max(Y.shape[1], 1))
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    for start in range(0, X.shape[0], step):
        yield X[start : start + step], signed(Y[start : start + step])


def signed(Y):
    """Labels in {-1, +1} of int8, from 0/1 or -1/+1, dense or sparse."""
    Y = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    return np.where(Y > 0, np.int8(1), np.int8(-1))


def scores(X, coefficients):
    """X @ coefficients, and the intercepts."""
    m = X.shape[1]
    F = np.zeros((X.shape[0], coefficients.shape[1]))
    if len(coefficients) > m:
        F += coefficients[m]
    if sparse.issparse(X):
        rows.sparse_product(X.data, X.indices, X.indptr, coefficients, F)
    else:
        F += X @ coefficients[:m]
    return F


def extended_scores(X, coefficients):
    """The same in extended precision where the machine has it, then rounded: slow, for weights whose products cancel."""
    W, m = coefficients.astype(np.longdouble), X.shape[1]
    F = np.asarray(X.astype(np.longdouble) @ W[:m])
    return (F + W[m] if len(W) > m else F).astype(np.float64)


def add_adjoint(X, R, out):
    """Add X' @ R to `out`, and the sum of R to its row of intercepts if it has one."""
    m = X.shape[1]
    if len(out) > m:
        out[m] += R.sum(axis=0)
    if sparse.issparse(X):
        rows.sparse_adjoint(X.data, X.indices, X.indptr, R, out)
    else:
        out[:m] += X.T @ R


class Design(ABC):
    """A linear map ``scores = Z @ W`` with the ridge weights that belong to its coordinates.

    Attributes
    ----------
    shape : tuple (n_samples, n_columns)
    ridge_weights : float or array (n_columns, 1)
        Weights of the squared rows of W in the ridge penalty.
    gram_diagonal : array (n_columns,)
        Diagonal of Z'Z: all of it in whitened coordinates, an approximation elsewhere.
    whitened : bool
        Whether Z'Z is diagonal.
    columns : int
        Columns multiplied so far, by ``scores`` and ``adjoint`` together.
    """

    ridge_weights: float | np.ndarray = 1.0
    whitened = True
    gram_diagonal: np.ndarray

    def __init__(self, shape):
        self.shape = shape
        self.columns = 0

    def scores(self, W):
        """Z @ W: (n_samples, n_labels)."""
        self.columns += W.shape[1]
        return self._product(W)

    def adjoint(self, R):
        """Z' @ R: (n_columns, n_labels)."""
        self.columns += R.shape[1]
        return self._adjoint(R)

    def coefficients(self, W):
        """The model's own coefficients, from weights in these coordinates."""
        return W

    def weights(self, coefficients):
        """Weights in these coordinates, from the model's own coefficients: the inverse of :meth:`coefficients`."""
        return coefficients

    def transform(self, rows):
        """The matrix that turns weights in these coordinates into scores of other rows.

        `rows` are what the model's own coefficients are multiplied with: features, or kernel values to the training rows.
        """
        return rows

    def matrix(self):
        """Z itself, dense."""
        return self._product(np.eye(self.shape[1]))

    def largest_curvature(self, row_curvature):
        """Largest eigenvalue of Z' diag(row_curvature) Z."""
        n, k = self.shape
        if k <= n:
            return largest_eigenvalue(lambda V: self._adjoint(row_curvature[:, None] * self._product(V)), k)
        root = np.sqrt(row_curvature)[:, None]
        return largest_eigenvalue(lambda V: root * self._product(self._adjoint(root * V)), n)

    @abstractmethod
    def row_norms(self):
        """Euclidean norms of the rows of Z: (n_samples,)."""

    @abstractmethod
    def _product(self, W):
        """Z @ W, not counted."""

    @abstractmethod
    def _adjoint(self, R):
        """Z' @ R, not counted."""
