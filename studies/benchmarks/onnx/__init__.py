"""Graphs in onnxruntime beside our own predictions: agreement, time of a row, time of many."""
