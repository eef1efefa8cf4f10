"""Metrics of multi-label predictions, with the direction and the conventions of each."""

from rbrl.metrics.inputs import CONVENTIONS as CONVENTIONS
from rbrl.metrics.inputs import probabilities_of, scores_of
from rbrl.metrics.labels import accuracy_example as accuracy_example
from rbrl.metrics.labels import f1_example, f1_macro, f1_micro, hamming_loss, subset_accuracy
from rbrl.metrics.labels import f1_weighted as f1_weighted
from rbrl.metrics.probabilities import ReliabilityBins as ReliabilityBins
from rbrl.metrics.probabilities import auc_macro, expected_calibration_error, log_loss
from rbrl.metrics.probabilities import auc_micro as auc_micro
from rbrl.metrics.probabilities import brier_score as brier_score
from rbrl.metrics.probabilities import calibration_error_macro as calibration_error_macro
from rbrl.metrics.probabilities import reliability_bins as reliability_bins
from rbrl.metrics.propensity import frequency_report as frequency_report
from rbrl.metrics.propensity import propensities as propensities
from rbrl.metrics.propensity import psndcg_at_k as psndcg_at_k
from rbrl.metrics.propensity import psp_at_k as psp_at_k
from rbrl.metrics.ranking import (
    average_precision,
    coverage,
    ndcg_at_k,
    one_error,
    precision_at_k,
    ranking_loss,
    recall_at_k,
)
from rbrl.metrics.registry import METRICS, PAPER_METRICS, Metric, get_metric
from rbrl.metrics.registry import classification_report as classification_report
from rbrl.metrics.registry import evaluate as evaluate

__all__ = [
    "METRICS", "PAPER_METRICS", "Metric", "auc_macro", "average_precision", "coverage",
    "expected_calibration_error", "f1_example", "f1_macro", "f1_micro", "get_metric",
    "hamming_loss", "log_loss", "ndcg_at_k", "one_error", "precision_at_k", "probabilities_of",
    "ranking_loss", "recall_at_k", "scores_of", "subset_accuracy",
]  # fmt: skip
