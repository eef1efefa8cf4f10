"""Gram matrices."""

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

KERNELS = ("linear", "rbf", "poly", "precomputed")


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
        return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    if callable(kernel):
        return _called(kernel, X, X if Z is None else Z)
    if kernel == "linear":
        return linear_kernel(X, Z).astype(np.float64, copy=False)
    gamma = 1.0 / X.shape[1] if gamma is None else gamma
    if kernel == "rbf":
        return rbf_kernel(X, Z, gamma=gamma).astype(np.float64, copy=False)
    return polynomial_kernel(X, Z, gamma=gamma, degree=degree, coef0=coef0).astype(np.float64, copy=False)


def _called(kernel, X, Z):
    K = np.asarray(kernel(X, Z), dtype=np.float64)
    if K.shape != (X.shape[0], Z.shape[0]):
        raise ValueError(
            f"The kernel function must return one value per pair of rows, shape {(X.shape[0], Z.shape[0])}. Got {K.shape}."
        )
    return K


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
