r"""Proofs of linear models whose coefficients are factors of a matrix of low rank, or a sparse matrix.

Of factors, neither the coefficients, nor the scores, nor the gradient Z'R are in memory as a whole.

The lower bound is that of :mod:`rbrl.solvers.certificate`, with M = -Z'R. With a nuclear norm, it needs a matrix N that
has no singular value above the nuclear weight :math:`\lambda_3`. Let the columns of Q be an orthonormal basis of the right
factor, let P diag(s) Q' be the singular value decomposition of MQQ', and let E = (I - PP') M (I - QQ') be the rest of M.
Then

.. math:: N = P \operatorname{diag}(c) Q' + t E, \qquad c_i = \min(\theta s_i, \lambda_3), \qquad
          t = \min(\theta, \lambda_3 / \|E\|_F)

is feasible. Its distance from M follows from the norms of M and of its products with P and Q:

.. math:: \|\theta M - N\|_F^2 = \theta^2 \|M\|_F^2 - 2 \theta \Bigl(\sum_i c_i s_i + t \|E\|_F^2\Bigr)
          + \sum_i c_i^2 + t^2 \|E\|_F^2.

The best N has all singular values of M, clipped. E is shrunk by its Frobenius norm instead, because its largest singular
value is not known. So the bound is weaker than the best one if E has many singular values and its norm is above
:math:`\lambda_3`. It is nevertheless true. Without a nuclear norm, N is 0, and nothing is lost.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rbrl._common.frames import as_dense
from rbrl._common.linalg import singular_values, squares
from rbrl._common.matrices import LowRankMatrix
from rbrl._common.typing import FloatArray, Matrix, issparse
from rbrl._loops import rows
from rbrl.problem.design import add_adjoint, last_row_times, scores
from rbrl.problem.objective import Objective
from rbrl.solvers.certificate import PRODUCT_ROUNDING, DualPoint, best_theta, loss_bound, measure_pull
from rbrl.solvers.proof import Proof, build_proof, compute_extended_scores, sum_sizes


def prove_factors(objective: Objective, X: Matrix, W: LowRankMatrix, dual_scores: LowRankMatrix) -> Proof:
    """Return the proof of a linear model in factors.

    Parameters
    ----------
    objective : Objective
        Objective of the model, whose ridge has equal row weights. Only the constant of its design is used.
    X : array or CSR matrix (n_samples, n_features)
        Original features.
    W : LowRankMatrix (n_columns, n_labels)
        Coefficients as they are stored, in single or double precision. If there is one row more than
        features, the last one is the intercept.
    dual_scores : LowRankMatrix (n_samples, n_labels)
        Scores at which the lower bound is computed. The bound holds for any scores.

    Returns
    -------
    Proof
    """
    X = X.astype(np.float64, copy=False)
    W = W.astype(np.float64)
    norms = np.sqrt(np.append(squares(X), [X.shape[0]] * (W.shape[0] - X.shape[1])))
    return prove_value(objective, X, W, factor_bound(objective, X, norms, dual_scores, W.right))


def prove_value(objective: Objective, X: Matrix, W: Any, lower: float) -> Proof:
    """Return the proof of a linear model in any form, with a lower bound that is known.

    Parameters
    ----------
    objective : Objective
        Objective over the original features.
    X : array or CSR matrix (n_samples, n_features)
        Original features.
    W : array, CSR matrix or LowRankMatrix (n_columns, n_labels)
        Coefficients as they are stored. If there is one row more than features, the last one is the
        intercept.
    lower : float
        Lower bound on the optimum.

    Returns
    -------
    Proof
    """
    W = W.astype(np.float64)
    is_factored = isinstance(W, LowRankMatrix)
    F = LowRankMatrix(scores(X, W.left), W.right) if is_factored else partial(_score_rows, X, W)
    here = DualPoint.sum_rows(objective, F)
    norms = np.sqrt(np.append(squares(X.astype(np.float64, copy=False)), [X.shape[0]] * (W.shape[0] - X.shape[1])))
    n_terms = float(1 + np.diff(X.indptr).max(initial=0)) if issparse(X) else float(W.shape[0])
    if is_factored:
        # The scores have the rounding errors of two products.
        n_terms = (np.sqrt(n_terms) + np.sqrt(W.rank)) ** 2
    # The penalties apply to the weight of the constant column, not to the intercept itself.
    scales = np.ones((W.shape[0], 1))
    scales[X.shape[1] :] = 1 / objective.design.constant
    doubt = 0.0
    if is_factored:
        B = LowRankMatrix(scales * W.left, W.right)
        square = float(np.sum((B.left.T @ B.left) * (B.right.T @ B.right)))
        doubt = _bound_penalty_rounding(objective, B)
        score_sizes = partial(_sum_factor_sizes, objective, X, W)
        extended_loss = partial(_extended_factor_loss, objective, X, W)
        sigma = B.singular_values() if objective.nuclear.weight else None
    else:
        B = W.multiply(scales).tocsr() if issparse(W) else scales * W
        square = float(B.data @ B.data if issparse(B) else np.vdot(B, B))
        score_sizes = partial(sum_sizes, X, W)
        extended_loss = partial(_extended_loss, objective, X, W)
        sigma = singular_values(as_dense(B)) if objective.nuclear.weight else None
    value = here.loss.value + 0.5 * objective.ridge.weight * float(objective.ridge.row_weights) * square
    if sigma is not None:
        value += objective.nuclear.weight * float(sigma.sum())
    proof = build_proof(objective, here, norms, W, value, sigma, lower, extended_loss, (n_terms, score_sizes))
    return replace(proof, upper=proof.upper + doubt)


def _bound_penalty_rounding(objective: Objective, W: LowRankMatrix) -> float:
    """Return a bound on the rounding errors of ridge and nuclear norm, from the factors: their columns may cancel."""
    size = float(np.sqrt(squares(W.left)) @ np.sqrt(squares(W.right)))
    unit = PRODUCT_ROUNDING * (np.sqrt(W.shape[0]) + np.sqrt(W.shape[1]) + W.rank)
    ridge = 0.5 * objective.ridge.weight * float(objective.ridge.row_weights)
    return float(unit * (ridge * size**2 + objective.nuclear.weight * W.rank * size))


def _sum_factor_sizes(objective: Objective, X: Matrix, W: LowRankMatrix) -> FloatArray:
    """Return the norms of the columns of |X| |left| |right|', computed in blocks of rows."""
    sizes = LowRankMatrix(scores(abs(X), np.abs(W.left)), np.abs(W.right))
    sums = np.zeros(W.shape[1])
    for part, _, _ in objective.row_blocks(of_factors=True):
        sums += squares(sizes.rows(part))
    return np.sqrt(sums)


def _extended_loss(objective: Objective, X: Matrix, W: Any) -> float:
    """Return the loss of coefficients as an array or a sparse matrix, from scores in extended precision."""
    return objective.loss.value(np.asarray(objective.Y), compute_extended_scores(X, W), objective.sample_weight)


def _extended_factor_loss(objective: Objective, X: Matrix, W: LowRankMatrix) -> float:
    """Return the loss of coefficients in factors, from scores in extended precision."""
    left, right = (factor.astype(np.longdouble) for factor in W)
    m = X.shape[1]
    total = 0.0
    for part, Y, weights in objective.row_blocks():
        left_scores = X[part].astype(np.longdouble) @ left[:m] + left[m:].sum(axis=0)
        F = np.asarray(left_scores @ right.T, dtype=np.float64)
        total += objective.loss.value(Y, F, weights)
    return total


def _score_rows(X: Matrix, W: Any, part: slice) -> FloatArray:
    """Return the scores of some rows, by coefficients as an array or as a sparse matrix."""
    if not issparse(W):
        return scores(X, W, part)
    F = as_dense(X[part].astype(np.float64, copy=False) @ W[: X.shape[1]])
    return F + as_dense(W[X.shape[1] :]) if W.shape[0] > X.shape[1] else F


def factor_bound(
    objective: Objective, X: Matrix, norms: FloatArray, dual_scores: LowRankMatrix, right: FloatArray
) -> float:
    """Return a lower bound on the optimum of a linear problem. Rounding cannot have raised it.

    Parameters
    ----------
    objective : Objective
    X : array or CSR matrix (n_samples, n_features)
    norms : array (n_columns,)
        Norms of the columns of X, and of the column of ones.
    dual_scores : LowRankMatrix (n_samples, n_labels)
        Scores at which the loss gradient R is computed.
    right : array (n_labels, rank)
        Right factor, whose columns span the right singular vectors of N. Better ones give a larger bound.

    Returns
    -------
    float
    """
    ridge = objective.ridge.weight * float(objective.ridge.row_weights)
    nuclear = objective.nuclear.weight
    dual, square, largest = measure_pull(objective, X, norms, dual_scores)
    loss = dual.loss
    if loss.value <= 0 or not (ridge or nuclear):
        return 0.0
    if not nuclear:
        theta = best_theta(loss, largest / (2 * ridge))
        return max(0.0, loss_bound(loss, theta, n_terms=objective.Y.size) - theta**2 * (largest / (2 * ridge)))
    s, error, cross, cross_error, stretch = _project_pull(objective, X, norms, dual_scores, right, dual)
    unit = PRODUCT_ROUNDING * np.sqrt(len(norms) * objective.Y.shape[1])
    if not ridge:
        # The other singular values are at least those of the projection. So the largest one is at most the rest.
        rest = largest * (1 + unit) - float(np.sum((s[1:] / stretch) ** 2))
        theta = best_theta(loss, limit=nuclear / np.sqrt(rest) if rest > 0 else np.inf)
        return max(0.0, loss_bound(loss, theta, n_terms=objective.Y.size))
    # Bounds on the squared norm of E from above and from below. The sum of (|G| - blur)^2 is at least the
    # difference of twice the square and of the largest square.
    known = float(np.sum((s / stretch) ** 2)) + (max(cross - cross_error, 0.0) / stretch) ** 2
    rest = max(largest * (1 + unit) - known, 0.0)
    known = float(np.sum((s + 2 * error) ** 2)) + (cross + cross_error) ** 2
    least_rest = max(2 * square - largest * (1 + unit) - known, 0.0)
    quadratic = loss.quadratic + cross**2 / (2 * ridge)
    sigma = np.append(s, np.sqrt(rest))
    _, theta = rows.clipped_dual_maximum(sigma, loss.linear, quadratic, loss.reach, ridge, nuclear)
    c = np.minimum(theta * s / stretch**2, nuclear / stretch)
    t = min(theta, nuclear / (stretch * np.sqrt(rest))) if rest > 0 else theta
    sums = theta**2 * largest, 2 * theta * float(c @ s + t * least_rest), stretch**2 * float(c @ c + t**2 * rest)
    distance = sums[0] - sums[1] + sums[2] + unit * sum(sums)
    return max(0.0, loss_bound(loss, theta, n_terms=objective.Y.size) - max(distance, 0.0) / (2 * ridge))


def _project_pull(
    objective: Objective, X: Matrix, norms: FloatArray, dual_scores: LowRankMatrix, right: FloatArray, dual: DualPoint
) -> tuple[FloatArray, float, float, float, float]:
    """Return the products of M with P and Q, and bounds on their rounding errors.

    The arguments are those of :func:`factor_bound`, with the dual point at the dual scores. They
    are not changed.

    Returns
    -------
    s : array (rank,)
        Singular values of MQ, lowered by the bound on their rounding errors, to 0 at least.
    error : float
        Bound on the rounding errors of the singular values.
    cross, cross_error : float
        Norm of P'M(I - QQ'), and a bound on its rounding error.
    stretch : float
        Upper bound on the product of the norms of P and Q, which are orthonormal up to rounding.
    """
    constant = objective.design.constant
    Q = np.linalg.qr(right)[0]
    residual = objective.residual_operator(dual_scores)
    pull = last_row_times(add_adjoint(X, residual @ Q, np.zeros((len(norms), Q.shape[1]))), constant)
    norms = last_row_times(norms, constant)
    P, s, turn = np.linalg.svd(pull, full_matrices=False)
    Q = Q @ turn.T
    stretch = 1.0
    for basis in (P, Q):
        unit = PRODUCT_ROUNDING * np.sqrt(len(basis)) * basis.shape[1]
        stretch *= float(np.sqrt(1 + np.linalg.norm(basis.T @ basis - np.eye(len(s))) + unit))
    # Rounding errors of R, of R Q, of its product with X', and of the decomposition.
    in_labels = dual.blur + PRODUCT_ROUNDING * np.sqrt(len(Q)) * dual.sizes
    rounding = PRODUCT_ROUNDING * np.sqrt(pull.size) * s.max(initial=0.0)
    error = np.linalg.norm(norms) * np.linalg.norm(in_labels @ np.abs(Q)) + rounding
    across = residual.T @ scores(X, last_row_times(P, constant))
    across -= Q @ (Q.T @ across)
    # The product with X has as many terms as X has columns.
    in_labels = dual.blur + PRODUCT_ROUNDING * np.sqrt(len(norms)) * dual.sizes
    cross_error = np.linalg.norm(norms @ np.abs(P)) * np.linalg.norm(in_labels) + rounding
    return np.maximum(s - error, 0.0), float(error), float(np.linalg.norm(across)), float(cross_error), stretch
