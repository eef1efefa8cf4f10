"""A matrix of low rank, stored as two factors, and the factors of other matrices."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator

from rbrl._common.linalg import leading_singular, singular_values
from rbrl._common.typing import FloatArray

# Number of entries in a block of rows of a product: 16 MB. To compute a block, the right factor is read as a whole. This
# takes too long for smaller blocks of a few rows.
PRODUCT_BLOCK = 2**21


class LowRankMatrix(NamedTuple):
    """The matrix ``left @ right.T``, which is computed only on request.

    Attributes
    ----------
    left : array (n_rows, rank)
    right : array (n_columns, rank)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl._common.low_rank import LowRankMatrix
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
