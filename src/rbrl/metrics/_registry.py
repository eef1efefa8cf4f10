"""Every metric by name, the paper's six, and one call that computes several."""

from collections.abc import Iterable
from typing import Any

from rbrl.metrics._coverage import coverage
from rbrl.metrics._example import accuracy_example, f1_example, hamming_loss, subset_accuracy
from rbrl.metrics._ranking import average_precision, one_error, ranking_loss
from rbrl.metrics._record import Metric

PAPER_METRICS = (
    Metric("hamming_loss", "Hamming loss", "Hal", False, "labels", hamming_loss),
    Metric("subset_accuracy", "Subset accuracy", "Sa", True, "labels", subset_accuracy),
    Metric("f1_example", "F1-example", "F1e", True, "labels", f1_example),
    Metric("ranking_loss", "Ranking loss", "Ral", False, "scores", ranking_loss),
    Metric("coverage", "Coverage", "Cov", False, "scores", coverage),
    Metric("average_precision", "Average precision", "Ap", True, "scores", average_precision),
)

_OTHERS = (
    Metric("accuracy_example", "Accuracy-example", "Acc", True, "labels", accuracy_example),
    Metric("one_error", "One-error", "One", False, "scores", one_error),
)

METRICS = {metric.name: metric for metric in (*PAPER_METRICS, *_OTHERS)}


def get_metric(metric: str | Metric) -> Metric:
    """The metric of that name or abbreviation; a record is returned as it is."""
    if isinstance(metric, Metric):
        return metric
    by_abbreviation = {known.abbreviation: known for known in METRICS.values()}
    try:
        return METRICS.get(metric) or by_abbreviation[metric]
    except KeyError:
        raise ValueError(f"A metric must be one of {', '.join(METRICS)}. Got {metric!r} instead.") from None


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
    convention : {"paper", "sklearn"}
        Rule for ties and for samples without a pair.

    Returns
    -------
    dict of str to float
        Value by metric name, in the order asked for.
    """
    chosen = [get_metric(metric) for metric in metrics]
    return {metric.name: metric.value(Y, labels, scores, convention) for metric in chosen}
