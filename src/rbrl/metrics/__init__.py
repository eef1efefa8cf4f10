"""Metrics of multi-label predictions, each knowing its direction and its conventions."""

from rbrl.metrics._auc import auc_macro, auc_micro
from rbrl.metrics._averages import f1_macro, f1_micro, f1_weighted
from rbrl.metrics._coverage import coverage
from rbrl.metrics._example import accuracy_example, f1_example, hamming_loss, subset_accuracy
from rbrl.metrics._inputs import CONVENTIONS
from rbrl.metrics._ranking import average_precision, one_error, ranking_loss
from rbrl.metrics._record import Metric, scores_of
from rbrl.metrics._registry import METRICS, PAPER_METRICS, evaluate, get_metric, metric_at_k
from rbrl.metrics._top_k import ndcg_at_k, precision_at_k, recall_at_k

__all__ = [
    "CONVENTIONS",
    "METRICS",
    "PAPER_METRICS",
    "Metric",
    "accuracy_example",
    "auc_macro",
    "auc_micro",
    "average_precision",
    "coverage",
    "evaluate",
    "f1_example",
    "f1_macro",
    "f1_micro",
    "f1_weighted",
    "get_metric",
    "hamming_loss",
    "metric_at_k",
    "ndcg_at_k",
    "one_error",
    "precision_at_k",
    "ranking_loss",
    "recall_at_k",
    "scores_of",
    "subset_accuracy",
]
