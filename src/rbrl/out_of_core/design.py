"""Designs and objectives of rows that are elsewhere: in blocks, or gone by. Only sums over rows are known.

The first pass over blocks is a survey: are the rows what they should be, how are their columns correlated, and a sample.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.linalg import gram_matrix, squares, whiten
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix
from rbrl.exceptions import DataFormatError, InvalidLabelsError
from rbrl.losses import Loss
from rbrl.losses.base import mean_weights
from rbrl.out_of_core.sources import Block, Blocks
from rbrl.out_of_core.sums import BlockLoss, BlockResidual, BlockScores, block_projected_gram
from rbrl.problem.design import Design, add_adjoint, last_row_times, scores
from rbrl.problem.linear import Rotation, directions_worth, rotated
from rbrl.problem.objective import NuclearNorm, Objective, Ridge
from rbrl.scales import ColumnScales, first_row, shifted_sums

# The Gram matrix and its decomposition take 4 x 8 x size^2 bytes: 0.8 GB, on every machine that holds blocks.
LARGEST_GRAM = 5000


class SummedDesign(Design):
    """Coordinates W of the coefficients ``turn @ W``; scores are named, not computed.

    Parameters
    ----------
    n_samples : int
    turn : array (n_features, n_columns) or Rotation
    gram_diagonal : array (n_columns,)
    constant : float, default=1.0
        What the last feature holds, if it is that of the intercept: coefficients have the intercept itself in its place.

    Examples
    --------
    >>> import numpy as np
    >>> design = SummedDesign(3, np.eye(2), np.array([4.0, 9.0]))
    >>> design.coefficients(np.ones((2, 1))).ravel().tolist()
    [1.0, 1.0]
    """

    def __init__(
        self, n_samples: int, turn: FloatArray | Rotation, gram_diagonal: FloatArray, constant: float = 1.0
    ) -> None:
        self.turn, self.gram_diagonal, self.constant = turn, gram_diagonal, constant
        self.shape = n_samples, len(gram_diagonal)

    def scores(self, W: FloatArray) -> BlockScores:
        """Z @ W, by name: nothing is computed before a loss is evaluated there.

        Parameters
        ----------
        W : array (n_columns, n_labels)

        Returns
        -------
        BlockScores
        """
        return BlockScores(W, self)

    def adjoint(self, R: BlockResidual) -> FloatArray:
        """Z' @ R, which came with the loss.

        Parameters
        ----------
        R : BlockResidual

        Returns
        -------
        array (n_columns, n_labels)
        """
        return R.adjoint

    def pulled(self, G: FloatArray) -> FloatArray:
        """A gradient in the coefficients, as one in these coordinates.

        Parameters
        ----------
        G : array (n_features, n_labels)

        Returns
        -------
        array (n_columns, n_labels)
        """
        return super().pulled(last_row_times(G, self.constant))


class BlockDesign(SummedDesign):
    r"""The linear model over rows in blocks.

    With up to `LARGEST_GRAM` features the coordinates are those of :func:`rbrl.problem.eigen_design`, from :math:`X'X`
    summed over the blocks; beyond, those of the features, turned towards the leading directions of a sample. Blocks see
    coefficients of features only, and give gradients in them.

    Parameters
    ----------
    blocks : Blocks
    intercept : bool
        Whether a column is appended.
    largest_gram : int
    constant : float, default=1.0
        What that column holds.
    found : Survey, default=None
        What a first pass has told already.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import BlockDesign, LocalBlocks
    >>> X, Y = np.eye(4, 3), np.ones((4, 2))
    >>> BlockDesign(LocalBlocks([(X[:2], Y[:2]), (X[2:], Y[2:])])).shape
    (4, 4)
    """

    def __init__(
        self, blocks: Blocks, intercept: bool = True, largest_gram: int = LARGEST_GRAM, constant: float = 1.0,
        found: "Survey | None" = None,
    ) -> None:  # fmt: skip
        self.blocks, self.constant = blocks, constant if intercept else 1.0
        self.found = found = take_survey(blocks, largest_gram) if found is None else found
        self.sample, gram, sums, last = found.sample, found.gram, constant * found.sums, constant**2 * found.n_samples
        self.whitened = gram.ndim == 2
        if intercept:
            # The Gram matrix, or its diagonal, of the features with the last column.
            gram = np.block([[gram, sums[:, None]], [sums, last]]) if self.whitened else np.append(gram, last)
        self.column_squares = gram.diagonal().copy() if self.whitened else gram
        turned: tuple[FloatArray | Rotation, FloatArray]
        if self.whitened:
            # Passes over the blocks again only where the Gram matrix has too few digits for all directions.
            turned = whiten(gram, lambda V: blocks.total(block_projected_gram, last_row_times(V, self.constant))[0])
        else:
            turned = rotated(self._sample_gram, gram, directions_worth(found.n_entries, len(gram)))
        super().__init__(found.n_samples, turned[0], turned[1], self.constant)

    def _sample_gram(self, V: FloatArray) -> FloatArray:
        X, _, stands_for, _ = self.sample
        R = stands_for[:, None] * scores(X, last_row_times(V, self.constant))
        return last_row_times(add_adjoint(X, R, np.zeros(V.shape)), self.constant)


class SummedObjective(Objective):
    """An objective of which only sums over rows are known, by a loss that has them.

    Parameters
    ----------
    design : SummedDesign
    n_labels : int
    loss : BlockLoss or LossAtZero
    ridge, nuclear : float
    """

    design: SummedDesign

    def __init__(self, design: SummedDesign, n_labels: int, loss: Any, ridge: float, nuclear: float) -> None:
        # Labels stay with their rows: zeros that take no memory tell their shape.
        self.Y = np.broadcast_to(np.int8(0), (design.shape[0], n_labels))
        self.design, self.loss, self.sample_weight, self.shape = design, loss, None, (design.shape[1], n_labels)
        self.ridge = Ridge(float(ridge), design.ridge_weights)
        self.nuclear = NuclearNorm(float(nuclear))

    def zero_scores(self) -> BlockScores:
        """The scores of the zero weights.

        Returns
        -------
        BlockScores
        """
        return self.design.scores(self.zeros())


class BlockObjective(SummedObjective):
    """The objective over rows in blocks: one pass over them is one evaluation.

    Parameters
    ----------
    design : BlockDesign
    loss : Loss
    ridge, nuclear : float

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.out_of_core import BlockDesign, BlockObjective, LocalBlocks
    >>> design = BlockDesign(LocalBlocks([(np.eye(4, 3), np.ones((4, 2)))]))
    >>> objective = BlockObjective(design, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> objective.value(objective.zeros())
    4.0
    """

    design: BlockDesign
    lines_are_exact = False  # lines are estimated on a sample of the rows

    def __init__(self, design: BlockDesign, loss: Loss, ridge: float, nuclear: float) -> None:
        super().__init__(design, design.found.n_labels, BlockLoss(loss, design), ridge, nuclear)
        self.reached, self.known = design.blocks.progress.on_gap, design.found.known > 0


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
    known : array (n_labels,)
        In how many rows each label is known: all, unless some are NaN or have weight 0.
    gram : array (n_features, n_features) or (n_features,)
        X'X, or only its diagonal where that is too large.
    sums : array (n_features,)
        Sums of the columns of X.
    scales : ColumnScales
        How far the columns reach.
    empty_share : float
        Share of the rows that have no relevant label, counted by their weights.
    sparse_features : bool
        Of the first block.
    sample : tuple of X, Y, stands_for, weights
        Some rows of every block; for how many rows each of them stands, and what it or its entries weigh, times that.
    """

    n_samples: int
    n_features: int
    n_labels: int
    n_entries: int
    low: int
    label_type: np.dtype[Any]
    sparse_labels: bool
    known: IntArray
    gram: FloatArray
    sums: FloatArray
    scales: ColumnScales
    empty_share: float
    sparse_features: bool
    sample: tuple[Matrix, Array, FloatArray, FloatArray]


def take_survey(blocks: Blocks, largest_gram: int) -> Survey:
    """Look at every row once; return a :class:`Survey`.

    Parameters
    ----------
    blocks : Blocks
    largest_gram : int
        The Gram matrix is formed for at most this many features.

    Returns
    -------
    Survey

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import LocalBlocks
    >>> found = take_survey(LocalBlocks([(np.eye(4, 3), np.ones((4, 2)))]), largest_gram=5000)
    >>> found.n_samples, found.n_labels, found.gram.shape
    (4, 2, (3, 3))
    """
    if len(blocks) == 0:
        raise ValueError("There are no blocks of rows to learn from: got 0.")
    n_features, n_labels, name, label_type, sparse_labels, sparse_features, shift = blocks.first(_columns)
    rows = min(SAMPLE_ROWS, SAMPLE_BYTES // (8 * max(n_labels, 1)))
    asked = (n_features, n_labels, name), n_features <= largest_gram, max(1, -(-rows // len(blocks))), shift
    n_samples, n_entries, gram, sums, *counted, zeros, minus, known, samples = blocks.total(_look, *asked)
    if n_samples == 0:
        raise ValueError(f"There are no rows to learn from: all {len(blocks)} blocks are empty.")
    if not known.any():
        raise InvalidLabelsError(f"No label of any of the {n_samples} rows is known: all are NaN or have weight 0.")
    if zeros and minus:
        raise InvalidLabelsError(
            f"Labels must be 0/1 everywhere or -1/+1 everywhere. Got 0 in {zeros[0]}, and -1 in {minus[0]}."
        )
    X, Y, stands_for, weights = zip(*samples)
    stack = sparse.vstack if sparse.issparse(X[0]) else np.vstack
    if any(w.ndim == 2 for w in weights):
        weights = tuple(
            w if w.ndim == 2 else np.broadcast_to(w[:, None], labels.shape) for w, labels in zip(weights, Y)
        )
    sample = stack(X), np.vstack(Y), np.concatenate(stands_for), np.concatenate(weights)
    of_labels = -1 if minus else 0, label_type, sparse_labels, known
    unlabelled, *weighted_sums = counted
    of_rows = ColumnScales.of_sums(*weighted_sums), unlabelled / weighted_sums[0], sparse_features
    return Survey(n_samples, n_features, n_labels, n_entries, *of_labels, gram, sums, *of_rows, sample)


def _columns(block: Block) -> tuple[Any, ...]:
    _check_matrices(block)
    shapes = block.X.shape[1], block.Y.shape[1], block.name
    return *shapes, block.Y.dtype, sparse.issparse(block.Y), sparse.issparse(block.X), first_row(block.X)


def _look(
    block: Block, expected: tuple[int, int, str], whole_gram: bool, sample_rows: int, shift: FloatArray
) -> tuple[Any, ...]:
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
    gram = (gram_matrix if whole_gram else squares)(X.astype(np.float64, copy=False))
    sums = np.asarray(X.sum(axis=0), dtype=np.float64).ravel()
    Y, weights = block.labels()
    # Rows of which no label is known are as if they were absent.
    counts = mean_weights(Y, weights)
    present = counts > 0
    kept = slice(None) if present.all() else present
    unlabelled = float(counts[~(Y > 0).any(axis=1)].sum())
    counted = unlabelled, float(counts.sum()), *shifted_sums(X[kept], shift, counts[kept])
    found = [name] * zeros, [name] * minus, np.count_nonzero(Y, axis=0), [_sample(X, Y, weights, sample_rows)]
    return X.shape[0], values.size, gram, sums, *counted, *found


def _check_matrices(block: Block) -> None:
    shapes: list[Any] = [getattr(matrix, "shape", None) for matrix in (block.X, block.Y)]
    if any(shape is None or len(shape) != 2 for shape in shapes) or shapes[0][0] != shapes[1][0]:
        raise DataFormatError(
            f"{block.name} must be two matrices with as many rows, features and labels. Got shapes {shapes[0]} and "
            f"{shapes[1]}."
        )
    if any(np.dtype(matrix.dtype).kind not in "biuf" for matrix in (block.X, block.Y)):
        raise DataFormatError(f"{block.name} must hold numbers. Got types {block.X.dtype} and {block.Y.dtype}.")
    if block.weights is not None:
        _check_weights(block)


def _check_weights(block: Block) -> None:
    shape, shapes = getattr(block.weights, "shape", None), (block.Y.shape[:1], block.Y.shape)
    if shape not in shapes:
        raise DataFormatError(
            f"{block.name}: weights must be an array of shape {shapes[0]}, one per row, or {shapes[1]}, one per label. Got "
            f"{type(block.weights).__name__ if shape is None else shape}."
        )
    values = block.weights.data if sparse.issparse(block.weights) else np.asarray(block.weights)
    if values.size and not (np.isfinite(values).all() and values.min() >= 0):
        raise DataFormatError(
            f"{block.name}: weights must be finite and >= 0. Got values from {values.min()} to {values.max()}."
        )


def _label_values(block: Block) -> tuple[bool, bool]:
    """Whether zeros and whether minus ones occur."""
    values = np.unique(block.Y.data if sparse.issparse(block.Y) else np.asarray(block.Y))
    values = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if not set(values.tolist()) <= {-1, 0, 1}:
        shown = ", ".join(repr(v) for v in values[:6].tolist())
        raise InvalidLabelsError(f"{block.name}: labels must be 0/1 or -1/+1. Got the values {shown}.")
    implied = sparse.issparse(block.Y) and block.Y.nnz < np.prod(block.Y.shape)
    return bool(implied or 0 in values), bool(-1 in values)


def _sample(
    X: Matrix, Y: IntArray, weights: FloatArray | None, n_rows: int
) -> tuple[Matrix, IntArray, FloatArray, FloatArray]:
    """Rows at equal distances, with the number of rows that each stands for, and their weights times that."""
    n = X.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, n_rows)).round().astype(np.int64)) if n else np.arange(0)
    each = n / max(len(rows), 1)
    stands_for = np.full(len(rows), each)
    return X[rows], Y[rows], stands_for, stands_for if weights is None else each * weights[rows]
