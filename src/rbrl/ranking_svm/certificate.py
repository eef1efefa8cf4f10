r"""The certificate of a ranking SVM: objective and relative gap of the coefficients as they are stored.

A solver works in double precision and in coordinates of its own. The coefficients that a model stores are rounded, and
the zero label may have been subtracted from them. Objective and gap are therefore computed once more, from the stored
coefficients and the features or kernel values that `fit` received.

Weak duality gives the lower bound. For dual variables :math:`0 \le \alpha \le c` of the pairs, with B the sums of the
dual variables by row and label,

.. math:: \sum m \alpha - \tfrac12 \|X'B\|_F^2 - \tfrac{\rho}{2} \|1'B\|^2 \;\le\; \text{optimum}.

Free biases require 1'B = 0, which rounding violates by some r. The bound then also loses :math:`\langle r, b^* \rangle`,
with the biases :math:`b^*` of an optimum. These are bounded: no optimum has an objective above the value U that is
known, so every pair (i, a, b) has

.. math:: b_b - b_a \;\le\; U / c + 2 \|x_i\| \sqrt{U} - m,

and sums of these along paths of pairs bound how far the biases of two labels lie apart. Labels that no path connects in
both directions can be moved apart at no cost, so pairs between them have dual variables of 0.

Rounding is bounded as in :mod:`rbrl.solvers.certificate`: a sum of k products is off by at most
:math:`8 \sqrt{k}\,u` of the sum of their magnitudes.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse.csgraph import connected_components, shortest_path

from rbrl._common.linalg import squares
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl._loops import rows as loops
from rbrl.ranking_svm.pairs import HingePairs
from rbrl.solvers.certificate import ROUNDING, relative_gap
from rbrl.solvers.proof import DOUBTFUL, EXTENDED_ENTRIES

UNIT_ROUNDOFF = float(np.finfo(np.float64).eps / 2)


class Enclosed(NamedTuple):
    """Values, and a bound on the distance of each from its exact value."""

    values: FloatArray
    error: FloatArray


class FeatureSpace(Protocol):
    """Rows of training data, and products with models over them."""

    row_norms: FloatArray

    def scores(self, model: FloatArray, rows: slice) -> Enclosed:
        """Scores of a model on some rows, without biases, in the precision of the model."""

    def penalty_products(self, model: FloatArray, scores: Enclosed, rows: slice) -> tuple[FloatArray, float]:
        """Part that some rows have in the inner products of the labels' models in feature space, and its error."""

    def largest_square(self, B: FloatArray, error: FloatArray) -> float:
        """Upper bound of the squared norm in feature space of the rows weighted by B, which is off by `error`."""


class LinearSpace:
    """Rows known by their features; a model is an array (n_features, n_labels).

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    centred : bool
        Whether the model has free biases. The optimum then does not depend on the origin of the features, and the lower
        bound is computed with the features about their mean, which are shorter.
    """

    def __init__(self, X: Matrix, centred: bool) -> None:
        self.X = X
        # One subtraction is correctly rounded, so that any centre serves as well as the exact mean.
        self.centred = X - X.mean(axis=0) if centred and X.shape[0] and not issparse(X) else X
        self.row_norms = np.sqrt(squares(self.centred, axis=1))

    def scores(self, model: FloatArray, rows: slice) -> Enclosed:
        """Return X[rows] @ model."""
        X = self.X[rows].astype(model.dtype, copy=False)
        share = _rounding(model.dtype) * np.sqrt(X.shape[1])
        return Enclosed(np.asarray(X @ model), share * np.asarray(abs(X) @ np.abs(model)))

    def penalty_products(self, model: FloatArray, scores: Enclosed, rows: slice) -> tuple[FloatArray, float]:
        """Return model' model with the first rows, and zeros with the others."""
        return (model.T @ model if rows.start == 0 else np.zeros_like(model, shape=(model.shape[1],) * 2)), 0.0

    def largest_square(self, B: FloatArray, error: FloatArray) -> float:
        """Return an upper bound of the squared norm of X'B."""
        share = ROUNDING * np.sqrt(len(B)) + 2 * UNIT_ROUNDOFF
        magnitudes = np.asarray(abs(self.centred).T @ (share * np.abs(B) + error))
        return float(np.sum((np.abs(np.asarray(self.centred.T @ B)) + magnitudes) ** 2))


class KernelSpace:
    """Rows known by their kernel values; a model is an array of coefficients (n_samples, n_labels).

    Parameters
    ----------
    K : array (n_samples, n_samples)
        Symmetric and positive semidefinite.
    """

    def __init__(self, K: FloatArray) -> None:
        self.K = K
        self.row_norms = np.sqrt(np.maximum(np.diag(K), 0.0))

    def scores(self, model: FloatArray, rows: slice) -> Enclosed:
        """Return K[rows] @ model."""
        K = self.K[rows].astype(model.dtype, copy=False)
        # Whatever the precision of the product, the kernel values are rounded to double precision.
        share = ROUNDING * np.sqrt(K.shape[1])
        return Enclosed(K @ model, share * (np.abs(K) @ np.abs(model)))

    def penalty_products(self, model: FloatArray, scores: Enclosed, rows: slice) -> tuple[FloatArray, float]:
        """Return the part of the rows in model' K model, from their scores."""
        return model[rows].T @ scores.values, float(np.sum(np.abs(model[rows]) * scores.error))

    def largest_square(self, B: FloatArray, error: FloatArray) -> float:
        """Return an upper bound of the inner product of B and K B."""
        share = ROUNDING * np.sqrt(len(B))
        magnitudes = np.abs(self.K) @ (share * np.abs(B) + error)
        KB = self.K @ B
        off = np.sum(np.abs(B) * magnitudes) + np.sum(error * (np.abs(KB) + magnitudes))
        return max(float(np.vdot(B, KB)), 0.0) + float(off)


@dataclass(frozen=True)
class Certificate:
    """Objective of stored coefficients, a lower bound of the optimum, and the relative gap between them.

    The gap includes what rounding may hide in the objective.
    """

    objective: float
    dual_objective: float
    gap: float


def certify(
    space: FeatureSpace, pairs: HingePairs, lift: float, model: FloatArray, biases: FloatArray, duals: FloatArray
) -> Certificate:
    """Compute the objective and the certified gap of stored coefficients.

    Parameters
    ----------
    space : LinearSpace or KernelSpace
    pairs : HingePairs
    lift : float
        Square of the constant feature whose weights are the biases: 0 for no biases, `inf` for free ones.
    model : array (n_features, n_labels) or (n_samples, n_labels)
        Coefficients as they are stored. If the pairs have one label more, it is the zero label, which was subtracted;
        the penalty is that of the best zero label.
    biases : array (n_labels,)
    duals : array (n_pairs,)
        Dual variables of the pairs, feasible up to rounding.

    Returns
    -------
    Certificate

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
    # Where squares overflow, nothing is certified.
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
    """Return the rounding of a sum of k products in a precision, as a share of their magnitudes over the root of k."""
    return ROUNDING * float(np.finfo(dtype).eps / np.finfo(np.float64).eps)


def _primal(
    space: FeatureSpace, pairs: HingePairs, lift: float, model: FloatArray, biases: FloatArray
) -> tuple[float, float]:
    """Return the objective in the precision of the model, and a bound on what rounding may have taken from it."""
    n_rows = len(pairs.start) - 1
    step = n_rows if model.dtype == np.float64 else max(1, EXTENDED_ENTRIES // (len(model) + 1))
    products = np.zeros((model.shape[1], model.shape[1]), model.dtype)
    loss = np.zeros((), model.dtype)
    doubt = 0.0
    for first in range(0, n_rows, max(step, 1)):
        rows = slice(first, min(first + step, n_rows))
        scores = space.scores(model, rows)
        part, error = space.penalty_products(model, scores, rows)
        products += part
        doubt += 0.5 * error
        slacks, error_of_slacks, cap = _slacks(pairs, rows, scores, biases)
        hinges = np.maximum(slacks, 0.0)
        loss += cap @ hinges
        doubt += float(cap @ (np.maximum(slacks + error_of_slacks, 0.0) - hinges))
    penalty = _penalty(products, pairs.n_labels)
    if 0 < lift < np.inf:
        penalty += _penalty(np.outer(biases, biases), pairs.n_labels) / lift
    value = float(0.5 * penalty + loss)
    return value, doubt + _rounding(model.dtype) * float(np.sqrt(len(pairs.cap) + model.size)) * value


def _penalty(products: FloatArray, n_labels: int) -> float:
    """Return the squared norm of a model, from the inner products of its labels.

    If the zero label has been subtracted, the zero label that makes the norm smallest is minus the mean over all
    labels, itself included.
    """
    square = float(np.trace(products))
    if len(products) < n_labels:
        square -= float(products.sum()) / n_labels
    return max(square, 0.0)


def _slacks(
    pairs: HingePairs, rows: slice, scores: Enclosed, biases: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the slacks m - (f_a - f_b) of the pairs of some rows, their errors, and the caps of these pairs."""
    unit = float(np.finfo(biases.dtype).eps) / 2
    F = scores.values + biases
    error = scores.error + 3 * unit * (np.abs(F) + np.abs(biases))
    if F.shape[1] < pairs.n_labels:
        F, error = (np.pad(part, ((0, 0), (0, 1))) for part in (F, error))
    chosen = slice(pairs.start[rows.start], pairs.start[rows.stop])
    winner, loser = pairs.winner[chosen], pairs.loser[chosen]
    row = _rows_of_pairs(pairs)[chosen] - rows.start
    slacks = pairs.margin[chosen] - (F[row, winner] - F[row, loser])
    of_pairs = error[row, winner] + error[row, loser] + unit * np.abs(slacks)
    return slacks, of_pairs, pairs.cap[chosen]


def _rows_of_pairs(pairs: HingePairs) -> IntArray:
    """Return the row of every pair."""
    return np.repeat(np.arange(len(pairs.start) - 1), np.diff(pairs.start))


def _dual(space: FeatureSpace, pairs: HingePairs, lift: float, duals: FloatArray, upper: float) -> float:
    """Return a lower bound of the optimum, which is known not to exceed `upper`."""
    free = np.isinf(lift)
    duals = np.clip(duals, 0.0, pairs.cap)
    if free:
        component = _components(pairs)
        duals = np.where(component[pairs.winner] == component[pairs.loser], duals, 0.0)
    B = pairs.coefficients(duals)
    magnitudes = np.zeros_like(B)
    loops.pair_sums(pairs.start, pairs.winner, pairs.loser, duals, 1.0, magnitudes)
    error = ROUNDING * np.sqrt(pairs.n_labels) * magnitudes
    imbalance = np.abs(B.sum(axis=0)) + ROUNDING * np.sqrt(len(B)) * np.abs(B).sum(axis=0) + error.sum(axis=0)
    linear = float(pairs.margin @ duals) * (1.0 - ROUNDING * np.sqrt(len(duals)))
    quadratic = 0.5 * space.largest_square(B, error)
    if free:
        spread = _largest_spread(space, pairs, component, upper)
        linear -= 0.5 * float(np.sum(imbalance[imbalance > 0] * spread[imbalance > 0]))
    elif lift:
        quadratic += 0.5 * lift * float(imbalance @ imbalance)
    quadratic *= 1.0 + ROUNDING * np.sqrt(B.size)
    share = min(linear / (2.0 * quadratic), 1.0) if quadratic > 0 else 1.0
    bound = share * linear - share**2 * quadratic
    return bound if bound > 0 else 0.0


def _components(pairs: HingePairs) -> IntArray:
    """Return for every label the number of its strongly connected component in the graph of the pairs."""
    graph = np.zeros((pairs.n_labels, pairs.n_labels), dtype=bool)
    graph[pairs.winner[pairs.cap > 0], pairs.loser[pairs.cap > 0]] = True
    return connected_components(graph, connection="strong")[1]


def _largest_spread(space: FeatureSpace, pairs: HingePairs, component: IntArray, upper: float) -> FloatArray:
    """Return for every label how far the biases of its component lie apart at most, in any optimum."""
    l = pairs.n_labels
    lengths = np.full((l, l), np.inf)
    norms = space.row_norms[_rows_of_pairs(pairs)]
    bounds = upper / np.maximum(pairs.cap, np.finfo(float).tiny) + 2.0 * norms * np.sqrt(upper) - pairs.margin
    np.minimum.at(lengths, (pairs.winner, pairs.loser), np.maximum(bounds, np.finfo(float).tiny))
    distances = shortest_path(np.where(np.isfinite(lengths), lengths, 0.0))
    distances[component[:, None] != component[None]] = 0.0
    widest = np.zeros(component.max(initial=-1) + 1)
    np.maximum.at(widest, component, distances.max(axis=1, initial=0.0))
    return widest[component]
