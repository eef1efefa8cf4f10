"""A feature matrix as a design, in the coordinates that suit it: its own, whitened, turned, or those of its rows."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack, qr

from rbrl._common.linalg import gram_matrix, leading_eigenvectors, projected_gram, squares, sum_duplicates, whiten
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl.problem.design import (
    LARGEST_DECOMPOSITION,
    DenseDesign,
    MatrixDesign,
    RowDesign,
    adjoint,
    last_row_times,
    scores,
)
from rbrl.problem.kernel import SpectralDesign


def drop_empty_columns(X: Any) -> tuple[Any, IntArray]:
    """Return X without its empty columns, and the indices of the columns that are left.

    The entries are shared with X. Only their indices are new.

    Parameters
    ----------
    X : CSR matrix (n_samples, n_features)

    Returns
    -------
    X : CSR matrix (n_samples, n_columns)
    present : array (n_columns,)

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
    """The columns of a sparse X that are not empty, as they are. The weights of the others are 0 at the optimum.

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

    def coefficients(self, W: FloatArray) -> FloatArray:
        """Return the coefficients of all features: 0 for those of empty columns."""
        coefficients = np.zeros((self.n_features, W.shape[1]))
        coefficients[self.present] = W
        if self.constant != 1.0:
            coefficients[-1] *= self.constant
        return coefficients

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Return the weights of the columns that are present."""
        return super().weights(coefficients)[self.present]

    def transform(self, rows: Matrix) -> Any:
        """Return the columns of other rows that are present here."""
        return rows[:, self.present]


def row_design(X: Matrix, constant: float = 1.0) -> MatrixDesign:
    """Return the design whose rows are those of X, for solvers that visit rows one at a time.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features), float64
    constant : float, default=1.0
        What the last column holds, if it is that of the intercept.

    Returns
    -------
    MatrixDesign

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem.linear import row_design
    >>> row_design(np.eye(2)).shape
    (2, 2)
    """
    design = PresentColumns(X.tocsr()) if issparse(X) else MatrixDesign(X)
    design.constant = constant
    return design


def with_constant(X: Matrix, constant: float = 1.0) -> Matrix:
    """X with a last column of a constant: the intercept as one more feature, with a penalty of its own.

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
    if issparse(X):
        return _append_constant(sum_duplicates(X), constant)
    return np.hstack([X, np.full((X.shape[0], 1), constant, dtype=X.dtype)])


def _append_constant(X: Any, constant: float) -> Any:
    """Return a CSR matrix with a last column of a constant. SciPy's `hstack` needs three times the memory of X."""
    n, m = X.shape
    dtype = sparse.get_index_dtype(maxval=max(X.nnz + n, m + 1))
    ends = X.indptr[1:]
    data = np.insert(X.data, ends, constant)
    indices = np.insert(X.indices.astype(dtype, copy=False), ends, m)
    indptr = X.indptr + np.arange(n + 1, dtype=dtype)
    return sparse.csr_array((data, indices, indptr), shape=(n, m + 1))


def eigen_design(X: Matrix) -> RowDesign:
    r"""The linear model in the eigenbasis of :math:`X'X = V \operatorname{diag}(c) V'`.

    With weights :math:`W = VB` the scores are :math:`ZB`, :math:`Z = XV`, and :math:`Z'Z` is diagonal. Directions without
    variance carry no weight at the optimum, and are left out.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)

    Returns
    -------
    RowDesign

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
    (n, m), (V, c) = X.shape, whiten(gram_matrix(X), partial(projected_gram, X))
    # Measured: a sparse entry costs about three dense ones; the rotation is one dense product.
    if issparse(X) and 3 * X.nnz + m * len(c) < n * len(c):
        return MatrixDesign(X, V, c)
    return DenseDesign(np.asarray(X @ V), 1.0, c, V)


# A Gram matrix, by its product with a matrix of few columns.
Product = Callable[[FloatArray], FloatArray]
# Beyond these directions, more of them saved no evaluations on text.
DIRECTIONS = 50


class Rotation:
    r"""An orthogonal matrix Q some of whose columns are given, as a product of reflections.

    :math:`Q = I - Y T Y'` costs as much as its few columns, and leaves the other axes almost where they were. Ridge and
    nuclear norm do not notice it.

    Parameters
    ----------
    directions : array (n_features, k), orthonormal columns
    order : array (n_features,), default=None
        The axes; directions take the place of the first k of them. None: as they stand.
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
        """Q @ W."""
        out: FloatArray = self._Y @ (self._T @ (self._Y.T @ W))
        return np.subtract(W, out, out=out)

    @property
    def T(self) -> "Rotation":
        """Q'."""
        turned = object.__new__(Rotation)
        turned._Y, turned._T = self._Y, self._T.T
        return turned

    def diagonal_of(self, d: FloatArray, product: Product | None = None) -> FloatArray:
        """Diagonal of Q' G Q for the G with this diagonal and this product with a matrix; None: G = diag(d)."""
        C = self._T @ self._Y.T
        GY = d[:, None] * self._Y if product is None else product(self._Y)
        return d - 2.0 * np.einsum("ja,aj->j", GY, C) + np.einsum("aj,ab,bj->j", C, self._Y.T @ GY, C)


def rotated(product: Product, diagonal: FloatArray, n_directions: int) -> tuple[Rotation, FloatArray]:
    """A rotation towards the leading directions of a Gram matrix, and the diagonal of the Gram matrix after it.

    Parameters
    ----------
    product : callable
        The Gram matrix, or an estimate of it, times a matrix of few columns.
    diagonal : array (n_features,)
    n_directions : int
    """
    V, c = leading_eigenvectors(product, len(diagonal), n_directions)
    # Directions replace the axes that they lean on most. Any others would have to lean on these in turn, and columns whose
    # sizes differ would be mixed: 120 instead of 16 evaluations on yeast with columns between 0.01 and 100.
    order = qr(V.T, mode="r", pivoting=True)[1]
    rotation = Rotation(V, order)
    # Of what an estimate leaves a tenth is kept: too small a curvature would make steps too long.
    diagonal = np.maximum(rotation.diagonal_of(diagonal, product), 0.1 * rotation.diagonal_of(diagonal))
    diagonal[order[:n_directions]] = c
    return rotation, diagonal


def directions_worth(n_entries: int, n_features: int) -> int:
    """How many directions cost little beside a product with this many entries of X."""
    return int(min(DIRECTIONS, n_features, max(1, n_entries // (4 * max(n_features, 1)))))


# Rows that the leading directions are taken from.
SAMPLE_ROWS = 2**14


def rotated_design(X: Matrix, n_labels: int = DIRECTIONS) -> MatrixDesign:
    """The linear model turned towards the leading directions of its rows, by a :class:`Rotation`: in text the mean row alone
    holds most of the correlation between columns.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    n_labels : int
        There are no more directions than labels: to find them takes four products with X of their number. With 20 of them
        20ng, at ridge 10 and a gap of 1e-3, takes .81 of the time with 50, and 26 instead of 24 evaluations.
    """
    n, m = X.shape
    sample = X if n <= SAMPLE_ROWS else X[np.linspace(0, n - 1, SAMPLE_ROWS).round().astype(np.int64)]
    scale, found = n / max(sample.shape[0], 1), directions_worth(X.nnz if issparse(X) else X.size, m)
    turned = rotated(lambda V: scale * adjoint(sample, scores(sample, V)), squares(X), min(found, n_labels))
    return MatrixDesign(X, *turned)


class RowSpaceDesign(SpectralDesign):
    r"""The linear model when there are fewer rows than features.

    The optimal weights lie in the row space of X, :math:`W = X'A`; with :math:`XX' = Q \operatorname{diag}(s) Q'` this is
    the kernel model whose low rank is that of the function, as small as the number of rows.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    """

    def __init__(self, X: Matrix) -> None:
        self._X, Xt = X, X.T.tocsr() if issparse(X) else X.T
        self._set_spectrum(*whiten(gram_matrix(Xt), partial(projected_gram, Xt)), low_rank="function")

    def coefficients(self, W: FloatArray) -> FloatArray:
        """Those of the features: X' A."""
        return last_row_times(np.asarray(self._X.T @ (self.turn @ (self.scale * W))), self.constant)

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Weights of the part of the coefficients inside the row space."""
        return (self.Q.T @ np.asarray(self._X @ last_row_times(coefficients, 1 / self.constant))) / self.stretch

    def transform(self, rows: Matrix) -> FloatArray:
        """Rows of features, by their inner products with the training rows: (n_rows, n_columns)."""
        return super().transform(rows @ self._X.T)


# Weights of few rows are sums over rows, in which a column this much larger than another leaves the other's no digits
# that a certificate could use.
LARGEST_SPREAD = 1e4
# Up to this many features they are decomposed instead, in about a second.
WIDEST = 2000


def linear_design(
    X: Matrix, n_labels: int = 1, n_problems: int = 1, constant: float = 1.0, low_rank: bool = True
) -> RowDesign:
    """The design of a feature matrix.

    It is whitened where the decomposition pays, and turned towards its leading directions where it does not.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features), float64
    n_labels : int, default=1
    n_problems : int, default=1
        How many objectives will be minimised over it.
    constant : float, default=1.0
        What the last column holds, if it is that of the intercept: coefficients have the intercept itself in its place.
    low_rank : bool, default=True
        Whether any of them has a nuclear norm.

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
        few_rows = n < m and (m > WIDEST or rows_tell_columns(X))
        design = RowSpaceDesign(X) if few_rows else eigen_design(X)
    design.constant = constant
    return design


# A decomposition takes ten times the cube of its size, and every evaluation in its coordinates two products with its basis;
# an entry of a sparse matrix takes twelve operations per label in an evaluation, and what a step does for the nuclear norm
# 45 times the cube of its size. Whitened coordinates save about ten evaluations: corel5k at the defaults takes 18 instead
# of 22, delicious 56 instead of 77; stackex_chess takes about the same time in either. Without a nuclear norm, 6,000 rows
# of 4,000 features and 5,000 labels take 105 s as they are, and 177 s decomposed.
EVALUATIONS_SAVED = 10


def decomposition_pays(X: Any, n_labels: int, low_rank: bool = True) -> bool:
    """Whether the decomposition of a sparse matrix, and its use, take less time than the evaluations that it saves."""
    size, m = min(X.shape), X.shape[1]
    evaluation = 12 * X.nnz * n_labels + 45 * low_rank * min(size, n_labels) ** 3
    return 10 * size**3 + EVALUATIONS_SAVED * 4 * m * size * n_labels <= EVALUATIONS_SAVED * evaluation


def rows_tell_columns(X: Matrix) -> bool:
    """Whether inner products of rows hold enough digits of every column: these do not differ too much in size."""
    sizes = squares(X)
    present = sizes[sizes > 0]
    return not len(present) or present.max() <= LARGEST_SPREAD**2 * present.min()
