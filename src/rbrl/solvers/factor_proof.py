r"""Proofs of linear models whose coefficients are factors of a matrix of low rank, or a sparse matrix.

Of factors, neither the coefficients, nor the scores, nor the gradient Z'R are in memory as a whole.

The lower bound is that of :mod:`rbrl.solvers.certificate`, with M = -Z'R. With a nuclear norm, it needs a matrix N that
has no singular value above the nuclear weight :math:`\lambda_3`. Let the columns of Q be an orthonormal basis of the right
factor, and let P diag(s) Q' be the singular value decomposition of MQQ'. Then

.. math:: N = P \operatorname{diag}(c) Q', \qquad c_i = \min(\theta s_i, \lambda_3)

is feasible, and its distance from M follows from three sums, because :math:`\langle M, N \rangle = \sum_i c_i s_i`:

.. math:: \|\theta M - N\|_F^2 = \theta^2 \|M\|_F^2 - 2 \theta \sum_i c_i s_i + \sum_i c_i^2.

The best N has all singular values of M, clipped. So the bound is weaker than the best one where the nuclear norm would
change other directions than those of the right factor. It is nevertheless true. Without a nuclear norm, N is 0, and
nothing is lost.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rbrl._common.frames import as_dense
from rbrl._common.linalg import singular_values, squares
from rbrl._common.low_rank import LowRankMatrix
from rbrl._common.typing import FloatArray, Matrix, issparse
from rbrl._loops import rows
from rbrl.problem.design import add_adjoint, last_row_times, scores
from rbrl.problem.objective import Objective
from rbrl.solvers.certificate import PRODUCT_ROUNDING, DualPoint, best_theta, loss_bound, measure_pull
from rbrl.solvers.proof import Proof, build_proof


def prove_factors(objective: Objective, X: Matrix, W: LowRankMatrix, dual_scores: FloatArray | LowRankMatrix) -> Proof:
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
    dual_scores : array or LowRankMatrix (n_samples, n_labels)
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
    score_sizes = None
    doubt = 0.0
    if is_factored:
        B = LowRankMatrix(scales * W.left, W.right)
        square = float(np.sum((B.left.T @ B.left) * (B.right.T @ B.right)))
        doubt = _bound_penalty_rounding(objective, B)
        score_sizes = partial(_sum_factor_sizes, objective, X, W)
        sigma = B.singular_values() if objective.nuclear.weight else None
    else:
        B = W.multiply(scales).tocsr() if issparse(W) else scales * W
        square = float(B.data @ B.data if issparse(B) else np.vdot(B, B))
        sigma = singular_values(as_dense(B)) if objective.nuclear.weight else None
    value = here.loss.value + 0.5 * objective.ridge.weight * float(objective.ridge.row_weights) * square
    if sigma is not None:
        value += objective.nuclear.weight * float(sigma.sum())
    proof = build_proof(objective, here, norms, W, value, sigma, lower, None, (n_terms, score_sizes))
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


def _score_rows(X: Matrix, W: Any, part: slice) -> FloatArray:
    """Return the scores of some rows, by coefficients as an array or as a sparse matrix."""
    if not issparse(W):
        return scores(X, W, part)
    F = as_dense(X[part].astype(np.float64, copy=False) @ W[: X.shape[1]])
    return F + as_dense(W[X.shape[1] :]) if W.shape[0] > X.shape[1] else F


def factor_bound(
    objective: Objective, X: Matrix, norms: FloatArray, dual_scores: FloatArray | LowRankMatrix, right: FloatArray
) -> float:
    """Return a lower bound on the optimum of a linear problem. Rounding cannot have raised it.

    Parameters
    ----------
    objective : Objective
    X : array or CSR matrix (n_samples, n_features)
    norms : array (n_columns,)
        Norms of the columns of X, and of the column of ones.
    dual_scores : array or LowRankMatrix (n_samples, n_labels)
        Scores at which the loss gradient R is computed.
    right : array (n_labels, rank)
        Right factor, whose columns span the right singular vectors of N. Better ones give a larger bound.

    Returns
    -------
    float
    """
    ridge = objective.ridge.weight * float(objective.ridge.row_weights)
    nuclear = objective.nuclear.weight
    dual, _, largest = measure_pull(objective, X, norms, dual_scores)
    loss = dual.loss
    if loss.value <= 0 or not (ridge or nuclear):
        return 0.0
    if not nuclear:
        theta = best_theta(loss, largest / (2 * ridge))
        return max(0.0, loss_bound(loss, theta, n_terms=objective.Y.size) - theta**2 * (largest / (2 * ridge)))
    s, stretch = _project_pull(objective, X, norms, dual_scores, right, dual)
    if not ridge:
        # The other singular values are at least those of the projection. So the largest one is at most the rest.
        rest = largest - float(np.sum((s[1:] / stretch) ** 2))
        size = np.sqrt(max(rest, 0.0) + PRODUCT_ROUNDING * np.sqrt(objective.Y.size + len(norms)) * largest)
        theta = best_theta(loss, limit=nuclear / size if size > 0 else np.inf)
        return max(0.0, loss_bound(loss, theta, n_terms=objective.Y.size))
    rest = max(largest - float(s @ s), 0.0)
    quadratic = loss.quadratic + rest / (2 * ridge)
    _, theta = rows.clipped_dual_maximum(s, loss.linear, quadratic, loss.reach, ridge, nuclear)
    c = np.minimum(theta * s / stretch**2, nuclear / stretch)
    sums = theta**2 * largest, 2 * theta * float(c @ s), stretch**2 * float(c @ c)
    distance = sums[0] - sums[1] + sums[2]
    distance += PRODUCT_ROUNDING * np.sqrt(len(norms) * objective.Y.shape[1]) * sum(sums)
    return max(0.0, loss_bound(loss, theta, n_terms=objective.Y.size) - max(distance, 0.0) / (2 * ridge))


def _project_pull(
    objective: Objective, X: Matrix, norms: FloatArray, dual_scores: Any, right: FloatArray, dual: DualPoint
) -> tuple[FloatArray, float]:
    """Return the singular values of Z'R in the span of a right factor, in descending order.

    They are lowered by bounds on their rounding errors, to 0 at least. The second result is an upper bound on
    the product of the norms of the two bases, which are orthonormal up to rounding.
    """
    scores_of = dual_scores if isinstance(dual_scores, LowRankMatrix) else dual_scores.__getitem__
    Q = np.linalg.qr(right)[0]
    RQ = np.empty((X.shape[0], Q.shape[1]))
    for part, _, _, _, R in objective.evaluate_rows(scores_of):
        RQ[part] = R @ Q
    pull = add_adjoint(X, RQ, np.zeros((len(norms), Q.shape[1])))
    constant = objective.design.constant
    if constant != 1.0:
        pull[-1] *= constant
        norms = last_row_times(norms, constant)
    P, s, turn = np.linalg.svd(pull, full_matrices=False)
    Q = Q @ turn.T
    stretch = 1.0
    for basis in (P, Q):
        unit = PRODUCT_ROUNDING * np.sqrt(len(basis)) * basis.shape[1]
        stretch *= float(np.sqrt(1 + np.linalg.norm(basis.T @ basis - np.eye(len(s))) + unit))
    # Rounding errors of R, of R Q, of its product with X', and of the decomposition.
    in_labels = dual.blur + PRODUCT_ROUNDING * np.sqrt(len(Q)) * dual.sizes
    products = np.linalg.norm(norms) * np.linalg.norm(in_labels @ np.abs(Q))
    errors = products + PRODUCT_ROUNDING * np.sqrt(pull.size) * s.max(initial=0.0)
    return np.maximum(s - errors, 0.0), stretch
