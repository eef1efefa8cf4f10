"""A feature matrix as a design, in the coordinates that suit it: its own, whitened, turned, or those of its rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from rbrl._common.linalg import gram_matrix, projected_gram, squares, whiten
from rbrl._common.typing import FloatArray, Matrix, issparse
from rbrl.problem.design import RowDesign, adjoint, scores
from rbrl.problem.kernel import SpectralDesign


class MatrixDesign(RowDesign):
    """Scores are X @ W. A sparse X stays sparse.

    Columns are correlated, so `gram_diagonal` is only part of Z'Z and a solver needs more evaluations than in whitened
    coordinates: for problems whose decomposition does not fit.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_columns)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import MatrixDesign
    >>> design = MatrixDesign(np.array([[3.0, 4.0], [0.0, 1.0]]))
    >>> design.scores(np.array([[1.0], [2.0]])).ravel().tolist(), design.gram_diagonal.tolist()
    ([11.0, 2.0], [9.0, 17.0])
    """

    whitened = False

    def __init__(self, X: Matrix) -> None:
        self.X, self.shape = X, X.shape
        self.gram_diagonal = squares(X)

    def _product(self, W: FloatArray) -> FloatArray:
        return scores(self.X, W)

    def _adjoint(self, R: FloatArray) -> FloatArray:
        return adjoint(self.X, R)

    def row_norms(self) -> FloatArray:
        """Euclidean norms of the rows of X: (n_samples,)."""
        return np.sqrt(squares(self.X, axis=1))


def with_ones(X: Matrix) -> Matrix:
    """X with a last column of ones: the intercept as one more feature."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    if issparse(X):
        return sparse.hstack([X, sparse.csr_array(ones)], format="csr")
    return np.hstack([X, ones])


class EigenDesign(RowDesign):
    r"""The linear model in the eigenbasis of :math:`X'X = V \operatorname{diag}(c) V'`.

    With weights :math:`W = VB` the scores are :math:`ZB`, :math:`Z = XV`, and :math:`Z'Z` is diagonal. Ridge and nuclear
    norm are unitarily invariant and keep their form. Directions without variance carry no weight at the optimum, and are
    left out.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    """

    def __init__(self, X: Matrix) -> None:
        self.basis, self.gram_diagonal = whiten(gram_matrix(X), lambda V: projected_gram(X, V))
        n_columns = len(self.gram_diagonal)
        self.shape = X.shape[0], n_columns
        # Measured: a sparse entry costs about three dense ones; the rotation is one dense product.
        self.stays_sparse = issparse(X) and 3 * X.nnz + X.shape[1] * n_columns < X.shape[0] * n_columns
        self._X: Any = X if self.stays_sparse else np.asarray(X @ self.basis)

    def _product(self, W: FloatArray) -> FloatArray:
        return scores(self._X, self.basis @ W) if self.stays_sparse else self._X @ W

    def _adjoint(self, R: FloatArray) -> FloatArray:
        return self.basis.T @ adjoint(self._X, R) if self.stays_sparse else self._X.T @ R

    def coefficients(self, W: FloatArray) -> FloatArray:
        """Those of the features: V B."""
        return self.basis @ W

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Their coordinates in the eigenbasis: V' W."""
        return self.basis.T @ coefficients

    def transform(self, rows: Matrix) -> FloatArray:
        """Rows of features in the eigenbasis: (n_rows, n_columns)."""
        return np.asarray(rows @ self.basis)

    def row_norms(self) -> FloatArray:
        """Euclidean norms of the rows of Z, which are those of X: (n_samples,)."""
        return np.sqrt(squares(self._X, axis=1)) if self.stays_sparse else np.linalg.norm(self._X, axis=1)


# A Gram matrix, by its product with a matrix of few columns.
Product = Callable[[FloatArray], FloatArray]
# Beyond these directions, more of them saved no evaluations on text.
DIRECTIONS = 50


class Rotation:
    r"""An orthogonal matrix Q whose first columns are given, as a product of reflections.

    :math:`Q = I - Y T Y'` costs as much as its few columns, and leaves the other axes almost where they were. Ridge and
    nuclear norm do not notice it.

    Parameters
    ----------
    directions : array (n_features, k), orthonormal columns
    """

    def __init__(self, directions: FloatArray) -> None:
        qr, tau, _, _ = lapack.dgeqrf(np.asfortranarray(directions))
        k = directions.shape[1]
        self._Y = np.tril(qr, -1)
        self._Y[np.arange(k), np.arange(k)] = 1.0
        self._T = np.zeros((k, k))
        inner = self._Y.T @ self._Y
        for i in range(k):
            self._T[:i, i] = -tau[i] * (self._T[:i, :i] @ inner[:i, i])
            self._T[i, i] = tau[i]

    def __matmul__(self, W: FloatArray) -> FloatArray:
        """Q @ W."""
        return W - self._Y @ (self._T @ (self._Y.T @ W))

    @property
    def T(self) -> "Rotation":
        """Q'."""
        turned = object.__new__(Rotation)
        turned._Y, turned._T = self._Y, self._T.T
        return turned

    def diagonal_of(self, d: FloatArray) -> FloatArray:
        """Diagonal of Q' diag(d) Q."""
        C = self._T @ self._Y.T
        cross = np.einsum("ja,aj->j", self._Y, C)
        return d * (1.0 - 2.0 * cross) + np.einsum("aj,ab,bj->j", C, self._Y.T @ (d[:, None] * self._Y), C)


def rotated(product: Product, diagonal: FloatArray, n_directions: int) -> tuple[Rotation, FloatArray]:
    r"""A rotation towards the leading directions of a Gram matrix, and the diagonal of the Gram matrix after it.

    With the leading part :math:`V \operatorname{diag}(c) V'` and the diagonal known, the rest is taken for diagonal.

    Parameters
    ----------
    product : callable
        The Gram matrix, or an estimate of it, times a matrix of few columns.
    diagonal : array (n_features,)
    n_directions : int
    """
    V, c = leading_directions(product, len(diagonal), n_directions)
    # What an estimate leaves of a column is kept above a tenth: too small a curvature would make steps too long.
    rest = np.maximum(diagonal - (V**2) @ c, 0.1 * diagonal)
    rotation = Rotation(V)
    diagonal = rotation.diagonal_of(rest)
    diagonal[:n_directions] = c
    return rotation, diagonal


def leading_directions(product: Product, n_features: int, n_directions: int) -> tuple[FloatArray, FloatArray]:
    """Orthonormal directions in which a Gram matrix is largest, and how large; `product` as for :func:`rotated`."""
    extra = min(8, n_features - n_directions)
    V = np.random.default_rng(0).standard_normal((n_features, n_directions + extra))
    for _ in range(3):
        V = np.linalg.qr(product(V))[0]
    c, turn = np.linalg.eigh(V.T @ product(V))
    return V @ turn[:, ::-1][:, :n_directions], np.maximum(c[::-1][:n_directions], 0.0)


def directions_worth(n_entries: int, n_features: int) -> int:
    """How many directions cost little beside a product with this many entries of X."""
    return int(min(DIRECTIONS, n_features, max(1, n_entries // (4 * max(n_features, 1)))))


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

    def __init__(self, X: Matrix) -> None:
        super().__init__(X)
        n, m = X.shape
        rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLE_ROWS)).round().astype(np.int64))
        sample, scale = X[rows], n / max(len(rows), 1)
        n_directions = directions_worth(X.nnz if issparse(X) else X.size, m)
        self._turn, self.gram_diagonal = rotated(
            lambda V: scale * np.asarray(sample.T @ (sample @ V)), self.gram_diagonal, n_directions
        )

    def _product(self, W: FloatArray) -> FloatArray:
        return super()._product(self._turn @ W)

    def _adjoint(self, R: FloatArray) -> FloatArray:
        return self._turn.T @ super()._adjoint(R)

    def coefficients(self, W: FloatArray) -> FloatArray:
        """Those of the features: Q B."""
        return self._turn @ W

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Their turned coordinates: Q' W."""
        return self._turn.T @ coefficients

    def transform(self, rows: Matrix) -> "_Turned":
        """Rows of features times Q, which is not formed: it has products only."""
        return _Turned(rows, self._turn)


class _Turned:
    """rows @ Q, of which only products are asked for."""

    def __init__(self, rows: Matrix, turn: Rotation) -> None:
        self._rows, self._turn = rows, turn

    def __matmul__(self, W: FloatArray) -> FloatArray:
        return np.asarray(self._rows @ (self._turn @ W))


class RowSpaceDesign(SpectralDesign):
    r"""The linear model when there are fewer rows than features.

    The optimal weights lie in the row space of X, :math:`W = X'A`; with :math:`XX' = Q \operatorname{diag}(s) Q'` this is
    the kernel model whose low rank is that of the function, as small as the number of rows.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    """

    def __init__(self, X: Matrix) -> None:
        Xt = X.T.tocsr() if issparse(X) else X.T
        self._set_spectrum(*whiten(gram_matrix(Xt), lambda V: projected_gram(Xt, V)), low_rank="function")
        self._X = X

    def coefficients(self, W: FloatArray) -> FloatArray:
        """Those of the features: X' A."""
        return np.asarray(self._X.T @ super().coefficients(W))

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Weights of the part of the coefficients inside the row space."""
        return (self.Q.T @ np.asarray(self._X @ coefficients)) / self._stretch

    def transform(self, rows: Matrix) -> FloatArray:
        """Rows of features, by their inner products with the training rows: (n_rows, n_columns)."""
        G = rows @ self._X.T
        return super().transform(G.toarray() if issparse(G) else G)


# A decomposition of this size takes about as much memory as a machine is sure to have: 4 x 8 x size^2 bytes are 2 GB.
LARGEST_DECOMPOSITION = 8000
# Weights of few rows are sums over rows, in which a column this much larger than another leaves the other's no digits
# that a certificate could use.
LARGEST_SPREAD = 1e4
# Up to this many features they are decomposed instead, in about a second.
WIDEST = 2000


def linear_design(X: Matrix) -> RowDesign:
    """The design of a feature matrix: whitened where the decomposition pays, turned towards its leading
    directions where it does not.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features), float64

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import linear_design
    >>> linear_design(np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])).gram_diagonal.tolist()
    [4.0, 2.0]
    """
    n, m = X.shape
    if min(n, m) > LARGEST_DECOMPOSITION:
        return RotatedDesign(X)
    few_rows = n < m and (m > WIDEST or rows_tell_columns(X))
    return RowSpaceDesign(X) if few_rows else EigenDesign(X)


def rows_tell_columns(X: Matrix) -> bool:
    """Whether inner products of rows hold enough digits of every column: these do not differ too much in size."""
    sizes = squares(X)
    present = sizes[sizes > 0]
    return not len(present) or present.max() <= LARGEST_SPREAD**2 * present.min()
