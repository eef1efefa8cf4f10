r"""A rigorous lower bound of the optimum, and what a fit reports: objective and gap of the coefficients as stored.

With R the loss gradient in the scores, M = -Z'R, and the loss's linear and quadratic dual terms, weak duality gives,
for every theta >= 0 and every N with no singular value above the nuclear weight,

.. math:: \theta\,\text{linear} - \theta^2\,\text{quadratic}
          - \frac{1}{2\lambda_1} \| r^{-1/2} (\theta M - N) \|_F^2 \;\le\; \text{optimum}.

:func:`lower_bound` chooses theta and N well, for a solver that asks at every step, and for a proof that takes rounding into
account.

A mixture of loss gradients is a dual point, too: the conjugate of a loss is convex, so the terms of a mixture are at least
the mixture of the terms. Where steps turn sharply, each of the last gradients is far from what the optimum needs, and their
mixture near it.

A solver works in coordinates of its own, in which directions are rounded and the smallest left out. So its result is
judged once more by the original X or K, in one evaluation: a product with the coefficients gives the objective, one with
the loss gradient the lower bound. What rounding can hide in either is added to the gap.

A sum of k products is taken to be off by at most :math:`8\sqrt{k}\,u` of the norms that are multiplied, with the unit
roundoff u: the probabilistic bound of Higham and Mary (2019), which sums in double precision stay far below.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from rbrl._common.linalg import clip_singular_values, gram_eigh, gram_singular_values, squares
from rbrl._common.typing import FloatArray, Matrix
from rbrl._loops import rows
from rbrl.losses import Terms
from rbrl.problem.design import RowDesign, add_adjoint, extended_scores, last_row_times, scores
from rbrl.problem.objective import Objective

# Its square is a number still.
LARGEST_THETA = 1e150
# Reweighted steps towards the best N where the ridge has weights, at most: one that gains less than SETTLED of what the one
# before gained, as the fourth mostly does, is the last: emotions with a kernel takes 1.0 instead of 1.6 s at
# (.01, 100, .01).
ROUNDS, SETTLED = 6, 0.05
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


def lower_bound(
    objective: Objective, W: FloatArray, loss: Terms, adjoint: FloatArray, blur: FloatArray | None = None
) -> float:
    """Lower bound of the objective's optimum.

    Parameters
    ----------
    objective : Objective
    W : array
        Weights at which the loss was evaluated: a hint only, the bound holds for any.
    loss : Terms
    adjoint : array
        Z'R, with R the loss gradient in the scores.
    blur : array, default=None
        What rounding can hide in the entries of Z'R. What rounding can have added to the bound is then taken from it.

    Returns
    -------
    float

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
    N: FloatArray | None = None
    if ridge == 0:
        # Only theta M inside the spectral ball is feasible.
        hidden = 0.0 if blur is None else float(np.linalg.norm(blur))
        size = float(gram_singular_values(adjoint).max(initial=0.0)) + hidden
        theta = best_theta(loss, limit=nuclear / size if size > 0 else np.inf)
        bound = along(loss, theta)
    elif nuclear and isinstance(r, float):
        # The best N clips the singular values of theta M; what remains is a concave function of theta.
        bound, theta = rows.clipped_dual_maximum(gram_singular_values(adjoint), *loss[1:], ridge * r, nuclear)
    else:
        bound, theta, N = _reweighted(loss, -adjoint, W, ridge, r, nuclear)
    if blur is not None:
        bound = along(loss, theta, n_terms=objective.Y.size)
    if blur is not None and ridge:
        N = clip_singular_values(-theta * adjoint, nuclear) if N is None else N
        over = np.abs(theta * adjoint + _shrink(N, nuclear) * N) + theta * blur
        bound -= float(np.sum(over**2 / r)) / (2 * ridge)
    return max(0.0, bound)


def along(loss: Terms, theta: float, quadratic: float = 0.0, n_terms: int = 0) -> float:
    """Value of (linear terms) theta - (quadratic terms) theta^2, less the rounding of sums of so many terms."""
    value = theta * loss.linear - theta**2 * (loss.quadratic + quadratic)
    return value - ROUNDING * float(np.sqrt(n_terms)) * (theta * abs(loss.linear) + theta**2 * loss.quadratic)


def best_theta(loss: Terms, quadratic: float = 0.0, linear: float = 0.0, limit: float = np.inf) -> float:
    """The theta that maximises the bound for a given N, from what these add to its linear and quadratic terms."""
    slope, curvature = loss.linear + linear, loss.quadratic + quadratic
    free = slope / (2 * curvature) if curvature > 0 else np.inf
    return float(np.clip(free, 0.0, min(limit, loss.reach, LARGEST_THETA)))


def _reweighted(
    loss: Terms, M: FloatArray, W: FloatArray, ridge: float, r: float | FloatArray, nuclear: float
) -> tuple[float, float, FloatArray]:
    r"""Any r: N = theta M - ridge r B, for a B near the minimiser of

    .. math:: -\langle\theta M, B\rangle + \tfrac{\lambda_1}{2} \langle B, rB\rangle + \lambda_3 \|B\|_*

    that comes from reweighted closed-form steps, B V = theta M V / (ridge r + nuclear / sigma), starting at W (at the
    ridge solution where W is zero). Clipping N multiplies it from the right, so the row factor r does not disturb it; the
    best theta for that N is a quadratic's. Returns the bound, and the theta and N that gave it.
    """
    square = float(np.sum(M**2 / r)) / (2 * ridge)
    theta = best_theta(loss, square)
    # N = 0 gives a bound above 0 at any weights, however far from the optimum.
    best = along(loss, theta, square), theta, np.zeros_like(M)
    if nuclear == 0:
        return best
    N: FloatArray = M - ridge * r * W
    start = W if W.any() else M / (ridge * r)
    values, V = gram_eigh(start.T @ start)
    gained = 0.0
    for k in range(ROUNDS):
        N = clip_singular_values(N, nuclear)
        theta = best_theta(loss, square, float(np.sum(M * N / r)) / ridge)
        # Not by the quadratic's coefficients: they are large and cancel.
        bound = along(loss, theta) - float(np.sum((theta * M - N) ** 2 / r)) / (2 * ridge)
        last, gained = gained, bound - best[0]
        best = (bound, theta, N) if gained > 0 else best
        # What the first gains is over no N at all.
        if k > 1 and gained < SETTLED * last:
            break
        sigma = np.sqrt(values)
        sigma = np.maximum(sigma, max(1e-10 * sigma[-1], 1e-100))
        B = theta * (M @ V) / (ridge * r + nuclear / sigma)
        N = (B * (nuclear / sigma)) @ V.T
        values, turn = gram_eigh(B.T @ B)
        V = V @ turn
    return best


class Mixture(NamedTuple):
    """Loss gradients at several scores, and the share of each, which sum to 1: a dual point."""

    shares: FloatArray
    scores: tuple[FloatArray, ...]


def mixed(shares: FloatArray, losses: Sequence[Terms]) -> Terms:
    """What a dual bound needs of a mixture of loss gradients."""
    value, linear, quadratic = shares @ np.array(losses)[:, :3]
    return Terms(value, linear, quadratic, min(loss.reach for loss in losses))


def best_mixture(
    objective: Objective, W: FloatArray, losses: Sequence[Terms], adjoints: Sequence[FloatArray]
) -> tuple[float, FloatArray]:
    """A lower bound from a mixture of loss gradients, of which the last is that at W, and the shares that gave it.

    They maximise the bound at theta = 1, for the N that W suggests. Where that is beyond the digits the bound is 0.
    """
    ridge, r, nuclear = objective.ridge.weight, objective.ridge.row_weights, objective.nuclear.weight
    N = clip_singular_values(-adjoints[-1] - ridge * r * W, nuclear)
    over, terms = np.array([((G + N) / np.sqrt(ridge * r)).ravel() for G in adjoints]), np.array(losses)
    gram = over @ over.T
    gains = terms[:, 1] - terms[:, 2] - terms[-1, 2]
    try:
        root = cholesky(gram + 1e-12 * np.trace(gram) * np.eye(len(gram)), lower=True)
        shares = nnls(root.T, solve_triangular(root, gains, lower=True))[0]
    except (ValueError, RuntimeError):
        return 0.0, np.zeros(len(gram))
    shares = shares / (shares.sum() or 1.0)
    return lower_bound(objective, W, mixed(shares, losses), np.tensordot(shares, adjoints, 1)), shares


@dataclass(frozen=True)
class Proof:
    """Objective and certified relative gap of stored coefficients, and their singular values, largest first."""

    objective: float
    gap: float
    sigma: FloatArray


class DualPoint:
    """A loss gradient R, by what a bound needs of it.

    Parameters
    ----------
    loss : Terms
    n_samples : int
    sums : array (3, n_labels)
        Sums of squares of the columns of R, of `Loss.rounding_reach`, and of the scores.

    Attributes
    ----------
    sizes, score_sizes : arrays (n_labels,)
        Norms of the columns of R, and of the scores.
    own_rounding : array (n_labels,)
        Norms of what rounding can have made of R: it is that of scores nearby, times the curvature of the loss.
    blur : array (n_labels,)
        What rounding can hide in a row of X'R, as a share of the norm of that column of X.
    """

    def __init__(self, loss: Terms, n_samples: float, sums: FloatArray) -> None:
        self.loss, (self.sizes, reach, self.score_sizes) = loss, np.sqrt(sums)
        self.own_rounding = ROUNDING * np.sqrt(len(reach)) * (self.sizes + reach)
        self.blur = ROUNDING * np.sqrt(n_samples) * self.sizes + self.own_rounding

    @classmethod
    def at(cls, objective: Objective, F: FloatArray | Mixture) -> "tuple[DualPoint, FloatArray]":
        """The point of scores F, or of a mixture, and R."""
        shares, scores = F if isinstance(F, Mixture) else (np.ones(1), (F,))
        norms, losses = np.zeros((3, objective.Y.shape[1])), []
        R: Any = 0.0
        for share, there in zip(shares, scores, strict=True):
            data = objective.Y, there, objective.sample_weight
            loss, gradient = objective.loss.evaluate(*data)
            # Norms of a mixture are at most the mixture of norms.
            norms += share * np.sqrt([squares(A) for A in (gradient, objective.loss.rounding_reach(*data), there)])
            gradient *= share
            R = np.add(R, gradient, out=gradient)
            losses.append(loss)
        # The sum over gradients is rounded as that over rows is.
        rounded = (np.sqrt(len(R)) + np.sqrt(len(losses) - 1)) ** 2
        return cls(losses[0] if len(losses) == 1 else mixed(shares, losses), rounded, norms**2), R


def prove_linear(
    objective: Objective, X: Matrix, W: FloatArray, dual_scores: FloatArray | Mixture, design: RowDesign | None = None
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
    dual_scores : array (n_samples, n_labels), or Mixture
        Any scores; those at which the solver found its best bound serve best.
    design : RowDesign, default=None
        Where the penalties are those of weights over a design of X, not of W itself.

    Returns
    -------
    Proof
    """
    here, _ = DualPoint.at(objective, scores(X, W))
    dual, R = DualPoint.at(objective, dual_scores)
    ones = [len(R)] * (len(W) - X.shape[1])
    norms = np.sqrt(np.append(squares(X.astype(np.float64, copy=False)), ones))
    extended = partial(_extended_loss, objective, X, W)
    if design is not None:
        return prove_sums(objective, norms, W, here, [(dual, design.adjoint(R))], extended, design)
    # The penalties see the weight of the intercept's column, not the intercept.
    constant = objective.design.constant
    sizes, G = (last_row_times(A, constant) for A in (norms, add_adjoint(X, R, np.zeros(W.shape))))
    return prove_sums(objective, sizes, last_row_times(W, 1 / constant), here, [(dual, G)], extended)


def _extended_scores(X: Matrix, W: FloatArray) -> FloatArray:
    """Scores of coefficients W by products in extended precision, some rows at a time."""
    step = max(1, EXTENDED_ENTRIES // (X.shape[1] + 1))
    return np.vstack([extended_scores(X[start : start + step], W) for start in range(0, X.shape[0], step)])


def _extended_loss(objective: Objective, X: Matrix, W: FloatArray) -> float:
    """The loss of coefficients W, by scores in extended precision."""
    return objective.loss.value(objective.Y, _extended_scores(X, W), objective.sample_weight)


def prove_sums(
    objective: Objective, norms: FloatArray, W: FloatArray, here: DualPoint, duals: list[tuple[DualPoint, FloatArray]],
    extended_loss: Callable[[], float], design: RowDesign | None = None,
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
    """
    B, scales = (W, norms) if design is None else (design.weights(W), np.sqrt(design.gram_diagonal))
    square = float(np.sum(objective.ridge.row_weights * B**2))
    # Where they are not part of the objective, eight digits do: of 4,000 x 5,000 weights in 9 instead of 26 s.
    sigma = np.linalg.svd(B, compute_uv=False) if objective.nuclear.weight else gram_singular_values(B)[::-1]
    bounds = [lower_bound(objective, B, dual.loss, G, np.outer(scales, dual.blur)) for dual, G in duals]
    return _proof(objective, here, norms, W, square, sigma, max(bounds), extended_loss=extended_loss)


def prove_kernel(objective: Objective, K: FloatArray, A: FloatArray, dual_scores: FloatArray | Mixture) -> Proof:
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
        n = design.Q @ (_reweighted(dual.loss, -design.adjoint(R), design.weights(A), ridge, r, nuclear)[2] / r)
    F, KR, N = np.hsplit(K @ np.hstack([A, R, n]), 3)
    norms, sigma = np.sqrt(squares(K)), np.linalg.svd(A, compute_uv=False)
    if ridge == 0:
        bound = lower_bound(objective, A, dual.loss, KR, np.outer(norms, dual.blur))
    else:
        blur = ROUNDING * np.sqrt(len(K)) * np.sqrt(squares(n))
        shrink = _shrink(N, nuclear, float(np.linalg.norm(norms) * np.linalg.norm(blur)))
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
    dual_scores: FloatArray | Mixture, K: FloatArray | None = None,
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
    bound = lower_bound(objective, A, dual.loss, pull, np.zeros_like(pull))
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
    return _proof(objective, here, norms, A, square, sigma, bound, pull, None if K is None else extended)


def _proof(
    objective: Objective, here: DualPoint, norms: FloatArray, W: FloatArray, square: float, sigma: FloatArray,
    bound: float, pull: float | FloatArray = 0.0, extended_loss: Callable[[], float] | None = None,
) -> Proof:  # fmt: skip
    """The objective, and a gap with what rounding can have taken from it: scores are off by their rounding, and with them
    the loss, and what else they `pull` at; sums are off by their own."""
    value = here.loss.value + 0.5 * objective.ridge.weight * square + objective.nuclear.weight * float(sigma.sum())
    in_scores = ROUNDING * np.sqrt(len(W)) * float(norms @ np.abs(W) @ (here.sizes + pull))
    in_loss = float(here.score_sizes @ here.own_rounding)
    doubt = in_scores + in_loss + ROUNDING * np.sqrt(objective.Y.size) * value
    if extended_loss is not None and doubt > DOUBTFUL * value:
        # The doubt stays in the gap: what extended precision is worth depends on the machine.
        value += extended_loss() - here.loss.value
    return Proof(value, relative_gap(value + doubt, bound), sigma)


def _shrink(N: FloatArray, nuclear: float, hidden: float = 0.0) -> float:
    """The factor after which N has no singular value above the nuclear weight, whatever rounding hides of it."""
    if not (hidden or N.any()):
        return 1.0
    size = float(gram_singular_values(N).max(initial=0.0)) * (1 + ROUNDING * np.sqrt(N.size)) + hidden
    return min(1.0, nuclear / size)
