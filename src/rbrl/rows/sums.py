r"""A loss summed over rows that are elsewhere, or gone by: one pass gives all that a solver asks for.

Scores are linear in the weights, residuals enter a gradient through the design alone; so whatever a solver does with tall
matrices can be done with their small images, and nothing with as many rows as the data is ever kept:

.. math:: ZW + (ZD)t = Z(W + Dt), \quad (ZU)V' = Z(UV'), \quad Z'(RV) = (Z'R)V, \quad R'(ZU) = (Z'R)'U.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from rbrl.losses import LineValue, Loss, Terms
from rbrl.losses.base import row_weights
from rbrl.problem.design import add_adjoint, extended_scores, scores, signed, slices


class BlockScores:
    """Z @ weights, not computed."""

    def __init__(self, weights, design):
        self.weights, self._design = weights, design

    def __len__(self):
        return self._design.shape[0]

    @property
    def shape(self):
        return len(self), self.weights.shape[1]

    def __add__(self, other):
        return BlockScores(self.weights + other.weights, self._design)

    def __sub__(self, other):
        return BlockScores(self.weights - other.weights, self._design)

    def __mul__(self, factors):
        return BlockScores(self.weights * factors, self._design)

    __rmul__ = __mul__

    def __matmul__(self, matrix):
        return BlockScores(self.weights @ matrix, self._design)

    @property
    def T(self):
        return _TransposedScores(self.weights, self._design)


class _TransposedScores:
    def __init__(self, weights, design):
        self.weights, self._design = weights, design

    def __matmul__(self, other):
        """Scores times scores, with Z'Z as far as the design knows it: its diagonal."""
        return self.weights.T @ (self._design.gram_diagonal[:, None] * other.weights)


class BlockResidual:
    """R, of which only Z'R is known."""

    def __init__(self, adjoint):
        self.adjoint = adjoint

    def __matmul__(self, matrix):
        return BlockResidual(self.adjoint @ matrix)

    @property
    def T(self):
        return _TransposedResidual(self.adjoint)

    def __array_function__(self, function, types, arguments, options):
        """<R, ZW> = <Z'R, W>."""
        if function is not np.vdot:
            return NotImplemented
        residual, scores = arguments
        return np.vdot(residual.adjoint, scores.weights)


class _TransposedResidual:
    def __init__(self, adjoint):
        self.adjoint = adjoint

    def __matmul__(self, scores):
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

    weights: np.ndarray
    terms: Terms
    adjoint: np.ndarray
    label_hessian: np.ndarray
    coefficients: np.ndarray
    gradient: np.ndarray
    gradient_squares: np.ndarray
    rounding_squares: np.ndarray
    score_squares: np.ndarray


class BlockLoss:
    """Has the methods of a :class:`Loss`, with :class:`BlockScores` for scores.

    Lines are estimated on the survey's sample, with value and slopes exact at their start: rows that stand for others tell
    how the loss curves, not where it is.

    Parameters
    ----------
    loss : Loss
    design : BlockDesign
    """

    def __init__(self, loss: Loss, design):
        self.loss, self.design = loss, design
        self._known: list[Evaluated] = []
        self._zero: Evaluated | None = None
        self._ray = None

    def evaluate(self, Y, at, weights=None):
        """Terms and residual: one pass, none if it was made before."""
        found = self._at(at.weights)
        return found.terms, BlockResidual(found.adjoint)

    def label_hessian(self, Y, at, weights=None):
        """Sum of the rows' generalised Hessians, of the same pass."""
        return self._at(at.weights).label_hessian

    def remembered(self, coefficients):
        """What is known at these coefficients, which costs a pass only where a solver did not end there; and all else that
        is known."""
        known = [*self._known, *([] if self._zero is None else [self._zero])]
        here = [point for point in known if np.array_equal(point.coefficients, coefficients)]
        return (here or [self._pass(self.design.weights(coefficients), coefficients)])[0], known

    def extended(self, coefficients):
        """The value at these coefficients, by scores in extended precision: one pass."""
        return self.design.blocks.total(extended_value, self.loss, coefficients)[0]

    def estimate(self, at):
        """The loss as the sample has it: no pass."""
        _, Y, weights = self.design.sample
        return self.loss.value(Y, self._sample_scores(at), weights)

    def line(self, Y, at, along, t, weights=None):
        """The loss at ``at + along * t`` as the sample has it, corrected at t = 0: no pass."""
        if self._ray is None or self._ray[0] is not at or self._ray[1] is not along:
            self._ray = (at, along, *self._start_line(at, along))
        *_, F, D, value, slopes = self._ray
        _, labels, row_weights = self.design.sample
        here = self.loss.line(labels, F, D, t, row_weights)
        return LineValue(value + here.value, slopes + here.slopes, here.curvatures, here.joint_curvature)

    def exact_line(self, Y, at, along, t, weights=None):
        """The loss at ``at + along * t``, with curvatures by differences from t = 0: one pass."""
        start, here = self._at(at.weights), self._at((at + along * t).weights)
        before, after = (np.sum(point.adjoint * along.weights, axis=0) for point in (start, here))
        curvatures = np.divide(after - before, t, out=np.full(len(t), np.inf), where=t > 0)
        return LineValue(here.terms.value, after, curvatures, float((after - before).sum() / max(t.max(), 1e-300)))

    def _start_line(self, at, along):
        F, D = self._sample_scores(at), self._sample_scores(along)
        _, labels, row_weights = self.design.sample
        sampled, exact = self.loss.line(labels, F, D, np.zeros(F.shape[1]), row_weights), self._at(at.weights)
        slopes = np.sum(exact.adjoint * along.weights, axis=0)
        return F, D, exact.terms.value - sampled.value, slopes - sampled.slopes

    def _sample_scores(self, at):
        return scores(self.design.sample[0], self.design.coefficients(at.weights))

    def _at(self, W):
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

    def _pass(self, W, coefficients):
        design = self.design
        design.columns += W.shape[1] * (2 if W.any() else 1)
        value, linear, quadratic, reach, gradient, hessian, sums = design.blocks.total(
            evaluate, self.loss, coefficients
        )
        terms = Terms(value, linear, quadratic, min(reach))
        return Evaluated(W, terms, design.weights(gradient), hessian, coefficients, gradient, *sums)


def extended_value(block, loss, coefficients):
    """A loss on one block, by scores in extended precision, in a tuple."""
    return (sum(loss.value(Y, extended_scores(X, coefficients)) for X, Y in slices(block.X, block.Y)),)


def evaluate(block, loss, coefficients):
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
    gram: np.ndarray
    adjoint: np.ndarray
    label_hessian: np.ndarray
    value: float


def at_zero(loss, X, Y, weights=None):
    """The sums of some rows: weights, X'X, X'R, Hessian and value, for the loss and its gradient R at zero scores."""
    zero, w = np.zeros(Y.shape), row_weights(weights, len(Y))
    terms, R = loss.evaluate(Y, zero, w)
    weighted = sparse.diags_array(w) @ X if sparse.issparse(X) else w[:, None] * X
    gram = X.T @ weighted
    gram = gram.toarray() if sparse.issparse(gram) else gram
    return Sums(float(w.sum()), gram, np.asarray(X.T @ R), loss.label_hessian(Y, zero, w), terms.value)


class LossAtZero:
    """A loss of rows that have gone by, known at zero scores only.

    Parameters
    ----------
    sums : Sums
    design : GramDesign
    """

    def __init__(self, sums, design):
        self._sums, self._design = sums, design

    def evaluate(self, Y, at, weights=None):
        """Terms and residual at zero."""
        return Terms(self._sums.value, 0.0, 0.0), BlockResidual(self._design.weights(self._sums.adjoint))

    def label_hessian(self, Y, at, weights=None):
        """Sum of the rows' generalised Hessians at zero; of as many rows as the design has, whatever their weights."""
        return self._sums.label_hessian * (len(at) / self._sums.n_samples)


def block_projected_gram(block, V):
    """(XV)'(XV) of one block, the ones of the intercept included, in a tuple."""
    total = np.zeros((V.shape[1], V.shape[1]))
    for X, _ in slices(block.X, block.Y):
        Z = scores(X, V)
        total += Z.T @ Z
    return (total,)


def label_products(block):
    """Number of rows, how often each label is relevant, and Y'Y of labels in {-1, +1}."""
    Y = signed(block.Y).astype(np.float64)
    return len(Y), np.count_nonzero(Y > 0, axis=0).astype(np.float64), Y.T @ Y
