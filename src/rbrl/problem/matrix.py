"""Designs of one matrix in memory: a dense matrix of scaled columns, or the features themselves, dense or sparse."""

from collections.abc import Callable
from copy import copy
from functools import cached_property, partial
from typing import Any

import numpy as np

from rbrl._common.environment import block_size
from rbrl._common.linalg import gram_matrix, squares
from rbrl._common.matrices import SparseLabels
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl._loops import rows
from rbrl.problem.design import AscentDesign, Design, RowDesign, adjoint, scores

# Largest squared norm of a column in single precision. Entries of larger columns may be near the
# largest number of single precision, 3e38.
LARGEST_SQUARE = 1e30


class DenseDesign(RowDesign):
    """A design with the scores Q @ (stretch * W), for a dense matrix Q.

    Parameters
    ----------
    Q : array (n_samples, n_columns)
        Matrix in single or double precision. It is not copied.
    stretch : float or array (n_columns, 1)
        Factors of the columns of Q. They multiply the rows of W in each product, so that Q can be
        shared with a model.
    gram_diagonal : array (n_columns,)
        Diagonal of Z'Z.
    turn : array (n_features, n_columns), default=None
        Matrix with orthonormal columns, see :class:`Design`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import DenseDesign
    >>> design = DenseDesign(np.eye(2), 3.0, np.array([9.0, 9.0]))
    >>> design.scores(np.array([[1.0], [2.0]])).ravel().tolist()
    [3.0, 6.0]
    """

    def __init__(self, Q: FloatArray, stretch: float | FloatArray, gram_diagonal: FloatArray, turn: Any = None) -> None:
        self.Q = Q
        self.stretch = stretch
        self.gram_diagonal = gram_diagonal
        self.turn = turn
        self.shape = Q.shape

    def _product(self, W: FloatArray) -> FloatArray:
        """Return Z @ W as a new array in double precision, computed in the precision of Q."""
        return (self.Q @ (self.stretch * W).astype(self.Q.dtype, copy=False)).astype(np.float64, copy=False)

    def _adjoint(self, R: FloatArray) -> FloatArray:
        """Return Z' @ R as a new array in double precision, computed in the precision of Q."""
        return self.stretch * (self.Q.T @ R.astype(self.Q.dtype, copy=False)).astype(np.float64, copy=False)

    def matrix(self) -> FloatArray:
        """Return Z as a new dense array, in double precision or in the precision of Q."""
        return self.Q * np.ravel(self.stretch)


class MatrixDesign(AscentDesign):
    """A design with the scores X @ (turn @ W). A sparse X stays sparse.

    It serves problems whose decomposition does not fit into memory, or does not pay. If columns are
    correlated, `gram_diagonal` is only a part of Z'Z. A solver then needs more evaluations than in
    whitened coordinates.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    turn : array or Rotation (n_features, n_columns), default=None
        Matrix with orthonormal columns. Ridge and nuclear norm keep their form, because they are
        unitarily invariant. None is the identity.
    gram_diagonal : array (n_columns,), default=None
        Diagonal of Z'Z; by default, the squared norms of the columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import MatrixDesign
    >>> design = MatrixDesign(np.array([[3.0, 4.0], [0.0, 1.0]]))
    >>> design.scores(np.array([[1.0], [2.0]])).ravel().tolist(), design.gram_diagonal.tolist()
    ([11.0, 2.0], [9.0, 17.0])
    """

    def __init__(self, X: Matrix, turn: Any = None, gram_diagonal: FloatArray | None = None) -> None:
        self.X = X
        self.turn = turn
        self.whitened = isinstance(turn, np.ndarray)
        self.gram_diagonal = squares(X) if gram_diagonal is None else gram_diagonal
        self.shape = X.shape[0], len(self.gram_diagonal)
        self._gram: FloatArray | None = None

    @cached_property
    def row_squares(self) -> FloatArray:
        """Squared norms of the rows: (n_samples,)."""
        return squares(self.X, axis=1)

    def visit_rows(
        self, order: IntArray, Y: Any, weights: FloatArray, terms: tuple[Any, ...], ridge: float,
        W: FloatArray, dual_scores: FloatArray,
    ) -> float:  # fmt: skip
        """Maximise the dual over one row after the other; change W and the dual scores in place."""
        self.columns_multiplied += 2 * W.shape[1]
        # Sparse labels become a dense array for one block of rows after the other.
        in_blocks = isinstance(Y, SparseLabels)
        step = max(1, block_size(Y.size) // max(Y.shape[1], 1) if in_blocks else len(order))
        total = 0.0
        for start in range(0, len(order), step):
            part = order[start : start + step]
            chosen = part if in_blocks else slice(None)
            X = self.X[part] if in_blocks else self.X
            in_turn = np.arange(len(part), dtype=np.int32) if in_blocks else order
            scores = dual_scores[chosen]
            data = self.row_squares[chosen], Y[chosen], weights[chosen], *terms, ridge, in_turn, W, scores
            if issparse(X):
                total += float(rows.dual_ascent_sparse(X.data, X.indices, X.indptr, *data))
            else:
                total += float(rows.dual_ascent_dense(np.ascontiguousarray(X), *data))
            if in_blocks:
                dual_scores[part] = scores
        return total

    def row_scores(self, W: FloatArray) -> Callable[[slice], FloatArray]:
        """Return a function from slices of rows to their scores. No more than these are in memory."""
        if self.turn is not None:
            return super().row_scores(W)
        self.columns_multiplied += W.shape[1]
        return partial(scores, self.X, W)

    def squared_norm(self, W: FloatArray, row_scores: Callable[[slice], FloatArray]) -> float:
        """Return the sum of the squared entries of W."""
        return float(np.vdot(W, W))

    def inner(self, U: FloatArray, V: FloatArray) -> float:
        """Return the sum of the products of the entries of U and V."""
        return float(np.vdot(U, V))

    def label_gram(self, V: FloatArray) -> FloatArray:
        """Return V' V."""
        return V.T @ V

    def _product(self, W: FloatArray) -> FloatArray:
        """Return X @ (turn @ W): (n_samples, n_labels), a new array."""
        return scores(self.X, W if self.turn is None else self.turn @ W)

    def _adjoint(self, R: FloatArray) -> FloatArray:
        """Return turn' @ (X' @ R): (n_columns, n_labels), a new array."""
        return self.to_weight_gradient(adjoint(self.X, R))

    def row_norms(self) -> FloatArray:
        """Return the Euclidean norms of the rows of X: (n_samples,)."""
        return np.sqrt(self.row_squares)

    def row_gram(self, diagonal: FloatArray) -> FloatArray:
        """Return X X' divided by `diagonal`, whose entries must be equal: (n_samples, n_samples).

        A `turn` does not change it. X X' is kept for the next call.
        """
        if self._gram is None:
            self._gram = gram_matrix(self.X.T.tocsr() if issparse(self.X) else self.X.T)
        return self._gram / diagonal[0]

    def weighted_gram(self, row_curvature: FloatArray) -> FloatArray:
        """Return Q' X' diag(row_curvature) X Q, with Q = ``turn``: a new array.

        The curvatures (n_samples,) are at least 0.
        """
        if self.whitened:
            # Two more products with Q would take more time than a product with a few dense rows.
            return super().weighted_gram(row_curvature)
        rows = np.flatnonzero(row_curvature)
        X = self.X[rows]
        root = np.sqrt(row_curvature[rows, None])
        gram = gram_matrix(X.multiply(root).tocsr() if issparse(X) else root * X)
        return self.to_weight_gradient(self.to_weight_gradient(gram).T).T


def in_single_precision(design: Design) -> Design:
    """Return a copy of a dense design with its matrix in single precision.

    Products take half the time and have seven correct digits. Everything computed from these
    products, lower bounds included, has an error of this size. A design that is not dense, or has
    huge entries, is returned as it is.

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
    # In Fortran order, neither the product with Q nor the product with its transpose copies Q.
    quick.Q = np.asfortranarray(design.Q, dtype=np.float32)
    # The copy counts its own products.
    quick.columns_multiplied = 0
    return quick
