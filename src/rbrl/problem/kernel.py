"""The designs of kernel models: over the spectrum of a kernel matrix, over its factor, over blocks of its rows."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.linalg import eigh

from rbrl._common.linalg import gram_matrix, leading_eigenvectors, projected_gram, squares, whiten
from rbrl._common.typing import FloatArray
from rbrl.problem.design import DenseDesign, RowDesign

# Shares of the largest eigenvalue, by precision: below FLOOR an eigenvalue is noise and left out, below -INDEFINITE it
# is not noise and the matrix no kernel.
FLOOR = {"d": 1e-13, "f": 1e-6}
INDEFINITE = {"d": 1e-6, "f": 1e-5}


class SpectralDesign(DenseDesign):
    r"""The kernel model in spectral coordinates.

    With :math:`K = Q \operatorname{diag}(s) Q'` and :math:`B = Q'A`, scores :math:`KA` are :math:`ZB` for
    :math:`Z = Q \operatorname{diag}(s)`, the ridge :math:`\operatorname{tr}(A'KA)` has row weights s, and
    :math:`\|A\|_* = \|B\|_*` because the nuclear norm is unitarily invariant.

    For ``low_rank="function"`` the nuclear norm is that of :math:`\Phi(X)'A`, whose singular values are those of
    :math:`B = \operatorname{diag}(s)^{1/2} Q'A`; then :math:`Z = Q \operatorname{diag}(s)^{1/2}` and the ridge is plain.

    Parameters
    ----------
    K : array (n_samples, n_samples)
        Symmetric and positive semidefinite; its memory is reused. In single precision the decomposition takes half the
        time, and the spectrum is that of K rounded.
    low_rank : {"coefficients", "function"}

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import SpectralDesign
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> design = SpectralDesign(K.copy())
    >>> A = np.array([[1.0], [-0.5]])
    >>> np.allclose(design.scores(design.weights(A)), K @ A)
    True
    """

    def __init__(self, K: FloatArray, low_rank: str = "coefficients") -> None:
        s, Q = eigh(K, driver="evd", overwrite_a=True, check_finite=False)
        s, Q = s.astype(np.float64, copy=False), Q.astype(np.float64, copy=False)
        if s[0] < -INDEFINITE[K.dtype.char] * max(s[-1], 0.0) or s[-1] < 0:
            raise ValueError(
                "A kernel matrix must be positive semidefinite. Got eigenvalues from "
                f"{s[0]:.3g} to {s[-1]:.3g}; a multiple of the identity added to it would mend that."
            )
        first = np.searchsorted(s, FLOOR[K.dtype.char] * s[-1], side="right")
        self._set_spectrum(Q[:, first:], s[first:], low_rank)

    def _set_spectrum(self, Q: FloatArray, s: FloatArray, low_rank: str, turn: FloatArray | None = None) -> None:
        by_function = low_rank == "function"
        super().__init__(Q, *((np.sqrt(s[:, None]), s) if by_function else (s[:, None], s**2)))
        self.ridge_weights = 1.0 if by_function else s[:, None]
        # The eigenvectors take the place of the model's own coefficients, unless these are of features.
        unit = s if turn is None else np.sqrt(s)
        self.turn, self.scale = Q if turn is None else turn, self.stretch / unit[:, None]


class FeatureMapDesign(SpectralDesign):
    r"""The kernel model of :math:`K = \Phi \Phi'`, from its factor.

    With :math:`\Phi'\Phi = V \operatorname{diag}(s) V'` the spectrum of K is s, and its eigenvectors are
    :math:`Q = \Phi V \operatorname{diag}(s)^{-1/2}`: nothing has more columns than there are features. The model's own
    coefficients are the weights of the features, :math:`\Phi'A`, and the rows that it transforms are rows of features.

    Parameters
    ----------
    features : array (n_samples, n_features)
        :math:`\Phi`.
    low_rank : {"coefficients", "function"}
        As for :class:`SpectralDesign`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import FeatureMapDesign
    >>> features = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> design = FeatureMapDesign(features)
    >>> weights = np.array([[1.0], [-1.0]])
    >>> design.shape, np.allclose(design.scores(design.weights(weights)), features @ weights)
    ((3, 2), True)
    """

    def __init__(self, features: FloatArray, low_rank: str = "coefficients") -> None:
        V, s = whiten(gram_matrix(features), partial(projected_gram, features))
        self._set_spectrum((features @ V) / np.sqrt(s), s, low_rank, V)


# Entries of a block in double precision: 32 MB.
BLOCK_ENTRIES = 2**22


class BlockKernel(RowDesign):
    r"""A kernel matrix in single precision, its products in double, and the part of its spectrum that stands out.

    The weights over it are coefficients A of the rows, the function :math:`\Phi(X)'A` has the inner products
    :math:`A'KA`, and no other form of the matrix is made: 20,000 rows take 1.6 GB. Penalties in these inner products are
    what :class:`rbrl.solvers.KernelBlocks` minimises; to other solvers A is a matrix like any other.

    Parameters
    ----------
    gram : callable
        From a slice of the rows to their kernel values with all rows.
    n_samples : int

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import BlockKernel
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> BlockKernel(lambda rows: K[rows], 2).scores(np.array([[1.0], [-1.0]])).ravel().tolist()
    [1.0, -1.0]
    """

    whitened = False

    def __init__(self, gram: Callable[[slice], FloatArray], n_samples: int) -> None:
        self.shape = n_samples, n_samples
        self._gram, self.K = gram, np.empty(self.shape, dtype=np.float32)
        self.gram_diagonal = np.empty(n_samples)
        for rows in self._blocks():
            self.K[rows] = K = gram(rows)
            self.gram_diagonal[rows] = squares(K, axis=1)

    def _blocks(self) -> Iterator[slice]:
        step = max(1, BLOCK_ENTRIES // self.shape[0])
        return (slice(start, start + step) for start in range(0, self.shape[0], step))

    def _product(self, W: FloatArray) -> FloatArray:
        return np.vstack([self.K[rows].astype(np.float64) @ W for rows in self._blocks()])

    def _adjoint(self, R: FloatArray) -> FloatArray:
        return self._product(R)

    def row_norms(self) -> FloatArray:
        """Euclidean norms of the rows of K: (n_samples,)."""
        return np.sqrt(self.gram_diagonal)

    def product_as_posed(self, V: FloatArray) -> FloatArray:
        """K @ V with kernel values in double precision, computed anew."""
        return np.vstack([self._gram(rows) @ V for rows in self._blocks()])

    def leading(self, size: int) -> tuple[FloatArray, FloatArray, float]:
        """The `size` largest eigenvalues, nearly, with orthonormal vectors, and the mean of all others."""
        U, values = leading_eigenvectors(self.scores, self.shape[0], size, extra=int(np.ceil(0.25 * size)), rounds=1)
        rest = max(float(np.trace(self.K, dtype=np.float64)) - values.sum(), 0.0)
        return values, U, rest / max(self.shape[0] - size, 1)
