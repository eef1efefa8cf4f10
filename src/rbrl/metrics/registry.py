"""Every metric as a record that knows its name, its direction and what it needs; one call that computes several."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, overload

import numpy as np

from rbrl._common.typing import FloatArray, LabelNames, MatrixLike
from rbrl.metrics import labels, probabilities, ranking, top_k
from rbrl.metrics.inputs import CONVENTIONS, MISSING
from rbrl.metrics.per_label import common_names, evaluate_labels

if TYPE_CHECKING:
    from pandas import DataFrame


class Classifier(Protocol):
    """A fitted classifier of scikit-learn's kind; scores are asked of its `decision_function` or `predict_proba`."""

    def predict(self, X: MatrixLike, /) -> MatrixLike: ...


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
    needs : {"labels", "scores", "probabilities"}
        What is compared with the true labels.
    function : callable
        ``function(Y, predicted, convention=...)``; it takes ``missing="ignore"`` too where NaN in Y shall be
        allowed.
    convention : {"paper", "mulan", "sklearn"}
        The one that the scorer uses.
    missing : {"raise", "ignore"}
        What the scorer does about NaN in Y.

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
    ) -> float:  # fmt: skip
        """The metric of predicted labels, scores or probabilities, whichever it needs; options go before the record's own.

        Parameters
        ----------
        Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
            True labels.
        labels, scores : array or sparse matrix, shape (n_samples, n_labels)
            What was predicted; the one that is not needed may be None.
        convention : {"paper", "mulan", "sklearn"}, default=None
            None means the record's own.
        missing : {"raise", "ignore"}, default=None
            None means the record's own.
        probabilities : array or sparse matrix, shape (n_samples, n_labels)
            For a metric that needs them.

        Returns
        -------
        float
        """
        predicted = {"labels": labels, "scores": scores, "probabilities": probabilities}[self.needs]
        if predicted is None:
            raise ValueError(f"{self.name} compares Y with {self.needs}. Got {self.needs}=None instead.")
        options, missing = {"convention": convention or self.convention}, missing or self.missing
        # A function that knows nothing of missing entries serves as long as there shall be none.
        return self.function(Y, predicted, **options, **({} if missing == MISSING[0] else {"missing": missing}))

    def scorer(self, convention: str = CONVENTIONS[0], missing: str = MISSING[0]) -> Self:
        """The scikit-learn scorer of one convention: this record, bound to it.

        Parameters
        ----------
        convention : {"paper", "mulan", "sklearn"}
        missing : {"raise", "ignore"}

        Returns
        -------
        Metric

        Examples
        --------
        >>> from sklearn.datasets import make_multilabel_classification
        >>> from sklearn.model_selection import cross_val_score
        >>> from rbrl import RBRLClassifier
        >>> from rbrl.metrics import get_metric
        >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
        >>> values = cross_val_score(RBRLClassifier(), X, Y, scoring=get_metric("ranking_loss").scorer(), cv=3)
        >>> bool((values <= 0).all())  # of a loss, scikit-learn maximises the negative
        True
        """
        return replace(self, convention=convention, missing=missing)

    def __call__(self, estimator: Classifier, X: MatrixLike, Y: MatrixLike, convention: str | None = None) -> float:
        """Score a fitted estimator: larger is better, a loss is negated.

        Parameters
        ----------
        estimator : scikit-learn classifier, fitted
        X : array or sparse matrix, shape (n_samples, n_features)
        Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
            True labels.
        convention : {"paper", "mulan", "sklearn"}, default=None
            None means the record's own.

        Returns
        -------
        float
        """
        answer = {"labels": _labels_of, "scores": scores_of, "probabilities": probabilities_of}[self.needs]
        found: dict[str, Any] = {self.needs: answer(estimator, X)}
        value = self.value(Y, convention=convention, **found)
        return value if self.greater_is_better else -value

    def better(self, first: float, second: float) -> bool:
        """Whether `first` is strictly better than `second`.

        Parameters
        ----------
        first, second : float
            Values of the metric.

        Returns
        -------
        bool

        Examples
        --------
        >>> from rbrl.metrics import get_metric
        >>> get_metric("ranking_loss").better(0.1, 0.2), get_metric("average_precision").better(0.1, 0.2)
        (True, False)
        """
        return first > second if self.greater_is_better else first < second

    @property
    def arrow(self) -> str:
        """An upward arrow where greater is better, a downward one otherwise."""
        return "↑" if self.greater_is_better else "↓"


def scores_of(estimator: Classifier, X: MatrixLike) -> FloatArray:
    """Real scores of a fitted classifier: its decision function, or else its probabilities.

    Parameters
    ----------
    estimator : scikit-learn classifier, fitted
    X : array or sparse matrix, shape (n_samples, n_features)

    Returns
    -------
    array, shape (n_samples, n_labels)
        Of a label that was constant in training scikit-learn's multi-output classifiers give no column of its
        probability: it is 0 or 1.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from rbrl.metrics import scores_of
    >>> model = KNeighborsClassifier(2).fit([[0.0], [1.0], [2.0]], [[1, 0], [1, 1], [0, 1]])
    >>> scores_of(model, [[0.2]])
    array([[1. , 0.5]])
    """
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X))
        return scores[:, None] if scores.ndim == 1 else scores
    if not hasattr(estimator, "predict_proba"):
        name = type(estimator).__name__
        raise TypeError(f"A ranking metric needs scores; {name} has neither decision_function nor predict_proba.")
    return probabilities_of(estimator, X)


def probabilities_of(estimator: Classifier, X: MatrixLike) -> FloatArray:
    """Probabilities that labels are relevant, of a fitted classifier that has `predict_proba`.

    Parameters
    ----------
    estimator : scikit-learn classifier, fitted
    X : array or sparse matrix, shape (n_samples, n_features)

    Returns
    -------
    array, shape (n_samples, n_labels)
        Also of classifiers that give a list with two columns for each label; of one that was constant in training these
        give one, and it is 0 or 1.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from rbrl.metrics import probabilities_of
    >>> model = KNeighborsClassifier(2).fit([[0.0], [1.0], [2.0]], [[1, 0], [1, 1], [0, 1]])
    >>> probabilities_of(model, [[0.2]])
    array([[1. , 0.5]])
    """
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"Probabilities need predict_proba. Got {type(estimator).__name__}, which has none; "
            "rbrl.CalibratedMultiLabelClassifier around it has."
        )
    multi_output: Any = estimator
    found = multi_output.predict_proba(X)
    if not isinstance(found, list):
        return np.asarray(found)
    classes = [list(values) for values in multi_output.classes_]
    return np.column_stack([P[:, c.index(1)] if 1 in c else np.zeros(len(P)) for P, c in zip(found, classes)])


def _labels_of(estimator: Classifier, X: MatrixLike) -> MatrixLike:
    return estimator.predict(X)


# The six metrics of the paper, in its order.
PAPER_METRICS = (
    Metric("hamming_loss", "Hamming loss", "Hal", False, "labels", labels.hamming_loss),
    Metric("subset_accuracy", "Subset accuracy", "Sa", True, "labels", labels.subset_accuracy),
    Metric("f1_example", "F1-example", "F1e", True, "labels", labels.f1_example),
    Metric("ranking_loss", "Ranking loss", "Ral", False, "scores", ranking.ranking_loss),
    Metric("coverage", "Coverage", "Cov", False, "scores", ranking.coverage),
    Metric("average_precision", "Average precision", "Ap", True, "scores", ranking.average_precision),
)

_AT_K = {
    "precision": ("Precision", "P", top_k.precision_at_k),
    "recall": ("Recall", "R", top_k.recall_at_k),
    "ndcg": ("nDCG", "N", top_k.ndcg_at_k),
}


def metric_at_k(kind: str, k: int) -> Metric:
    """The record of precision, recall or nDCG at one k.

    Parameters
    ----------
    kind : {"precision", "recall", "ndcg"}
    k : int
        Number of labels looked at.

    Returns
    -------
    Metric

    Examples
    --------
    >>> from rbrl.metrics import metric_at_k
    >>> metric_at_k("precision", 3).name
    'precision_at_3'
    """
    if kind not in _AT_K:
        raise ValueError(f"kind must be one of {', '.join(_AT_K)}. Got {kind!r} instead.")
    title, letter, function = _AT_K[kind]
    return Metric(f"{kind}_at_{k}", f"{title} at {k}", f"{letter}@{k}", True, "scores", partial(function, k=k))


# A metric is added here, by its record.
_OTHERS = (
    Metric("accuracy_example", "Accuracy-example", "Acc", True, "labels", labels.accuracy_example),
    Metric("f1_micro", "F1-micro", "F1mi", True, "labels", labels.f1_micro),
    Metric("f1_macro", "F1-macro", "F1ma", True, "labels", labels.f1_macro),
    Metric("f1_weighted", "F1-weighted", "F1w", True, "labels", labels.f1_weighted),
    Metric("one_error", "One-error", "One", False, "scores", ranking.one_error),
    Metric("auc_macro", "AUC-macro", "AUCma", True, "scores", ranking.auc_macro),
    Metric("auc_micro", "AUC-micro", "AUCmi", True, "scores", ranking.auc_micro),
    *(metric_at_k(kind, k) for kind in _AT_K for k in (1, 3, 5)),
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


def get_metric(metric: str | Metric) -> Metric:
    """The metric of that name or abbreviation, such as "ndcg_at_7" or "Hal"; a record is returned as it is.

    Parameters
    ----------
    metric : str or Metric

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
    if match := re.fullmatch(rf"({'|'.join(_AT_K)})_at_([1-9][0-9]*)", str(metric)):
        return metric_at_k(match[1], int(match[2]))
    raise ValueError(f"A metric must be one of {', '.join(METRICS)}. Got {metric!r} instead.")


@overload
def evaluate(
    Y: MatrixLike, labels: MatrixLike | None = None, scores: MatrixLike | None = None,
    metrics: Iterable[str | Metric] | None = None, convention: str = CONVENTIONS[0], missing: str = MISSING[0],
    probabilities: MatrixLike | None = None, *, per_label: Literal[False] = False, label_names: LabelNames = None,
) -> dict[str, float]: ...  # fmt: skip
@overload
def evaluate(
    Y: MatrixLike, labels: MatrixLike | None = None, scores: MatrixLike | None = None,
    metrics: Iterable[str] | None = None, convention: str = CONVENTIONS[0], missing: str = MISSING[0],
    probabilities: MatrixLike | None = None, *, per_label: Literal[True], label_names: LabelNames = None,
) -> "DataFrame": ...  # fmt: skip
def evaluate(
    Y: MatrixLike, labels: MatrixLike | None = None, scores: MatrixLike | None = None,
    metrics: Iterable[Any] | None = None, convention: str = CONVENTIONS[0], missing: str = MISSING[0],
    probabilities: MatrixLike | None = None, *, per_label: bool = False, label_names: LabelNames = None,
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
        What to compute; None means the paper's six. With `per_label`, some of "precision", "recall", "f1" and "auc"; None
        means all for which there are labels or scores.
    convention : {"paper", "mulan", "sklearn"}
        Rule for ties and for samples without a pair.
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y is an entry that nobody looked at. "raise": an error. "ignore": such entries leave every metric, as if
        each sample had those labels alone that somebody looked at, and each label those samples. Samples and labels
        of which nothing is known are left out of averages; what is then left of nothing is NaN, with a warning.
    probabilities : array or sparse matrix, shape (n_samples, n_labels)
        Predicted probabilities; may be None if no metric needs them.
    per_label : bool, default=False
        Judge every label by itself, over all samples.
    label_names : sequence of str, default=None
        Of the frame; None means those of a data frame among Y, labels and scores. Where several have names, they must be
        the same.

    Returns
    -------
    dict of str to float
        Value by metric name, in the order asked for.
    pandas.DataFrame
        With `per_label`: a row for each label, by name or number; the metrics, then `support`, the number of samples that
        have the label, and `known`, of those of which that is known. A metric that is 0/0 is 0, an area under a curve
        without a pair NaN, and so is everything of a label of which nothing is known.

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
        return evaluate_labels(Y, labels, scores, metrics, convention, missing, label_names)
    common_names(label_names, Y=Y, labels=labels, scores=scores, probabilities=probabilities)
    chosen = [get_metric(metric) for metric in (PAPER_METRICS if metrics is None else metrics)]
    return {metric.name: metric.value(Y, labels, scores, convention, missing, probabilities) for metric in chosen}
