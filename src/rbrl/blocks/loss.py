"""A loss summed over blocks: every evaluation is one pass, which gives all that a solver asks for at these weights."""

from typing import NamedTuple

import numpy as np

from rbrl.blocks.products import add_adjoint, extended_scores, scores, slices
from rbrl.blocks.scores import BlockResidual
from rbrl.losses import LineValue, Loss, Terms

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
    how the loss bends, not where it is.

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
        return LineValue(value + here.value, slopes + here.slopes, here.bends, here.joint_bend)

    def exact_line(self, Y, at, along, t, weights=None):
        """The loss at ``at + along * t``, with bends by differences from t = 0: one pass."""
        start, here = self._at(at.weights), self._at((at + along * t).weights)
        before, after = (np.sum(point.adjoint * along.weights, axis=0) for point in (start, here))
        bends = np.divide(after - before, t, out=np.full(len(t), np.inf), where=t > 0)
        return LineValue(here.terms.value, after, bends, float((after - before).sum() / max(t.max(), 1e-300)))

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
