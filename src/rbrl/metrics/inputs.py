"""Checks of what a metric receives, and the row blocks that bound its memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from rbrl.exceptions import InvalidLabelsError

CONVENTIONS = ("paper", "mulan", "sklearn")

# Half a million entries keep the temporary arrays of a block near 20 MB, and in cache.
BLOCK_ENTRIES = 2**19


def check_convention(convention: str) -> None:
    """Refuse anything but the conventions."""
    if convention not in CONVENTIONS:
        raise ValueError(f"convention must be one of {', '.join(CONVENTIONS)}. Got {convention!r} instead.")


def check_labels(Y: Any, name: str = "Y") -> Any:
    """Return 0/1 labels as an array or a CSR matrix; refuse every other coding.

    Labels in {-1, +1} are refused rather than guessed: metrics that accept them silently
    return nonsense, such as a ranking loss of 0.
    """
    Y = _as_csr(Y) if sparse.issparse(Y) else _as_matrix(Y, name)
    values = Y.data if sparse.issparse(Y) else Y
    if values.dtype != bool and not _only_zero_one(values):
        raise InvalidLabelsError(_coding_message(values, name))
    return Y


def _as_csr(Y):
    Y = Y.tocsr()
    if not Y.has_canonical_format:
        Y = Y.copy()
        Y.sum_duplicates()
    return Y


def _as_matrix(Y, name):
    try:
        Y = np.asarray(Y)
    except ValueError:
        Y = np.empty(0, dtype=object)
    if Y.dtype == object or Y.dtype.kind in "US":
        raise InvalidLabelsError(
            f"{name} must be a matrix of 0/1 labels, n_samples x n_labels. Got {Y.dtype} values instead; "
            "turn lists of label sets into one with sklearn.preprocessing.MultiLabelBinarizer."
        )
    if Y.ndim != 2:
        raise InvalidLabelsError(f"{name} must be a matrix, n_samples x n_labels. Got shape {Y.shape} instead.")
    return Y


def _only_zero_one(values):
    return all(np.logical_or(block == 0, block == 1).all() for block in _chunks(values))


def _chunks(values):
    step = max(1, BLOCK_ENTRIES // max(1, values[:1].size))
    return (values[start : start + step] for start in range(0, len(values), step))


def _coding_message(values, name):
    received = np.unique(values)
    shown = ", ".join(f"{value:g}" for value in received[:5]) + (", ..." if len(received) > 5 else "")
    way_out = ""
    if set(received.tolist()) <= {-1, 0, 1}:
        way_out = f" For labels coded -1/+1 pass ({name} > 0).astype(int)."
    return f"{name} must hold only 0 and 1. Got the values {shown} instead.{way_out}"


def check_label_pair(Y: Any, labels: Any) -> tuple[Any, Any]:
    """Return true and predicted labels, both dense or both CSR, of one shape."""
    Y, labels = check_labels(Y, "Y"), check_labels(labels, "labels")
    _check_shapes(Y, labels, "labels")
    if sparse.issparse(Y) or sparse.issparse(labels):
        Y, labels = sparse.csr_array(Y), sparse.csr_array(labels)
    return Y, labels


def check_scores(Y: Any, scores: Any) -> tuple[Any, Any]:
    """Return true labels and real scores of one shape; either may be CSR."""
    Y = check_labels(Y, "Y")
    scores = scores.tocsr() if sparse.issparse(scores) else np.asarray(scores)
    if scores.dtype.kind not in "fiub":
        raise ValueError(f"scores must be real numbers. Got dtype {scores.dtype} instead.")
    _check_shapes(Y, scores, "scores")
    values = scores.data if sparse.issparse(scores) else scores
    if values.dtype.kind == "f" and any(np.isnan(block).any() for block in _chunks(values)):
        raise ValueError("scores must not be NaN: a ranking of NaN is undefined. Got NaN instead.")
    return Y, scores


def _check_shapes(Y, other, name):
    if Y.shape != other.shape:
        raise ValueError(f"Y and {name} must have one shape. Got {Y.shape} and {other.shape} instead.")
    if 0 in Y.shape:
        raise ValueError(f"Y must have at least one sample and one label. Got shape {Y.shape} instead.")


def row_blocks(Y: Any, scores: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield dense (boolean labels, float scores) of a bounded number of rows."""
    step = max(1, BLOCK_ENTRIES // Y.shape[1])
    for start in range(0, Y.shape[0], step):
        T, F = _dense(Y[start : start + step]), _dense(scores[start : start + step])
        yield T.astype(bool, copy=False), F if F.dtype.kind == "f" else F.astype(np.float64)


def _dense(block):
    return block.toarray() if sparse.issparse(block) else block
