"""A point of the quasi-Newton method, and where it starts."""

import numpy as np

from rbrl.solvers.preconditioner import MeanModel
from rbrl.solvers.smoothing import SmoothedNuclear

# Below this share of the largest, a singular value is on its way to zero.
FADING = 1e-3


class Iterate:
    """Weights with everything known there: scores, loss, penalties, gradient.

    Attributes
    ----------
    value : float
        The objective; `smooth_value` has the smoothed nuclear norm in it.
    gradient : array
        Gradient of `smooth_value`; `smooth_gradient` is that of loss and ridge alone.
    evaluations : float
        What the objective had cost when `value` was known.
    """

    def __init__(self, objective, W, scores, tol):
        self.W, self.scores = W, scores
        self.loss, residual = objective.loss.evaluate(objective.Y, scores, objective.sample_weight)
        self.evaluations = objective.evaluations
        self.ridge = objective.ridge.value(W)
        self.smooth_value = self.value = self.loss.value + self.ridge
        self.adjoint = objective.design.adjoint(residual)
        self.gradient = self.smooth_gradient = self.adjoint + objective.ridge.gradient(W)
        self.nuclear = None
        if objective.nuclear.weight:
            self._add_nuclear(objective.nuclear.weight, tol)

    def _add_nuclear(self, weight, tol):
        self.nuclear = SmoothedNuclear.at(self.W, weight)
        self.value += self.nuclear.exact
        self.nuclear.smooth(0.1 * tol * self.value / (weight * len(self.nuclear.sigma)))
        self.smooth_value += self.nuclear.value
        self.gradient = self.smooth_gradient + self.nuclear.reweigh(self.W)

    def rank_fades(self):
        """Whether some singular value is on its way to zero."""
        return self.nuclear is not None and self.nuclear.sigma[0] < FADING * self.nuclear.sigma[-1]


def model_start(objective, rounds=20):
    """Minimiser of the objective with its loss replaced by the mean quadratic model at zero scores.

    The nuclear norm is met by reweighting, which needs no product: the whole start costs half an evaluation. Its rank is
    that of the optimum more often than not.
    """
    zero = objective.zero_scores()
    _, residual = objective.loss.evaluate(objective.Y, zero, objective.sample_weight)
    model = MeanModel(objective, zero)
    pull = -objective.design.adjoint(residual)
    W = model.inverse()(pull)
    for _ in range(rounds if objective.nuclear.weight else 0):
        nuclear = _slightly_smoothed(objective, W)
        if nuclear is None:
            break
        W = model.inverse(nuclear)(pull)
    return W


def best_scale(objective, W, scores, halvings=12):
    """W and its scores, halved until the objective stops falling: the model overshoots where columns are correlated."""
    value = objective.value_at(W, scores)
    for _ in range(halvings):
        smaller = objective.value_at(0.5 * W, 0.5 * scores)
        if smaller >= value:
            break
        W, scores, value = 0.5 * W, 0.5 * scores, smaller
    return W, scores


def label_coupling(objective, W):
    """How much labels depend on one another, off-diagonal against diagonal, in the mean Hessian at zero scores.

    The larger of two figures: for the loss alone, and for a typical column of the design with the penalties at W.
    """
    if objective.shape[0] == 0:
        return 0.0
    H = MeanModel(objective, objective.zero_scores()).hessian
    typical = np.median(objective.design.gram_diagonal) * H
    typical = typical + objective.ridge.weight * np.median(objective.ridge.row_weights) * np.eye(len(H))
    nuclear = _slightly_smoothed(objective, W) if objective.nuclear.weight else None
    if nuclear is not None and not nuclear.left:
        typical = typical + nuclear.hessian
    return max(_off_diagonal(H), _off_diagonal(typical))


def _slightly_smoothed(objective, W):
    """The nuclear norm at W, smooth at 1e-4 of its largest singular value; None where W is zero."""
    nuclear = SmoothedNuclear.at(W, objective.nuclear.weight)
    if nuclear.sigma[-1] == 0:
        return None
    nuclear.smooth(1e-4 * nuclear.sigma[-1])
    return nuclear


def _off_diagonal(M):
    trace = float(np.trace(M))
    return (float(np.abs(M).sum()) - trace) / trace if trace > 0 else 0.0
