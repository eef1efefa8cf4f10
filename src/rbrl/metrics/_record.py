"""A metric as a record that knows its name, its direction and what it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rbrl.metrics._inputs import CONVENTIONS


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
