"""`Dataset`: features, labels, names, and the splits that came with them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.frames import check_same_rows, fill_masked_entries
from rbrl._common.typing import Array, ArrayLike, IntArray, Matrix, MatrixLike
from rbrl.datasets.catalogue import Card, canonical_order, row_digests
from rbrl.datasets.columns import PREFIXES, Columns, NumberedNames, find_names
from rbrl.exceptions import DataFormatError

Split = tuple[IntArray, IntArray]


def dense(A: Any) -> Array:
    """Return a matrix, dense or sparse, as an array."""
    return A.toarray() if sparse.issparse(A) else np.asarray(A)


def stored_values(A: Any) -> Array:
    """Return the numbers that a matrix keeps: all of a dense one, those of a sparse one that are not left out."""
    return A.data if sparse.issparse(A) else np.asarray(A)


def stack_rows(blocks: Sequence[Any]) -> Any:
    """Return the rows of all blocks as one matrix, sparse if one of them is."""
    return (sparse.vstack if any(map(sparse.issparse, blocks)) else np.vstack)(blocks) if len(blocks) > 1 else blocks[0]


def _sums(A: Any, axis: int) -> IntArray:
    return np.asarray(A.sum(axis=axis, dtype=np.int64)).ravel()


class Part(NamedTuple):
    """Some rows of a data set; unpacks as ``X, Y`` or into ``fit(*part)``.

    Attributes
    ----------
    X : array or sparse matrix (n_rows, n_features)
    Y : array or sparse matrix (n_rows, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.datasets import Part
    >>> X, Y = Part(np.eye(2), np.array([[0, 1], [1, 1]]))
    >>> X.shape
    (2, 2)
    """

    X: Matrix
    Y: Matrix


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Dataset:
    """A multi-label data set.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Stored as float64, dense or `scipy.sparse.csr_array`. A missing value is NaN.
    Y : ndarray or sparse array of shape (n_samples, n_labels)
        0/1, stored as int8, dense or `csr_array` as it came; a label that nobody looked at is NaN in dense float32.
    feature_names, label_names : sequence of str, optional
        Default: x1, x2, … and label1, label2, …
    name, description : str
    splits : mapping of str to (train_index, test_index)
        Splits that came with the data; the source's own is called "source".
    categorical_index : array of int
        Columns of X that hold codes of categories with more than two values.
    card : Card, optional
        What the catalogue knows about the set.
    first_feature, first_label : {0, 1}, optional
        Of a svmlight file: the numbers that its columns count from.
    ignored : sequence of str
        Columns of the file that were not read.
    label_words : mapping of str to int, optional
        Words of the file's label columns, and whether they mean 1 or 0, where that was declared.

    Examples
    --------
    >>> from rbrl.datasets import load
    >>> train, test = load("yeast").split(seed=0)
    >>> train.X.shape, test.Y.shape
    ((1450, 103), (967, 14))
    """

    X: Matrix
    Y: Matrix
    feature_names: Sequence[str]
    label_names: Sequence[str]
    name: str
    description: str
    splits: Mapping[str, Split]
    categorical_index: IntArray
    card: Card | None
    first_feature: int | None
    first_label: int | None
    ignored: Sequence[str]
    label_words: Mapping[str, int]

    def __init__(
        self, X: MatrixLike, Y: MatrixLike, feature_names: Iterable[object] | None = None,
        label_names: Iterable[object] | None = None, name: str = "data", description: str = "",
        splits: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None, categorical_index: ArrayLike = (),
        card: Card | None = None, first_feature: int | None = None, first_label: int | None = None,
        ignored: Sequence[str] = (), label_words: Mapping[str, int] | None = None,
    ):  # fmt: skip
        check_same_rows(X=X, Y=Y)
        fields = vars(self)  # what is frozen is set here once
        fields["X"] = _stored(X, "X must be a matrix of numbers", np.float64)
        fields["Y"] = _stored(Y, "Y must be a matrix of 0 and 1", np.int8)
        fields |= {"name": name, "description": description, "card": card, "first_feature": first_feature}
        fields |= {"first_label": first_label, "ignored": tuple(ignored), "label_words": dict(label_words or {})}
        if self.X.shape[0] != self.Y.shape[0]:
            raise DataFormatError(f"X and Y must have as many rows; got {self.X.shape[0]} and {self.Y.shape[0]}.")
        fields["feature_names"] = _names("feature", feature_names, self.n_features)
        fields["label_names"] = _names("label", label_names, self.n_labels)
        fields["categorical_index"] = _indexes("categorical_index", categorical_index, self.n_features)
        fields["splits"] = MappingProxyType({k: self._checked_split(k, v) for k, v in (splits or {}).items()})

    def _checked_split(self, name: str, split: tuple[ArrayLike, ArrayLike]) -> Split:
        train, test = (_indexes(f"split {name!r}", part, self.n_samples) for part in split)
        shared = np.intersect1d(train, test)
        if len(shared):
            raise DataFormatError(f"split {name!r} has rows in both parts, for example {shared[0]}.")
        return train, test

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.X.shape[1]

    @property
    def n_labels(self) -> int:
        """Number of columns of Y."""
        return self.Y.shape[1]

    @property
    def missing_labels(self) -> int:
        """Number of entries of Y that nobody looked at."""
        return int(np.count_nonzero(np.isnan(stored_values(self.Y))))

    @property
    def train_index(self) -> IntArray | None:
        """Training rows of the source's own split, or None."""
        return self.splits["source"][0] if "source" in self.splits else None

    @property
    def test_index(self) -> IntArray | None:
        """Test rows of the source's own split, or None."""
        return self.splits["source"][1] if "source" in self.splits else None

    @property
    def columns(self) -> Columns:
        """What a model fitted on this set knows of its columns: a :class:`Columns`."""
        names = (self.feature_names, self.label_names)
        features, labels = (None if isinstance(own, NumberedNames) else own for own in names)
        sizes, firsts = (self.n_features, self.n_labels), (self.first_feature, self.first_label)
        return Columns(*sizes, features, labels, *firsts, self.ignored, self.label_words)

    def matching(self, columns: Columns, owner: str = "the model was fitted on") -> "Dataset":
        """Return the set with the columns that a model was fitted on, in their order, matched by name.

        Where either has no names the columns stay as they are. Labels that the model does not know are left out.

        Parameters
        ----------
        columns : Columns
        owner : str
            Whose they are, for messages.

        Returns
        -------
        Dataset

        Raises
        ------
        DataFormatError
            A column is missing, or a feature is not one of the model's.
        """
        features = find_names("feature", self.feature_names, columns.feature_names, owner)
        labels = find_names("label", self.label_names, columns.label_names, owner)
        if features is not None and len(features) < self.n_features:
            strange = min(set(range(self.n_features)) - set(features))
            name = self.feature_names[strange]
            raise DataFormatError(f"its feature {name!r} is not one that {owner}: leave it out with ignore={name!r}")
        if features is None and columns.n_features not in (None, self.n_features):
            raise DataFormatError(f"it has {self.n_features} features; {owner} {columns.n_features} features")
        if labels is None and columns.n_labels not in (None, self.n_labels):
            raise DataFormatError(f"it has {self.n_labels} labels; {owner} {columns.n_labels} labels")
        all_features, all_labels = list(range(self.n_features)), list(range(self.n_labels))
        features, labels = (all_features if features is None else features), (all_labels if labels is None else labels)
        if features == all_features and labels == all_labels:
            return self
        place = {j: i for i, j in enumerate(features)}
        coded = np.array(sorted(place[j] for j in self.categorical_index.tolist() if j in place))
        names, label_names = [self.feature_names[j] for j in features], [self.label_names[j] for j in labels]
        changes: dict[str, Any] = {"feature_names": names, "label_names": label_names, "categorical_index": coded}
        return replace(self, X=self.X[:, features], Y=self.Y[:, labels], **changes)

    def __len__(self) -> int:
        return self.n_samples

    def take(self, rows: Any) -> Part:
        """Return the given rows as a `Part`.

        Parameters
        ----------
        rows : slice, or array of int or bool

        Returns
        -------
        Part

        Examples
        --------
        >>> from rbrl import datasets
        >>> X, Y = datasets.load("yeast").take([3, 1])
        >>> X.shape, Y.shape
        ((2, 103), (2, 14))
        """
        return Part(self.X[rows], self.Y[rows])

    def split(self, seed: int | str = 0, train_fraction: float = 0.6) -> tuple[Part, Part]:
        """Return (train, test), drawn at random.

        Parameters
        ----------
        seed : int or str
            Seed of the draw; or the name of a split that came with the data, such as "source".
        train_fraction : float, default=0.6
            Share of the rows to train on, the paper's 60 % by default; not used with a named split.

        Returns
        -------
        train, test : Part

        Examples
        --------
        >>> from rbrl import datasets
        >>> train, test = datasets.load("yeast").split(seed=0)
        >>> train.X.shape, test.Y.shape
        ((1450, 103), (967, 14))
        """
        if isinstance(seed, str):
            if seed not in self.splits:
                raise KeyError(f"{self.name} has no split {seed!r}; it has {sorted(self.splits)}.")
            train, test = self.splits[seed]
        else:
            from rbrl.splits import random_split  # brings scikit-learn, which data alone does not need

            train, test = random_split(self.n_samples, seed, train_fraction)
        return self.take(train), self.take(test)

    def reorder(self, order: IntArray) -> "Dataset":
        """Return the data set with row `order[i]` in place i; splits still mean the same rows.

        Parameters
        ----------
        order : ndarray of int
            A permutation of the rows.

        Returns
        -------
        Dataset
        """
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        splits = {name: (place[train], place[test]) for name, (train, test) in self.splits.items()}
        return replace(self, X=self.X[order], Y=self.Y[order], splits=splits)

    def canonical(self) -> "Dataset":
        """Return the data set with its rows in canonical order.

        Returns
        -------
        Dataset
        """
        return self.reorder(canonical_order(row_digests(self.X, self.Y)))

    def summary(self) -> dict[str, str | float]:
        """Return a dict of what one wants to know first: sizes, label statistics, oddities.

        `imbalance_mean` and `imbalance_max` are over the labels that occur: the count of the most frequent label divided
        by the label's own. `density` is that of known labels. `duplicate_rows` counts rows whose features equal those of
        an earlier row, `conflicting_duplicates` the feature vectors that occur with more than one label set.

        Returns
        -------
        dict of str to str, int or float

        Examples
        --------
        >>> from rbrl import datasets
        >>> summary = datasets.load("yeast").summary()
        >>> summary["n_samples"], summary["n_labels"], round(summary["cardinality"], 2)
        (2417, 14, 4.24)
        """
        X, Y, n_samples, n_labels = self.X, self.Y, self.n_samples, self.n_labels
        counts, per_row, nonzero = _sums(Y == 1, 0), _sums(Y == 1, 1), _sums(X != 0, 1)
        imbalance = counts.max(initial=0) / counts[counts > 0]
        _, first = np.unique(row_digests(X, Y), axis=0, return_index=True)
        _, label_sets = np.unique(row_digests(X)[first], axis=0, return_counts=True)
        known: dict[str, str | float] = {
            "name": self.name,
            "n_samples": n_samples,
            "n_features": self.n_features,
            "n_labels": n_labels,
            "feature_density": float(nonzero.sum() / max(1, n_samples * self.n_features)),
            "cardinality": float(counts.sum() / max(1, n_samples)),
            "density": float(counts.sum() / max(1, n_samples * n_labels - self.missing_labels)),
            "distinct_label_sets": len(np.unique(row_digests(sparse.csr_array((n_samples, 0)), Y), axis=0)),
            "imbalance_mean": float(imbalance.mean()) if imbalance.size else 0.0,
            "imbalance_max": float(imbalance.max(initial=0.0)),
            "rarest_label": int(counts.min(initial=n_samples)),
            "rows_without_labels": int((per_row == 0).sum()),
            "labels_without_rows": int((counts == 0).sum()),
            "rows_without_features": int((nonzero == 0).sum()),
            "missing_values": int(np.isnan(stored_values(X)).sum()),
            "duplicate_rows": n_samples - len(label_sets),
            "conflicting_duplicates": int((label_sets > 1).sum()),
        }
        return known | ({"missing_labels": self.missing_labels} if self.missing_labels else {})

    def __repr__(self) -> str:
        kind = "sparse" if sparse.issparse(self.X) else "dense"
        sizes = f"{self.n_samples} samples, {self.n_features} features ({kind}), {self.n_labels} labels"
        missing = f", {self.missing_labels} entries missing" if self.missing_labels else ""
        labels = f"  labels per sample {_sums(self.Y == 1, 0).sum() / max(self.n_samples, 1):.3f}{missing}"
        names = f"  features  {_some(self.feature_names)}\n  labels    {_some(self.label_names)}"
        splits = [f"  split {name!r}: {len(train)} / {len(test)}" for name, (train, test) in self.splits.items()]
        return "\n".join([f"Dataset {self.name!r}: {sizes}", labels, names, *splits])


def _stored(A: Any, rule: str, dtype: type) -> Matrix:
    """A matrix of features, or of labels as int8 or with NaN, checked and in the form that a data set keeps."""
    A = A if sparse.issparse(A) else np.asarray(fill_masked_entries(A))
    if A.ndim != 2 or A.dtype.kind not in "biuf":
        raise DataFormatError(f"{rule}; got shape {A.shape} of type {A.dtype}.")
    if dtype is np.int8 and (odd := ((values := stored_values(A)) != 0) & (values != 1)).any():
        if not np.isnan(values[odd]).all():
            raise DataFormatError(f"labels must be 0 or 1; got {values[odd & ~np.isnan(values)][0]!r}.")
        if sparse.issparse(A):
            raise DataFormatError("labels of which some are missing (NaN) must be dense; got a sparse matrix.")
        dtype = np.float32
    with np.errstate(invalid="ignore"):  # a signalling NaN of single precision is a NaN
        return (
            _compact(sparse.csr_array(A, dtype=dtype)) if sparse.issparse(A) else np.ascontiguousarray(A, dtype=dtype)
        )


def _compact(A: Any) -> Matrix:
    """Sort a CSR array and give it the 32-bit indexes that scikit-learn's solvers ask for, where they suffice."""
    if not A.has_canonical_format:
        A = A.copy()  # what was given is the caller's, and may be read-only
        A.sum_duplicates()
    if max(A.nnz, *A.shape) <= np.iinfo(np.int32).max:
        A.indices, A.indptr = A.indices.astype(np.int32, copy=False), A.indptr.astype(np.int32, copy=False)
    return A


def _names(what: str, names: Iterable[object] | None, n_columns: int) -> Sequence[str]:
    found = NumberedNames(PREFIXES[what], n_columns) if names is None else tuple(str(name) for name in names)
    if len(found) != n_columns:
        raise DataFormatError(f"there must be one {what} name per column: {n_columns}; got {len(found)}.")
    return found


def _indexes(what: str, given: ArrayLike, stop: int) -> IntArray:
    indexes = np.asarray(given).ravel()
    if not len(indexes):
        return indexes.astype(np.int64)
    if indexes.dtype.kind not in "iu":
        raise DataFormatError(f"{what} must hold row or column numbers; got {indexes[0]!r} of type {indexes.dtype}.")
    if not (indexes.min() >= 0 and indexes.max() < stop):
        raise DataFormatError(f"{what} must lie in 0..{stop - 1}; got {indexes.min()}..{indexes.max()}.")
    return indexes.astype(np.int64)


def _some(names: Sequence[str], limit: int = 6) -> str:
    shown = ", ".join(names[:limit])
    return shown + (f", … ({len(names)})" if len(names) > limit else "")
