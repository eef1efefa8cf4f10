"""A kernel matrix that is multiplied block by block, and never decomposed."""

import numpy as np

# Entries of a block in double precision: 32 MB.
BLOCK_ENTRIES = 2**22


class BlockKernel:
    r"""A kernel matrix in single precision, its products in double, and the part of its spectrum that stands out.

    The weights over it are coefficients A of the rows, the function :math:`\Phi(X)'A` has the inner products
    :math:`A'KA`, and no other form of the matrix is made: 20,000 rows take 1.6 GB.

    Parameters
    ----------
    gram : callable
        From a slice of the rows to their kernel values with all rows.
    n_samples : int

    Attributes
    ----------
    columns : int
        Columns multiplied so far.
    """

    ridge_weights = 1.0

    def __init__(self, gram, n_samples):
        self.shape, self.columns, self._gram = (n_samples, n_samples), 0, gram
        self.K = np.empty(self.shape, dtype=np.float32)
        for rows in self._blocks():
            self.K[rows] = gram(rows)

    def _blocks(self):
        step = max(1, BLOCK_ENTRIES // self.shape[0])
        return (slice(start, start + step) for start in range(0, self.shape[0], step))

    def scores(self, A):
        """K @ A."""
        self.columns += A.shape[1]
        out = np.empty((self.shape[0], A.shape[1]))
        for rows in self._blocks():
            out[rows] = self.K[rows].astype(np.float64) @ A
        return out

    def product_as_posed(self, V):
        """K @ V with kernel values in double precision, computed anew, and the norms of the columns of K."""
        out, squares = np.empty((self.shape[0], V.shape[1])), np.empty(self.shape[0])
        for rows in self._blocks():
            K = self._gram(rows)
            out[rows], squares[rows] = K @ V, np.einsum("ij,ij->i", K, K)
        return out, np.sqrt(squares)

    def coefficients(self, A):
        """The model's own coefficients: A itself."""
        return A

    def leading(self, size, spare=0.25, seed=0):
        """The `size` largest eigenvalues, nearly, with orthonormal vectors, and the mean of all others."""
        width = min(int(np.ceil((1 + spare) * size)), self.shape[0])
        start = np.random.default_rng(seed).standard_normal((self.shape[0], width))
        Q = np.linalg.qr(self.scores(start))[0]
        values, turn = np.linalg.eigh(Q.T @ self.scores(Q))
        size = min(size, width)
        values, U = np.maximum(values[::-1][:size], 0.0), Q @ turn[:, ::-1][:, :size]
        rest = max(float(np.trace(self.K, dtype=np.float64)) - values.sum(), 0.0)
        return values, U, rest / max(self.shape[0] - size, 1)
