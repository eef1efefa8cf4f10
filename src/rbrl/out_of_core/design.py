r"""Designs for rows that are not in memory, of which only sums are known.

Scores are linear in the weights, and residuals enter a gradient only through the design. Every operation of a
solver on matrices with n_samples rows can therefore be done with small matrices, and no matrix with as many
rows as the data is stored:

.. math:: ZW + (ZD)t = Z(W + Dt), \quad (ZU)V' = Z(UV'), \quad Z'(RV) = (Z'R)V, \quad R'(ZU) = (Z'R)'U.

The first pass over the blocks is a survey. It checks the rows, computes the Gram matrix and takes a sample.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from rbrl._common.linalg import whiten
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix, issparse
from rbrl.datasets.dataset import stack_rows
from rbrl.exceptions import InvalidLabelsError
from rbrl.out_of_core.block import describe_columns, projected_gram, survey_block
from rbrl.out_of_core.sources import Blocks
from rbrl.problem.design import Design, add_adjoint, last_row_times, scores
from rbrl.problem.linear import Rotation, count_directions, rotate_to_leading_directions
from rbrl.scales import ColumnScales

# Largest number of features for which the Gram matrix is formed. The matrix and its decomposition take
# 4 x 8 x size^2 bytes, which is 0.8 GB, on every machine that holds blocks.
LARGEST_GRAM = 5000
# Largest number of rows of the sample from which step lengths are estimated.
SURVEY_ROWS = 2**14
# Largest number of bytes of the scores of the sample.
SURVEY_BYTES = 2**26


@dataclass(eq=False)
class BlockScores:
    """Scores Z @ weights, represented by the weights.

    Parameters
    ----------
    weights : array (n_columns, n_labels)
    design : Design
    sampled : array (n_rows, n_labels), default=None
        Scores of the rows from which lines are estimated, if they were computed.
    """

    weights: FloatArray
    design: Design
    sampled: FloatArray | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.design.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the scores."""
        return len(self), self.weights.shape[1]

    def __add__(self, other: Self) -> "BlockScores":
        """Return the sum of the scores; that of the sample is known only if both are."""
        sampled = None if self.sampled is None or other.sampled is None else self.sampled + other.sampled
        return BlockScores(self.weights + other.weights, self.design, sampled)

    def __sub__(self, other: Self) -> "BlockScores":
        """Return the difference of the scores, without scores of the sample."""
        return BlockScores(self.weights - other.weights, self.design)

    def __mul__(self, factors: Any) -> "BlockScores":
        """Return the scores of the weights times `factors`, a number or an array (n_labels,)."""
        sampled = None if self.sampled is None else self.sampled * factors
        return BlockScores(self.weights * factors, self.design, sampled)

    __rmul__ = __mul__

    def __matmul__(self, matrix: FloatArray) -> "BlockScores":
        """Return the scores times a matrix (n_labels, k), without scores of the sample."""
        return BlockScores(self.weights @ matrix, self.design)

    @property
    def T(self) -> "_Transposed":
        """Transposed scores, for products with other scores."""
        # The design only knows the diagonal of Z'Z.
        return _Transposed(self.weights, self.design.gram_diagonal[:, None])


@dataclass(eq=False)
class BlockResidual:
    """Residual R, represented by Z'R.

    Parameters
    ----------
    adjoint : array (n_columns, n_labels)
        Product Z'R.
    """

    adjoint: FloatArray

    def __matmul__(self, matrix: FloatArray) -> "BlockResidual":
        """Return the residual times a matrix (n_labels, k)."""
        return BlockResidual(self.adjoint @ matrix)

    @property
    def T(self) -> "_Transposed":
        """Transposed residual, for products with scores."""
        return _Transposed(self.adjoint)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        """Compute the inner product <R, ZW> as <Z'R, W>."""
        if function is not np.vdot:
            return NotImplemented
        residual, scores = arguments
        return np.vdot(residual.adjoint, scores.weights)


class _Transposed(NamedTuple):
    """Transposed matrix A', represented by Z'A, which is `factors` times `image`."""

    image: FloatArray
    factors: FloatArray | float = 1.0

    def __matmul__(self, scores: BlockScores) -> FloatArray:
        """Return A' Z W for scores Z W: (n_labels, n_labels)."""
        return self.image.T @ (self.factors * scores.weights)


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
            turn, diagonal = whiten(gram, lambda V: blocks.total(projected_gram, last_row_times(V, self.constant))[0])
        else:
            n_directions = count_directions(survey.n_entries, len(gram))
            turn, diagonal = rotate_to_leading_directions(self._sample_gram, gram, n_directions)
        super().__init__(survey.n_samples, turn, diagonal, self.constant)

    def _sample_gram(self, V: FloatArray) -> FloatArray:
        """Return X'X times V (n_columns, k), estimated from the sample.

        X has the constant column. Each sampled row counts as often as the rows that it represents.
        """
        X, _, multiplicities, _ = self.sample
        R = multiplicities[:, None] * scores(X, last_row_times(V, self.constant))
        return last_row_times(add_adjoint(X, R, np.zeros(V.shape)), self.constant)


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
        Whether the features of all blocks are sparse.
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

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import LocalBlocks
    >>> survey = take_survey(LocalBlocks([(np.eye(4, 3), np.ones((4, 2)))]))
    >>> survey.n_samples, survey.n_labels, survey.gram.shape
    (4, 2, (3, 3))
    """
    n_blocks = blocks.n_blocks
    if n_blocks == 0:
        raise ValueError("fit needs at least one block of rows. Got 0 blocks.")
    n_features, n_labels, name, label_type, sparse_labels, shift = blocks.apply_to_first(describe_columns)
    n_rows = min(SURVEY_ROWS, SURVEY_BYTES // (8 * max(n_labels, 1)))
    totals = blocks.total(
        survey_block,
        (n_features, n_labels, name),
        n_features <= largest_gram,
        max(1, -(-n_rows // n_blocks)),
        shift,
    )
    n_samples, n_entries, gram, sums, empty_weight, *weighted_sums, zeros, minus_ones, known, samples = totals
    if n_samples == 0:
        raise ValueError(f"fit needs at least one row. Got {n_blocks} empty blocks.")
    if not known.any():
        raise InvalidLabelsError(f"No label of any of the {n_samples} rows is known: all are NaN or have weight 0.")
    if zeros and minus_ones:
        raise InvalidLabelsError(
            f"Labels must be 0/1 everywhere or -1/+1 everywhere. Got 0 in {zeros[0]}, and -1 in {minus_ones[0]}."
        )
    X, Y, multiplicities, weights = zip(*samples)
    if any(w.ndim == 2 for w in weights):
        weights = tuple(w if w.ndim == 2 else np.broadcast_to(w[:, None], y.shape) for w, y in zip(weights, Y))
    sample = stack_rows(X), np.vstack(Y), np.concatenate(multiplicities), np.concatenate(weights)
    return Survey(
        n_samples=n_samples, n_features=n_features, n_labels=n_labels, n_entries=n_entries,
        low=-1 if minus_ones else 0, label_type=label_type, sparse_labels=sparse_labels, known=known,
        gram=gram, sums=sums, scales=ColumnScales.from_sums(*weighted_sums),
        empty_share=empty_weight / weighted_sums[0], sparse_features=all(map(issparse, X)), sample=sample,
    )  # fmt: skip
