"""Designs of linear models: in the coordinates of the features, whitened, rotated, or in coordinates of the rows."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack, qr

from rbrl._common.linalg import gram_matrix, leading_eigenvectors, projected_gram, squares, sum_duplicates, whiten
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl.problem.design import LARGEST_DECOMPOSITION, RowDesign, adjoint, last_row_times, scores
from rbrl.problem.kernel import SpectralDesign
from rbrl.problem.matrix import DenseDesign, MatrixDesign


def drop_empty_columns(X: Any) -> tuple[Any, IntArray]:
    """Return X without its empty columns, and the indices of the columns that are left.

    The entries are shared with X. Only their indices are new. If no column is empty, it is X itself.

    Parameters
    ----------
    X : CSR matrix (n_samples, n_features)

    Returns
    -------
    X : CSR matrix (n_samples, n_columns)
    present : array (n_columns,)
        Indices in ascending order.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> X, present = drop_empty_columns(sparse.csr_array(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])))
    >>> X.toarray().tolist(), present.tolist()
    ([[2.0, 0.0], [0.0, 3.0]], [1, 2])
    """
    used = np.zeros(X.shape[1], dtype=bool)
    used[X.indices] = True
    present = np.flatnonzero(used)
    if len(present) == X.shape[1]:
        return X, present
    places = np.zeros(X.shape[1], dtype=X.indices.dtype)
    places[present] = np.arange(len(present))
    kept = sparse.csr_array((X.data, places[X.indices], X.indptr), shape=(X.shape[0], len(present)))
    return kept, present


class PresentColumns(MatrixDesign):
    """A design of the columns of a sparse X that are not empty. The weights of empty columns are 0 at the optimum.

    Parameters
    ----------
    X : CSR matrix (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from rbrl.problem.linear import PresentColumns
    >>> design = PresentColumns(sparse.csr_array(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])))
    >>> design.shape, design.coefficients(np.ones((2, 1))).ravel().tolist()
    ((2, 2), [0.0, 1.0, 1.0])
    """

    def __init__(self, X: Any) -> None:
        self.n_features = X.shape[1]
        kept, self.present = drop_empty_columns(X)
        super().__init__(kept)

    def coefficients(self, W: FloatArray, dtype: Any = np.float64) -> FloatArray:
        """Return the coefficients of all features: a new array, with 0 for empty columns."""
        coefficients = np.zeros((self.n_features, W.shape[1]), dtype=dtype)
        coefficients[self.present] = W
        if self.constant != 1.0:
            coefficients[-1] = W[-1] * self.constant
        return coefficients

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Return the weights of the columns that are not empty: a new array."""
        return super().weights(coefficients)[self.present]

    def transform(self, rows: Matrix) -> Any:
        """Return those columns of other rows that are not empty in X, as a copy."""
        return rows[:, self.present]


def with_constant(X: Matrix, constant: float = 1.0) -> Matrix:
    """Return X with a constant as last column, so that the intercept is one more feature.

    The larger the constant, the smaller the penalty on the intercept.

    Parameters
    ----------
    X : array or sparse matrix (n_samples, n_features)
    constant : float, default=1.0

    Returns
    -------
    array or CSR matrix (n_samples, n_features + 1)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import with_constant
    >>> with_constant(np.eye(2), 3.0).tolist()
    [[1.0, 0.0, 3.0], [0.0, 1.0, 3.0]]
    """
    n, m = X.shape
    if not issparse(X):
        return np.hstack([X, np.full((n, 1), constant, dtype=X.dtype)])
    # SciPy's `hstack` would need three times the memory of X.
    X = sum_duplicates(X)
    dtype = sparse.get_index_dtype(maxval=max(X.nnz + n, m + 1))
    ends = X.indptr[1:]
    data = np.insert(X.data, ends, constant)
    indices = np.insert(X.indices.astype(dtype, copy=False), ends, m)
    indptr = X.indptr + np.arange(n + 1, dtype=dtype)
    return sparse.csr_array((data, indices, indptr), shape=(n, m + 1))


def eigen_design(X: Matrix) -> RowDesign:
    r"""Return the design of the linear model in the eigenbasis of :math:`X'X = V \operatorname{diag}(c) V'`.

    With weights :math:`W = VB`, the scores are :math:`ZB` for :math:`Z = XV`, and :math:`Z'Z` is
    diagonal. Directions without variance have weights of 0 at the optimum. They are left out.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import eigen_design
    >>> X = np.array([[3.0, 4.0], [4.0, -3.0], [0.0, 1.0]])
    >>> design = eigen_design(X)
    >>> gram = design.matrix().T @ design.matrix()
    >>> np.allclose(gram, np.diag(design.gram_diagonal))
    True
    """
    n, m = X.shape
    V, c = whiten(gram_matrix(X), partial(projected_gram, X))
    # A sparse entry takes the time of about three dense ones, and the rotation is one dense
    # product.
    if issparse(X) and 3 * X.nnz + m * len(c) < n * len(c):
        return MatrixDesign(X, V, c)
    return DenseDesign(np.asarray(X @ V), 1.0, c, V)


# Function that multiplies a Gram matrix by a matrix with few columns.
Product = Callable[[FloatArray], FloatArray]
# Largest number of leading directions of a rotation.
DIRECTIONS = 50


class Rotation:
    r"""An orthogonal matrix Q of which k columns are given, as a product of reflections.

    A product with :math:`Q = I - Y T Y'` takes the time of a few products with the k columns. The
    other axes change little. Ridge and nuclear norm are invariant under Q.

    Parameters
    ----------
    directions : array (n_features, k)
        Matrix with orthonormal columns.
    order : array (n_features,), default=None
        Order of the axes. The directions replace the first k of them. None is the present order.
    """

    def __init__(self, directions: FloatArray, order: IntArray | None = None) -> None:
        order = np.arange(len(directions)) if order is None else order
        reflections, tau, _, _ = lapack.dgeqrf(np.asfortranarray(directions[order]))
        k = directions.shape[1]
        self._Y = np.empty(directions.shape)
        self._Y[order] = np.tril(reflections, -1)
        self._Y[order[:k], np.arange(k)] = 1.0
        self._T = np.zeros((k, k))
        inner = self._Y.T @ self._Y
        for i in range(k):
            self._T[:i, i] = -tau[i] * (self._T[:i, :i] @ inner[:i, i])
            self._T[i, i] = tau[i]

    def __matmul__(self, W: FloatArray) -> FloatArray:
        """Return Q @ W, a new array. W (n_features, k) is not changed."""
        out: FloatArray = self._Y @ (self._T @ (self._Y.T @ W))
        return np.subtract(W, out, out=out)

    @property
    def T(self) -> "Rotation":
        """The transpose Q', which shares the reflections with Q."""
        transpose = object.__new__(Rotation)
        transpose._Y = self._Y
        transpose._T = self._T.T
        return transpose

    def diagonal_of(self, d: FloatArray, product: Product | None = None) -> FloatArray:
        """Return the diagonal of Q' G Q, for a symmetric G with the diagonal d: a new array.

        `product` multiplies G by a matrix (n_features, k). None means that G is diag(d).
        """
        C = self._T @ self._Y.T
        GY = d[:, None] * self._Y if product is None else product(self._Y)
        return d - 2.0 * np.einsum("ja,aj->j", GY, C) + np.einsum("aj,ab,bj->j", C, self._Y.T @ GY, C)


def rotate_to_leading_directions(
    product: Product, diagonal: FloatArray, n_directions: int
) -> tuple[Rotation, FloatArray]:
    """Return a rotation to the leading directions of a Gram matrix, and the diagonal of the rotated Gram matrix.

    Parameters
    ----------
    product : callable
        Function that multiplies the Gram matrix, or an estimate of it, by a matrix with few
        columns.
    diagonal : array (n_features,)
        Diagonal of the Gram matrix.
    n_directions : int

    Returns
    -------
    rotation : Rotation
    diagonal : array (n_features,)
    """
    V, c = leading_eigenvectors(product, len(diagonal), n_directions)
    # The directions replace the axes on which they have their largest components. If they replaced
    # others, the rotation would mix columns of very different sizes, and a solver would need many
    # more evaluations.
    order = qr(V.T, mode="r", pivoting=True)[1]
    rotation = Rotation(V, order)
    # At least a tenth of each entry is kept, because too small a curvature would make steps too
    # long.
    diagonal = np.maximum(rotation.diagonal_of(diagonal, product), 0.1 * rotation.diagonal_of(diagonal))
    diagonal[order[:n_directions]] = c
    return rotation, diagonal


def count_directions(n_entries: int, n_features: int) -> int:
    """Return the number of leading directions whose products cost no more than those with X.

    X has `n_entries` stored entries. The result is at least 1 and at most `DIRECTIONS`.
    """
    return int(min(DIRECTIONS, n_features, max(1, n_entries // (4 * max(n_features, 1)))))


# Largest number of rows from which the leading directions are computed.
SAMPLE_ROWS = 2**14


def rotated_design(X: Matrix, n_labels: int = DIRECTIONS) -> MatrixDesign:
    """Return the design of the linear model, rotated to the leading directions of its rows by a :class:`Rotation`.

    In text, few directions have most of the correlation between columns.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    n_labels : int, default=50
        Largest number of directions. To find them takes the time of four products of X with a
        matrix that has as many columns.
    """
    n, m = X.shape
    sample = X if n <= SAMPLE_ROWS else X[np.linspace(0, n - 1, SAMPLE_ROWS).round().astype(np.int64)]
    scale = n / max(sample.shape[0], 1)
    n_directions = min(count_directions(X.nnz if issparse(X) else X.size, m), n_labels)

    def multiply_gram(V: FloatArray) -> FloatArray:
        return scale * adjoint(sample, scores(sample, V))

    return MatrixDesign(X, *rotate_to_leading_directions(multiply_gram, squares(X), n_directions))


class RowSpaceDesign(SpectralDesign):
    r"""The design of a linear model with fewer rows than features.

    The optimal weights are in the row space of X, :math:`W = X'A`. With
    :math:`XX' = Q \operatorname{diag}(s) Q'`, this is a kernel model with ``low_rank="function"``.
    It has as many columns as X has rows.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    """

    def __init__(self, X: Matrix) -> None:
        self._X = X
        Xt = X.T.tocsr() if issparse(X) else X.T
        self._set_spectrum(*whiten(gram_matrix(Xt), partial(projected_gram, Xt)), low_rank="function")

    def coefficients(self, W: FloatArray, dtype: Any = np.float64) -> FloatArray:
        """Return the coefficients X' A of the features: (n_features, n_labels), a new array."""
        coefficients = np.asarray(self._X.T @ (self.turn @ (self.scale * W)))
        return last_row_times(coefficients, self.constant).astype(dtype, copy=False)

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Return the weights of the part of the coefficients in the row space of X: a new array."""
        return (self.Q.T @ np.asarray(self._X @ last_row_times(coefficients, 1 / self.constant))) / self.stretch

    def transform(self, rows: Matrix) -> FloatArray:
        """Return the matrix that maps weights to scores of other rows of features: (n_rows, n_columns)."""
        return super().transform(rows @ self._X.T)


# Largest ratio of the sizes of two columns in :class:`RowSpaceDesign`. Its weights are sums over
# rows. A column that is larger by more than this leaves too few correct digits in the weights of
# the other one for a certificate.
LARGEST_SPREAD = 1e4
# Largest number of features that are decomposed if the sizes of the columns differ by more.
WIDEST = 2000


def linear_design(
    X: Matrix, n_labels: int = 1, n_problems: int = 1, constant: float = 1.0, low_rank: bool = True
) -> RowDesign:
    """Return the design of a feature matrix.

    It is whitened if the decomposition pays, and otherwise rotated to its leading directions. The choice
    affects the time of a fit, but not its optimum.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features), float64
    n_labels : int, default=1
        Number of labels, on which the times of decomposition and products depend.
    n_problems : int, default=1
        Number of objectives that will be minimised over the design.
    constant : float, default=1.0
        Value of the last column, if that column stands for the intercept. The last coefficient is
        the intercept itself.
    low_rank : bool, default=True
        Whether any of the objectives has a nuclear norm.

    Returns
    -------
    RowDesign

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import linear_design
    >>> linear_design(np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])).gram_diagonal.tolist()
    [4.0, 2.0]
    """
    n, m = X.shape
    if min(n, m) > LARGEST_DECOMPOSITION or (
        issparse(X) and not decomposition_pays(X, n_labels * n_problems, low_rank)
    ):
        design: RowDesign = rotated_design(X, n_labels)
    else:
        few_rows = n < m and (m > WIDEST or has_similar_columns(X))
        design = RowSpaceDesign(X) if few_rows else eigen_design(X)
    design.constant = constant
    return design


# Number of evaluations that a solver saves in whitened coordinates.
EVALUATIONS_SAVED = 10


def decomposition_pays(X: Any, n_labels: int, low_rank: bool = True) -> bool:
    """Return whether the decomposition of a sparse X takes less time than the evaluations it saves.

    `n_labels` counts the labels of all objectives together. All times are counted in operations. A
    decomposition takes ten times the cube of its size. Every evaluation in its coordinates takes
    two products with its basis. An evaluation with X takes twelve operations per label for each
    entry. The nuclear norm takes 45 times the cube of its size for each step.
    """
    size = min(X.shape)
    m = X.shape[1]
    evaluation = 12 * X.nnz * n_labels + 45 * low_rank * min(size, n_labels) ** 3
    return 10 * size**3 + EVALUATIONS_SAVED * 4 * m * size * n_labels <= EVALUATIONS_SAVED * evaluation


def has_similar_columns(X: Matrix) -> bool:
    """Return whether the columns of X are similar in size, at most `LARGEST_SPREAD` apart.

    Then inner products of rows have enough digits of each column. Empty columns do not count.
    """
    sizes = squares(X)
    present = sizes[sizes > 0]
    return not len(present) or present.max() <= LARGEST_SPREAD**2 * present.min()
