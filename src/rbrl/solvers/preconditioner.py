r"""First guesses of an inverse Hessian, exact for rows of equal curvature.

With the mean row Hessian :math:`\bar H` of the loss in place of each row's own, the Hessian in whitened coordinates is

.. math:: \operatorname{diag}(c) \otimes \bar H + \lambda_1 \operatorname{diag}(r) \otimes I + S, \qquad
          c = \operatorname{diag}(Z'Z),

with S the nuclear norm as a reweighted ridge, :math:`I \otimes H` over labels, or :math:`H \otimes I` over columns of the
design where those are fewer.
"""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dsygvd

from rbrl._common.linalg import EXACT_BELOW, gram_eigh, small_gram
from rbrl._common.typing import FloatArray
from rbrl.problem.objective import Objective, SmoothedNuclear
from rbrl.solvers.base import Start
from rbrl.solvers.lbfgs import InverseHessian

# With more labels than this, what is cubic in their number is looked at twice.
MANY_LABELS = 50
# Off-diagonal against diagonal entries of a label: with less, its own curvature says enough (cal500, 174 labels, at
# (1, .1, .1) takes .33 s, and .40 s with eigenvectors).
HARDLY_COUPLED = 0.3
# The nuclear norm of the mean model is smooth at this share of its largest singular value.
SLIGHTLY = 1e-4
# Its minimiser is found when a round moves the norm by no more than this share of the loss of zero scores: of 1,000 features
# and 1,250 labels at (2, 1, .1), 11.1 s in all; 13.7 s with eleven rounds instead of five, and the same evaluations. With
# 5e-8, emotions with a kernel at (.01, .01, .01) takes one more.
SETTLED = 2e-8
# Times that it is halved at most.
HALVINGS = 12
# Measured on 180 problems: with less coupling than this, a quasi-Newton method per label needs fewer evaluations.
WEAK_COUPLING = 0.9


# Matrices of so many entries are multiplied in single precision, which a first guess can do with, where their sizes are far
# from the ends of its range: with 10,000 features and 200 labels a guess takes 34 instead of 55 ms.
SINGLE_ENTRIES, SINGLE_RANGE = 2**20, 1e9


class PencilSolver:
    """Solves (first_k A + C + second_k B) x = G_k for every row k, A, B, C symmetric and positive semidefinite; the identity
    is a B of None.

    Exact where `second` does not vary. Where it does, B is taken to be diagonal in the basis that makes A, and the rest at
    the median of `second`, diagonal: the exact blocks needed as many evaluations on emotions and image with a kernel, and
    122 instead of 98 on yeast at (.01, 1, 1).
    """

    def __init__(
        self, first: FloatArray, A: FloatArray, C: FloatArray, second: float | FloatArray = 0.0, B: Any = None
    ) -> None:
        B = np.eye(len(A)) if B is None else B
        varies = isinstance(second, np.ndarray) and second.size > 0
        typical = float(np.median(second)) if varies else float(np.max(second, initial=0.0))
        size = np.max(first, initial=0.0) * A.trace() + np.max(second, initial=0.0) * B.trace() + C.trace()
        rest = typical * B + C + (1e-14 * size or 1.0) * np.eye(len(A))
        # SciPy's eigh checks for longer than a small problem takes.
        values, T, failed = dsygvd(A, rest) if A.size else (np.zeros(0), A, 0)
        if failed:
            values, T = eigh(A, rest, driver="gvd", check_finite=False)
        curvatures = np.multiply.outer(first, np.maximum(values, 0.0)) + 1.0
        if varies:
            along = np.einsum("ij,ij->j", T, B @ T)
            curvatures = np.maximum(curvatures + np.outer(second - typical, along), 1e-300)
        self._basis, self._inverse = T, np.divide(1.0, curvatures, out=curvatures)

    def __call__(self, G: FloatArray) -> FloatArray:
        sizes = float(np.linalg.norm(G)), float(np.linalg.norm(self._basis))
        single = G.size >= SINGLE_ENTRIES and all(1 / SINGLE_RANGE < size < SINGLE_RANGE for size in sizes)
        dtype: Any = np.float32 if single else np.float64
        basis = self._basis.astype(dtype, copy=False)
        T = G.astype(dtype, copy=False) @ basis
        T *= self._inverse
        out: FloatArray = T @ basis.T
        return out.astype(np.float64, copy=False)


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
        hardly = HARDLY_COUPLED if len(diagonal) > MANY_LABELS else 0.0
        coupled = np.abs(self.hessian).sum(axis=1) > (1 + hardly) * diagonal
        # Of 5,000 labels the eigenvectors cost 26 s, as much as seventy points in factors.
        if len(diagonal) > EXACT_BELOW or not coupled.any():
            return diagonal, None
        return gram_eigh(self.hessian)

    def inverse(self, nuclear: SmoothedNuclear | None = None) -> InverseHessian:
        """The inverse Hessian as a function of a matrix (n_columns, n_labels)."""
        if nuclear is not None and not nuclear.left:
            return PencilSolver(self._gram, self.hessian, nuclear.hessian, self.ridge)
        curvatures, basis = self.curvatures
        if nuclear is None:
            diagonal = np.outer(self._gram, curvatures) + np.reshape(self.ridge, (-1, 1))
            diagonal += 1e-14 * np.max(diagonal, initial=0.0) + 1e-300
        else:
            # Two matrices over columns are diagonal in one common basis, and the labels in the eigenvectors of their own.
            S = nuclear.hessian + np.diag(self.ridge * np.ones(len(self._gram)))
            over_columns = PencilSolver(curvatures, np.diag(self._gram), S)

        def inverse(G: FloatArray) -> FloatArray:
            T = G if basis is None else G @ basis
            T = T / diagonal if nuclear is None else over_columns(T.T).T
            return np.ascontiguousarray(T) if basis is None else T @ basis.T

        return inverse


def model_start(objective: Objective, rounds: int = 20) -> FloatArray:
    """Minimiser of the objective with its loss replaced by the mean quadratic model at zero scores.

    The nuclear norm is met by reweighting, in so many rounds at most, which needs no product: the whole start costs half an
    evaluation. Its rank is that of the optimum more often than not.
    """
    zero = objective.zero_scores()
    loss, residual = objective.loss.evaluate(objective.Y, zero, objective.sample_weight)
    model, pull = MeanModel(objective, zero), -objective.design.adjoint(residual)
    W, last = model.inverse()(pull), np.array(np.inf)
    for _ in range(rounds if objective.nuclear.weight else 0):
        nuclear = SmoothedNuclear(*small_gram(W), objective.nuclear.weight)
        if nuclear.sigma[-1] == 0 or nuclear.weight * np.abs(nuclear.sigma - last).sum() <= SETTLED * loss.value:
            break
        last = nuclear.sigma
        nuclear.smooth(SLIGHTLY * nuclear.sigma[-1])
        W = model.inverse(nuclear)(pull)
    return W


def first_point(objective: Objective, start: Start, scores: Any = None) -> tuple[FloatArray, Any]:
    """`start` and its scores; without one, the minimiser of the mean model, halved until the objective stops falling: the
    model overshoots where columns are correlated."""
    if start is not None:
        return start, objective.design.scores(start) if scores is None else scores
    W = model_start(objective)
    scores = objective.design.scores(W)
    value = objective.value_at(W, scores)
    for _ in range(HALVINGS):
        smaller = objective.value_at(0.5 * W, 0.5 * scores)
        if smaller >= value:
            break
        W, scores, value = 0.5 * W, 0.5 * scores, smaller
    return W, scores


def label_coupling(objective: Objective, W: FloatArray) -> float:
    """How much labels depend on one another, off-diagonal against diagonal, in the mean Hessian at zero scores.

    The larger of two figures: for the loss alone, and for a typical column of the design with the penalties at W.
    """
    if objective.shape[0] == 0:
        return 0.0
    H = MeanModel(objective, objective.zero_scores()).hessian
    typical = np.median(objective.design.gram_diagonal) * H
    typical = typical + objective.ridge.weight * np.median(objective.ridge.row_weights) * np.eye(len(H))
    if objective.nuclear.weight and W.any() and len(W) >= len(H):
        nuclear = SmoothedNuclear(W.T @ W, False, objective.nuclear.weight)
        nuclear.smooth(SLIGHTLY * nuclear.sigma[-1])
        typical = typical + nuclear.hessian
    pairs = ((float(np.abs(M).sum()), float(np.trace(M))) for M in (H, typical))
    return max((total - trace) / trace if trace > 0 else 0.0 for total, trace in pairs)


def factor_blocks(
    objective: Objective, model: MeanModel, U: FloatArray, V: FloatArray, scores_U: FloatArray
) -> InverseHessian:
    """Inverse of the two diagonal blocks of the Hessian in factors W = U V', for U and for V stacked."""
    (k, rank), r = U.shape, objective.ridge.row_weights
    nuclear, (curvatures, basis) = objective.nuclear.weight * np.eye(rank), model.curvatures
    solve_U = PencilSolver(objective.design.gram_diagonal, V.T @ model.hessian @ V, nuclear, model.ridge, V.T @ V)
    solve_V = PencilSolver(curvatures, scores_U.T @ scores_U, objective.ridge.weight * (U.T @ (r * U)) + nuclear)

    def inverse(G: FloatArray) -> FloatArray:
        in_V = solve_V(G[k:]) if basis is None else (solve_V((G[k:].T @ basis).T).T @ basis.T).T
        return np.vstack([solve_U(G[:k]), in_V])

    return inverse
