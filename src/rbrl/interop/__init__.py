"""Interfaces to other libraries: ONNX graphs and PyTorch layers, each with its own extra."""
