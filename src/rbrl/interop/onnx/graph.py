"""ONNX graph, built node by node in one precision. Only this module imports the package onnx."""

import json
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rbrl._common.typing import Array
from rbrl._version import __version__
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

        Parameters
        ----------
        operator : str
            Name of an ONNX operator, such as "MatMul".
        *inputs : names, or numbers and arrays
            Inputs of the node. Numbers and arrays become constants, with floats in the precision of the graph.
        **attributes
            Attributes of the operator.

        Returns
        -------
        str
        """
        return self.add(operator, *inputs, **attributes)[0]

    def add(self, operator: str, *inputs: Any, n_results: int = 1, **attributes: Any) -> list[Value]:
        """Add a node with several results, and return their names."""
        names = [one if isinstance(one, str) else self.constant(self._round(one)) for one in inputs]
        results = [f"{operator.lower()}_{len(self._nodes)}_{i}" for i in range(n_results)]
        self._nodes.append(self._onnx.helper.make_node(operator, names, results, **attributes))
        return results

    def constant(self, values: Array) -> Value:
        """Store an array of numbers or text without a change of its type.

        Parameters
        ----------
        values : array

        Returns
        -------
        str
        """
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
        """Add an output to the graph.

        Parameters
        ----------
        name : str
            Name of the output.
        value : str
            Result of a node.
        dtype : dtype
        shape : tuple of int or str
            Shape of the output; a text stands for a size that depends on the input.
        """
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type(dtype), shape))

    def model(self, **metadata: object) -> "ModelProto":
        """Return the checked `onnx.ModelProto`.

        Parameters
        ----------
        **metadata
            Metadata of the model, which are stored as JSON.

        Returns
        -------
        onnx.ModelProto
        """
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
        """Return an array with floats in the precision of the graph."""
        array = np.asarray(values)
        return array.astype(self.dtype) if array.dtype.kind == "f" else array

    def _type(self, dtype: Any) -> int:
        dtype = np.dtype(dtype)
        if dtype.kind in "OUS":
            return int(self._onnx.TensorProto.STRING)
        try:
            return int(self._onnx.helper.np_dtype_to_tensor_dtype(dtype))
        except (KeyError, ValueError) as error:
            raise ExportError(
                f"ONNX does not support the type {dtype}; fit the model with labels of integers, bool or text."
            ) from error
