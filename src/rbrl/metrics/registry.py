"""Records of all metrics, and evaluation by several of them: numbers, a table, a text."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np

from rbrl._common.checks import suggest
from rbrl._common.typing import ArrayLike, LabelNames, MatrixLike
from rbrl.metrics import labels, probabilities, propensity, ranking
from rbrl.metrics.inputs import CONVENTIONS, MISSING, Classifier, common_names, probabilities_of, scores_of
from rbrl.metrics.labels import COUNTS, MEASURES, Overlap, evaluate_labels, overlap

if TYPE_CHECKING:
    from pandas import DataFrame


# Headings of the text report that differ from the column names, as in scikit-learn.
HEADINGS = {"f1": "f1-score"}
# Method of a classifier that returns each kind of prediction.
METHODS = {"labels": "predict", "scores": "decision_function", "probabilities": "predict_proba"}


@dataclass(frozen=True)
class Metric:
    """A metric that is also a scikit-learn scorer.

    The call ``metric(estimator, X, Y)`` scores an estimator, so that a metric can be the `scoring`
    of `cross_validate` or `GridSearchCV`. A larger score is always better: a loss is negated. The
    method `value` returns the metric itself.

    Parameters
    ----------
    name : str
        Identifier, such as ``"ranking_loss"``.
    title : str
        Title for readers, such as ``"Ranking loss"``.
    abbreviation : str
        Heading in tables, such as ``"Ral"``.
    greater_is_better : bool
        Direction of the metric.
    needs : {"labels", "scores", "probabilities"}
        Kind of prediction that is compared with the true labels.
    function : callable
        Function ``function(Y, predicted, convention=...)``. To allow missing labels, it must also
        take ``missing="ignore"``, and to allow weights, ``sample_weight=...``.
    convention : {"paper", "mulan", "sklearn"}
        Convention of the scorer.
    missing : {"raise", "ignore"}
        Treatment of missing labels, NaN in Y, by the scorer.

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
    needs: Literal["labels", "scores", "probabilities"]
    function: Callable[..., float]
    convention: str = CONVENTIONS[0]
    missing: str = MISSING[0]

    def value(
        self, Y: MatrixLike, labels: MatrixLike | None = None, scores: MatrixLike | None = None,
        convention: str | None = None, missing: str | None = None, probabilities: MatrixLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """Compute the metric of predicted labels, scores or probabilities, whichever it needs.

        Parameters
        ----------
        Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
            True labels.
        labels, scores : array or sparse matrix, shape (n_samples, n_labels)
            Predictions; those that the metric does not need may be None.
        convention : {"paper", "mulan", "sklearn"}, default=None
            Convention; None means the attribute `convention`.
        missing : {"raise", "ignore"}, default=None
            Treatment of missing labels; None means the attribute `missing`.
        probabilities : array or sparse matrix, shape (n_samples, n_labels)
            Predicted probabilities; None if the metric does not need them.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the samples; see :func:`rbrl.evaluate`.

        Returns
        -------
        float
        """
        predicted = {"labels": labels, "scores": scores, "probabilities": probabilities}[self.needs]
        if predicted is None:
            method = METHODS[self.needs]
            raise ValueError(
                f"{self.name} compares Y with {self.needs}. Got {self.needs}=None instead; pass "
                f"{self.needs}=model.{method}(X), or choose other metrics."
            )
        options: dict[str, Any] = {"convention": convention or self.convention}
        missing = missing or self.missing
        # A function without these parameters can be used as long as they are not needed.
        if missing != MISSING[0]:
            options["missing"] = missing
        if sample_weight is not None:
            options["sample_weight"] = sample_weight
        return self.function(Y, predicted, **options)

    def scorer(self, convention: str = CONVENTIONS[0], missing: str = MISSING[0]) -> Self:
        """Return the scikit-learn scorer with the given options.

        Parameters
        ----------
        convention : {"paper", "mulan", "sklearn"}
        missing : {"raise", "ignore"}

        Returns
        -------
        Metric
        """
        return replace(self, convention=convention, missing=missing)

    def __call__(
        self, estimator: Classifier, X: MatrixLike, Y: MatrixLike, convention: str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """Score a fitted estimator; larger is better, so a loss is negated.

        Parameters
        ----------
        estimator : scikit-learn classifier, fitted
        X : array or sparse matrix, shape (n_samples, n_features)
        Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
            True labels.
        convention : {"paper", "mulan", "sklearn"}, default=None
            Convention; None means the attribute `convention`.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the samples; see :func:`rbrl.evaluate`.

        Returns
        -------
        float
        """
        if self.needs == "labels":
            predicted = estimator.predict(X)
        else:
            predicted = (scores_of if self.needs == "scores" else probabilities_of)(estimator, X)
        prediction: dict[str, Any] = {self.needs: predicted}
        value = self.value(Y, convention=convention, sample_weight=sample_weight, **prediction)
        return value if self.greater_is_better else -value

    def better(self, first: float, second: float) -> bool:
        """Return True if the value `first` is strictly better than the value `second`."""
        return first > second if self.greater_is_better else first < second

    @property
    def arrow(self) -> str:
        """An upward arrow where greater is better, a downward one otherwise."""
        return "↑" if self.greater_is_better else "↓"


# The six metrics of the paper, in its order.
PAPER_METRICS = (
    Metric("hamming_loss", "Hamming loss", "Hal", False, "labels", labels.hamming_loss),
    Metric("subset_accuracy", "Subset accuracy", "Sa", True, "labels", labels.subset_accuracy),
    Metric("f1_example", "F1-example", "F1e", True, "labels", labels.f1_example),
    Metric("ranking_loss", "Ranking loss", "Ral", False, "scores", ranking.ranking_loss),
    Metric("coverage", "Coverage", "Cov", False, "scores", ranking.coverage),
    Metric("average_precision", "Average precision", "Ap", True, "scores", ranking.average_precision),
)

_AT_K: dict[str, tuple[str, str, Callable[..., float]]] = {
    "precision": ("Precision", "P", ranking.precision_at_k),
    "recall": ("Recall", "R", ranking.recall_at_k),
    "ndcg": ("nDCG", "N", ranking.ndcg_at_k),
}
# Metrics that need the propensities of the labels.
_SCORED_AT_K: dict[str, tuple[str, str, Callable[..., float]]] = {
    "psp": ("Propensity-scored precision", "PSP", propensity.psp_at_k),
    "psndcg": ("Propensity-scored nDCG", "PSN", propensity.psndcg_at_k),
}


def _metric_at_k(kind: str, k: int, propensities: ArrayLike | None = None) -> Metric:
    """Return the record of a metric of the k best-scored labels."""
    title, letter, function = {**_AT_K, **_SCORED_AT_K}[kind]
    chosen = partial(function, k=k)
    if kind in _SCORED_AT_K:
        if propensities is None:
            raise ValueError(
                f"{kind}_at_{k} needs the propensities of the labels. Got propensities=None instead; pass "
                "propensities=rbrl.metrics.propensities(Y_train) to get_metric."
            )
        chosen = partial(_evaluate_known, function, k=k, propensities=propensities)
    return Metric(f"{kind}_at_{k}", f"{title} at {k}", f"{letter}@{k}", True, "scores", chosen)


def _evaluate_known(
    function: Callable[..., float], Y: MatrixLike, scores: MatrixLike, convention: str,
    missing: str = MISSING[0], **options: Any,
) -> float:  # fmt: skip
    """Call a function that refuses missing labels, whatever `missing` allows."""
    return function(Y, scores, convention=convention, **options)


# To add a metric, add its record here.
_OTHERS = (
    Metric("accuracy_example", "Accuracy-example", "Acc", True, "labels", labels.accuracy_example),
    Metric("f1_micro", "F1-micro", "F1mi", True, "labels", labels.f1_micro),
    Metric("f1_macro", "F1-macro", "F1ma", True, "labels", labels.f1_macro),
    Metric("f1_weighted", "F1-weighted", "F1w", True, "labels", labels.f1_weighted),
    Metric("one_error", "One-error", "One", False, "scores", ranking.one_error),
    Metric("auc_macro", "AUC-macro", "AUCma", True, "scores", probabilities.auc_macro),
    Metric("auc_micro", "AUC-micro", "AUCmi", True, "scores", probabilities.auc_micro),
    *(_metric_at_k(kind, k) for kind in _AT_K for k in (1, 3, 5)),
    Metric("log_loss", "Log loss", "Log", False, "probabilities", probabilities.log_loss),
    Metric("brier_score", "Brier score", "Bri", False, "probabilities", probabilities.brier_score),
    Metric(
        "expected_calibration_error", "Expected calibration error", "ECE", False, "probabilities",
        probabilities.expected_calibration_error,
    ),
    Metric(
        "calibration_error_macro", "Calibration error-macro", "ECEma", False, "probabilities",
        probabilities.calibration_error_macro,
    ),
)  # fmt: skip

# Every metric, by name; each is a scorer for scikit-learn.
METRICS = {metric.name: metric for metric in (*PAPER_METRICS, *_OTHERS)}


def get_metric(metric: str | Metric, propensities: ArrayLike | None = None) -> Metric:
    """Return the metric with a name or abbreviation, such as "ndcg_at_7", "P@7" or "Hal".

    The k of precision, recall and nDCG may be any positive number, as well as the k of the
    propensity-scored metrics "psp_at_5" and "psndcg_at_5".

    Parameters
    ----------
    metric : str or Metric
        Name or abbreviation; a record is returned unchanged.
    propensities : array, shape (n_labels,), default=None
        Result of :func:`propensities` for the training labels; propensity-scored metrics need it.

    Returns
    -------
    Metric

    Examples
    --------
    >>> from rbrl.metrics import get_metric
    >>> get_metric("Ral").title
    'Ranking loss'
    """
    if isinstance(metric, Metric):
        return metric
    for known in METRICS.values():
        if metric in (known.name, known.abbreviation):
            return known
    if match := re.fullmatch(r"([A-Za-z]+)(?:_at_|@)([1-9][0-9]*)", str(metric)):
        for kind, (_, letter, _) in {**_AT_K, **_SCORED_AT_K}.items():
            if match[1].lower() in (kind, letter.lower()):
                return _metric_at_k(kind, int(match[2]), propensities)
    raise ValueError(f"A metric must be one of {', '.join(METRICS)}. Got {metric!r} instead.{suggest(metric, METRICS)}")


@overload
def evaluate(
    Y: MatrixLike, labels: MatrixLike | None = None, scores: MatrixLike | None = None,
    metrics: Iterable[str | Metric] | None = None, convention: str = CONVENTIONS[0], missing: str = MISSING[0],
    probabilities: MatrixLike | None = None, *, per_label: Literal[False] = False, label_names: LabelNames = None,
    sample_weight: ArrayLike | None = None,
) -> dict[str, float]: ...  # fmt: skip
@overload
def evaluate(
    Y: MatrixLike, labels: MatrixLike | None = None, scores: MatrixLike | None = None,
    metrics: Iterable[str] | None = None, convention: str = CONVENTIONS[0], missing: str = MISSING[0],
    probabilities: MatrixLike | None = None, *, per_label: Literal[True], label_names: LabelNames = None,
    sample_weight: ArrayLike | None = None,
) -> "DataFrame": ...  # fmt: skip
def evaluate(
    Y: MatrixLike, labels: MatrixLike | None = None, scores: MatrixLike | None = None,
    metrics: Iterable[Any] | None = None, convention: str = CONVENTIONS[0], missing: str = MISSING[0],
    probabilities: MatrixLike | None = None, *, per_label: bool = False, label_names: LabelNames = None,
    sample_weight: ArrayLike | None = None,
) -> "dict[str, float] | DataFrame":  # fmt: skip
    """Compute several metrics of one prediction.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        Predicted labels; may be None if no metric needs them.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        Predicted scores; may be None if no metric needs them.
    metrics : iterable of Metric or str, default=None
        Metrics to compute; None means the six metrics of the paper. With `per_label`, some of
        "precision", "recall", "f1" and "auc"; None then means all whose predictions are given.
    convention : {"paper", "mulan", "sklearn"}
        Rule for ties and for samples without a pair.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y. "raise": an error. "ignore": a metric uses only the
        known labels of each sample, or the known samples of each label. Samples and labels
        without any known entry are left out of averages. If nothing is left, the value is NaN,
        with a warning.
    probabilities : array or sparse matrix, shape (n_samples, n_labels)
        Predicted probabilities; may be None if no metric needs them.
    per_label : bool, default=False
        If True, evaluate every label by itself, over all samples.
    label_names : sequence of str, default=None
        Names of the labels in the result; None means the names of a data frame among Y, labels
        and scores. If several of these have names, the names must be the same.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples. A sample of weight 2 counts like two equal samples, in every metric,
        and a sample of weight 0 is left out. Weights need not be whole numbers. An average over
        samples is weighted; an average over labels is not, but the metric of each label is.
        Micro averages count each pair of a sample and a label with the weight of the sample.

    Returns
    -------
    dict of str to float
        Value by metric name, in the given order.
    pandas.DataFrame
        With `per_label`: a row for each label, with the metrics, the number of samples that have
        the label (`support`), and the number of samples whose label is not missing (`known`), or
        the sums of their weights. A ratio 0/0 is 0. An area under a curve without a pair is NaN, and so are all metrics of a
        label that is missing in every sample.

    Examples
    --------
    >>> from rbrl import evaluate
    >>> evaluate([[1, 0], [0, 1]], labels=[[1, 0], [1, 1]], metrics=["hamming_loss", "Sa"])
    {'hamming_loss': 0.25, 'subset_accuracy': 0.5}
    >>> evaluate([[1, 0], [float("nan"), 1]], labels=[[1, 0], [1, 1]], metrics=["Hal"], missing="ignore")
    {'hamming_loss': 0.0}
    >>> evaluate([[1, 0], [0, 1]], labels=[[1, 0], [1, 1]], metrics=["recall"], per_label=True, label_names=["sea", "sun"])
         recall  support  known
    sea     1.0        1      2
    sun     1.0        1      2
    """
    if per_label:
        return evaluate_labels(Y, labels, scores, metrics, convention, missing, label_names, sample_weight)
    common_names(label_names, Y=Y, labels=labels, scores=scores, probabilities=probabilities)
    chosen = [get_metric(metric) for metric in (PAPER_METRICS if metrics is None else metrics)]
    arguments = (Y, labels, scores, convention, missing, probabilities, sample_weight)
    return {metric.name: metric.value(*arguments) for metric in chosen}


def classification_report(
    Y: MatrixLike, labels: MatrixLike, scores: MatrixLike | None = None, *, label_names: LabelNames = None,
    digits: int = 2, missing: str = "raise", sample_weight: ArrayLike | None = None,
) -> str:  # fmt: skip
    """Return a text with precision, recall and F1 of every label, and their averages.

    The text is that of scikit-learn's `classification_report`, with three additions: names from
    data frames, missing labels, and the area under the ROC curve if scores are given. A ratio 0/0
    counts 0.

    Parameters
    ----------
    Y : array, sparse matrix or data frame of 0/1, shape (n_samples, n_labels)
        True labels.
    labels : array, sparse matrix or data frame of 0/1, shape (n_samples, n_labels)
        Predicted labels.
    scores : array, sparse matrix or data frame, shape (n_samples, n_labels), default=None
        Predicted scores. They add a column `auc`, in which ties count one half.
    label_names : sequence of str, default=None
        Names of the labels. None means the names of a data frame, or else numbers.
    digits : int, default=2
        Number of decimals.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y: an error, or left out. If labels are missing, a
        column `known` has the number of samples whose label is known. A label that is missing in
        every sample is left out of all averages.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`. The support is then a sum of weights.

    Returns
    -------
    str

    Examples
    --------
    >>> from rbrl import classification_report
    >>> print(classification_report([[1, 0], [1, 1]], [[1, 0], [0, 1]], label_names=["sea", "sun"]))
                  precision    recall  f1-score   support
    <BLANKLINE>
             sea       1.00      0.50      0.67         2
             sun       1.00      1.00      1.00         1
    <BLANKLINE>
       micro avg       1.00      0.67      0.80         3
       macro avg       1.00      0.75      0.83         3
    weighted avg       1.00      0.67      0.78         3
     samples avg       1.00      0.75      0.83         3
    <BLANKLINE>
    """
    frame = evaluate_labels(Y, labels, scores, None, "sklearn", missing, label_names, sample_weight)
    samples = overlap(Y, labels, "sklearn", missing, 1, sample_weight, keep_unknown=True)
    if (samples.known == len(frame)).all():
        frame = frame.drop(columns="known")
    measures = [name for name in MEASURES if name in frame]
    known = frame[frame[measures[0]].notna()]
    averages = {
        "micro avg": _average_sets(overlap(Y, labels, "sklearn", missing, None, sample_weight)),
        "macro avg": {name: known[name].mean() for name in measures},
        "weighted avg": {name: _weighted_mean(known[name], known["support"]) for name in measures},
        "samples avg": _average_sets(samples.where_known()),
    }
    totals = [_format_count(frame[name].sum(), digits) for name in COUNTS if name in frame]
    n_cells = 1 + len(measures)
    rows = [
        [str(row[0]), *_format(row[1:n_cells], digits), *(_format_count(count, digits) for count in row[n_cells:])]
        for row in frame.itertuples()
    ]
    summary = [
        [name, *_format([values.get(measure) for measure in measures], digits), *totals]
        for name, values in averages.items()
    ]
    return _format_table([HEADINGS.get(name, name) for name in frame.columns], rows, summary, digits)


def _average_sets(counts: Overlap) -> dict[str, float]:
    """Average precision, recall and F1 over label sets."""
    values = {"precision": counts.precision(), "recall": counts.recall(), "f1": counts.f1(0.0)}
    return {
        name: float(np.average(value, weights=counts.weights)) if value.size else float("nan")
        for name, value in values.items()
    }


def _weighted_mean(values: Any, weights: Any) -> float:
    """Return the weighted mean of the values that are not NaN."""
    total = weights[values.notna()].sum()
    return float((values * weights).sum() / total) if total else 0.0


def _format(values: Iterable[float | None], digits: int) -> list[str]:
    return ["" if value is None else f"{value:.{digits}f}" for value in values]


def _format_count(count: float, digits: int) -> str:
    """Return a number of samples, or a sum of weights, with decimals only if it is not whole."""
    return str(int(count)) if count == int(count) else f"{count:.{digits}f}"


def _format_table(heads: list[str], rows: list[list[str]], summary: list[list[str]], digits: int) -> str:
    """Format a table of two parts with the column widths and empty lines of scikit-learn."""
    width = max(digits, *(len(row[0]) for row in [*rows, *summary]))
    lines = [["", *heads], [], *rows, [], *summary]
    texts = (f"{line[0]:>{width}} " + "".join(f" {cell:>9}" for cell in line[1:]) if line else "" for line in lines)
    return "".join(f"{text}\n" for text in texts)
