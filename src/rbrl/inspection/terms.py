"""Terms of a score: the classifier inside a fitted model, and the transformers around it.

A transformer is inverted if its output columns have the names of its input columns (scalers,
imputers, feature selection), or if its output is a linear function of its input (decompositions,
projections). Any other transformer, such as a vectoriser, ends the inversion: the terms then belong
to its output columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from rbrl._common.categories import CategoryEncoder
from rbrl._common.frames import as_dense
from rbrl._common.typing import Array, FloatArray, IntArray
from rbrl.estimators import BinaryRelevance
from rbrl.kernels import gram
from rbrl.selection import CalibratedMultiLabelClassifier, TunedThresholdClassifier

# Longest name in a figure, in letters.
LONGEST_DRAWN_NAME = 34
PROJECTIONS = (PCA, IncrementalPCA, FastICA, TruncatedSVD, GaussianRandomProjection, SparseRandomProjection)


@dataclass(frozen=True)
class Columns:
    """One row between two steps of a pipeline, with the names of its columns; a text has none.

    The row has a form that the next step accepts: a matrix, a frame, or a list of one text.
    """

    data: Any
    names: list[str] | None

    @property
    def values(self) -> Array:
        """Values of the columns (n_columns,)."""
        return as_dense(self.data).ravel()

    @property
    def numbers(self) -> FloatArray | None:
        """Values as float64, or None if they are not numbers."""
        try:
            return self.values.astype(np.float64)
        except (TypeError, ValueError):
            return None


@dataclass(frozen=True)
class Terms:
    """Score as a sum of ``weights * (numbers - references)`` over some columns, and a constant.

    The columns are indices, and all arrays have the shape (n_terms,). The terms are linear if the
    numbers are the values of the columns. After a transformer that is not linear, they belong to
    its columns, but not to the inputs of a projection.
    """

    columns: IntArray
    numbers: FloatArray
    weights: FloatArray
    references: FloatArray
    constant: float = 0.0
    is_linear: bool = True


@dataclass(frozen=True)
class NamedTerms:
    """Terms of a score with the names of their columns, or with the indices of training rows.

    All arrays have the shape (n_terms,). The terms are 0 at the references, which are NaN after a
    transformer that is not linear.
    """

    names: list[Any]
    values: Array
    references: FloatArray
    contributions: FloatArray

    @classmethod
    def from_terms(cls, terms: Terms, columns: Columns) -> "NamedTerms":
        """Return terms with the names of their columns."""
        names = columns.names or [f"x{i}" for i in range(len(columns.values))]
        references = terms.references if terms.is_linear else np.full(len(terms.columns), np.nan)
        contributions = terms.weights * (terms.numbers - terms.references)
        values = columns.values[terms.columns].astype(object)
        return cls([names[i] for i in terms.columns], values, references, contributions)

    @classmethod
    def join(cls, parts: "Sequence[NamedTerms]") -> "NamedTerms":
        """Return the terms of several parts."""
        names = [name for part in parts for name in part.names]
        arrays = ([getattr(part, field) for part in parts] for field in ("values", "references", "contributions"))
        return cls(names, *map(np.concatenate, arrays))


def flatten_steps(transformer: Any) -> list[Any]:
    """Return the transformers of nested pipelines in sequence, without steps that do nothing."""
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return []
    if isinstance(transformer, Pipeline):
        return [step for _, inner in transformer.steps for step in flatten_steps(inner)]
    return [transformer]


def apply_steps(steps: Sequence[Any], columns: Columns) -> list[Columns]:
    """Return the input of each fitted step, and the output of the last step."""
    stages = [columns]
    for step in steps:
        data = step.transform(stages[-1].data)
        stages.append(Columns(data, _output_names(step, stages[-1].names, data)))
    return stages


def _output_names(step: Any, names: list[str] | None, data: Any) -> list[str]:
    """Return names of the columns of a step's output: its own names, or its class name and numbers."""
    if hasattr(data, "columns"):
        return [str(name) for name in data.columns]
    if hasattr(step, "get_feature_names_out"):
        return [str(name) for name in step.get_feature_names_out(names)]
    return [f"{type(step).__name__.lower()}{i}" for i in range(data.shape[1])]


def invert_steps(steps: Sequence[Any], stages: Sequence[Columns], terms: Terms) -> tuple[NamedTerms, float]:
    """Convert terms of the last stage to terms of the earliest possible stage.

    The stages are those of :func:`apply_steps`. Also return the constant that completes the score.
    """
    for step, before, after in reversed(list(zip(steps, stages[:-1], stages[1:]))):
        if isinstance(step, ColumnTransformer):
            return _invert_column_transformer(step, before, terms)
        inverted = _invert_step(step, before, after, terms)
        if inverted is None:
            return NamedTerms.from_terms(terms, after), terms.constant
        terms = inverted
    return NamedTerms.from_terms(terms, stages[0]), terms.constant


def _invert_step(step: Any, before: Columns, after: Columns, terms: Terms) -> Terms | None:
    """Convert terms of the output of a step to terms of its input; return None if impossible.

    `before` and `after` are input and output of the step. The given terms do not change.
    """
    if isinstance(step, PROJECTIONS):
        return _invert_projection(step, before, terms) if terms.is_linear else None
    # Names made of the class name of a step may be equal although the columns differ.
    named_by_class = isinstance(step, ClassNamePrefixFeaturesOutMixin)
    has_names = hasattr(step, "get_feature_names_out") or hasattr(after.data, "columns")
    if before.names is None or after.names is None or named_by_class or not has_names:
        return None
    index = {name: i for i, name in enumerate(before.names)}
    if len(index) < len(before.names) or not set(after.names) <= set(index):
        return None
    columns = np.array([index[after.names[i]] for i in terms.columns], dtype=np.intp)
    scale_and_shift = _scale_and_shift(step, before, after) if terms.is_linear else None
    numbers = before.numbers
    if scale_and_shift is None or numbers is None:
        return replace(terms, columns=columns, is_linear=False)
    scale, shift = (part[terms.columns] for part in scale_and_shift)
    references = (terms.references - shift) / scale
    weights = terms.weights * scale
    return replace(terms, columns=columns, numbers=numbers[columns], weights=weights, references=references)


def _invert_projection(step: Any, before: Columns, terms: Terms) -> Terms:
    """Convert linear terms to all inputs, by ``output = components @ (input - mean)``."""
    components = step.components_
    if isinstance(step, PCA | IncrementalPCA) and step.whiten:
        components = components / np.sqrt(np.maximum(step.explained_variance_, np.finfo(np.float64).eps))[:, None]
    weights = np.asarray(components[terms.columns].T @ terms.weights, dtype=np.float64).ravel()
    mean = getattr(step, "mean_", None)
    references = np.zeros(len(weights)) if mean is None else np.asarray(mean, dtype=np.float64)
    constant = terms.constant - float(terms.weights @ terms.references)
    return Terms(np.arange(len(weights)), before.values.astype(np.float64), weights, references, constant)


def _scale_and_shift(step: Any, before: Columns, after: Columns) -> tuple[FloatArray, FloatArray] | None:
    """Return scale and shift (n_columns,) of the output columns of a linear step; else None.

    Output column j is ``scale[j] * input + shift[j]``, of the input column with the same name. For
    a `Normalizer` this holds for the given row only.
    """
    one = np.ones(len(after.names or ()))
    zero = np.zeros(len(one))
    if isinstance(step, StandardScaler):
        scale = 1.0 / step.scale_ if step.with_std else one
        return scale, -step.mean_ * scale if step.with_mean else zero
    if isinstance(step, RobustScaler):
        scale = 1.0 / step.scale_ if step.with_scaling else one
        return scale, -step.center_ * scale if step.with_centering else zero
    if isinstance(step, MinMaxScaler) and not step.clip:
        return step.scale_, step.min_
    if isinstance(step, MaxAbsScaler) and not getattr(step, "clip", False):
        return 1.0 / step.scale_, zero
    if isinstance(step, Normalizer):
        x, z = (columns.values.astype(np.float64) for columns in (before, after))
        return (one * float(z @ x) / float(x @ x) if x.any() else one), zero
    if hasattr(step, "get_support"):
        return one, zero
    return None


def _invert_column_transformer(step: ColumnTransformer, before: Columns, terms: Terms) -> tuple[NamedTerms, float]:
    """Convert the terms of each part by the rules for its transformer; return terms and constant."""
    parts = []
    constant = terms.constant
    for name, transformer, columns in step.transformers_:
        output = step.output_indices_[name]
        chosen = np.flatnonzero((terms.columns >= output.start) & (terms.columns < output.stop))
        if not len(chosen):
            continue
        part = replace(
            terms, columns=terms.columns[chosen] - output.start, numbers=terms.numbers[chosen],
            weights=terms.weights[chosen], references=terms.references[chosen], constant=0.0,
        )  # fmt: skip
        steps = flatten_steps(transformer)
        named, part_constant = invert_steps(steps, apply_steps(steps, _select_columns(before, columns)), part)
        prefix = f"{name}__" if step.verbose_feature_names_out is True else ""
        parts.append(replace(named, names=[prefix + column for column in named.names]))
        constant += part_constant
    return NamedTerms.join(parts), constant


def _select_columns(before: Columns, columns: Any) -> Columns:
    """Return the input of one part, as scikit-learn passes it; a single column, not in a list, is text."""
    names = before.names or []
    is_single = isinstance(columns, str | int | np.integer)
    if isinstance(columns, slice):
        indices = np.arange(len(names))[columns]
    else:
        wanted = np.atleast_1d(np.asarray(columns))
        by_name = wanted.dtype.kind in "OUT"
        indices = np.array([names.index(name) for name in wanted]) if by_name else np.arange(len(names))[wanted]
    chosen = int(indices[0]) if is_single else indices
    data = before.data.iloc[:, chosen] if hasattr(before.data, "iloc") else before.data[:, chosen]
    return Columns(data, None if is_single else [names[i] for i in indices])


def reject_model(model: Any, reason: str) -> NoReturn:
    """Raise an error for a model that cannot be explained; the reason follows its class name."""
    raise ValueError(
        f"{type(model).__name__} {reason}. Linear models (coef_, intercept_) and kernel models (dual_coef_, X_fit_) can be "
        "explained, also inside a Pipeline, a search, a TunedThresholdClassifier, a CalibratedMultiLabelClassifier or "
        "BinaryRelevance."
    )


@dataclass
class UnwrappedModel:
    """The classifier inside a fitted model, with the steps and rules around it.

    The classifier is the innermost one, which has the coefficients. `tuned` has the classifiers
    whose rules shift the scores, outermost first, each with the number of steps before it. `names`
    has the arrays ``feature_names_in_`` and ``label_names_`` of the outermost model that has them.
    `calibrated` is the classifier, with the number of steps before it, that turns the scores into
    probabilities. Rules around it are not in `tuned`, because they shift probabilities.
    """

    classifier: Any
    steps: list[Any] = field(default_factory=list)
    tuned: list[tuple[TunedThresholdClassifier, int]] = field(default_factory=list)
    names: dict[str, Array] = field(default_factory=dict)
    calibrated: tuple[CalibratedMultiLabelClassifier, int] | None = None

    @classmethod
    def unwrap(cls, model: Any) -> "UnwrappedModel":
        """Return the innermost classifier of a fitted classifier, search or pipeline, with what surrounds it."""
        unwrapped = cls(model)
        while True:
            model = unwrapped.classifier
            for name in ("feature_names_in_", "label_names_"):
                if hasattr(model, name):
                    unwrapped.names.setdefault(name, getattr(model, name))
            if isinstance(model, Pipeline):
                unwrapped.steps += flatten_steps(model[:-1])
                unwrapped.classifier = model[-1]
            elif isinstance(model, TunedThresholdClassifier):
                unwrapped.tuned.append((model, len(unwrapped.steps)))
                unwrapped.classifier = model.estimator_
            elif isinstance(model, CalibratedMultiLabelClassifier):
                if unwrapped.calibrated:
                    reject_model(model, "is inside another calibrated classifier, so its scores are not sums")
                unwrapped.tuned.clear()
                unwrapped.calibrated = (model, len(unwrapped.steps))
                unwrapped.classifier = model.estimator_
            elif hasattr(model, "best_estimator_"):
                unwrapped.classifier = model.best_estimator_
            else:
                if categories := getattr(model, "categories_", None):
                    unwrapped.steps.append(CategoryEncoder(categories))
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

    @property
    def learners(self) -> list[Any] | None:
        """Base learner of each label, or None if the classifier has none."""
        model = self.classifier
        is_reduction = isinstance(model, BinaryRelevance | OneVsRestClassifier)
        return model.estimators_ if is_reduction and model.estimator is not None else None

    @property
    def is_kernel(self) -> bool:
        """True if the scores of the classifier are sums over its training rows."""
        classifier = self.classifier
        has_rows = hasattr(classifier, "dual_coef_") and hasattr(classifier, "X_fit_")
        has_learners = getattr(classifier, "estimator", None) is not None
        return has_rows and not has_learners and getattr(classifier, "kernel", "rbf") != "linear"

    @property
    def weights(self) -> FloatArray:
        """Weights (n_scores, n_terms) of features, or of the training rows of a kernel model."""
        if self.is_kernel:
            return as_dense(self.classifier.dual_coef_).astype(np.float64).T
        return coefficients(self.classifier)

    def kernel_values(self, X: Any) -> FloatArray:
        """Return the kernel values between rows and the training rows; precomputed rows are such values already."""
        model = self.classifier
        shape = {name: getattr(model, name) for name in ("degree", "coef0") if hasattr(model, name)}
        # In model files of earlier versions without `gamma_`, gamma is a number or None.
        gamma = getattr(model, "gamma_", None) or getattr(model, "gamma", None)
        rows = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        return gram(rows, model.X_fit_, kernel=getattr(model, "kernel", "rbf"), gamma=gamma, **shape)


class RowTerms:
    """Terms of the scores of one row: of features, or of the training rows of a kernel model."""

    def __init__(self, model: UnwrappedModel, columns: Columns, n_labels: int) -> None:
        self.model = model
        self.n_labels = n_labels
        self.stages = apply_steps(model.steps, columns)
        self.kind = "training row" if model.is_kernel else "feature"

    def label_terms(self, label: int) -> tuple[NamedTerms, float]:
        """Return the terms of the score of a label before learned rules shift it, and the intercept."""
        classifier = self.model.classifier
        _check_explainable(classifier)
        if self.model.learners is not None:
            has_constants = isinstance(classifier, BinaryRelevance)
            constant = classifier.intercept_[label] if has_constants else 0.0
            return self._learner_terms(self.model.learners[label], constant)
        if self.kind == "feature" and np.size(getattr(classifier, "intercept_", ())) == self.n_labels:
            # The weights of all labels may need much memory.
            weights = coefficients(classifier, label)[0]
        else:
            weights = self._label_coefficients(self.model.weights, label)
        if self.kind == "feature":
            return self._linear_terms([], weights, self._intercept(label))
        values = self.inputs
        rows = list(range(len(values)))
        unknown = np.full(len(values), np.nan)
        terms = NamedTerms(rows, values.astype(object), unknown, weights * values)
        return terms, self._intercept(label)

    @cached_property
    def inputs(self) -> FloatArray:
        """Factors of the coefficients: kernel values, or values of the columns."""
        if self.kind == "training row":
            return self.model.kernel_values(self.stages[-1].data).ravel()
        return self.stages[-1].values.astype(np.float64)

    def _label_coefficients(self, coefficients: FloatArray, label: int) -> FloatArray:
        """Return the row of a label of coefficients (n_scores, ...); reject other numbers of scores."""
        if len(coefficients) == self.n_labels:
            return coefficients[label]
        # A single label that is ranked against its absence has the difference of two scores.
        if len(coefficients) == 2 and self.n_labels == 1:
            return coefficients[1] - coefficients[0]
        reason = f"has coefficients of {len(coefficients)} scores for {self.n_labels} labels"
        reject_model(self.model.classifier, reason)

    def _intercept(self, label: int) -> float:
        """Return the intercept of a label; one intercept is shared by all labels."""
        intercept = np.atleast_1d(getattr(self.model.classifier, "intercept_", 0.0))
        return float(intercept[0] if len(intercept) == 1 else self._label_coefficients(intercept, label))

    def _learner_terms(self, learner: Any, constant: float) -> tuple[NamedTerms, float]:
        """Return the terms and intercept of a base learner or pipeline; None is a constant score."""
        if learner is None:
            return self._linear_terms([], np.zeros(len(self.stages[-1].values)), constant)
        steps = flatten_steps(learner[:-1]) if isinstance(learner, Pipeline) else []
        last = learner[-1] if isinstance(learner, Pipeline) else learner
        return self._linear_terms(steps, coefficients(last)[0], float(np.ravel(last.intercept_)[0]))

    def _linear_terms(self, learner_steps: list[Any], weights: FloatArray, constant: float) -> tuple[NamedTerms, float]:
        """Return the terms of weights (n_columns,) of the last stage, traced to the earliest stage.

        `learner_steps` are transformers of a base learner, which follow those of the model.
        """
        steps = self.model.steps + learner_steps
        last = self.stages[-1]
        if learner_steps and not sparse.issparse(last.data):
            last = replace(last, data=np.asarray(last.data))  # base learners get no column names
        stages = self.stages[:-1] + apply_steps(learner_steps, last)
        numbers = stages[-1].values.astype(np.float64)
        terms = Terms(np.arange(len(weights)), numbers, weights, np.zeros(len(weights)), constant)
        return invert_steps(steps, stages, terms)


def _check_explainable(classifier: Any) -> None:
    """Raise ValueError for a classifier whose scores are sums, but not of its columns or rows."""
    if getattr(classifier, "approximation", None) is not None:
        reject_model(
            classifier,
            f"with approximation={classifier.approximation!r} has weights of features that belong to no column and to no "
            "training row; fit it with approximation=None",
        )
    if isinstance(classifier, BinaryRelevance) and classifier.scores == "hard":
        reject_model(classifier, "with scores='hard' has scores that are not sums; use scores='decision'")


def coefficients(classifier: Any, label: int | None = None) -> FloatArray:
    """Return the weights (n_scores, n_features) of a linear classifier; reject other classifiers.

    With `label`, only the weights of one score are returned, as an array (1, n_features).
    """
    names = ("label_factors_" if hasattr(classifier, "label_factors_") else "coef_", "intercept_", "decision_function")
    if not all(hasattr(classifier, name) for name in names):
        reject_model(classifier, "has no scores that are sums over features or training rows")
    if label is not None and names[0] == "label_factors_":
        return np.asarray(classifier.label_factors_[[label]].astype(np.float64) @ classifier.feature_factors_.T)
    weights = classifier.coef_ if np.ndim(classifier.coef_) == 2 else np.atleast_2d(classifier.coef_)
    return as_dense(weights if label is None else weights[[label]]).astype(np.float64)


def format_label(label: Any) -> str:
    """Return the name of a label, or "label" with its number."""
    return label if isinstance(label, str) else f"label {label}"


def shorten_name(name: str) -> str:
    """Shorten a name in the middle, so that a value at its end stays."""
    return name if len(name) <= LONGEST_DRAWN_NAME else f"{name[: LONGEST_DRAWN_NAME - 13]}…{name[-12:]}"
