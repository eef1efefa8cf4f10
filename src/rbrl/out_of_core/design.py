"""Designs and objectives for rows that are not in memory, of which only sums are known.

The first pass over the blocks is a survey. It checks the rows, computes the Gram matrix and takes a sample.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.linalg import gram_matrix, squares, whiten
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix
from rbrl.exceptions import DataFormatError, InvalidLabelsError
from rbrl.losses import Loss
from rbrl.losses.weights import mean_weights
from rbrl.out_of_core.sources import Block, Blocks
from rbrl.out_of_core.sums import BlockLoss, BlockResidual, BlockScores, block_projected_gram
from rbrl.problem.design import Design, add_adjoint, last_row_times, scores
from rbrl.problem.linear import Rotation, count_directions, rotate_to_leading_directions
from rbrl.problem.objective import NuclearNorm, Objective, Ridge
from rbrl.scales import ColumnScales, first_row, shifted_sums
from rbrl.solvers.certificate import DualPoint
from rbrl.solvers.proof import Proof, prove_sums

# Largest number of features for which the Gram matrix is formed. The matrix and its decomposition take
# 4 x 8 x size^2 bytes, which is 0.8 GB, on every machine that holds blocks.
LARGEST_GRAM = 5000
# Largest number of rows of the sample from which step lengths are estimated.
SURVEY_ROWS = 2**14
# Largest number of bytes of the scores of the sample.
SURVEY_BYTES = 2**26


class SummedDesign(Design):
    """Design with the coordinates W of the coefficients ``turn @ W``, which does not compute scores.

    Parameters
    ----------
    n_samples : int
    turn : array (n_features, n_columns) or Rotation
        Matrix from coordinates to coefficients.
    gram_diagonal : array (n_columns,)
        Diagonal of Z'Z.
    constant : float, default=1.0
        Value of the intercept's column, which is the last feature. The last coefficient is the intercept.

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
        self.turn = turn
        self.gram_diagonal = gram_diagonal
        self.constant = constant
        self.shape = n_samples, len(gram_diagonal)

    def scores(self, W: FloatArray) -> BlockScores:
        """Return an object that stands for Z @ W; a loss computes the scores when it is evaluated."""
        return BlockScores(W, self)

    def adjoint(self, R: BlockResidual) -> FloatArray:
        """Return Z' @ R, which was computed together with the loss."""
        return R.adjoint

    def to_weight_gradient(self, G: FloatArray) -> FloatArray:
        """Return the gradient in the coordinates for a gradient G in the coefficients."""
        return super().to_weight_gradient(last_row_times(G, self.constant))


class BlockDesign(SummedDesign):
    r"""Design of a linear model over rows in blocks.

    With up to `LARGEST_GRAM` features, the coordinates are those of :func:`rbrl.problem.eigen_design`, computed
    from the sum of :math:`X'X` over the blocks. With more features, they are the coordinates of the features,
    rotated towards the leading directions of a sample. The blocks receive coefficients of the features and
    return gradients in these.

    Parameters
    ----------
    blocks : Blocks
    intercept : bool
        Whether a constant column is appended.
    constant : float, default=1.0
        Value of the constant column.
    survey : Survey, default=None
        Survey of the blocks; None takes one.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import BlockDesign, LocalBlocks
    >>> X, Y = np.eye(4, 3), np.ones((4, 2))
    >>> BlockDesign(LocalBlocks([(X[:2], Y[:2]), (X[2:], Y[2:])])).shape
    (4, 4)
    """

    def __init__(
        self, blocks: Blocks, intercept: bool = True, constant: float = 1.0, survey: "Survey | None" = None
    ) -> None:
        self.blocks = blocks
        self.constant = constant if intercept else 1.0
        self.survey = survey = take_survey(blocks) if survey is None else survey
        self.sample = survey.sample
        gram = survey.gram
        self.whitened = gram.ndim == 2
        if intercept:
            # The Gram matrix, or its diagonal, of the features with the constant column.
            sums = constant * survey.sums
            last = constant**2 * survey.n_samples
            gram = np.block([[gram, sums[:, None]], [sums, last]]) if self.whitened else np.append(gram, last)
        self.column_squares = gram.diagonal().copy() if self.whitened else gram
        turn: FloatArray | Rotation
        if self.whitened:
            # More passes are made only if the Gram matrix does not resolve all directions.
            turn, diagonal = whiten(
                gram, lambda V: blocks.total(block_projected_gram, last_row_times(V, self.constant))[0]
            )
        else:
            n_directions = count_directions(survey.n_entries, len(gram))
            turn, diagonal = rotate_to_leading_directions(self._sample_gram, gram, n_directions)
        super().__init__(survey.n_samples, turn, diagonal, self.constant)

    def _sample_gram(self, V: FloatArray) -> FloatArray:
        """Return X'X times V, estimated from the sample."""
        X, _, multiplicities, _ = self.sample
        R = multiplicities[:, None] * scores(X, last_row_times(V, self.constant))
        return last_row_times(add_adjoint(X, R, np.zeros(V.shape)), self.constant)


class SummedObjective(Objective):
    """Objective of which only sums over rows are known.

    Parameters
    ----------
    design : SummedDesign
    n_labels : int
    loss : BlockLoss or LossAtZero
        Loss that provides the sums.
    ridge, nuclear : float
    """

    design: SummedDesign

    def __init__(self, design: SummedDesign, n_labels: int, loss: Any, ridge: float, nuclear: float) -> None:
        # The labels are in the blocks. This array only has their shape and takes no memory.
        self.Y = np.broadcast_to(np.int8(0), (design.shape[0], n_labels))
        self.design = design
        self.loss = loss
        self.sample_weight = None
        self.shape = design.shape[1], n_labels
        self.ridge = Ridge(float(ridge), design.ridge_weights)
        self.nuclear = NuclearNorm(float(nuclear))

    def zero_scores(self) -> BlockScores:
        """Return the scores of zero weights."""
        return self.design.scores(self.zeros())


class BlockObjective(SummedObjective):
    """Objective over rows in blocks; one evaluation is one pass over the blocks.

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
        super().__init__(design, design.survey.n_labels, BlockLoss(loss, design), ridge, nuclear)
        self.on_gap = design.blocks.progress.on_gap
        self.known = design.survey.known > 0

    def prove(self, W: FloatArray, dual_scores: BlockScores) -> Proof:
        """Return the proof of the gap of coefficients W, from passes that the solver has made."""
        constant = self.design.constant
        here, others = self.loss.recall(W, dual_scores)
        point = DualPoint(here.terms, len(self.Y), here.sums)
        # The penalties apply to the weight of the constant column, which is the intercept / constant.
        duals = [
            (DualPoint(kept.terms, len(self.Y), kept.sums), last_row_times(kept.gradient, constant)) for kept in others
        ]
        penalised = last_row_times(W, 1 / constant)
        extended = partial(self.loss.extended_value, W)
        return prove_sums(self, np.sqrt(self.design.column_squares), penalised, point, duals, extended)


class Survey(NamedTuple):
    """Results of the first pass over the blocks.

    Attributes
    ----------
    n_samples, n_features, n_labels : int
        Numbers of rows, features and labels.
    n_entries : int
        Number of stored entries of X.
    low : int
        Code of an irrelevant label: 0 or -1.
    label_type : dtype
        Type of the labels of the first block.
    sparse_labels : bool
        Whether the labels of the first block are sparse.
    known : array (n_labels,)
        Number of rows in which each label is known. A label is missing if it is NaN or has weight 0.
    gram : array (n_features, n_features) or (n_features,)
        Matrix X'X, or its diagonal if the matrix is too large.
    sums : array (n_features,)
        Sums of the columns of X.
    scales : ColumnScales
        Variances of the columns of X.
    empty_share : float
        Weighted share of the rows without a relevant label.
    sparse_features : bool
        Whether the features of the first block are sparse.
    sample : tuple of X, Y, multiplicities, weights
        Some rows of every block, the number of rows that each of them represents, and their weights, or
        the weights of their entries, times this number.
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


def take_survey(blocks: Blocks, largest_gram: int = LARGEST_GRAM) -> Survey:
    """Check all rows and return their sums, in one pass.

    Parameters
    ----------
    blocks : Blocks
    largest_gram : int, default=5000
        Largest number of features for which the Gram matrix is formed.

    Returns
    -------
    Survey

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import LocalBlocks
    >>> survey = take_survey(LocalBlocks([(np.eye(4, 3), np.ones((4, 2)))]))
    >>> survey.n_samples, survey.n_labels, survey.gram.shape
    (4, 2, (3, 3))
    """
    if len(blocks) == 0:
        raise ValueError("fit needs at least one block of rows. Got 0 blocks.")
    n_features, n_labels, name, label_type, sparse_labels, sparse_features, shift = blocks.apply_to_first(_columns)
    n_rows = min(SURVEY_ROWS, SURVEY_BYTES // (8 * max(n_labels, 1)))
    totals = blocks.total(
        _survey_block,
        (n_features, n_labels, name),
        n_features <= largest_gram,
        max(1, -(-n_rows // len(blocks))),
        shift,
    )
    n_samples, n_entries, gram, sums, empty_weight, *weighted_sums, zeros, minus_ones, known, samples = totals
    if n_samples == 0:
        raise ValueError(f"fit needs at least one row. Got {len(blocks)} empty blocks.")
    if not known.any():
        raise InvalidLabelsError(f"No label of any of the {n_samples} rows is known: all are NaN or have weight 0.")
    if zeros and minus_ones:
        raise InvalidLabelsError(
            f"Labels must be 0/1 everywhere or -1/+1 everywhere. Got 0 in {zeros[0]}, and -1 in {minus_ones[0]}."
        )
    return Survey(
        n_samples=n_samples, n_features=n_features, n_labels=n_labels, n_entries=n_entries,
        low=-1 if minus_ones else 0, label_type=label_type, sparse_labels=sparse_labels, known=known,
        gram=gram, sums=sums, scales=ColumnScales.from_sums(*weighted_sums),
        empty_share=empty_weight / weighted_sums[0], sparse_features=sparse_features, sample=_join_samples(samples),
    )  # fmt: skip


def _columns(block: Block) -> tuple[Any, ...]:
    """Check the first block; return its shapes and name, which the others must match, its types, and its first row."""
    _check_matrices(block)
    shapes = block.X.shape[1], block.Y.shape[1], block.name
    return *shapes, block.Y.dtype, sparse.issparse(block.Y), sparse.issparse(block.X), first_row(block.X)


def _survey_block(
    block: Block, expected: tuple[int, int, str], whole_gram: bool, sample_rows: int, shift: FloatArray
) -> tuple[Any, ...]:
    """Check a block; return its sums, the names of blocks with zeros and with minus ones, and a sample."""
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
    has_zeros, has_minus_ones = _label_values(block)
    gram = (gram_matrix if whole_gram else squares)(X.astype(np.float64, copy=False))
    sums = np.asarray(X.sum(axis=0), dtype=np.float64).ravel()
    Y, weights = block.labels()
    # Rows whose labels are all missing have weight 0 and are ignored.
    row_weights = mean_weights(Y, weights)
    kept = slice(None) if row_weights.all() else row_weights > 0
    empty_weight = float(row_weights[~(Y > 0).any(axis=1)].sum())
    weighted_sums = float(row_weights.sum()), *shifted_sums(X[kept], shift, row_weights[kept])
    names = [block.name] * has_zeros, [block.name] * has_minus_ones
    sample = _take_sample(X, Y, weights, sample_rows)
    n_known = np.count_nonzero(Y, axis=0)
    return X.shape[0], entries.size, gram, sums, empty_weight, *weighted_sums, *names, n_known, [sample]


def _check_matrices(block: Block) -> None:
    """Raise DataFormatError unless features, labels and weights are numbers in matching shapes."""
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
    """Raise DataFormatError unless the weights have a valid shape, are finite and not negative."""
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


def _label_values(block: Block) -> tuple[bool, bool]:
    """Return whether zeros and whether minus ones occur among the labels; reject values other than 0, 1 and -1."""
    values = np.unique(block.Y.data if sparse.issparse(block.Y) else np.asarray(block.Y))
    values = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if not set(values.tolist()) <= {-1, 0, 1}:
        shown = ", ".join(repr(v) for v in values[:6].tolist())
        raise InvalidLabelsError(f"{block.name}: labels must be 0/1 or -1/+1. Got the values {shown}.")
    implied = sparse.issparse(block.Y) and block.Y.nnz < np.prod(block.Y.shape)
    return bool(implied or 0 in values), bool(-1 in values)


def _take_sample(
    X: Matrix, Y: IntArray, weights: FloatArray | None, n_rows: int
) -> tuple[Matrix, IntArray, FloatArray, FloatArray]:
    """Return evenly spaced rows, the number of rows that each represents, and their weights times it."""
    n = X.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, n_rows)).round().astype(np.int64)) if n else np.arange(0)
    multiplicity = n / max(len(rows), 1)
    multiplicities = np.full(len(rows), multiplicity)
    return X[rows], Y[rows], multiplicities, multiplicities if weights is None else multiplicity * weights[rows]


def _join_samples(samples: list[Any]) -> tuple[Matrix, Array, FloatArray, FloatArray]:
    """Return the samples of all blocks as one; weights become weights of entries if a block has such weights."""
    X, Y, multiplicities, weights = zip(*samples)
    if any(w.ndim == 2 for w in weights):
        weights = tuple(w if w.ndim == 2 else np.broadcast_to(w[:, None], y.shape) for w, y in zip(weights, Y))
    stack = sparse.vstack if sparse.issparse(X[0]) else np.vstack
    return stack(X), np.vstack(Y), np.concatenate(multiplicities), np.concatenate(weights)
