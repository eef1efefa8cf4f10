r"""A rigorous lower bound of the optimum, from the loss gradient at any weights.

With R the loss gradient in the scores, M = -Z'R, and the loss's linear and quadratic dual terms, weak duality gives,
for every theta >= 0 and every N with no singular value above the nuclear weight,

.. math:: \theta\,\text{linear} - \theta^2\,\text{quadratic}
          - \frac{1}{2\lambda_1} \| r^{-1/2} (\theta M - N) \|_F^2 \;\le\; \text{optimum}.

:func:`lower_bound` chooses theta and N well, for a solver that asks at every step. :func:`multiplier` gives them, for a
proof that takes rounding into account (:mod:`rbrl.solvers.proof`).
"""

import numpy as np

from rbrl._linalg import clip_singular_values, gram_singular_values, gram_spectrum
from rbrl._loops import rows

# Its square is a number still.
LARGEST_THETA = 1e150


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
    return _weighted_ridge(loss, -adjoint, W, ridge, r, nuclear)[0]


def multiplier(loss, M, W, ridge, r, nuclear):
    """The theta and N of the bound, for a positive ridge; arguments as for :func:`lower_bound`, with M for the adjoint.

    N may exceed the nuclear weight by what rounding does.
    """
    square = float(np.sum(M**2 / r)) / (2 * ridge)
    if nuclear == 0:
        return best_theta(loss, square), np.zeros_like(M)
    if np.ndim(r) == 0:
        sigma = gram_singular_values(M)
        _, theta = clipped_maximum(sigma, loss, ridge * r, nuclear)
        return theta, clip_singular_values(theta * M, nuclear)
    _, N = _weighted_ridge(loss, M, W, ridge, r, nuclear)
    return best_theta(loss, square, float(np.sum(M * N / r)) / ridge), N


def along(loss, theta, quadratic=0.0):
    """Value of (linear terms) theta - (quadratic terms) theta^2."""
    return theta * loss.linear - theta**2 * (loss.quadratic + quadratic)


def best_theta(loss, quadratic=0.0, linear=0.0, limit=np.inf):
    """The theta that maximises the bound for a given N, from what these add to its linear and quadratic terms."""
    slope, bend = loss.linear + linear, loss.quadratic + quadratic
    free = slope / (2 * bend) if bend > 0 else np.inf
    return float(np.clip(free, 0.0, min(limit, loss.reach, LARGEST_THETA)))


def _without_ridge(loss, adjoint, nuclear):
    """Only theta M inside the spectral ball is feasible."""
    norm = gram_singular_values(adjoint)[-1]
    if norm == 0:
        return max(0.0, along(loss, best_theta(loss)))
    return max(0.0, along(loss, best_theta(loss, limit=nuclear / norm)))


def _without_nuclear(loss, adjoint, ridge, r):
    """N = 0: a quadratic in theta."""
    quadratic = float(np.sum(adjoint**2 / r)) / (2 * ridge)
    return max(0.0, along(loss, best_theta(loss, quadratic), quadratic))


def _plain_ridge(loss, adjoint, ridge, nuclear):
    """r = 1: the best N clips the singular values of theta M; what remains is a concave function of theta."""
    return clipped_maximum(gram_singular_values(adjoint), loss, ridge, nuclear)[0]


def clipped_maximum(sigma, loss, ridge, nuclear):
    """The bound for r = 1, from the singular values of M, and the theta that gives it."""
    return rows.clipped_dual_maximum(sigma, loss.linear, loss.quadratic, loss.reach, ridge, nuclear)


def _weighted_ridge(loss, M, W, ridge, r, nuclear, rounds=6):
    r"""Any r: N = theta M - ridge r B, for a B near the minimiser of

    .. math:: -\langle\theta M, B\rangle + \tfrac{\lambda_1}{2} \langle B, rB\rangle + \lambda_3 \|B\|_*

    that comes from reweighted closed-form steps, B V = theta M V / (ridge r + nuclear / sigma), starting at W (at the
    ridge solution where W is zero). Clipping N multiplies it from the right, so the row factor r does not disturb it; the
    best theta for that N is a quadratic's. Returns the bound and the N that gave it.
    """
    square = float(np.sum(M**2 / r)) / (2 * ridge)
    sigma, V = gram_spectrum(W if W.any() else M / (ridge * r))
    # N = 0 gives a bound above 0 at any weights, however far from the optimum.
    N, best, best_N = M - ridge * r * W, along(loss, best_theta(loss, square), square), np.zeros_like(M)
    for _ in range(rounds):
        N = clip_singular_values(N, nuclear)
        theta = best_theta(loss, square, float(np.sum(M * N / r)) / ridge)
        # Not by the quadratic's coefficients: they are large and cancel.
        bound = along(loss, theta) - float(np.sum((theta * M - N) ** 2 / r)) / (2 * ridge)
        if bound > best:
            best, best_N = bound, N
        sigma = np.maximum(sigma, max(1e-10 * sigma[-1], 1e-100))
        B = theta * (M @ V) / (ridge * r + nuclear / sigma)
        N = (B * (nuclear / sigma)) @ V.T
        sigma, turn = gram_spectrum(B)
        V = V @ turn
    return best, best_N
