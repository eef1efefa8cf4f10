r"""First guesses of an inverse Hessian, exact for rows that all bend alike.

With the mean row Hessian :math:`\bar H` of the loss in place of each row's own, the Hessian in whitened coordinates is
one block per column k of the design, as small as the number of labels:

.. math:: c_k \bar H + \lambda_1 r_k I + S, \qquad c = \operatorname{diag}(Z'Z),

with S the nuclear norm as a reweighted ridge.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dsygvd

from rbrl._linalg import clip_singular_values
from rbrl._loops import rows


class PencilSolver:
    """Solves (first_k A + second_k B + C) x = G_k for every row k, A, B, C symmetric and positive semidefinite."""

    def __init__(self, first, A, second, B, C):
        floor = 1e-14 * (first.max(initial=0.0) * A.trace() + C.trace()) + 1e-300
        C = C + floor * np.eye(len(A))
        if np.ndim(second) == 0:
            # Two matrices are diagonal in one common basis.
            values, self._basis = _common_basis(A, second * B + C)
            self._inverse = 1.0 / (np.outer(first, np.maximum(values, 0.0)) + 1.0)
        else:
            self._basis, self._blocks = None, (first, A, second, B, C)

    def __call__(self, G):
        if self._basis is not None:
            return ((G @ self._basis) * self._inverse) @ self._basis.T
        out = np.empty_like(G)
        rows.block_solve(G, *self._blocks, out)
        return out


def _common_basis(A, C):
    """Eigenvalues and vectors of A v = value C v, C positive definite; SciPy's checks cost more than a small problem."""
    values, V, failed = dsygvd(A, C)
    return eigh(A, C) if failed else (values, V)


def label_blocks(objective, mean_hessian, nuclear_hessian=0.0):
    """Inverse of the blocks above, as a function of a matrix (n_columns, n_labels)."""
    eye, r = np.eye(len(mean_hessian)), objective.ridge.row_weights
    ridge = objective.ridge.weight * (r if np.ndim(r) == 0 else r[:, 0])
    S = nuclear_hessian if np.ndim(nuclear_hessian) else 0.0 * eye
    return PencilSolver(objective.design.gram_diagonal, mean_hessian, ridge, eye, S)


def factor_blocks(objective, mean_hessian, U, V, scores_U):
    """Inverse of the two diagonal blocks of the Hessian in factors W = U V', for U and for V stacked."""
    rank, r = U.shape[1], objective.ridge.row_weights
    eye, nuclear = np.eye(rank), objective.nuclear.weight
    ridge = objective.ridge.weight * (r if np.ndim(r) == 0 else r[:, 0])
    solve_U = PencilSolver(objective.design.gram_diagonal, V.T @ mean_hessian @ V, ridge, V.T @ V, nuclear * eye)
    bends, O = np.linalg.eigh(mean_hessian)
    rest = objective.ridge.weight * (U.T @ (r * U)) + nuclear * eye
    solve_V = PencilSolver(np.maximum(bends, 0.0), scores_U.T @ scores_U, 1.0, np.zeros_like(eye), rest)
    k = len(U)
    return lambda G: np.vstack([solve_U(G[:k]), O @ solve_V(O.T @ G[k:])])


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


def full_hessian(objective, scores, nuclear_hessian=0.0):
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
    diagonal = np.arange(k)
    H[:, diagonal, :, diagonal] += nuclear_hessian + ridge[:, :, None] * np.eye(l)
    H = H.reshape(l * k, l * k)
    H[np.diag_indices(l * k)] += 1e-14 * np.trace(H) / (l * k)
    factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    return lambda G: cho_solve(factor, G.T.ravel(), check_finite=False).reshape(l, k).T


def full_hessian_cost(objective):
    """Cost of the full Hessian in iterations of the quasi-Newton method: flops, ten times faster in such large products."""
    (n, k), l = objective.design.shape, objective.Y.shape[1]
    return (n * k**2 * l * (l + 1) + (k * l) ** 3 / 3) / max(10 * 4 * n * k * l, 1)
