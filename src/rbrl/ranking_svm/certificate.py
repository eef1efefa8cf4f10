r"""Solution of a ranking SVM, and the certificate of the coefficients that its model stores.

A solver works in double precision and in its own coordinates. The coefficients that a model stores are rounded,
and the zero label may have been subtracted from them. Objective and gap are therefore computed again, from the
stored coefficients and from the features or kernel values that `fit` received.

Weak duality gives the lower bound. For dual variables :math:`0 \le \alpha \le c` of the pairs, with B the sums of
the dual variables by row and label,

.. math:: \sum m \alpha - \tfrac12 \|X'B\|_F^2 - \tfrac{\rho}{2} \|1'B\|^2 \;\le\; \text{optimum}.

Free biases require 1'B = 0, which rounding violates by some r. This reduces the bound by
:math:`\langle r, b^* \rangle`, with the biases :math:`b^*` of an optimum. These are bounded: the objective of an
optimum is at most the known value U, so that every pair (i, a, b) has

.. math:: b_b - b_a \;\le\; U / c + 2 \|x_i\| \sqrt{U} - m.

Sums of these bounds along paths of pairs bound the distance between the biases of two labels. If no path connects
two labels in both directions, their biases can be moved apart at no cost, and the dual variables of pairs between
them are 0.

Rounding is bounded as in :mod:`rbrl.solvers.certificate`: a sum of k products is assumed to be off by at most
:math:`8 \sqrt{k}\,u` of the sum of their magnitudes.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse.csgraph import shortest_path

from rbrl._common.linalg import squares
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl._loops import rows as loops
from rbrl.ranking_svm.pairs import DualResult, GramRows, HingePairs, Rows, Start
from rbrl.ranking_svm.pairwise_ascent import solve_pairs
from rbrl.solvers.base import explain_unconverged
from rbrl.solvers.certificate import BLOCK_ENTRIES, PRODUCT_ROUNDING, relative_gap
from rbrl.solvers.proof import DOUBTFUL

REMEDY = "Raise max_iter or tol, scale X, or use a smaller C."
UNIT_ROUNDOFF = float(np.finfo(np.float64).eps / 2)


class BoundedValues(NamedTuple):
    """Values with bounds on their errors."""

    values: FloatArray
    error: FloatArray


class LinearSpace:
    """Rows given by their features. A model is an array (n_features, n_labels).

    The features may be centred for the lower bound. This gives shorter rows. It is valid if the
    model has free biases, because the optimum then does not depend on the origin of the features.
    """

    def __init__(self, X: Matrix, centred: bool) -> None:
        self.X = X
        # A subtraction is correctly rounded, so that any centre may replace the exact mean.
        self.centred = X - X.mean(axis=0) if centred and X.shape[0] and not issparse(X) else X
        self.row_norms = np.sqrt(squares(self.centred, axis=1))

    def scores(self, model: FloatArray, rows: slice) -> BoundedValues:
        """Return X[rows] @ model, in the precision of the model, with bounds on the errors.

        Both arrays have the shape (n_rows, n_labels). X is not rounded.
        """
        X = self.X[rows].astype(model.dtype, copy=False)
        share = _rounding(model.dtype) * np.sqrt(X.shape[1])
        return BoundedValues(np.asarray(X @ model), share * np.asarray(abs(X) @ np.abs(model)))

    def penalty_products(self, model: FloatArray, scores: BoundedValues, rows: slice) -> tuple[FloatArray, float]:
        """Return the part of the rows in model' model (n_labels, n_labels), and its error 0.

        All of it belongs to the first rows, so that other rows have zeros.
        """
        return (model.T @ model if rows.start == 0 else np.zeros_like(model, shape=(model.shape[1],) * 2)), 0.0

    def largest_square(self, B: FloatArray, error: FloatArray) -> float:
        """Return an upper bound on the squared norm of X'B, for the centred X.

        B (n_samples, n_labels) has errors of at most `error`, entry by entry.
        """
        share = PRODUCT_ROUNDING * np.sqrt(len(B)) + 2 * UNIT_ROUNDOFF
        magnitudes = np.asarray(abs(self.centred).T @ (share * np.abs(B) + error))
        return float(np.sum((np.abs(np.asarray(self.centred.T @ B)) + magnitudes) ** 2))


class KernelSpace:
    """Rows given by their kernel matrix. A model has coefficients (n_samples, n_labels)."""

    def __init__(self, K: FloatArray) -> None:
        self.K = K
        self.row_norms = np.sqrt(np.maximum(np.diag(K), 0.0))

    def scores(self, model: FloatArray, rows: slice) -> BoundedValues:
        """Return K[rows] @ model, in the precision of the model, with bounds on the errors.

        Both arrays have the shape (n_rows, n_labels).
        """
        K = self.K[rows].astype(model.dtype, copy=False)
        # The kernel values are rounded to double precision, in any precision of the product.
        share = PRODUCT_ROUNDING * np.sqrt(K.shape[1])
        return BoundedValues(K @ model, share * (np.abs(K) @ np.abs(model)))

    def penalty_products(self, model: FloatArray, scores: BoundedValues, rows: slice) -> tuple[FloatArray, float]:
        """Return the part of the rows in model' K model, and a bound on its error.

        It is an array (n_labels, n_labels), computed from the scores of these rows.
        """
        return model[rows].T @ scores.values, float(np.sum(np.abs(model[rows]) * scores.error))

    def largest_square(self, B: FloatArray, error: FloatArray) -> float:
        """Return an upper bound on the inner product of B and K B.

        B (n_samples, n_labels) has errors of at most `error`, entry by entry.
        """
        share = PRODUCT_ROUNDING * np.sqrt(len(B))
        magnitudes = np.abs(self.K) @ (share * np.abs(B) + error)
        KB = self.K @ B
        rounding = np.sum(np.abs(B) * magnitudes) + np.sum(error * (np.abs(KB) + magnitudes))
        return max(float(np.vdot(B, KB)), 0.0) + float(rounding)


# Rows of training data, and their products with models.
Space: TypeAlias = LinearSpace | KernelSpace


class Certificate(NamedTuple):
    """Objective of stored coefficients, a lower bound on the optimum, and the gap, rounding errors included."""

    objective: float
    dual_objective: float
    gap: float


def certify(
    space: Space, pairs: HingePairs, lift: float, model: FloatArray, biases: FloatArray, duals: FloatArray
) -> Certificate:
    """Compute the objective and the certified gap of stored coefficients.

    Parameters
    ----------
    space : LinearSpace or KernelSpace
    pairs : HingePairs
    lift : float
        Square of the constant feature whose weights are the biases: 0 for no biases, `inf` for free biases.
    model : array (n_features, n_labels) or (n_samples, n_labels)
        Coefficients as they are stored. If the pairs have one more label, this is the zero label, which was
        subtracted. The penalty then uses the best zero label.
    biases : array (n_labels,)
    duals : array (n_pairs,)
        Dual variables of the pairs, feasible up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.ranking_svm.certificate import LinearSpace, certify
    >>> from rbrl.ranking_svm.pairs import ranking_pairs
    >>> X, Y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1, -1], [-1, 1]])
    >>> W, duals = np.array([[0.5, -0.5], [-0.5, 0.5]]), np.array([0.5, 0.5])
    >>> found = certify(LinearSpace(X, False), ranking_pairs(Y, C=1.0), 0.0, W, np.zeros(2), duals)
    >>> found.objective, found.gap < 1e-12
    (0.5, True)
    """
    model = model.astype(np.float64, copy=False)
    biases = biases.astype(np.float64, copy=False)
    # If squares overflow, the gap is infinite.
    with np.errstate(over="ignore", invalid="ignore"):
        value, doubt = _primal(space, pairs, lift, model, biases)
        if doubt > DOUBTFUL * value:
            extended = model.astype(np.longdouble), biases.astype(np.longdouble)
            value, doubt = _primal(space, pairs, lift, *extended)
        bound = _dual(space, pairs, lift, duals, value + doubt)
    if not np.isfinite(value + doubt):
        return Certificate(value, bound, np.inf)
    return Certificate(value, bound, relative_gap(value + doubt, bound))


def _rounding(dtype: Any) -> float:
    """Return the rounding error of a sum of k products in a floating-point type.

    It is relative to sqrt(k) times the sum of their magnitudes.
    """
    return PRODUCT_ROUNDING * float(np.finfo(dtype).eps / np.finfo(np.float64).eps)


def _primal(space: Space, pairs: HingePairs, lift: float, model: FloatArray, biases: FloatArray) -> tuple[float, float]:
    """Return the objective in the precision of the model, and a bound on its rounding error.

    Model and biases have one type. Extended precision is computed in blocks of rows, because it
    needs more memory.
    """
    n_rows = len(pairs.start) - 1
    step = n_rows if model.dtype == np.float64 else max(1, BLOCK_ENTRIES // (len(model) + 1))
    products = np.zeros((model.shape[1], model.shape[1]), model.dtype)
    loss = np.zeros((), model.dtype)
    doubt = 0.0
    for first in range(0, n_rows, max(step, 1)):
        rows = slice(first, min(first + step, n_rows))
        scores = space.scores(model, rows)
        part, error = space.penalty_products(model, scores, rows)
        products += part
        doubt += 0.5 * error
        slacks, slack_error, cap = _slacks(pairs, rows, scores, biases)
        hinges = np.maximum(slacks, 0.0)
        loss += cap @ hinges
        doubt += float(cap @ (np.maximum(slacks + slack_error, 0.0) - hinges))
    penalty = _penalty(products, pairs.n_labels)
    if 0 < lift < np.inf:
        penalty += _penalty(np.outer(biases, biases), pairs.n_labels) / lift
    value = float(0.5 * penalty + loss)
    return value, doubt + _rounding(model.dtype) * float(np.sqrt(len(pairs.cap) + model.size)) * value


def _penalty(products: FloatArray, n_labels: int) -> float:
    """Return the squared norm of a model, from the inner products of the models of its labels.

    `n_labels` counts the zero label. If it was subtracted, `products` has one label less, and the
    norm is that with the best zero label: minus the mean over all labels including itself.
    """
    square = float(np.trace(products))
    if len(products) < n_labels:
        square -= float(products.sum()) / n_labels
    return max(square, 0.0)


def _slacks(
    pairs: HingePairs, rows: slice, scores: BoundedValues, biases: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the slacks m - (f_a - f_b) of the pairs of some rows, their errors, and their caps.

    `rows` is a slice with start and stop, and `scores` are those of its rows without biases. The
    three arrays have one entry for each pair, in the order of the pairs.
    """
    unit = float(np.finfo(biases.dtype).eps) / 2
    F = scores.values + biases
    error = scores.error + 3 * unit * (np.abs(F) + np.abs(biases))
    if F.shape[1] < pairs.n_labels:
        F, error = (np.pad(part, ((0, 0), (0, 1))) for part in (F, error))
    chosen = slice(pairs.start[rows.start], pairs.start[rows.stop])
    winner = pairs.winner[chosen]
    loser = pairs.loser[chosen]
    row = pairs.rows[chosen] - rows.start
    slacks = pairs.margin[chosen] - (F[row, winner] - F[row, loser])
    slack_error = error[row, winner] + error[row, loser] + unit * np.abs(slacks)
    return slacks, slack_error, pairs.cap[chosen]


def _dual(space: Space, pairs: HingePairs, lift: float, duals: FloatArray, upper: float) -> float:
    """Return a lower bound on the optimum, at least 0; `upper` is an upper bound on the optimum.

    `duals` need not be feasible, and are not changed. Rounding cannot have raised the bound, except
    for the one assumption of :mod:`rbrl.solvers.certificate`.
    """
    free = np.isinf(lift)
    duals = np.clip(duals, 0.0, pairs.cap)
    if free:
        component = pairs.components()
        duals = np.where(component[pairs.winner] == component[pairs.loser], duals, 0.0)
    B = pairs.coefficients(duals)
    magnitudes = np.zeros_like(B)
    loops.pair_sums(pairs.start, pairs.winner, pairs.loser, duals, 1.0, magnitudes)
    error = PRODUCT_ROUNDING * np.sqrt(pairs.n_labels) * magnitudes
    imbalance = np.abs(B.sum(axis=0)) + PRODUCT_ROUNDING * np.sqrt(len(B)) * np.abs(B).sum(axis=0) + error.sum(axis=0)
    linear = float(pairs.margin @ duals) * (1.0 - PRODUCT_ROUNDING * np.sqrt(len(duals)))
    quadratic = 0.5 * space.largest_square(B, error)
    if free:
        spread = _largest_spread(space, pairs, component, upper)
        linear -= 0.5 * float(np.sum(imbalance[imbalance > 0] * spread[imbalance > 0]))
    elif lift:
        quadratic += 0.5 * lift * float(imbalance @ imbalance)
    quadratic *= 1.0 + PRODUCT_ROUNDING * np.sqrt(B.size)
    share = min(linear / (2.0 * quadratic), 1.0) if quadratic > 0 else 1.0
    bound = share * linear - share**2 * quadratic
    return bound if bound > 0 else 0.0


def _largest_spread(space: Space, pairs: HingePairs, component: IntArray, upper: float) -> FloatArray:
    """Return for every label a bound on the distances of biases in its component: (n_labels,).

    It holds in any optimum. `component` is the number of the component of each label. The bound is
    the longest of the shortest paths, where a pair with a hinge of at most `upper` limits the
    difference of two biases.
    """
    l = pairs.n_labels
    lengths = np.full((l, l), np.inf)
    norms = space.row_norms[pairs.rows]
    bounds = upper / np.maximum(pairs.cap, np.finfo(float).tiny) + 2.0 * norms * np.sqrt(upper) - pairs.margin
    np.minimum.at(lengths, (pairs.winner, pairs.loser), np.maximum(bounds, np.finfo(float).tiny))
    distances = shortest_path(np.where(np.isfinite(lengths), lengths, 0.0))
    distances[component[:, None] != component[None]] = 0.0
    widest = np.zeros(component.max(initial=-1) + 1)
    np.maximum.at(widest, component, distances.max(axis=1, initial=0.0))
    return widest[component]


@dataclass(frozen=True)
class PairProblem:
    """Optimisation problem of a ranking SVM.

    The rows have the form of the solver, and the space has the same rows in the form of the
    certificate. The lift is the square of the constant feature whose weights are the biases: 0 for
    no biases, infinite for free biases. The zero label does not count in `n_labels`. Coefficients
    are stored in the type `dtype`.
    """

    rows: Rows
    space: Space
    pairs: HingePairs
    lift: float
    n_labels: int
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class PairSolution:
    """Stored coefficients with their certificate, and the result of the solver.

    The message of a warning is empty if the certified gap is within the tolerance.
    """

    coefficients: FloatArray
    biases: FloatArray
    certificate: Certificate
    result: DualResult
    message: str = ""


def solve_and_certify(problem: PairProblem, start: Start | None, tol: float, max_iter: int) -> PairSolution:
    """Solve a ranking SVM, and certify the stored coefficients.

    If the rounding of the stored coefficients makes the gap larger than the tolerance, the solver
    continues once with a smaller tolerance.
    """
    solution = _solve(problem, start, tol, max_iter)
    result = solution.result
    gap = solution.certificate.gap
    # The rounding errors of the next solution may be half as large again.
    smaller_tol = tol - 1.5 * (gap - result.gap)
    if result.gap <= tol < gap and smaller_tol > 0 and result.n_iter < max_iter:
        again = _solve(problem, (result.duals, result.biases), smaller_tol, max_iter - result.n_iter)
        n_iter = result.n_iter + again.result.n_iter
        history = np.concatenate([result.history, again.result.history])
        again = replace(again, result=replace(again.result, n_iter=n_iter, history=history))
        solution = min(again, solution, key=lambda found: found.certificate.gap)
    return replace(solution, message=_describe(solution, problem.dtype, tol, max_iter))


def _solve(problem: PairProblem, start: Start | None, tol: float, max_iter: int) -> PairSolution:
    """Solve once; certify the coefficients in the form and the type in which the model stores them.

    `start` are dual variables and biases, or None for zeros. The message of the result is empty.
    """
    result = solve_pairs(problem.rows, problem.pairs, problem.lift, start, tol, max_iter)
    coefficients = result.weights
    biases = result.biases
    if isinstance(problem.space, LinearSpace) and isinstance(problem.rows, GramRows):
        coefficients = np.asarray(problem.space.X.T @ coefficients)
    l = problem.n_labels
    if len(biases) > l:  # the last label is the zero label
        coefficients = coefficients[:, :l] - coefficients[:, l:]
        biases = biases[:l] - biases[l]
    coefficients = coefficients.astype(problem.dtype, copy=False)
    biases = biases.astype(problem.dtype)
    certificate = certify(problem.space, problem.pairs, problem.lift, coefficients, biases, result.best_duals)
    return PairSolution(coefficients, biases, certificate, result)


def _describe(solution: PairSolution, dtype: np.dtype[Any], tol: float, max_iter: int) -> str:
    """Return the text of a warning, or an empty text if the certified gap is within the tolerance.

    `dtype` is the type of the stored coefficients, whose rounding may be the reason.
    """
    gap = solution.certificate.gap
    if gap <= tol:
        return ""
    if solution.result.gap > tol:
        certified = replace(solution.result, objective=solution.certificate.objective, gap=gap)
        return explain_unconverged("Dual ascent", certified, tol, max_iter, REMEDY)
    certified_gap = f"only to a relative gap of {gap:.1e}" if np.isfinite(gap) else "to no relative gap"
    remedy = "Pass X as float64, scale X" if dtype == np.float32 else "Scale X"
    return (
        f"Coefficients of type {dtype} could be certified {certified_gap}, not to tol={tol:g}, because of rounding. "
        f"{remedy}, use a smaller C, or raise tol."
    )
