"""Graph nodes of transformers and kernels, which come before the scores of a model."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler

from rbrl._common.typing import FloatArray
from rbrl.exceptions import ExportError
from rbrl.interop.onnx.graph import Graph, Value

# Function of a graph, a fitted transformer and rows; returns the transformed rows.
Transform = Callable[[Graph, Any, Value], Value]


def transform(graph: Graph, step: Any, X: Value) -> Value:
    """Add the rows after a fitted transformer.

    Parameters
    ----------
    graph : Graph
    step : transformer of scikit-learn, or "passthrough"
        Pipeline, selector of columns, or one of :data:`TRANSFORMS`; others raise ExportError.
    X : str

    Returns
    -------
    str
    """
    if step is None or step == "passthrough":
        return X
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            X = transform(graph, part, X)
        return X
    if isinstance(step, SelectorMixin):
        return graph("Gather", X, step.get_support(indices=True).astype(np.int64), axis=1)
    # The type must be equal, because a subclass may transform differently.
    if type(step) not in TRANSFORMS:
        known = ", ".join(sorted(kind.__name__ for kind in TRANSFORMS))
        raise ExportError(
            f"{type(step).__name__} cannot be written as an ONNX graph. These can: {known}, and selections of columns. "
            "Apply the step before the graph, and export what follows it: rbrl.to_onnx(pipeline[-1])."
        )
    return TRANSFORMS[type(step)](graph, step, X)


def _standard(graph: Graph, step: StandardScaler, X: Value) -> Value:
    X = X if step.mean_ is None or not step.with_mean else graph("Sub", X, step.mean_)
    return X if step.scale_ is None else graph("Div", X, step.scale_)


def _min_max(graph: Graph, step: MinMaxScaler, X: Value) -> Value:
    X = graph("Add", graph("Mul", X, step.scale_), step.min_)
    return graph("Clip", X, *map(float, step.feature_range)) if step.clip else X


def _max_abs(graph: Graph, step: MaxAbsScaler, X: Value) -> Value:
    X = graph("Div", X, step.scale_)
    return graph("Clip", X, -1.0, 1.0) if getattr(step, "clip", False) else X


def _robust(graph: Graph, step: RobustScaler, X: Value) -> Value:
    X = graph("Sub", X, step.center_) if step.with_centering else X
    return graph("Div", X, step.scale_) if step.with_scaling else X


def _normalize(graph: Graph, norm: str, X: Value) -> Value:
    if norm == "max":
        size = graph("ReduceMax", graph("Abs", X), axes=[1])
    else:
        size = graph({"l1": "ReduceL1", "l2": "ReduceL2"}[norm], X, axes=[1])
    # As in scikit-learn, a row of zeros remains unchanged.
    is_zero = graph("Less", size, 10.0 * float(np.finfo(graph.dtype).eps))
    return graph("Div", X, graph("Where", is_zero, 1.0, size))


def _principal(graph: Graph, step: PCA, X: Value) -> Value:
    X = graph("MatMul", graph("Sub", X, step.mean_), step.components_.T)
    if not step.whiten:
        return X
    scale = np.sqrt(step.explained_variance_)
    return graph("Div", X, np.maximum(scale, np.finfo(scale.dtype).eps))


def _singular(graph: Graph, step: TruncatedSVD, X: Value) -> Value:
    return graph("MatMul", X, step.components_.T)


def _tf_idf(graph: Graph, step: TfidfTransformer, X: Value) -> Value:
    if step.sublinear_tf:
        # The logarithm is computed for all entries and used for positive ones; zeros are replaced by 1 before.
        is_zero = graph("Equal", X, 0.0)
        damped = graph("Add", graph("Log", graph("Where", is_zero, 1.0, X)), 1.0)
        X = graph("Where", is_zero, 0.0, damped)
    X = graph("Mul", X, step.idf_) if step.use_idf else X
    return _normalize(graph, step.norm, X) if step.norm else X


def _nystroem(graph: Graph, step: Nystroem, X: Value) -> Value:
    return graph("MatMul", landmark_values(graph, step, X), step.normalization_.T)


def landmark_values(graph: Graph, step: Nystroem, X: Value) -> Value:
    """Add the kernel values between rows and the landmarks of a Nyström map."""
    given = {"gamma": step.gamma, "degree": step.degree, "coef0": step.coef0}
    shape = {name: value for name, value in given.items() if value is not None}
    return kernel_values(graph, X, as_double(step.components_), step.kernel, **shape)


def _fourier(graph: Graph, step: RBFSampler, X: Value) -> Value:
    # cos x = sin(x + pi / 2). Older versions of onnxruntime have only the sine in double precision.
    phases = graph("Gemm", X, step.random_weights_, step.random_offset_ + np.pi / 2)
    # The factor is repeated for every feature, because onnxruntime would fuse a scalar factor into the next product
    # in single precision.
    return graph("Mul", graph("Sin", phases), np.full(step.n_components, np.sqrt(2.0 / step.n_components)))


TRANSFORMS: dict[type, Transform] = {
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
    Normalizer: lambda graph, step, X: _normalize(graph, step.norm, X),
    PCA: _principal,
    IncrementalPCA: _principal,
    TruncatedSVD: _singular,
    TfidfTransformer: _tf_idf,
    Nystroem: _nystroem,
    RBFSampler: _fourier,
}


def kernel_values(
    graph: Graph, X: Value, Z: FloatArray, kernel: object, gamma: float | None = None, degree: float = 3,
    coef0: float = 1.0,
) -> Value:  # fmt: skip
    """Add the kernel values between the rows X and fixed rows Z.

    Parameters
    ----------
    graph : Graph
    X : str
    Z : array (n_rows, n_features)
    kernel : {"linear", "rbf", "poly"}
        Kernel; others raise ExportError.
    gamma : float, default=None
        Width of the kernel; None means 1 / n_features.
    degree : float, default=3
    coef0 : float, default=1.0

    Returns
    -------
    str
    """
    check_kernel(kernel)
    gamma = 1.0 / Z.shape[1] if gamma is None else gamma
    if kernel == "linear":
        return graph("MatMul", X, Z.T)
    if kernel == "poly":
        shifted = graph("Gemm", X, gamma * Z.T, np.full(len(Z), coef0))
        return graph("Pow", shifted, float(degree))
    # -gamma |x - z|^2 = 2 gamma x'z - gamma |x|^2 - gamma |z|^2. Centred rows reduce the rounding error.
    centre = Z.mean(axis=0)
    Z = Z - centre
    X = graph("Sub", X, centre)
    squares = graph("Mul", graph("ReduceSumSquare", X, axes=[1]), gamma)
    exponents = graph("Sub", graph("Gemm", X, 2.0 * gamma * Z.T, -gamma * np.sum(Z**2, axis=1)), squares)
    return graph("Exp", graph("Min", exponents, 0.0))


def check_kernel(kernel: object) -> None:
    """Raise ExportError for a kernel that a graph cannot compute.

    Parameters
    ----------
    kernel : str or callable
    """
    if not (isinstance(kernel, str) and kernel in ("linear", "rbf", "poly")):
        shown = repr(kernel) if isinstance(kernel, str) else f"the function {getattr(kernel, '__name__', kernel)!r}"
        raise ExportError(
            f"A graph can compute the kernels 'linear', 'rbf' and 'poly'. Got kernel={shown}; fit a model with one of "
            "the three."
        )


def as_double(matrix: Any) -> FloatArray:
    """Return a matrix as a dense array in double precision."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)
