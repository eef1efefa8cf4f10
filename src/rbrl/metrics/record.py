"""Every metric as a record that knows its name, its direction and what it needs; one call that computes several."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

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
from rbrl.metrics.ranking import auc_macro, auc_micro, average_precision, coverage, one_error, ranking_loss
from rbrl.metrics.top_k import ndcg_at_k, precision_at_k, recall_at_k


@dataclass(frozen=True)
class Metric:
    """A metric, and a scikit-learn scorer.

    Called as ``metric(estimator, X, Y)`` it is a scorer, so it can stand for `scoring` in `cross_validate` or
    `GridSearchCV`: larger is then always better, and a loss comes out negated. `value` gives the metric itself.

    Parameters
    ----------
    name : str
        Identifier, such as ``"ranking_loss"``.
    title : str
        For people, such as ``"Ranking loss"``.
    abbreviation : str
        For table heads, such as ``"Ral"``.
    greater_is_better : bool
        Direction.
    needs : {"labels", "scores"}
        What is compared with the true labels.
    function : callable
        ``function(Y, labels_or_scores, convention=...)``.
    convention : {"paper", "mulan", "sklearn"}
        The one that the scorer uses.

    Examples
    --------
    >>> from rbrl.metrics import METRICS
    >>> METRICS["hamming_loss"].value([[1, 0]], labels=[[1, 1]])
    0.5
    """

    name: str
    title: str
    abbreviation: str
    greater_is_better: bool
    needs: Literal["labels", "scores"]
    function: Callable[..., float]
    convention: str = CONVENTIONS[0]

    def value(self, Y: Any, labels: Any = None, scores: Any = None, convention: str | None = None) -> float:
        """The metric of predicted labels or scores, whichever it needs."""
        predicted = labels if self.needs == "labels" else scores
        if predicted is None:
            raise ValueError(f"{self.name} compares Y with {self.needs}. Got {self.needs}=None instead.")
        return self.function(Y, predicted, convention=convention or self.convention)

    def scorer(self, convention: str = "paper") -> "Metric":
        """The scikit-learn scorer of one convention: this record, bound to it."""
        fields = {**self.__dict__, "convention": convention}
        return Metric(**fields)

    def __call__(self, estimator: Any, X: Any, Y: Any, **kwargs: Any) -> float:
        """Score a fitted estimator: larger is better, a loss is negated."""
        if self.needs == "labels":
            value = self.value(Y, labels=estimator.predict(X), **kwargs)
        else:
            value = self.value(Y, scores=scores_of(estimator, X), **kwargs)
        return value if self.greater_is_better else -value

    def better(self, first: float, second: float) -> bool:
        """Whether `first` is strictly better than `second`."""
        return first > second if self.greater_is_better else first < second

    @property
    def arrow(self) -> str:
        """An upward arrow where greater is better, a downward one otherwise."""
        return "↑" if self.greater_is_better else "↓"


def scores_of(estimator: Any, X: Any) -> np.ndarray:
    """Real scores of a fitted classifier: its decision function, or else its probabilities."""
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X))
        return scores[:, None] if scores.ndim == 1 else scores
    if hasattr(estimator, "predict_proba"):
        scores = estimator.predict_proba(X)
        return _stack(scores, estimator.classes_) if isinstance(scores, list) else np.asarray(scores)
    raise TypeError(
        f"A ranking metric needs scores; {type(estimator).__name__} has neither decision_function nor predict_proba."
    )


def _stack(probabilities, classes):
    """Join the per-label answers of scikit-learn's multi-output classifiers.

    A label that was constant in training has one column only.
    """
    columns = [P[:, list(c).index(1)] if 1 in c else np.zeros(len(P)) for P, c in zip(probabilities, classes)]
    return np.column_stack(columns)


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
