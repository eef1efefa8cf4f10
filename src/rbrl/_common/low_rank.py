"""A matrix of low rank, stored as two factors."""

from typing import Any, NamedTuple

import numpy as np

from rbrl._common.linalg import singular_values
from rbrl._common.typing import FloatArray


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
    def rank(self) -> int:
        """The number of columns of each factor, an upper bound on the rank of the product."""
        return int(self.left.shape[1])

    def singular_values(self) -> FloatArray:
        """Return the singular values of the product, the largest first; the product is not computed."""
        triangle: FloatArray = np.asarray(np.linalg.qr(self.right, mode="r"))
        return singular_values(np.linalg.qr(self.left, mode="r") @ triangle.T)

    def to_dense(self) -> FloatArray:
        """Return the product as a new array (n_rows, n_columns)."""
        product: Any = self.left @ self.right.T
        return product
