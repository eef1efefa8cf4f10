r"""The mean quadratic model of the objective: first point and first guess of the inverse Hessian.

With the mean row Hessian :math:`\bar H` of the loss in place of each row's own, the Hessian in whitened coordinates is

.. math:: \operatorname{diag}(c) \otimes \bar H + \lambda_1 \operatorname{diag}(r) \otimes I + S, \qquad
          c = \operatorname{diag}(Z'Z).

S is the nuclear norm as a reweighted ridge: :math:`I \otimes H` over labels, or :math:`H \otimes I` over the columns of the
design where these are fewer. The model is exact where all rows have the same curvature.
"""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dsygvd

from rbrl._common.linalg import EXACT_BELOW, gram_eigh, small_gram
from rbrl._common.typing import Array, FloatArray
from rbrl.losses.weights import Weights
from rbrl.problem.objective import Objective, SmoothedNuclear
from rbrl.solvers.base import Start
from rbrl.solvers.lbfgs import InverseHessian

# Share of the largest entry of a diagonal that keeps entries of 0 invertible and does not change the others.
ROUNDING_SHARE = 1e-14


class PencilSolver:
    """Solves (first_k A + C + second_k B) x = G_k for every row k, with A, B, C symmetric and positive semidefinite.

    It is exact if `second` is constant. Otherwise it treats B as diagonal in the basis that diagonalises A and
    C + median(second) B.

    Parameters
    ----------
    first : array (n_rows,)
    A, C : array (n, n)
    second : float or array (n_rows,), default=0.0
    B : array (n, n), default=None
        The identity by default.
    """

    def __init__(
        self, first: FloatArray, A: FloatArray, C: FloatArray, second: float | FloatArray = 0.0, B: Any = None
    ) -> None:
        B = np.eye(len(A)) if B is None else B
        varies = isinstance(second, np.ndarray) and second.size > 0
        typical = float(np.median(second)) if varies else float(np.max(second, initial=0.0))
        size = np.max(first, initial=0.0) * A.trace() + np.max(second, initial=0.0) * B.trace() + C.trace()
        # The last term makes the matrix positive definite, and does not change other directions.
        rest = typical * B + C + (1e-14 * size or 1.0) * np.eye(len(A))
        # LAPACK is called directly: the checks of SciPy's eigh take longer than solving a small problem.
        values, basis, failed = dsygvd(A, rest) if A.size else (np.zeros(0), A, 0)
        if failed:
            try:
                values, basis = eigh(A, rest, driver="gvd", check_finite=False)
            except np.linalg.LinAlgError:
                # Entries that differ by too many orders of magnitude. Their diagonals still scale a first guess.
                diagonal = rest.diagonal()
                values = A.diagonal() / diagonal
                basis = np.diag(1.0 / np.sqrt(diagonal))
        curvatures = np.multiply.outer(first, np.maximum(values, 0.0)) + 1.0
        if varies:
            along = np.einsum("ij,ij->j", basis, B @ basis)
            curvatures = np.maximum(curvatures + np.outer(second - typical, along), 1e-300)
        self._basis = basis
        self._inverse = np.divide(1.0, curvatures, out=curvatures)

    def __call__(self, G: FloatArray) -> FloatArray:
        """Return the solutions for all rows of G (n_rows, n): a new array; G is not changed."""
        T = G @ self._basis
        T *= self._inverse
        out: FloatArray = T @ self._basis.T
        return out


class MeanModel:
    """The objective with the mean Hessian of all rows at given scores in place of each row's own.

    Parameters
    ----------
    objective : Objective
    scores : array (n_samples, n_labels)
    total : array (n_labels, n_labels) or (n_labels,), default=None
        Sum over rows of the Hessian of the loss, or its diagonal, as :func:`row_hessian` computes it. None
        means that it is computed from the scores.

    Attributes
    ----------
    hessian : array (n_labels, n_labels) or (n_labels,)
        Mean over rows of the Hessian of the loss, or its diagonal.
    ridge : float or array (n_columns,)
        Second derivatives of the ridge, one for each column of the design.
    """

    def __init__(self, objective: Objective, scores: FloatArray | None, total: FloatArray | None = None) -> None:
        Y = objective.Y
        total = objective.loss.label_hessian(Y, scores, objective.sample_weight) if total is None else total
        self.hessian = total / len(Y)
        self._gram = objective.design.gram_diagonal
        r = objective.ridge.row_weights
        self.ridge = objective.ridge.weight * (r if isinstance(r, float) else r[:, 0])

    @cached_property
    def curvatures(self) -> tuple[FloatArray, FloatArray | None]:
        """Eigenvalues (n_labels,), ascending, and eigenvectors (columns) of the mean Hessian.

        If labels do not couple, or there are more than `EXACT_BELOW`, the Hessian is treated as
        diagonal: the first array is its diagonal in the order of the labels, and the eigenvectors
        are None.
        """
        if self.hessian.ndim == 1:
            return self.hessian, None
        diagonal = np.diag(self.hessian)
        coupled = np.abs(self.hessian).sum(axis=1) > diagonal
        # For thousands of labels the eigenvectors take longer than all steps.
        if len(diagonal) > EXACT_BELOW or not coupled.any():
            return diagonal, None
        return gram_eigh(self.hessian)

    def project(self, V: FloatArray) -> FloatArray:
        """Return V' H V with the mean Hessian H, for V (n_labels, rank)."""
        return (V.T * self.hessian if self.hessian.ndim == 1 else V.T @ self.hessian) @ V

    def row_inverse(self) -> FloatArray:
        """Return the inverse Hessian with the mean curvature of all labels: one factor per column of the design."""
        diagonal = self._gram * mean_curvature(self.hessian) + self.ridge
        inverse: FloatArray = 1.0 / (diagonal + ROUNDING_SHARE * float(np.max(diagonal, initial=0.0)) + 1e-300)
        return inverse

    def inverse_diagonal(self, nuclear: SmoothedNuclear | None = None) -> InverseHessian:
        """Return a function that divides matrices (n_columns, n_labels) by the Hessian's diagonal.

        The function returns a new array. `nuclear` must be smoothed already; None means no nuclear
        norm.
        """
        diagonal = np.outer(self._gram, np.diag(self.hessian)) + np.reshape(self.ridge, (-1, 1))
        if nuclear is not None:
            own = nuclear.hessian.diagonal()
            diagonal += own[:, None] if nuclear.left else own
        diagonal += ROUNDING_SHARE * float(np.max(diagonal, initial=0.0)) + 1e-300
        return lambda G: G / diagonal

    def inverse(self, nuclear: SmoothedNuclear | None = None) -> InverseHessian:
        """Return a function that multiplies a matrix (n_columns, n_labels) by the inverse Hessian.

        The function returns a new array. `nuclear` must be smoothed already; None means no nuclear
        norm.
        """
        if nuclear is not None and not nuclear.left:
            return PencilSolver(self._gram, self.hessian, nuclear.hessian, self.ridge)
        curvatures, basis = self.curvatures
        if nuclear is None:
            diagonal = np.outer(self._gram, curvatures) + np.reshape(self.ridge, (-1, 1))
            diagonal += ROUNDING_SHARE * float(np.max(diagonal, initial=0.0)) + 1e-300
        else:
            # Both matrices over columns are diagonal in one basis, and the labels in their eigenvectors.
            S = nuclear.hessian + np.diag(self.ridge * np.ones(len(self._gram)))
            over_columns = PencilSolver(curvatures, np.diag(self._gram), S)

        def inverse(G: FloatArray) -> FloatArray:
            T = G if basis is None else G @ basis
            T = T / diagonal if nuclear is None else over_columns(T.T).T
            return np.ascontiguousarray(T) if basis is None else T @ basis.T

        return inverse


def mean_curvature(hessian: FloatArray) -> float:
    """Return the mean of the diagonal of a Hessian, which is given as a whole or by its diagonal."""
    return float(np.mean(hessian if hessian.ndim == 1 else np.diag(hessian)))


def row_hessian(objective: Objective, Y: Array, F: FloatArray, weights: Weights) -> FloatArray:
    """Return the sum of the Hessians of the loss over some rows; the diagonal for more than `EXACT_BELOW` labels.

    Parameters
    ----------
    objective : Objective
    Y, F : arrays (n_rows, n_labels)
        Labels and scores of the rows.
    weights : array (n_rows,) or (n_rows, n_labels), or None

    Returns
    -------
    array (n_labels, n_labels) or (n_labels,)
    """
    if F.shape[1] <= EXACT_BELOW:
        hessian: FloatArray = objective.loss.label_hessian(Y, F, weights)
        return hessian
    diagonal: FloatArray = objective.loss.hessian_diagonal(Y, F, weights).sum(axis=0)
    return diagonal


def model_start(objective: Objective, rounds: int = 10, settled: float = 0.0) -> FloatArray:
    """Return the minimiser of the mean model at zero scores. It costs half an evaluation.

    Parameters
    ----------
    objective : Objective
    rounds : int, default=10
        Largest number of times that the nuclear norm is reweighted; 0 leaves the nuclear norm out.
    settled : float, default=0
        Share of the loss of zero scores: the reweighting ends when it moves the norm by less.

    Returns
    -------
    array (n_columns, n_labels)
    """
    zero = objective.zero_scores()
    loss, residual = objective.loss.evaluate(objective.Y, zero, objective.sample_weight)
    model = MeanModel(objective, zero)
    pull = -objective.design.adjoint(residual)
    W = model.inverse()(pull)
    last_sigma = np.array(np.inf)
    for _ in range(rounds if objective.nuclear.weight else 0):
        nuclear = smooth_slightly(W, objective.nuclear.weight)
        moved = nuclear.weight * np.abs(nuclear.sigma - last_sigma).sum()
        if nuclear.sigma[-1] == 0 or moved <= settled * loss.value:
            break
        W = model.inverse(nuclear)(pull)
        last_sigma = nuclear.sigma
    return W


def smooth_slightly(W: FloatArray, weight: float) -> SmoothedNuclear:
    """Return the nuclear norm of W (n_columns, n_labels), smoothed at 1e-4 of its largest sigma.

    The model of the norm is finite at this width, and the norm of W hardly changes.
    """
    nuclear = SmoothedNuclear(*small_gram(W), weight)
    nuclear.smooth(1e-4 * nuclear.sigma[-1])
    return nuclear


def first_point(objective: Objective, start: Start, scores: Any = None) -> tuple[FloatArray, Any]:
    """Return `start` itself, or the minimiser of the mean model if it is None, and its scores.

    Parameters
    ----------
    objective : Objective
    start : array (n_columns, n_labels) or None
    scores : array (n_samples, n_labels), default=None
        Scores of `start`, if they are known.

    Returns
    -------
    W : array (n_columns, n_labels)
        The array `start` itself, or a new one.
    scores : array (n_samples, n_labels)
        The given array itself, or a new one.
    """
    W = model_start(objective) if start is None else start
    return W, objective.design.scores(W) if start is None or scores is None else scores


def label_coupling(objective: Objective, W: FloatArray) -> float:
    """Return the coupling of labels at weights W (n_columns, n_labels), 0 for independent labels.

    It is the sum of off-diagonal entries of the mean Hessian, relative to its trace: the larger one
    of the loss alone, and of a typical column of the design with the penalties at W.
    """
    if objective.shape[0] == 0:
        return 0.0
    H = MeanModel(objective, objective.zero_scores()).hessian
    typical = np.median(objective.design.gram_diagonal) * H
    typical = typical + objective.ridge.weight * np.median(objective.ridge.row_weights) * np.eye(len(H))
    if objective.nuclear.weight and W.any() and len(W) >= len(H):
        typical = typical + smooth_slightly(W, objective.nuclear.weight).hessian
    coupling = 0.0
    for M in (H, typical):
        trace = float(np.trace(M))
        if trace > 0:
            coupling = max(coupling, (float(np.abs(M).sum()) - trace) / trace)
    return coupling


def factor_blocks(
    objective: Objective, model: MeanModel, U: FloatArray, V: FloatArray, scores_U: FloatArray
) -> InverseHessian:
    """Return the inverse of the two diagonal blocks of the Hessian in factors W = U V', stacked as U and V are.

    Parameters
    ----------
    objective : Objective
    model : MeanModel
    U : array (n_columns, rank)
    V : array (n_labels, rank)
    scores_U : array (n_samples, rank)

    Returns
    -------
    callable
        Function from a matrix (n_columns + n_labels, rank), U above V, to a new one.
    """
    k, rank = U.shape
    r = objective.ridge.row_weights
    nuclear = objective.nuclear.weight * np.eye(rank)
    curvatures, basis = model.curvatures
    solve_U = PencilSolver(objective.design.gram_diagonal, model.project(V), nuclear, model.ridge, V.T @ V)
    solve_V = PencilSolver(curvatures, scores_U.T @ scores_U, objective.ridge.weight * (U.T @ (r * U)) + nuclear)

    def inverse(G: FloatArray) -> FloatArray:
        in_V = solve_V(G[k:]) if basis is None else basis @ solve_V(basis.T @ G[k:])
        return np.vstack([solve_U(G[:k]), in_V])

    return inverse
