"""Checks of what a metric receives, and the row blocks that bound its memory."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from rbrl._common.checks import users_level
from rbrl._common.frames import check_no_mask, check_same_columns, check_same_rows, label_values
from rbrl._common.top_k import falling_order, first_of_tie
from rbrl._common.typing import Array, BoolArray, FloatArray, IntArray, MatrixLike
from rbrl.exceptions import InvalidLabelsError

# Whose rules a metric follows for ties and for 0/0; the first is the default.
CONVENTIONS = ("paper", "mulan", "sklearn")
# What may be done about NaN in Y; the first is the default.
MISSING = ("raise", "ignore")

# Half a million entries keep the temporary arrays of a block near 20 MB, and in cache.
BLOCK_ENTRIES = 2**19

# What is left after the checks.
Checked: TypeAlias = Array | sparse.csr_array


class Compared(NamedTuple):
    """What a metric compares: 0/1 labels, predicted labels or scores, and where nobody knows the label.

    An entry that is `unseen` is 0 in Y; None means that there is none.
    """

    Y: Checked
    predicted: Checked
    unseen: Checked | None


def check_label_pair(Y: MatrixLike, labels: MatrixLike, convention: str, missing: str) -> Compared:
    """Return true and predicted labels, both dense or both CSR, of one shape; both are 0 where Y is unseen.

    Labels in {-1, +1} are refused rather than guessed: metrics that accept them silently return nonsense, such as a
    ranking loss of 0.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        Any other is refused.
    missing : {"raise", "ignore"}
        Whether NaN in Y is refused, or stands for an entry that nobody looked at.

    Returns
    -------
    Compared
    """
    _check_options(convention, missing)
    check_same_rows(Y=Y, labels=labels)
    check_same_columns(Y=Y, labels=labels)
    check_no_mask(labels=labels)
    (T, unseen), (P, _) = _check_labels(Y, "Y", missing), _check_labels(labels, "labels")
    _check_shapes(T, P, "labels")
    if sparse.issparse(T) or sparse.issparse(P):
        T, P = sparse.csr_array(T), sparse.csr_array(P)
        if unseen is not None:
            unseen, P = sparse.csr_array(unseen, dtype=np.int8), P.astype(np.int8)
            P = P - P.multiply(unseen)
    elif unseen is not None:
        P = np.logical_and(P, ~unseen)
    return Compared(T, P, unseen)


def check_scores(Y: MatrixLike, scores: MatrixLike, convention: str, missing: str, name: str = "scores") -> Compared:
    """Return true labels and real scores of one shape; either may be CSR.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        NaN is refused.
    convention : {"paper", "mulan", "sklearn"}
        Any other is refused.
    missing : {"raise", "ignore"}
        Whether NaN in Y is refused, or stands for an entry that nobody looked at.
    name : str, default="scores"
        What messages call them.

    Returns
    -------
    Compared
    """
    _check_options(convention, missing)
    check_same_rows(**{"Y": Y, name: scores})
    check_same_columns(**{"Y": Y, name: scores})
    check_no_mask(**{name: scores})
    checked, unseen = _check_labels(Y, "Y", missing)
    F: Any = scores
    F = F.tocsr() if sparse.issparse(F) else np.asarray(F)
    if F.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers. Got dtype {F.dtype} instead.")
    _check_shapes(checked, F, name)
    values = F.data if sparse.issparse(F) else F
    if values.dtype.kind == "f" and any(np.isnan(values[rows]).any() for rows in _slices(values)):
        raise ValueError(f"{name} must not be NaN: a ranking of NaN is undefined. Got NaN instead.")
    return Compared(checked, F, unseen)


def _check_options(convention: str, missing: str) -> None:
    for name, value, allowed in (("convention", convention, CONVENTIONS), ("missing", missing, MISSING)):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}. Got {value!r} instead.")


def _check_labels(Y: Any, name: str, missing: str | None = None) -> tuple[Checked, Checked | None]:
    """0/1 labels as an array or a CSR matrix, and where they are NaN; every other coding is refused."""
    Y = _values(Y)
    if sparse.issparse(Y):
        if not Y.has_canonical_format:
            Y = Y.copy()
            Y.sum_duplicates()
        values = Y.data
    else:
        values = _check_matrix(Y, name)
    if values.dtype == bool or all(_only_zero_one(values[rows]) for rows in _slices(values)):
        return Y, None
    unseen = np.isnan(values) if missing and values.dtype.kind == "f" else np.zeros(values.shape, bool)
    if not _only_zero_one(values[~unseen]):
        raise InvalidLabelsError(_coding_message(values[~unseen], name))
    if missing == "raise":
        raise InvalidLabelsError(
            f"{name} must hold only 0 and 1. Got NaN in {np.count_nonzero(unseen)} of {np.prod(Y.shape)} entries instead; "
            'where that means that nobody looked at them, pass missing="ignore": they then leave the metric.'
        )
    if not sparse.issparse(Y):
        return Y == 1, unseen
    relevant, gone = Y == 1, Y.copy()
    gone.data = unseen
    gone.eliminate_zeros()
    return sparse.csr_array(relevant), sparse.csr_array(gone)


def _only_zero_one(values: Array) -> bool:
    return bool(np.logical_or(values == 0, values == 1).all())  # several times faster than numpy.isin


def _values(Y: MatrixLike) -> Any:
    try:
        return label_values(Y).values
    except ValueError:  # rows of different lengths
        return np.empty(0, dtype=object)


def _check_matrix(Y: Array, name: str) -> Array:
    if Y.dtype.kind in "OUS":
        raise InvalidLabelsError(
            f"{name} must be a matrix of 0/1 labels, n_samples x n_labels. Got {Y.dtype} values instead; "
            "turn lists of label sets into one with sklearn.preprocessing.MultiLabelBinarizer."
        )
    if Y.ndim != 2:
        raise InvalidLabelsError(f"{name} must be a matrix, n_samples x n_labels. Got shape {Y.shape} instead.")
    return Y


def _coding_message(values: Array, name: str) -> str:
    received = np.unique(values)
    shown = ", ".join(f"{value:g}" for value in received[:5]) + (", ..." if len(received) > 5 else "")
    signed = set(received.tolist()) <= {-1, 0, 1}
    way_out = f" For labels coded -1/+1 pass ({name} > 0).astype(int)." if signed else ""
    return f"{name} must hold only 0 and 1. Got the values {shown} instead.{way_out}"


def _check_shapes(Y: Checked, other: Checked, name: str) -> None:
    if Y.shape != other.shape:
        raise ValueError(f"Y and {name} must have one shape. Got {Y.shape} and {other.shape} instead.")
    if 0 in Y.shape:
        raise ValueError(f"Y must have at least one sample and one label. Got shape {Y.shape} instead.")


class Rows(NamedTuple):
    """Some rows, dense: which labels are relevant, the scores, and what is unseen, or None."""

    relevant: BoolArray
    scores: FloatArray
    unseen: BoolArray | None

    @property
    def irrelevant(self) -> BoolArray:
        """Which labels are known to be irrelevant."""
        return ~self.relevant if self.unseen is None else ~(self.relevant | self.unseen)

    @property
    def n_known(self) -> IntArray:
        """Number of labels of each row, unseen ones left out."""
        n_rows, n_labels = self.relevant.shape
        return np.full(n_rows, n_labels) if self.unseen is None else n_labels - self.unseen.sum(axis=1)

    @property
    def ranked(self) -> FloatArray:
        """Numbers in the order of each row's scores, unseen labels below all others: no rank counts them."""
        F = self.scores
        if self.unseen is None:
            return F
        if np.isneginf(F[~self.unseen]).any():  # nothing is below: ranks take the place of scores
            order = falling_order(F)
            ranks = first_of_tie(np.take_along_axis(F, order, axis=1))
            F = np.empty(F.shape)
            np.put_along_axis(F, order, -ranks.astype(np.float64), axis=1)
        return np.where(self.unseen, -np.inf, F)

    def take(self, rows: Any) -> "Rows":
        """The rows of a mask."""
        if rows.all():
            return self
        return Rows(self.relevant[rows], self.scores[rows], None if self.unseen is None else self.unseen[rows])


def row_blocks(Y: Checked, scores: Checked, unseen: Checked | None) -> Iterator[Rows]:
    """Yield a bounded number of rows at a time; those of which nothing is known are left out.

    Parameters
    ----------
    Y, scores, unseen : arrays or CSR matrices, shape (n_samples, n_labels)
        As in `Compared`.

    Yields
    ------
    Rows
    """
    for part in _slices(Y):
        T, F = _dense_rows(Y, part).astype(bool, copy=False), _dense_rows(scores, part)
        F = F if F.dtype.kind == "f" else F.astype(np.float64)
        if unseen is None:
            yield Rows(T, F, None)
        else:
            gone = _dense_rows(unseen, part).astype(bool, copy=False)
            yield Rows(T, F, gone).take(~gone.all(axis=1))


def _dense_rows(M: Checked, rows: slice) -> Array:
    return np.ascontiguousarray(M[rows] if isinstance(M, np.ndarray) else M[rows].toarray())


def undefined(reason: str) -> float:
    """Warn that a metric has nothing to measure, and answer NaN: a made-up value would look like a result."""
    from sklearn.exceptions import UndefinedMetricWarning  # scikit-learn takes longer to import than all metrics

    warnings.warn(f"{reason}: the metric is undefined (NaN).", UndefinedMetricWarning, stacklevel=users_level())
    return float("nan")


def _slices(M: Checked) -> Iterator[slice]:
    """Slices of rows of at most `BLOCK_ENTRIES` entries, of one row at least."""
    step = max(1, BLOCK_ENTRIES // max(1, int(np.prod(M.shape[1:]))))
    return (slice(start, start + step) for start in range(0, M.shape[0], step))
