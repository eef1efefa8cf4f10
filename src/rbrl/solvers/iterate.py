"""Points of a minimisation: scores or weights, with the objective there and its derivatives."""

from typing import Any

import numpy as np

from rbrl._common.linalg import small_gram
from rbrl._common.typing import FloatArray
from rbrl.problem.objective import Objective, SmoothedNuclear


class SmoothedPoint:
    """Value of the objective at given scores, with the nuclear norm smoothed.

    Parameters
    ----------
    objective : Objective
    scores : array (n_samples, n_labels)
    ridge : float
        Value of the ridge.
    nuclear : SmoothedNuclear or None
        Nuclear norm of the weights, which is smoothed here.
    tol : float
        Tolerance of the solver. Smoothing moves the value by a tenth of it at most.
    out : array (n_samples, n_labels), default=None
        Array that the residual is written to. The residual of rows in blocks needs none.

    Attributes
    ----------
    value, smooth_value : float
        The objective, and the objective with the smoothed nuclear norm.
    loss : Terms
    residual : array (n_samples, n_labels)
        Gradient of the loss in the scores.
    evaluations : float
        Number of evaluations of the objective at which `value` was known.
    """

    def __init__(
        self, objective: Objective, scores: Any, ridge: float, nuclear: SmoothedNuclear | None = None,
        tol: float = 0.0, out: Any = None,
    ) -> None:  # fmt: skip
        self.scores = scores
        self.ridge = ridge
        self.nuclear: Any = nuclear
        data = objective.Y, scores, objective.sample_weight
        if isinstance(out, np.ndarray):
            out.fill(0.0)
            self.loss = objective.loss.accumulate(*data, 1.0, out)
            self.residual = out
        else:
            self.loss, self.residual = objective.loss.evaluate(*data)
        self.evaluations = objective.evaluations
        self.value = self.loss.value + ridge
        self.smooth_value = self.value
        if nuclear is not None:
            self.value += nuclear.exact
            nuclear.smooth(0.1 * tol * self.value / (nuclear.weight * len(nuclear.sigma)))
            self.smooth_value += nuclear.value


class Iterate(SmoothedPoint):
    """Weights with the value and the gradient of the objective there.

    Parameters
    ----------
    objective : Objective
    W : array (n_columns, n_labels)
    scores : array (n_samples, n_labels)
        Scores of W.
    tol : float
        Tolerance that the nuclear norm is smoothed for.
    out : array (n_samples, n_labels), default=None
        Array that the residual is written to.

    Attributes
    ----------
    adjoint : array (n_columns, n_labels)
        Gradient of the loss with respect to W.
    smooth_gradient : array (n_columns, n_labels)
        Gradient of loss and ridge.
    gradient : array (n_columns, n_labels)
        Gradient of `smooth_value`.
    """

    def __init__(self, objective: Objective, W: FloatArray, scores: Any, tol: float, out: Any = None) -> None:
        weight = objective.nuclear.weight
        nuclear = SmoothedNuclear(*small_gram(W), weight) if weight else None
        super().__init__(objective, scores, objective.ridge.value(W), nuclear, tol, out)
        self.W = W
        self.adjoint = objective.design.adjoint(self.residual)
        self.smooth_gradient = self.adjoint + objective.ridge.gradient(W)
        self.gradient = self.smooth_gradient
        if nuclear is not None:
            self.gradient = self.smooth_gradient + nuclear.reweigh(W)

    def rank_share(self, negligible: float) -> float:
        """Return the share of the singular values that are above `negligible` times the largest one.

        It is 1 without a nuclear norm.
        """
        if self.nuclear is None:
            return 1.0
        sigma = self.nuclear.sigma
        return float(np.mean(sigma >= negligible * sigma[-1]))
