r"""Proofs: the objective and the certified gap of coefficients as they are stored.

A solver works in coordinates of its own, in which directions are rounded and the smallest ones are
left out. So its result is certified once more with the original X or K. It takes one evaluation: a
product with the coefficients gives the objective, and a product with the loss gradient gives the
lower bound. Bounds on the rounding errors of both are added to the gap.

The rounding error of a sum of k products is assumed to be at most :math:`8\sqrt{k}\,u` times the
product of the norms of the factors, with the unit roundoff u. This is the probabilistic bound of Higham and
Mary (2019). Sums in double precision stay far below it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rbrl._common.environment import block_size
from rbrl._common.frames import as_dense
from rbrl._common.linalg import gram_eigh, singular_values, squares
from rbrl._common.matrices import LowRankMatrix
from rbrl._common.typing import FloatArray, Matrix, issparse
from rbrl.losses import Terms
from rbrl.problem.design import RowDesign, add_adjoint, extended_scores, last_row_times, scores
from rbrl.problem.linear import drop_empty_columns
from rbrl.problem.objective import Objective
from rbrl.solvers.certificate import (
    BLOCK_ENTRIES,
    PRODUCT_ROUNDING,
    Blur,
    DualPoint,
    best_theta,
    label_blocks,
    loss_bound,
    lower_bound,
    maximise_by_reweighting,
    relative_gap,
    ridge_bound,
    shrink_factor,
    weights_bound,
)

# Quantities that bound the rounding errors of scores: the largest number of products in a score, and
# a function that computes the norms of the columns of |X| |W|. For sparse rows, these norms give a
# much smaller bound than the norms of the columns of X.
Rounding = tuple[float, Callable[[], FloatArray] | None]
# Largest relative rounding error of an objective in double precision. With a larger one, extended
# precision is used.
DOUBTFUL = 1e-10
# Largest relative increase of the gap for which a lower bound counts as nearly the best one.
NEARLY = 0.05


@dataclass(frozen=True)
class Proof:
    """Objective of stored coefficients, and bounds that certify its distance from the optimum.

    Attributes
    ----------
    objective : float
        Objective as it was computed.
    upper : float
        Upper bound on the exact objective, which includes rounding errors.
    lower : float
        Lower bound on the optimum, which rounding cannot have raised.
    sigma : array or None
        Singular values of the coefficients, largest first. None for a linear model without a
        nuclear norm.
    """

    objective: float
    upper: float
    lower: float
    sigma: FloatArray | None = None

    @property
    def gap(self) -> float:
        """The certified relative gap: the distance of the objective from the optimum is at most this share of it."""
        return relative_gap(self.upper, self.lower)

    @classmethod
    def of_sum(cls, proofs: "Sequence[Proof]") -> "Proof":
        """Return the proof of the sum of objectives that have no weights in common."""
        sums = (sum(getattr(proof, name) for proof in proofs) for name in ("objective", "upper", "lower"))
        return cls(*sums)


def prove_linear(
    objective: Objective, X: Matrix, W: FloatArray, dual_scores: FloatArray, design: RowDesign | None = None
) -> Proof:
    """Return the proof of a linear model.

    Parameters
    ----------
    objective : Objective
        Objective of the model. Only the ridge weights and the constant of its design are used.
    X : array or CSR matrix (n_samples, n_features)
        Original features.
    W : array (n_columns, n_labels)
        Coefficients as they are stored, in single or double precision. If there is one row more than
        features, the last one is the intercept.
    dual_scores : array (n_samples, n_labels)
        Scores at which the lower bound is computed. The bound holds for any scores. It is good at
        the scores at which the solver found its best bound.
    design : RowDesign, default=None
        Design of X over whose weights the penalties are defined. None means that they are defined
        over W.
    """
    r = objective.ridge.row_weights
    only_ridge = design is None and isinstance(r, float) and objective.ridge.weight > 0 and not objective.nuclear.weight
    if not (issparse(X) and only_ridge):
        W = W.astype(np.float64, copy=False)
    if issparse(X) and design is None and not only_ridge:
        X, W = _drop_empty_columns(X, W)
    here = DualPoint.sum_rows(objective, partial(scores, X, W))
    intercept = len(W) - X.shape[1]
    norms = np.sqrt(np.append(squares(X.astype(np.float64, copy=False)), [X.shape[0]] * intercept))
    rounding = None
    if issparse(X):
        rounding = intercept + int(np.diff(X.indptr).max(initial=0)), partial(sum_sizes, X, W)

    def extended_loss() -> float:
        """Return the loss of the coefficients, from scores in extended precision."""
        return objective.loss.value(np.asarray(objective.Y), compute_extended_scores(X, W), objective.sample_weight)

    constant = objective.design.constant
    if only_ridge:
        # This proof needs no copy of X or W.
        bound = ridge_bound(objective, X, norms, dual_scores)
        penalised = [W] if constant == 1.0 else [W[:-1], (1 / constant) * W[-1].astype(np.float64)]
        # Squares are summed in double precision, without a copy of W.
        squared_norms = (
            np.vdot(B, B) if B.dtype == np.float64 else np.einsum("kj,kj->", B, B, dtype=np.float64) for B in penalised
        )
        square = float(r) * float(sum(squared_norms))
        value = here.loss.value + 0.5 * objective.ridge.weight * square
        return build_proof(objective, here, norms, W, value, None, bound, extended_loss, rounding)
    if design is not None:
        dual, R = DualPoint.at(objective, dual_scores)
        return prove_sums(objective, norms, W, here, [(dual, design.adjoint(R))], extended_loss, design)
    G = np.zeros(W.shape)
    dual = DualPoint.sum_rows(objective, dual_scores.__getitem__, lambda part, R: add_adjoint(X[part], R, G))
    # The penalties apply to the weight of the constant column, not to the intercept itself.
    norms = last_row_times(norms, constant)
    if constant != 1.0:
        G[-1] *= constant
    B = last_row_times(W, 1 / constant)
    return prove_sums(objective, norms, B, here, [(dual, G)], extended_loss, rounding=rounding)


def _drop_empty_columns(X: Any, W: FloatArray) -> tuple[Any, FloatArray]:
    """Return the columns of X that are not empty, with their weights; all columns if an empty one has weights.

    In text, most columns may be empty in the training rows.
    """
    m = X.shape[1]
    kept, present = drop_empty_columns(X)
    if kept is X or np.delete(W[:m], present, axis=0).any():
        return X, W
    return kept, W[np.append(present, np.arange(m, len(W)))]


def sum_sizes(X: Matrix, W: FloatArray) -> FloatArray:
    """Return the norms of the columns of |X| |W|, computed in blocks of labels and rows."""
    sums = np.zeros(W.shape[1])
    for labels in label_blocks(*W.shape):
        sizes = np.abs(as_dense(W[:, labels]))
        step = max(1, block_size(X.shape[0] * W.shape[1]) // sizes.shape[1])
        for start in range(0, X.shape[0], step):
            sums[labels] += squares(scores(abs(X[start : start + step]), sizes))
    return np.sqrt(sums)


def compute_extended_scores(X: Matrix, W: FloatArray) -> FloatArray:
    """Compute the scores of coefficients, an array or a sparse matrix, in extended precision and in blocks."""
    step = max(1, BLOCK_ENTRIES // (X.shape[1] + 1))
    F = np.empty((X.shape[0], W.shape[1]))
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        for labels in label_blocks(*W.shape):
            F[start : start + step, labels] = extended_scores(rows, as_dense(W[:, labels]))
    return F


def prove_sums(
    objective: Objective, norms: FloatArray, W: FloatArray, here: DualPoint, duals: list[tuple[DualPoint, FloatArray]],
    extended_loss: Callable[[], float], design: RowDesign | None = None, rounding: Rounding | None = None,
) -> Proof:  # fmt: skip
    """Return the proof of a linear model from sums over its rows.

    Parameters
    ----------
    objective : Objective
    norms : array (n_columns,)
        Norms of the columns of X.
    W : array (n_columns, n_labels)
        Coefficients as they are stored.
    here : DualPoint
        Dual point at the scores of W.
    duals : list of (DualPoint, array X'R)
        Dual points from which lower bounds are computed. The largest bound is used.
    extended_loss : callable
        Function that computes the loss at W in extended precision. It is called if rounding may
        change the objective by more than a share of `DOUBTFUL`.
    design : RowDesign, default=None
        Design of X over whose weights the penalties are defined, with arrays Z'R in `duals`. None
        means that the penalties are defined over W.
    rounding : Rounding, default=None
        Rounding of the scores. None means that a score has as many products as there are columns.
    """
    B = W if design is None else design.weights(W)
    scales = norms if design is None else np.sqrt(design.gram_diagonal)
    r = objective.ridge.row_weights
    square = r * float(np.vdot(B, B)) if isinstance(r, float) else float(np.sum(r * B**2))
    sigma = singular_values(B) if objective.nuclear.weight else None
    value = here.loss.value + 0.5 * objective.ridge.weight * square
    if sigma is not None:
        value += objective.nuclear.weight * float(sigma.sum())
    has_quick_bound = objective.nuclear.weight and objective.ridge.weight and isinstance(r, float)
    bounds = []
    for dual, G in duals:
        terms = objective, B, dual.loss, G, Blur(scales, dual.blur)
        bounds.append(_quick_bound(*terms, value) if has_quick_bound else lower_bound(*terms))
    return build_proof(objective, here, norms, W, value, sigma, max(bounds), extended_loss, rounding)


def _quick_bound(
    objective: Objective, W: FloatArray, loss: Terms, adjoint: FloatArray, blur: Blur, value: float
) -> float:
    """Return a lower bound that rounding cannot have raised.

    It is the quick bound of :func:`weights_bound` if that is nearly the best one. `value` is the
    objective at W.
    """
    quick = weights_bound(objective, W, loss, adjoint, blur)
    best = lower_bound(objective, W, loss, adjoint)
    return quick if best - quick <= NEARLY * (value - best) else lower_bound(objective, W, loss, adjoint, blur)


def prove_kernel(objective: Objective, K: FloatArray, A: FloatArray, dual_scores: FloatArray) -> Proof:
    r"""Return the proof of a kernel model with low rank of the coefficients.

    The eigenvalues of the design are only nearly those of K. So the design proposes a matrix N = K
    n, and the bound is computed with K itself. The last term of the bound is
    :math:`\langle u, Ku \rangle / 2\lambda_1` with :math:`u = -\theta R - n`.

    Parameters
    ----------
    objective : Objective
        Objective over a `SpectralDesign`.
    K : array (n_samples, n_samples)
    A : array (n_samples, n_labels)
        Coefficients as they are stored.
    dual_scores : array (n_samples, n_labels)
        Scores at which the lower bound is computed.
    """
    design = objective.design
    ridge = objective.ridge.weight
    nuclear = objective.nuclear.weight
    A = A.astype(np.float64, copy=False)
    dual, R = DualPoint.at(objective, dual_scores)
    n = np.zeros_like(R)
    if ridge and nuclear and dual.loss.value > 0:
        r = design.ridge_weights
        _, _, proposed = maximise_by_reweighting(dual.loss, -design.adjoint(R), design.weights(A), ridge, r, nuclear)
        n = design.Q @ (proposed / r)
    F, KR, N = np.hsplit(K @ np.hstack([A, R, n]), 3)
    norms = np.sqrt(squares(K))
    sigma = np.linalg.svd(A, compute_uv=False)
    if ridge == 0:
        bound = lower_bound(objective, A, dual.loss, KR, Blur(norms, dual.blur))
    else:
        blur = PRODUCT_ROUNDING * np.sqrt(len(K)) * np.sqrt(squares(n))
        shrink = shrink_factor(N, nuclear, float(np.linalg.norm(norms) * np.linalg.norm(blur)))
        n = shrink * n
        N = shrink * N
        blur = shrink * blur
        theta = best_theta(dual.loss, float(np.vdot(R, KR)) / (2 * ridge), -float(np.vdot(R, N)) / ridge)
        u = -theta * R - n
        # The bound on the rounding error may overflow. Then nothing is proved.
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(np.vdot(u, -theta * KR - N)) + float(norms @ np.abs(u) @ (theta * dual.blur + blur))
        square = max(square, 0.0) if np.isfinite(square) else np.inf
        bound = loss_bound(dual.loss, theta, n_terms=R.size) - square / (2 * ridge)
    return _kernel_proof(objective, norms, A, F, sigma, max(bound, 0.0), K)


def prove_function(
    objective: Objective, product: Callable[[FloatArray], FloatArray], norms: FloatArray, A: FloatArray,
    dual_scores: FloatArray, K: FloatArray | None = None,
) -> Proof:  # fmt: skip
    r"""Return the proof of a kernel model with low rank of the function :math:`\Phi(X)'A`.

    The squared singular values of the function are the eigenvalues of :math:`A'KA`.

    Parameters
    ----------
    objective : Objective
        Objective over any design whose ridge weights are 1.
    product : callable
        Function that multiplies K by a matrix.
    norms : array (n_samples,)
        Norms of the columns of K.
    A : array (n_samples, n_labels)
        Coefficients as they are stored.
    dual_scores : array (n_samples, n_labels)
        Scores at which the lower bound is computed.
    K : array (n_samples, n_samples), default=None
        Kernel matrix. If it is given, products that cancel are computed in extended precision.
    """
    A = A.astype(np.float64, copy=False)
    dual, R = DualPoint.at(objective, dual_scores)
    left, scale, right = np.linalg.svd(A, full_matrices=False)
    KL, KR = np.hsplit(product(np.hstack([left, R])), [len(scale)])
    # Because of rounding, these Gram matrices are not quite symmetric.
    inner, pulls = (0.5 * (G + G.T) for G in (left.T @ KL, R.T @ KR))
    F = (KL * scale) @ right
    values, V = gram_eigh(inner)
    # These are the singular values of K^(1/2) L diag(scale). The scale is not squared, because its
    # small entries are rounding.
    sigma = np.linalg.svd(np.sqrt(values)[:, None] * V.T * scale, compute_uv=False)
    # The bound depends only on the singular values of the gradient. They include the rounding
    # errors.
    pull = np.diag(np.sqrt(gram_eigh(pulls)[0] + float(norms @ np.abs(R) @ dual.blur)))
    bound = lower_bound(objective, A, dual.loss, pull, Blur(np.zeros(len(pull)), np.zeros(len(pull))))
    return _kernel_proof(objective, norms, A, F, sigma, bound, K)


def _kernel_proof(
    objective: Objective, norms: FloatArray, A: FloatArray, F: FloatArray, sigma: FloatArray, bound: float,
    K: FloatArray | None,
) -> Proof:  # fmt: skip
    """Return the proof of coefficients A with scores F = K A.

    Products in the squared norm <A, F> can cancel, too. It is never negative.
    """
    here, _ = DualPoint.at(objective, F)
    ridge = 0.5 * objective.ridge.weight
    square = max(float(np.vdot(A, F)), 0.0)

    def compute_extended_loss() -> float:
        """Return the loss in extended precision, plus the change of the ridge in extended precision."""
        G = compute_extended_scores(K, A)
        change = ridge * (max(float(np.vdot(A, G)), 0.0) - square)
        return objective.loss.value(objective.Y, G, objective.sample_weight) + change

    pull = ridge * np.sqrt(squares(A))
    rounding = None if K is None else (len(A), partial(sum_sizes, K, A))
    extended_loss = None if K is None else compute_extended_loss
    value = here.loss.value + ridge * square + objective.nuclear.weight * float(sigma.sum())
    return build_proof(objective, here, norms, A, value, sigma, bound, extended_loss, rounding, pull)


def build_proof(
    objective: Objective, here: DualPoint, norms: FloatArray, W: Any, value: float, sigma: FloatArray | None,
    bound: float, extended_loss: Callable[[], float] | None, rounding: Rounding | None,
    pull: float | FloatArray = 0.0,
) -> Proof:  # fmt: skip
    """Return the proof of coefficients W, whose upper bound includes the rounding errors of `value`.

    The scores have rounding errors, and so have the loss and the sums. `pull` is the derivative of
    the ridge with respect to the scores, for a model whose ridge is computed from its scores.
    W is an array, a CSR matrix or factors.
    """
    n_terms, score_sizes = rounding or (W.shape[0], None)
    unit = PRODUCT_ROUNDING * np.sqrt(n_terms)
    sizes = here.sizes + pull
    if isinstance(W, LowRankMatrix):
        products = (norms @ np.abs(W.left)) @ (np.abs(W.right).T @ sizes)
    else:
        # In blocks, because |W| as a whole may need too much memory.
        step = max(1, block_size(W.shape[0] * W.shape[1]) // max(W.shape[1], 1))
        blocks = (slice(start, start + step) for start in range(0, W.shape[0], step))
        products = sum(norms[part] @ (abs(W[part]) @ sizes) for part in blocks)
    in_scores = unit * float(products)
    if score_sizes is not None and in_scores > DOUBTFUL * value:
        in_scores = unit * float(score_sizes() @ sizes)
    in_loss = float(here.score_sizes @ here.own_rounding)
    doubt = in_scores + in_loss + PRODUCT_ROUNDING * np.sqrt(objective.Y.size) * value
    # The gap assumes that the errors of all rows have the worst sign. The likely error assumes that
    # they are independent, so that their squares add up.
    likely_error = doubt / np.sqrt(max(len(objective.Y), 1))
    if extended_loss is not None and likely_error > DOUBTFUL * value:
        # The rounding error stays in the gap, because not every machine has extended precision.
        value += extended_loss() - here.loss.value
    return Proof(value, value + doubt, bound, sigma)
