r"""A rigorous lower bound on the optimum, from the loss gradient at any scores.

Let R be the gradient of the loss with respect to the scores, and M = -Z'R. The ridge has the weight
:math:`\lambda_1` and the row weights r. The dual of the loss has the coefficients `linear` and
`quadratic`, see :class:`rbrl.losses.Terms`. Weak duality gives, for every theta between 0 and the
`reach` of the loss, and every N with no singular value above the nuclear weight,

.. math:: \theta\,\text{linear} - \theta^2\,\text{quadratic}
          - \frac{1}{2\lambda_1} \| r^{-1/2} (\theta M - N) \|_F^2 \;\le\; \text{optimum}.

:func:`lower_bound` chooses theta and N so that the bound is large. A solver calls it at every step.
A proof also passes bounds on the rounding errors.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.environment import SMALLEST_BLOCK, block_size
from rbrl._common.linalg import clip_singular_values, gram_eigh, gram_singular_values, squares
from rbrl._common.matrices import LowRankMatrix
from rbrl._common.typing import FloatArray, Matrix, issparse
from rbrl._loops import rows
from rbrl.losses import Terms
from rbrl.losses.base import sum_terms
from rbrl.problem.design import add_adjoint, last_row_times
from rbrl.problem.linear import drop_empty_columns
from rbrl.problem.memory import LARGEST_PULL
from rbrl.problem.objective import Objective

# Largest theta. Its square does not overflow.
LARGEST_THETA = 1e150
# The rounding error of a sum of k products is assumed to be at most PRODUCT_ROUNDING * sqrt(k) times
# the product of the norms of the factors. All certificates rely on this assumption.
PRODUCT_ROUNDING = 8 * float(np.finfo(np.float64).eps / 2)
# Number of entries that are computed at a time in proofs. They take 32 MB in double precision, 64
# MB in extended precision.
BLOCK_ENTRIES = 2**22
# Smallest number of labels in a block of Z'R. Eight numbers fill a line of the processor's cache.
FEWEST_LABELS = 8


def relative_gap(value: float, bound: float) -> float:
    """Return an upper bound on the distance of `value` from the optimum, relative to a lower bound on the optimum.

    It is infinite if `value` is above a bound that is not positive.

    Examples
    --------
    >>> from rbrl.solvers.certificate import relative_gap
    >>> relative_gap(1.5, 1.0)
    0.5
    """
    if value <= bound:
        return 0.0
    return float((value - bound) / bound) if bound > 0 else np.inf


class Blur(NamedTuple):
    """Bounds on the rounding errors of a matrix (n_columns, n_labels): entry (k, j) has ``rows[k] * labels[j]``."""

    rows: FloatArray
    labels: FloatArray


def lower_bound(
    objective: Objective, W: FloatArray, loss: Terms, adjoint: FloatArray, blur: Blur | None = None
) -> float:
    """Return a lower bound on the optimum of an objective.

    Parameters
    ----------
    objective : Objective
    W : array (n_columns, n_labels)
        Weights at which the loss was evaluated. The bound holds for any W. Better weights give a
        larger bound.
    loss : Terms
        Terms of the loss.
    adjoint : array (n_columns, n_labels)
        Z'R, where R is the gradient of the loss with respect to the scores.
    blur : Blur, default=None
        Bounds on the rounding errors of Z'R. If they are given, rounding cannot have raised the
        bound.

    Returns
    -------
    float
        Bound, never below 0.

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
        # Without a ridge, no singular value of theta M may exceed the nuclear weight.
        hidden = 0.0 if blur is None else float(np.linalg.norm(blur.rows) * np.linalg.norm(blur.labels))
        size = float(gram_singular_values(adjoint).max(initial=0.0)) + hidden
        theta = best_theta(loss, limit=nuclear / size if size > 0 else np.inf)
        bound = loss_bound(loss, theta)
    elif nuclear and isinstance(r, float):
        # The best N has the clipped singular values of theta M. The bound is then a concave
        # function of theta.
        bound, theta = rows.clipped_dual_maximum(gram_singular_values(adjoint), *loss[1:], ridge * r, nuclear)
    elif nuclear == 0 and isinstance(r, float):
        square = float(np.vdot(adjoint, adjoint)) / (2 * ridge * r)
        theta = best_theta(loss, square)
        bound = loss_bound(loss, theta, square)
    else:
        bound, theta, N = maximise_by_reweighting(loss, -adjoint, W, ridge, r, nuclear)
    if blur is not None:
        bound = loss_bound(loss, theta, n_terms=objective.Y.size)
    if blur is not None and ridge:
        if N is None and nuclear:
            N = clip_singular_values(-theta * adjoint, nuclear)
        bound -= _distance(theta, adjoint, N, blur, r, nuclear) / (2 * ridge)
    return max(0.0, bound)


def weights_bound(objective: Objective, W: FloatArray, loss: Terms, adjoint: FloatArray, blur: Blur) -> float:
    """Return the lower bound for theta = 1 and N = M - ridge W. Rounding cannot have raised it.

    At the optimum, this N has no singular value above the nuclear weight. Elsewhere it is shrunk.
    Only its largest singular value is needed.

    Parameters
    ----------
    objective : Objective
        Objective with a ridge whose row weights are 1.
    W : array (n_columns, n_labels)
        Weights at which the loss was evaluated.
    loss : Terms
        Terms of the loss.
    adjoint : array (n_columns, n_labels)
        Z'R, where R is the gradient of the loss with respect to the scores.
    blur : Blur
        Bounds on the rounding errors of Z'R.
    """
    N = -adjoint
    N -= objective.ridge.weight * W
    distance = _distance(1.0, adjoint, N, blur, 1.0, objective.nuclear.weight)
    return max(0.0, loss_bound(loss, 1.0, n_terms=objective.Y.size) - distance / (2 * objective.ridge.weight))


def _distance(
    theta: float, adjoint: FloatArray, N: FloatArray | None, blur: Blur, r: float | FloatArray, nuclear: float
) -> float:
    """Return an upper bound on the sum of (theta M - N)^2 / r, computed in blocks of rows.

    The bound includes the rounding errors. N is shrunk until it is feasible in spite of its
    rounding errors; None is 0. `r` are the row weights of the ridge.

    `adjoint` is -M, and neither it nor N is changed. `r` is a float or an array (n_columns, 1).
    """
    factor = 0.0 if N is None else shrink_factor(N, nuclear)
    step = max(1, BLOCK_ENTRIES // max(adjoint.shape[1], 1))
    total = 0.0
    for start in range(0, len(adjoint), step):
        part = slice(start, start + step)
        over = theta * adjoint[part]
        if N is not None:
            over += factor * N[part]
        np.abs(over, out=over)
        over += np.outer(theta * blur.rows[part], blur.labels)
        over *= over
        total += float(np.sum(over / (r if isinstance(r, float) else r[part])))
    return total


def loss_bound(loss: Terms, theta: float, quadratic: float = 0.0, n_terms: int = 0) -> float:
    """Return theta * linear - theta^2 * quadratic, minus a bound on the rounding error of sums.

    `quadratic` is the quadratic term of the ridge for N = 0. It is added to the term of the loss,
    but its rounding is not counted. The sums of the loss have `n_terms` terms; 0 means that
    rounding is ignored.
    """
    value = theta * loss.linear - theta**2 * (loss.quadratic + quadratic)
    return value - PRODUCT_ROUNDING * float(np.sqrt(n_terms)) * (theta * abs(loss.linear) + theta**2 * loss.quadratic)


def best_theta(loss: Terms, quadratic: float = 0.0, linear: float = 0.0, limit: float = np.inf) -> float:
    """Return the theta that maximises the bound for a given N.

    `quadratic` and `linear` are the terms of the ridge, which are added to the terms of the loss.
    Theta is between 0 and the smallest of `limit`, the reach of the loss, and `LARGEST_THETA`.
    """
    slope = loss.linear + linear
    curvature = loss.quadratic + quadratic
    free = slope / (2 * curvature) if curvature > 0 else np.inf
    return float(np.clip(free, 0.0, min(limit, loss.reach, LARGEST_THETA)))


def maximise_by_reweighting(
    loss: Terms, M: FloatArray, W: FloatArray, ridge: float, r: float | FloatArray, nuclear: float, rounds: int = 6
) -> tuple[float, float, FloatArray]:
    r"""Return a good lower bound for any ridge weights r, with its theta and N.

    M = -Z'R, the weights W and N have the shape (n_columns, n_labels), r is a number or (n_columns,
    1). In each round, N = theta M - ridge r B, for a B near the minimiser of

    .. math:: -\langle\theta M, B\rangle + \tfrac{\lambda_1}{2} \langle B, rB\rangle + \lambda_3 \|B\|_*

    B comes from reweighted steps in closed form, B V = theta M V / (ridge r + nuclear / sigma). The
    first step starts at W, or at the ridge solution if W is zero. Clipping multiplies N from the
    right, so that it commutes with the row factors r. The best theta for an N maximises a quadratic
    function.
    """
    square = float(np.sum(M**2 / r)) / (2 * ridge)
    theta = best_theta(loss, square)
    # N = 0 gives a bound above 0 at any weights, even far from the optimum.
    best = loss_bound(loss, theta, square), theta, np.zeros_like(M)
    if nuclear == 0:
        return best
    N: FloatArray = M - ridge * r * W
    start = W if W.any() else M / (ridge * r)
    values, V = gram_eigh(start.T @ start)
    for _ in range(rounds):
        N = clip_singular_values(N, nuclear)
        theta = best_theta(loss, square, float(np.sum(M * N / r)) / ridge)
        # The coefficients of the quadratic function are large and cancel, so the norm is computed
        # directly.
        bound = loss_bound(loss, theta) - float(np.sum((theta * M - N) ** 2 / r)) / (2 * ridge)
        best = (bound, theta, N) if bound > best[0] else best
        sigma = np.sqrt(values)
        # A singular value of 0 would have an infinite weight.
        sigma = np.maximum(sigma, max(1e-10 * sigma[-1], 1e-100))
        B = theta * (M @ V) / (ridge * r + nuclear / sigma)
        N = (B * (nuclear / sigma)) @ V.T
        values, turn = gram_eigh(B.T @ B)
        V = V @ turn
    return best


def shrink_factor(N: FloatArray, nuclear: float, hidden: float = 0.0) -> float:
    """Return a factor in [0, 1] for which factor * N has no singular value above the nuclear weight.

    `hidden` bounds the rounding error of N (n_rows, n_labels) in the spectral norm. N is not
    changed.
    """
    if not (hidden or N.any()):
        return 1.0
    size = float(gram_singular_values(N).max(initial=0.0)) * (1 + PRODUCT_ROUNDING * np.sqrt(N.size)) + hidden
    return min(1.0, nuclear / size)


class DualPoint:
    """Norms and rounding errors of a loss gradient R, and the terms of the loss.

    Rounding changes R and Z'R. A lower bound is rigorous only if it holds for every possible
    rounding error. Therefore a dual point has upper bounds on these errors.

    Parameters
    ----------
    loss : Terms
        Terms of the loss.
    n_samples : int
    sums : array (3, n_labels)
        Sums of squares of the columns of R, of `Loss.rounding_reach`, and of the scores.

    Attributes
    ----------
    sizes, score_sizes : arrays (n_labels,)
        Norms of the columns of R, and of the scores.
    own_rounding : array (n_labels,)
        Bounds on the norms of the rounding errors in the columns of R.
    blur : array (n_labels,)
        Bounds on the rounding errors in a row of X'R, divided by the norm of the corresponding
        column of X.
    """

    def __init__(self, loss: Terms, n_samples: float, sums: FloatArray) -> None:
        self.loss = loss
        self.sizes, reach, self.score_sizes = np.sqrt(sums)
        self.own_rounding = PRODUCT_ROUNDING * np.sqrt(len(reach)) * (self.sizes + reach)
        self.blur = PRODUCT_ROUNDING * np.sqrt(n_samples) * self.sizes + self.own_rounding

    @classmethod
    def at(cls, objective: Objective, F: FloatArray) -> "tuple[DualPoint, FloatArray]":
        """Return the dual point at scores F (n_samples, n_labels), and R, a new array of this shape."""
        data = objective.Y, F, objective.sample_weight
        loss, R = objective.loss.evaluate(*data)
        sums = np.array([squares(A) for A in (R, objective.loss.rounding_reach(*data), F)])
        return cls(loss, len(R), sums), R

    @classmethod
    def sum_rows(
        cls, objective: Objective, scores_of: Callable[[slice], FloatArray] | LowRankMatrix,
        visit: Callable[[slice, FloatArray], Any] | None = None,
    ) -> "DualPoint":  # fmt: skip
        """Return the dual point at scores that are computed one block of rows at a time.

        Parameters
        ----------
        objective : Objective
        scores_of : callable or LowRankMatrix
            Function from a slice of rows to their scores; or the scores as factors.
        visit : callable, default=None
            Function that is called with the slice and the loss gradients R of each block of rows.
        """
        n_samples, n_labels = objective.Y.shape
        sums = np.zeros((3, n_labels))
        losses = []
        of_factors = isinstance(scores_of, LowRankMatrix)
        read_scores = scores_of.rows if isinstance(scores_of, LowRankMatrix) else scores_of
        for part, Y, weights in objective.row_blocks(of_factors):
            F = read_scores(part)
            loss, R = objective.loss.evaluate(Y, F, weights)
            reach = objective.loss.rounding_reach(Y, F, weights)
            sums += [squares(A) for A in (R, reach, F)]
            losses.append(loss)
            if visit is not None:
                visit(part, R)
        return cls(sum_terms(losses), n_samples, sums)


def ridge_bound(objective: Objective, X: Matrix, norms: FloatArray, dual_scores: FloatArray) -> float:
    """Return a lower bound on the optimum of a linear problem whose only penalty is the ridge.

    Rounding cannot have raised it.

    Parameters
    ----------
    objective : Objective
        Objective with a ridge whose row weights are all equal, and without a nuclear norm.
    X : array or CSR matrix (n_samples, n_features)
    norms : array (n_columns,)
        Norms of the columns of X. If the model has an intercept, the last one is the norm of a
        column of ones.
    dual_scores : array (n_samples, n_labels)
        Scores at which the loss gradient R is computed.
    """
    dual, square, largest = measure_pull(objective, X, norms, dual_scores)
    if dual.loss.value <= 0:
        return 0.0
    ridge = 2 * objective.ridge.weight * float(objective.ridge.row_weights)
    theta = best_theta(dual.loss, square / ridge)
    return max(0.0, loss_bound(dual.loss, theta, n_terms=objective.Y.size) - theta**2 * (largest / ridge))


def measure_pull(
    objective: Objective, X: Matrix, norms: FloatArray, dual_scores: FloatArray | LowRankMatrix
) -> tuple[DualPoint, float, float]:
    """Return the dual point at given scores, the squared norm of Z'R, and an upper bound on it with rounding errors.

    The smaller one of R and Z'R is in memory, for as many labels as `LARGEST_PULL` allows. The other one is
    computed in blocks: R in blocks of rows, Z'R in blocks of labels. If the labels do not fit at one time, R is
    computed once more for every further group of labels, with the same digits.

    Parameters
    ----------
    objective : Objective
        Objective of a linear model.
    X : array or CSR matrix (n_samples, n_features)
    norms : array (n_columns,)
        Norms of the columns of X, and of the column of ones.
    dual_scores : array or LowRankMatrix (n_samples, n_labels)
        Scores at which the loss gradient R is computed.

    Returns
    -------
    dual : DualPoint
    square, largest : float
    """
    if issparse(X) and 2 * np.count_nonzero(norms) < len(norms):
        last = norms[X.shape[1] :]
        X, present = drop_empty_columns(X)
        norms = np.append(norms[present], last)
    # The penalties apply to the weight of the constant column, not to the intercept itself.
    constant = objective.design.constant
    norms = last_row_times(norms, constant)
    n_labels = objective.Y.shape[1]
    of_factors = isinstance(dual_scores, LowRankMatrix)
    by_rows = len(norms) <= X.shape[0]
    n_held = min(len(norms), X.shape[0])
    step = min(max(FEWEST_LABELS, LARGEST_PULL // max(n_held, 1)), max(n_labels, 1))
    space = np.empty(n_held * step)
    sums = np.zeros((3, n_labels))
    dual: DualPoint | None = None
    square = 0.0
    largest = 0.0
    for start in range(0, n_labels, step):
        group = slice(start, min(start + step, n_labels))
        # All groups use the same memory.
        held = space[: n_held * (group.stop - start)].reshape(n_held, group.stop - start)
        held.fill(0.0)
        losses = []
        for part, Y, weights in objective.row_blocks(of_factors):
            F = dual_scores.rows(part) if isinstance(dual_scores, LowRankMatrix) else dual_scores[part]
            loss, R = objective.loss.evaluate(Y, F, weights)
            losses.append(loss)
            if dual is None:
                sums += [squares(A) for A in (R, objective.loss.rounding_reach(Y, F, weights), F)]
            if by_rows:
                add_adjoint(X[part], np.ascontiguousarray(R[:, group]), held)
            else:
                held[part] = R[:, group]
        dual = DualPoint(sum_terms(losses), X.shape[0], sums) if dual is None else dual
        for labels, G in [(group, held)] if by_rows else _adjoint_blocks(X, held, len(norms), start):
            if constant != 1.0:
                G[-1] *= constant
            n_rows = max(1, SMALLEST_BLOCK // max(G.shape[1], 1))
            for first in range(0, len(G), n_rows):
                block = G[first : first + n_rows]
                square += float(np.vdot(block, block))
                np.abs(block, out=block)
                block += np.outer(norms[first : first + n_rows], dual.blur[labels])
                largest += float(np.vdot(block, block))
    return dual or DualPoint(sum_terms([]), X.shape[0], sums), square, largest


def _adjoint_blocks(X: Matrix, R: FloatArray, n_columns: int, first: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield blocks of X'R: their labels, counted from `first`, and the block (n_columns, n_chosen)."""
    for part in label_blocks(n_columns, R.shape[1]):
        A = np.ascontiguousarray(R[:, part])
        labels = slice(first + part.start, first + part.start + A.shape[1])
        yield labels, add_adjoint(X, A, np.zeros((n_columns, A.shape[1])))


def label_blocks(n_columns: int, n_labels: int) -> Iterator[slice]:
    """Return slices of labels, for a matrix (n_columns, n_labels) that is computed in blocks.

    The last slice may end beyond `n_labels`. A block has at least `FEWEST_LABELS` labels, even if
    it then exceeds the usual size.
    """
    step = max(FEWEST_LABELS, block_size(n_columns * n_labels) // max(n_columns, 1))
    return (slice(start, start + step) for start in range(0, n_labels, step))
