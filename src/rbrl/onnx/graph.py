"""A graph of ONNX, written node by node in one precision; the package onnx is imported by nothing else."""

import json
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rbrl._common.typing import Array
from rbrl._version import __version__
from rbrl.exceptions import ExportError

if TYPE_CHECKING:
    from onnx import ModelProto

# The name of what a node gives, which other nodes take.
Value: TypeAlias = str
# Every operator used here is as it is now since this version of the operators, which all runtimes of the last years know.
OPSET, IR_VERSION = 17, 8
# What a file of Protocol Buffers holds at most.
LARGEST_FILE = 2**31 - 1


def import_onnx() -> Any:
    """The package onnx, or one line that names the extra."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(f"rbrl.to_onnx needs the package onnx ({error}): pip install 'rbrl[onnx]'.") from error
    return onnx


class Graph:
    """Nodes and constants, from one input X (n_rows, n_features) to named outputs.

    Parameters
    ----------
    n_features : int or None
        Columns of X; None leaves their number open.
    dtype : {"float64", "float32"}
        Of X, of all numbers that are computed with, and of what is computed.

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
        self._onnx = import_onnx()
        self.n_features, self.dtype = n_features, np.dtype(dtype)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._outputs: list[Any] = []
        self._size = 0

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> Value:
        """Add a node, and return the name of its result.

        Parameters
        ----------
        operator : str
            Of ONNX, such as "MatMul".
        *inputs : names, or numbers and arrays
            These become constants; floats in the precision of the graph.
        **attributes
            Of the operator.

        Returns
        -------
        str
        """
        (result,) = self._add(operator, inputs, attributes, n_results=1)
        return result

    def pair(self, operator: str, *inputs: Any, **attributes: Any) -> tuple[Value, Value]:
        """Add a node with two results; as for one with a single result.

        Parameters
        ----------
        operator : str
        *inputs : names, or numbers and arrays
        **attributes

        Returns
        -------
        tuple of two str
        """
        first, second = self._add(operator, inputs, attributes, n_results=2)
        return first, second

    def _add(self, operator: str, inputs: tuple[Any, ...], attributes: dict[str, Any], n_results: int) -> list[Value]:
        names = [one if isinstance(one, str) else self.constant(self._in_precision(one)) for one in inputs]
        results = [f"{operator.lower()}_{len(self._nodes)}_{i}" for i in range(n_results)]
        self._nodes.append(self._onnx.helper.make_node(operator, names, results, **attributes))
        return results

    def constant(self, values: Array) -> Value:
        """Store an array in the type that it has; text too.

        Parameters
        ----------
        values : array

        Returns
        -------
        str
        """
        self._size += values.nbytes
        if self._size > LARGEST_FILE:
            raise ExportError(
                f"An ONNX file holds at most 2 GB. Got a model with more numbers than that in {self.dtype}; use "
                "dtype='float32', or fit a model with fewer: a linear one, or one with approximation='nystroem'."
            )
        name = f"constant_{len(self._constants)}"
        values = values.astype(object) if values.dtype.kind in "US" else np.ascontiguousarray(values)
        self._constants.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def cast(self, value: Value, dtype: Any) -> Value:
        """The same numbers in another type."""
        return self("Cast", value, to=self._type(dtype))

    def output(self, name: str, value: Value, dtype: Any, shape: tuple[int | str, ...]) -> None:
        """Let the graph give a value under this name.

        Parameters
        ----------
        name : str
        value : str
        dtype : dtype
        shape : tuple of int or str
            A word is a size that only the rows decide.
        """
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type(dtype), shape))

    def model(self, **about: object) -> "ModelProto":
        """The checked `onnx.ModelProto`.

        Parameters
        ----------
        **about
            What its metadata say, as JSON.

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
        helper.set_model_props(model, {key: json.dumps(value) for key, value in about.items()})
        self._onnx.checker.check_model(model)
        return model

    def _in_precision(self, values: Any) -> Array:
        found = np.asarray(values)
        return found.astype(self.dtype) if found.dtype.kind == "f" else found

    def _type(self, dtype: Any) -> int:
        dtype = np.dtype(dtype)
        if dtype.kind in "OUS":
            return int(self._onnx.TensorProto.STRING)
        try:
            return int(self._onnx.helper.np_dtype_to_tensor_dtype(dtype))
        except (KeyError, ValueError) as error:
            raise ExportError(
                f"ONNX has no numbers of the type {dtype}; fit the model with labels of integers, bool or text."
            ) from error
