"""Blocks of rows, and what is computed from one of them: in this process, or on the worker that has it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.linalg import gram_matrix, squares
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl.exceptions import DataFormatError, InvalidLabelsError
from rbrl.losses import Loss
from rbrl.losses.label_graph import LabelCounts, label_counts
from rbrl.losses.weights import mean_weights
from rbrl.problem.design import add_adjoint, extended_scores, scores
from rbrl.scales import shifted_sums
from rbrl.targets import encode_matrix

# Number of scores that are computed at a time, so that they stay in the cache of the processor.
BLOCK_SLICE_SCORES = 2**18


class Block(NamedTuple):
    """Features, labels and weights of some rows.

    Attributes
    ----------
    X : array or sparse matrix (n_rows, n_features)
        Features.
    Y : array or sparse matrix (n_rows, n_labels)
        Labels as the user codes them.
    name : str
        Name of the block in error messages.
    weights : array (n_rows,) or (n_rows, n_labels), or None
        Weights of rows or of entries; None for weights of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import Block
    >>> block = Block(np.eye(3), np.array([[1.0], [0.0], [np.nan]]), "part 1")
    >>> labels, weights = block.labels()
    >>> labels.ravel().tolist(), weights is None
    ([1, -1, 0], True)
    """

    X: Any
    Y: Any
    name: str
    weights: Any = None

    def labels(self, rows: Any = slice(None)) -> tuple[IntArray, FloatArray | None]:
        """Return labels in {-1, 0, +1} and the weights; 0 is a missing label or an entry of weight 0.

        Parameters
        ----------
        rows : slice or array, default=slice(None)

        Returns
        -------
        Y : array (n_rows, n_labels)
        weights : array (n_rows,) or (n_rows, n_labels), or None
        """
        Y = self.Y[rows]
        Y = encode_matrix(Y.toarray() if issparse(Y) else np.asarray(Y))
        if self.weights is None:
            return Y, None
        weights = self.weights[rows]
        weights = np.asarray(weights.toarray() if issparse(weights) else weights, dtype=np.float64)
        is_known = (weights if weights.ndim == 2 else weights[:, None]) > 0
        return np.where(is_known, Y, np.int8(0)), weights

    def slices(self) -> Iterator[tuple[Matrix, IntArray, FloatArray | None]]:
        """Yield a few rows at a time, so that their scores need little memory.

        Yields
        ------
        X : array or CSR matrix (n_rows, n_features)
            A dense array is a view of the block.
        Y : array (n_rows, n_labels)
            Labels in {-1, 0, +1}.
        weights : array (n_rows,) or (n_rows, n_labels), or None
            None means weights of 1.
        """
        X = sparse.csr_array(self.X) if issparse(self.X) else np.asarray(self.X)
        step = max(1, BLOCK_SLICE_SCORES // max(self.Y.shape[1], 1))
        for start in range(0, X.shape[0], step):
            rows = slice(start, start + step)
            yield X[rows], *self.labels(rows)


def describe_columns(block: Block) -> tuple[Any, ...]:
    """Return the properties of the first block that the other blocks must share.

    They are n_features, n_labels, name, type of the labels, sparse labels, and the shift of
    :func:`rbrl.scales.shifted_sums`.
    """
    _check_matrices(block)
    shapes = block.X.shape[1], block.Y.shape[1], block.name
    X = block.X
    shift = np.zeros(X.shape[1]) if sparse.issparse(X) else np.asarray(X[:1]).sum(axis=0, dtype=np.float64)
    return *shapes, block.Y.dtype, sparse.issparse(block.Y), shift


def survey_block(
    block: Block, expected: tuple[int, int, str], whole_gram: bool, sample_rows: int, shift: FloatArray
) -> tuple[Any, ...]:
    """Check a block; return its sums, the blocks with zeros and with minus ones, and a sample.

    The order of the results is that of their use in :func:`rbrl.out_of_core.design.take_survey`.
    `expected` has the numbers of features and labels, and the name of the first block. The Gram
    matrix is its diagonal unless `whole_gram`.
    """
    _check_matrices(block)
    n_features, n_labels, first_name = expected
    if (block.X.shape[1], block.Y.shape[1]) != (n_features, n_labels):
        raise DataFormatError(
            f"All blocks must have the same columns. {block.name} has {block.X.shape[1]} features and "
            f"{block.Y.shape[1]} labels, {first_name} has {n_features} features and {n_labels} labels."
        )
    X = sparse.csr_array(block.X) if sparse.issparse(block.X) else np.asarray(block.X)
    entries: Any = X.data if sparse.issparse(X) else X
    if not np.isfinite(entries).all():
        raise DataFormatError(f"{block.name} holds NaN or infinite features; a linear model needs finite features.")
    values = np.unique(block.Y.data if sparse.issparse(block.Y) else np.asarray(block.Y))
    values = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if not set(values.tolist()) <= {-1, 0, 1}:
        shown = ", ".join(repr(v) for v in values[:6].tolist())
        raise InvalidLabelsError(f"{block.name}: labels must be 0/1 or -1/+1. Got the values {shown}.")
    # An entry of a sparse matrix that is not stored is 0.
    has_zeros = bool(0 in values or (sparse.issparse(block.Y) and block.Y.nnz < np.prod(block.Y.shape)))
    has_minus_ones = bool(-1 in values)
    gram = (gram_matrix if whole_gram else squares)(X.astype(np.float64, copy=False))
    sums = np.asarray(X.sum(axis=0), dtype=np.float64).ravel()
    Y, weights = block.labels()
    # Rows whose labels are all missing have weight 0 and are ignored.
    row_weights = mean_weights(Y, weights)
    kept = slice(None) if row_weights.all() else row_weights > 0
    empty_weight = float(row_weights[~(Y > 0).any(axis=1)].sum())
    weighted_sums = float(row_weights.sum()), *shifted_sums(X[kept], shift, row_weights[kept])
    names = [block.name] * has_zeros, [block.name] * has_minus_ones
    # The sample has evenly spaced rows. Each stands for `multiplicity` rows.
    n = X.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, sample_rows)).round().astype(np.int64)) if n else np.arange(0)
    multiplicity = n / max(len(rows), 1)
    multiplicities = np.full(len(rows), multiplicity)
    sample = X[rows], Y[rows], multiplicities, multiplicities if weights is None else multiplicity * weights[rows]
    n_known = np.count_nonzero(Y, axis=0)
    return n, entries.size, gram, sums, empty_weight, *weighted_sums, *names, n_known, [sample]


def _check_matrices(block: Block) -> None:
    """Raise DataFormatError unless X, Y and the weights are matrices of numbers with the same rows."""
    shapes: list[Any] = [getattr(matrix, "shape", None) for matrix in (block.X, block.Y)]
    if any(shape is None or len(shape) != 2 for shape in shapes) or shapes[0][0] != shapes[1][0]:
        raise DataFormatError(
            f"{block.name} must be a matrix of features and a matrix of labels with the same number of rows. "
            f"Got shapes {shapes[0]} and {shapes[1]}."
        )
    if any(np.dtype(matrix.dtype).kind not in "biuf" for matrix in (block.X, block.Y)):
        raise DataFormatError(f"{block.name} must hold numbers. Got types {block.X.dtype} and {block.Y.dtype}.")
    if block.weights is not None:
        _check_weights(block)


def _check_weights(block: Block) -> None:
    """Raise DataFormatError for weights of a wrong shape, or that are not finite and >= 0."""
    shape = getattr(block.weights, "shape", None)
    if shape not in (block.Y.shape[:1], block.Y.shape):
        raise DataFormatError(
            f"{block.name}: weights must be an array of shape {block.Y.shape[:1]}, one per row, or {block.Y.shape}, one "
            f"per label. Got {type(block.weights).__name__ if shape is None else shape}."
        )
    values = block.weights.data if sparse.issparse(block.weights) else np.asarray(block.weights)
    if values.size and not (np.isfinite(values).all() and values.min() >= 0):
        raise DataFormatError(
            f"{block.name}: weights must be finite and >= 0. Got values from {values.min()} to {values.max()}."
        )


def extended_value(block: Block, loss: Loss, coefficients: FloatArray) -> tuple[float]:
    """Return the loss of one block from scores in extended precision, in a tuple.

    The coefficients (n_features, n_labels) may have the intercepts in one more row.
    """
    return (sum(loss.value(Y, extended_scores(X, coefficients), weights) for X, Y, weights in block.slices()),)


def evaluate_block(block: Block, loss: Loss, coefficients: FloatArray) -> tuple[Any, ...]:
    """Return the terms, the gradient, the label Hessian and the sums of an :class:`Evaluation`.

    They are those of one block, at coefficients (n_features, n_labels) with the intercepts in a
    last row, if there are any. The reach is in a list, because results are added.
    """
    n_labels = coefficients.shape[1]
    G = np.zeros(coefficients.shape)
    H = np.zeros((n_labels, n_labels))
    sums = np.zeros((3, n_labels))
    value = linear = quadratic = 0.0
    reach = np.inf
    has_moved = coefficients.any()
    for X, Y, weights in block.slices():
        F = scores(X, coefficients) if has_moved else np.zeros(Y.shape)
        terms, R = loss.evaluate(Y, F, weights)
        value += terms.value
        linear += terms.linear
        quadratic += terms.quadratic
        reach = min(reach, terms.reach)
        add_adjoint(X, R, G)
        H += loss.label_hessian(Y, F, weights)
        sums += [np.einsum("ij,ij->j", A, A) for A in (R, loss.rounding_reach(Y, F, weights), F)]
    return value, linear, quadratic, [reach], G, H, sums


def projected_gram(block: Block, V: FloatArray) -> tuple[FloatArray]:
    """Return (XV)'(XV) of one block, with the constant column of the intercept, in a tuple.

    Parameters
    ----------
    block : Block
    V : array (n_features, n_directions)

    Returns
    -------
    tuple of an array (n_directions, n_directions)
    """
    total = np.zeros((V.shape[1], V.shape[1]))
    for X, *_ in block.slices():
        Z = scores(X, V)
        total += Z.T @ Z
    return (total,)


def count_labels(block: Block) -> LabelCounts:
    """Return the counts of the labels of one block."""
    return label_counts(*block.labels())
