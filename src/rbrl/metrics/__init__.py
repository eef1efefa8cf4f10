"""Metrics of multi-label predictions, with the direction and the conventions of each."""

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
from rbrl.metrics.per_label import auc_macro, auc_micro, classification_report
from rbrl.metrics.probabilities import (
    ReliabilityBins,
    brier_score,
    calibration_error_macro,
    expected_calibration_error,
    log_loss,
    reliability_bins,
)
from rbrl.metrics.ranking import (
    average_precision,
    coverage,
    ndcg_at_k,
    one_error,
    precision_at_k,
    ranking_loss,
    recall_at_k,
)
from rbrl.metrics.registry import (
    METRICS,
    PAPER_METRICS,
    Metric,
    evaluate,
    get_metric,
    probabilities_of,
    scores_of,
)

__all__ = [
    "CONVENTIONS", "METRICS", "PAPER_METRICS", "Metric", "ReliabilityBins", "accuracy_example", "auc_macro",
    "auc_micro", "average_precision", "brier_score", "calibration_error_macro", "classification_report", "coverage",
    "evaluate", "expected_calibration_error", "f1_example", "f1_macro", "f1_micro", "f1_weighted", "get_metric",
    "hamming_loss", "log_loss", "ndcg_at_k", "one_error", "precision_at_k", "probabilities_of",
    "ranking_loss", "recall_at_k", "reliability_bins", "scores_of", "subset_accuracy",
]  # fmt: skip
