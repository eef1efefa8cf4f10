"""Gram matrices, and features whose inner products come near them."""

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.cluster import MiniBatchKMeans
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# A kernel value is off by up to a few 1e-16 times this, where gamma times the square of a feature is as large.
FAR = 1e4
KERNELS = ("linear", "rbf", "poly", "precomputed")
# Approximations, and the kernels that each of them has.
APPROXIMATIONS = {"nystroem": ("rbf", "poly"), "fourier": ("rbf",)}


def gram(X, Z=None, *, kernel, gamma=None, degree=3, coef0=1.0):
    """Kernel values between the rows of X and of Z (of X itself if Z is None), in float64.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable
        A callable takes two arrays of rows and returns the matrix of their kernel values.
    gamma : float or None
        None means 1 / n_features.
    """
    if kernel == "precomputed":
        return _dense(X)
    if callable(kernel):
        return _called(kernel, X, X if Z is None else Z)
    # Of features in single precision the values are in double, too: they are what a certificate speaks of.
    X, Z = (None if side is None else side.astype(np.float64, copy=False) for side in (X, Z))
    if kernel == "linear":
        return linear_kernel(X, Z)
    gamma = 1.0 / X.shape[1] if gamma is None else gamma
    if kernel == "rbf":
        return _rbf(X, X if Z is None else Z, gamma)
    return polynomial_kernel(X, Z, gamma=gamma, degree=degree, coef0=coef0)


def _rbf(X, Z, gamma):
    r"""exp(-gamma |x - z|^2), with products where they are exact enough and with differences where they are not.

    :math:`|x|^2 + |z|^2 - 2x'z` is off by the rounding of :math:`|x|^2`, all of the distance where a column is far from 0:
    such columns have a factor of their own.
    """
    far = _is_far(gamma, X) | _is_far(gamma, Z)
    if not far.any():
        return rbf_kernel(X, None if Z is X else Z, gamma=gamma)
    near = np.flatnonzero(~far)
    K = cdist(*(_dense(side[:, np.flatnonzero(far)]) for side in (X, Z)), "sqeuclidean")
    K = np.exp(np.multiply(K, -gamma, out=K), out=K)
    return K * rbf_kernel(X[:, near], Z[:, near], gamma=gamma) if len(near) else K


def _is_far(gamma, X):
    """Whether each column holds values so far from 0 that the rounding of their squares shows in the kernel."""
    largest = abs(X).max(axis=0)
    largest = np.ravel(largest.toarray() if sparse.issparse(largest) else largest).astype(np.float64)
    return gamma * largest**2 > FAR


def _dense(X):
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def _called(kernel, X, Z):
    K = np.asarray(kernel(X, Z), dtype=np.float64)
    if K.shape != (X.shape[0], Z.shape[0]):
        raise ValueError(
            f"The kernel function must return one value per pair of rows, shape {(X.shape[0], Z.shape[0])}. Got {K.shape}."
        )
    return K


def fit_feature_map(
    X, approximation, n_components, *, kernel, gamma=None, degree=3, coef0=1.0, random_state=None, landmarks="kmeans"
):
    """A fitted scikit-learn transformer to features whose inner products are near the kernel values.

    Parameters
    ----------
    approximation : {"nystroem", "fourier"}
        `sklearn.kernel_approximation.Nystroem` over landmarks, or its `RBFSampler`.
    n_components : int
        Features; landmarks are no more than there are rows.
    landmarks : {"kmeans", "uniform"}
        Centres of clusters of the rows, or a sample of the rows.
    """
    gamma = 1.0 / X.shape[1] if gamma is None else gamma
    if kernel == "rbf" and not sparse.issparse(X) and _is_far(gamma, X).any():
        # Distances do not notice a shift, their rounding does.
        shift = StandardScaler(with_std=False).fit(X)
        of_shifted = {"kernel": kernel, "gamma": gamma, "random_state": random_state, "landmarks": landmarks}
        return make_pipeline(shift, _feature_map(shift.transform(X), approximation, n_components, **of_shifted))
    return _feature_map(X, approximation, n_components, kernel, gamma, degree, coef0, random_state, landmarks)


def _feature_map(
    X, approximation, n_components, kernel, gamma, degree=3, coef0=1.0, random_state=None, landmarks="kmeans"
):
    if approximation == "fourier":
        return RBFSampler(gamma=gamma, n_components=n_components, random_state=random_state).fit(X)
    parameters = {"gamma": gamma} if kernel == "rbf" else {"gamma": gamma, "degree": degree, "coef0": coef0}
    kernel = {"poly": "polynomial"}.get(kernel, kernel)
    if landmarks == "kmeans" and n_components < X.shape[0]:
        X = _cluster_centres(X, n_components, random_state)
    n_components = min(n_components, X.shape[0])
    return Nystroem(kernel=kernel, n_components=n_components, random_state=random_state, **parameters).fit(X)


def _cluster_centres(X, n_clusters, random_state):
    # Ten rows for each centre are enough to place it.
    size = max(1024, n_clusters)
    model = MiniBatchKMeans(
        n_clusters, init="random", n_init=1, max_iter=10, batch_size=size, init_size=3 * size, random_state=random_state
    )
    return model.fit(X).cluster_centers_


def check_gram(K):
    """Return the symmetric part of a training kernel matrix; refuse one that is not square, finite and symmetric."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"A training kernel matrix must be square, one row and one column per sample. Got {K.shape}.")
    if not np.isfinite(K).all():
        raise ValueError(
            f"A kernel matrix must be finite. Got {np.count_nonzero(~np.isfinite(K))} NaN or infinite values."
        )
    skew, size = float(np.max(np.abs(K - K.T))), float(np.max(np.abs(K)))
    if skew > 1e-6 * size:
        raise ValueError(
            f"A kernel matrix must be symmetric. Got entries that differ by {skew:.3g} from their mirror image."
        )
    return 0.5 * (K + K.T)
