"""The parameters of a kernel, the attributes in which a fitted model keeps its coefficients, and its scores."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from rbrl._common.checks import check_choice, check_number
from rbrl._common.frames import as_dense
from rbrl._common.linalg import singular_values
from rbrl._common.matrices import LowRankMatrix
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl._loops import rows
from rbrl.kernels import APPROXIMATIONS, KERNELS, KernelRows, gram
from rbrl.problem.design import last_row_times
from rbrl.scales import NUCLEAR_WITH_MAX_RANK, WIDTHS, intercept_column

# A singular value counts towards the rank above this share of the largest.
RANK_FLOOR = 1e-6
# Attributes in which a linear model stores its weights, in one of three forms.
WEIGHT_ATTRIBUTES = ("coef_", "intercept_", "label_factors_", "feature_factors_")
# Number of kernel values that are computed at a time: 128 MB.
KERNEL_BLOCK_ENTRIES = 2**24


def store_weights(model: Any, W: Any) -> None:
    """Store the weights of features in a linear model, in the form in which they are given.

    An array becomes `coef_`, of which it is a view. A sparse matrix becomes the sparse matrix `coef_`.
    Factors become `label_factors_` and `feature_factors_`, from which `coef_` is computed on request.

    Parameters
    ----------
    model : classifier
    W : array, CSR matrix or LowRankMatrix (n_columns, n_labels)
        Weights, with those of the intercept in the last row.
    """
    for name in WEIGHT_ATTRIBUTES:
        vars(model).pop(name, None)
    n_features = W.shape[0] - model.fit_intercept
    if isinstance(W, LowRankMatrix):
        # A column that only the intercepts use is left out.
        is_used = W.left[:n_features].any(axis=0)
        model.label_factors_ = np.ascontiguousarray(W.right[:, is_used])
        model.feature_factors_ = np.ascontiguousarray(W.left[:n_features, is_used])
        last_row = W.left[n_features:] @ W.right.T
    else:
        # Products with rows need the weights in the order of W, so that the transpose is not copied.
        model.coef_ = W[:n_features].T
        last_row = as_dense(W[n_features:])
    model.intercept_ = last_row[0].copy() if len(last_row) else np.zeros(W.shape[1], dtype=W.dtype)


def stored_weights(model: Any) -> Any:
    """Return the weights that :func:`store_weights` has stored, in double precision and in the same form.

    Parameters
    ----------
    model : classifier

    Returns
    -------
    array, CSR matrix or LowRankMatrix (n_columns, n_labels)
        Copy of the weights; None without a fit of a linear model.
    """
    if has_factors(model):
        left = model.feature_factors_.astype(np.float64)
        right = model.label_factors_.astype(np.float64)
        if model.fit_intercept:
            # The intercepts are a factor of their own.
            left = np.vstack([np.pad(left, ((0, 0), (0, 1))), np.append(np.zeros(left.shape[1]), 1.0)])
            right = np.column_stack([right, model.intercept_])
        return LowRankMatrix(left, right)
    if not hasattr(model, "coef_"):
        return None
    parts = [model.coef_, model.intercept_[:, None]] if model.fit_intercept else [model.coef_]
    if issparse(model.coef_):
        return sparse.hstack(parts, format="csc", dtype=np.float64).T
    return np.hstack(parts).T.astype(np.float64)


def dense_weights(model: Any) -> FloatArray | None:
    """Return a copy of the weights of :func:`stored_weights` as an array; None without a fit of a linear model.

    Parameters
    ----------
    model : classifier

    Returns
    -------
    array (n_columns, n_labels) or None
    """
    W = stored_weights(model)
    if W is None:
        return None
    return W.to_dense() if isinstance(W, LowRankMatrix) else as_dense(W)


def compute_rank(model: Any) -> int:
    """Return the rank of the stored weights of a linear model, in the coordinates of its penalties.

    Parameters
    ----------
    model : fitted classifier

    Returns
    -------
    int
    """
    W = stored_weights(model)
    if W is None:
        raise AttributeError(f"This {type(model).__name__} has no rank_: it is not fitted.")
    scale = intercept_column(model.ridge_, model.intercept_ridge) if model.fit_intercept else 1.0
    if isinstance(W, LowRankMatrix):
        return count_rank(LowRankMatrix(last_row_times(W.left, 1 / scale), W.right).singular_values())
    return count_rank(singular_values(last_row_times(as_dense(W), 1 / scale)))


def count_rank(sigma: FloatArray) -> int:
    """Return the number of singular values that are not negligible."""
    return int(np.count_nonzero(sigma > RANK_FLOOR * sigma.max(initial=0.0)))


def has_factors(model: Any) -> bool:
    """Return whether the weights of a linear model are stored as two factors."""
    return "label_factors_" in vars(model)


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
    if has_factors(model):
        scores = as_dense(X @ model.feature_factors_) @ model.label_factors_.T
    elif issparse(X) and X.shape[0] == 1 and not issparse(model.coef_):
        # X @ coef_.T would make SciPy copy all weights into another memory order.
        scores = np.asarray(model.coef_[:, X.indices] @ X.data)[None]
    else:
        scores = as_dense(X @ model.coef_.T)
    scores += model.intercept_
    return scores


def find_best_labels(model: Any, X: Any, k: int) -> tuple[IntArray, FloatArray]:
    """Return the k best labels of sparse rows and their scores, by a linear model with sparse weights.

    Only the scores of one row are in memory. The weights that its features do not have are not read.

    Parameters
    ----------
    model : fitted classifier
        It has a sparse `coef_`. Its threshold is subtracted from the scores.
    X : CSR matrix (n_samples, n_features)
    k : int
        Number from 1 to the number of labels.

    Returns
    -------
    labels : array (n_samples, k) of int
        Columns of the labels, the best label first. Of equal scores, the first column comes first.
    scores : array (n_samples, k)
    """
    W = model.coef_.T
    if W.format != "csr":
        W = W.tocsr()
    labels = np.empty((X.shape[0], k), dtype=np.int64)
    best = np.empty((X.shape[0], k))
    constants = np.asarray(model.intercept_ - model.threshold_, dtype=np.float64)
    indices = (A.astype(W.indices.dtype, copy=False) for A in (X.indices, X.indptr))
    rows.best_sparse_scores(X.data, *indices, W.data, W.indices, W.indptr, constants, labels, best)
    return labels, best.astype(X.dtype, copy=False)


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
