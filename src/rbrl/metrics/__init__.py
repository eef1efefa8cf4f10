"""Metrics of multi-label predictions, each knowing its direction and its conventions."""

from rbrl.metrics.inputs import CONVENTIONS
from rbrl.metrics.labels import (
    accuracy_example,
    f1_example,
    f1_macro,
    f1_micro,
    f1_weighted,
    hamming_loss,
    subset_accuracy,
)
from rbrl.metrics.ranking import (
    auc_macro,
    auc_micro,
    average_precision,
    coverage,
    ndcg_at_k,
    one_error,
    precision_at_k,
    ranking_loss,
    recall_at_k,
)
from rbrl.metrics.registry import METRICS, PAPER_METRICS, Metric, evaluate, get_metric, metric_at_k, scores_of

__all__ = [
    "CONVENTIONS", "METRICS", "PAPER_METRICS", "Metric", "accuracy_example", "auc_macro", "auc_micro", "average_precision",
    "coverage", "evaluate", "f1_example", "f1_macro", "f1_micro", "f1_weighted", "get_metric", "hamming_loss", "metric_at_k",
    "ndcg_at_k", "one_error", "precision_at_k", "ranking_loss", "recall_at_k", "scores_of", "subset_accuracy",
]  # fmt: skip
