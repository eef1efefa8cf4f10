"""Designs of kernel models: from the eigenvalues of a kernel matrix, from its factor, or from the matrix itself."""

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
from rbrl.problem.design import AscentDesign
from rbrl.problem.matrix import DenseDesign

# Shares of the largest eigenvalue, for double and for single precision. An eigenvalue below FLOOR
# is rounding and is left out. An eigenvalue below -INDEFINITE is not rounding, and the matrix is
# not a kernel matrix.
FLOOR = {"d": 1e-13, "f": 1e-6}
INDEFINITE = {"d": 1e-6, "f": 1e-5}
# Size in bytes of the largest kernel matrix stored in double precision (16,384 rows).
IN_DOUBLE_PRECISION = 2**31
# Number of bytes of the kernel values that are computed at a time, in products with all rows.
PART_BYTES = 2**25
# Number of rows whose scores dual ascent computes with one product. A product of fewer rows is
# slow. More rows would need more corrections, because a visit changes the scores of the rows that
# follow.
VISITED_TOGETHER = 64


class SpectralDesign(DenseDesign):
    r"""The kernel model in spectral coordinates.

    With :math:`K = Q \operatorname{diag}(s) Q'` and :math:`B = Q'A`, scores :math:`KA` are
    :math:`ZB` for :math:`Z = Q \operatorname{diag}(s)`, the ridge :math:`\operatorname{tr}(A'KA)`
    has row weights s, and :math:`\|A\|_* = \|B\|_*` because the nuclear norm is unitarily
    invariant.

    For ``low_rank="function"`` the nuclear norm is that of :math:`\Phi(X)'A`, whose singular values
    are those of :math:`B = \operatorname{diag}(s)^{1/2} Q'A`; then
    :math:`Z = Q \operatorname{diag}(s)^{1/2}` and the ridge is plain.

    Parameters
    ----------
    K : array (n_samples, n_samples)
        Symmetric positive semidefinite matrix. It is overwritten. In single precision the
        decomposition takes half the time, and the eigenvalues are those of the rounded matrix.
    low_rank : {"coefficients", "function"}
        Matrix that the nuclear norm applies to.

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
        s = s.astype(np.float64, copy=False)
        Q = Q.astype(np.float64, copy=False)
        _check_eigenvalues(s, INDEFINITE[K.dtype.char])
        first = np.searchsorted(s, FLOOR[K.dtype.char] * s[-1], side="right")
        self._set_spectrum(Q[:, first:], s[first:], low_rank)

    def _set_spectrum(self, Q: FloatArray, s: FloatArray, low_rank: str, turn: FloatArray | None = None) -> None:
        """Initialise the design Q diag(stretch) of K = Q diag(s) Q', with positive s.

        The stretch is s, or its root for "function". `turn` is None if the stored coefficients
        belong to rows; otherwise it maps spectral coordinates to features. Q and `turn` are kept
        without a copy. `RowSpaceDesign` calls this, too.
        """
        by_function = low_rank == "function"
        super().__init__(Q, *((np.sqrt(s[:, None]), s) if by_function else (s[:, None], s**2)))
        self.ridge_weights = 1.0 if by_function else s[:, None]
        # With a `turn`, the coefficients of the model are weights of features, and otherwise of
        # rows.
        unit = s if turn is None else np.sqrt(s)
        self.turn = Q if turn is None else turn
        self.scale = self.stretch / unit[:, None]


def _check_eigenvalues(s: FloatArray, share: float) -> None:
    """Raise an error if the smallest eigenvalue is below -`share` times the largest. `s` must be in ascending order.

    It must not be empty.
    """
    if s[0] < -share * max(s[-1], 0.0) or s[-1] < 0:
        raise ValueError(
            f"A kernel matrix must be positive semidefinite. Got eigenvalues from {s[0]:.3g} to {s[-1]:.3g}; add a multiple "
            "of the identity to it."
        )


def check_semidefinite(K: FloatArray) -> None:
    """Raise an error if a kernel matrix has a negative eigenvalue that is not rounding.

    A Cholesky decomposition of the matrix plus a small multiple of the identity fails for such a
    matrix. It takes a fraction of the time that the eigenvalues take.

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
    r"""The kernel model of :math:`K = \Phi \Phi'`, from the features :math:`\Phi`.

    With :math:`\Phi'\Phi = V \operatorname{diag}(s) V'`, the eigenvalues of K are s, and its
    eigenvectors are :math:`Q = \Phi V \operatorname{diag}(s)^{-1/2}`. So no matrix has more columns
    than there are features. The coefficients of the model are the weights of the features,
    :math:`\Phi'A`. It transforms rows of features.

    Parameters
    ----------
    features : array (n_samples, n_features)
        :math:`\Phi`.
    low_rank : {"coefficients", "function"}
        Matrix that the nuclear norm applies to, see :class:`SpectralDesign`.

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

    The weights are coefficients A of the rows. They represent the function :math:`\Phi(X)'A`, whose
    scores are :math:`KA`. The inner product of two functions is :math:`\operatorname{tr}(A'KB)`.
    Ridge and nuclear norm apply to the function. The adjoint :math:`\Phi(X)'R` of a matrix R has
    the coefficients R.

    Parameters
    ----------
    K : array (n_samples, n_samples), or KernelValues
        Symmetric positive semidefinite matrix. In single precision it takes half of the memory.
        Products are always computed in double precision.
    exact_rows : callable, default=None
        Function from an index of rows to their kernel values in double precision. None means that
        the rows of K are exact.

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
        """Squared norms of the rows in the space of functions: the diagonal of K, (n_samples,)."""
        if isinstance(self.K, np.ndarray):
            return np.diagonal(self.K).astype(np.float64)
        return np.concatenate([np.diagonal(self.K[part], part.start) for part in self._parts()])

    def rows_of(self, index: Any) -> FloatArray:
        """Return some rows of K, in double precision, for a slice or an array of indices.

        The result (n_rows, n_samples) may be a view of K.

        Returns
        -------
        array (n_rows, n_samples)
        """
        return np.asarray(self.K[index]).astype(np.float64, copy=False)

    def _parts(self) -> Iterator[slice]:
        """Yield slices of rows, in order, whose kernel values take at most `PART_BYTES`.

        A slice has at least one row. The last one may end beyond the rows.
        """
        step = max(1, PART_BYTES // (8 * max(self.shape[0], 1)))
        return (slice(start, start + step) for start in range(0, self.shape[0], step))

    def visit_rows(
        self, order: IntArray, Y: IntArray, weights: FloatArray, terms: tuple[Any, ...], ridge: float,
        W: FloatArray, dual_scores: FloatArray,
    ) -> float:  # fmt: skip
        """Maximise the dual over one row after the other; change W and the dual scores in place.

        W has the coefficients of the rows. The arguments are those of the base class. The scores of
        a block of rows are computed at once. Each visit then corrects the scores of the rows that
        follow.
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
        self.columns_multiplied += W.shape[1]
        return visited

    def squared_norm(self, W: FloatArray, row_scores: Callable[[slice], FloatArray]) -> float:
        """Return the squared norm of the function with the coefficients W, whose scores are given."""
        return max(float(np.vdot(W, row_scores(slice(None)))), 0.0)

    def inner(self, U: FloatArray, V: FloatArray) -> float:
        """Return the inner product of the functions with the coefficients U and V."""
        return float(np.vdot(U, self.scores(V)))

    def label_gram(self, V: FloatArray) -> FloatArray:
        """Return V' K V: (n_labels, n_labels), exactly symmetric."""
        gram = V.T @ self.scores(V)
        return 0.5 * (gram + gram.T)

    def _product(self, W: FloatArray) -> FloatArray:
        """Return K @ W, a new array in double precision.

        If K is not stored in this precision, blocks of rows are computed.
        """
        if isinstance(self.K, np.ndarray) and self.K.dtype == np.float64:
            return self.K @ W
        return np.vstack([self.rows_of(part) @ W for part in self._parts()])

    def exact_product(self, V: FloatArray) -> FloatArray:
        """Return K @ V, from kernel values in double precision.

        Parameters
        ----------
        V : array (n_samples, n_columns)

        Returns
        -------
        array (n_samples, n_columns)
        """
        return np.vstack([self.exact_rows(part) @ V for part in self._parts()])

    def exact_row_norms(self) -> FloatArray:
        """Return the Euclidean norms of the rows of K, from exact values: (n_samples,)."""
        return np.sqrt(np.concatenate([squares(self.exact_rows(part), axis=1) for part in self._parts()]))

    def _adjoint(self, R: FloatArray) -> FloatArray:
        """Return a copy of R (n_samples, n_labels): the coefficients of the function Phi(X)' R."""
        return R.copy()


@dataclass(frozen=True)
class KernelValues:
    """A kernel matrix that is not stored: its values are computed each time they are used.

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
        """The shape of the matrix."""
        return self.n_samples, self.n_samples

    def __getitem__(self, index: Any) -> FloatArray:
        """Return the kernel values of some rows with all rows: a new array (n_rows, n_samples)."""
        return self.compute(index)


def kernel_design(compute: Callable[[Any], FloatArray], n_samples: int, memory: int | None = None) -> KernelDesign:
    """Return the design of a kernel matrix, stored in a form that fits into memory.

    It is stored in double precision if that takes at most :data:`IN_DOUBLE_PRECISION` bytes. It is
    stored in single precision if that takes at most half of the memory. Otherwise its rows are
    computed each time they are visited.

    Parameters
    ----------
    compute : callable
        Function from an index of rows to their kernel values with all rows.
    n_samples : int
    memory : int, default=None
        Number of available bytes. None means that it is not known, and that the values are stored.

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
    """Return the type in which :func:`kernel_design` stores kernel values, or None if it does not store them.

    Parameters
    ----------
    n_samples : int
    memory : int, default=None
        Number of available bytes. None means that it is not known, and that the values are stored.
    """
    if 8 * n_samples**2 <= IN_DOUBLE_PRECISION:
        return np.dtype(np.float64)
    fits = memory is None or 8 * n_samples**2 <= memory
    return np.dtype(np.float32) if fits else None
