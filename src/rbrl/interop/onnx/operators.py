"""Graph of a model: nodes of transformers and kernels, of scores, and of decisions after them.

Decisions are probabilities, thresholds and labels, as :mod:`rbrl.decision` computes them. Only this module imports the
package onnx.
"""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler

from rbrl._common.typing import Array, FloatArray
from rbrl._version import __version__
from rbrl.decision import Chain, GlobalThreshold, LabelThresholds, NonEmpty, RowThreshold, TopK, ZeroThreshold
from rbrl.exceptions import ExportError

if TYPE_CHECKING:
    from onnx import ModelProto

# Name of the result of a node, which is an input of other nodes.
Value: TypeAlias = str
# The operators used here have not changed since this version of the operator set, which current runtimes support.
OPSET = 17
IR_VERSION = 8
# Largest number of bytes of a file of Protocol Buffers.
MAX_FILE_BYTES = 2**31 - 1


class Graph:
    """Nodes and constants of a graph with one input X (n_rows, n_features) and named outputs.

    Parameters
    ----------
    n_features : int or None
        Number of columns of X; None allows any number.
    dtype : {"float64", "float32"}
        Type of X, of the constants and of the results.

    Examples
    --------
    >>> graph = Graph(2, "float32")
    >>> doubled = graph("Mul", graph.X, 2.0)
    >>> graph.output("doubled", doubled, np.float32, ("rows", 2))
    >>> [node.op_type for node in graph.model().graph.node]
    ['Mul', 'Identity']
    """

    X: Value = "X"

    def __init__(self, n_features: int | None, dtype: str) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError(f"rbrl.to_onnx needs the package onnx ({error}): pip install 'rbrl[onnx]'.") from error
        self._onnx: Any = onnx
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._outputs: list[Any] = []
        self._size = 0

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> Value:
        """Add a node, and return the name of its result.

        The operator is a name such as "MatMul". Inputs are names, or numbers and arrays, which
        become constants with floats in the precision of the graph.
        """
        return self.add(operator, *inputs, **attributes)[0]

    def add(self, operator: str, *inputs: Any, n_results: int = 1, **attributes: Any) -> list[Value]:
        """Add a node with several results, and return their names."""
        names = [one if isinstance(one, str) else self.constant(self._round(one)) for one in inputs]
        results = [f"{operator.lower()}_{len(self._nodes)}_{i}" for i in range(n_results)]
        self._nodes.append(self._onnx.helper.make_node(operator, names, results, **attributes))
        return results

    def constant(self, values: Array) -> Value:
        """Store an array of numbers or text without a change of its type, and return its name."""
        self._size += values.nbytes
        if self._size > MAX_FILE_BYTES:
            raise ExportError(
                f"An ONNX file can hold at most 2 GB. Got a model with more numbers in {self.dtype}; use "
                "dtype='float32', or fit a smaller model: a linear model, or one with approximation='nystroem'."
            )
        name = f"constant_{len(self._constants)}"
        values = values.astype(object) if values.dtype.kind in "US" else np.ascontiguousarray(values)
        self._constants.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def cast(self, value: Value, dtype: Any) -> Value:
        """Convert numbers to another type."""
        return self("Cast", value, to=self._type(dtype))

    def output(self, name: str, value: Value, dtype: Any, shape: tuple[int | str, ...]) -> None:
        """Add an output; a text in its shape stands for a size that depends on the input."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type(dtype), shape))

    def model(self, **metadata: object) -> "ModelProto":
        """Return the checked model, with metadata that are stored as JSON."""
        helper = self._onnx.helper
        rows = helper.make_tensor_value_info(self.X, self._type(self.dtype), ("rows", self.n_features))
        graph = helper.make_graph(self._nodes, "rbrl", [rows], self._outputs, self._constants)
        model: ModelProto = helper.make_model(
            graph, producer_name="rbrl", producer_version=__version__, ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )  # fmt: skip
        helper.set_model_props(model, {key: json.dumps(value) for key, value in metadata.items()})
        self._onnx.checker.check_model(model)
        return model

    def _round(self, values: Any) -> Array:
        """Return an array with floats in the precision of the graph; other types stay as they are."""
        array = np.asarray(values)
        return array.astype(self.dtype) if array.dtype.kind == "f" else array

    def _type(self, dtype: Any) -> int:
        """Return the number of a type in ONNX; raise ExportError for a type without one."""
        dtype = np.dtype(dtype)
        if dtype.kind in "OUS":
            return int(self._onnx.TensorProto.STRING)
        try:
            return int(self._onnx.helper.np_dtype_to_tensor_dtype(dtype))
        except (KeyError, ValueError) as error:
            raise ExportError(
                f"ONNX does not support the type {dtype}; fit the model with integer, Boolean or text labels."
            ) from error


# Function of a graph, a fitted transformer and rows; returns the transformed rows.
Transform = Callable[[Graph, Any, Value], Value]
# Function of a graph, a fitted rule, scores and the number of their columns; returns the shifted scores.
Shift = Callable[[Graph, Any, Value, int], Value]


def transform(graph: Graph, step: Any, X: Value) -> Value:
    """Add the nodes of a fitted transformer, and return their result: the transformed rows.

    The transformer is a pipeline, a selector of columns, "passthrough", or one of `TRANSFORMS`. Others raise
    ExportError.
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
    """Add the nodes of a fitted StandardScaler, and return their result: the transformed rows."""
    X = X if step.mean_ is None or not step.with_mean else graph("Sub", X, step.mean_)
    return X if step.scale_ is None else graph("Div", X, step.scale_)


def _min_max(graph: Graph, step: MinMaxScaler, X: Value) -> Value:
    """Add the nodes of a fitted MinMaxScaler, and return their result: the transformed rows."""
    X = graph("Add", graph("Mul", X, step.scale_), step.min_)
    return graph("Clip", X, *map(float, step.feature_range)) if step.clip else X


def _max_abs(graph: Graph, step: MaxAbsScaler, X: Value) -> Value:
    """Add the nodes of a fitted MaxAbsScaler, and return their result: the transformed rows."""
    X = graph("Div", X, step.scale_)
    return graph("Clip", X, -1.0, 1.0) if getattr(step, "clip", False) else X


def _robust(graph: Graph, step: RobustScaler, X: Value) -> Value:
    """Add the nodes of a fitted RobustScaler, and return their result: the transformed rows."""
    X = graph("Sub", X, step.center_) if step.with_centering else X
    return graph("Div", X, step.scale_) if step.with_scaling else X


def _normalize(graph: Graph, norm: str, X: Value) -> Value:
    """Add the rows divided by their norm, "l1", "l2" or "max"."""
    if norm == "max":
        size = graph("ReduceMax", graph("Abs", X), axes=[1])
    else:
        size = graph({"l1": "ReduceL1", "l2": "ReduceL2"}[norm], X, axes=[1])
    # As in scikit-learn, a row of zeros remains unchanged.
    is_zero = graph("Less", size, 10.0 * float(np.finfo(graph.dtype).eps))
    return graph("Div", X, graph("Where", is_zero, 1.0, size))


def _principal(graph: Graph, step: PCA, X: Value) -> Value:
    """Add the nodes of a fitted PCA, and return their result: the transformed rows."""
    X = graph("MatMul", graph("Sub", X, step.mean_), step.components_.T)
    if not step.whiten:
        return X
    scale = np.sqrt(step.explained_variance_)
    return graph("Div", X, np.maximum(scale, np.finfo(scale.dtype).eps))


def _tf_idf(graph: Graph, step: TfidfTransformer, X: Value) -> Value:
    """Add the nodes of a fitted TfidfTransformer, and return their result: the transformed rows."""
    if step.sublinear_tf:
        # The logarithm is computed for all entries and used for positive ones; zeros are replaced by 1 before.
        is_zero = graph("Equal", X, 0.0)
        damped = graph("Add", graph("Log", graph("Where", is_zero, 1.0, X)), 1.0)
        X = graph("Where", is_zero, 0.0, damped)
    X = graph("Mul", X, step.idf_) if step.use_idf else X
    return _normalize(graph, step.norm, X) if step.norm else X


def landmark_values(graph: Graph, step: Nystroem, X: Value) -> Value:
    """Add the kernel values between rows and the landmarks of a Nyström map."""
    given = {"gamma": step.gamma, "degree": step.degree, "coef0": step.coef0}
    shape = {name: value for name, value in given.items() if value is not None}
    return kernel_values(graph, X, as_double(step.components_), step.kernel, **shape)


def _fourier(graph: Graph, step: RBFSampler, X: Value) -> Value:
    """Add the features of a fitted RBFSampler."""
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
    TruncatedSVD: lambda graph, step, X: graph("MatMul", X, step.components_.T),
    TfidfTransformer: _tf_idf,
    Nystroem: lambda graph, step, X: graph("MatMul", landmark_values(graph, step, X), step.normalization_.T),
    RBFSampler: _fourier,
}


def kernel_values(
    graph: Graph, X: Value, Z: FloatArray, kernel: object, gamma: float | None = None, degree: float = 3,
    coef0: float = 1.0,
) -> Value:  # fmt: skip
    """Add the kernel values between the rows X and fixed rows Z; a `gamma` of None means 1 / n_features.

    The kernel is "linear", "rbf" or "poly". Others raise ExportError.
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
    """Raise ExportError for a kernel that a graph cannot compute."""
    if not (isinstance(kernel, str) and kernel in ("linear", "rbf", "poly")):
        shown = repr(kernel) if isinstance(kernel, str) else f"the function {getattr(kernel, '__name__', kernel)!r}"
        raise ExportError(
            f"A graph can compute the kernels 'linear', 'rbf' and 'poly'. Got kernel={shown}; fit a model with one of "
            "the three."
        )


def as_double(matrix: Any) -> FloatArray:
    """Return a matrix as a dense array in double precision."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)


def shift_scores(graph: Graph, rule: Any, scores: Value, n_labels: int) -> Value:
    """Add the scores whose positive entries are the labels that a fitted rule calls relevant.

    The rule is one of :mod:`rbrl.decision`. Others raise ExportError.
    """
    if type(rule) not in SHIFTS:
        known = ", ".join(sorted(kind.__name__ for kind in SHIFTS))
        raise ExportError(f"The rule {type(rule).__name__} cannot be written as an ONNX graph. These can: {known}.")
    return SHIFTS[type(rule)](graph, rule, scores, n_labels)


def find_relevant(graph: Graph, scores: Value, n_labels: int, never_empty: bool) -> Value:
    """Add the mask (n_rows, n_labels) of the positive scores.

    With `never_empty`, a row without a positive score gets its best label, the first one of a tie.
    """
    positive = graph("Greater", scores, 0.0)
    if not never_empty:
        return positive
    is_best = graph("Equal", graph("ArgMax", scores, axis=1), np.arange(n_labels))
    is_empty = graph("LessOrEqual", graph("ReduceMax", scores, axes=[1]), 0.0)
    return graph("Or", positive, graph("And", is_empty, is_best))


def add_probabilities(graph: Graph, model: Any, scores: Value) -> Value:
    """Add the probabilities (n_rows, n_columns) of a calibrated model, by sigmoids or by interpolation."""
    smooth = graph("Sigmoid", graph("Add", graph("Mul", scores, model.slopes_), model.intercepts_))
    if not model.knots_:
        return smooth
    # A label of slope 0 has a constant probability.
    has_knots = model.slopes_ > 0
    knots = [knots if used else np.zeros((2, 1)) for knots, used in zip(model.knots_, has_knots)]
    return graph("Where", has_knots[None], _interpolate(graph, knots, scores), smooth)


def _interpolate(graph: Graph, knots: Sequence[FloatArray], scores: Value) -> Value:
    """Add a piecewise linear function of each column of scores, constant beyond its knots.

    `knots` has an array (2, n_knots) for each column, positions above values; positions ascend. The
    last knot at or below a score is found by bisection. The knots of all labels are in one table,
    in which the part of each label is padded to a power of two.
    """
    width = 1 << (max(line.shape[1] for line in knots) - 1).bit_length()
    positions = np.full((len(knots), width), np.inf)
    values, slopes = np.zeros((2, len(knots), width))
    for j, (x, y) in enumerate(knots):
        positions[j, : len(x)] = x
        values[j, : len(x)] = y
        values[j, len(x) :] = y[-1]
        slopes[j, : len(x) - 1] = np.diff(y) / np.diff(x)
    table = graph.constant(positions.ravel().astype(graph.dtype))
    index = graph.constant(np.arange(len(knots))[None] * width)
    index = graph("Expand", index, graph("Shape", scores))
    step = width // 2
    while step:
        next_index = graph("Add", index, np.int64(step))
        is_above = graph("GreaterOrEqual", scores, graph("Gather", table, next_index))
        index = graph("Where", is_above, next_index, index)
        step //= 2
    distance = graph("Max", graph("Sub", scores, graph("Gather", table, index)), 0.0)
    rise = graph("Mul", distance, graph("Gather", slopes.ravel(), index))
    return graph("Add", graph("Gather", values.ravel(), index), rise)


def _chain(graph: Graph, rule: Chain, scores: Value, n_labels: int) -> Value:
    """Add the scores after each rule of a chain."""
    for one in rule.rules:
        scores = shift_scores(graph, one, scores, n_labels)
    return scores


def _row_threshold(graph: Graph, rule: RowThreshold, scores: Value, n_labels: int) -> Value:
    """Add the scores less the threshold of each row, as `RowThreshold.shift` does."""
    threshold = graph("Add", graph("MatMul", scores, rule.coef_[:, None]), float(rule.intercept_))
    shifted = graph("Sub", scores, threshold)
    return _make_positive(graph, shifted, graph("GreaterOrEqual", shifted, 0.0)) if rule.ties_relevant else shifted


def _non_empty(graph: Graph, rule: NonEmpty, scores: Value, n_labels: int) -> Value:
    """Add the scores that `NonEmpty.shift` returns."""
    return _make_positive(graph, scores, find_relevant(graph, scores, n_labels, never_empty=True))


def _top_k(graph: Graph, rule: TopK, scores: Value, n_labels: int) -> Value:
    """Add the scores that `TopK.shift` returns."""
    k = int(rule.k)
    if k == 0:
        return graph("Sub", scores, graph("Add", graph("ReduceMax", scores, axes=[1]), 1.0))
    if k >= n_labels:
        shifted = graph("Sub", scores, graph("Sub", graph("ReduceMin", scores, axes=[1]), 1.0))
        return _make_positive(graph, shifted, graph("GreaterOrEqual", shifted, 0.0))
    # TopK of ONNX chooses the first of equal scores, as TopK of rbrl.decision does.
    sorted_scores, order = graph.add("TopK", scores, np.array([k + 1]), n_results=2, axis=1)
    columns = np.array([1])
    ends = graph("Slice", sorted_scores, np.array([k - 1]), np.array([k + 1]), columns)
    best = graph("Unsqueeze", graph("Slice", order, np.array([0]), np.array([k]), columns), np.array([2]))
    is_one = graph.cast(graph("Equal", best, np.arange(n_labels)), np.int64)
    chosen = graph.cast(graph("ReduceMax", is_one, axes=[1], keepdims=0), np.bool_)
    return _make_positive(graph, graph("Sub", scores, graph("ReduceMean", ends, axes=[1])), chosen)


def _make_positive(graph: Graph, scores: Value, chosen: Value) -> Value:
    """Add scores of which exactly the chosen entries are positive.

    `chosen` is a mask of the shape of the scores. `rbrl.decision.rules.make_positive` is the same
    for arrays.
    """
    tiny = float(np.finfo(graph.dtype).tiny)
    raised = graph("And", chosen, graph("LessOrEqual", scores, 0.0))
    scores = graph("Where", raised, tiny, scores)
    lowered = graph("And", graph("Not", chosen), graph("Greater", scores, 0.0))
    return graph("Where", lowered, 0.0, scores)


SHIFTS: dict[type, Shift] = {
    Chain: _chain,
    GlobalThreshold: lambda graph, rule, scores, n_labels: graph("Sub", scores, float(rule.threshold_)),
    LabelThresholds: lambda graph, rule, scores, n_labels: graph("Sub", scores, rule.thresholds_),
    NonEmpty: _non_empty,
    RowThreshold: _row_threshold,
    TopK: _top_k,
    ZeroThreshold: lambda graph, rule, scores, n_labels: scores,
}
