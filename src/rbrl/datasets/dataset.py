"""`Dataset`: features, labels, the names of both, and the splits that the source provides.

Copies of the same data set differ in the order of rows, in storage and in number types. The *content*
of a row is a string of little-endian 64-bit words: the number of its relevant labels, the number of
its non-zero features, the indexes of both, and the values of these features as floats (all NaNs are
equal). The *digest* of a row is the SHA-256 of its content. The canonical order sorts rows by digest.
The content hash is the SHA-256 of the sizes followed by the sorted digests.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.frames import as_dense, check_same_rows
from rbrl._common.texts import list_first_names
from rbrl._common.typing import Array, ArrayLike, IntArray, Matrix, MatrixLike
from rbrl.datasets.columns import NAME_PREFIXES, Columns, NumberedNames, match_names
from rbrl.exceptions import DataFormatError

if TYPE_CHECKING:
    from rbrl.datasets.catalogue import Card

Split = tuple[IntArray, IntArray]


def stored_values(A: Any) -> Array:
    """Return all entries of a dense matrix, or the stored entries of a sparse one; not a copy."""
    return A.data if sparse.issparse(A) else np.asarray(A)


def stack_rows(blocks: Sequence[Any]) -> Any:
    """Return the rows of all blocks as one matrix, which is sparse, in CSR format, if a block is sparse.

    A single block is returned itself, not a copy.
    """
    if len(blocks) == 1:
        return blocks[0]
    if any(map(sparse.issparse, blocks)):
        return sparse.vstack([sparse.csr_array(block) for block in blocks], format="csr")
    return np.vstack(blocks)


def _count(A: Any, axis: int) -> IntArray:
    """Return the number of true entries along an axis of a boolean matrix, as int64."""
    return np.asarray(A.sum(axis=axis, dtype=np.int64)).ravel()


class Part(NamedTuple):
    """Some rows of a data set; it unpacks as ``X, Y`` and into ``fit(*part)``.

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
        Features, stored as float64, dense or as a `scipy.sparse.csr_array`. A missing value is NaN.
    Y : ndarray or sparse array of shape (n_samples, n_labels)
        Labels 0 and 1, stored as int8, dense or as a `csr_array`. A missing label is NaN; then Y is
        dense and of type float32.
    feature_names, label_names : sequence of str, optional
        Names of the columns. Default: x1, x2, … and label1, label2, …
    name, description : str
        Name of the data set, and some lines about it.
    splits : mapping of str to (train_index, test_index)
        Splits provided with the data; the split of the data's authors is called "source".
    categorical_index : array of int
        Columns of X that hold codes of categories with more than two values.
    card : Card, optional
        Entry of the catalogue.
    first_feature, first_label : {0, 1}, optional
        Lowest column number in the svmlight file.
    ignored : sequence of str
        Columns of the file that were not read.
    label_words : mapping of str to int, optional
        Words in label columns, and the value, 1 or 0, that they were declared to mean.
    categories : mapping of str to sequence of str, optional
        Words of the file's columns of words, which have a feature "column=word" for each word.

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
    card: "Card | None"
    first_feature: int | None
    first_label: int | None
    ignored: Sequence[str]
    label_words: Mapping[str, int]
    categories: Mapping[str, Sequence[str]]

    def __init__(
        self, X: MatrixLike, Y: MatrixLike, feature_names: Iterable[object] | None = None,
        label_names: Iterable[object] | None = None, name: str = "data", description: str = "",
        splits: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None, categorical_index: ArrayLike = (),
        card: "Card | None" = None, first_feature: int | None = None, first_label: int | None = None,
        ignored: Sequence[str] = (), label_words: Mapping[str, int] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
    ):  # fmt: skip
        if hasattr(X, "iloc"):
            check_same_rows(X=X, Y=Y)
        fields = vars(self)  # the way to set a field of a frozen object
        fields["X"] = _check_matrix(X, "X must be a matrix of numbers", np.float64)
        fields["Y"] = _check_matrix(Y, "Y must be a matrix of 0 and 1", np.int8)
        fields |= {"name": name, "description": description, "card": card, "first_feature": first_feature}
        fields |= {"first_label": first_label, "ignored": tuple(ignored)}
        fields |= {"label_words": dict(label_words or {}), "categories": dict(categories or {})}
        n_samples, n_features = self.X.shape
        n_rows, n_labels = self.Y.shape
        if n_samples != n_rows:
            raise DataFormatError(f"X and Y must have the same number of rows; got {n_samples} and {n_rows}.")
        fields["feature_names"] = _check_names("feature", feature_names, n_features)
        fields["label_names"] = _check_names("label", label_names, n_labels)
        fields["categorical_index"] = _check_indexes("categorical_index", categorical_index, n_features)
        fields["splits"] = {k: self._check_split(k, v) for k, v in (splits or {}).items()}

    def _check_split(self, name: str, split: tuple[ArrayLike, ArrayLike]) -> Split:
        """Return the two index arrays of a split; raise DataFormatError if parts share a row."""
        train, test = (_check_indexes(f"split {name!r}", part, self.n_samples) for part in split)
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
        """Number of missing labels, which are NaN in Y."""
        return int(np.count_nonzero(np.isnan(stored_values(self.Y))))

    @property
    def train_index(self) -> IntArray | None:
        """Training rows of the split "source", or None."""
        return self.splits["source"][0] if "source" in self.splits else None

    @property
    def test_index(self) -> IntArray | None:
        """Test rows of the split "source", or None."""
        return self.splits["source"][1] if "source" in self.splits else None

    @property
    def columns(self) -> Columns:
        """Description of the columns, which a model keeps to read other files in the same way."""
        names = (self.feature_names, self.label_names)
        features, labels = (None if isinstance(own, NumberedNames) else own for own in names)
        return Columns(
            self.X.shape[1], self.Y.shape[1], features, labels,
            self.first_feature, self.first_label, self.ignored, self.label_words, self.categories,
        )  # fmt: skip

    def matching(self, columns: Columns, owner: str = "the model was fitted on") -> "Dataset":
        """Return the data set with the columns of a model, matched by name, in the model's order.

        If either side has no names, the columns stay as they are. Labels that the model does not
        know are left out. If nothing changes, the data set itself is returned.

        Parameters
        ----------
        columns : Columns
            Columns of the model.
        owner : str
            Source of these columns in messages, such as "the model was fitted on".

        Raises
        ------
        DataFormatError
            A column is missing, or the model does not know a feature.
        """
        features = self._match("feature", columns, owner)
        labels = self._match("label", columns, owner)
        if len(features) < self.n_features:
            name = self.feature_names[min(set(range(self.n_features)) - set(features))]
            raise DataFormatError(f"its feature {name!r} is not one that {owner}: leave it out with ignore={name!r}")
        if features == list(range(self.n_features)) and labels == list(range(self.n_labels)):
            return self
        return replace(
            self,
            X=self.X[:, features], Y=self.Y[:, labels],
            feature_names=[self.feature_names[j] for j in features],
            label_names=[self.label_names[j] for j in labels],
            categorical_index=np.flatnonzero(np.isin(features, self.categorical_index)),
        )  # fmt: skip

    def _match(self, what: str, columns: Columns, owner: str) -> list[int]:
        """Return the columns found by name, in the model's order; without names, all columns."""
        n_columns, wanted = (getattr(one, f"n_{what}s") for one in (self, columns))
        names, wanted_names = (getattr(one, f"{what}_names") for one in (self, columns))
        found = match_names(what, names, wanted_names, owner)
        if found is None and wanted not in (None, n_columns):
            raise DataFormatError(f"it has {n_columns} {what}s; {owner} {wanted} {what}s")
        return list(range(n_columns)) if found is None else found

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n_samples

    def take(self, rows: Any) -> Part:
        """Return some rows; a slice of dense rows is a view.

        Parameters
        ----------
        rows : slice, or array of int or bool
            Row numbers, or a mask.

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
        """Return a training part and a test part.

        Parameters
        ----------
        seed : int or str
            Seed of a random split, or the name of a split in `splits`, such as "source".
        train_fraction : float, default=0.6
            Fraction of the rows in the training part of a random split. The paper uses 60 %.

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
            from rbrl.splits import random_split  # imports scikit-learn, which data sets do not need

            train, test = random_split(self.n_samples, seed, train_fraction)
        return self.take(train), self.take(test)

    def reorder(self, order: IntArray) -> "Dataset":
        """Return the data set with row `order[i]` as row i; splits keep their rows.

        Parameters
        ----------
        order : ndarray of int
            Permutation of the rows.
        """
        place = np.argsort(order)
        splits = {name: (place[train], place[test]) for name, (train, test) in self.splits.items()}
        return replace(self, X=self.X[order], Y=self.Y[order], splits=splits)

    def canonical(self) -> "Dataset":
        """Return the data set with its rows in canonical order."""
        return self.reorder(canonical_order(row_digests(self.X, self.Y)))

    def summary(self) -> dict[str, str | float]:
        """Return sizes, label statistics and peculiarities of the data.

        `imbalance_mean` and `imbalance_max` are statistics of the frequency of the most frequent
        label, divided by the frequency of each label that occurs. `density` counts known labels
        only. `duplicate_rows` counts rows whose features equal those of an earlier row, and
        `conflicting_duplicates` counts feature vectors that occur with different label sets.

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
        n_samples = self.n_samples
        relevant = self.Y == 1
        counts = _count(relevant, axis=0)
        n_nonzero = _count(self.X != 0, axis=1)
        imbalance = counts.max(initial=0) / counts[counts > 0]
        _, first = np.unique(row_digests(self.X, self.Y), axis=0, return_index=True)
        _, label_sets = np.unique(row_digests(self.X)[first], axis=0, return_counts=True)
        summary: dict[str, str | float] = {
            "name": self.name,
            "n_samples": n_samples,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "feature_density": float(n_nonzero.sum() / max(1, n_samples * self.n_features)),
            "cardinality": float(counts.sum() / max(1, n_samples)),
            "density": float(counts.sum() / max(1, n_samples * self.n_labels - self.missing_labels)),
            "distinct_label_sets": len(np.unique(row_digests(sparse.csr_array((n_samples, 0)), self.Y), axis=0)),
            "imbalance_mean": float(imbalance.mean()) if imbalance.size else 0.0,
            "imbalance_max": float(imbalance.max(initial=0.0)),
            "rarest_label": int(counts.min(initial=n_samples)),
            "rows_without_labels": int((_count(relevant, axis=1) == 0).sum()),
            "labels_without_rows": int((counts == 0).sum()),
            "rows_without_features": int((n_nonzero == 0).sum()),
            "missing_values": int(np.isnan(stored_values(self.X)).sum()),
            "duplicate_rows": n_samples - len(label_sets),
            "conflicting_duplicates": int((label_sets > 1).sum()),
        }
        return summary | ({"missing_labels": self.missing_labels} if self.missing_labels else {})

    def __repr__(self) -> str:
        kind = "sparse" if sparse.issparse(self.X) else "dense"
        sizes = f"{self.n_samples} samples, {self.n_features} features ({kind}), {self.n_labels} labels"
        missing = f", {self.missing_labels} entries missing" if self.missing_labels else ""
        labels = f"  labels per sample {_count(self.Y == 1, 0).sum() / max(self.n_samples, 1):.3f}{missing}"
        names = f"  features  {list_first_names(self.feature_names)}\n  labels    {list_first_names(self.label_names)}"
        splits = [f"  split {name!r}: {len(train)} / {len(test)}" for name, (train, test) in self.splits.items()]
        return "\n".join([f"Dataset {self.name!r}: {sizes}", labels, names, *splits])


def _check_matrix(A: Any, rule: str, dtype: type) -> Matrix:
    """Return features as float64, or labels as int8 or, if some are missing, as float32."""
    A = A if sparse.issparse(A) else as_dense(A)
    if A.ndim != 2 or A.dtype.kind not in "biuf":
        raise DataFormatError(f"{rule}; got shape {A.shape} of type {A.dtype}.")
    values = stored_values(A)
    if dtype is np.int8 and (odd := (values != 0) & (values != 1)).any():
        if not np.isnan(values[odd]).all():
            raise DataFormatError(f"labels must be 0 or 1; got {values[odd & ~np.isnan(values)][0]!r}.")
        if sparse.issparse(A):
            raise DataFormatError("labels of which some are missing (NaN) must be dense; got a sparse matrix.")
        dtype = np.float32
    with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs in single precision
        if sparse.issparse(A):
            return _shrink_indexes(sparse.csr_array(A, dtype=dtype))
        return np.ascontiguousarray(A, dtype=dtype)


def _shrink_indexes(A: Any) -> Matrix:
    """Sort a CSR array, and use the 32-bit indexes that scikit-learn needs if they are large enough."""
    if not A.has_canonical_format:
        A = A.copy()  # the array belongs to the caller and may be read-only
        A.sum_duplicates()
    if max(A.nnz, *A.shape) <= np.iinfo(np.int32).max:
        A.indices = A.indices.astype(np.int32, copy=False)
        A.indptr = A.indptr.astype(np.int32, copy=False)
    return A


def _check_names(what: str, names: Iterable[object] | None, n_columns: int) -> Sequence[str]:
    if names is None:
        return NumberedNames(NAME_PREFIXES[what], n_columns)
    found = tuple(map(str, names))
    if len(found) != n_columns:
        raise DataFormatError(f"there must be one {what} name per column: {n_columns}; got {len(found)}.")
    return found


def _check_indexes(what: str, given: ArrayLike, stop: int) -> IntArray:
    indexes = np.asarray(given).ravel()
    if len(indexes) and indexes.dtype.kind not in "iu":
        raise DataFormatError(f"{what} must hold row or column numbers; got {indexes[0]!r} of type {indexes.dtype}.")
    if len(indexes) and not (indexes.min() >= 0 and indexes.max() < stop):
        raise DataFormatError(f"{what} must lie in 0..{stop - 1}; got {indexes.min()}..{indexes.max()}.")
    return indexes.astype(np.int64)


def row_digests(X: MatrixLike, Y: MatrixLike | None = None) -> Array:
    """Return the SHA-256 digest of the content of each row, as four big-endian words.

    The labels are 0 and 1, or NaN for a missing label; None means no labels.
    """
    features = _drop_zeros(X)
    labels = _drop_zeros(sparse.csr_array((features.shape[0], 0)) if Y is None else Y)
    values = features.data.astype("<f8")
    values[np.isnan(values)] = np.nan
    feature_index = features.indices.astype("<i8")
    label_index = labels.indices.astype("<i8")
    label_index = np.where(np.isnan(labels.data), -1 - label_index, label_index)  # tells missing from relevant labels
    sizes = np.column_stack([np.diff(labels.indptr), np.diff(features.indptr)]).astype("<i8")
    digests = bytearray()
    for i in range(features.shape[0]):
        row = slice(*features.indptr[i : i + 2])
        relevant = label_index[slice(*labels.indptr[i : i + 2])]
        content = (part.tobytes() for part in (sizes[i], relevant, feature_index[row], values[row]))
        digests += hashlib.sha256(b"".join(content)).digest()
    return np.frombuffer(bytes(digests), dtype=">u8").reshape(-1, 4)


def canonical_order(digests: Array) -> IntArray:
    """Return the permutation that sorts rows by digest; equal rows keep their order."""
    return np.lexsort(digests.T[::-1])


def content_hash(digests: Array, n_features: int, n_labels: int) -> str:
    """Return the hexadecimal content hash of rows with these digests, in any order."""
    head = np.array([len(digests), n_features, n_labels], dtype="<i8").tobytes()
    return hashlib.sha256(head + digests[canonical_order(digests)].tobytes()).hexdigest()


def _drop_zeros(A: Any) -> Any:
    A = sparse.csr_array(A, copy=True)
    A.sum_duplicates()
    A.eliminate_zeros()
    return A
