r"""First guesses of an inverse Hessian: exact for rows of equal curvature, or with the curvature of every row.

With the mean row Hessian :math:`\bar H` of the loss in place of each row's own, the Hessian in whitened coordinates is

.. math:: \operatorname{diag}(c) \otimes \bar H + \lambda_1 \operatorname{diag}(r) \otimes I + S, \qquad
          c = \operatorname{diag}(Z'Z),

with S the nuclear norm as a reweighted ridge, :math:`I \otimes H` over labels, or :math:`H \otimes I` over columns of the
design where those are fewer.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dsygvd

from rbrl._common.linalg import EXACT_BELOW, clip_singular_values, gram_eigh, small_gram
from rbrl._common.typing import FloatArray
from rbrl._loops import rows
from rbrl.problem.objective import Objective, SmoothedNuclear
from rbrl.solvers.lbfgs import InverseHessian

# With more labels than this, what is cubic in their number is looked at twice.
MANY_LABELS = 50
# Off-diagonal against diagonal entries of a label: with less, its own curvature says enough.
HARDLY_COUPLED = 0.3
# The nuclear norm of the mean model is smooth at this share of its largest singular value.
SLIGHTLY = 1e-4


class PencilSolver:
    """Solves (first_k A + second_k B + C) x = G_k for every row k, A, B, C symmetric and positive semidefinite.

    Exact, but for matrices larger than `MANY_LABELS` with a `second` that varies: those are taken to be diagonal in the
    basis that makes two of the three so.
    """

    def __init__(
        self, first: FloatArray, A: FloatArray, second: float | FloatArray, B: FloatArray, C: FloatArray
    ) -> None:
        size = np.max(first, initial=0.0) * A.trace() + np.max(second, initial=0.0) * B.trace() + C.trace()
        C = C + (1e-14 * size or 1.0) * np.eye(len(A))
        self._basis: FloatArray | None = None
        if np.ndim(second) == 0:
            values, self._basis = _common_basis(A, second * B + C)
            self._inverse = 1.0 / (np.outer(first, np.maximum(values, 0.0)) + 1.0)
        elif len(A) > MANY_LABELS:
            typical = float(np.median(second))
            values, T = _common_basis(A, typical * B + C)
            self._basis, rest = T, np.outer(second - typical, np.einsum("ij,ij->j", T, B @ T)) + 1.0
            self._inverse = 1.0 / (np.outer(first, np.maximum(values, 0.0)) + np.maximum(rest, 0.0) + 1e-300)
        else:
            self._blocks = first, A, second, B, C

    def __call__(self, G: FloatArray) -> FloatArray:
        if self._basis is not None:
            return ((G @ self._basis) * self._inverse) @ self._basis.T
        out = np.empty_like(G)
        rows.block_solve(G, *self._blocks, out)
        return out


def _common_basis(A: FloatArray, C: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and vectors of A v = value C v, C positive definite; SciPy's checks cost more than a small problem."""
    values, V, failed = dsygvd(A, C)
    return eigh(A, C) if failed else (values, V)


class MeanModel:
    """The objective with the mean Hessian of all rows at given scores for the Hessian of each.

    Attributes
    ----------
    hessian : array (n_labels, n_labels)
        Mean over rows of the loss's Hessian.
    ridge : float or array (n_columns,)
        Second derivatives of the ridge, one per column of the design.
    """

    def __init__(self, objective: Objective, scores: FloatArray) -> None:
        self.hessian = objective.loss.label_hessian(objective.Y, scores, objective.sample_weight) / len(scores)
        self._gram = objective.design.gram_diagonal
        r = objective.ridge.row_weights
        self.ridge = objective.ridge.weight * (r if isinstance(r, float) else r[:, 0])

    @cached_property
    def curvatures(self) -> tuple[FloatArray, FloatArray | None]:
        """Eigenvalues and eigenvectors of the mean Hessian; None for eigenvectors that are as good as the labels."""
        diagonal = np.diag(self.hessian)
        many, coupled = len(diagonal) > MANY_LABELS, np.abs(self.hessian).sum(axis=1) > (1 + HARDLY_COUPLED) * diagonal
        # Of 5,000 labels the eigenvectors cost 26 s, as much as seventy points in factors.
        if len(diagonal) > EXACT_BELOW or (many and not coupled.any()):
            return diagonal, None
        return gram_eigh(self.hessian)

    def inverse(self, nuclear: SmoothedNuclear | None = None) -> InverseHessian:
        """The inverse Hessian as a function of a matrix (n_columns, n_labels)."""
        if nuclear is not None and not nuclear.left:
            return PencilSolver(self._gram, self.hessian, self.ridge, np.eye(len(self.hessian)), nuclear.hessian)
        (curvatures, basis), common = self.curvatures, None
        if nuclear is None:
            diagonal = np.outer(self._gram, curvatures) + np.reshape(self.ridge, (-1, 1))
            diagonal += 1e-14 * np.max(diagonal, initial=0.0) + 1e-300
        else:
            # Two matrices over columns are diagonal in one common basis, and the labels in the eigenvectors of their own.
            S = nuclear.hessian + np.diag(self.ridge * np.ones(len(nuclear.hessian)))
            values, common = _common_basis(np.diag(self._gram), S)
            diagonal = np.outer(np.maximum(values, 0.0), curvatures) + 1.0

        def inverse(G: FloatArray) -> FloatArray:
            T = G if basis is None else G @ basis
            T = T / diagonal if common is None else common @ ((common.T @ T) / diagonal)
            return T if basis is None else T @ basis.T

        return inverse


def model_start(objective: Objective, rounds: int = 20) -> FloatArray:
    """Minimiser of the objective with its loss replaced by the mean quadratic model at zero scores.

    The nuclear norm is met by reweighting, in so many rounds, which needs no product: the whole start costs half an
    evaluation. Its rank is that of the optimum more often than not.
    """
    zero = objective.zero_scores()
    pull = -objective.design.adjoint(objective.loss.evaluate(objective.Y, zero, objective.sample_weight)[1])
    model = MeanModel(objective, zero)
    W = model.inverse()(pull)
    for _ in range(rounds if objective.nuclear.weight else 0):
        nuclear = SmoothedNuclear(*small_gram(W), objective.nuclear.weight)
        if nuclear.sigma[-1] == 0:
            break
        nuclear.smooth(SLIGHTLY * nuclear.sigma[-1])
        W = model.inverse(nuclear)(pull)
    return W


def label_coupling(objective: Objective, W: FloatArray) -> float:
    """How much labels depend on one another, off-diagonal against diagonal, in the mean Hessian at zero scores.

    The larger of two figures: for the loss alone, and for a typical column of the design with the penalties at W.
    """
    if objective.shape[0] == 0:
        return 0.0
    H = MeanModel(objective, objective.zero_scores()).hessian
    typical = np.median(objective.design.gram_diagonal) * H
    typical = typical + objective.ridge.weight * np.median(objective.ridge.row_weights) * np.eye(len(H))
    nuclear = SmoothedNuclear(*small_gram(W), objective.nuclear.weight) if objective.nuclear.weight else None
    if nuclear is not None and nuclear.sigma[-1] > 0 and not nuclear.left:
        nuclear.smooth(SLIGHTLY * nuclear.sigma[-1])
        typical = typical + nuclear.hessian
    pairs = ((float(np.abs(M).sum()), float(np.trace(M))) for M in (H, typical))
    return max((total - trace) / trace if trace > 0 else 0.0 for total, trace in pairs)


def factor_blocks(
    objective: Objective, model: MeanModel, U: FloatArray, V: FloatArray, scores_U: FloatArray
) -> InverseHessian:
    """Inverse of the two diagonal blocks of the Hessian in factors W = U V', for U and for V stacked."""
    (k, rank), r = U.shape, objective.ridge.row_weights
    eye, nuclear = np.eye(rank), objective.nuclear.weight
    solve_U = PencilSolver(objective.design.gram_diagonal, V.T @ model.hessian @ V, model.ridge, V.T @ V, nuclear * eye)
    curvatures, basis = model.curvatures
    rest = objective.ridge.weight * (U.T @ (r * U)) + nuclear * eye
    solve_V = PencilSolver(curvatures, scores_U.T @ scores_U, 1.0, np.zeros_like(eye), rest)

    def inverse(G: FloatArray) -> FloatArray:
        in_V = solve_V(G[k:]) if basis is None else (solve_V((G[k:].T @ basis).T).T @ basis.T).T
        return np.vstack([solve_U(G[:k]), in_V])

    return inverse


def full_factor_hessian(
    objective: Objective, U: FloatArray, V: FloatArray, scores_U: FloatArray, gradient: FloatArray
) -> InverseHessian:
    """Inverse of the Hessian in factors W = U V' with every row's own curvature, for U and V stacked.

    `gradient` is that of loss and ridge in W; clipped at the nuclear weight, as it is at the optimum, it leaves the Hessian
    positive semidefinite.
    """
    Z, Y, (k, rank), l = objective.design.matrix(), objective.Y, U.shape, len(V)
    F, units = scores_U @ V.T, (np.tile(unit, (len(Y), 1)) for unit in np.eye(l))
    T = np.stack([objective.loss.hessian_product(Y, F, unit, objective.sample_weight) for unit in units], axis=1)
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


def full_hessian(objective: Objective, scores: FloatArray, nuclear: SmoothedNuclear | None = None) -> InverseHessian:
    """Inverse of the Hessian with every row's own curvature: a Cholesky factor of n_columns x n_labels rows."""
    Z, Y = objective.design.matrix(), objective.Y
    k, l = Z.shape[1], Y.shape[1]
    H = np.zeros((l, k, l, k))
    for j in range(l):
        unit = np.zeros(Y.shape)
        unit[:, j] = 1.0
        curvatures = objective.loss.hessian_product(Y, scores, unit, objective.sample_weight)
        for i in range(j + 1):
            H[j, :, i] = H[i, :, j] = Z.T @ (curvatures[:, i : i + 1] * Z) if curvatures[:, i].any() else 0.0
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
