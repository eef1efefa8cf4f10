"""The classifier inside a fitted model, and the terms of its scores."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline

from rbrl._common.typing import Array, FloatArray
from rbrl.decision import Chain, DecisionRule, RowThreshold
from rbrl.estimators import BinaryRelevance
from rbrl.inspection.invert_transformers import Columns, NamedTerms, Terms, apply_steps, flatten_steps, invert_steps
from rbrl.kernels import gram
from rbrl.metrics import scores_of
from rbrl.ranking_svm import RankSVM
from rbrl.selection import TunedThresholdClassifier


def reject_model(model: Any, reason: str) -> NoReturn:
    """Raise an error for a model that cannot be explained; the reason follows its class name."""
    raise ValueError(
        f"{type(model).__name__} {reason}. Linear models (coef_, intercept_) and kernel models (dual_coef_, X_fit_) can be "
        "explained, also inside a Pipeline, a search, a TunedThresholdClassifier or BinaryRelevance."
    )


@dataclass
class UnwrappedModel:
    """The classifier inside a fitted model, with the steps and rules around it.

    Attributes
    ----------
    classifier : classifier
        Innermost classifier, which has the coefficients.
    steps : list of transformers
        Transformers before the classifier.
    tuned : list of (TunedThresholdClassifier, int)
        Classifiers whose rules shift the scores, the outermost first, and the number of steps
        before each of them.
    names : dict
        The arrays ``feature_names_in_`` and ``label_names_`` of the outermost model that has them.
    """

    classifier: Any
    steps: list[Any] = field(default_factory=list)
    tuned: list[tuple[TunedThresholdClassifier, int]] = field(default_factory=list)
    names: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def unwrap(cls, model: Any) -> "UnwrappedModel":
        """Unwrap a fitted classifier, search or pipeline."""
        unwrapped = cls(model)
        while True:
            model = unwrapped.classifier
            for name in ("feature_names_in_", "label_names_"):
                if hasattr(model, name):
                    unwrapped.names.setdefault(name, getattr(model, name))
            if isinstance(model, Pipeline):
                unwrapped.steps += [step for _, outer in model.steps[:-1] for step in flatten_steps(outer)]
                unwrapped.classifier = model.steps[-1][1]
            elif isinstance(model, TunedThresholdClassifier):
                unwrapped.tuned.append((model, len(unwrapped.steps)))
                unwrapped.classifier = model.estimator_
            elif hasattr(model, "best_estimator_"):
                unwrapped.classifier = model.best_estimator_
            else:
                return unwrapped

    def name_columns(self, data: Any) -> Columns:
        """Return a row, as given, with the names of its columns."""
        if hasattr(data, "columns"):
            return Columns(data, [str(name) for name in data.columns])
        if not hasattr(data, "shape"):
            return Columns(data, None)
        names = self.names.get("feature_names_in_", ())
        unnamed = [f"x{i}" for i in range(data.shape[1])]
        return Columns(data, list(map(str, names)) if len(names) == data.shape[1] else unnamed)

    def score_names(self, n_labels: int) -> list[Any]:
        """Return the label names of the columns of scores, the classes of a 1-D target, or numbers."""
        names = self.names.get("label_names_")
        if names is not None and len(names) == n_labels:
            return [str(name) for name in names]
        classes = getattr(self.classifier, "classes_", None)
        if isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= n_labels:
            return list(classes[-n_labels:].tolist())  # only the second of two classes has a score
        return list(range(n_labels))


def is_kernel_model(classifier: Any) -> bool:
    """Return True if the scores of a classifier are sums over its training rows."""
    has_rows = hasattr(classifier, "dual_coef_") and hasattr(classifier, "X_fit_")
    has_learners = getattr(classifier, "estimator", None) is not None
    return has_rows and not has_learners and getattr(classifier, "kernel", "rbf") != "linear"


def kernel_values(classifier: Any, X: Any) -> FloatArray:
    """Return the kernel values of rows with the training rows of a classifier.

    With a precomputed kernel, the rows are kernel values already.
    """
    shape = {name: getattr(classifier, name) for name in ("degree", "coef0") if hasattr(classifier, name)}
    # In model files of earlier versions without `gamma_`, gamma is a number or None.
    gamma = getattr(classifier, "gamma_", None) or getattr(classifier, "gamma", None)
    return gram(_as_matrix(X), classifier.X_fit_, kernel=getattr(classifier, "kernel", "rbf"), gamma=gamma, **shape)


class RowTerms:
    """Terms of the scores of one row, and the shifts by learned rules.

    Parameters
    ----------
    model : UnwrappedModel
    columns : Columns
        Row, as given.
    n_labels : int
        Number of columns of scores.

    Attributes
    ----------
    kind : {"feature", "training row"}
        Kind of the terms.
    """

    def __init__(self, model: UnwrappedModel, columns: Columns, n_labels: int) -> None:
        self.model = model
        self.n_labels = n_labels
        self.stages = apply_steps(model.steps, columns)
        self.kind = "training row" if is_kernel_model(model.classifier) else "feature"

    def label_terms(self, label: int) -> tuple[NamedTerms, float]:
        """Return the terms of the score of a label before learned rules shift it, and the intercept."""
        classifier = self.model.classifier
        _check_explainable(classifier)
        if self.kind == "training row":
            values = self._inputs
            dual = self._label_coefficients(as_dense(classifier.dual_coef_).T, label)
            unknown = np.full(len(values), np.nan)
            terms = NamedTerms(list(range(len(values))), values.astype(object), unknown, dual * values)
            return terms, self._intercept(label)
        if isinstance(classifier, BinaryRelevance) and classifier.estimator is not None:
            return self._learner_terms(classifier.estimators_[label], classifier.intercept_[label])
        if isinstance(classifier, OneVsRestClassifier):
            return self._learner_terms(classifier.estimators_[label], 0.0)
        weights = self._label_coefficients(coefficients(classifier), label)
        return self._linear_terms([], weights, self._intercept(label))

    def shifts(self) -> Iterator[tuple[str, FloatArray]]:
        """Yield the name of each learned rule and its shift of all scores, the innermost rule first."""
        classifier = self.model.classifier
        if isinstance(classifier, RankSVM) and self.n_labels > 1:
            is_kernel = self.kind == "training row"
            weights = as_dense(classifier.dual_coef_).T if is_kernel else coefficients(classifier)
            rule = RowThreshold(ties_relevant=True)
            rule.coef_ = classifier.threshold_coef_
            rule.intercept_ = classifier.threshold_intercept_
            yield from _rule_shifts(rule, (weights @ self._inputs + classifier.intercept_)[None])
        threshold = getattr(classifier, "threshold_", 0.0)
        if np.any(threshold):
            yield str(classifier.threshold), np.broadcast_to(-np.asarray(threshold, dtype=np.float64), (self.n_labels,))
        for tuned, n_steps in reversed(self.model.tuned):
            yield from _rule_shifts(tuned.rule_, scores_of(tuned.estimator_, self.stages[n_steps].data))

    @cached_property
    def _inputs(self) -> FloatArray:
        """Factors of the coefficients: kernel values, or values of the columns."""
        if self.kind == "training row":
            return kernel_values(self.model.classifier, self.stages[-1].data).ravel()
        return self.stages[-1].values.astype(np.float64)

    def _label_coefficients(self, coefficients: FloatArray, label: int) -> FloatArray:
        """Return the coefficients of a label.

        A single label that is ranked against its absence has the difference of two scores.
        """
        if len(coefficients) == self.n_labels:
            return coefficients[label]
        if len(coefficients) == 2 and self.n_labels == 1:
            return coefficients[1] - coefficients[0]
        reject_model(
            self.model.classifier, f"has coefficients of {len(coefficients)} scores for {self.n_labels} labels"
        )

    def _intercept(self, label: int) -> float:
        intercept = np.atleast_1d(getattr(self.model.classifier, "intercept_", 0.0))
        return float(intercept[0] if len(intercept) == 1 else self._label_coefficients(intercept, label))

    def _learner_terms(self, learner: Any, constant: float) -> tuple[NamedTerms, float]:
        """Return the terms of a base learner, perhaps a pipeline; None is a constant score."""
        if learner is None:
            return self._linear_terms([], np.zeros(len(self.stages[-1].values)), constant)
        steps = flatten_steps(learner[:-1]) if isinstance(learner, Pipeline) else []
        last = learner[-1] if isinstance(learner, Pipeline) else learner
        return self._linear_terms(steps, coefficients(last)[0], float(np.ravel(last.intercept_)[0]))

    def _linear_terms(self, learner_steps: list[Any], weights: FloatArray, constant: float) -> tuple[NamedTerms, float]:
        steps = self.model.steps + learner_steps
        last = self.stages[-1]
        if learner_steps:  # base learners get a matrix without column names
            last = replace(last, data=_as_matrix(last.data))
        stages = self.stages[:-1] + apply_steps(learner_steps, last)
        return invert_steps(steps, stages, Terms.from_weights(weights, stages[-1].values.astype(np.float64), constant))


def _as_matrix(data: Any) -> Any:
    return data.tocsr() if sparse.issparse(data) else np.asarray(data)


def _rule_shifts(rule: DecisionRule, scores: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    for part in rule.rules if isinstance(rule, Chain) else [rule]:
        shifted = part.shift(scores)
        yield type(part).__name__, (shifted - scores)[0]
        scores = shifted


def _check_explainable(classifier: Any) -> None:
    if getattr(classifier, "approximation", None) is not None:
        reject_model(
            classifier,
            f"with approximation={classifier.approximation!r} has weights of features that belong to no column and to no "
            "training row; fit it with approximation=None",
        )
    if isinstance(classifier, BinaryRelevance) and classifier.scores == "hard":
        reject_model(classifier, "with scores='hard' has scores that are not sums; use scores='decision'")


def coefficients(classifier: Any) -> FloatArray:
    """Return the weights (n_scores, n_features) of a linear classifier; reject other classifiers."""
    if not all(hasattr(classifier, name) for name in ("coef_", "intercept_", "decision_function")):
        reject_model(classifier, "has no scores that are sums over features or training rows")
    return np.atleast_2d(as_dense(classifier.coef_))


def as_dense(matrix: Any) -> FloatArray:
    """Return a dense or sparse matrix as an array of float64."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)
