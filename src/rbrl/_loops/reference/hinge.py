"""The squared hinge of one score at a time."""

import numpy as np


def _slack(Y, F):
    return np.maximum(1.0 - Y * F, 0.0)


def _cost(Y, weights, scale, costs):
    return scale * weights[:, None] * np.where(Y > 0, costs, 1.0)


def squared_hinge(Y, F, weights, scale, costs, R):
    """Add the gradient to R; return the value and the sum of weight * margin * slack."""
    slack, cost = _slack(Y, F), _cost(Y, weights, scale, costs)
    R -= cost * Y * slack
    return 0.5 * np.sum(cost * slack**2), np.sum(cost * slack)


def squared_hinge_diagonal(Y, F, weights, scale, costs, H):
    """Add the diagonal of the generalised Hessian to H."""
    H += _cost(Y, weights, scale, costs) * (_slack(Y, F) > 0)


def squared_hinge_product(Y, F, D, weights, scale, costs, P):
    """Add the generalised Hessian times D to P."""
    P += _cost(Y, weights, scale, costs) * (_slack(Y, F) > 0) * D


def squared_hinge_labels(Y, F, weights, scale, costs, M):
    """Add the sum of the rows' generalised Hessians to M, (n_labels, n_labels)."""
    np.einsum("jj->j", M)[:] += (_cost(Y, weights, scale, costs) * (_slack(Y, F) > 0)).sum(axis=0)


def squared_hinge_line(Y, F, D, t, weights, scale, costs, d1, d2):
    """The loss at F + D diag(t); add its derivatives in t to d1, d2; return value and second derivative along t = 1."""
    slack, cost = _slack(Y, F + D * t), _cost(Y, weights, scale, costs)
    second = (cost * (slack > 0) * D**2).sum(axis=0)
    d1 -= (cost * Y * slack * D).sum(axis=0)
    d2 += second
    return 0.5 * np.sum(cost * slack**2), second.sum()
