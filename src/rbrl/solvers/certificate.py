r"""A rigorous lower bound of the optimum, from the loss gradient at any weights.

With R the loss gradient in the scores, M = -Z'R, and the loss's linear and quadratic dual terms, weak duality gives,
for every theta >= 0 and every N with no singular value above the nuclear weight,

.. math:: \theta\,\text{linear} - \theta^2\,\text{quadratic}
          - \frac{1}{2\lambda_1} \| r^{-1/2} (\theta M - N) \|_F^2 \;\le\; \text{optimum}.

The functions below choose theta and N well.
"""

import numpy as np

from rbrl._linalg import clip_singular_values, gram_singular_values, gram_spectrum


def lower_bound(objective, W, loss, adjoint):
    """Lower bound of the objective's optimum.

    Parameters
    ----------
    objective : Objective
    W : array
        Weights at which the loss was evaluated: a hint only, the bound holds for any.
    loss : Terms
    adjoint : array
        Z'R, with R the loss gradient in the scores.
    """
    if loss.value <= 0:
        return 0.0
    ridge, nuclear, r = objective.ridge.weight, objective.nuclear.weight, objective.ridge.row_weights
    if ridge == 0:
        return _without_ridge(loss, adjoint, nuclear)
    if nuclear == 0:
        return _without_nuclear(loss, adjoint, ridge, r)
    if np.ndim(r) == 0:
        return _plain_ridge(loss, adjoint, ridge * r, nuclear)
    return _weighted_ridge(loss, -adjoint, W, ridge, r, nuclear)


def _along(loss, theta, quadratic=0.0):
    """Value of (linear terms) theta - (quadratic terms) theta^2."""
    return theta * loss.linear - theta**2 * (loss.quadratic + quadratic)


def _best_theta(loss, quadratic=0.0, linear=0.0, limit=np.inf):
    slope, bend = loss.linear + linear, loss.quadratic + quadratic
    free = slope / (2 * bend) if bend > 0 else np.inf
    return float(np.clip(free, 0.0, min(limit, loss.reach, 1e300)))


def _without_ridge(loss, adjoint, nuclear):
    """Only theta M inside the spectral ball is feasible."""
    norm = gram_singular_values(adjoint)[-1]
    if norm == 0:
        return max(0.0, _along(loss, _best_theta(loss)))
    return max(0.0, _along(loss, _best_theta(loss, limit=nuclear / norm)))


def _without_nuclear(loss, adjoint, ridge, r):
    """N = 0: a quadratic in theta."""
    quadratic = float(np.sum(adjoint**2 / r)) / (2 * ridge)
    return max(0.0, _along(loss, _best_theta(loss, quadratic), quadratic))


def _plain_ridge(loss, adjoint, ridge, nuclear, steps=30):
    """r = 1: the best N clips the singular values of theta M; Newton on the concave function of theta that remains."""
    s = gram_singular_values(adjoint)
    best, theta = 0.0, min(1.0, loss.reach)
    for _ in range(steps):
        over = np.maximum(theta * s - nuclear, 0.0)
        best = max(best, _along(loss, theta) - np.sum(over**2) / (2 * ridge))
        slope = loss.linear - 2 * theta * loss.quadratic - np.sum(s * over) / ridge
        bend = 2 * loss.quadratic + np.sum(s[over > 0] ** 2) / ridge
        if bend <= 0:
            break
        previous, theta = theta, float(np.clip(theta + slope / bend, 0.0, loss.reach))
        if abs(theta - previous) < 1e-13 * theta:
            break
    return best


def _weighted_ridge(loss, M, W, ridge, r, nuclear, rounds=6):
    r"""Any r: N = theta M - ridge r B, for a B near the minimiser of

    .. math:: -\langle\theta M, B\rangle + \tfrac{\lambda_1}{2} \langle B, rB\rangle + \lambda_3 \|B\|_*

    that comes from reweighted closed-form steps, B V = theta M V / (ridge r + nuclear / sigma), starting at W (at the
    ridge solution where W is zero). Clipping N multiplies it from the right, so the row factor r does not disturb it; the
    best theta for that N is a quadratic's.
    """
    square = float(np.sum(M**2 / r)) / (2 * ridge)
    sigma, V = gram_spectrum(W if W.any() else M / (ridge * r))
    N, theta, best = M - ridge * r * W, 1.0, 0.0
    for _ in range(rounds):
        N = clip_singular_values(N, nuclear)
        theta = _best_theta(loss, square, float(np.sum(M * N / r)) / ridge)
        # Not by the quadratic's coefficients: they are large and cancel.
        best = max(best, _along(loss, theta) - float(np.sum((theta * M - N) ** 2 / r)) / (2 * ridge))
        sigma = np.maximum(sigma, max(1e-10 * sigma[-1], 1e-100))
        B = theta * (M @ V) / (ridge * r + nuclear / sigma)
        N = (B * (nuclear / sigma)) @ V.T
        sigma, turn = gram_spectrum(B)
        V = V @ turn
    return best
