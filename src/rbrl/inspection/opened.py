"""What lies inside a fitted model: the steps before its classifier, the rules behind it, and the terms of its scores."""

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
from rbrl.inspection.undo import Columns, NamedTerms, Terms, flat_steps, forward, named_terms
from rbrl.kernels import gram
from rbrl.metrics import scores_of
from rbrl.ranking_svm import RankSVM
from rbrl.selection import TunedThresholdClassifier

# The end of each message about a model that cannot be explained.
KNOWN = (
    "What can be explained are linear models (coef_, intercept_) and kernel models (dual_coef_, X_fit_), also within a "
    "Pipeline, a search, a TunedThresholdClassifier or BinaryRelevance."
)


def refuse(model: Any, why: str) -> NoReturn:
    """Say what cannot be explained, why, and what can.

    Parameters
    ----------
    model : object
    why : str
        What its class is followed by.
    """
    raise ValueError(f"{type(model).__name__} {why}. {KNOWN}")


@dataclass
class Opened:
    """A fitted model with its wrappings taken off.

    Attributes
    ----------
    classifier : classifier
        The innermost one, which has the coefficients.
    steps : list of transformers
        What a row goes through before it.
    tuned : list of (TunedThresholdClassifier, int)
        What moves its scores, the outermost first, and how many of the steps come before.
    names : dict
        ``feature_names_in_`` and ``label_names_``, where the model or anything in it knows them.
    """

    classifier: Any
    steps: list[Any] = field(default_factory=list)
    tuned: list[tuple[TunedThresholdClassifier, int]] = field(default_factory=list)
    names: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Any) -> "Opened":
        """Open a model.

        Parameters
        ----------
        model : fitted classifier, search or pipeline

        Returns
        -------
        Opened
        """
        opened = cls(model)
        while True:
            model = opened.classifier
            for name in ("feature_names_in_", "label_names_"):
                if hasattr(model, name):
                    opened.names.setdefault(name, getattr(model, name))
            if isinstance(model, Pipeline):
                opened.steps += [step for _, outer in model.steps[:-1] for step in flat_steps(outer)]
                opened.classifier = model.steps[-1][1]
            elif isinstance(model, TunedThresholdClassifier):
                opened.tuned.append((model, len(opened.steps)))
                opened.classifier = model.estimator_
            elif hasattr(model, "best_estimator_"):
                opened.classifier = model.best_estimator_
            else:
                return opened

    def first_columns(self, data: Any) -> Columns:
        """A row as it was given, with the names of its columns.

        Parameters
        ----------
        data : matrix or frame of one row, or list of one text

        Returns
        -------
        Columns
        """
        if hasattr(data, "columns"):
            return Columns(data, [str(name) for name in data.columns])
        if not hasattr(data, "shape"):
            return Columns(data, None)
        names = self.names.get("feature_names_in_", ())
        unnamed = [f"x{i}" for i in range(data.shape[1])]
        return Columns(data, list(map(str, names)) if len(names) == data.shape[1] else unnamed)


def is_kernel_model(classifier: Any) -> bool:
    """Whether the scores of a classifier are sums over its training rows.

    Parameters
    ----------
    classifier : fitted classifier

    Returns
    -------
    bool
    """
    has_rows = hasattr(classifier, "dual_coef_") and hasattr(classifier, "X_fit_")
    return (
        has_rows and getattr(classifier, "estimator", None) is None and getattr(classifier, "kernel", "rbf") != "linear"
    )


def kernel_values(classifier: Any, X: Any) -> FloatArray:
    """Kernel values of rows with the training rows of a classifier.

    Parameters
    ----------
    classifier : fitted kernel model
    X : array or sparse matrix (n_rows, n_features); with a precomputed kernel (n_rows, n_training_rows)

    Returns
    -------
    array (n_rows, n_training_rows)
    """
    shape = {name: getattr(classifier, name) for name in ("degree", "coef0") if hasattr(classifier, name)}
    # Model files from before `gamma_` have a gamma that is a number, or None.
    gamma = getattr(classifier, "gamma_", None) or getattr(classifier, "gamma", None)
    return gram(_matrix(X), classifier.X_fit_, kernel=getattr(classifier, "kernel", "rbf"), gamma=gamma, **shape)


class Row:
    """One row in a fitted model: the terms of its scores, label by label, and what learned rules do to them.

    Parameters
    ----------
    opened : Opened
    columns : Columns
        The row as it was given.
    n_labels : int
        Columns of scores.

    Attributes
    ----------
    kind : {"feature", "training row"}
        What the terms belong to.
    """

    def __init__(self, opened: Opened, columns: Columns, n_labels: int) -> None:
        self.opened, self.n_labels = opened, n_labels
        self.stages = forward(opened.steps, columns)
        self.kind = "training row" if is_kernel_model(opened.classifier) else "feature"

    def terms_of(self, label: int) -> tuple[NamedTerms, float]:
        """The score of a label as a sum, before learned rules move it.

        Parameters
        ----------
        label : int
            Column of the scores.

        Returns
        -------
        terms : NamedTerms
        constant : float
            The intercept, with what the steps of a pipeline add to it.
        """
        classifier = self.opened.classifier
        _check_known(classifier)
        if self.kind == "training row":
            dual, values = self._column_of(as_dense(classifier.dual_coef_).T, label), self._inputs
            unknown = np.full(len(values), np.nan)
            terms = NamedTerms(list(range(len(values))), values.astype(object), unknown, dual * values)
            return terms, self._intercept(label)
        if isinstance(classifier, BinaryRelevance) and classifier.estimator is not None:
            return self._terms_of_learner(classifier.estimators_[label], classifier.intercept_[label])
        if isinstance(classifier, OneVsRestClassifier):
            return self._terms_of_learner(classifier.estimators_[label], 0.0)
        return self._terms_of_weights([], self._column_of(coefficients(classifier), label), self._intercept(label))

    def moves(self) -> Iterator[tuple[str, FloatArray]]:
        """What each learned rule adds to the scores of all labels, the innermost first.

        Yields
        ------
        name : str
            Of the rule.
        move : array (n_labels,)
        """
        classifier = self.opened.classifier
        if isinstance(classifier, RankSVM) and self.n_labels > 1:
            of_inputs = as_dense(classifier.dual_coef_).T if self.kind == "training row" else coefficients(classifier)
            raw = (of_inputs @ self._inputs + classifier.intercept_)[None]
            rule = RowThreshold(ties_relevant=True)
            rule.coef_, rule.intercept_ = classifier.threshold_coef_, classifier.threshold_intercept_
            yield from _moves_of(rule, raw)
        threshold = getattr(classifier, "threshold_", 0.0)
        if np.any(threshold):
            yield str(classifier.threshold), np.broadcast_to(-np.asarray(threshold, dtype=np.float64), (self.n_labels,))
        for tuned, n_steps in reversed(self.opened.tuned):
            yield from _moves_of(tuned.rule_, scores_of(tuned.estimator_, self.stages[n_steps].data))

    @cached_property
    def _inputs(self) -> FloatArray:
        """What the classifier's coefficients are multiplied with: kernel values, or columns."""
        if self.kind == "training row":
            return kernel_values(self.opened.classifier, self.stages[-1].data).ravel()
        return self.stages[-1].values.astype(np.float64)

    def _column_of(self, coefficients: FloatArray, label: int) -> FloatArray:
        """The coefficients of a label; of a single one that is ranked against its absence, the difference."""
        if len(coefficients) == self.n_labels:
            return coefficients[label]
        if len(coefficients) == 2 and self.n_labels == 1:
            return coefficients[1] - coefficients[0]
        refuse(self.opened.classifier, f"has coefficients of {len(coefficients)} scores for {self.n_labels} labels")

    def _intercept(self, label: int) -> float:
        intercept = np.atleast_1d(getattr(self.opened.classifier, "intercept_", 0.0))
        return float(intercept[0] if len(intercept) == 1 else self._column_of(intercept, label))

    def _terms_of_learner(self, learner: Any, constant: float) -> tuple[NamedTerms, float]:
        """Of the base learner of one label, which may be a pipeline; None is a constant score."""
        if learner is None:
            return self._terms_of_weights([], np.zeros(len(self.stages[-1].values)), constant)
        steps = flat_steps(learner[:-1]) if isinstance(learner, Pipeline) else []
        last = learner[-1] if isinstance(learner, Pipeline) else learner
        return self._terms_of_weights(steps, coefficients(last)[0], float(np.ravel(last.intercept_)[0]))

    def _terms_of_weights(
        self, more_steps: list[Any], weights: FloatArray, constant: float
    ) -> tuple[NamedTerms, float]:
        steps = self.opened.steps + more_steps
        # What a classifier hands on to its learners has no names.
        last = replace(self.stages[-1], data=_matrix(self.stages[-1].data)) if more_steps else self.stages[-1]
        stages = self.stages[:-1] + forward(more_steps, last)
        return named_terms(steps, stages, Terms.of(weights, stages[-1].values.astype(np.float64), constant))


def _matrix(data: Any) -> Any:
    return data.tocsr() if sparse.issparse(data) else np.asarray(data)


def _moves_of(rule: DecisionRule, scores: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    for one in rule.rules if isinstance(rule, Chain) else [rule]:
        moved = one.shift(scores)
        yield type(one).__name__, (moved - scores)[0]
        scores = moved


def _check_known(classifier: Any) -> None:
    if getattr(classifier, "approximation", None) is not None:
        refuse(
            classifier,
            f"with approximation={classifier.approximation!r} has weights of features that belong to no column and to no "
            "training row; fit it with approximation=None",
        )
    if isinstance(classifier, BinaryRelevance) and classifier.scores == "hard":
        refuse(classifier, "with scores='hard' has scores that are no sums; use scores='decision'")


def coefficients(classifier: Any) -> FloatArray:
    """The weights of a linear classifier, dense; others are refused.

    Parameters
    ----------
    classifier : fitted classifier

    Returns
    -------
    array (n_scores, n_features)
    """
    if not (
        hasattr(classifier, "coef_") and hasattr(classifier, "intercept_") and hasattr(classifier, "decision_function")
    ):
        refuse(classifier, "has no scores that are sums over features or training rows")
    return np.atleast_2d(as_dense(classifier.coef_))


def as_dense(matrix: Any) -> FloatArray:
    """A matrix, perhaps sparse, as an array of float64."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)
