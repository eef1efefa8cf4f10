"""The nuclear norm made smooth: sum of sqrt(sigma^2 + eps^2), through the small Gram matrix W'W."""

import numpy as np

from rbrl._linalg import small_eigh


class SmoothedNuclear:
    r"""Smoothed nuclear norm at given weights.

    .. math:: \lambda \sum_j \sqrt{\sigma_j^2 + \varepsilon^2}, \qquad
              \text{gradient } W H, \quad H = \lambda V \operatorname{diag}((\sigma^2 + \varepsilon^2)^{-1/2}) V'

    Attributes
    ----------
    exact, value : float
        The norm and its smoothed form, times the weight.
    sigma : array
        Singular values, ascending.
    hessian : array (n_labels, n_labels)
        The reweighted ridge H that has the same gradient.
    """

    def __init__(self, gram, weight, width=None):
        self.gram, self.weight = gram, weight
        squares, self.V = small_eigh(gram)
        squares = np.maximum(squares, 0.0)
        self.sigma = np.sqrt(squares)
        self.exact = weight * float(self.sigma.sum())
        self._squares = squares
        if width is not None:
            self.smooth(width)

    def smooth(self, width):
        """Set eps; it is never below what squaring leaves of the singular values."""
        self.width = max(width, 1e-13 * self.sigma[-1] + 1e-150)
        root = np.sqrt(self._squares + self.width**2)
        self.value = self.weight * float(root.sum())
        self.hessian = (self.V * (self.weight / root)) @ self.V.T
