r"""A loss summed over rows that are elsewhere, or gone by: one pass gives all that a solver asks for.

Scores are linear in the weights, residuals enter a gradient through the design alone; so whatever a solver does with tall
matrices can be done with their small images, and nothing with as many rows as the data is ever kept:

.. math:: ZW + (ZD)t = Z(W + Dt), \quad (ZU)V' = Z(UV'), \quad Z'(RV) = (Z'R)V, \quad R'(ZU) = (Z'R)'U.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from rbrl._common.typing import Array, FloatArray
from rbrl.losses import Loss, Terms
from rbrl.losses.hinges import LineValue, row_weights
from rbrl.out_of_core.sources import Block
from rbrl.problem.design import Design, add_adjoint, extended_scores, scores, signed, slices

if TYPE_CHECKING:
    from rbrl.out_of_core.design import BlockDesign


class BlockScores:
    """Z @ weights, not computed.

    Parameters
    ----------
    weights : array (n_columns, n_labels)
    design : Design
    """

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
    def T(self) -> "_Transposed":
        """Transposed, for products with other scores."""
        # With Z'Z as far as the design knows it: its diagonal.
        return _Transposed(self.weights, self._design.gram_diagonal[:, None])


class BlockResidual:
    """R, of which only Z'R is known.

    Parameters
    ----------
    adjoint : array (n_columns, n_labels)
        Z'R.
    """

    def __init__(self, adjoint: FloatArray) -> None:
        self.adjoint = adjoint

    def __matmul__(self, matrix: FloatArray) -> "BlockResidual":
        return BlockResidual(self.adjoint @ matrix)

    @property
    def T(self) -> "_Transposed":
        """Transposed, for products with scores."""
        return _Transposed(self.adjoint)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        """<R, ZW> = <Z'R, W>."""
        if function is not np.vdot:
            return NotImplemented
        residual, scores = arguments
        return np.vdot(residual.adjoint, scores.weights)


class _Transposed(NamedTuple):
    """A', of which only Z'A is known: `image`, its rows times `factors`."""

    image: FloatArray
    factors: FloatArray | float = 1.0

    def __matmul__(self, scores: BlockScores) -> FloatArray:
        return self.image.T @ (self.factors * scores.weights)


# Evaluations that are remembered, beside that of zero weights: a solver comes back to where it was.
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
        self._ray: tuple[Any, ...] | None = None

    def evaluate(self, Y: Any, at: BlockScores, weights: None = None) -> tuple[Terms, BlockResidual]:
        """Terms and residual: one pass, none if it was made before.

        Parameters
        ----------
        Y, weights
            Of the protocol of losses; labels are with their rows.
        at : BlockScores

        Returns
        -------
        terms : Terms
        residual : BlockResidual
        """
        found = self._at(at.weights)
        return found.terms, BlockResidual(found.adjoint)

    def label_hessian(self, Y: Any, at: BlockScores, weights: None = None) -> FloatArray:
        """Sum of the rows' generalised Hessians, of the same pass.

        Parameters
        ----------
        Y, weights
            Of the protocol of losses; labels are with their rows.
        at : BlockScores

        Returns
        -------
        array (n_labels, n_labels)
        """
        return self._at(at.weights).label_hessian

    def remembered(self, coefficients: FloatArray) -> tuple[Evaluated, list[Evaluated]]:
        """What is known at these coefficients, which costs a pass only where a solver did not end there; and all else that
        is known.

        Parameters
        ----------
        coefficients : array (n_features, n_labels)

        Returns
        -------
        here : Evaluated
        known : list of Evaluated
        """
        here = [point for point in self._known if np.array_equal(point.coefficients, coefficients)]
        return (here or [self._pass(self.design.weights(coefficients), coefficients)])[0], self._known

    def extended(self, coefficients: FloatArray) -> float:
        """The value at these coefficients, by scores in extended precision: one pass.

        Parameters
        ----------
        coefficients : array (n_features, n_labels)

        Returns
        -------
        float
        """
        return float(self.design.blocks.total(_extended_value, self.loss, coefficients)[0])

    def estimate(self, at: BlockScores) -> float:
        """The loss as the sample has it: no pass.

        Parameters
        ----------
        at : BlockScores

        Returns
        -------
        float
        """
        _, Y, weights = self.design.sample
        return self.loss.value(Y, self._sample_scores(at), weights)

    def line(self, Y: Any, at: BlockScores, along: BlockScores, t: FloatArray, weights: None = None) -> LineValue:
        """The loss at ``at + along * t`` as the sample has it, corrected at t = 0: no pass.

        Parameters
        ----------
        Y, weights
            Of the protocol of losses; labels are with their rows.
        at, along : BlockScores
        t : array (n_labels,)

        Returns
        -------
        LineValue
        """
        _, labels, row_weights = self.design.sample
        if self._ray is None or self._ray[0] is not at or self._ray[1] is not along:
            F, D, start = self._sample_scores(at), self._sample_scores(along), self._at(at.weights)
            sampled = self.loss.line(labels, F, D, np.zeros(F.shape[1]), row_weights)
            slopes = np.sum(start.adjoint * along.weights, axis=0) - sampled.slopes
            self._ray = at, along, F, D, start.terms.value - sampled.value, slopes
        *_, F, D, value, slopes = self._ray
        here = self.loss.line(labels, F, D, t, row_weights)
        return LineValue(value + here.value, slopes + here.slopes, here.curvatures, here.joint_curvature)

    def exact_line(self, Y: Any, at: BlockScores, along: BlockScores, t: FloatArray, weights: None = None) -> LineValue:
        """The loss at ``at + along * t``, with curvatures by differences from t = 0: one pass.

        Parameters
        ----------
        Y, weights
            Of the protocol of losses; labels are with their rows.
        at, along : BlockScores
        t : array (n_labels,)

        Returns
        -------
        LineValue
        """
        start, here = self._at(at.weights), self._at((at + along * t).weights)
        before, after = (np.sum(point.adjoint * along.weights, axis=0) for point in (start, here))
        curvatures = np.divide(after - before, t, out=np.full(len(t), np.inf), where=t > 0)
        return LineValue(here.terms.value, after, curvatures, float((after - before).sum() / max(t.max(), 1e-300)))

    def _sample_scores(self, at: BlockScores) -> FloatArray:
        return scores(self.design.sample[0], self.design.coefficients(at.weights))

    def _at(self, W: FloatArray) -> Evaluated:
        for known in self._known:
            if np.array_equal(known.weights, W):
                return known
        points = [self._pass(W, self.design.coefficients(W)), *self._known]
        moved, zero = ([point for point in points if point.weights.any() == moved] for moved in (True, False))
        self._known = [*moved[:REMEMBERED], *zero]
        return points[0]

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


def block_projected_gram(block: Block, V: FloatArray) -> tuple[FloatArray]:
    """(XV)'(XV) of one block, the ones of the intercept included, in a tuple.

    Parameters
    ----------
    block : Block
    V : array (n_features, n_directions)

    Returns
    -------
    tuple of an array (n_directions, n_directions)
    """
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

    Parameters
    ----------
    Y : array (n_rows, n_labels)
        Labels in {-1, +1}.
    weights : array (n_rows,) or None

    Returns
    -------
    LabelCounts

    Examples
    --------
    >>> label_counts(np.array([[1, -1], [1, 1]])).relevant
    array([2., 1.])
    """
    w, labels = row_weights(weights, len(Y)), Y.astype(np.float64)
    return LabelCounts(float(w.sum()), w @ (Y > 0), w @ (Y < 0), labels.T @ (w[:, None] * labels))


def block_label_counts(block: Block) -> LabelCounts:
    """The counts of one block.

    Parameters
    ----------
    block : Block

    Returns
    -------
    LabelCounts
    """
    return label_counts(signed(block.Y))
