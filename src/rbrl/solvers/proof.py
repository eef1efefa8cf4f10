r"""The objective and the gap that a fit reports: those of the coefficients as they are stored.

A solver works in coordinates of its own, in which directions are rounded and the smallest left out. So its result is
judged once more by the original X or K, in one evaluation: a product with the coefficients gives the objective, one with
the loss gradient the lower bound. What rounding can hide in either is added to the gap.

A sum of k products is taken to be off by at most :math:`8\sqrt{k}\,u` of the norms that are multiplied, with the unit
roundoff u: the probabilistic bound of Higham and Mary (2019), which sums in double precision stay far below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.linalg import gram_eigh, singular_values, squares
from rbrl._common.typing import FloatArray, Matrix, issparse
from rbrl.losses import Terms
from rbrl.problem.design import RowDesign, add_adjoint, extended_scores, last_row_times, scores
from rbrl.problem.objective import Objective, block_size
from rbrl.solvers.certificate import (
    ROUNDING,
    Blur,
    along,
    best_theta,
    lower_bound,
    maximise_reweighted,
    relative_gap,
    shrink_factor,
    weights_bound,
)
from rbrl.solvers.dual_point import DualPoint, label_blocks, measure_dual, ridge_bound

# An objective that rounding of the scores may have moved by more than this share is computed anew in extended precision.
DOUBTFUL = 5e-10
# A lower bound is nearly the best where it makes the gap larger by this share at most.
NEARLY = 0.05
# Entries of X in extended precision at a time: 64 MB.
EXTENDED_ENTRIES = 2**22


@dataclass(frozen=True)
class Proof:
    """Objective and certified relative gap of stored coefficients.

    `sigma` has their singular values, largest first, or is None for a linear model without a nuclear norm.
    """

    objective: float
    gap: float
    sigma: FloatArray | None


def prove_linear(
    objective: Objective, X: Matrix, W: FloatArray, dual_scores: FloatArray, design: RowDesign | None = None
) -> Proof:
    """The proof of a linear model.

    Parameters
    ----------
    objective : Objective
        Its loss, labels, ridge and nuclear norm count, not its design, but for the ridge weights of that and the constant of
        the intercept's column.
    X : array or CSR matrix (n_samples, n_features)
        Features as they were given.
    W : array (n_columns, n_labels)
        Coefficients as they are stored; one row more than there are features is that of the intercept.
    dual_scores : array (n_samples, n_labels)
        Any scores; those at which the solver found its best bound serve best.
    design : RowDesign, default=None
        Where the penalties are those of weights over a design of X, not of W itself.

    Returns
    -------
    Proof
    """
    if design is None and _has_ridge_alone(objective):
        return _prove_ridge_model(objective, X, W, dual_scores)
    if issparse(X) and design is None:
        X, W = _present_columns(X, W)
    here, norms, rounding = _measure_scores(objective, X, W)
    extended = partial(_extended_loss, objective, X, W)
    if design is not None:
        dual, R = DualPoint.at(objective, dual_scores)
        return prove_sums(objective, norms, W, here, [(dual, design.adjoint(R))], extended, design)
    G = np.zeros(W.shape)
    dual = DualPoint.sum_rows(objective, lambda rows: dual_scores[rows], lambda rows, R: add_adjoint(X[rows], R, G))
    # The penalties see the weight of the intercept's column, not the intercept.
    constant = objective.design.constant
    if constant != 1.0:
        norms[-1] *= constant
        G[-1] *= constant
    B = last_row_times(W, 1 / constant)
    return prove_sums(objective, norms, B, here, [(dual, G)], extended, rounding=rounding)


def _has_ridge_alone(objective: Objective) -> bool:
    """Return whether the ridge is the only penalty, so that the bound needs the norm of Z'R and nothing else of it."""
    has_one_weight = isinstance(objective.ridge.row_weights, float)
    return has_one_weight and objective.ridge.weight > 0 and objective.nuclear.weight == 0


def _prove_ridge_model(objective: Objective, X: Matrix, W: FloatArray, dual_scores: FloatArray) -> Proof:
    """Return the proof of a linear model whose only penalty is the ridge. It needs no copy of X or W."""
    here, norms, rounding = _measure_scores(objective, X, W)
    bound = ridge_bound(objective, *measure_dual(objective, X, norms, dual_scores))
    square = float(objective.ridge.row_weights) * _squared_norm(W, 1 / objective.design.constant)
    extended = partial(_extended_loss, objective, X, W)
    return _proof(objective, here, norms, W, square, None, bound, extended_loss=extended, rounding=rounding)


def _measure_scores(objective: Objective, X: Matrix, W: FloatArray) -> "tuple[DualPoint, FloatArray, ScoreRounding]":
    """Return the point at the scores of W, the norms of the columns of X, and what bounds the rounding of the scores."""
    here = DualPoint.sum_rows(objective, lambda rows: scores(X[rows], W))
    intercept = len(W) - X.shape[1]
    norms = np.sqrt(np.append(squares(X.astype(np.float64, copy=False)), [X.shape[0]] * intercept))
    if issparse(X):
        n_terms = intercept + int(np.diff(X.indptr).max(initial=0))
        return here, norms, ScoreRounding(n_terms, partial(_sum_sizes, X, W))
    return here, norms, ScoreRounding(intercept + X.shape[1])


def _squared_norm(W: FloatArray, last_factor: float) -> float:
    """Return the squared norm of W with its last row times a factor."""
    if last_factor == 1.0:
        return float(np.vdot(W, W))
    last = last_factor * W[-1]
    return float(np.vdot(W[:-1], W[:-1])) + float(np.vdot(last, last))


def _present_columns(X: Any, W: FloatArray) -> tuple[Any, FloatArray]:
    """Return the columns of X that are not empty, with their weights; all of them if an empty one has weights.

    Of text, most columns may be empty in the training rows.
    """
    present = np.bincount(X.indices, minlength=X.shape[1]) > 0
    if present.all() or W[: X.shape[1]][~present].any():
        return X, W
    return X[:, present], W[np.append(present, np.ones(len(W) - X.shape[1], dtype=bool))]


class ScoreRounding(NamedTuple):
    """What bounds the rounding of scores.

    Attributes
    ----------
    n_terms : int
        Largest number of products in a score.
    sizes : callable or None
        Computes the norms of the columns of |X| |W|, which are far smaller for sparse rows than what norms of the columns of
        X tell of them.
    """

    n_terms: int
    sizes: Callable[[], FloatArray] | None = None


def _sum_sizes(X: Matrix, W: FloatArray) -> FloatArray:
    """Return the norms of the columns of |X| |W|, some labels and some rows at a time."""
    sums = np.zeros(W.shape[1])
    for labels in label_blocks(len(W), W.shape[1]):
        sizes = np.abs(W[:, labels])
        step = max(1, block_size(X.shape[0] * W.shape[1]) // sizes.shape[1])
        for start in range(0, X.shape[0], step):
            sums[labels] += squares(scores(abs(X[start : start + step]), sizes))
    return np.sqrt(sums)


def _extended_scores(X: Matrix, W: FloatArray) -> FloatArray:
    """Compute scores of coefficients W by products in extended precision, some rows and some labels at a time."""
    step = max(1, EXTENDED_ENTRIES // (X.shape[1] + 1))
    F = np.empty((X.shape[0], W.shape[1]))
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        for labels in label_blocks(len(W), W.shape[1]):
            F[start : start + step, labels] = extended_scores(rows, W[:, labels])
    return F


def _extended_loss(objective: Objective, X: Matrix, W: FloatArray) -> float:
    """The loss of coefficients W, by scores in extended precision."""
    return objective.loss.value(objective.Y, _extended_scores(X, W), objective.sample_weight)


def prove_sums(
    objective: Objective, norms: FloatArray, W: FloatArray, here: DualPoint, duals: list[tuple[DualPoint, FloatArray]],
    extended_loss: Callable[[], float], design: RowDesign | None = None, rounding: ScoreRounding | None = None,
) -> Proof:  # fmt: skip
    """The proof of a linear model from sums over its rows.

    Parameters
    ----------
    norms : array (n_columns,)
        Norms of the columns of X.
    here : DualPoint
        At the scores of W.
    duals : list of (DualPoint, array X'R)
        The best of them counts.
    extended_loss : callable
        The loss at W by scores in extended precision: asked for where rounding shows.
    design : RowDesign, default=None
        As for :func:`prove_linear`; the arrays of the duals are then Z'R.
    rounding : ScoreRounding, default=None
        None means as many products in a score as there are columns.
    """
    B, scales = (W, norms) if design is None else (design.weights(W), np.sqrt(design.gram_diagonal))
    r = objective.ridge.row_weights
    square = r * float(np.vdot(B, B)) if isinstance(r, float) else float(np.sum(r * B**2))
    sigma = singular_values(B) if objective.nuclear.weight else None
    value = _objective_value(objective, here, square, sigma)
    bounds = [_rounded_bound(objective, B, dual.loss, G, Blur(scales, dual.blur), value) for dual, G in duals]
    return _proof(objective, here, norms, W, square, sigma, max(bounds), extended_loss=extended_loss, rounding=rounding)


def _rounded_bound(
    objective: Objective, W: FloatArray, loss: Terms, adjoint: FloatArray, blur: Blur, value: float
) -> float:
    """Return a lower bound that rounding cannot have raised: the one that weights suggest where it is nearly the best.

    `value` is the objective.
    """
    if not (objective.nuclear.weight and objective.ridge.weight and isinstance(objective.ridge.row_weights, float)):
        return lower_bound(objective, W, loss, adjoint, blur)
    quick = weights_bound(objective, W, loss, adjoint, blur)
    best = lower_bound(objective, W, loss, adjoint)
    return quick if best - quick <= NEARLY * (value - best) else lower_bound(objective, W, loss, adjoint, blur)


def prove_kernel(objective: Objective, K: FloatArray, A: FloatArray, dual_scores: FloatArray) -> Proof:
    r"""The proof of a kernel model with low rank of coefficients, over a design whose spectrum is only nearly that of K.

    The design proposes N = K n; what counts is computed with K. Scaling keeps it so, and the last term of the bound is
    :math:`\langle u, Ku \rangle / 2\lambda_1` with :math:`u = -\theta R - n`.

    Parameters
    ----------
    objective : Objective
        Over a `SpectralDesign`.
    K : array (n_samples, n_samples)
    A : array (n_samples, n_labels)
        Coefficients as they are stored.
    dual_scores : array
        As for :func:`prove_linear`.
    """
    design, ridge, nuclear = objective.design, objective.ridge.weight, objective.nuclear.weight
    dual, R = DualPoint.at(objective, dual_scores)
    n = np.zeros_like(R)
    if ridge and nuclear and dual.loss.value > 0:
        r = design.ridge_weights
        n = design.Q @ (maximise_reweighted(dual.loss, -design.adjoint(R), design.weights(A), ridge, r, nuclear)[2] / r)
    F, KR, N = np.hsplit(K @ np.hstack([A, R, n]), 3)
    norms, sigma = np.sqrt(squares(K)), np.linalg.svd(A, compute_uv=False)
    if ridge == 0:
        bound = lower_bound(objective, A, dual.loss, KR, Blur(norms, dual.blur))
    else:
        blur = ROUNDING * np.sqrt(len(K)) * np.sqrt(squares(n))
        shrink = shrink_factor(N, nuclear, float(np.linalg.norm(norms) * np.linalg.norm(blur)))
        n, N, blur = shrink * n, shrink * N, shrink * blur
        theta = best_theta(dual.loss, float(np.vdot(R, KR)) / (2 * ridge), -float(np.vdot(R, N)) / ridge)
        u = -theta * R - n
        # What rounding hides may be beyond all numbers: then nothing is proved.
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(np.vdot(u, -theta * KR - N)) + float(norms @ np.abs(u) @ (theta * dual.blur + blur))
        square = max(square, 0.0) if np.isfinite(square) else np.inf
        bound = along(dual.loss, theta, n_terms=R.size) - square / (2 * ridge)
    return _kernel_proof(objective, norms, A, F, sigma, max(bound, 0.0), K)


def prove_function(
    objective: Objective, product: Callable[[FloatArray], FloatArray], norms: FloatArray, A: FloatArray,
    dual_scores: FloatArray, K: FloatArray | None = None,
) -> Proof:  # fmt: skip
    r"""The proof of a kernel model with low rank of the function :math:`\Phi(X)'A`, whose squared singular values are those
    of :math:`A'KA`.

    Parameters
    ----------
    product : callable
        From a matrix V to K V.
    norms : array (n_samples,)
        Norms of the columns of K.
    objective, A, dual_scores
        As for :func:`prove_kernel`; any design without ridge weights will do.
    K : array (n_samples, n_samples), default=None
        If it is at hand, products that cancel are computed anew in extended precision.
    """
    dual, R = DualPoint.at(objective, dual_scores)
    left, scale, right = np.linalg.svd(A, full_matrices=False)
    KL, KR = np.hsplit(product(np.hstack([left, R])), [len(scale)])
    # Rounding leaves these Gram matrices not quite symmetric.
    inner, pulls = (0.5 * (G + G.T) for G in (left.T @ KL, R.T @ KR))
    F, (values, V) = (KL * scale) @ right, gram_eigh(inner)
    # Of K^(1/2) L diag(scale): the scale, whose small entries are the rounding of A, is not squared.
    sigma = np.linalg.svd(np.sqrt(values)[:, None] * V.T * scale, compute_uv=False)
    # A gradient with these singular values, what rounding can hide of it included, has the same bound.
    pull = np.diag(np.sqrt(gram_eigh(pulls)[0] + float(norms @ np.abs(R) @ dual.blur)))
    bound = lower_bound(objective, A, dual.loss, pull, Blur(np.zeros(len(pull)), np.zeros(len(pull))))
    return _kernel_proof(objective, norms, A, F, sigma, bound, K)


def _kernel_proof(
    objective: Objective, norms: FloatArray, A: FloatArray, F: FloatArray, sigma: FloatArray, bound: float,
    K: FloatArray | None,
) -> Proof:  # fmt: skip
    """The proof of coefficients A with scores F = K A; their square <A, F> can cancel, too, but is not negative."""
    here, ridge, square = DualPoint.at(objective, F)[0], 0.5 * objective.ridge.weight, max(float(np.vdot(A, F)), 0.0)

    def extended() -> float:
        """The loss, with what extended precision changes in the square."""
        G = _extended_scores(K, A)
        change = ridge * (max(float(np.vdot(A, G)), 0.0) - square)
        return objective.loss.value(objective.Y, G, objective.sample_weight) + change

    pull = ridge * np.sqrt(squares(A))
    rounding = None if K is None else ScoreRounding(len(A), partial(_sum_sizes, K, A))
    return _proof(objective, here, norms, A, square, sigma, bound, pull, None if K is None else extended, rounding)


def _proof(
    objective: Objective, here: DualPoint, norms: FloatArray, W: FloatArray, square: float, sigma: FloatArray | None,
    bound: float, pull: float | FloatArray = 0.0, extended_loss: Callable[[], float] | None = None,
    rounding: ScoreRounding | None = None,
) -> Proof:  # fmt: skip
    """The objective, and a gap with what rounding can have taken from it: scores are off by their rounding, and with them
    the loss, and what else they `pull` at; sums are off by their own."""
    value = _objective_value(objective, here, square, sigma)
    n_terms, sizes = rounding or ScoreRounding(len(W))
    unit = ROUNDING * np.sqrt(n_terms)
    in_scores = unit * _sum_weighted(norms, W, here.sizes + pull)
    if sizes is not None and in_scores > DOUBTFUL * value:
        in_scores = unit * float(sizes() @ (here.sizes + pull))
    in_loss = float(here.score_sizes @ here.own_rounding)
    doubt = in_scores + in_loss + ROUNDING * np.sqrt(objective.Y.size) * value
    if extended_loss is not None and doubt > DOUBTFUL * value:
        # The doubt stays in the gap: what extended precision is worth depends on the machine.
        value += extended_loss() - here.loss.value
    return Proof(value, relative_gap(value + doubt, bound), sigma)


def _sum_weighted(norms: FloatArray, W: FloatArray, sizes: FloatArray) -> float:
    """Return norms' |W| sizes, some rows of W at a time."""
    total = 0.0
    step = max(1, block_size(W.size) // max(W.shape[1], 1))
    for start in range(0, len(W), step):
        part = slice(start, start + step)
        total += float(norms[part] @ (np.abs(W[part]) @ sizes))
    return total


def _objective_value(objective: Objective, here: DualPoint, square: float, sigma: FloatArray | None) -> float:
    """Return the objective, from the loss, the squared norm of the weights, and their singular values if they count."""
    norm = 0.0 if sigma is None else float(sigma.sum())
    return here.loss.value + 0.5 * objective.ridge.weight * square + objective.nuclear.weight * norm
