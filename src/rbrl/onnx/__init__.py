"""Fitted models as ONNX graphs, for programs that serve them without Python; needs the extra `onnx`."""

from rbrl.onnx.export import to_onnx

__all__ = ["to_onnx"]
