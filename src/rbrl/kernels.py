"""Kernel values between rows, and features whose inner products come near them."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from rbrl._common.linalg import squares
from rbrl._common.typing import BoolArray, FloatArray, Matrix, issparse

# A kernel value is off by up to a few 1e-16 times this, where gamma times the square of a feature is as large.
FAR = 1e4
# Side of the squares in which a matrix is compared with its mirror image: 0.5 MB, in the processor's cache.
TILE = 256
KERNELS = ("linear", "rbf", "poly", "precomputed")
# Those that have a gamma.
WITH_WIDTH = ("rbf", "poly")
# Approximations, and the kernels that each of them has.
APPROXIMATIONS = {"nystroem": ("rbf", "poly"), "fourier": ("rbf",)}


def gram(
    X: Matrix, Z: Matrix | None = None, *, kernel: str | Callable[..., Any], gamma: float | None = None, degree: float = 3,
    coef0: float = 1.0,
) -> FloatArray:  # fmt: skip
    """Kernel values between the rows of X and of Z (of X itself if Z is None), in float64.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable
        A callable takes two arrays of rows and returns the matrix of their kernel values.
    gamma : float or None
        None means 1 / n_features.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.kernels import gram
    >>> gram(np.array([[0.0], [1.0]]), kernel="rbf", gamma=1.0).round(3).tolist()
    [[1.0, 0.368], [0.368, 1.0]]
    """
    rows = KernelRows(X if Z is None else Z, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0)
    return rows.values(rows.Z if Z is None else X)


class KernelRows:
    r"""Kernel values with rows that stay: what depends on these alone is computed once, and nothing is checked again.

    A single row is then as quick as its product with the others. The squared distances of "rbf",
    :math:`|x|^2 + |z|^2 - 2x'z`, are off by the rounding of :math:`|x|^2`, all of the distance where a column is far from
    0: such columns have a factor of their own, from differences.

    Parameters
    ----------
    Z : array or CSR matrix (n_rows, n_features)
    kernel, gamma, degree, coef0
        As for :func:`gram`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.kernels import KernelRows
    >>> rows = KernelRows(np.array([[0.0], [1.0]]), kernel="rbf", gamma=1.0)
    >>> rows.values(np.array([[1.0]])).round(3).tolist()
    [[0.368, 1.0]]
    """

    def __init__(
        self, Z: Matrix, *, kernel: str | Callable[..., Any], gamma: float | None = None, degree: float = 3,
        coef0: float = 1.0,
    ) -> None:  # fmt: skip
        self.shape: dict[str, Any] = {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}
        self._gamma = 1.0 / Z.shape[1] if gamma is None else gamma
        # Of features in single precision the values are in double, too: they are what a certificate speaks of.
        self.Z: Any = Z if callable(kernel) else Z.astype(np.float64, copy=False)
        # Of a sparse row only the features that it has are looked up.
        self._transposed = self.Z.T.tocsr() if issparse(self.Z) else self.Z.T
        if kernel == "rbf":
            self._squares, self._far = squares(self.Z, axis=1), _reaches_far(self._gamma, self.Z)

    def values(self, X: Any) -> FloatArray:
        """Kernel values between the rows of X and these.

        Parameters
        ----------
        X : array or CSR matrix (n_samples, n_features)

        Returns
        -------
        array (n_samples, n_rows)
        """
        kernel = self.shape["kernel"]
        if callable(kernel):
            given, shape = np.asarray(kernel(X, self.Z), dtype=np.float64), (X.shape[0], self.Z.shape[0])
            if given.shape != shape:
                raise ValueError(
                    f"The kernel function must return one value per pair of rows, shape {shape}. Got {given.shape}."
                )
            return given
        if kernel == "precomputed":
            return _dense(X)
        X = X.astype(np.float64, copy=False)
        if kernel == "rbf" and (self._far or _reaches_far(self._gamma, X)):
            return self._from_differences(X)
        K = _dense(X @ self._transposed)
        if kernel == "poly":
            K *= self._gamma
            K += self.shape["coef0"]
            K **= self.shape["degree"]
        elif kernel == "rbf":
            K *= -2.0
            K += squares(X, axis=1)[:, None]
            K += self._squares
            np.maximum(K, 0.0, out=K)
            if X is self.Z:
                np.fill_diagonal(K, 0.0)
            K *= -self._gamma
            np.exp(K, out=K)
        return K

    def _from_differences(self, X: Matrix) -> FloatArray:
        """Values of "rbf" where columns are far from 0: a factor for these columns, and one for the others."""
        far = _is_far(self._gamma, X) | _is_far(self._gamma, self.Z)
        K = cdist(*(_dense(side[:, np.flatnonzero(far)]) for side in (X, self.Z)), "sqeuclidean")
        K = np.exp(np.multiply(K, -self._gamma, out=K), out=K)
        near = np.flatnonzero(~far)
        return K * gram(X[:, near], self.Z[:, near], kernel="rbf", gamma=self._gamma) if len(near) else K


def _reaches_far(gamma: float, X: Matrix) -> bool:
    """Whether any column is far from 0: in one pass, without a copy."""
    values = X.data if issparse(X) else X
    return bool(values.size and gamma * max(values.max(), -values.min()) ** 2 > FAR)


def _is_far(gamma: float, X: Matrix) -> BoolArray:
    """Whether each column holds values so far from 0 that the rounding of their squares shows in the kernel."""
    return gamma * _dense(abs(X).max(axis=0)).ravel() ** 2 > FAR


def _dense(X: Matrix) -> FloatArray:
    return np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)


def fit_feature_map(
    X: Matrix, approximation: str, n_components: int, *, kernel: str, gamma: float | None = None, degree: float = 3,
    coef0: float = 1.0, random_state: Any = None,
) -> Any:  # fmt: skip
    """A fitted scikit-learn transformer to features whose inner products are near the kernel values.

    Parameters
    ----------
    approximation : {"nystroem", "fourier"}
        `sklearn.kernel_approximation.Nystroem` over landmarks, or its `RBFSampler`.
    n_components : int
        Features; landmarks, the centres of clusters of the rows, are no more than there are rows.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.kernels import fit_feature_map
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> fit_feature_map(X, "nystroem", 3, kernel="rbf", random_state=0).transform(X).shape
    (6, 3)
    """
    # Here, and in the next function: few ask for them, and a third of the time to import rbrl would be theirs.
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    gamma, before = 1.0 / X.shape[1] if gamma is None else gamma, []
    if kernel == "rbf" and not issparse(X) and _reaches_far(gamma, X):
        # Distances do not notice a shift, their rounding does.
        before = [StandardScaler(with_std=False).fit(X)]
        X = before[0].transform(X)
    if approximation == "fourier":
        fitted = RBFSampler(gamma=gamma, n_components=n_components, random_state=random_state).fit(X)
    else:
        X = _cluster_centres(X, n_components, random_state) if n_components < X.shape[0] else X
        shape = {} if kernel == "rbf" else {"degree": degree, "coef0": coef0}
        fitted = Nystroem(kernel, gamma=gamma, n_components=X.shape[0], random_state=random_state, **shape).fit(X)
    return make_pipeline(*before, fitted) if before else fitted


def _cluster_centres(X: Matrix, n_clusters: int, random_state: Any) -> FloatArray:
    from sklearn.cluster import MiniBatchKMeans

    # Ten rows for each centre are enough to place it.
    options = {"init": "random", "n_init": 1, "max_iter": 10, "batch_size": max(1024, n_clusters)}
    return MiniBatchKMeans(n_clusters, random_state=random_state, **options).fit(X).cluster_centers_


def check_finite_values(K: FloatArray) -> None:
    """Refuse kernel values that are not finite numbers."""
    # The largest and the smallest value show it in one pass each, without an array of truth values.
    if not (np.isfinite(K.max(initial=0.0)) and np.isfinite(K.min(initial=0.0))):
        n_missing = np.count_nonzero(~np.isfinite(K))
        raise ValueError(f"A kernel matrix must be finite. Got {n_missing} NaN or infinite values.")


def check_gram(K: FloatArray) -> FloatArray:
    """Return the symmetric part of a training kernel matrix; refuse one that is not square, finite and symmetric."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"A training kernel matrix must be square, one row and one column per sample. Got {K.shape}.")
    check_finite_values(K)
    size = max(K.max(initial=0.0), -K.min(initial=0.0))
    symmetric, skew = np.empty(K.shape), 0.0
    tiles = [slice(start, start + TILE) for start in range(0, len(K), TILE)]
    for rows, columns in product(tiles, tiles):
        tile, mirrored = K[rows, columns], K[columns, rows].T
        symmetric[rows, columns] = 0.5 * (tile + mirrored)
        skew = max(skew, float(np.max(np.abs(tile - mirrored))))
    if skew > 1e-6 * size:
        raise ValueError(
            f"A kernel matrix must be symmetric. Got entries that differ by {skew:.3g} from their mirror image."
        )
    return symmetric
