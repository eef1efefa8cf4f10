"""The forms of a fitted model: weights of features, coefficients of training rows, or weights of mapped features.

A form computes the scores of a model, and stores the coefficients that a fit has found. :func:`form_of` is the one place
that chooses a form, by the kernel of the model.
"""

from abc import ABC, abstractmethod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rbrl._common.checks import check_choice, check_number
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl.kernels import KERNELS, KernelRows, gram
from rbrl.scales import WIDTHS

# Number of kernel values that are computed at a time: 128 MB.
KERNEL_BLOCK_ENTRIES = 2**24


class ModelForm(ABC):
    """The attributes in which a fitted model keeps its coefficients, and the scores that they give.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.estimators.forms import form_of
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = RBRLClassifier().fit(X, Y)
    >>> form_of(model).scores(model, X).shape, type(form_of(RBRLClassifier(kernel="rbf"))).__name__
    ((60, 4), 'KernelForm')
    """

    is_linear = False

    @abstractmethod
    def scores(self, model: Any, X: Matrix) -> FloatArray:
        """Return the scores of checked rows, as a new array.

        Parameters
        ----------
        model : fitted classifier
        X : array or CSR matrix (n_samples, n_features)

        Returns
        -------
        array (n_samples, n_labels)
        """

    @abstractmethod
    def coefficients(self, model: Any, rows: IntArray) -> FloatArray | None:
        """Return the coefficients of the last fit, as a start of the next one; None if there are none.

        Parameters
        ----------
        model : classifier
        rows : array of int
            Rows that take part in the next fit.

        Returns
        -------
        array or None
        """


class LinearForm(ModelForm):
    """Weights of the features in `coef_`, and `intercept_`."""

    is_linear = True

    def scores(self, model: Any, X: Matrix) -> FloatArray:
        """Return X @ coef_.T + intercept_."""
        scores = linear_scores(X, model.coef_)
        scores += model.intercept_
        return scores

    def coefficients(self, model: Any, rows: IntArray | None = None) -> FloatArray | None:
        """Return the weights (n_columns, n_labels), with those of the intercept in the last row."""
        if not hasattr(model, "coef_"):
            return None
        parts = [model.coef_, model.intercept_[:, None]] if model.fit_intercept else [model.coef_]
        return np.hstack(parts).T.astype(np.float64)

    def store(self, model: Any, W: FloatArray) -> None:
        """Store weights (n_columns, n_labels), with those of the intercept in the last row."""
        n_features = len(W) - model.fit_intercept
        # Products with rows need the weights in the order of W, so that the transpose is not copied.
        model.coef_ = W[:n_features].T
        model.intercept_ = W[-1].copy() if model.fit_intercept else np.zeros(W.shape[1], dtype=W.dtype)


class KernelForm(ModelForm):
    """Coefficients of the training rows in `dual_coef_`, with the rows in `X_fit_`, and perhaps `intercept_`."""

    def scores(self, model: Any, X: Matrix) -> FloatArray:
        """Return the kernel values with the training rows, times the coefficients, by some rows at a time."""
        step = max(1, KERNEL_BLOCK_ENTRIES // len(model.dual_coef_))
        blocks = (X[start : start + step] for start in range(0, X.shape[0], step))
        values = _dense_values if model.X_fit_ is None else _prepare_rows(model).values
        scores = np.vstack([values(block) @ model.dual_coef_ for block in blocks])
        return (scores + getattr(model, "intercept_", 0.0)).astype(X.dtype, copy=False)

    def coefficients(self, model: Any, rows: IntArray) -> FloatArray | None:
        """Return the coefficients of the given rows (n_rows, n_labels)."""
        known = getattr(model, "dual_coef_", ())
        return known[rows].astype(np.float64) if len(known) > rows[-1] else None

    def store(self, model: Any, X: Matrix, rows: IntArray, coefficients: FloatArray) -> None:
        """Store the coefficients of some rows of X; those of the other rows are 0."""
        model.dual_coef_ = np.zeros((X.shape[0], coefficients.shape[1]), dtype=coefficients.dtype)
        model.dual_coef_[rows] = coefficients
        model.X_fit_ = None if is_precomputed(model) else X


class FeatureMapForm(ModelForm):
    """Weights of mapped features in `feature_coef_`, with the fitted transformer in `feature_map_`."""

    def scores(self, model: Any, X: Matrix) -> FloatArray:
        """Return the mapped features times their weights."""
        return (apply_feature_map(model.feature_map_, X) @ model.feature_coef_).astype(X.dtype, copy=False)

    def coefficients(self, model: Any, rows: IntArray) -> FloatArray | None:
        """Return None: the next fit draws other features."""
        return None


LINEAR = LinearForm()
KERNEL = KernelForm()
FEATURE_MAP = FeatureMapForm()


def form_of(model: Any) -> ModelForm:
    """Return the form of a classifier, by its parameters `kernel` and `approximation`.

    Parameters
    ----------
    model : classifier

    Returns
    -------
    ModelForm
    """
    if isinstance(model.kernel, str) and model.kernel == "linear":
        return LINEAR
    return KERNEL if getattr(model, "approximation", None) is None else FEATURE_MAP


def is_precomputed(model: Any) -> bool:
    """Return whether the user gives kernel values in place of features.

    Parameters
    ----------
    model : classifier

    Returns
    -------
    bool
    """
    return isinstance(model.kernel, str) and model.kernel == "precomputed"


def check_kernel(model: Any) -> None:
    """Check the parameters `kernel`, `gamma`, `degree` and `coef0` of a classifier.

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


def linear_scores(X: Matrix, coef: FloatArray) -> FloatArray:
    """Return X @ coef.T, dense. Of a single sparse row, only the features that it has are looked up.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    coef : array (n_labels, n_features)

    Returns
    -------
    array (n_samples, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> linear_scores(sparse.csr_array([[0.0, 2.0, 0.0]]), np.array([[1.0, 3.0, 5.0]]))
    array([[6.]])
    """
    if issparse(X) and X.shape[0] == 1:
        # SciPy would copy all weights, into the order of its loops.
        return np.asarray(coef[:, X.indices] @ X.data)[None]
    return np.asarray(X @ coef.T)


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
    return np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)


# The training rows of models, prepared for kernel values, with the coefficients that the models had then.
_prepared_rows: WeakKeyDictionary[Any, tuple[FloatArray, KernelRows]] = WeakKeyDictionary()


def _prepare_rows(model: Any) -> KernelRows:
    """Return the training rows of a kernel model, prepared at its first prediction. They are not part of its file."""
    coefficients, rows = _prepared_rows.get(model, (None, None))
    if rows is None or coefficients is not model.dual_coef_ or rows.parameters != kernel_parameters(model):
        rows = KernelRows(model.X_fit_, **kernel_parameters(model))
        _prepared_rows[model] = model.dual_coef_, rows
    return rows
