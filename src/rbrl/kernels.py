"""Kernel values between rows, and feature maps whose inner products approximate them."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from rbrl._common.linalg import squares
from rbrl._common.typing import BoolArray, FloatArray, Matrix, issparse

# Largest gamma times squared feature for which squared norms are accurate enough: the rounding error
# of a kernel value is a few 1e-16 times this product.
LARGEST_SCALED_SQUARE = 1e4
# Side of the tiles in which a matrix is compared with its transpose: 0.5 MB, in the processor's cache.
SYMMETRY_TILE = 256
KERNELS = ("linear", "rbf", "poly", "precomputed")
# Kernels with the parameter gamma.
WITH_WIDTH = ("rbf", "poly")
# Kernels that each approximation supports.
APPROXIMATIONS = {"nystroem": ("rbf", "poly"), "fourier": ("rbf",)}


def gram(
    X: Matrix, Z: Matrix | None = None, *, kernel: str | Callable[..., Any], gamma: float | None = None, degree: float = 3,
    coef0: float = 1.0,
) -> FloatArray:  # fmt: skip
    """Return the kernel values between the rows of X and of Z, or of X itself, in float64.

    They are x'z for "linear", exp(-gamma |x - z|^2) for "rbf" and (gamma x'z + coef0)^degree for "poly".
    For "precomputed", X has the kernel values and is returned.

    Parameters
    ----------
    X, Z : arrays or CSR matrices (n_rows, n_features)
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable
        Kernel. A callable takes two arrays of rows and returns the matrix of their kernel values.
    gamma : float or None
        Factor of squared distances or of inner products; None means 1 / n_features.
    degree, coef0 : float
        Parameters of "poly".

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
    r"""Kernel values between fixed rows Z and any other rows.

    Values that depend only on Z are computed once, so that a single row costs no more than its
    product with Z. The squared distances of "rbf", :math:`|x|^2 + |z|^2 - 2x'z`, have the rounding
    error of :math:`|x|^2`, which may exceed the distance if a column is far from 0. The distances in
    such columns are computed from differences.

    Parameters
    ----------
    Z : array or CSR matrix (n_rows, n_features)
    kernel, gamma, degree, coef0
        Parameters of :func:`gram`.

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
        self.parameters: dict[str, Any] = {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}
        self._gamma = 1.0 / Z.shape[1] if gamma is None else gamma
        # Kernel values are in double precision even for features in single precision, because the
        # certificate refers to them.
        self.Z: Any = Z if callable(kernel) else Z.astype(np.float64, copy=False)
        # With this format, only the features of a sparse row are visited.
        self._transposed = self.Z.T.tocsr() if issparse(self.Z) else self.Z.T
        if kernel == "rbf":
            self._squares = squares(self.Z, axis=1)
            self._has_far_columns = _has_far_columns(self._gamma, self.Z)

    def values(self, X: Any) -> FloatArray:
        """Return the kernel values between the rows of X and those of Z; X itself if they are precomputed.

        Parameters
        ----------
        X : array or CSR matrix (n_samples, n_features)

        Returns
        -------
        array (n_samples, n_rows)
        """
        kernel = self.parameters["kernel"]
        if callable(kernel):
            K: FloatArray = np.asarray(kernel(X, self.Z), dtype=np.float64)
            shape = (X.shape[0], self.Z.shape[0])
            if K.shape != shape:
                raise ValueError(
                    f"The kernel function must return one value per pair of rows, shape {shape}. Got {K.shape}."
                )
            return K
        if kernel == "precomputed":
            return _dense(X)
        X = X.astype(np.float64, copy=False)
        if kernel == "rbf" and (self._has_far_columns or _has_far_columns(self._gamma, X)):
            return self._from_differences(X)
        K = _dense(X @ self._transposed)
        if kernel == "poly":
            K *= self._gamma
            K += self.parameters["coef0"]
            K **= self.parameters["degree"]
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

    def of_rows(self, index: Any) -> FloatArray:
        """Return the kernel values between some of the rows Z and all of them.

        Returns
        -------
        array (n_indexed, n_rows)
        """
        return self.values(self.Z[index])

    def _from_differences(self, X: Matrix) -> FloatArray:
        """Return the values of "rbf" as a product of two factors: of the columns far from 0, and the others.

        X (n_samples, n_features) is float64. The result is a new array.
        """
        far = _far_columns(self._gamma, X) | _far_columns(self._gamma, self.Z)
        K = cdist(*(_dense(side[:, np.flatnonzero(far)]) for side in (X, self.Z)), "sqeuclidean")
        K = np.exp(np.multiply(K, -self._gamma, out=K), out=K)
        near = np.flatnonzero(~far)
        return K * gram(X[:, near], self.Z[:, near], kernel="rbf", gamma=self._gamma) if len(near) else K


def _has_far_columns(gamma: float, X: Matrix) -> bool:
    """Return whether any column is far from 0, in one pass and without a copy of X."""
    values = X.data if issparse(X) else X
    return bool(values.size and gamma * max(values.max(), -values.min()) ** 2 > LARGEST_SCALED_SQUARE)


def _far_columns(gamma: float, X: Matrix) -> BoolArray:
    """Return the mask (n_features,) of columns so far from 0 that their squares are too inaccurate."""
    return gamma * _dense(abs(X).max(axis=0)).ravel() ** 2 > LARGEST_SCALED_SQUARE


def _dense(X: Matrix) -> FloatArray:
    """Return X as a dense array in float64, without a copy if it is one."""
    return np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)


def fit_feature_map(
    X: Matrix, approximation: str, n_components: int, *, kernel: str, gamma: float | None = None, degree: float = 3,
    coef0: float = 1.0, random_state: Any = None,
) -> Any:  # fmt: skip
    """Fit a scikit-learn transformer whose features have inner products near the kernel values.

    Parameters
    ----------
    approximation : {"nystroem", "fourier"}
        Approximation: scikit-learn's `Nystroem` over landmarks, or its `RBFSampler`. Landmarks are
        centres of clusters of rows.
    n_components : int
        Number of features. There are at most as many landmarks as rows.
    kernel, gamma, degree, coef0
        Parameters of :func:`gram`. "fourier" approximates "rbf" only.
    random_state : int, RandomState or None
        Seed of the approximation.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.kernels import fit_feature_map
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> fit_feature_map(X, "nystroem", 3, kernel="rbf", random_state=0).transform(X).shape
    (6, 3)
    """
    # These imports, which few users need, would take a third of the time to import rbrl.
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    gamma = 1.0 / X.shape[1] if gamma is None else gamma
    scaler = None
    if kernel == "rbf" and not issparse(X) and _has_far_columns(gamma, X):
        # A shift does not change distances, but reduces their rounding errors.
        scaler = StandardScaler(with_std=False).fit(X)
        X = scaler.transform(X)
    if approximation == "fourier":
        feature_map = RBFSampler(gamma=gamma, n_components=n_components, random_state=random_state).fit(X)
    else:
        X = _cluster_centres(X, n_components, random_state) if n_components < X.shape[0] else X
        powers = {} if kernel == "rbf" else {"degree": degree, "coef0": coef0}
        feature_map = Nystroem(kernel, gamma=gamma, n_components=X.shape[0], random_state=random_state, **powers).fit(X)
    return make_pipeline(scaler, feature_map) if scaler else feature_map


def _cluster_centres(X: Matrix, n_clusters: int, random_state: Any) -> FloatArray:
    """Return the centres of clusters of rows, the landmarks of Nyström features: (n_clusters, n_features), a new array.

    There must be at least as many rows as clusters.
    """
    from sklearn.cluster import MiniBatchKMeans

    # A landmark need not be an exact centre. In ten batches, each centre has seen about ten rows.
    options = {"init": "random", "n_init": 1, "max_iter": 10, "batch_size": max(1024, n_clusters)}
    return MiniBatchKMeans(n_clusters, random_state=random_state, **options).fit(X).cluster_centers_


def check_finite_values(K: FloatArray) -> None:
    """Raise ValueError if a kernel value is not a finite number."""
    # The largest and the smallest value show it in one pass each, without an array of truth values.
    if not (np.isfinite(K.max(initial=0.0)) and np.isfinite(K.min(initial=0.0))):
        n_missing = np.count_nonzero(~np.isfinite(K))
        raise ValueError(f"A kernel matrix must be finite. Got {n_missing} NaN or infinite values.")


def check_gram(K: FloatArray) -> FloatArray:
    """Return the symmetric part of a training kernel matrix, a new array, after checking its shape and values.

    Mirrored entries may differ by at most 1e-6 of the largest absolute value.
    """
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"A training kernel matrix must be square, one row and one column per sample. Got {K.shape}.")
    check_finite_values(K)
    size = max(K.max(initial=0.0), -K.min(initial=0.0))
    symmetric = np.empty(K.shape)
    skew = 0.0
    tiles = [slice(start, start + SYMMETRY_TILE) for start in range(0, len(K), SYMMETRY_TILE)]
    for rows, columns in product(tiles, tiles):
        tile = K[rows, columns]
        mirrored = K[columns, rows].T
        symmetric[rows, columns] = 0.5 * (tile + mirrored)
        skew = max(skew, float(np.max(np.abs(tile - mirrored))))
    if skew > 1e-6 * size:
        raise ValueError(
            f"A kernel matrix must be symmetric. Got entries that differ by {skew:.3g} from their mirror image."
        )
    return symmetric
