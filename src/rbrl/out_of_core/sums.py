r"""Loss summed over blocks of rows, in one pass.

Scores are linear in the weights, and residuals enter a gradient only through the design. Every operation of a
solver on matrices with n_samples rows can therefore be done with small matrices, and no matrix with as many
rows as the data is stored:

.. math:: ZW + (ZD)t = Z(W + Dt), \quad (ZU)V' = Z(UV'), \quad Z'(RV) = (Z'R)V, \quad R'(ZU) = (Z'R)'U.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.losses import Loss, Terms
from rbrl.losses.base import LineValue
from rbrl.losses.label_graph import LabelCounts, label_counts
from rbrl.out_of_core.sources import Block
from rbrl.problem.design import Design, add_adjoint, extended_scores, scores

if TYPE_CHECKING:
    from rbrl.out_of_core.design import BlockDesign


class BlockScores:
    """Scores Z @ weights, represented by the weights.

    Parameters
    ----------
    weights : array (n_columns, n_labels)
    design : Design
    sampled : array (n_rows, n_labels), default=None
        Scores of the rows from which lines are estimated, if they were computed.
    """

    def __init__(self, weights: FloatArray, design: Design, sampled: FloatArray | None = None) -> None:
        self.weights = weights
        self._design = design
        self.sampled = sampled

    def __len__(self) -> int:
        return int(self._design.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the scores."""
        return len(self), self.weights.shape[1]

    def __add__(self, other: Self) -> "BlockScores":
        sampled = None if self.sampled is None or other.sampled is None else self.sampled + other.sampled
        return BlockScores(self.weights + other.weights, self._design, sampled)

    def __sub__(self, other: Self) -> "BlockScores":
        return BlockScores(self.weights - other.weights, self._design)

    def __mul__(self, factors: Any) -> "BlockScores":
        sampled = None if self.sampled is None else self.sampled * factors
        return BlockScores(self.weights * factors, self._design, sampled)

    __rmul__ = __mul__

    def __matmul__(self, matrix: FloatArray) -> "BlockScores":
        return BlockScores(self.weights @ matrix, self._design)

    @property
    def T(self) -> "_Transposed":
        """Transposed scores, for products with other scores."""
        # The design only knows the diagonal of Z'Z.
        return _Transposed(self.weights, self._design.gram_diagonal[:, None])


class BlockResidual:
    """Residual R, represented by Z'R.

    Parameters
    ----------
    adjoint : array (n_columns, n_labels)
        Product Z'R.
    """

    def __init__(self, adjoint: FloatArray) -> None:
        self.adjoint = adjoint

    def __matmul__(self, matrix: FloatArray) -> "BlockResidual":
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
        return self.image.T @ (self.factors * scores.weights)


# Number of evaluations that are kept, beside that of zero weights, because a solver may return to old weights.
KEPT_EVALUATIONS = 3
# Largest number of scores from which lines are estimated. With many labels, this is only a part of the sample.
LINE_SCORES = 2**20


class Evaluation(NamedTuple):
    """Loss and its derivatives at given weights.

    Attributes
    ----------
    weights, adjoint : arrays (n_columns, n_labels)
        Weights and gradient in the coordinates of the design.
    terms : Terms
        Value and dual bound of the loss.
    label_hessian : array (n_labels, n_labels)
        Sum of the generalised Hessians of the rows.
    coefficients, gradient : arrays (n_features, n_labels)
        Coefficients of the features, and the gradient in these.
    has_moved : bool
        Whether any weight differs from 0.
    sums : array (3, n_labels)
        Sums of squares of the loss gradient in the scores, of `Loss.rounding_reach`, and of the scores.
    """

    weights: FloatArray
    terms: Terms
    adjoint: FloatArray
    label_hessian: FloatArray
    coefficients: FloatArray
    gradient: FloatArray
    has_moved: bool
    sums: FloatArray


class BlockLoss:
    """Loss over blocks, with the methods of :class:`Loss` for :class:`BlockScores`.

    The labels and weights are in the blocks. The methods take `Y` and `weights` only because those of
    :class:`Loss` do. The loss along a line is estimated from the sample of the survey. Its value and slopes at
    the start of the line are exact, and the sample gives the curvature.

    Parameters
    ----------
    loss : Loss
    design : BlockDesign

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.out_of_core import BlockDesign, BlockLoss, LocalBlocks
    >>> design = BlockDesign(LocalBlocks([(np.eye(4, 3), np.ones((4, 2)))]))
    >>> loss = BlockLoss(SquaredHinge(), design)
    >>> terms, residual = loss.evaluate(None, design.scores(np.zeros((4, 2))))
    >>> terms.value
    4.0
    """

    def __init__(self, loss: Loss, design: "BlockDesign") -> None:
        self.loss = loss
        self.design = design
        self._evaluations: list[Evaluation] = []
        self._line: tuple[Any, ...] | None = None
        X, Y, _, weights = design.sample
        rows = slice(None, None, max(1, -(-Y.size // LINE_SCORES)))
        self._sample = X[rows], Y[rows], weights[rows] * (weights.sum() / weights[rows].sum())

    def evaluate(self, Y: Any, at: BlockScores, weights: None = None) -> tuple[Terms, BlockResidual]:
        """Return the terms and the residual, in one pass or from an earlier pass."""
        found = self._evaluate_at(at.weights)
        return found.terms, BlockResidual(found.adjoint)

    def label_hessian(self, Y: Any, at: BlockScores, weights: None = None) -> FloatArray:
        """Return the sum of the generalised Hessians of the rows, from the pass of `evaluate`."""
        return self._evaluate_at(at.weights).label_hessian

    def recall(self, coefficients: FloatArray, dual: BlockScores) -> tuple[Evaluation, list[Evaluation]]:
        """Return the evaluation at these coefficients, and those that may prove the best lower bound.

        The first costs a pass only if the solver did not end at these coefficients. The second is the
        evaluation at the dual scores, or all kept evaluations if that one was dropped.

        Parameters
        ----------
        coefficients : array (n_features, n_labels)
        dual : BlockScores

        Returns
        -------
        here : Evaluation
        others : list of Evaluation
        """
        here = [kept for kept in self._evaluations if _equal(kept.coefficients, coefficients)]
        best = [kept for kept in self._evaluations if _equal(kept.weights, dual.weights)]
        if not here:
            here = [self._pass_over_blocks(self.design.weights(coefficients), coefficients)]
        return here[0], best or self._evaluations

    def extended_value(self, coefficients: FloatArray) -> float:
        """Return the loss at these coefficients from scores in extended precision, in one pass."""
        return float(self.design.blocks.total(_extended_value, self.loss, coefficients)[0])

    def estimate(self, at: BlockScores) -> float:
        """Return the loss of the sample, without a pass."""
        _, Y, weights = self._sample
        return self.loss.value(Y, self._sample_scores(at), weights)

    def line(self, Y: Any, at: BlockScores, along: BlockScores, t: FloatArray, weights: None = None) -> LineValue:
        """Return an estimate of the loss at ``at + along * t`` from the sample, without a pass.

        The value and the slopes are corrected, so that they are exact at t = 0.

        Parameters
        ----------
        Y, weights
            Ignored arguments.
        at, along : BlockScores
        t : array (n_labels,)
            Step lengths.

        Returns
        -------
        LineValue
        """
        _, labels, sample_weights = self._sample
        if self._line is None or self._line[0] is not at or self._line[1] is not along:
            F = self._sample_scores(at)
            D = self._sample_scores(along)
            start = self._evaluate_at(at.weights)
            sampled = self.loss.line(labels, F, D, np.zeros(F.shape[1]), sample_weights)
            slopes = np.einsum("ij,ij->j", start.adjoint, along.weights) - sampled.slopes
            self._line = at, along, F, D, start.terms.value - sampled.value, slopes
        *_, F, D, value, slopes = self._line
        here = self.loss.line(labels, F, D, t, sample_weights)
        return LineValue(value + here.value, slopes + here.slopes, here.curvatures, here.joint_curvature)

    def exact_line(self, Y: Any, at: BlockScores, along: BlockScores, t: FloatArray, weights: None = None) -> LineValue:
        """Return the loss at ``at + along * t`` in one pass, with curvatures from differences of slopes.

        The curvature of a label with a step length of 0 is infinite.

        Parameters
        ----------
        Y, weights
            Ignored arguments.
        at, along : BlockScores
        t : array (n_labels,)
            Step lengths.

        Returns
        -------
        LineValue
        """
        end_weights = along.weights * t
        end_weights += at.weights
        start = self._evaluate_at(at.weights)
        end = self._evaluate_at(end_weights)
        before = np.einsum("ij,ij->j", start.adjoint, along.weights)
        after = np.einsum("ij,ij->j", end.adjoint, along.weights)
        curvatures = np.divide(after - before, t, out=np.full(len(t), np.inf), where=t > 0)
        joint_curvature = float((after - before).sum() / max(t.max(), 1e-300))
        return LineValue(end.terms.value, after, curvatures, joint_curvature)

    def _sample_scores(self, at: BlockScores) -> FloatArray:
        """Return the scores of the sample, and keep them in `at`."""
        if at.sampled is None:
            at.sampled = scores(self._sample[0], self.design.coefficients(at.weights))
        return at.sampled

    def _evaluate_at(self, W: FloatArray) -> Evaluation:
        """Return the evaluation at these weights, and keep it."""
        for kept in self._evaluations:
            if _equal(kept.weights, W):
                return kept
        new = self._pass_over_blocks(W, self.design.coefficients(W))
        all_evaluations = [new, *self._evaluations]
        moved = [kept for kept in all_evaluations if kept.has_moved]
        at_zero = [kept for kept in all_evaluations if not kept.has_moved]
        self._evaluations = [*moved[:KEPT_EVALUATIONS], *at_zero]
        return new

    def _pass_over_blocks(self, W: FloatArray, coefficients: FloatArray) -> Evaluation:
        """Return the evaluation at weights W, whose coefficients are given, in one pass over the blocks."""
        has_moved = bool(W.any())
        self.design.columns_multiplied += W.shape[1] * (1 + has_moved)
        total = self.design.blocks.total(_evaluate_block, self.loss, coefficients)
        value, linear, quadratic, reach, gradient, hessian, sums = total
        terms = Terms(value, linear, quadratic, min(reach))
        adjoint = self.design.to_weight_gradient(gradient)
        return Evaluation(W, terms, adjoint, hessian, coefficients, gradient, has_moved, sums)


def _equal(A: FloatArray, B: FloatArray) -> bool:
    """Tell whether two arrays are equal; most arrays that are not equal differ in their first row."""
    return A is B or (np.array_equal(A[:1], B[:1]) and np.array_equal(A, B))


def _extended_value(block: Block, loss: Loss, coefficients: FloatArray) -> tuple[float]:
    """Return the loss of one block from scores in extended precision, in a tuple."""
    return (sum(loss.value(Y, extended_scores(X, coefficients), weights) for X, Y, weights in block.slices()),)


def _evaluate_block(block: Block, loss: Loss, coefficients: FloatArray) -> tuple[Any, ...]:
    """Return the terms, the gradient, the label Hessian and the sums of an :class:`Evaluation` for one block.

    The reach is in a list, because the results of blocks are added, but lists are joined.
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


def block_projected_gram(block: Block, V: FloatArray) -> tuple[FloatArray]:
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


def block_label_counts(block: Block) -> LabelCounts:
    """Return the counts of the labels of one block."""
    return label_counts(*block.labels())
