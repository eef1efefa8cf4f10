"""Inverse Hessians with every row's own bends: for small problems that resist."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rbrl._linalg import clip_singular_values


def full_factor_hessian(objective, U, V, scores_U, gradient):
    """Inverse of the Hessian in factors W = U V' with every row's own bends, for U and V stacked.

    `gradient` is that of loss and ridge in W; clipped at the nuclear weight, as it is at the optimum, it leaves the Hessian
    positive semidefinite.
    """
    Z, Y, (k, rank), l = objective.design.matrix(), objective.Y, U.shape, len(V)
    units = np.broadcast_to(np.eye(l)[:, None, :], (l, *Y.shape))
    bends = [objective.loss.hessian_product(Y, scores_U @ V.T, unit.copy(), objective.sample_weight) for unit in units]
    T = np.stack(bends, axis=1)
    ridge, r = objective.ridge.weight, np.ones((k, 1)) * objective.ridge.row_weights
    N = clip_singular_values(gradient, objective.nuclear.weight)
    TV = T @ V
    in_U = np.einsum("nk,nac,nm->kamc", Z, V.T @ TV, Z, optimize=True)
    in_U[np.arange(k), :, np.arange(k)] += ridge * r[:, :, None] * (V.T @ V)
    in_V = np.einsum("na,nij,nc->iajc", scores_U, T, scores_U, optimize=True)
    in_V[np.arange(l), :, np.arange(l)] += ridge * (U.T @ (r * U))
    cross = np.einsum("nk,nia,nc->kaic", Z, TV, scores_U, optimize=True)
    cross += ridge * np.einsum("kc,ia->kaic", r * U, V)
    cross[:, np.arange(rank), :, np.arange(rank)] += N
    C = cross.reshape(k * rank, l * rank)
    H = np.block([[in_U.reshape(k * rank, -1), C], [C.T, in_V.reshape(l * rank, -1)]])
    H[np.diag_indices(len(H))] += objective.nuclear.weight + 1e-12 * np.trace(H) / len(H)
    factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    return lambda G: cho_solve(factor, G.ravel(), check_finite=False).reshape(G.shape)


def full_hessian(objective, scores, nuclear=None):
    """Inverse of the Hessian with every row's own bends: a Cholesky factor of n_columns x n_labels rows."""
    Z, Y = objective.design.matrix(), objective.Y
    k, l = Z.shape[1], Y.shape[1]
    H = np.zeros((l, k, l, k))
    for j in range(l):
        unit = np.zeros(Y.shape)
        unit[:, j] = 1.0
        bends = objective.loss.hessian_product(Y, scores, unit, objective.sample_weight)
        for i in range(j + 1):
            H[j, :, i] = H[i, :, j] = Z.T @ (bends[:, i : i + 1] * Z) if bends[:, i].any() else 0.0
    ridge = objective.ridge.weight * objective.ridge.row_weights * np.ones((k, 1))
    diagonal, labels = np.arange(k), np.arange(l)
    H[:, diagonal, :, diagonal] += ridge[:, :, None] * np.eye(l)
    if nuclear is not None and nuclear.left:
        H[labels, :, labels] += nuclear.hessian
    elif nuclear is not None:
        H[:, diagonal, :, diagonal] += nuclear.hessian
    H = H.reshape(l * k, l * k)
    H[np.diag_indices(l * k)] += 1e-14 * np.trace(H) / (l * k)
    factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    return lambda G: cho_solve(factor, G.T.ravel(), check_finite=False).reshape(l, k).T


def full_hessian_cost(objective):
    """Cost of the full Hessian in iterations of the quasi-Newton method: flops, ten times faster in such large products."""
    (n, k), l = objective.design.shape, objective.Y.shape[1]
    return (n * k**2 * l * (l + 1) + (k * l) ** 3 / 3) / max(10 * 4 * n * k * l, 1)
