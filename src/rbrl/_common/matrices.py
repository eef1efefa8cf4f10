"""Matrices that are not stored densely: labels of many rows in sparse form, and products of two factors."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from rbrl._common.linalg import leading_singular, singular_values
from rbrl._common.typing import BoolArray, FloatArray, IntArray

# Number of entries in a block of rows of a product: 16 MB. To compute a block, the right factor is read as a whole. This
# takes too long for smaller blocks of a few rows.
PRODUCT_BLOCK = 2**21


class SparseLabels:
    """Signed labels (n_samples, n_labels) that are all known. Every label that is not stored is irrelevant.

    A block of rows or of labels is a dense array of int8 in {-1, +1}. It has the same values as the
    block of a dense label matrix. So code that reads a label matrix block by block accepts both.

    Parameters
    ----------
    relevant : CSR matrix (n_samples, n_labels)
        Stored entries are relevant labels. Their values have no meaning. Every row has its indices in
        ascending order, without duplicates.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from rbrl._common.matrices import SparseLabels
    >>> Y = SparseLabels(sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1]])))
    >>> Y.shape, Y[:1].tolist(), Y.columns(slice(2, 3)).tolist()
    ((2, 3), [[-1, 1, -1]], [[-1], [1]])
    """

    ndim = 2
    dtype = np.dtype(np.int8)

    def __init__(self, relevant: Any) -> None:
        self.relevant = relevant
        self.shape: tuple[int, int] = relevant.shape

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    @property
    def size(self) -> int:
        """The number of entries, stored or not."""
        return self.shape[0] * self.shape[1]

    def __getitem__(self, rows: slice | IntArray) -> IntArray:
        """Return the labels of some rows: a new array (n_rows, n_labels) of int8."""
        return _signed(self.relevant[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the dense label matrix as a new array, for code that needs all labels at one time.

        NumPy calls it. `copy` is ignored, because every result is a copy.
        """
        return _signed(self.relevant, np.int8 if dtype is None else dtype)

    def columns(self, labels: slice | IntArray) -> IntArray:
        """Return some labels of all rows: a new array (n_samples, n_chosen) of int8, in C order."""
        return _signed(self._by_label[:, labels])

    def take(self, rows: slice | IntArray) -> "SparseLabels":
        """Return the labels of some rows in sparse form, in the given order."""
        return SparseLabels(self.relevant[rows])

    def all(self) -> bool:
        """Return True, as NumPy's `all` of signed labels does, because no label is missing."""
        return True

    def any(self, axis: int, out: None = None) -> BoolArray:
        """Return which columns (axis 0) or rows (axis 1) have a known label, as NumPy's `any` does.

        All labels are known. So the result is True unless the other axis has no entries.
        """
        return np.full(self.shape[1 - axis], self.shape[axis] > 0)

    def count(self, axis: int) -> IntArray:
        """Return the number of relevant labels of every column (axis 0) or row (axis 1), as int64."""
        if axis == 1:
            return np.diff(self.relevant.indptr).astype(np.int64)
        return np.bincount(self.relevant.indices, minlength=self.shape[1])

    @cached_property
    def _by_label(self) -> Any:
        """The relevant labels in CSC format, from which columns are read."""
        return self.relevant.tocsc()


def take_labels(Y: Any, rows: slice | IntArray) -> Any:
    """Return the labels of some rows, in the same form: dense or :class:`SparseLabels`.

    Dense labels of a slice are a view.
    """
    return Y.take(rows) if isinstance(Y, SparseLabels) else Y[rows]


def take_columns(Y: Any, labels: slice | IntArray) -> IntArray:
    """Return some labels of all rows as a dense array of int8 (n_samples, n_chosen), in C order.

    It may be a view of Y.
    """
    return Y.columns(labels) if isinstance(Y, SparseLabels) else np.ascontiguousarray(Y[:, labels])


def _signed(relevant: Any, dtype: Any = np.int8) -> Any:
    """Return +1 for every stored entry of a sparse matrix and -1 elsewhere, as a new dense array."""
    Y = np.full(relevant.shape, -1, dtype=dtype)
    entries = sparse.coo_array(relevant)
    Y[entries.row, entries.col] = 1
    return Y


class LowRankMatrix(NamedTuple):
    """The matrix ``left @ right.T``, which is computed only on request.

    Attributes
    ----------
    left : array (n_rows, rank)
    right : array (n_columns, rank)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl._common.matrices import LowRankMatrix
    >>> W = LowRankMatrix(np.array([[1.0], [2.0]]), np.array([[3.0], [0.0], [1.0]]))
    >>> W.shape, (np.eye(2) @ W.left).shape, W.to_dense().tolist()
    ((2, 3), (2, 1), [[3.0, 0.0, 1.0], [6.0, 0.0, 2.0]])
    """

    left: FloatArray
    right: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns of the product."""
        return len(self.left), len(self.right)

    @property
    def dtype(self) -> Any:
        """The type of the factors."""
        return self.left.dtype

    @property
    def rank(self) -> int:
        """The number of columns of each factor, an upper bound on the rank of the product."""
        return int(self.left.shape[1])

    def rows(self, part: slice) -> FloatArray:
        """Return some rows of the product as a new array (n_chosen, n_columns)."""
        chosen: Any = self.left[part] @ self.right.T
        return chosen

    def astype(self, dtype: Any) -> "LowRankMatrix":
        """Return copies of the factors in another type."""
        return LowRankMatrix(self.left.astype(dtype), self.right.astype(dtype))

    def singular_values(self) -> FloatArray:
        """Return the singular values of the product, the largest first; the product is not computed."""
        triangle: FloatArray = np.asarray(np.linalg.qr(self.right, mode="r"))
        return singular_values(np.linalg.qr(self.left, mode="r") @ triangle.T)

    def to_dense(self) -> FloatArray:
        """Return the product as a new array (n_rows, n_columns)."""
        product: Any = self.left @ self.right.T
        return product


def split(W: Any, negligible: float = 1e-3, most: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return balanced factors of an array or operator W, with at most `most` columns; None is no limit.

    Singular values below `negligible` times the largest one are left out.
    """
    P, sigma, Q = leading_singular(W, most or min(W.shape))
    return _scale_columns(P, sigma, Q, negligible)


def balance(U: FloatArray, V: FloatArray, negligible: float = 1e-7) -> tuple[FloatArray, FloatArray]:
    """Return factors of the same product with U'U = V'V = diag(sigma), without negligible sigma."""
    Q, T = np.linalg.qr(V)
    P, sigma, Ot = np.linalg.svd(U @ T.T, full_matrices=False)
    return _scale_columns(P, sigma, Q @ Ot.T, negligible)


def _scale_columns(P: FloatArray, sigma: FloatArray, Q: FloatArray, negligible: float) -> tuple[FloatArray, FloatArray]:
    """Return P and Q times the roots of the singular values that are not negligible."""
    keep = sigma > negligible * sigma.max(initial=0.0)
    root = np.sqrt(sigma[keep])
    return P[:, keep] * root, Q[:, keep] * root


def make_operator(shape: tuple[int, int], product: Any, transposed_product: Any) -> LinearOperator:
    """Return the linear operator of functions that multiply a matrix, or its transpose, by an array of few columns."""
    functions = {"matvec": product, "rmatvec": transposed_product, "matmat": product, "rmatmat": transposed_product}
    return LinearOperator(shape, dtype=np.float64, **functions)
