r"""A rigorous lower bound of the optimum, and what a fit reports: objective and gap of the coefficients as stored.

With R the loss gradient in the scores, M = -Z'R, and the loss's linear and quadratic dual terms, weak duality gives,
for every theta >= 0 and every N with no singular value above the nuclear weight,

.. math:: \theta\,\text{linear} - \theta^2\,\text{quadratic}
          - \frac{1}{2\lambda_1} \| r^{-1/2} (\theta M - N) \|_F^2 \;\le\; \text{optimum}.

:func:`lower_bound` chooses theta and N well, for a solver that asks at every step. :func:`multiplier` gives them, for a
proof that takes rounding into account.

A solver works in coordinates of its own, in which directions are rounded and the smallest left out. So its result is
judged once more by the original X or K, in one evaluation: a product with the coefficients gives the objective, one with
the loss gradient the lower bound. What rounding can hide in either is added to the gap.

A sum of k products is taken to be off by at most :math:`8\sqrt{k}\,u` of the norms that are multiplied, with the unit
roundoff u: the probabilistic bound of Higham and Mary (2019), which sums in double precision stay far below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from rbrl._common.linalg import clip_singular_values, gram_eigh, gram_singular_values, squares
from rbrl._common.typing import FloatArray, Matrix
from rbrl._loops import rows
from rbrl.losses import Terms
from rbrl.problem.design import add_adjoint, extended_scores, scores
from rbrl.problem.objective import Objective

# Its square is a number still.
LARGEST_THETA = 1e150
# Rounding of a sum of k products, as a share of the norms that are multiplied, is this times the root of k.
ROUNDING = 8 * float(np.finfo(np.float64).eps / 2)
# An objective that rounding of the scores may have moved by more than this share is computed anew in extended precision.
DOUBTFUL = 1e-10
# Entries of X in extended precision at a time: 64 MB.
EXTENDED_ENTRIES = 2**22


def relative_gap(value: float, bound: float) -> float:
    """Distance of `value` from the optimum at most, relative to a lower bound of that optimum.

    Examples
    --------
    >>> from rbrl.solvers.certificate import relative_gap
    >>> relative_gap(1.5, 1.0)
    0.5
    """
    if value <= bound:
        return 0.0
    return float((value - bound) / bound) if bound > 0 else np.inf


def lower_bound(objective: Objective, W: FloatArray, loss: Terms, adjoint: FloatArray) -> float:
    """Lower bound of the objective's optimum.

    Parameters
    ----------
    objective : Objective
    W : array
        Weights at which the loss was evaluated: a hint only, the bound holds for any.
    loss : Terms
    adjoint : array
        Z'R, with R the loss gradient in the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> from rbrl.solvers import lower_bound
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> point = objective.at(np.array([[0.5]]))
    >>> bound = lower_bound(objective, point.W, point.loss, objective.design.adjoint(point.residual))
    >>> bound <= point.value <= bound * (1 + 1e-9)
    True
    """
    if loss.value <= 0:
        return 0.0
    ridge, nuclear, r = objective.ridge.weight, objective.nuclear.weight, objective.ridge.row_weights
    if ridge == 0:
        # Only theta M inside the spectral ball is feasible.
        return max(0.0, along(loss, feasible_theta(loss, gram_singular_values(adjoint)[-1], nuclear)))
    if nuclear == 0:
        # N = 0: a quadratic in theta.
        quadratic = float(np.sum(adjoint**2 / r)) / (2 * ridge)
        return max(0.0, along(loss, best_theta(loss, quadratic), quadratic))
    if isinstance(r, float):
        # The best N clips the singular values of theta M; what remains is a concave function of theta.
        return rows.clipped_dual_maximum(gram_singular_values(adjoint), *loss[1:], ridge * r, nuclear)[0]
    return _weighted_ridge(loss, -adjoint, W, ridge, r, nuclear)[0]


def multiplier(
    loss: Terms, M: FloatArray, W: FloatArray, ridge: float, r: float | FloatArray, nuclear: float
) -> tuple[float, FloatArray]:
    """The theta and N of the bound, for a positive ridge; arguments as for :func:`lower_bound`, with M for the adjoint.

    N may exceed the nuclear weight by what rounding does.
    """
    square = float(np.sum(M**2 / r)) / (2 * ridge)
    if nuclear == 0:
        return best_theta(loss, square), np.zeros_like(M)
    if isinstance(r, float):
        _, theta = rows.clipped_dual_maximum(gram_singular_values(M), *loss[1:], ridge * r, nuclear)
        return theta, clip_singular_values(theta * M, nuclear)
    _, N = _weighted_ridge(loss, M, W, ridge, r, nuclear)
    return best_theta(loss, square, float(np.sum(M * N / r)) / ridge), N


def along(loss: Terms, theta: float, quadratic: float = 0.0, n_terms: int = 0) -> float:
    """Value of (linear terms) theta - (quadratic terms) theta^2, less the rounding of sums of so many terms."""
    value = theta * loss.linear - theta**2 * (loss.quadratic + quadratic)
    if n_terms == 0:
        return value
    return value - ROUNDING * np.sqrt(n_terms) * (theta * abs(loss.linear) + theta**2 * loss.quadratic)


def best_theta(loss: Terms, quadratic: float = 0.0, linear: float = 0.0, limit: float = np.inf) -> float:
    """The theta that maximises the bound for a given N, from what these add to its linear and quadratic terms."""
    slope, curvature = loss.linear + linear, loss.quadratic + quadratic
    free = slope / (2 * curvature) if curvature > 0 else np.inf
    return float(np.clip(free, 0.0, min(limit, loss.reach, LARGEST_THETA)))


def feasible_theta(loss: Terms, size: float, nuclear: float) -> float:
    """The best theta without ridge, where theta M, M of this size, must stay within the nuclear weight."""
    return best_theta(loss, limit=nuclear / size if size > 0 else np.inf)


def _weighted_ridge(
    loss: Terms, M: FloatArray, W: FloatArray, ridge: float, r: float | FloatArray, nuclear: float, rounds: int = 6
) -> tuple[float, FloatArray]:
    r"""Any r: N = theta M - ridge r B, for a B near the minimiser of

    .. math:: -\langle\theta M, B\rangle + \tfrac{\lambda_1}{2} \langle B, rB\rangle + \lambda_3 \|B\|_*

    that comes from reweighted closed-form steps, B V = theta M V / (ridge r + nuclear / sigma), starting at W (at the
    ridge solution where W is zero). Clipping N multiplies it from the right, so the row factor r does not disturb it; the
    best theta for that N is a quadratic's. Returns the bound and the N that gave it.
    """
    square = float(np.sum(M**2 / r)) / (2 * ridge)
    start = W if W.any() else M / (ridge * r)
    values, V = gram_eigh(start.T @ start)
    # N = 0 gives a bound above 0 at any weights, however far from the optimum.
    best, best_N = along(loss, best_theta(loss, square), square), np.zeros_like(M)
    N: FloatArray = M - ridge * r * W
    for _ in range(rounds):
        N = clip_singular_values(N, nuclear)
        theta = best_theta(loss, square, float(np.sum(M * N / r)) / ridge)
        # Not by the quadratic's coefficients: they are large and cancel.
        bound = along(loss, theta) - float(np.sum((theta * M - N) ** 2 / r)) / (2 * ridge)
        if bound > best:
            best, best_N = bound, N
        sigma = np.sqrt(values)
        sigma = np.maximum(sigma, max(1e-10 * sigma[-1], 1e-100))
        B = theta * (M @ V) / (ridge * r + nuclear / sigma)
        N = (B * (nuclear / sigma)) @ V.T
        values, turn = gram_eigh(B.T @ B)
        V = V @ turn
    return best, best_N


@dataclass(frozen=True)
class Proof:
    """Objective and certified relative gap of stored coefficients, and their singular values, largest first."""

    objective: float
    gap: float
    sigma: FloatArray


@dataclass(frozen=True)
class DualPoint:
    """A loss gradient R, by what a bound needs of it.

    Attributes
    ----------
    loss : Terms
    sizes : array (n_labels,)
        Norms of the columns of R.
    own_rounding : array (n_labels,)
        Norms of what rounding can have made of them: R is that of scores nearby, times the curvature of the loss.
    score_sizes : array (n_labels,)
        Norms of the columns of the scores.
    """

    loss: Terms
    sizes: FloatArray
    own_rounding: FloatArray
    score_sizes: FloatArray

    @classmethod
    def at(cls, objective: Objective, F: FloatArray) -> "tuple[DualPoint, FloatArray]":
        """The point of scores F, and R."""
        loss, R = objective.loss.evaluate(objective.Y, F, objective.sample_weight)
        reach = objective.loss.rounding_reach(objective.Y, F, objective.sample_weight)
        return cls.of_squares(loss, squares(R), squares(reach), squares(F)), R

    @classmethod
    def of_squares(cls, loss: Terms, gradient: FloatArray, reach: FloatArray, scores: FloatArray) -> "DualPoint":
        """From sums of squares of the columns of R, of `Loss.rounding_reach`, and of the scores."""
        sizes = np.sqrt(gradient)
        return cls(loss, sizes, ROUNDING * np.sqrt(len(sizes)) * (sizes + np.sqrt(reach)), np.sqrt(scores))

    def blur(self, norms: FloatArray, n_samples: int) -> FloatArray:
        """What rounding can hide in X'R, for columns of X of these norms."""
        return np.outer(norms, ROUNDING * np.sqrt(n_samples) * self.sizes + self.own_rounding)


def prove_linear(objective: Objective, X: Matrix, W: FloatArray, dual_scores: FloatArray) -> Proof:
    """The proof of a linear model.

    Parameters
    ----------
    objective : Objective
        Its loss, labels, ridge and nuclear norm count, not its design.
    X : array or CSR matrix (n_samples, n_features)
        Features as they were given.
    W : array (n_columns, n_labels)
        Coefficients as they are stored; one row more than there are features is that of the intercept.
    dual_scores : array (n_samples, n_labels)
        Any scores; those at which the solver found its best bound serve best.

    Returns
    -------
    Proof
    """
    here, _ = DualPoint.at(objective, scores(X, W))
    dual, R = DualPoint.at(objective, dual_scores)
    adjoint, ones = np.zeros(W.shape), [X.shape[0]] * (len(W) - X.shape[1])
    add_adjoint(X, R, adjoint)
    norms = np.sqrt(np.append(squares(X.astype(np.float64, copy=False)), ones))
    return prove_sums(objective, norms, len(R), W, here, [(dual, adjoint)], partial(_extended_loss, objective, X, W))


def _extended_loss(objective: Objective, X: Matrix, W: FloatArray) -> float:
    """The loss of coefficients W, by scores in extended precision."""
    Y, weights, total = objective.Y, objective.sample_weight, 0.0
    step = max(1, EXTENDED_ENTRIES // (X.shape[1] + 1))
    for start in range(0, len(Y), step):
        r = slice(start, start + step)
        total += objective.loss.value(Y[r], extended_scores(X[r], W), None if weights is None else weights[r])
    return total


def prove_sums(
    objective: Objective, norms: FloatArray, n_samples: int, W: FloatArray, here: DualPoint,
    duals: list[tuple[DualPoint, FloatArray]], extended_loss: Callable[[], float],
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
    """
    sigma = np.linalg.svd(W, compute_uv=False)
    value, doubt = _value(objective, here, norms, W, float(np.sum(W**2)), sigma)
    if doubt > DOUBTFUL * value:
        # The doubt stays in the gap: what extended precision is worth depends on the machine.
        value += extended_loss() - here.loss.value
    bounds = [_bound(objective, dual, -G, dual.blur(norms, n_samples), W) for dual, G in duals]
    return Proof(value, relative_gap(value + doubt, max(bounds)), sigma)


def prove_feature_map(
    objective: Objective, features: FloatArray, coefficients: FloatArray, dual_scores: FloatArray
) -> Proof:
    """The proof of a model over an approximated kernel, whose low rank is that of weights over the design."""
    design = objective.design
    W = design.weights(coefficients)
    here, _ = DualPoint.at(objective, scores(features, coefficients))
    dual, R = DualPoint.at(objective, dual_scores)
    sigma = np.linalg.svd(W, compute_uv=False)
    square = float(np.sum(design.ridge_weights * W**2))
    value, doubt = _value(objective, here, np.sqrt(squares(features)), coefficients, square, sigma)
    blur = dual.blur(np.sqrt(design.gram_diagonal), len(R))
    bound = _bound(objective, dual, -design.adjoint(R), blur, W, design.ridge_weights)
    return Proof(value, relative_gap(value + doubt, bound), sigma)


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
        M = -design.adjoint(R)
        _, N = multiplier(dual.loss, M, design.weights(A), ridge, design.ridge_weights, nuclear)
        n = design.Q @ (N / design.ridge_weights)
    F, KR, N = np.hsplit(K @ np.hstack([A, R, n]), 3)
    here, norms, sigma = DualPoint.at(objective, F)[0], np.sqrt(squares(K)), np.linalg.svd(A, compute_uv=False)
    value, doubt = _kernel_value(objective, here, norms, A, F, sigma)
    blur = dual.blur(norms, len(K))
    if ridge == 0:
        return Proof(value, relative_gap(value + doubt, _bound(objective, dual, -KR, blur, A)), sigma)
    blur_N = np.outer(norms, ROUNDING * np.sqrt(len(K)) * np.sqrt(squares(n)))
    size = float(gram_singular_values(N).max(initial=0.0)) * (1 + ROUNDING * np.sqrt(N.size))
    size += float(np.linalg.norm(blur_N))
    # N has no singular value above the nuclear weight, whatever rounding hides of it.
    shrink = min(1.0, nuclear / size) if size > 0 else 1.0
    n, N, blur_N = shrink * n, shrink * N, shrink * blur_N
    theta = best_theta(dual.loss, float(np.vdot(R, KR)) / (2 * ridge), -float(np.vdot(R, N)) / ridge)
    u = -theta * R - n
    square = float(np.vdot(u, -theta * KR - N)) + float(np.vdot(np.abs(u), theta * blur + blur_N))
    bound = along(dual.loss, theta, n_terms=R.size) - max(square, 0.0) / (2 * ridge)
    return Proof(value, relative_gap(value + doubt, max(bound, 0.0)), sigma)


def prove_function(
    objective: Objective, product: Callable[[FloatArray], tuple[FloatArray, FloatArray]], A: FloatArray,
    dual_scores: FloatArray,
) -> Proof:  # fmt: skip
    r"""The proof of a kernel model with low rank of the function :math:`\Phi(X)'A`, whose squared singular values are those
    of :math:`A'KA`.

    Parameters
    ----------
    product : callable
        From a matrix V to K V and the norms of the columns of K.
    objective, A, dual_scores
        As for :func:`prove_kernel`; any design will do.
    """
    ridge, nuclear = objective.ridge.weight, objective.nuclear.weight
    dual, R = DualPoint.at(objective, dual_scores)
    left, scale, right = np.linalg.svd(A, full_matrices=False)
    KAR, norms = product(np.hstack([left, R]))
    KL, KR = KAR[:, : len(scale)], KAR[:, len(scale) :]
    # Rounding leaves these Gram matrices not quite symmetric.
    inner, pulls = (0.5 * (G + G.T) for G in (left.T @ KL, R.T @ KR))
    F, (values, V) = (KL * scale) @ right, gram_eigh(inner)
    # Of K^(1/2) L diag(scale): the scale, whose small entries are the rounding of A, is not squared.
    sigma = np.linalg.svd(np.sqrt(values)[:, None] * V.T * scale, compute_uv=False)
    here, _ = DualPoint.at(objective, F)
    value, doubt = _kernel_value(objective, here, norms, A, F, sigma)
    hidden = float(np.vdot(np.abs(R), dual.blur(norms, len(R))))
    pull = np.sqrt(np.sqrt(gram_eigh(pulls)[0][::-1]) ** 2 + hidden)
    if dual.loss.value <= 0:
        bound = 0.0
    elif ridge:
        bound, theta = rows.clipped_dual_maximum(pull, *dual.loss[1:], ridge, nuclear)
        bound -= along(dual.loss, theta) - along(dual.loss, theta, n_terms=R.size)
    else:
        bound = along(dual.loss, feasible_theta(dual.loss, float(pull.max()), nuclear), n_terms=R.size)
    return Proof(value, relative_gap(value + doubt, max(bound, 0.0)), sigma)


def _value(
    objective: Objective, here: DualPoint, norms: FloatArray, W: FloatArray, square: float, sigma: FloatArray
) -> tuple[float, float]:
    """The objective, and what rounding can have taken from it: scores are off by their rounding, sums by their own."""
    penalty = 0.5 * objective.ridge.weight * square + objective.nuclear.weight * float(sigma.sum())
    value = here.loss.value + penalty
    in_scores = ROUNDING * np.sqrt(len(W)) * float(norms @ np.abs(W) @ here.sizes)
    in_loss = float(here.score_sizes @ here.own_rounding)
    return value, in_scores + in_loss + ROUNDING * np.sqrt(len(objective.Y) * W.shape[1]) * value


def _kernel_value(
    objective: Objective, here: DualPoint, norms: FloatArray, A: FloatArray, F: FloatArray, sigma: FloatArray
) -> tuple[float, float]:
    """The same for coefficients A with scores F = K A; their square <A, F> can cancel, too, but is not negative."""
    value, doubt = _value(objective, here, norms, A, max(float(np.vdot(A, F)), 0.0), sigma)
    in_square = ROUNDING * np.sqrt(len(A)) * float(norms @ np.abs(A) @ np.sqrt(squares(A)))
    return value, doubt + 0.5 * objective.ridge.weight * in_square


def _bound(
    objective: Objective, dual: DualPoint, M: FloatArray, blur: FloatArray, W: FloatArray, r: float | FloatArray = 1.0
) -> float:
    """The lower bound of the optimum, less what rounding can have added to it; M is known up to `blur`."""
    ridge, nuclear, n_terms = objective.ridge.weight, objective.nuclear.weight, len(objective.Y) * M.shape[1]
    if dual.loss.value <= 0:
        return 0.0
    if ridge == 0:
        size = float(gram_singular_values(M).max(initial=0.0)) + float(np.linalg.norm(blur))
        return max(0.0, along(dual.loss, feasible_theta(dual.loss, size, nuclear), n_terms=n_terms))
    theta, N = multiplier(dual.loss, M, W, ridge, r, nuclear)
    size = float(gram_singular_values(N).max(initial=0.0)) * (1 + ROUNDING * np.sqrt(N.size))
    shrink = min(1.0, nuclear / size) if size > 0 else 1.0
    over = np.abs(theta * M - shrink * N) + theta * blur
    return max(0.0, along(dual.loss, theta, n_terms=n_terms) - float(np.sum(over**2 / r)) / (2 * ridge))
