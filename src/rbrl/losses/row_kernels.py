"""Losses whose row kernels live in :mod:`rbrl._loops`."""

from abc import abstractmethod

import numpy as np

from rbrl._loops import rows
from rbrl.losses.base import LineValue, Loss, Terms, row_weights


class RowKernelLoss(Loss):
    """A loss made of squares of slacks: its dual terms are the sum of margin x slack, and its own value."""

    kernel: str

    @abstractmethod
    def _parameter(self, Y):
        """The argument of the kernels that is the loss's own."""

    def _call(self, suffix, Y, *arrays, weights, scale, out):
        function = getattr(rows, self.kernel + suffix)
        return function(Y, *arrays, row_weights(weights, len(Y)), scale, self._parameter(Y), *out)

    def accumulate(self, Y, F, weights, scale, R):
        value, linear = self._call("", Y, F, weights=weights, scale=scale, out=(R,))
        return Terms(value, linear, value)

    def hessian_diagonal(self, Y, F, weights=None):
        H = np.zeros_like(F)
        self._call("_diagonal", Y, F, weights=weights, scale=1.0, out=(H,))
        return H

    def hessian_product(self, Y, F, D, weights=None):
        P = np.zeros_like(F)
        self._call("_product", Y, F, D, weights=weights, scale=1.0, out=(P,))
        return P

    def label_hessian(self, Y, F, weights=None):
        M = np.zeros((F.shape[1], F.shape[1]))
        self._call("_labels", Y, F, weights=weights, scale=1.0, out=(M,))
        return M

    def line(self, Y, F, D, t, weights=None):
        d1, d2 = np.zeros(F.shape[1]), np.zeros(F.shape[1])
        value, joint = self._call("_line", Y, F, D, t, weights=weights, scale=1.0, out=(d1, d2))
        return LineValue(value, d1, d2, joint)
