"""Sums of losses."""

from dataclasses import dataclass

import numpy as np

from rbrl.losses.base import LineValue, Loss, Terms


@dataclass(frozen=True, init=False)
class WeightedSum(Loss):
    """A sum of (weight, loss) terms; terms of weight 0 are left out.

    Parameters
    ----------
    *terms : pairs (float, Loss)
    """

    terms: tuple

    def __init__(self, *terms):
        object.__setattr__(self, "terms", tuple((float(c), loss) for c, loss in terms if c != 0))

    def accumulate(self, Y, F, weights, scale, R):
        parts = [loss.accumulate(Y, F, weights, scale * c, R) for c, loss in self.terms]
        value, linear, quadratic = (sum(part[k] for part in parts) for k in range(3))
        return Terms(value, linear, quadratic, min((part.reach for part in parts), default=np.inf))

    def _total(self, method, shape, *args):
        total = np.zeros(shape)
        for c, loss in self.terms:
            total += c * getattr(loss, method)(*args)
        return total

    def hessian_diagonal(self, Y, F, weights=None):
        return self._total("hessian_diagonal", F.shape, Y, F, weights)

    def hessian_product(self, Y, F, D, weights=None):
        return self._total("hessian_product", F.shape, Y, F, D, weights)

    def label_hessian(self, Y, F, weights=None):
        return self._total("label_hessian", (F.shape[1], F.shape[1]), Y, F, weights)

    def curvature(self, Y, weights=None):
        return self._total("curvature", len(Y), Y, weights)

    def line(self, Y, F, D, t, weights=None):
        parts = [(c, loss.line(Y, F, D, t, weights)) for c, loss in self.terms]
        if not parts:
            return LineValue(0.0, np.zeros(F.shape[1]), np.zeros(F.shape[1]), 0.0)
        return LineValue(*(sum(c * part[k] for c, part in parts) for k in range(4)))
