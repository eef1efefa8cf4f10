"""The first pass: are the rows what they should be, how are their columns correlated, and a sample of them."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.linalg import gram_matrix
from rbrl._common.typing import Array, FloatArray, Matrix
from rbrl.exceptions import DataFormatError, InvalidLabelsError
from rbrl.problem.design import signed
from rbrl.rows.places import Block, Blocks

# Rows that are kept in memory to find step lengths with.
SAMPLE_ROWS = 2**14
# Scores of the sample may take this much memory.
SAMPLE_BYTES = 2**26


class Survey(NamedTuple):
    """What one pass found.

    Attributes
    ----------
    n_samples, n_features, n_labels : int
    n_entries : int
        Stored entries of X.
    low : int
        How an irrelevant label is coded: 0 or -1.
    label_type : dtype
    sparse_labels : bool
    gram : array (n_features, n_features) or (n_features,)
        X'X, or only its diagonal where that is too large.
    sums : array (n_features,)
        Sums of the columns of X.
    sample : tuple of X, Y, weights
        Some rows of every block; a row stands for as many as its weight says.
    """

    n_samples: int
    n_features: int
    n_labels: int
    n_entries: int
    low: int
    label_type: np.dtype[Any]
    sparse_labels: bool
    gram: FloatArray
    sums: FloatArray
    sample: tuple[Matrix, Array, FloatArray]


def take_survey(blocks: Blocks, largest_gram: int) -> Survey:
    """Look at every row once; return a :class:`Survey`.

    Parameters
    ----------
    blocks : Blocks
    largest_gram : int
        The Gram matrix is formed for at most this many features.
    """
    if len(blocks) == 0:
        raise ValueError("There are no blocks of rows to learn from: got 0.")
    n_features, n_labels, name, label_type, sparse_labels = blocks.first(_columns)
    rows = min(SAMPLE_ROWS, SAMPLE_BYTES // (8 * max(n_labels, 1)))
    asked = (n_features, n_labels, name), n_features <= largest_gram, max(1, -(-rows // len(blocks)))
    n_samples, n_entries, gram, sums, zeros, minus, samples = blocks.total(_look, *asked)
    if n_samples == 0:
        raise ValueError(f"There are no rows to learn from: all {len(blocks)} blocks are empty.")
    if zeros and minus:
        raise InvalidLabelsError(
            f"Labels must be 0/1 everywhere or -1/+1 everywhere. Got 0 in {zeros[0]}, and -1 in {minus[0]}."
        )
    X, Y, weights = zip(*samples)
    stack = sparse.vstack if sparse.issparse(X[0]) else np.vstack
    sample = stack(X), np.vstack(Y), np.concatenate(weights)
    of_labels = -1 if minus else 0, label_type, sparse_labels
    return Survey(n_samples, n_features, n_labels, n_entries, *of_labels, gram, sums, sample)


def _columns(block: Block) -> tuple[Any, ...]:
    _check_matrices(block)
    return block.X.shape[1], block.Y.shape[1], block.name, block.Y.dtype, sparse.issparse(block.Y)


def _look(block: Block, expected: tuple[int, int, str], whole_gram: bool, sample_rows: int) -> tuple[Any, ...]:
    _check_matrices(block)
    X, name = block.X, block.name
    if (X.shape[1], block.Y.shape[1]) != expected[:2]:
        raise DataFormatError(
            f"{name} has {X.shape[1]} features and {block.Y.shape[1]} labels, {expected[2]} has {expected[0]} and "
            f"{expected[1]}: all blocks need the same columns."
        )
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    values: Any = X.data if sparse.issparse(X) else X
    if not np.isfinite(values).all():
        raise DataFormatError(f"{name} holds NaN or infinite features; a linear model needs finite ones.")
    zeros, minus = _label_values(block)
    gram = gram_matrix(X.astype(np.float64, copy=False)) if whole_gram else _squares(X)
    sums = np.asarray(X.sum(axis=0), dtype=np.float64).ravel()
    return X.shape[0], values.size, gram, sums, [name] * zeros, [name] * minus, [_sample(X, block.Y, sample_rows)]


def _check_matrices(block: Block) -> None:
    shapes: list[Any] = [getattr(matrix, "shape", None) for matrix in (block.X, block.Y)]
    if any(shape is None or len(shape) != 2 for shape in shapes) or shapes[0][0] != shapes[1][0]:
        raise DataFormatError(
            f"{block.name} must be two matrices with as many rows, features and labels. Got shapes {shapes[0]} and "
            f"{shapes[1]}."
        )
    if any(np.dtype(matrix.dtype).kind not in "biuf" for matrix in (block.X, block.Y)):
        raise DataFormatError(f"{block.name} must hold numbers. Got types {block.X.dtype} and {block.Y.dtype}.")


def _label_values(block: Block) -> tuple[bool, bool]:
    """Whether zeros and whether minus ones occur."""
    values = np.unique(block.Y.data if sparse.issparse(block.Y) else np.asarray(block.Y))
    if not set(values.tolist()) <= {-1, 0, 1}:
        shown = ", ".join(repr(v) for v in values[:6].tolist())
        raise InvalidLabelsError(f"{block.name}: labels must be 0/1 or -1/+1. Got the values {shown}.")
    implied = sparse.issparse(block.Y) and block.Y.nnz < np.prod(block.Y.shape)
    return bool(implied or 0 in values), bool(-1 in values)


def _squares(X: Any) -> FloatArray:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=0), dtype=np.float64).ravel()
    return np.einsum("ij,ij->j", X, X, dtype=np.float64)


def _sample(X: Matrix, Y: Any, n_rows: int) -> tuple[Matrix, Array, FloatArray]:
    """Rows at equal distances, with the number of rows that each stands for."""
    n = X.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, n_rows)).round().astype(np.int64)) if n else np.arange(0)
    return X[rows], signed(Y[rows]), np.full(len(rows), n / max(len(rows), 1))
