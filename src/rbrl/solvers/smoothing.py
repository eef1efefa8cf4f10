"""The nuclear norm made smooth: sum of sqrt(sigma^2 + eps^2), through the smaller of the Gram matrices W'W and WW'."""

import numpy as np

from rbrl._linalg import is_wide, small_eigh, small_gram


class SmoothedNuclear:
    r"""Smoothed nuclear norm at given weights.

    .. math:: \lambda \sum_j \sqrt{\sigma_j^2 + \varepsilon^2}, \qquad
              \text{gradient } W H, \quad H = \lambda V \operatorname{diag}((\sigma^2 + \varepsilon^2)^{-1/2}) V'

    with V from W'W. Where labels outnumber the columns of the design, the same gradient is H W, with V from WW': then H is
    the better model of how the norm bends, because weights of full row rank may turn to any labels.

    Attributes
    ----------
    exact, value : float
        The norm and its smoothed form, times the weight.
    sigma : array
        Singular values, ascending.
    hessian : array
        The reweighted ridge H that has the same gradient, as wide as the smaller Gram matrix.
    left : bool
        Whether H stands on the left of the weights.
    """

    def __init__(self, gram, weight, width=None, left=False):
        self.gram, self.weight, self.left = gram, weight, left
        squares, self.V = small_eigh(gram)
        squares = np.maximum(squares, 0.0)
        self.sigma = np.sqrt(squares)
        self.exact = weight * float(self.sigma.sum())
        self._squares = squares
        if width is not None:
            self.smooth(width)

    @classmethod
    def at(cls, W, weight, width=None):
        """The norm at W, through its smaller Gram matrix."""
        return cls(small_gram(W), weight, width, left=is_wide(W))

    def smooth(self, width):
        """Set eps; it is never below what squaring leaves of the singular values."""
        self.width = max(width, 1e-13 * self.sigma[-1] + 1e-150)
        root = np.sqrt(self._squares + self.width**2)
        self.value = self.weight * float(root.sum())
        self.hessian = (self.V * (self.weight / root)) @ self.V.T

    def reweigh(self, W):
        """W H, or H W if H stands on the left: the gradient at W."""
        return self.hessian @ W if self.left else W @ self.hessian

    def right_vectors(self, W, floor):
        """Singular values above `floor` of the largest, and their right singular vectors: those of W, the point itself."""
        keep = self.sigma > floor * self.sigma[-1]
        sigma, V = self.sigma[keep], self.V[:, keep]
        return sigma, (W.T @ V) / sigma if self.left else V
