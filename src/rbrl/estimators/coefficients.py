"""The parameters of a kernel, the attributes in which a fitted model keeps its coefficients, and its scores."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rbrl._common.checks import check_choice, check_number
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl.kernels import APPROXIMATIONS, KERNELS, KernelRows, gram
from rbrl.scales import NUCLEAR_WITH_MAX_RANK, WIDTHS

# Number of kernel values that are computed at a time: 128 MB.
KERNEL_BLOCK_ENTRIES = 2**24


def store_weights(model: Any, W: FloatArray) -> None:
    """Store the weights of features in a linear model. `coef_` is a view of W.

    Parameters
    ----------
    model : classifier
    W : array (n_columns, n_labels)
        Weights, with those of the intercept in the last row.
    """
    n_features = len(W) - model.fit_intercept
    # Products with rows need the weights in the order of W, so that the transpose is not copied.
    model.coef_ = W[:n_features].T
    model.intercept_ = W[-1].copy() if model.fit_intercept else np.zeros(W.shape[1], dtype=W.dtype)


def stored_weights(model: Any) -> FloatArray | None:
    """Return a copy of the weights that :func:`store_weights` has stored; None without a fit of a linear model.

    Parameters
    ----------
    model : classifier

    Returns
    -------
    array (n_columns, n_labels) or None
    """
    if not hasattr(model, "coef_"):
        return None
    parts = [model.coef_, model.intercept_[:, None]] if model.fit_intercept else [model.coef_]
    return np.hstack(parts).T.astype(np.float64)


def store_row_coefficients(model: Any, X: Matrix, rows: IntArray, coefficients: FloatArray) -> None:
    """Store X, without a copy, and the coefficients of some of its rows in a kernel model; the others are 0.

    Parameters
    ----------
    model : classifier
    X : array or CSR matrix (n_samples, n_features)
    rows : array of int
    coefficients : array (n_rows, n_labels)
    """
    model.dual_coef_ = np.zeros((X.shape[0], coefficients.shape[1]), dtype=coefficients.dtype)
    model.dual_coef_[rows] = coefficients
    model.X_fit_ = None if model.kernel == "precomputed" else X


def check_kernel(model: Any) -> None:
    """Check the parameters of a classifier that choose its kernel, and its approximation if there is one.

    Parameters
    ----------
    model : classifier
    """
    owner = type(model).__name__
    check_number(owner, "gamma", model.gamma, strict=True, words=WIDTHS)
    check_number(owner, "degree", model.degree, low=1, integer=True)
    check_number(owner, "coef0", model.coef0)
    if not callable(model.kernel):
        check_choice(owner, "kernel", model.kernel, KERNELS)
    if model.kernel == "precomputed" and getattr(model, "fit_intercept", False):
        raise ValueError(
            f"{owner} cannot add an intercept to kernel='precomputed'. Got fit_intercept={model.fit_intercept}; "
            "pass fit_intercept=False, and add 1 to every kernel value if you want the paper's constant feature."
        )
    if getattr(model, "approximation", None) is None:
        return
    check_choice(owner, "approximation", model.approximation, tuple(APPROXIMATIONS))
    check_number(owner, "n_components", model.n_components, low=1, integer=True)
    kernels = APPROXIMATIONS[str(model.approximation)]
    if not isinstance(model.kernel, str) or model.kernel not in kernels:
        raise ValueError(
            f"{owner} with approximation={model.approximation!r} needs kernel={' or '.join(map(repr, kernels))}. Got "
            f"kernel={model.kernel!r}; choose such a kernel, or approximation=None."
        )


def find_nuclear(model: Any) -> float:
    """Return the weight of the nuclear norm of a classifier as a number.

    Parameters
    ----------
    model : classifier

    Returns
    -------
    float
    """
    if not isinstance(model.nuclear, str):
        return float(model.nuclear)
    return 0.0 if model.max_rank is None else NUCLEAR_WITH_MAX_RANK


def kernel_parameters(model: Any, gamma: float | None = None) -> dict[str, Any]:
    """Return the parameters of :func:`rbrl.kernels.gram`.

    Parameters
    ----------
    model : classifier
    gamma : float, default=None
        Width of the kernel; None means the width of the last fit. In a model file of an earlier version without
        `gamma_`, it means the parameter `gamma`.

    Returns
    -------
    dict
    """
    width = getattr(model, "gamma_", model.gamma) if gamma is None else gamma
    return {"kernel": model.kernel, "gamma": width, "degree": model.degree, "coef0": model.coef0}


def kernel_values(model: Any, X: Matrix, Z: Matrix | None = None, gamma: float | None = None) -> FloatArray:
    """Return the kernel values of a classifier between the rows of X and of Z, or of X itself.

    Parameters
    ----------
    model : classifier
    X, Z : arrays or CSR matrices
    gamma : float, default=None
        Width of the kernel; None means the width of the last fit.

    Returns
    -------
    array (n_rows of X, n_rows of Z)
    """
    return gram(X, Z, **kernel_parameters(model, gamma))


def score_linear(model: Any, X: Matrix) -> FloatArray:
    """Return X @ coef_.T + intercept_, dense.

    Of a single sparse row, only the features that it has are looked up.

    Parameters
    ----------
    model : fitted classifier
    X : array or CSR matrix (n_samples, n_features)

    Returns
    -------
    array (n_samples, n_labels)
    """
    if issparse(X) and X.shape[0] == 1:
        # X @ coef_.T would make SciPy copy all weights into another memory order.
        scores = np.asarray(model.coef_[:, X.indices] @ X.data)[None]
    else:
        scores = np.asarray(X @ model.coef_.T)
    scores += model.intercept_
    return scores


def score_by_kernel(model: Any, X: Matrix) -> FloatArray:
    """Return the kernel values with the training rows times the coefficients, computed for some rows at a time.

    Parameters
    ----------
    model : fitted classifier
    X : array or CSR matrix (n_samples, n_features)

    Returns
    -------
    array (n_samples, n_labels)
    """
    step = max(1, KERNEL_BLOCK_ENTRIES // len(model.dual_coef_))
    blocks = (X[start : start + step] for start in range(0, X.shape[0], step))
    values = _dense_values if model.X_fit_ is None else _prepare_rows(model).values
    scores = np.vstack([values(block) @ model.dual_coef_ for block in blocks])
    return (scores + getattr(model, "intercept_", 0.0)).astype(X.dtype, copy=False)


def score_mapped_features(model: Any, X: Matrix) -> FloatArray:
    """Return the mapped features times their weights.

    Parameters
    ----------
    model : fitted classifier
    X : array or CSR matrix (n_samples, n_features)

    Returns
    -------
    array (n_samples, n_labels)
    """
    return (apply_feature_map(model.feature_map_, X) @ model.feature_coef_).astype(X.dtype, copy=False)


def apply_feature_map(feature_map: Any, X: Matrix) -> FloatArray:
    """Return the features of a fitted map, dense.

    Parameters
    ----------
    feature_map : fitted transformer
    X : array or CSR matrix (n_samples, n_features)

    Returns
    -------
    array (n_samples, n_components)
    """
    return _dense_values(feature_map.transform(X))


def _dense_values(X: Matrix) -> FloatArray:
    """Return X as a dense array in float64, without a copy if it is one."""
    return np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)


# The training rows of models, prepared for kernel values, with the coefficients that the models had then.
_prepared_rows: WeakKeyDictionary[Any, tuple[FloatArray, KernelRows]] = WeakKeyDictionary()


def _prepare_rows(model: Any) -> KernelRows:
    """Return the training rows of a kernel model, prepared at its first prediction.

    They are not part of its file, and are prepared again after another fit.
    """
    coefficients, rows = _prepared_rows.get(model, (None, None))
    if rows is None or coefficients is not model.dual_coef_ or rows.parameters != kernel_parameters(model):
        rows = KernelRows(model.X_fit_, **kernel_parameters(model))
        _prepared_rows[model] = model.dual_coef_, rows
    return rows
