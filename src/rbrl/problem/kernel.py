"""The designs of kernel models: over the spectrum of a kernel matrix, over its factor, over blocks of its rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import cholesky, eigh, eigvalsh

from rbrl._common.linalg import gram_matrix, largest_eigenvalue, projected_gram, squares, whiten
from rbrl._common.typing import FloatArray, IntArray
from rbrl._loops import rows
from rbrl.kernels import check_finite_values
from rbrl.problem.design import AscentDesign, DenseDesign

# Shares of the largest eigenvalue, by precision: below FLOOR an eigenvalue is noise and left out, below -INDEFINITE it
# is not noise and the matrix no kernel.
FLOOR = {"d": 1e-13, "f": 1e-6}
INDEFINITE = {"d": 1e-6, "f": 1e-5}
# Bytes up to which a kernel matrix is stored in double precision: those of 16,384 rows.
IN_DOUBLE_PRECISION = 2**31
# Bytes of the kernel values of some rows, in products over all rows.
PART_BYTES = 2**25
# Rows that dual ascent visits with one product: enough for a fast product, and few beside all rows.
VISITED_TOGETHER = 64


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
        _check_eigenvalues(s, INDEFINITE[K.dtype.char])
        first = np.searchsorted(s, FLOOR[K.dtype.char] * s[-1], side="right")
        self._set_spectrum(Q[:, first:], s[first:], low_rank)

    def _set_spectrum(self, Q: FloatArray, s: FloatArray, low_rank: str, turn: FloatArray | None = None) -> None:
        by_function = low_rank == "function"
        super().__init__(Q, *((np.sqrt(s[:, None]), s) if by_function else (s[:, None], s**2)))
        self.ridge_weights = 1.0 if by_function else s[:, None]
        # The eigenvectors take the place of the model's own coefficients, unless these are of features.
        unit = s if turn is None else np.sqrt(s)
        self.turn, self.scale = Q if turn is None else turn, self.stretch / unit[:, None]


def _check_eigenvalues(s: FloatArray, share: float) -> None:
    """Refuse ascending eigenvalues of which one is below -`share` of the largest."""
    if s[0] < -share * max(s[-1], 0.0) or s[-1] < 0:
        raise ValueError(
            f"A kernel matrix must be positive semidefinite. Got eigenvalues from {s[0]:.3g} to {s[-1]:.3g}; add a multiple "
            "of the identity to it."
        )


def check_semidefinite(K: FloatArray) -> None:
    """Refuse a kernel matrix that has a negative eigenvalue beyond rounding.

    A Cholesky decomposition of the matrix, with a small multiple of the identity added, shows it in a fraction of the time
    that the eigenvalues take.

    Parameters
    ----------
    K : array (n_samples, n_samples)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem.kernel import check_semidefinite
    >>> check_semidefinite(np.array([[1.0, 1.0], [1.0, 1.0]]))
    """
    shifted = K + np.diag(np.full(len(K), INDEFINITE["d"] * largest_eigenvalue(K.dot, len(K))))
    try:
        cholesky(shifted, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        _check_eigenvalues(eigvalsh(K), INDEFINITE["d"])


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


class KernelDesign(AscentDesign):
    r"""The kernel model over the kernel matrix itself, which is not decomposed.

    The weights are coefficients A of the rows. They stand for the function :math:`\Phi(X)'A`, whose scores are
    :math:`KA`. Inner products are those of functions, :math:`\operatorname{tr}(A'KB)`, and the ridge and the nuclear norm
    are the function's. The adjoint :math:`\Phi(X)'R` of a matrix R has the coefficients R.

    Parameters
    ----------
    K : array (n_samples, n_samples), or KernelValues
        Symmetric and positive semidefinite. In single precision, it takes half of the memory; products are in double
        precision all the same.
    exact_rows : callable, default=None
        Function from an index of rows to their kernel values in double precision. None means that K has them.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import KernelDesign
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> design = KernelDesign(K)
    >>> A = np.array([[1.0], [-1.0]])
    >>> design.scores(A).ravel().tolist(), design.inner(A, A)
    ([1.0, -1.0], 2.0)
    """

    whitened = False

    def __init__(self, K: Any, exact_rows: Callable[[Any], FloatArray] | None = None) -> None:
        self.K = K
        self.shape = K.shape
        self.exact_rows = self.rows_of if exact_rows is None else exact_rows
        self.gram_diagonal = np.ones(K.shape[0])

    @cached_property
    def row_squares(self) -> FloatArray:
        """Squared norms of the rows in the space of functions, the diagonal of K: (n_samples,)."""
        if isinstance(self.K, np.ndarray):
            return np.diagonal(self.K).astype(np.float64)
        return np.concatenate([np.diagonal(self.K[part], part.start) for part in self._parts()])

    def rows_of(self, index: Any) -> FloatArray:
        """Return some rows of K, in double precision.

        Parameters
        ----------
        index : slice or array of int

        Returns
        -------
        array (n_rows, n_samples)
        """
        return np.asarray(self.K[index]).astype(np.float64, copy=False)

    def _parts(self) -> Iterator[slice]:
        """Yield slices of rows whose kernel values take some megabytes."""
        step = max(1, PART_BYTES // (8 * max(self.shape[0], 1)))
        return (slice(start, start + step) for start in range(0, self.shape[0], step))

    def visit_rows(
        self, order: IntArray, Y: IntArray, weights: FloatArray, terms: tuple[Any, ...], ridge: float,
        W: FloatArray, dual_scores: FloatArray,
    ) -> float:  # fmt: skip
        """Maximise the dual over one row after the other; change the coefficients W and the dual scores in place.

        The scores of some rows are computed at once. A visit then changes the scores of those that follow it.
        """
        visited = 0.0
        for start in range(0, len(order), VISITED_TOGETHER):
            part = order[start : start + VISITED_TOGETHER]
            K = self.rows_of(part)
            changes = np.zeros((len(part), W.shape[1]))
            duals = dual_scores[part]
            data = np.ascontiguousarray(K[:, part]), K @ W, self.row_squares[part], Y[part], weights[part]
            places = np.arange(len(part), dtype=np.int32)
            visited += rows.dual_ascent_kernel(*data, *terms, ridge, places, changes, duals)
            W[part] += changes
            dual_scores[part] = duals
        self.columns += W.shape[1]
        return visited

    def squared_norm(self, W: FloatArray, row_scores: Callable[[slice], FloatArray]) -> float:
        """Return the squared norm of the function of coefficients W, whose scores are known."""
        return max(float(np.vdot(W, row_scores(slice(None)))), 0.0)

    def inner(self, U: FloatArray, V: FloatArray) -> float:
        """Return the inner product of the functions of coefficients U and V."""
        return float(np.vdot(U, self.scores(V)))

    def label_gram(self, V: FloatArray) -> FloatArray:
        """Return V' K V."""
        gram = V.T @ self.scores(V)
        return 0.5 * (gram + gram.T)

    def _product(self, W: FloatArray) -> FloatArray:
        if isinstance(self.K, np.ndarray) and self.K.dtype == np.float64:
            return self.K @ W
        return np.vstack([self.rows_of(part) @ W for part in self._parts()])

    def exact_product(self, V: FloatArray) -> FloatArray:
        """Return K @ V, with kernel values in double precision.

        Parameters
        ----------
        V : array (n_samples, n_columns)

        Returns
        -------
        array (n_samples, n_columns)
        """
        return np.vstack([self.exact_rows(part) @ V for part in self._parts()])

    def exact_row_norms(self) -> FloatArray:
        """Return the Euclidean norms of the rows of K: (n_samples,)."""
        return np.sqrt(np.concatenate([squares(self.exact_rows(part), axis=1) for part in self._parts()]))

    def _adjoint(self, R: FloatArray) -> FloatArray:
        return R.copy()


@dataclass(frozen=True)
class KernelValues:
    """Kernel values that are computed whenever they are asked for: a matrix that is not in memory.

    Parameters
    ----------
    compute : callable
        Function from an index of rows to their kernel values with all rows.
    n_samples : int
    """

    compute: Callable[[Any], FloatArray]
    n_samples: int

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self.n_samples, self.n_samples

    def __getitem__(self, index: Any) -> FloatArray:
        return self.compute(index)


def kernel_design(compute: Callable[[Any], FloatArray], n_samples: int, memory: int | None = None) -> KernelDesign:
    """Return the design of a kernel matrix that is stored as the memory allows.

    It is in double precision where that takes :data:`IN_DOUBLE_PRECISION` bytes at most. It is in single precision where
    that takes half of the memory at most. Otherwise its rows are computed whenever they are visited.

    Parameters
    ----------
    compute : callable
        Function from an index of rows to their kernel values with all rows.
    n_samples : int
    memory : int, default=None
        Bytes that are available. None means that this is not known.

    Returns
    -------
    KernelDesign

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem.kernel import kernel_design
    >>> K = np.eye(3)
    >>> kernel_design(lambda rows: K[rows], 3).K.dtype
    dtype('float64')
    """
    dtype = storage_type(n_samples, memory)
    if dtype is None:
        return KernelDesign(KernelValues(compute, n_samples))
    K = np.empty((n_samples, n_samples), dtype=dtype)
    design = KernelDesign(K, None if dtype == np.float64 else compute)
    for part in design._parts():
        K[part] = compute(part)
        check_finite_values(K[part])
    return design


def storage_type(n_samples: int, memory: int | None = None) -> np.dtype[Any] | None:
    """Return the type in which :func:`kernel_design` stores kernel values; None where they are not stored.

    Parameters
    ----------
    n_samples, memory
        As for :func:`kernel_design`.

    Returns
    -------
    dtype or None
    """
    if 8 * n_samples**2 <= IN_DOUBLE_PRECISION:
        return np.dtype(np.float64)
    fits = memory is None or 8 * n_samples**2 <= memory
    return np.dtype(np.float32) if fits else None
