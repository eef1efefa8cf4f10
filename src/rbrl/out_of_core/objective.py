"""The loss and the objective over rows in blocks; one evaluation is one pass over the blocks."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.losses import Loss, Terms
from rbrl.losses.base import LineValue
from rbrl.out_of_core.block import evaluate_block, extended_value
from rbrl.out_of_core.design import BlockDesign, BlockResidual, BlockScores, SummedDesign
from rbrl.problem.design import last_row_times, scores
from rbrl.problem.objective import NuclearNorm, Objective, Ridge
from rbrl.solvers.certificate import DualPoint
from rbrl.solvers.proof import Proof, prove_sums

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

    def __init__(self, loss: Loss, design: BlockDesign) -> None:
        self.loss = loss
        self.design = design
        self.evaluations: list[Evaluation] = []
        self._line: tuple[Any, ...] | None = None
        X, Y, _, weights = design.sample
        rows = slice(None, None, max(1, -(-Y.size // LINE_SCORES)))
        self._sample = X[rows], Y[rows], weights[rows] * (weights.sum() / weights[rows].sum())

    def evaluate(self, Y: Any, at: BlockScores, weights: None = None) -> tuple[Terms, BlockResidual]:
        """Return the terms and the residual, in one pass or from an earlier pass."""
        found = self._evaluate_at(at.weights)
        return found.terms, BlockResidual(found.adjoint)

    def label_hessian(self, Y: Any, at: BlockScores, weights: None = None) -> FloatArray:
        """Return the sum of the generalised Hessians of the rows, from the pass of `evaluate`.

        It is the kept array (n_labels, n_labels), which the caller must not change.
        """
        return self._evaluate_at(at.weights).label_hessian

    def extended_value(self, coefficients: FloatArray) -> float:
        """Return the loss at these coefficients from scores in extended precision, in one pass."""
        return float(self.design.blocks.total(extended_value, self.loss, coefficients)[0])

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

        Parameters
        ----------
        Y, weights
            Ignored arguments.
        at, along : BlockScores
        t : array (n_labels,)
            Step lengths.
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
        """Return the scores of the sample, which `at` keeps for later calls."""
        if at.sampled is None:
            at.sampled = scores(self._sample[0], self.design.coefficients(at.weights))
        return at.sampled

    def _evaluate_at(self, W: FloatArray) -> Evaluation:
        """Return the evaluation at weights W, from an earlier pass if W is the same.

        The last `KEPT_EVALUATIONS` and the one at zero weights are kept. W is kept without a copy.
        """
        for kept in self.evaluations:
            if _equal(kept.weights, W):
                return kept
        new = self.pass_over_blocks(W, self.design.coefficients(W))
        all_evaluations = [new, *self.evaluations]
        moved = [kept for kept in all_evaluations if kept.has_moved]
        at_zero = [kept for kept in all_evaluations if not kept.has_moved]
        self.evaluations = [*moved[:KEPT_EVALUATIONS], *at_zero]
        return new

    def pass_over_blocks(self, W: FloatArray, coefficients: FloatArray) -> Evaluation:
        """Return the evaluation at weights W, in one pass; it is not kept.

        `coefficients` are those of W: they go to the blocks, and may have been rounded.
        """
        has_moved = bool(W.any())
        self.design.columns_multiplied += W.shape[1] * (1 + has_moved)
        total = self.design.blocks.total(evaluate_block, self.loss, coefficients)
        value, linear, quadratic, reach, gradient, hessian, sums = total
        terms = Terms(value, linear, quadratic, min(reach))
        adjoint = self.design.to_weight_gradient(last_row_times(gradient, self.design.constant))
        return Evaluation(W, terms, adjoint, hessian, coefficients, gradient, has_moved, sums)


def _equal(A: FloatArray, B: FloatArray) -> bool:
    """Tell whether two arrays are equal; most arrays that are not equal differ in their first row."""
    return A is B or (np.array_equal(A[:1], B[:1]) and np.array_equal(A, B))


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
        return self.design.scores(np.zeros(self.shape))


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
        """Return the proof of the gap of coefficients W, from passes that the solver has made.

        W (n_columns, n_labels) are coefficients of the features, with the intercept in the last
        row. One pass is made if the solver did not evaluate exactly these.
        """
        constant = self.design.constant
        evaluations = self.loss.evaluations
        at_W = [kept for kept in evaluations if _equal(kept.coefficients, W)]
        # The best lower bound is that at the dual scores. If their evaluation was dropped, all kept ones are tried.
        others = [kept for kept in evaluations if _equal(kept.weights, dual_scores.weights)] or evaluations
        here = at_W[0] if at_W else self.loss.pass_over_blocks(self.design.weights(W), W)
        point = DualPoint(here.terms, len(self.Y), here.sums)
        # The penalties apply to the weight of the constant column, which is the intercept / constant.
        duals = [
            (DualPoint(kept.terms, len(self.Y), kept.sums), last_row_times(kept.gradient, constant)) for kept in others
        ]
        penalised = last_row_times(W, 1 / constant)
        extended = partial(self.loss.extended_value, W)
        return prove_sums(self, np.sqrt(self.design.column_squares), penalised, point, duals, extended)
