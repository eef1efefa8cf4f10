"""Conversion of any scikit-learn target to signed labels in {-1, 0, +1}, and back.

A missing label is NaN in the target, and 0 in the signed labels.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from rbrl._common.features import check_in_memory
from rbrl._common.frames import column_names, is_missing, label_values, missing_entries
from rbrl._common.matrices import SparseLabels
from rbrl._common.typing import Array, BoolArray, FloatArray, IntArray
from rbrl.exceptions import InvalidLabelsError


def label_matrix(
    y: Any, label_names: Iterable[object] | None = None, sets_as_sparse: bool = False
) -> tuple[Any, list[str] | None]:
    """Return labels in a form that scikit-learn accepts, and the names of their columns.

    Parameters
    ----------
    y : array, sparse matrix, data frame or list (n_samples, n_labels), or (n_samples,), classes; or label sets
        Labels. Label sets are a list, a series or an array with one element for each row: a list,
        tuple, set or array of strings, or a set of any objects. They become a matrix of 0/1.
    label_names : sequence of str, default=None
        Names of all labels, in the order of the columns. If y is a data frame, they must be its
        column names.
    sets_as_sparse : bool, default=False
        Whether label sets become a CSR matrix instead of an array.

    Returns
    -------
    y : matrix of 0/1 for label sets, otherwise y unchanged
    names : list of str or None
        Names of the labels; None if the labels have no names.

    Examples
    --------
    >>> label_matrix([["sea", "sun"], [], ["sun"]])
    (array([[1, 1],
           [0, 0],
           [0, 1]]), ['sea', 'sun'])
    >>> label_matrix([[1, 0]], label_names=["sea", "sun"])
    ([[1, 0]], ['sea', 'sun'])
    """
    given = None if label_names is None else _check_names(label_names)
    is_numeric = isinstance(y, np.ndarray) and y.dtype.kind in "biuf"
    if not is_numeric:
        _check_form(y)
    rows = None if is_numeric else _label_sets(y)
    if rows is not None:
        relevant, names = _binarise(rows, given)
        return relevant if sets_as_sparse else relevant.toarray(), names
    found = None if is_numeric else column_names(y)
    if given is None:
        return y, found
    shape = y.shape if hasattr(y, "shape") else np.shape(y)
    if len(shape) != 2:
        raise InvalidLabelsError(
            f"label_names need a label matrix, with a column for each name. Got y of shape {shape}."
        )
    return y, list(agreed_names(given, found, shape[1]) or ())


def _check_form(y: Any) -> None:
    """Raise an error if labels are not in memory, complex, dicts, or columns with equal names."""
    check_in_memory("y", y)
    if getattr(getattr(y, "dtype", None), "kind", "") == "c":
        raise InvalidLabelsError(
            f"y must hold 0/1 or -1/+1, or classes. Got {y.dtype}. Complex data not supported: pass y.real."
        )
    if isinstance(y, list | tuple) and y and isinstance(y[0], dict):
        raise InvalidLabelsError(
            "y must be a matrix of labels, one column per label, or label sets. Got a dict for "
            f"each row, such as {y[0]!r}; pass pandas.DataFrame(y)."
        )
    names = column_names(y) or []
    if len(set(names)) < len(names):
        name, n_columns = Counter(names).most_common(1)[0]
        raise InvalidLabelsError(
            f"The columns of y must have names that differ. Got {name!r} for {n_columns} columns; rename them."
        )


def are_label_sets(y: Any) -> bool:
    """Return True if y has a list or a set of labels for each row; see `label_matrix`.

    Examples
    --------
    >>> are_label_sets([["sea", "sun"], []]), are_label_sets([[1, 0], [0, 1]])
    (True, False)
    """
    return _label_sets(y) is not None


def agreed_names(given: Iterable[object] | None, found: Sequence[str] | None, n_labels: int) -> Sequence[str] | None:
    """Return the names of labels, or None; the names that the user gave must equal those found in y.

    Examples
    --------
    >>> agreed_names(None, ["sea", "sun"], 2)
    ['sea', 'sun']
    """
    if given is None:
        return found
    names = _check_names(given)
    if len(names) != n_labels:
        raise InvalidLabelsError(
            f"label_names must have a name for each label. Got {len(names)} names for {n_labels} columns of y."
        )
    if found is not None and list(found) != names:
        raise InvalidLabelsError(
            f"label_names must be the names of y's columns, {_abbreviate(found)}. Got {_abbreviate(names)}; leave "
            "label_names out, or put the columns in that order."
        )
    return names


def _check_names(names: Iterable[object]) -> list[str]:
    """Return names as a list of text; refuse a single text, and names that are not distinct."""
    if isinstance(names, str):
        raise InvalidLabelsError(f"label_names must be a sequence of names. Got the text {names!r}.")
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise InvalidLabelsError(f"label_names must differ from each other. Got {twice!r} more than once.")
    return texts


def _abbreviate(names: Sequence[str]) -> str:
    """Return the first four names in quotes, for a message."""
    return ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "")


def _label_sets(y: Any) -> list[Any] | None:
    """Return the rows of label sets, or None if y is another form of labels.

    It raises InvalidLabelsError for lists of numbers that are neither a matrix nor sets. The labels
    themselves are not checked.
    """
    rows = y if isinstance(y, list | tuple) else _rows_of_column(y)
    if rows is None:
        return None
    lists = [row for row in rows if isinstance(row, list | tuple | np.ndarray)]
    have_strings = any(isinstance(label, str) for row in lists for label in row[:1])
    all_empty = bool(lists) and not any(map(len, lists))
    if have_strings or all_empty or any(isinstance(row, set | frozenset) for row in rows):
        return list(rows)
    if (rows is not y and lists) or len({len(row) for row in lists}) > 1:
        raise InvalidLabelsError(
            f"y must be a matrix of labels, one column per label, or label sets. Got lists of numbers, such as "
            f"{lists[0]!r}, {'of different lengths' if rows is y else 'in one column'}; for sets of labels that are numbers "
            "pass set(row) for each row, for a matrix rows of one length."
        )
    return None


def _rows_of_column(y: Any) -> list[Any] | None:
    """Return the elements of a series or 1-D array of objects as a list, or else None."""
    if len(getattr(y, "shape", ())) != 1 or getattr(y, "dtype", None) is None:
        return None
    if isinstance(y.dtype, np.dtype):
        return y.tolist() if y.dtype == object else None
    return y.to_list() if hasattr(y, "to_list") else None


def _binarise(rows: list[Any], given: list[str] | None) -> tuple[Any, list[str]]:
    """Return an int64 CSR matrix of 0/1 and the names of its columns: given names, or all sorted labels.

    It raises InvalidLabelsError for a row that is no list or set, for labels without a given name,
    and if there is no label at all.
    """
    for i, row in enumerate(rows):
        if not isinstance(row, set | frozenset | list | tuple | np.ndarray) or any(map(is_missing, row)):
            raise InvalidLabelsError(
                "Label sets must have a list or a set of labels for each row, empty where there is none. "
                f"Got {row!r} in row {i}."
            )
    labels = {label for row in rows for label in row}
    try:
        found = [str(label) for label in sorted(labels)]
    except TypeError:  # numbers and text together
        found = sorted(map(str, labels))
    names = list(dict.fromkeys(found)) if given is None else given
    columns = {name: j for j, name in enumerate(names)}
    unknown = [name for name in found if name not in columns]
    if unknown:
        raise InvalidLabelsError(
            f"Label sets may contain only the labels {_abbreviate(names)}. Unknown labels: {_abbreviate(unknown)}."
        )
    if not names:
        raise InvalidLabelsError(
            f"Label sets must have a label in some row. Got {len(rows)} empty sets; name the labels in label_names."
        )
    relevant = [sorted({columns[str(label)] for label in row}) for row in rows]
    ends = np.cumsum([0, *map(len, relevant)])
    indices = np.fromiter(chain.from_iterable(relevant), dtype=np.int64, count=int(ends[-1]))
    return sparse.csr_array(
        (np.ones(len(indices), dtype=np.int64), indices, ends), shape=(len(rows), len(names))
    ), names


def encode_matrix(Y: Array) -> Array:
    """Return a dense label matrix of 0/1 or -1/+1 as a new int8 array in {-1, 0, +1}, 0 for NaN.

    Examples
    --------
    >>> encode_matrix(np.array([[1.0, 0.0, np.nan]]))
    array([[ 1, -1,  0]], dtype=int8)
    """
    labels = np.where(Y > 0, np.int8(1), np.int8(-1))
    return np.where(np.isnan(Y), np.int8(0), labels) if Y.dtype.kind == "f" else labels


def _describe_type_error(y: Any, target: str) -> str:
    """Return the rule for the values of y, the value that breaks it, and the solution."""
    rule = "y must hold 0/1 or -1/+1, or classes if it is 1-D. Got"
    if not target.startswith("continuous"):
        return (
            f"{rule} {type(y).__name__} of shape {np.shape(y)} with values such as {np.ravel(y)[0]!r}; pass integers."
        )
    stored = np.ravel(y.data if sparse.issparse(y) else y)
    fraction = stored[stored != np.round(stored)][0]
    return (
        f"{rule} {fraction:g} in y, which is {target}; choose a threshold above which a label is "
        "relevant: "
        "(y > threshold).astype(int)."
    )


def _describe_coding_error(values: set[Any], n_columns: int) -> str:
    """Return the message that the labels of a matrix have other values than 0/1 or -1/+1."""
    ordered = sorted(values)
    shown = ", ".join(map(repr, ordered[:6])) + (", ..." if len(values) > 6 else "")
    relevant = repr(ordered[-1])
    if values <= {-1, 0, 1}:
        solution = "if 0 and -1 both mean irrelevant, pass (y > 0).astype(int)"
    elif len(values) <= 2:
        solution = f"pass (y == {relevant}).astype(int) if {relevant} means relevant"
    else:
        solution = (
            "for ratings choose a threshold, (y > threshold).astype(int); for columns of classes, "
            "fit a model to each column"
        )
    return (
        f"A label matrix must hold 0/1 or -1/+1. Got the values {shown} in a matrix of {n_columns} columns; {solution}."
    )


class SignedTargets:
    """Encoder of targets that remembers the coding of `fit`, and decodes predictions to it.

    Attributes
    ----------
    kind : {"binary", "multiclass", "multilabel"}
        Kind of the target.
    classes_ : array
        Classes of a 1-D target, or column indices of a label matrix.
    is_matrix : bool
        True if the target is a label matrix.
    low : {0, -1}
        Code of an irrelevant label in a label matrix.
    dtype : dtype
        Type of the known labels of a label matrix, and of its predictions.
    sparse_container : type or None
        Class of the predictions for sparse labels of any format: `csr_array` or `csr_matrix`.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[1, 0], [0, 1]])
    >>> targets = SignedTargets().fit(y)
    >>> targets.encode(y)
    array([[ 1, -1],
           [-1,  1]], dtype=int8)
    >>> scores = np.array([[0.3, 0.2]])
    >>> targets.decode(scores > 0, scores)
    array([[1, 1]])
    >>> targets.encode(np.array([[1.0, np.nan]]))
    array([[1, 0]], dtype=int8)
    """

    kind: str
    classes_: Array
    is_matrix: bool
    low: int
    dtype: np.dtype[Any]
    sparse_container: Any

    def fit(self, y: Any) -> Self:
        """Learn the coding of `y`.

        Parameters
        ----------
        y : array, sparse matrix, data frame, series or list
            A 1-D target, or a label matrix of 0/1 or -1/+1, with NaN, None, NA or a masked entry for a missing label.
        """
        y, dtype, self.sparse_container = label_values(y)
        missing = missing_entries(y)
        if missing is not None and missing.all():
            raise InvalidLabelsError(f"No label of any row is known: all {missing.size} entries of y are missing.")
        y = y if missing is None else np.where(missing, y[~missing][0], y)
        target = type_of_target(y, input_name="y")
        if target.startswith("continuous") or target == "unknown":
            raise InvalidLabelsError(f"Unknown label type: {target}. {_describe_type_error(y, target)}")
        known = np.unique(y.data if sparse.issparse(y) else y)
        values = set(known.tolist())
        # One column of 0/1 is a label matrix. One column of other classes is treated as a 1-D target.
        self.is_matrix = y.ndim == 2 and (y.shape[1] > 1 or (target == "binary" and values <= {-1, 0, 1}))
        if not self.is_matrix:
            if missing is not None:
                raise InvalidLabelsError(
                    f"Classes must be known in every row; only labels of 0/1 or -1/+1 may be missing. Got the classes "
                    f"{known[:6]}, and {np.count_nonzero(missing)} rows without a class."
                )
            self.classes_ = known
            self.kind = "multiclass" if len(known) > 2 else "binary"
            return self
        if sparse.issparse(y) and y.nnz < np.prod(y.shape):
            values |= {0}
        if not (values <= {0, 1} or values <= {-1, 1}):
            raise InvalidLabelsError(_describe_coding_error(values, y.shape[1]))
        self.kind = "multilabel"
        self.classes_ = np.arange(y.shape[1])
        self.low = -1 if -1 in values else 0
        self.dtype = dtype
        return self

    @classmethod
    def of_matrix(cls, n_labels: int, low: int, dtype: Any, is_sparse: bool = False) -> Self:
        """Return an encoder of label matrices from its attributes, for labels that are not in memory as one matrix.

        `low` is the code of an irrelevant label, 0 or -1.
        """
        targets = cls()
        targets.is_matrix = True
        targets.kind = "multilabel"
        targets.classes_ = np.arange(n_labels)
        targets.low = low
        targets.dtype = np.dtype(dtype)
        targets.sparse_container = sparse.csr_array if is_sparse else None
        return targets

    @property
    def n_columns(self) -> int:
        """Number of score columns: one per label or class, one for a binary 1-D target."""
        return 1 if self.kind == "binary" else len(self.classes_)

    def sklearn_classes(self) -> Array:
        """Return the attribute `classes_` of a scikit-learn classifier of these targets.

        The result has the classes of a 1-D target, or the column numbers of three or more labels.
        The numbers of one or two columns would look like the classes of a binary target: scorers
        would negate the scores of a single label, and drop one of two columns of probabilities.
        Therefore one or two labels have a row (irrelevant, relevant) each, as in scikit-learn's
        multi-output classifiers.

        Returns
        -------
        array (n_classes,), (n_labels,) or (n_labels, 2)

        Examples
        --------
        >>> SignedTargets().fit([[0], [1]]).sklearn_classes()
        array([[0, 1]])
        >>> SignedTargets().fit([[0, 1, 1], [1, 0, 1]]).sklearn_classes()
        array([0, 1, 2])
        """
        if not self.is_matrix or len(self.classes_) > 2:
            return self.classes_
        return np.tile(np.array([self.low, 1], dtype=self.dtype), (len(self.classes_), 1))

    def encode(self, y: Any, keep_sparse: bool = False) -> Any:
        """Return int8 labels (n_samples, n_columns) in {-1, 0, +1}, with 0 for a missing label.

        The labels must be coded as those of `fit`; this is not checked. See :meth:`encode_batch`.

        Parameters
        ----------
        y : array, sparse matrix, data frame, series or list
        keep_sparse : bool, default=False
            Whether a sparse label matrix becomes :class:`SparseLabels` instead of a dense array.
        """
        y = label_values(y).values
        if not self.is_matrix:
            columns = self.classes_[-1:] if self.kind == "binary" else self.classes_
            return np.where(np.ravel(y)[:, None] == columns, np.int8(1), np.int8(-1))
        if not sparse.issparse(y):
            return encode_matrix(y)
        relevant = (y > 0).tocsr()
        relevant.sum_duplicates()
        labels = SparseLabels(relevant)
        return labels if keep_sparse else np.asarray(labels)

    def encode_batch(self, y: Any) -> IntArray:
        """Return signed labels of further rows, which must be coded as those of `fit`.

        The arguments and the dense result are those of :meth:`encode`. The coding of `fit` is kept.
        """
        if not self.is_matrix:
            unknown = np.setdiff1d(np.ravel(y), self.classes_)
            if len(unknown):
                raise InvalidLabelsError(
                    f"y must hold classes among {self.classes_}. Got {unknown[:5]} in this batch. A model cannot learn new "
                    "classes: start a new model, and pass all classes as classes= in its first call."
                )
            return self.encode(y)
        batch = SignedTargets().fit(y)
        if not batch.is_matrix or len(batch.classes_) != len(self.classes_) or batch.low < self.low:
            raise InvalidLabelsError(
                f"Labels must be coded as in the first batch: {len(self.classes_)} columns of {self.low}/1. Got a batch "
                f"of {batch.n_columns} columns{f' of {batch.low}/1' if batch.is_matrix else ''}. A model cannot learn new "
                "labels: start a new model, and give each batch a column for every label."
            )
        return batch.encode(y)

    def decode(self, relevant: BoolArray, scores: FloatArray) -> Any:
        """Return predictions in the coding of `fit`, from the mask of relevant labels and the scores.

        Both have the shape (n_rows, n_columns). The prediction for three or more classes is the
        class with the largest score, and the mask is ignored. The result is sparse if the labels of
        `fit` were sparse.
        """
        if self.kind == "multiclass":
            return self.classes_[scores.argmax(axis=1)]
        if not self.is_matrix:
            return self.classes_[relevant[:, 0].astype(int) if len(self.classes_) == 2 else np.zeros(len(scores), int)]
        if self.sparse_container and self.low == 0:
            return self.sparse_container(relevant).astype(self.dtype)
        labels = np.where(relevant, self.dtype.type(1), self.dtype.type(self.low))
        return self.sparse_container(labels) if self.sparse_container else labels
