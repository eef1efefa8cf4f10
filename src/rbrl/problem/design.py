"""What a design is: the linear map from weights to scores, in coordinates that suit the problem."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from rbrl._common.linalg import gram_matrix, largest_eigenvalue, squares
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix, issparse
from rbrl._loops import rows

# A decomposition of this size, of features or of a kernel, takes about as much memory as a machine is sure to have:
# 4 x 8 x size^2 bytes are 2 GB.
LARGEST_DECOMPOSITION = 8000


def scores(X: Matrix, coefficients: FloatArray) -> FloatArray:
    """X @ coefficients, and the intercepts."""
    m = X.shape[1]
    F = np.zeros((X.shape[0], coefficients.shape[1]))
    if len(coefficients) > m:
        F += coefficients[m]
    if issparse(X):
        # SciPy's own takes as long with few labels, and up to four times as long with many: benchmarks/sparse_products.
        rows.sparse_product(X.data, X.indices, X.indptr, np.ascontiguousarray(coefficients), F)
    else:
        F += X @ coefficients[:m]
    return F


def extended_scores(X: Matrix, coefficients: FloatArray) -> FloatArray:
    """The same in extended precision where the machine has it, then rounded: slow, for weights whose products cancel."""
    W, m = coefficients.astype(np.longdouble), X.shape[1]
    F = np.asarray(X.astype(np.longdouble) @ W[:m])
    return (F + W[m] if len(W) > m else F).astype(np.float64)


def add_adjoint(X: Matrix, R: FloatArray, out: FloatArray) -> FloatArray:
    """`out` with X' @ R added to it, and the sum of R to its row of intercepts if it has one."""
    m = X.shape[1]
    if len(out) > m:
        out[m] += R.sum(axis=0)
    if issparse(X):
        rows.sparse_adjoint(X.data, X.indices, X.indptr, R, out)
    else:
        out[:m] += X.T @ R
    return out


def adjoint(X: Matrix, R: FloatArray) -> FloatArray:
    """X' @ R."""
    return add_adjoint(X, np.ascontiguousarray(R, dtype=np.float64), np.zeros((X.shape[1], R.shape[1])))


def last_row_times(coefficients: FloatArray, factor: float) -> FloatArray:
    """Coefficients with their last row, that of the intercept, in another unit; as they are where the factor is 1."""
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
        Diagonal of Z'Z: all of it in whitened coordinates, an approximation elsewhere.
    whitened : bool
        Whether Z'Z is diagonal.
    columns : int
        Columns multiplied so far, by ``scores`` and ``adjoint`` together.
    constant : float
        What the last column of the features holds where it is that of the intercept. Coefficients are in units of ones: the
        last weight times the constant.
    turn : array or Rotation (n_features, n_columns), or None
        Orthonormal columns: the coefficients of weights W are ``turn @ (scale * W)``; None is the identity.
    scale : float or array (n_columns, 1)

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
    columns: int = 0
    constant: float = 1.0
    turn: Any = None
    scale: float | FloatArray = 1.0

    @abstractmethod
    def scores(self, W: FloatArray) -> Any:
        """Z @ W: (n_samples, n_labels), or what stands for it where the rows are elsewhere.

        Parameters
        ----------
        W : array (n_columns, n_labels)

        Returns
        -------
        array (n_samples, n_labels)
            The caller's own: a solver changes it.
        """

    @abstractmethod
    def adjoint(self, R: Any) -> FloatArray:
        """Z' @ R: (n_columns, n_labels).

        Parameters
        ----------
        R : array (n_samples, n_labels)
            Or what `scores` has for one.

        Returns
        -------
        array (n_columns, n_labels)
        """

    def coefficients(self, W: FloatArray) -> FloatArray:
        """The model's own coefficients, from weights in these coordinates.

        Parameters
        ----------
        W : array (n_columns, n_labels)

        Returns
        -------
        array (n_features, n_labels)
        """
        return last_row_times(W if self.turn is None else self.turn @ (self.scale * W), self.constant)

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Weights in these coordinates, from the model's own coefficients: the inverse of :meth:`coefficients`.

        Parameters
        ----------
        coefficients : array (n_features, n_labels)

        Returns
        -------
        array (n_columns, n_labels)
        """
        W = last_row_times(coefficients, 1 / self.constant)
        return W if self.turn is None else (self.turn.T @ W) / self.scale

    def pulled(self, G: FloatArray) -> FloatArray:
        """A gradient in what the features are multiplied with, as one in these coordinates.

        Parameters
        ----------
        G : array (n_features, n_labels)

        Returns
        -------
        array (n_columns, n_labels)
        """
        return G if self.turn is None else self.scale * (self.turn.T @ G)

    def transform(self, rows: Matrix) -> Any:
        """The matrix, or what has its products, that turns weights in these coordinates into scores of other rows.

        `rows` are what the model's own coefficients are multiplied with: features, or kernel values to the training rows.

        Parameters
        ----------
        rows : array or sparse matrix (n_rows, n_features)

        Returns
        -------
        array, sparse matrix or LinearOperator (n_rows, n_columns)
        """
        if self.turn is None:
            return rows
        if isinstance(self.turn, np.ndarray):
            return np.asarray(rows @ self.turn) * np.ravel(self.scale)
        product, shape = self.turn.__matmul__, (rows.shape[1], self.shape[1])
        return aslinearoperator(rows) @ LinearOperator(shape, matvec=product, matmat=product, dtype=np.float64)


class RowDesign(Design):
    """A design whose rows are at hand, and their products with any weights.

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
        """Z @ W: (n_samples, n_labels)."""
        self.columns += W.shape[1]
        return self._product(W)

    def adjoint(self, R: FloatArray) -> FloatArray:
        """Z' @ R: (n_columns, n_labels)."""
        self.columns += R.shape[1]
        return self._adjoint(R)

    def matrix(self) -> FloatArray:
        """Z itself, dense."""
        return self._product(np.eye(self.shape[1]))

    def row_gram(self, diagonal: FloatArray) -> FloatArray:
        """Z diag(1 / diagonal) Z': (n_samples, n_samples)."""
        Z = self.matrix()
        return (Z / diagonal) @ Z.T

    def weighted_gram(self, row_curvature: FloatArray) -> FloatArray:
        """Z' diag(row_curvature) Z: (n_columns, n_columns)."""
        rows = np.flatnonzero(row_curvature)
        Z = self.matrix()[rows]
        return Z.T @ (row_curvature[rows, None] * Z)

    def largest_curvature(self, row_curvature: FloatArray) -> float:
        """Largest eigenvalue of Z' diag(row_curvature) Z."""
        n, k = self.shape
        if k <= n:
            return largest_eigenvalue(lambda V: self._adjoint(row_curvature[:, None] * self._product(V)), k)
        root = np.sqrt(row_curvature)[:, None]
        return largest_eigenvalue(lambda V: root * self._product(self._adjoint(root * V)), n)

    def row_norms(self) -> FloatArray:
        """Euclidean norms of the rows of Z: (n_samples,)."""
        return np.sqrt(squares(self.matrix(), axis=1))

    @abstractmethod
    def _product(self, W: FloatArray) -> FloatArray:
        """Z @ W, not counted."""

    @abstractmethod
    def _adjoint(self, R: FloatArray) -> FloatArray:
        """Z' @ R, not counted."""


# Columns of larger squared norms may have entries near the largest number that single precision has, 3e38.
LARGEST_SQUARE = 1e30


class DenseDesign(RowDesign):
    """Scores are Q @ (stretch * W), with a dense Q.

    Parameters
    ----------
    Q : array (n_samples, n_columns)
    stretch : float or array (n_columns, 1)
        Not multiplied into Q, which a model may share: a product scales the few rows of W instead.
    gram_diagonal : array (n_columns,)
    turn : array (n_features, n_columns), default=None

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import DenseDesign
    >>> design = DenseDesign(np.eye(2), 3.0, np.array([9.0, 9.0]))
    >>> design.scores(np.array([[1.0], [2.0]])).ravel().tolist()
    [3.0, 6.0]
    """

    def __init__(self, Q: FloatArray, stretch: float | FloatArray, gram_diagonal: FloatArray, turn: Any = None) -> None:
        self.Q, self.stretch, self.gram_diagonal, self.turn, self.shape = Q, stretch, gram_diagonal, turn, Q.shape

    def _product(self, W: FloatArray) -> FloatArray:
        return (self.Q @ (self.stretch * W).astype(self.Q.dtype, copy=False)).astype(np.float64, copy=False)

    def _adjoint(self, R: FloatArray) -> FloatArray:
        return self.stretch * (self.Q.T @ R.astype(self.Q.dtype, copy=False)).astype(np.float64, copy=False)

    def matrix(self) -> FloatArray:
        """Z itself, dense."""
        return self.Q * np.ravel(self.stretch)


class AscentDesign(RowDesign):
    """A design whose rows dual ascent can visit: its weights are a sum over rows of dual variables.

    Weights may be given in coordinates that are not orthonormal, so that their inner products are for the design to say.
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
        Y : array (n_samples, n_labels)
        weights : array (n_samples,) or (n_samples, n_labels)
        terms : tuple
            Parameters of the loss, :attr:`rbrl.losses.base.RowTerms.numbers`.
        ridge : float
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

        Returns
        -------
        callable
        """
        return self.scores(W).__getitem__

    @abstractmethod
    def squared_norm(self, W: FloatArray, row_scores: Callable[[slice], FloatArray]) -> float:
        """Return the squared norm of weights W, whose scores are known.

        Parameters
        ----------
        W : array (n_columns, n_labels)
        row_scores : callable
            Function from slices of rows to their scores, as of :meth:`row_scores`.

        Returns
        -------
        float
        """

    @abstractmethod
    def inner(self, U: FloatArray, V: FloatArray) -> float:
        """Return the inner product of two matrices of weights.

        Parameters
        ----------
        U, V : arrays (n_columns, n_labels)

        Returns
        -------
        float
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


class MatrixDesign(AscentDesign):
    """Scores are X @ (turn @ W). A sparse X stays sparse.

    Where columns are correlated `gram_diagonal` is only part of Z'Z and a solver needs more evaluations than in whitened
    coordinates: for problems whose decomposition does not fit.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    turn : array or Rotation (n_features, n_columns), default=None
        Orthonormal columns: ridge and nuclear norm are unitarily invariant and keep their form. None is the identity.
    gram_diagonal : array (n_columns,), default=None

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import MatrixDesign
    >>> design = MatrixDesign(np.array([[3.0, 4.0], [0.0, 1.0]]))
    >>> design.scores(np.array([[1.0], [2.0]])).ravel().tolist(), design.gram_diagonal.tolist()
    ([11.0, 2.0], [9.0, 17.0])
    """

    def __init__(self, X: Matrix, turn: Any = None, gram_diagonal: FloatArray | None = None) -> None:
        self.X, self.turn, self.whitened = X, turn, isinstance(turn, np.ndarray)
        self.gram_diagonal = squares(X) if gram_diagonal is None else gram_diagonal
        self.shape = X.shape[0], len(self.gram_diagonal)
        self._gram: FloatArray | None = None

    @cached_property
    def row_squares(self) -> FloatArray:
        """Squared norms of the rows: (n_samples,)."""
        return squares(self.X, axis=1)

    @cached_property
    def _rows(self) -> tuple[Array, ...]:
        """The arrays of X that a loop over rows takes."""
        X = self.X
        return (X.data, X.indices, X.indptr) if issparse(X) else (np.ascontiguousarray(X),)

    def visit_rows(
        self, order: IntArray, Y: IntArray, weights: FloatArray, terms: tuple[Any, ...], ridge: float,
        W: FloatArray, dual_scores: FloatArray,
    ) -> float:  # fmt: skip
        """Maximise the dual over one row after the other; change W and the dual scores in place."""
        visit = rows.dual_ascent_sparse if issparse(self.X) else rows.dual_ascent_dense
        self.columns += 2 * W.shape[1]
        return float(visit(*self._rows, self.row_squares, Y, weights, *terms, ridge, order, W, dual_scores))

    def row_scores(self, W: FloatArray) -> Callable[[slice], FloatArray]:
        """Return a function from slices of rows to their scores. No more than these are in memory."""
        if self.turn is not None:
            return super().row_scores(W)
        self.columns += W.shape[1]
        return lambda part: scores(self.X[part], W)

    def squared_norm(self, W: FloatArray, row_scores: Callable[[slice], FloatArray]) -> float:
        """Return the sum of the squares of W."""
        return float(np.vdot(W, W))

    def inner(self, U: FloatArray, V: FloatArray) -> float:
        """Return the sum of the products of the entries of U and V."""
        return float(np.vdot(U, V))

    def label_gram(self, V: FloatArray) -> FloatArray:
        """Return V' V."""
        return V.T @ V

    def _product(self, W: FloatArray) -> FloatArray:
        return scores(self.X, W if self.turn is None else self.turn @ W)

    def _adjoint(self, R: FloatArray) -> FloatArray:
        return self.pulled(adjoint(self.X, R))

    def row_norms(self) -> FloatArray:
        """Euclidean norms of the rows of X: (n_samples,)."""
        return np.sqrt(self.row_squares)

    def row_gram(self, diagonal: FloatArray) -> FloatArray:
        """X X' / diagonal, whose entries are equal: (n_samples, n_samples)."""
        if self._gram is None:
            self._gram = gram_matrix(self.X.T.tocsr() if issparse(self.X) else self.X.T)
        return self._gram / diagonal[0]

    def weighted_gram(self, row_curvature: FloatArray) -> FloatArray:
        """Q' X' diag(row_curvature) X Q, for the turn Q."""
        if self.whitened:
            # Two more products with Q would cost more than few rows in dense form.
            return super().weighted_gram(row_curvature)
        rows = np.flatnonzero(row_curvature)
        X, root = self.X[rows], np.sqrt(row_curvature[rows, None])
        gram = gram_matrix(X.multiply(root).tocsr() if issparse(X) else root * X)
        return self.pulled(self.pulled(gram).T).T


def in_single_precision(design: Design) -> Design:
    """The design with its matrix in single precision: products take half the time, and keep seven digits.

    What is computed from them, lower bounds too, is off by as much. The design itself where that is not dense, or has huge
    entries.

    Parameters
    ----------
    design : Design

    Returns
    -------
    Design

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import in_single_precision, linear_design
    >>> in_single_precision(linear_design(np.eye(3))).Q.dtype
    dtype('float32')
    """
    if not isinstance(design, DenseDesign) or np.max(design.gram_diagonal, initial=0.0) >= LARGEST_SQUARE:
        return design
    quick = copy(design)
    # In this order neither product copies it.
    quick.Q, quick.columns = np.asfortranarray(design.Q, dtype=np.float32), 0
    return quick
