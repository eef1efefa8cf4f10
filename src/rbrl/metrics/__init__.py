"""Metrics of multi-label predictions, each knowing its direction and its conventions."""

from rbrl.metrics._coverage import coverage
from rbrl.metrics._example import accuracy_example, f1_example, hamming_loss, subset_accuracy
from rbrl.metrics._ranking import average_precision, one_error, ranking_loss
from rbrl.metrics._record import Metric, scores_of
from rbrl.metrics._registry import METRICS, PAPER_METRICS, evaluate, get_metric

__all__ = [
    "METRICS",
    "PAPER_METRICS",
    "Metric",
    "accuracy_example",
    "average_precision",
    "coverage",
    "evaluate",
    "f1_example",
    "get_metric",
    "hamming_loss",
    "one_error",
    "ranking_loss",
    "scores_of",
    "subset_accuracy",
]
