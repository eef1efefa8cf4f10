"""Weights of the last step of a pipeline, carried back to the columns that the first one was given.

A step is undone where its output is known by the names of its input (scalers, imputers, selections of columns) or is a
linear map of it (decompositions, projections). Any other step, such as a vectoriser, is where the way back ends: the terms
are those of its own columns, under the names it gives them.
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
    """One row on its way through a pipeline.

    Attributes
    ----------
    data : object
        The row as a step takes it: a matrix or frame of one row, or a list of one text.
    names : list of str or None
        Of its columns; None for a text.
    """

    data: Any
    names: list[str] | None

    @property
    def values(self) -> Array:
        """What the columns hold, as it was given: (n_columns,)."""
        dense = self.data.toarray() if sparse.issparse(self.data) else np.asarray(self.data)
        return dense.ravel()

    @property
    def numbers(self) -> FloatArray | None:
        """The same as float64; None where it is no number."""
        try:
            return self.values.astype(np.float64)
        except (TypeError, ValueError):
            return None


@dataclass(frozen=True)
class Terms:
    """A score as a sum: ``weights * (numbers - references)`` of some columns, and a constant.

    Attributes
    ----------
    columns : array of int
        Which columns of the present step's input the terms belong to.
    numbers, weights, references : array (n_terms,)
    constant : float
    movable : bool
        Whether `numbers` are what these columns hold. After a step that is no linear map of its column they are not: such
        terms still belong to a column, but not to what a projection mixed it from.
    """

    columns: IntArray
    numbers: FloatArray
    weights: FloatArray
    references: FloatArray
    constant: float = 0.0
    movable: bool = True

    @classmethod
    def of(cls, weights: FloatArray, numbers: FloatArray, constant: float) -> "Terms":
        """The terms of a linear score.

        Parameters
        ----------
        weights, numbers : array (n_columns,)
        constant : float

        Returns
        -------
        Terms
        """
        return cls(np.arange(len(weights)), numbers, weights, np.zeros(len(weights)), constant)


@dataclass(frozen=True)
class NamedTerms:
    """Terms whose way back has ended.

    Attributes
    ----------
    names : list of str, or of int for training rows
    values : array (n_terms,) of objects
        What the columns of these names hold.
    references : array (n_terms,)
        The value at which a term is 0; NaN where a step that is not linear lies between.
    contributions : array (n_terms,)
    """

    names: list[Any]
    values: Array
    references: FloatArray
    contributions: FloatArray

    @classmethod
    def of(cls, terms: Terms, columns: Columns) -> "NamedTerms":
        """Terms under the names of their columns.

        Parameters
        ----------
        terms : Terms
        columns : Columns

        Returns
        -------
        NamedTerms
        """
        names = columns.names or [f"x{i}" for i in range(len(columns.values))]
        references = terms.references if terms.movable else np.full(len(terms.columns), np.nan)
        contributions = terms.weights * (terms.numbers - terms.references)
        values = columns.values[terms.columns].astype(object)
        return cls([names[i] for i in terms.columns], values, references, contributions)

    @classmethod
    def joined(cls, parts: "Sequence[NamedTerms]") -> "NamedTerms":
        """All terms of several parts.

        Parameters
        ----------
        parts : sequence of NamedTerms

        Returns
        -------
        NamedTerms
        """
        names = [name for part in parts for name in part.names]
        arrays = ([getattr(part, what) for part in parts] for what in ("values", "references", "contributions"))
        return cls(names, *map(np.concatenate, arrays))


def flat_steps(transformer: Any) -> list[Any]:
    """The transformers that one is made of: those of a pipeline one after the other, none where it hands on its input.

    Parameters
    ----------
    transformer : fitted transformer, or "passthrough" or None

    Returns
    -------
    list of fitted transformers
    """
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return []
    if isinstance(transformer, Pipeline):
        return [step for _, inner in transformer.steps for step in flat_steps(inner)]
    return [transformer]


def forward(steps: Sequence[Any], columns: Columns) -> list[Columns]:
    """What each of the fitted steps is given, and what the last one returns.

    Parameters
    ----------
    steps : sequence of fitted transformers
        As of :func:`flat_steps`.
    columns : Columns

    Returns
    -------
    list of Columns, one more than there are steps
    """
    stages = [columns]
    for step in steps:
        data = step.transform(stages[-1].data)
        stages.append(Columns(data, _names_out(step, stages[-1].names, data)))
    return stages


def _names_out(step: Any, names: list[str] | None, data: Any) -> list[str]:
    if hasattr(data, "columns"):
        return [str(name) for name in data.columns]
    if hasattr(step, "get_feature_names_out"):
        return [str(name) for name in step.get_feature_names_out(names)]
    return [f"{type(step).__name__.lower()}{i}" for i in range(data.shape[1])]


def named_terms(steps: Sequence[Any], stages: Sequence[Columns], terms: Terms) -> tuple[NamedTerms, float]:
    """Carry terms of the last stage back as far as they can be, and name them.

    Parameters
    ----------
    steps : sequence of fitted transformers
        As of :func:`flat_steps`.
    stages : sequence of Columns
        What :func:`forward` returns.
    terms : Terms
        Of the columns of the last stage.

    Returns
    -------
    terms : NamedTerms
    constant : float
        With them the whole score.
    """
    for step, given, made in reversed(list(zip(steps, stages[:-1], stages[1:]))):
        if isinstance(step, ColumnTransformer):
            return _through_parts(step, given, made, terms)
        undone = _undone(step, given, made, terms)
        if undone is None:
            return NamedTerms.of(terms, made), terms.constant
        terms = undone
    return NamedTerms.of(terms, stages[0]), terms.constant


def _undone(step: Any, given: Columns, made: Columns, terms: Terms) -> Terms | None:
    """Terms of a step's output as terms of its input; None if they are none."""
    if isinstance(step, PROJECTIONS):
        return _mixed(step, given, terms) if terms.movable else None
    if given.names is None or made.names is None or not _keeps_names(step, made):
        return None
    place = {name: i for i, name in enumerate(given.names)}
    if len(place) < len(given.names) or not set(made.names) <= set(place):
        return None
    columns = np.array([place[made.names[i]] for i in terms.columns], dtype=np.intp)
    map_of_columns = _scale_and_shift(step, given, made) if terms.movable else None
    numbers = given.numbers
    if map_of_columns is None or numbers is None:
        return replace(terms, columns=columns, movable=False)
    scale, shift = (part[terms.columns] for part in map_of_columns)
    references = (terms.references - shift) / scale
    return replace(
        terms, columns=columns, numbers=numbers[columns], weights=terms.weights * scale, references=references
    )


def _keeps_names(step: Any, made: Columns) -> bool:
    """Whether names of a step's output that are those of its input mean the same columns.

    Names that are made of the step's class are the same after two steps of a class, and mean nothing.
    """
    named_after_class = isinstance(step, ClassNamePrefixFeaturesOutMixin)
    return not named_after_class and (hasattr(step, "get_feature_names_out") or hasattr(made.data, "columns"))


def _mixed(step: Any, given: Columns, terms: Terms) -> Terms:
    """Terms of a projection's input: ``output = components @ (input - mean)``."""
    numbers = given.values.astype(np.float64)
    components = step.components_
    if isinstance(step, PCA | IncrementalPCA) and step.whiten:
        components = components / np.sqrt(np.maximum(step.explained_variance_, np.finfo(np.float64).eps))[:, None]
    weights = np.asarray(components[terms.columns].T @ terms.weights, dtype=np.float64).ravel()
    mean = getattr(step, "mean_", None)
    references = np.zeros(len(weights)) if mean is None else np.asarray(mean, dtype=np.float64)
    constant = terms.constant - float(terms.weights @ terms.references)
    return Terms(np.arange(len(weights)), numbers, weights, references, constant)


def _scale_and_shift(step: Any, given: Columns, made: Columns) -> tuple[FloatArray, FloatArray] | None:
    """Factors and constants of a step that maps each column linearly, for every column of its output; None of others."""
    one, zero = np.ones(len(made.names or ())), np.zeros(len(made.names or ()))
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
        before, after = (columns.values.astype(np.float64) for columns in (given, made))
        if not before.any():
            return one, zero
        return one * float(after @ before) / float(before @ before), zero
    if hasattr(step, "get_support"):
        return one, zero
    return None


def _through_parts(step: ColumnTransformer, given: Columns, made: Columns, terms: Terms) -> tuple[NamedTerms, float]:
    """Terms of all transformers of a ColumnTransformer, each named as it names its own."""
    parts, constant = [], terms.constant
    for name, transformer, columns in step.transformers_:
        here = step.output_indices_[name]
        chosen = np.flatnonzero((terms.columns >= here.start) & (terms.columns < here.stop))
        if not len(chosen):
            continue
        part = replace(
            terms, columns=terms.columns[chosen] - here.start, numbers=terms.numbers[chosen],
            weights=terms.weights[chosen], references=terms.references[chosen], constant=0.0,
        )  # fmt: skip
        inner = flat_steps(transformer)
        named, more = named_terms(inner, forward(inner, _part_of(given, columns)), part)
        prefix = f"{name}__" if step.verbose_feature_names_out is True else ""
        parts.append(replace(named, names=[prefix + one for one in named.names]))
        constant += more
    return NamedTerms.joined(parts), constant


def _part_of(given: Columns, columns: Any) -> Columns:
    """The columns that one transformer of a ColumnTransformer is given; a single one, not in a list, is a text."""
    names = given.names or []
    if isinstance(columns, str | int | np.integer):
        place = names.index(columns) if isinstance(columns, str) else int(columns)
        return Columns(_taken(given.data, place), None)
    if isinstance(columns, slice):
        places = np.arange(len(names))[columns]
    else:
        wanted = np.asarray(columns)
        by_name = wanted.dtype.kind in "OUT"
        places = np.array([names.index(one) for one in wanted]) if by_name else np.arange(len(names))[wanted]
    return Columns(_taken(given.data, places), [names[i] for i in places])


def _taken(data: Any, places: Any) -> Any:
    return data.iloc[:, places] if hasattr(data, "iloc") else data[:, places]
