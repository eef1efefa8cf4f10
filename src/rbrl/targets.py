"""Labels are translated once, at the edge: any scikit-learn target to and from signed Y in {-1, +1}."""

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from rbrl.exceptions import InvalidLabelsError


def check_not_label_sets(y):
    """Refuse lists of label sets, such as [["a", "b"], ["c"]]."""
    if isinstance(y, list | tuple) and any(isinstance(row, set | frozenset) for row in y):
        ragged = True
    else:
        ragged = isinstance(y, list | tuple) and len({len(r) for r in y if isinstance(r, list | tuple)}) > 1
    if ragged:
        raise InvalidLabelsError(
            f"y must be a matrix of labels, one column per label. Got a list of label sets, such as {y[0]!r}; "
            "turn it into a matrix with sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)."
        )


class SignedTargets:
    """Encoder of targets; remembers the coding it was given and answers in it.

    Attributes
    ----------
    kind : {"binary", "multiclass", "multilabel"}
    classes_ : array
        The classes of a 1-D target; the column indices of a label matrix.
    """

    def fit(self, y):
        """Learn the coding of `y`."""
        target = type_of_target(y, input_name="y")
        if target.startswith("continuous") or target == "unknown":
            raise InvalidLabelsError(f"Unknown label type: {target}. Labels are 0/1 or -1/+1, or classes of a 1-D y.")
        self.sparse_container = type(y) if sparse.issparse(y) else None
        self.is_matrix = self._is_label_matrix(y, target)
        if self.is_matrix:
            self._fit_matrix(y)
        else:
            self.classes_ = np.unique(y)
            self.kind = "multiclass" if len(self.classes_) > 2 else "binary"
        return self

    @classmethod
    def of_matrix(cls, n_labels, low, dtype, is_sparse=False):
        """The encoder of label matrices that are not at hand, from what is known about them."""
        targets = cls()
        targets.is_matrix, targets.kind, targets.classes_ = True, "multilabel", np.arange(n_labels)
        targets.low, targets.dtype = low, np.dtype(dtype)
        targets.sparse_container = sparse.csr_array if is_sparse else None
        return targets

    @staticmethod
    def _is_label_matrix(y, target):
        """A matrix of labels, not a column of classes."""
        return y.ndim == 2 and (y.shape[1] > 1 or (target == "binary" and set(np.unique(_values(y))) <= {-1, 0, 1}))

    def _fit_matrix(self, y):
        values = set(np.unique(_values(y)).tolist())
        if self.sparse_container and y.nnz < np.prod(y.shape):
            values |= {0}
        if not (values <= {0, 1} or values <= {-1, 1}):
            shown = ", ".join(repr(v) for v in sorted(values)[:6])
            raise InvalidLabelsError(
                f"A label matrix must hold 0/1 or -1/+1. Got the values {shown}"
                f"{', ...' if len(values) > 6 else ''} in a matrix of {y.shape[1]} columns."
            )
        self.kind, self.classes_ = "multilabel", np.arange(y.shape[1])
        self.low, self.dtype = (-1 if -1 in values else 0), y.dtype

    @property
    def n_columns(self):
        """Number of score columns: one per label or class, one for a binary 1-D target."""
        return 1 if self.kind == "binary" else len(self.classes_)

    def encode(self, y):
        """Signed labels, (n_samples, n_columns) of int8."""
        if self.is_matrix and sparse.issparse(y):
            return _signed(y)
        if self.is_matrix:
            relevant = np.asarray(y) > 0
        elif self.kind == "binary":
            relevant = np.ravel(y)[:, None] == self.classes_[-1]
        else:
            relevant = np.ravel(y)[:, None] == self.classes_[None, :]
        return np.where(relevant, np.int8(1), np.int8(-1))

    def decode(self, relevant, scores):
        """Targets in the coding that `fit` received, from a boolean matrix (label matrices) or scores (1-D targets)."""
        if not self.is_matrix:
            return self.classes_[self._winner(scores)]
        if self.sparse_container and self.low == 0:
            return self.sparse_container(relevant).astype(self.dtype)
        labels = np.where(relevant, self.dtype.type(1), self.dtype.type(self.low))
        return self.sparse_container(labels) if self.sparse_container else labels

    def _winner(self, scores):
        if self.kind == "multiclass":
            return scores.argmax(axis=1)
        return (scores[:, 0] > 0).astype(int) if len(self.classes_) == 2 else np.zeros(len(scores), dtype=int)


def _signed(y):
    """Labels in {-1, +1} from a sparse matrix, one byte each: the only dense copy."""
    Y = np.full(y.shape, -1, dtype=np.int8)
    entries = y.tocoo()
    relevant = entries.data > 0
    Y[entries.row[relevant], entries.col[relevant]] = 1
    return Y


def _values(y):
    return y.data if sparse.issparse(y) else np.asarray(y)
