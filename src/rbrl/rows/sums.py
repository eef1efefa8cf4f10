r"""A loss summed over rows that are elsewhere, or gone by: one pass gives all that a solver asks for.

Scores are linear in the weights, residuals enter a gradient through the design alone; so whatever a solver does with tall
matrices can be done with their small images, and nothing with as many rows as the data is ever kept:

.. math:: ZW + (ZD)t = Z(W + Dt), \quad (ZU)V' = Z(UV'), \quad Z'(RV) = (Z'R)V, \quad R'(ZU) = (Z'R)'U.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from rbrl._common.typing import Array, FloatArray, IntArray, Matrix, issparse
from rbrl.losses import Loss, Terms
from rbrl.losses.base import LineValue, row_weights
from rbrl.problem.design import Design, add_adjoint, extended_scores, scores, signed, slices
from rbrl.rows.places import Block

if TYPE_CHECKING:
    from rbrl.rows.design import BlockDesign


class BlockScores:
    """Z @ weights, not computed."""

    def __init__(self, weights: FloatArray, design: Design) -> None:
        self.weights, self._design = weights, design

    def __len__(self) -> int:
        return int(self._design.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """As of the scores themselves."""
        return len(self), self.weights.shape[1]

    def __add__(self, other: Self) -> "BlockScores":
        return BlockScores(self.weights + other.weights, self._design)

    def __sub__(self, other: Self) -> "BlockScores":
        return BlockScores(self.weights - other.weights, self._design)

    def __mul__(self, factors: Any) -> "BlockScores":
        return BlockScores(self.weights * factors, self._design)

    __rmul__ = __mul__

    def __matmul__(self, matrix: FloatArray) -> "BlockScores":
        return BlockScores(self.weights @ matrix, self._design)

    @property
    def T(self) -> "_TransposedScores":
        """Transposed, for products with other scores."""
        return _TransposedScores(self.weights, self._design.gram_diagonal)


class _TransposedScores(NamedTuple):
    weights: FloatArray
    gram_diagonal: FloatArray

    def __matmul__(self, other: BlockScores) -> FloatArray:
        """Scores times scores, with Z'Z as far as the design knows it: its diagonal."""
        return self.weights.T @ (self.gram_diagonal[:, None] * other.weights)


class BlockResidual:
    """R, of which only Z'R is known."""

    def __init__(self, adjoint: FloatArray) -> None:
        self.adjoint = adjoint

    def __matmul__(self, matrix: FloatArray) -> "BlockResidual":
        return BlockResidual(self.adjoint @ matrix)

    @property
    def T(self) -> "_TransposedResidual":
        """Transposed, for products with scores."""
        return _TransposedResidual(self.adjoint)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        """<R, ZW> = <Z'R, W>."""
        if function is not np.vdot:
            return NotImplemented
        residual, scores = arguments
        return np.vdot(residual.adjoint, scores.weights)


class _TransposedResidual(NamedTuple):
    adjoint: FloatArray

    def __matmul__(self, scores: BlockScores) -> FloatArray:
        return self.adjoint.T @ scores.weights


# Evaluations that are remembered: a solver comes back to where it was.
REMEMBERED = 3


class Evaluated(NamedTuple):
    """A loss at given weights.

    Attributes
    ----------
    weights, adjoint : arrays
        In the coordinates of the design.
    terms : Terms
    label_hessian : array (n_labels, n_labels)
    coefficients, gradient : arrays (n_columns, n_labels)
        Of the features themselves, as the blocks saw and gave them.
    gradient_squares, rounding_squares, score_squares : arrays (n_labels,)
        Sums of squares of the loss gradient in the scores, of `Loss.rounding_reach`, and of the scores.
    """

    weights: FloatArray
    terms: Terms
    adjoint: FloatArray
    label_hessian: FloatArray
    coefficients: FloatArray
    gradient: FloatArray
    gradient_squares: FloatArray
    rounding_squares: FloatArray
    score_squares: FloatArray


class BlockLoss:
    """Has the methods of a :class:`Loss`, with :class:`BlockScores` for scores.

    Lines are estimated on the survey's sample, with value and slopes exact at their start: rows that stand for others tell
    the curvature of the loss, not its value.

    Parameters
    ----------
    loss : Loss
    design : BlockDesign
    """

    def __init__(self, loss: Loss, design: "BlockDesign") -> None:
        self.loss, self.design = loss, design
        self._known: list[Evaluated] = []
        self._zero: Evaluated | None = None
        self._ray: tuple[Any, ...] | None = None

    def evaluate(self, Y: Any, at: BlockScores, weights: None = None) -> tuple[Terms, BlockResidual]:
        """Terms and residual: one pass, none if it was made before."""
        found = self._at(at.weights)
        return found.terms, BlockResidual(found.adjoint)

    def label_hessian(self, Y: Any, at: BlockScores, weights: None = None) -> FloatArray:
        """Sum of the rows' generalised Hessians, of the same pass."""
        return self._at(at.weights).label_hessian

    def remembered(self, coefficients: FloatArray) -> tuple[Evaluated, list[Evaluated]]:
        """What is known at these coefficients, which costs a pass only where a solver did not end there; and all else that
        is known."""
        known = [*self._known, *([] if self._zero is None else [self._zero])]
        here = [point for point in known if np.array_equal(point.coefficients, coefficients)]
        return (here or [self._pass(self.design.weights(coefficients), coefficients)])[0], known

    def extended(self, coefficients: FloatArray) -> float:
        """The value at these coefficients, by scores in extended precision: one pass."""
        return float(self.design.blocks.total(_extended_value, self.loss, coefficients)[0])

    def estimate(self, at: BlockScores) -> float:
        """The loss as the sample has it: no pass."""
        _, Y, weights = self.design.sample
        return self.loss.value(Y, self._sample_scores(at), weights)

    def line(self, Y: Any, at: BlockScores, along: BlockScores, t: FloatArray, weights: None = None) -> LineValue:
        """The loss at ``at + along * t`` as the sample has it, corrected at t = 0: no pass."""
        if self._ray is None or self._ray[0] is not at or self._ray[1] is not along:
            self._ray = (at, along, *self._start_line(at, along))
        *_, F, D, value, slopes = self._ray
        _, labels, row_weights = self.design.sample
        here = self.loss.line(labels, F, D, t, row_weights)
        return LineValue(value + here.value, slopes + here.slopes, here.curvatures, here.joint_curvature)

    def exact_line(self, Y: Any, at: BlockScores, along: BlockScores, t: FloatArray, weights: None = None) -> LineValue:
        """The loss at ``at + along * t``, with curvatures by differences from t = 0: one pass."""
        start, here = self._at(at.weights), self._at((at + along * t).weights)
        before, after = (np.sum(point.adjoint * along.weights, axis=0) for point in (start, here))
        curvatures = np.divide(after - before, t, out=np.full(len(t), np.inf), where=t > 0)
        return LineValue(here.terms.value, after, curvatures, float((after - before).sum() / max(t.max(), 1e-300)))

    def _start_line(self, at: BlockScores, along: BlockScores) -> tuple[FloatArray, FloatArray, float, FloatArray]:
        F, D = self._sample_scores(at), self._sample_scores(along)
        _, labels, row_weights = self.design.sample
        sampled, exact = self.loss.line(labels, F, D, np.zeros(F.shape[1]), row_weights), self._at(at.weights)
        slopes = np.sum(exact.adjoint * along.weights, axis=0)
        return F, D, exact.terms.value - sampled.value, slopes - sampled.slopes

    def _sample_scores(self, at: BlockScores) -> FloatArray:
        return scores(self.design.sample[0], self.design.coefficients(at.weights))

    def _at(self, W: FloatArray) -> Evaluated:
        zero = not W.any()
        if zero and self._zero is not None:
            return self._zero
        for known in self._known:
            if np.array_equal(known.weights, W):
                return known
        found = self._pass(W, self.design.coefficients(W))
        if zero:
            self._zero = found
        else:
            self._known = [found, *self._known[: REMEMBERED - 1]]
        return found

    def _pass(self, W: FloatArray, coefficients: FloatArray) -> Evaluated:
        self.design.columns += W.shape[1] * (2 if W.any() else 1)
        total = self.design.blocks.total(_evaluate, self.loss, coefficients)
        value, linear, quadratic, reach, gradient, hessian, sums = total
        terms, adjoint = Terms(value, linear, quadratic, min(reach)), self.design.weights(gradient)
        return Evaluated(W, terms, adjoint, hessian, coefficients, gradient, *sums)


def _extended_value(block: Block, loss: Loss, coefficients: FloatArray) -> tuple[float]:
    """A loss on one block, by scores in extended precision, in a tuple."""
    return (sum(loss.value(Y, extended_scores(X, coefficients)) for X, Y in slices(block.X, block.Y)),)


def _evaluate(block: Block, loss: Loss, coefficients: FloatArray) -> tuple[Any, ...]:
    """The terms of a loss on one block, its gradient in the coefficients, its label Hessian, and the sums of squares that
    tell how far rounding can reach."""
    l = coefficients.shape[1]
    G, H, sums = np.zeros(coefficients.shape), np.zeros((l, l)), np.zeros((3, l))
    value = linear = quadratic = 0.0
    reach, moved = [np.inf], coefficients.any()
    for X, Y in slices(block.X, block.Y):
        F = scores(X, coefficients) if moved else np.zeros(Y.shape)
        terms, R = loss.evaluate(Y, F)
        value, linear, quadratic = value + terms.value, linear + terms.linear, quadratic + terms.quadratic
        reach = [min(reach[0], terms.reach)]
        add_adjoint(X, R, G)
        H += loss.label_hessian(Y, F)
        sums += [np.einsum("ij,ij->j", A, A) for A in (R, loss.rounding_reach(Y, F), F)]
    return value, linear, quadratic, reach, G, H, sums


class Sums(NamedTuple):
    """Sums over rows; those of two streams together are the sums of both."""

    n_samples: float
    gram: FloatArray
    adjoint: FloatArray
    label_hessian: FloatArray
    value: float


def at_zero(loss: Loss, X: Matrix, Y: IntArray, weights: FloatArray | None = None) -> Sums:
    """The sums of some rows: weights, X'X, X'R, Hessian and value, for the loss and its gradient R at zero scores."""
    zero, w = np.zeros(Y.shape), row_weights(weights, len(Y))
    terms, R = loss.evaluate(Y, zero, w)
    weighted = sparse.diags_array(w) @ X if issparse(X) else w[:, None] * X
    gram = X.T @ weighted
    gram = gram.toarray() if issparse(gram) else gram
    return Sums(float(w.sum()), gram, np.asarray(X.T @ R), loss.label_hessian(Y, zero, w), terms.value)


class LossAtZero:
    """A loss of rows that have gone by, known at zero scores only.

    Parameters
    ----------
    sums : Sums
    design : GramDesign
    """

    def __init__(self, sums: Sums, design: Design) -> None:
        self._sums, self._design = sums, design

    def evaluate(self, Y: Any, at: BlockScores, weights: None = None) -> tuple[Terms, BlockResidual]:
        """Terms and residual at zero."""
        return Terms(self._sums.value, 0.0, 0.0), BlockResidual(self._design.weights(self._sums.adjoint))

    def label_hessian(self, Y: Any, at: BlockScores, weights: None = None) -> FloatArray:
        """Sum of the rows' generalised Hessians at zero; of as many rows as the design has, whatever their weights."""
        return self._sums.label_hessian * (len(at) / self._sums.n_samples)


def block_projected_gram(block: Block, V: FloatArray) -> tuple[FloatArray]:
    """(XV)'(XV) of one block, the ones of the intercept included, in a tuple."""
    total = np.zeros((V.shape[1], V.shape[1]))
    for X, _ in slices(block.X, block.Y):
        Z = scores(X, V)
        total += Z.T @ Z
    return (total,)


class LabelCounts(NamedTuple):
    """What losses that depend on all labels have to know of them, rows counted by their weights.

    Attributes
    ----------
    n_samples : float
    relevant, irrelevant : arrays (n_labels,)
        How often each label is so.
    products : array (n_labels, n_labels)
        Y'Y of labels in {-1, +1}.
    """

    n_samples: float
    relevant: FloatArray
    irrelevant: FloatArray
    products: FloatArray


def label_counts(Y: Array, weights: FloatArray | None = None) -> LabelCounts:
    """The counts of labels in {-1, +1}.

    Examples
    --------
    >>> label_counts(np.array([[1, -1], [1, 1]])).relevant
    array([2., 1.])
    """
    w, labels = row_weights(weights, len(Y)), Y.astype(np.float64)
    return LabelCounts(float(w.sum()), w @ (Y > 0), w @ (Y < 0), labels.T @ (w[:, None] * labels))


def block_label_counts(block: Block) -> LabelCounts:
    """The counts of one block."""
    return label_counts(signed(block.Y))
