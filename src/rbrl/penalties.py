"""Penalties on the weights: value and gradient, or value and prox. `ALL_PENALTIES` holds one example of each."""

from dataclasses import dataclass

import numpy as np

from rbrl._linalg import singular_values, threshold_singular_values


@dataclass(frozen=True)
class Ridge:
    r"""Weighted squared Frobenius norm.

    .. math:: \tfrac{\lambda}{2} \sum_k r_k \|w_k\|^2, \qquad w_k \text{ the rows of } W

    Parameters
    ----------
    weight : float
        :math:`\lambda`.
    row_weights : float or array (n_rows, 1), default=1.0
        :math:`r`: ones in feature coordinates, the kernel's eigenvalues in its spectral coordinates.
    """

    weight: float
    row_weights: float | np.ndarray = 1.0

    def value(self, W):
        return 0.5 * self.weight * float(np.sum(self.row_weights * W**2))

    def gradient(self, W):
        return self.weight * self.row_weights * W

    def prox(self, W, step):
        """Minimiser of step * value(V) + ||V - W||^2 / 2."""
        return W / (1.0 + step * self.weight * self.row_weights)

    @property
    def curvature(self):
        """Largest second derivative."""
        return self.weight * float(np.max(self.row_weights, initial=0.0))


@dataclass(frozen=True)
class NuclearNorm:
    r"""Sum of singular values, :math:`\lambda \|W\|_*`.

    Parameters
    ----------
    weight : float
        :math:`\lambda`.
    """

    weight: float

    def value(self, W):
        return self.weight * float(singular_values(W).sum()) if self.weight else 0.0

    def prox(self, W, step):
        """Minimiser of step * value(V) + ||V - W||^2 / 2: the singular values shrink by step * weight."""
        return threshold_singular_values(W, step * self.weight)


ALL_PENALTIES = (Ridge(0.7), Ridge(0.7, np.array([[0.0], [0.5], [1.0], [3.0], [9.0]])), NuclearNorm(0.7))

__all__ = ["ALL_PENALTIES", "NuclearNorm", "Ridge"]
