"""Terms of a score for the input columns of a pipeline, from terms for the output of its last step.

A transformer is inverted if its output columns have the names of its input columns (scalers,
imputers, feature selection), or if its output is a linear function of its input (decompositions,
projections). Any other transformer, such as a vectoriser, ends the inversion: the terms then belong
to its output columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from rbrl._common.typing import Array, FloatArray, IntArray

PROJECTIONS = (PCA, IncrementalPCA, FastICA, TruncatedSVD, GaussianRandomProjection, SparseRandomProjection)


@dataclass(frozen=True)
class Columns:
    """One row between two steps of a pipeline.

    Attributes
    ----------
    data : object
        Row in a form that the next step accepts: a matrix or frame of one row, or a list of one text.
    names : list of str or None
        Names of the columns; None for a text.
    """

    data: Any
    names: list[str] | None

    @property
    def values(self) -> Array:
        """Values of the columns (n_columns,)."""
        dense = self.data.toarray() if sparse.issparse(self.data) else np.asarray(self.data)
        return dense.ravel()

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

    Attributes
    ----------
    columns : array of int
        Indices of the columns of the terms.
    numbers, weights, references : array (n_terms,)
        Values of the columns, and weights and references of the terms.
    constant : float
    is_linear : bool
        True if `numbers` are the values of the columns. After a transformer that is not linear, the
        terms still belong to its columns, but cannot be divided among the inputs of a projection.
    """

    columns: IntArray
    numbers: FloatArray
    weights: FloatArray
    references: FloatArray
    constant: float = 0.0
    is_linear: bool = True

    @classmethod
    def from_weights(cls, weights: FloatArray, numbers: FloatArray, constant: float) -> "Terms":
        """Return the terms of a linear score of all columns."""
        return cls(np.arange(len(weights)), numbers, weights, np.zeros(len(weights)), constant)


@dataclass(frozen=True)
class NamedTerms:
    """Terms of a score with the names of their columns, or with the indices of training rows.

    Attributes
    ----------
    names : list of str, or of int for training rows
    values : array (n_terms,) of objects
        Values of the columns.
    references : array (n_terms,)
        Values at which the terms are 0; NaN after a transformer that is not linear.
    contributions : array (n_terms,)
        Values of the terms.
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
    if hasattr(data, "columns"):
        return [str(name) for name in data.columns]
    if hasattr(step, "get_feature_names_out"):
        return [str(name) for name in step.get_feature_names_out(names)]
    return [f"{type(step).__name__.lower()}{i}" for i in range(data.shape[1])]


def invert_steps(steps: Sequence[Any], stages: Sequence[Columns], terms: Terms) -> tuple[NamedTerms, float]:
    """Convert terms of the last stage to terms of the earliest possible stage.

    Parameters
    ----------
    steps : sequence of fitted transformers
        Result of :func:`flatten_steps`.
    stages : sequence of Columns
        Result of :func:`apply_steps`.
    terms : Terms
        Terms of the columns of the last stage.

    Returns
    -------
    terms : NamedTerms
    constant : float
        Constant that completes the score.
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
    """Convert terms of the output of a step to terms of its input; return None if impossible."""
    if isinstance(step, PROJECTIONS):
        return _invert_projection(step, before, terms) if terms.is_linear else None
    if before.names is None or after.names is None or not _keeps_names(step, after):
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


def _keeps_names(step: Any, after: Columns) -> bool:
    """Return True if equal names of input and output columns mean the same column.

    Names that are made of the class name of a step are equal after two steps of one class, although
    the columns differ.
    """
    named_by_class = isinstance(step, ClassNamePrefixFeaturesOutMixin)
    return not named_by_class and (hasattr(step, "get_feature_names_out") or hasattr(after.data, "columns"))


def _invert_projection(step: Any, before: Columns, terms: Terms) -> Terms:
    """Convert terms by the formula ``output = components @ (input - mean)``."""
    components = step.components_
    if isinstance(step, PCA | IncrementalPCA) and step.whiten:
        components = components / np.sqrt(np.maximum(step.explained_variance_, np.finfo(np.float64).eps))[:, None]
    weights = np.asarray(components[terms.columns].T @ terms.weights, dtype=np.float64).ravel()
    mean = getattr(step, "mean_", None)
    references = np.zeros(len(weights)) if mean is None else np.asarray(mean, dtype=np.float64)
    constant = terms.constant - float(terms.weights @ terms.references)
    return Terms(np.arange(len(weights)), before.values.astype(np.float64), weights, references, constant)


def _scale_and_shift(step: Any, before: Columns, after: Columns) -> tuple[FloatArray, FloatArray] | None:
    """Return scale and shift of each output column of a linear step; None for other steps."""
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
    """Convert the terms of each part of a ColumnTransformer by the rules for its transformer."""
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
    """Return the input of one part of a ColumnTransformer; a single column, not in a list, is a text."""
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
