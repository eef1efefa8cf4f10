"""Labels are translated once, at the edge: any scikit-learn target to and from signed Y in {-1, 0, +1}.

Inside, 0 is an entry of a label matrix that nobody looked at: outside it is NaN.
"""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from rbrl._common.typing import Array, BoolArray, FloatArray, IntArray
from rbrl.exceptions import InvalidLabelsError


def check_not_label_sets(y: Any) -> None:
    """Refuse lists of label sets, such as [["a", "b"], ["c"]].

    Parameters
    ----------
    y : object
        What the user gave as labels.
    """
    rows = y if isinstance(y, list | tuple) else ()
    ragged = len({len(row) for row in rows if isinstance(row, list | tuple)}) > 1
    if ragged or any(isinstance(row, set | frozenset) for row in rows):
        raise InvalidLabelsError(
            f"y must be a matrix of labels, one column per label. Got a list of label sets, such as {y[0]!r}; "
            "turn it into a matrix with sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)."
        )


def missing_entries(y: Any) -> BoolArray | None:
    """Where a dense label matrix says nothing: NaN, None or the NA of pandas. None if it has no such entry.

    Parameters
    ----------
    y : object
        What the user gave as labels.

    Returns
    -------
    bool array (n_samples, n_labels), or None

    Examples
    --------
    >>> missing_entries([[1, None], [0, 1]]).tolist()
    [[False, True], [False, False]]
    >>> missing_entries([1.0, float("nan")]) is None
    True
    """
    if sparse.issparse(y) or (values := np.asarray(y)).ndim != 2:
        return None
    if values.dtype.kind == "O":
        missing = np.vectorize(_says_nothing, otypes=[bool])(values)
    elif values.dtype.kind == "f":
        missing = np.isnan(values)
    else:
        return None
    return missing if missing.any() else None


def without_missing(y: Any, missing: BoolArray, value: Any) -> Array:
    """A label matrix with a value for its missing entries; of numbers, where it was one of objects because of them.

    Parameters
    ----------
    y : array, list or data frame (n_samples, n_labels)
    missing : bool array (n_samples, n_labels)
    value : number

    Returns
    -------
    array (n_samples, n_labels)

    Examples
    --------
    >>> y = [[1, None], [0, 1]]
    >>> without_missing(y, missing_entries(y), 0.0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    known = np.where(missing, value, np.asarray(y))
    try:
        return known.astype(np.float64) if known.dtype.kind == "O" else known
    except (TypeError, ValueError):
        return known


def _says_nothing(value: Any) -> bool:
    # The NA of pandas, which may not be installed, is equal to nothing and has no truth value.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


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
        Label matrices: of the answers.
    sparse_container : type or None
        Of sparse label matrices, which are answered in kind.

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
        """Learn the coding of `y`, an array or a sparse matrix.

        Parameters
        ----------
        y : ndarray or sparse matrix
            A 1-D target, or a label matrix of 0/1 or -1/+1, NaN where nobody looked.

        Returns
        -------
        self
        """
        missing = missing_entries(y)
        if missing is not None and missing.all():
            raise InvalidLabelsError(f"No label of any row is known: all {missing.size} entries of y are missing.")
        y = y if missing is None else without_missing(y, missing, np.asarray(y)[~missing][0])
        target = type_of_target(y, input_name="y")
        if target.startswith("continuous") or target == "unknown":
            raise InvalidLabelsError(f"Unknown label type: {target}. Labels are 0/1 or -1/+1, or classes of a 1-D y.")
        self.sparse_container = type(y) if sparse.issparse(y) else None
        known = np.unique(y.data if sparse.issparse(y) else np.asarray(y))
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
        self.low, self.dtype = (-1 if -1 in values else 0), y.dtype
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

    def encode(self, y: Any) -> IntArray:
        """Signed labels, (n_samples, n_columns) of int8; 0 where nobody looked.

        Parameters
        ----------
        y : ndarray or sparse matrix
            In the coding that `fit` received.

        Returns
        -------
        ndarray of int8
        """
        if self.is_matrix and sparse.issparse(y):
            # One byte each: the only dense copy.
            Y, entries = np.full(y.shape, -1, dtype=np.int8), y.tocoo()
            relevant = entries.data > 0
            Y[entries.row[relevant], entries.col[relevant]] = 1
            return Y
        if self.is_matrix and (missing := missing_entries(y)) is not None:
            return np.where(missing, np.int8(0), self.encode(without_missing(y, missing, 1.0)))
        columns = self.classes_[-1:] if self.kind == "binary" else self.classes_
        relevant = np.asarray(y) > 0 if self.is_matrix else np.ravel(y)[:, None] == columns
        return np.where(relevant, np.int8(1), np.int8(-1))

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
