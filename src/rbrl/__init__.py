"""Multi-label classification: ranking and label sets learned jointly, with certified solvers."""

__version__ = "0.1.0"
