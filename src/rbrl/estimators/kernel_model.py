"""Scores by weights of features, or by kernel values with the training rows: for every classifier with a kernel."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rbrl._common.checks import check_choice, check_number
from rbrl._common.typing import FloatArray, Matrix, issparse
from rbrl.kernels import KERNELS, KernelRows, gram
from rbrl.scales import WIDTHS, Width

# Kernel values at a time: 128 MB.
BLOCK_ENTRIES = 2**24


def linear_scores(X: Matrix, coef: FloatArray) -> FloatArray:
    """X @ coef', dense; of a single sparse row only the features that it has are looked up.

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


class KernelModel:
    """Classifiers with the parameters `kernel`, `gamma`, `degree` and `coef0`: their kernel, and scores by it.

    A linear model keeps `coef_` and `intercept_`, every other one `dual_coef_`, `X_fit_` and perhaps `intercept_`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> RBRLClassifier(kernel="linear").fit(X, Y).coef_.shape, RBRLClassifier(kernel="rbf").fit(X, Y).dual_coef_.shape
    ((4, 8), (60, 4))
    """

    kernel: str | Callable[[Any, Any], Any]
    gamma: Width
    gamma_: float
    degree: int
    coef0: float
    coef_: FloatArray
    intercept_: FloatArray
    dual_coef_: FloatArray
    X_fit_: Matrix | None

    def _gram(self, X: Matrix, Z: Matrix | None = None, width: float | None = None) -> FloatArray:
        """Kernel values; `width` is gamma as a number, None that of the last fit."""
        shape = self._kernel_shape()
        return gram(X, Z, **shape if width is None else shape | {"gamma": width})

    def _kernel_shape(self) -> dict[str, Any]:
        # Model files without gamma_ have a gamma that is a number, or None: what `gram` takes.
        width = getattr(self, "gamma_", self.gamma)
        return {"kernel": self.kernel, "gamma": width, "degree": self.degree, "coef0": self.coef0}

    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _raw_scores(self, X: Matrix) -> FloatArray:
        """Scores of checked rows, of the type of X."""
        if self._is_linear():
            scores = linear_scores(X, self.coef_)
            scores += self.intercept_
            return scores
        step = max(1, BLOCK_ENTRIES // len(self.dual_coef_))
        blocks = (X[start : start + step] for start in range(0, X.shape[0], step))
        values = self._gram if self.X_fit_ is None else _training_rows(self).values
        scores = np.vstack([values(block) @ self.dual_coef_ for block in blocks])
        return (scores + getattr(self, "intercept_", 0.0)).astype(X.dtype, copy=False)

    def _check_kernel(self) -> None:
        owner = type(self).__name__
        check_number(owner, "gamma", self.gamma, strict=True, words=WIDTHS)
        check_number(owner, "degree", self.degree, low=1, integer=True)
        check_number(owner, "coef0", self.coef0)
        if not callable(self.kernel):
            check_choice(owner, "kernel", self.kernel, KERNELS)


# What kernel values with the training rows of a model need besides these; with the coefficients that were its own then.
_prepared: WeakKeyDictionary[KernelModel, tuple[FloatArray, KernelRows]] = WeakKeyDictionary()


def _training_rows(model: KernelModel) -> KernelRows:
    """The training rows of a kernel model, prepared at its first prediction; no part of the model, nor of its file."""
    coefficients, rows = _prepared.get(model, (None, None))
    if rows is None or coefficients is not model.dual_coef_ or rows.shape != model._kernel_shape():
        rows = KernelRows(model.X_fit_, **model._kernel_shape())
        _prepared[model] = model.dual_coef_, rows
    return rows
