"""Labels are translated once, at the edge: any scikit-learn target to and from signed Y in {-1, 0, +1}.

Inside, 0 is an entry of a label matrix that nobody looked at: outside it is NaN.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from rbrl._common.frames import as_dense, column_names, is_missing, label_values, missing_entries
from rbrl._common.typing import Array, BoolArray, FloatArray, IntArray, MatrixLike
from rbrl.exceptions import InvalidLabelsError


def label_matrix(y: Any, label_names: Iterable[object] | None = None) -> tuple[Any, list[str] | None]:
    """Labels as scikit-learn takes them, and the names of their columns: of a data frame, of label sets, or as given.

    Parameters
    ----------
    y : array, sparse matrix, data frame or list (n_samples, n_labels), or (n_samples,), classes; or label sets
        Label sets have a list or a set of labels for each row: lists, tuples, sets and arrays of text, or sets of anything,
        in a list, a series or an array. They become a matrix of 0/1.
    label_names : sequence of str, default=None
        Names of all labels, in the order of the columns. With a data frame they must be its own.

    Returns
    -------
    y : as it came, but for label sets
    names : list of str or None
        None: the labels have no names.

    Examples
    --------
    >>> label_matrix([["sea", "sun"], [], ["sun"]])
    (array([[1, 1],
           [0, 0],
           [0, 1]]), ['sea', 'sun'])
    >>> label_matrix([[1, 0]], label_names=["sea", "sun"])
    ([[1, 0]], ['sea', 'sun'])
    """
    given = None if label_names is None else _checked_names(label_names)
    if isinstance(y, np.ndarray) and y.dtype.kind in "biuf":  # neither label sets nor names
        return y, None if given is None else _agreed(given, None, y)
    rows = _label_sets(y)
    if rows is not None:
        return _binarised(rows, given)
    found = column_names(y)
    return y, found if given is None else _agreed(given, found, y)


def are_label_sets(y: Any) -> bool:
    """Whether y has a list or a set of labels for each row, as `label_matrix` takes them.

    Parameters
    ----------
    y : object
        What the user gave as labels.

    Returns
    -------
    bool

    Examples
    --------
    >>> are_label_sets([["sea", "sun"], []]), are_label_sets([[1, 0], [0, 1]])
    (True, False)
    """
    return _label_sets(y) is not None


def agreed_names(given: Iterable[object] | None, found: Sequence[str] | None, n_labels: int) -> Sequence[str] | None:
    """The names of labels that came with names of their own, and with names that the user gave, which must be the same.

    Parameters
    ----------
    given, found : sequence of str or None
    n_labels : int

    Returns
    -------
    sequence of str or None

    Examples
    --------
    >>> agreed_names(None, ["sea", "sun"], 2)
    ['sea', 'sun']
    """
    if given is None:
        return found
    names = _checked_names(given)
    if len(names) != n_labels:
        raise InvalidLabelsError(
            f"label_names must have a name for each label. Got {len(names)} names for {n_labels} columns of y."
        )
    if found is not None and list(found) != names:
        raise InvalidLabelsError(
            f"label_names must be the names of y's columns, {_some(found)}. Got {_some(names)}; leave label_names out, or "
            "put the columns in that order."
        )
    return names


def _agreed(given: list[str], found: list[str] | None, y: Any) -> list[str]:
    shape = y.shape if hasattr(y, "shape") else np.shape(y)
    if len(shape) != 2:
        raise InvalidLabelsError(f"label_names are of the columns of a label matrix. Got y of shape {shape}.")
    return list(agreed_names(given, found, shape[1]) or ())


def _checked_names(names: Iterable[object]) -> list[str]:
    if isinstance(names, str):
        raise InvalidLabelsError(f"label_names must be a sequence of names. Got the text {names!r}.")
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise InvalidLabelsError(f"label_names must differ from each other. Got {twice!r} more than once.")
    return texts


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "")


def _label_sets(y: Any) -> list[Any] | None:
    """The rows of label sets; None for everything else that labels may be."""
    rows = y if isinstance(y, list | tuple) else _rows_of_column(y)
    if rows is None:
        return None
    lists = [row for row in rows if isinstance(row, list | tuple | np.ndarray)]
    of_text = any(isinstance(label, str) for row in lists for label in row[:1])
    all_empty = bool(lists) and not any(map(len, lists))
    if of_text or all_empty or any(isinstance(row, set | frozenset) for row in rows):
        return list(rows)
    if (rows is not y and lists) or len({len(row) for row in lists}) > 1:
        raise InvalidLabelsError(
            f"y must be a matrix of labels, one column per label, or label sets. Got lists of numbers, such as "
            f"{lists[0]!r}, {'of different lengths' if rows is y else 'in one column'}; for sets of labels that are numbers "
            "pass set(row) for each row, for a matrix rows of one length."
        )
    return None


def _rows_of_column(y: Any) -> list[Any] | None:
    """What a series or a 1-D array holds, if that may be anything."""
    if len(getattr(y, "shape", ())) != 1 or getattr(y, "dtype", None) is None:
        return None
    if isinstance(y.dtype, np.dtype):
        return y.tolist() if y.dtype == object else None
    return y.to_list() if hasattr(y, "to_list") else None


def _binarised(rows: list[Any], given: list[str] | None) -> tuple[IntArray, list[str]]:
    """A matrix of 0/1, and the names of its columns: those given, or those of all labels in their order."""
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
    strange = [name for name in found if name not in columns]
    if strange:
        raise InvalidLabelsError(f"Label sets must have labels among {_some(names)}. Got {_some(strange)}.")
    if not names:
        raise InvalidLabelsError(
            f"Label sets must have a label in some row. Got {len(rows)} empty ones; name the labels in label_names."
        )
    Y = np.zeros((len(rows), len(names)), dtype=np.int64)
    for i, row in enumerate(rows):
        Y[i, [columns[str(label)] for label in row]] = 1
    return Y, names


def signed(Y: MatrixLike) -> Array:
    """A label matrix in {-1, 0, +1} of int8, from 0/1 or -1/+1; 0 where it is NaN.

    Parameters
    ----------
    Y : array or sparse matrix (n_samples, n_labels)

    Returns
    -------
    array (n_samples, n_labels)

    Examples
    --------
    >>> signed(np.array([[1.0, 0.0, np.nan]]))
    array([[ 1, -1,  0]], dtype=int8)
    """
    Y = as_dense(Y)
    labels = np.where(Y > 0, np.int8(1), np.int8(-1))
    return np.where(np.isnan(Y), np.int8(0), labels) if Y.dtype.kind == "f" else labels


class SignedTargets:
    """Encoder of targets; remembers the coding it was given and answers in it.

    Attributes
    ----------
    kind : {"binary", "multiclass", "multilabel"}
    classes_ : array
        The classes of a 1-D target; the column indices of a label matrix.
    is_matrix : bool
        Whether the target is a label matrix.
    low : {0, -1}
        Label matrices: how an irrelevant label is coded.
    dtype : dtype
        Label matrices: type of the predictions, that of the known labels.
    sparse_container : type or None
        `csr_array` or `csr_matrix` where labels were sparse, of whatever format: the class of the predictions.

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

        Returns
        -------
        self
        """
        y, dtype, self.sparse_container = label_values(y)
        missing = missing_entries(y)
        if missing is not None and missing.all():
            raise InvalidLabelsError(f"No label of any row is known: all {missing.size} entries of y are missing.")
        y = y if missing is None else np.where(missing, y[~missing][0], y)
        target = type_of_target(y, input_name="y")
        if target.startswith("continuous") or target == "unknown":
            raise InvalidLabelsError(f"Unknown label type: {target}. Labels are 0/1 or -1/+1, or classes of a 1-D y.")
        known = np.unique(y.data if sparse.issparse(y) else y)
        values = set(known.tolist())
        # One column of 0/1 is a label, one of other classes a 1-D target in disguise.
        self.is_matrix = y.ndim == 2 and (y.shape[1] > 1 or (target == "binary" and values <= {-1, 0, 1}))
        if not self.is_matrix:
            if missing is not None:
                raise InvalidLabelsError(
                    f"Classes must be known in every row; only labels of 0/1 or -1/+1 may be missing. Got the classes "
                    f"{known[:6]}, and {np.count_nonzero(missing)} rows without any."
                )
            self.classes_, self.kind = known, "multiclass" if len(known) > 2 else "binary"
            return self
        if sparse.issparse(y) and y.nnz < np.prod(y.shape):
            values |= {0}
        if not (values <= {0, 1} or values <= {-1, 1}):
            shown = ", ".join(repr(v) for v in sorted(values)[:6])
            raise InvalidLabelsError(
                f"A label matrix must hold 0/1 or -1/+1. Got the values {shown}"
                f"{', ...' if len(values) > 6 else ''} in a matrix of {y.shape[1]} columns."
            )
        self.kind, self.classes_ = "multilabel", np.arange(y.shape[1])
        self.low, self.dtype = (-1 if -1 in values else 0), dtype
        return self

    @classmethod
    def of_matrix(cls, n_labels: int, low: int, dtype: Any, is_sparse: bool = False) -> Self:
        """The encoder of label matrices that are not at hand, from what is known about them.

        Parameters
        ----------
        n_labels : int
        low : {0, -1}
            How an irrelevant label is coded.
        dtype : dtype
        is_sparse : bool, default=False

        Returns
        -------
        SignedTargets
        """
        targets = cls()
        targets.is_matrix, targets.kind, targets.classes_ = True, "multilabel", np.arange(n_labels)
        targets.low, targets.dtype = low, np.dtype(dtype)
        targets.sparse_container = sparse.csr_array if is_sparse else None
        return targets

    @property
    def n_columns(self) -> int:
        """Number of score columns: one per label or class, one for a binary 1-D target."""
        return 1 if self.kind == "binary" else len(self.classes_)

    def sklearn_classes(self) -> Array:
        """Return the `classes_` that a classifier of these targets shows to scikit-learn.

        A 1-D target has its classes, and three or more labels have the numbers of their columns. The numbers of one or two
        columns look like the classes of a binary target: scorers would then negate the scores of a single label, and keep
        one of two columns of probabilities. One or two labels have a row (irrelevant, relevant) each, as in scikit-learn's
        classifiers of several outputs.

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

    def encode(self, y: Any) -> IntArray:
        """Signed labels, (n_samples, n_columns) of int8; 0 where nobody looked.

        Parameters
        ----------
        y : array, sparse matrix, data frame, series or list
            In the coding that `fit` received.

        Returns
        -------
        ndarray of int8
        """
        y = label_values(y).values
        if self.is_matrix and sparse.issparse(y):
            # One byte each: the only dense copy.
            Y, entries = np.full(y.shape, -1, dtype=np.int8), y.tocoo()
            relevant = entries.data > 0
            Y[entries.row[relevant], entries.col[relevant]] = 1
            return Y
        columns = self.classes_[-1:] if self.kind == "binary" else self.classes_
        relevant = y > 0 if self.is_matrix else np.ravel(y)[:, None] == columns
        Y = np.where(relevant, np.int8(1), np.int8(-1))
        missing = missing_entries(y) if self.is_matrix else None
        return Y if missing is None else np.where(missing, np.int8(0), Y)

    def encode_batch(self, y: Any) -> IntArray:
        """Signed labels of further rows; refused where they are not coded as those that `fit` received.

        Parameters
        ----------
        y : ndarray or sparse matrix

        Returns
        -------
        ndarray of int8
        """
        if not self.is_matrix:
            strange = np.setdiff1d(np.ravel(y), self.classes_)
            if len(strange):
                raise InvalidLabelsError(
                    f"y must hold classes among {self.classes_}. Got {strange[:5]} in this batch; a model cannot learn new "
                    "classes: begin another, with all that there will be as classes= in its first call."
                )
            return self.encode(y)
        batch = SignedTargets().fit(y)
        if not batch.is_matrix or len(batch.classes_) != len(self.classes_) or batch.low < self.low:
            raise InvalidLabelsError(
                f"Labels must come as in the first batch: {len(self.classes_)} columns of {self.low}/1. Got a batch of "
                f"{batch.n_columns} columns{f' of {batch.low}/1' if batch.is_matrix else ''}; a model cannot learn new "
                "labels: begin another, and give each batch a column for every label there will be."
            )
        return batch.encode(y)

    def decode(self, relevant: BoolArray, scores: FloatArray) -> Any:
        """Targets in the coding that `fit` received.

        Parameters
        ----------
        relevant : array (n_samples, n_columns)
            The labels that :mod:`rbrl.decision` calls relevant.
        scores : array (n_samples, n_columns)
            Of several classes that with the largest is the answer.

        Returns
        -------
        ndarray, or sparse matrix where the labels were sparse
        """
        if self.kind == "multiclass":
            return self.classes_[scores.argmax(axis=1)]
        if not self.is_matrix:
            return self.classes_[relevant[:, 0].astype(int) if len(self.classes_) == 2 else np.zeros(len(scores), int)]
        if self.sparse_container and self.low == 0:
            return self.sparse_container(relevant).astype(self.dtype)
        labels = np.where(relevant, self.dtype.type(1), self.dtype.type(self.low))
        return self.sparse_container(labels) if self.sparse_container else labels
