"""Checks of what a metric receives, and the row blocks that bound its memory."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from rbrl._common.typing import Array, BoolArray, FloatArray, MatrixLike
from rbrl.exceptions import InvalidLabelsError

# The first is the default.
CONVENTIONS = ("paper", "mulan", "sklearn")

# Half a million entries keep the temporary arrays of a block near 20 MB, and in cache.
BLOCK_ENTRIES = 2**19

# What is left after the checks.
Checked: TypeAlias = Array | sparse.csr_array


def check_label_pair(Y: MatrixLike, labels: MatrixLike, convention: str) -> tuple[Checked, Checked]:
    """Return true and predicted labels, both dense or both CSR, of one shape.

    Labels in {-1, +1} are refused rather than guessed: metrics that accept them silently return nonsense, such as a
    ranking loss of 0.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        Any other is refused.

    Returns
    -------
    Y, labels : arrays or CSR matrices
    """
    _check_convention(convention)
    checked, predicted = _check_labels(Y, "Y"), _check_labels(labels, "labels")
    _check_shapes(checked, predicted, "labels")
    if sparse.issparse(checked) or sparse.issparse(predicted):
        return sparse.csr_array(checked), sparse.csr_array(predicted)
    return checked, predicted


def check_scores(Y: MatrixLike, scores: MatrixLike, convention: str) -> tuple[Checked, Checked]:
    """Return true labels and real scores of one shape; either may be CSR.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        NaN is refused.
    convention : {"paper", "mulan", "sklearn"}
        Any other is refused.

    Returns
    -------
    Y, scores : arrays or CSR matrices
    """
    _check_convention(convention)
    checked = _check_labels(Y, "Y")
    F: Any = scores
    F = F.tocsr() if sparse.issparse(F) else np.asarray(F)
    if F.dtype.kind not in "fiub":
        raise ValueError(f"scores must be real numbers. Got dtype {F.dtype} instead.")
    _check_shapes(checked, F, "scores")
    values = F.data if sparse.issparse(F) else F
    if values.dtype.kind == "f" and any(np.isnan(values[rows]).any() for rows in _slices(values)):
        raise ValueError("scores must not be NaN: a ranking of NaN is undefined. Got NaN instead.")
    return checked, F


def _check_convention(convention: str) -> None:
    if convention not in CONVENTIONS:
        raise ValueError(f"convention must be one of {', '.join(CONVENTIONS)}. Got {convention!r} instead.")


def _check_labels(Y: Any, name: str) -> Checked:
    """0/1 labels as an array or a CSR matrix; every other coding is refused."""
    if sparse.issparse(Y):
        Y = Y.tocsr()
        if not Y.has_canonical_format:
            Y = Y.copy()
            Y.sum_duplicates()
        values = Y.data
    else:
        Y = values = _as_matrix(Y, name)
    if values.dtype != bool and not all(_only_zero_one(values[rows]) for rows in _slices(values)):
        raise InvalidLabelsError(_coding_message(values, name))
    return Y


def _only_zero_one(values: Array) -> bool:
    return bool(np.logical_or(values == 0, values == 1).all())  # several times faster than numpy.isin


def _as_matrix(Y: MatrixLike, name: str) -> Array:
    try:
        Y = np.asarray(Y)
    except ValueError:  # rows of different lengths
        Y = np.empty(0, dtype=object)
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


def row_blocks(Y: Checked, scores: Checked) -> Iterator[tuple[BoolArray, FloatArray]]:
    """Yield dense (boolean labels, float scores) of a bounded number of rows.

    Parameters
    ----------
    Y, scores : arrays or CSR matrices, shape (n_samples, n_labels)

    Yields
    ------
    Y : array of bool
    scores : array of floats
    """
    for rows in _slices(Y):
        T, F = (np.ascontiguousarray(M[rows] if isinstance(M, np.ndarray) else M[rows].toarray()) for M in (Y, scores))
        yield T.astype(bool, copy=False), F if F.dtype.kind == "f" else F.astype(np.float64)


def _slices(M: Checked) -> Iterator[slice]:
    """Slices of rows of at most `BLOCK_ENTRIES` entries, of one row at least."""
    step = max(1, BLOCK_ENTRIES // max(1, int(np.prod(M.shape[1:]))))
    return (slice(start, start + step) for start in range(0, M.shape[0], step))
