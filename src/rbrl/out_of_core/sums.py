r"""A loss summed over rows that are elsewhere, or gone by: one pass gives all that a solver asks for.

Scores are linear in the weights, residuals enter a gradient through the design alone; so whatever a solver does with tall
matrices can be done with their small images, and nothing with as many rows as the data is ever kept:

.. math:: ZW + (ZD)t = Z(W + Dt), \quad (ZU)V' = Z(UV'), \quad Z'(RV) = (Z'R)V, \quad R'(ZU) = (Z'R)'U.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from rbrl._common.typing import Array, FloatArray
from rbrl.losses import Loss, Terms
from rbrl.losses.base import LineValue, mean_weights, row_weights
from rbrl.out_of_core.sources import Block
from rbrl.problem.design import Design, add_adjoint, extended_scores, scores

if TYPE_CHECKING:
    from rbrl.out_of_core.design import BlockDesign


class BlockScores:
    """Z @ weights, not computed.

    Parameters
    ----------
    weights : array (n_columns, n_labels)
    design : Design
    sampled : array (n_rows, n_labels), default=None
        Those of the rows that lines are estimated on, once these were asked for.
    """

    def __init__(self, weights: FloatArray, design: Design, sampled: FloatArray | None = None) -> None:
        self.weights, self._design, self.sampled = weights, design, sampled

    def __len__(self) -> int:
        return int(self._design.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """As of the scores themselves."""
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
# Scores that lines are estimated on, of all labels together: with many labels fewer rows than the survey's sample has.
LINE_SCORES = 2**20


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
    moved : bool
        Whether any weight is other than 0.
    sums : array (3, n_labels)
        Sums of squares of the loss gradient in the scores, of `Loss.rounding_reach`, and of the scores.
    """

    weights: FloatArray
    terms: Terms
    adjoint: FloatArray
    label_hessian: FloatArray
    coefficients: FloatArray
    gradient: FloatArray
    moved: bool
    sums: FloatArray


class BlockLoss:
    """Has the methods of a :class:`Loss`, with :class:`BlockScores` for scores.

    Lines are estimated on the survey's sample, with value and slopes exact at their start: rows that stand for others tell
    the curvature of the loss, not its value.

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
        self.loss, self.design = loss, design
        self._known: list[Evaluated] = []
        self._ray: tuple[Any, ...] | None = None
        X, Y, _, weights = design.sample
        rows = slice(None, None, max(1, -(-Y.size // LINE_SCORES)))
        self._sample = X[rows], Y[rows], weights[rows] * (weights.sum() / weights[rows].sum())

    def evaluate(self, Y: Any, at: BlockScores, weights: None = None) -> tuple[Terms, BlockResidual]:
        """Terms and residual: one pass, none if it was made before.

        Parameters
        ----------
        Y : Any
            Not looked at, as `weights`: both are with their rows.
        at : BlockScores
        weights : None

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
        Y : Any
            Not looked at, as `weights`: both are with their rows.
        at : BlockScores
        weights : None

        Returns
        -------
        array (n_labels, n_labels)
        """
        return self._at(at.weights).label_hessian

    def remembered(self, coefficients: FloatArray, dual: BlockScores) -> tuple[Evaluated, list[Evaluated]]:
        """What is known at these coefficients, which costs a pass only where a solver did not end there; and at the scores
        of the best lower bound, or, where those are forgotten, all that is known.

        Parameters
        ----------
        coefficients : array (n_features, n_labels)
        dual : BlockScores

        Returns
        -------
        here : Evaluated
        known : list of Evaluated
        """
        here = [point for point in self._known if _equal(point.coefficients, coefficients)]
        best = [point for point in self._known if _equal(point.weights, dual.weights)]
        return (here or [self._pass(self.design.weights(coefficients), coefficients)])[0], best or self._known

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
        _, Y, weights = self._sample
        return self.loss.value(Y, self._sample_scores(at), weights)

    def line(self, Y: Any, at: BlockScores, along: BlockScores, t: FloatArray, weights: None = None) -> LineValue:
        """The loss at ``at + along * t`` as the sample has it, corrected at t = 0: no pass.

        Parameters
        ----------
        Y : Any
            Not looked at, as `weights`: both are with their rows.
        at, along : BlockScores
        t : array (n_labels,)
        weights : None

        Returns
        -------
        LineValue
        """
        _, labels, row_weights = self._sample
        if self._ray is None or self._ray[0] is not at or self._ray[1] is not along:
            F, D, start = self._sample_scores(at), self._sample_scores(along), self._at(at.weights)
            sampled = self.loss.line(labels, F, D, np.zeros(F.shape[1]), row_weights)
            slopes = np.einsum("ij,ij->j", start.adjoint, along.weights) - sampled.slopes
            self._ray = at, along, F, D, start.terms.value - sampled.value, slopes
        *_, F, D, value, slopes = self._ray
        here = self.loss.line(labels, F, D, t, row_weights)
        return LineValue(value + here.value, slopes + here.slopes, here.curvatures, here.joint_curvature)

    def exact_line(self, Y: Any, at: BlockScores, along: BlockScores, t: FloatArray, weights: None = None) -> LineValue:
        """The loss at ``at + along * t``, with curvatures by differences from t = 0: one pass.

        Parameters
        ----------
        Y : Any
            Not looked at, as `weights`: both are with their rows.
        at, along : BlockScores
        t : array (n_labels,)
        weights : None

        Returns
        -------
        LineValue
        """
        moved = along.weights * t
        moved += at.weights
        start, here = self._at(at.weights), self._at(moved)
        before, after = (np.einsum("ij,ij->j", point.adjoint, along.weights) for point in (start, here))
        curvatures = np.divide(after - before, t, out=np.full(len(t), np.inf), where=t > 0)
        return LineValue(here.terms.value, after, curvatures, float((after - before).sum() / max(t.max(), 1e-300)))

    def _sample_scores(self, at: BlockScores) -> FloatArray:
        if at.sampled is None:
            at.sampled = scores(self._sample[0], self.design.coefficients(at.weights))
        return at.sampled

    def _at(self, W: FloatArray) -> Evaluated:
        for known in self._known:
            if _equal(known.weights, W):
                return known
        points = [self._pass(W, self.design.coefficients(W)), *self._known]
        moved, zero = ([point for point in points if point.moved == moved] for moved in (True, False))
        self._known = [*moved[:REMEMBERED], *zero]
        return points[0]

    def _pass(self, W: FloatArray, coefficients: FloatArray) -> Evaluated:
        moved = bool(W.any())
        self.design.columns += W.shape[1] * (1 + moved)
        total = self.design.blocks.total(_evaluate, self.loss, coefficients)
        value, linear, quadratic, reach, gradient, hessian, sums = total
        terms, adjoint = Terms(value, linear, quadratic, min(reach)), self.design.pulled(gradient)
        return Evaluated(W, terms, adjoint, hessian, coefficients, gradient, moved, sums)


def _equal(A: FloatArray, B: FloatArray) -> bool:
    """Whether these are the same; those that are not differ in their first row, most of them."""
    return A is B or (np.array_equal(A[:1], B[:1]) and np.array_equal(A, B))


def _extended_value(block: Block, loss: Loss, coefficients: FloatArray) -> tuple[float]:
    """A loss on one block, by scores in extended precision, in a tuple."""
    return (sum(loss.value(Y, extended_scores(X, coefficients), weights) for X, Y, weights in block.slices()),)


def _evaluate(block: Block, loss: Loss, coefficients: FloatArray) -> tuple[Any, ...]:
    """The terms of a loss on one block, its gradient in the coefficients, its label Hessian, and the sums of squares that
    tell how far rounding can reach."""
    l = coefficients.shape[1]
    G, H, sums = np.zeros(coefficients.shape), np.zeros((l, l)), np.zeros((3, l))
    value = linear = quadratic = 0.0
    reach, moved = [np.inf], coefficients.any()
    for X, Y, weights in block.slices():
        F = scores(X, coefficients) if moved else np.zeros(Y.shape)
        terms, R = loss.evaluate(Y, F, weights)
        value, linear, quadratic = value + terms.value, linear + terms.linear, quadratic + terms.quadratic
        reach = [min(reach[0], terms.reach)]
        add_adjoint(X, R, G)
        H += loss.label_hessian(Y, F, weights)
        sums += [np.einsum("ij,ij->j", A, A) for A in (R, loss.rounding_reach(Y, F, weights), F)]
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
    for X, *_ in block.slices():
        Z = scores(X, V)
        total += Z.T @ Z
    return (total,)


class LabelCounts(NamedTuple):
    """What losses that depend on all labels have to know of them, rows and entries counted by their weights.

    Attributes
    ----------
    n_samples : float
    relevant, irrelevant : arrays (n_labels,)
        How often each label is so.
    products : array (n_labels, n_labels)
        Y'Y of labels in {-1, 0, +1}.
    together : array (n_labels, n_labels)
        In how many rows somebody looked at both of two labels: n_samples everywhere, unless entries are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import label_counts
    >>> counts = label_counts(np.array([[1, -1], [1, 1], [-1, -1]]))
    >>> counts.n_samples, counts.relevant.tolist(), counts.products.tolist()
    (3.0, [2.0, 1.0], [[3.0, 1.0], [1.0, 3.0]])
    """

    n_samples: float
    relevant: FloatArray
    irrelevant: FloatArray
    products: FloatArray
    together: FloatArray


def label_counts(Y: Array, weights: FloatArray | None = None) -> LabelCounts:
    """The counts of labels in {-1, 0, +1}, where 0 is an entry that nobody looked at.

    Parameters
    ----------
    Y : array (n_rows, n_labels)
    weights : array (n_rows,) or (n_rows, n_labels), or None
        Two entries of a row count the geometric mean of their weights.

    Returns
    -------
    LabelCounts

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import label_counts
    >>> label_counts(np.array([[1, -1], [1, 1]])).relevant
    array([2., 1.])
    """
    w, labels = row_weights(weights, len(Y)), Y.astype(np.float64)
    n_samples, seen = float(mean_weights(Y, weights).sum()), np.abs(labels)
    if w.ndim == 2:
        relevant, irrelevant = (np.where(side, w, 0.0).sum(axis=0) for side in (Y > 0, Y < 0))
        labels, seen = np.sqrt(w) * labels, np.sqrt(w) * seen
        return LabelCounts(n_samples, relevant, irrelevant, labels.T @ labels, seen.T @ seen)
    together = np.full((Y.shape[1],) * 2, n_samples) if Y.all() else seen.T @ (w[:, None] * seen)
    return LabelCounts(n_samples, w @ (Y > 0), w @ (Y < 0), labels.T @ (w[:, None] * labels), together)


def block_label_counts(block: Block) -> LabelCounts:
    """The counts of one block.

    Parameters
    ----------
    block : Block

    Returns
    -------
    LabelCounts
    """
    return label_counts(*block.labels())
