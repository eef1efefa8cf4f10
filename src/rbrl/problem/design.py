"""Base classes of designs: linear maps from weights to scores, in coordinates that suit the problem."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from rbrl._common.linalg import largest_eigenvalue, squares
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl._loops import rows

# Largest number of rows of a Gram or kernel matrix that is decomposed. The decomposition takes four
# arrays of this size in double precision, which are 4 x 8 x size^2 bytes, or 2 GB. Every machine has
# as much memory.
LARGEST_DECOMPOSITION = 8000


def scores(X: Matrix, coefficients: FloatArray, part: slice | None = None) -> FloatArray:
    """Return X @ coefficients, or only the scores of some rows, as a new array.

    If the coefficients have one row more than X has columns, the last one has the intercepts.
    """
    X = X if part is None else X[part]
    m = X.shape[1]
    F = np.zeros((X.shape[0], coefficients.shape[1]))
    if len(coefficients) > m:
        F += coefficients[m]
    if issparse(X):
        # SciPy's product is slower with many labels: see `python -m studies.benchmarks.sparse_products`.
        rows.sparse_product(X.data, X.indices, X.indptr, np.ascontiguousarray(coefficients), F)
    else:
        F += X @ coefficients[:m]
    return F


def extended_scores(X: Matrix, coefficients: FloatArray) -> FloatArray:
    """Return :func:`scores`, computed in extended precision and rounded to double precision.

    This is slow. It is needed for coefficients whose products cancel. A machine without extended
    precision computes in double precision.
    """
    W = coefficients.astype(np.longdouble)
    m = X.shape[1]
    F = np.asarray(X.astype(np.longdouble) @ W[:m])
    return (F + W[m] if len(W) > m else F).astype(np.float64)


def add_adjoint(X: Matrix, R: FloatArray, out: FloatArray) -> FloatArray:
    """Add X' @ R to `out`, in place; return `out` itself.

    If `out` has one row more than X has columns, the column sums of R are added to this row. For a
    sparse X, R and `out` must be float64, and `out` in C order.
    """
    m = X.shape[1]
    if len(out) > m:
        out[m] += R.sum(axis=0)
    if issparse(X):
        rows.sparse_adjoint(X.data, X.indices, X.indptr, R, out)
    else:
        out[:m] += X.T @ R
    return out


def adjoint(X: Matrix, R: FloatArray) -> FloatArray:
    """Return X' @ R (n_columns, n_labels): a new array of float64."""
    return add_adjoint(X, np.ascontiguousarray(R, dtype=np.float64), np.zeros((X.shape[1], R.shape[1])))


def last_row_times(coefficients: FloatArray, factor: float) -> FloatArray:
    """Return coefficients with their last row, which is the intercept, multiplied by a factor.

    A factor of 1 returns the same array, and any other factor a new one.
    """
    if factor == 1.0:
        return coefficients
    scaled = coefficients.copy()
    scaled[-1] *= factor
    return scaled


class Design(ABC):
    """A linear map ``scores = Z @ W`` with the ridge weights that belong to its coordinates.

    Attributes
    ----------
    shape : tuple (n_samples, n_columns)
    ridge_weights : float or array (n_columns, 1)
        Weights of the squared rows of W in the ridge penalty.
    gram_diagonal : array (n_columns,)
        Diagonal of Z'Z. In whitened coordinates it is all of Z'Z.
    whitened : bool
        Whether Z'Z is diagonal.
    columns_multiplied : int
        Number of columns that ``scores`` and ``adjoint`` have multiplied so far.
    constant : float
        Value of the last column of the features if that column stands for the intercept. The
        intercept itself is the last weight times this constant.
    turn : array or Rotation (n_features, n_columns), or None
        Matrix with orthonormal columns. The coefficients of weights W are ``turn @ (scale * W)``.
        None is the identity; `scale` is then 1.
    scale : float or array (n_columns, 1)
        Factors of the rows of W.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import linear_design
    >>> design = linear_design(np.array([[3.0, 4.0], [4.0, -3.0], [0.0, 1.0]]))
    >>> W = design.weights(np.array([[1.0], [0.0]]))
    >>> design.scores(W).round(9).ravel().tolist()
    [3.0, 4.0, 0.0]
    """

    shape: tuple[int, int]
    ridge_weights: float | FloatArray = 1.0
    gram_diagonal: FloatArray
    whitened: bool = True
    columns_multiplied: int = 0
    constant: float = 1.0
    turn: Any = None
    scale: float | FloatArray = 1.0

    @abstractmethod
    def scores(self, W: FloatArray) -> Any:
        """Return the scores Z @ W.

        A design whose rows are in other processes or files returns an object that represents the
        scores.

        Parameters
        ----------
        W : array (n_columns, n_labels)

        Returns
        -------
        array (n_samples, n_labels)
            A new array, because a solver changes it.
        """

    @abstractmethod
    def adjoint(self, R: Any) -> FloatArray:
        """Return Z' @ R.

        Parameters
        ----------
        R : array (n_samples, n_labels)
            Matrix of the same kind as `scores` returns.

        Returns
        -------
        array (n_columns, n_labels)
        """

    def coefficients(self, W: FloatArray, dtype: Any = np.float64) -> FloatArray:
        """Return the coefficients of the model for weights in the coordinates of the design.

        Without `turn`, with a constant of 1 and in double precision, they are W itself, not a copy.

        Parameters
        ----------
        W : array (n_columns, n_labels)
        dtype : dtype, default=float64
            Type of the coefficients.

        Returns
        -------
        array (n_features, n_labels)
        """
        turned = W if self.turn is None else self.turn @ (self.scale * W)
        return last_row_times(turned, self.constant).astype(dtype, copy=False)

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Return the weights in the coordinates of the design for coefficients of the model.

        It is the inverse of :meth:`coefficients`. A part of the coefficients that no weights represent
        is lost. The result may be `coefficients` itself, not a copy.

        Parameters
        ----------
        coefficients : array (n_features, n_labels)

        Returns
        -------
        array (n_columns, n_labels)
        """
        W = last_row_times(coefficients, 1 / self.constant)
        return W if self.turn is None else (self.turn.T @ W) / self.scale

    def to_weight_gradient(self, G: FloatArray) -> FloatArray:
        """Chain rule: turn a gradient with respect to ``turn @ (scale * W)`` into one with respect to W.

        Without `turn`, the result is G itself, not a copy.

        Parameters
        ----------
        G : array (n_features, n_labels)
            Gradient with respect to the matrix that the features are multiplied by.

        Returns
        -------
        array (n_columns, n_labels)
        """
        return G if self.turn is None else self.scale * (self.turn.T @ G)

    def transform(self, rows: Matrix) -> Any:
        """Return the matrix that maps weights in the coordinates of the design to scores of other rows.

        Without `turn`, it is `rows` itself.

        Parameters
        ----------
        rows : array or sparse matrix (n_rows, n_features)
            Matrix that the coefficients of the model are multiplied by: features, or kernel values
            with the training rows.

        Returns
        -------
        array, sparse matrix or LinearOperator (n_rows, n_columns)
        """
        if self.turn is None:
            return rows
        if isinstance(self.turn, np.ndarray):
            return np.asarray(rows @ self.turn) * np.ravel(self.scale)
        product = self.turn.__matmul__
        shape = (rows.shape[1], self.shape[1])
        return aslinearoperator(rows) @ LinearOperator(shape, matvec=product, matmat=product, dtype=np.float64)


class RowDesign(Design):
    """A design whose rows are in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import MatrixDesign, RowDesign
    >>> design = MatrixDesign(np.array([[3.0, 4.0], [0.0, 1.0]]))
    >>> isinstance(design, RowDesign), design.matrix().tolist()
    (True, [[3.0, 4.0], [0.0, 1.0]])
    >>> design.weighted_gram(np.array([1.0, 2.0])).tolist()
    [[9.0, 12.0], [12.0, 18.0]]
    """

    def scores(self, W: FloatArray) -> FloatArray:
        """Return Z @ W: (n_samples, n_labels), a new array."""
        self.columns_multiplied += W.shape[1]
        return self._product(W)

    def adjoint(self, R: FloatArray) -> FloatArray:
        """Return Z' @ R: (n_columns, n_labels)."""
        self.columns_multiplied += R.shape[1]
        return self._adjoint(R)

    def matrix(self) -> FloatArray:
        """Return Z as a dense array."""
        return self._product(np.eye(self.shape[1]))

    def row_gram(self, diagonal: FloatArray) -> FloatArray:
        """Return Z diag(1 / diagonal) Z': (n_samples, n_samples), for a positive diagonal.

        The diagonal has the shape (n_columns,). The caller must not change the result, which a
        design may keep.
        """
        Z = self.matrix()
        return (Z / diagonal) @ Z.T

    def weighted_gram(self, row_curvature: FloatArray) -> FloatArray:
        """Return Z' diag(row_curvature) Z: (n_columns, n_columns), a new array that may be changed.

        The curvatures (n_samples,) are at least 0. Rows without curvature are left out.
        """
        rows = np.flatnonzero(row_curvature)
        Z = self.matrix()[rows]
        return Z.T @ (row_curvature[rows, None] * Z)

    def largest_curvature(self, row_curvature: FloatArray) -> float:
        """Return the largest eigenvalue of Z' diag(row_curvature) Z, for curvatures of at least 0.

        Its products are not counted. The result is at least the eigenvalue, see
        :func:`rbrl._common.linalg.largest_eigenvalue`.
        """
        n, k = self.shape
        if k <= n:
            return largest_eigenvalue(lambda V: self._adjoint(row_curvature[:, None] * self._product(V)), k)
        root = np.sqrt(row_curvature)[:, None]
        return largest_eigenvalue(lambda V: root * self._product(self._adjoint(root * V)), n)

    def row_norms(self) -> FloatArray:
        """Return the Euclidean norms of the rows of Z: (n_samples,)."""
        return np.sqrt(squares(self.matrix(), axis=1))

    @abstractmethod
    def _product(self, W: FloatArray) -> FloatArray:
        """Return Z @ W, a new float64 array, without adding to ``columns_multiplied``."""

    @abstractmethod
    def _adjoint(self, R: FloatArray) -> FloatArray:
        """Return Z' @ R, a new float64 array, without adding to ``columns_multiplied``."""


class AscentDesign(RowDesign):
    """A design whose rows dual ascent can visit, because its weights are a sum over rows of dual variables.

    The coordinates of the weights need not be orthonormal. Therefore the design computes their
    inner products.
    """

    @property
    @abstractmethod
    def row_squares(self) -> FloatArray:
        """Squared norms of the rows: (n_samples,)."""

    @abstractmethod
    def visit_rows(
        self, order: IntArray, Y: IntArray, weights: FloatArray, terms: tuple[Any, ...], ridge: float,
        W: FloatArray, dual_scores: FloatArray,
    ) -> float:  # fmt: skip
        """Maximise the dual over one row after the other; change W and the dual scores in place.

        Parameters
        ----------
        order : array (n_samples,) of int32
            Indices of the rows, in the order in which they are visited.
        Y : array (n_samples, n_labels) of int8; or SparseLabels for a :class:`MatrixDesign`
        weights : array (n_samples,) or (n_samples, n_labels)
        terms : tuple
            Parameters of the loss, those of :class:`rbrl.losses.base.RowTerms`. The graph is given by its
            three arrays.
        ridge : float
            Ridge of the problem whose dual is maximised, above 0.
        W : array (n_columns, n_labels)
        dual_scores : array (n_samples, n_labels)
            Scores whose loss gradients, times -1, are the dual variables.

        Returns
        -------
        float
            Sum of the losses of the rows when they were visited.
        """

    def row_scores(self, W: FloatArray) -> Callable[[slice], FloatArray]:
        """Return a function from slices of rows to their scores, for losses that are summed over blocks of rows.

        Parameters
        ----------
        W : array (n_columns, n_labels)
        """
        return self.scores(W).__getitem__

    @abstractmethod
    def squared_norm(self, W: FloatArray, row_scores: Callable[[slice], FloatArray]) -> float:
        """Return the squared norm of weights W, whose scores are known.

        Parameters
        ----------
        W : array (n_columns, n_labels)
        row_scores : callable
            Function from slices of rows to their scores, as :meth:`row_scores` returns it.
        """

    @abstractmethod
    def inner(self, U: FloatArray, V: FloatArray) -> float:
        """Return the inner product of two matrices of weights.

        Parameters
        ----------
        U, V : arrays (n_columns, n_labels)
        """

    @abstractmethod
    def label_gram(self, V: FloatArray) -> FloatArray:
        """Return the inner products of the columns of V: (n_labels, n_labels).

        Parameters
        ----------
        V : array (n_columns, n_labels)

        Returns
        -------
        array (n_labels, n_labels)
        """
