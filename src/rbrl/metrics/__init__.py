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
from rbrl.metrics.per_label import classification_report
from rbrl.metrics.probabilities import (
    ReliabilityBins,
    brier_score,
    calibration_error_macro,
    expected_calibration_error,
    log_loss,
    reliability_bins,
)
from rbrl.metrics.ranking import (
    auc_macro,
    auc_micro,
    average_precision,
    coverage,
    one_error,
    ranking_loss,
)
from rbrl.metrics.registry import (
    METRICS,
    PAPER_METRICS,
    Metric,
    evaluate,
    get_metric,
    metric_at_k,
    probabilities_of,
    scores_of,
)
from rbrl.metrics.top_k import ndcg_at_k, precision_at_k, recall_at_k

__all__ = [
    "CONVENTIONS", "METRICS", "PAPER_METRICS", "Metric", "ReliabilityBins", "accuracy_example", "auc_macro",
    "auc_micro", "average_precision", "brier_score", "calibration_error_macro", "classification_report", "coverage",
    "evaluate", "expected_calibration_error", "f1_example", "f1_macro", "f1_micro", "f1_weighted", "get_metric",
    "hamming_loss", "log_loss", "metric_at_k", "ndcg_at_k", "one_error", "precision_at_k", "probabilities_of",
    "ranking_loss", "recall_at_k", "reliability_bins", "scores_of", "subset_accuracy",
]  # fmt: skip
