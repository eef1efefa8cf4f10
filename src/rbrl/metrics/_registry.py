"""Every metric by name, the paper's six, and one call that computes several."""

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from rbrl.metrics._auc import auc_macro, auc_micro
from rbrl.metrics._averages import f1_macro, f1_micro, f1_weighted
from rbrl.metrics._coverage import coverage
from rbrl.metrics._example import accuracy_example, f1_example, hamming_loss, subset_accuracy
from rbrl.metrics._ranking import average_precision, one_error, ranking_loss
from rbrl.metrics._record import Metric
from rbrl.metrics._top_k import ndcg_at_k, precision_at_k, recall_at_k

PAPER_METRICS = (
    Metric("hamming_loss", "Hamming loss", "Hal", False, "labels", hamming_loss),
    Metric("subset_accuracy", "Subset accuracy", "Sa", True, "labels", subset_accuracy),
    Metric("f1_example", "F1-example", "F1e", True, "labels", f1_example),
    Metric("ranking_loss", "Ranking loss", "Ral", False, "scores", ranking_loss),
    Metric("coverage", "Coverage", "Cov", False, "scores", coverage),
    Metric("average_precision", "Average precision", "Ap", True, "scores", average_precision),
)

_AT_K = {
    "precision": ("Precision", "P", precision_at_k),
    "recall": ("Recall", "R", recall_at_k),
    "ndcg": ("nDCG", "N", ndcg_at_k),
}


def metric_at_k(kind: str, k: int) -> Metric:
    """The record of precision, recall or nDCG at one k.

    Examples
    --------
    >>> metric_at_k("precision", 3).name
    'precision_at_3'
    """
    if kind not in _AT_K:
        raise ValueError(f"kind must be one of {', '.join(_AT_K)}. Got {kind!r} instead.")
    title, letter, function = _AT_K[kind]
    return Metric(f"{kind}_at_{k}", f"{title} at {k}", f"{letter}@{k}", True, "scores", partial(function, k=k))


_OTHERS = (
    Metric("accuracy_example", "Accuracy-example", "Acc", True, "labels", accuracy_example),
    Metric("f1_micro", "F1-micro", "F1mi", True, "labels", f1_micro),
    Metric("f1_macro", "F1-macro", "F1ma", True, "labels", f1_macro),
    Metric("f1_weighted", "F1-weighted", "F1w", True, "labels", f1_weighted),
    Metric("one_error", "One-error", "One", False, "scores", one_error),
    Metric("auc_macro", "AUC-macro", "AUCma", True, "scores", auc_macro),
    Metric("auc_micro", "AUC-micro", "AUCmi", True, "scores", auc_micro),
    *(metric_at_k(kind, k) for kind in _AT_K for k in (1, 3, 5)),
)

METRICS = {metric.name: metric for metric in (*PAPER_METRICS, *_OTHERS)}


def get_metric(metric: str | Metric) -> Metric:
    """The metric of that name or abbreviation, such as "ndcg_at_7" or "Hal"; a record is returned as it is."""
    if isinstance(metric, Metric):
        return metric
    for known in METRICS.values():
        if metric in (known.name, known.abbreviation):
            return known
    if match := re.fullmatch(r"(precision|recall|ndcg)_at_([1-9][0-9]*)", str(metric)):
        return metric_at_k(match[1], int(match[2]))
    raise ValueError(f"A metric must be one of {', '.join(METRICS)}. Got {metric!r} instead.")


def evaluate(
    Y: Any,
    labels: Any = None,
    scores: Any = None,
    metrics: Iterable[str | Metric] = PAPER_METRICS,
    convention: str = "paper",
) -> dict[str, float]:
    """Compute several metrics of one prediction.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        Predicted labels; may be None if no metric needs them.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        Predicted scores; may be None if no metric needs them.
    metrics : iterable of Metric or str, default=PAPER_METRICS
        What to compute.
    convention : {"paper", "mulan", "sklearn"}
        Rule for ties and for samples without a pair.

    Returns
    -------
    dict of str to float
        Value by metric name, in the order asked for.
    """
    chosen = [get_metric(metric) for metric in metrics]
    return {metric.name: metric.value(Y, labels, scores, convention) for metric in chosen}
