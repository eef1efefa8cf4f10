"""Pairs of labels whose scores should differ by a margin, and rows in the form of dual coordinate ascent."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components

from rbrl._common.typing import Array, FloatArray, IntArray, Matrix
from rbrl._loops import rows as loops
from rbrl.losses.weights import row_weights
from rbrl.problem.linear import has_similar_columns

# Relative rounding error of a sum of dual variables.
DUAL_SUM_ROUNDING = 1e-13
# Largest move of a bias in one Newton step, in addition to the largest score.
LONGEST_BIAS_MOVE = 4.0
# Number of label pairs that are compared at a time.
COMPARED_PAIRS = 5_000_000
# Largest number of rows for which the Gram matrix of dense features is formed.
LARGEST_ROW_GRAM = 8000
# Dual variables and biases.
Start: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class HingePairs:
    r"""Weighted sum of hinges, one for each pair of labels of a row whose scores should differ.

    .. math:: \sum_i \sum_{(a, b) \in P_i} c_{iab} \, |m_{iab} - (f_{ia} - f_{ib})|_+

    Attributes
    ----------
    n_labels : int
        Number of columns of the scores. If there is a zero label, it is the last column.
    start : array (n_samples + 1,)
        Positions of the pairs: those from ``start[i]`` to ``start[i + 1] - 1`` belong to row i.
    winner, loser : arrays (n_pairs,)
        Labels a and b.
    margin, cap : arrays (n_pairs,)
        Margins m and weights c. The weight is also the upper bound on the dual variable of a pair.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.ranking_svm.pairs import ranking_pairs
    >>> pairs = ranking_pairs(np.array([[1, -1, 1]]), C=1.0)
    >>> pairs.winner, pairs.loser, pairs.cap
    (array([0, 2], dtype=int32), array([1, 1], dtype=int32), array([0.5, 0.5]))
    >>> pairs.value(np.array([[1.0, 0.5, 2.0]]))
    0.25
    """

    n_labels: int
    start: IntArray
    winner: IntArray
    loser: IntArray
    margin: FloatArray
    cap: FloatArray

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        """The arrays that the compiled loops take, in their order."""
        return self.start, self.winner, self.loser, self.margin, self.cap

    @property
    def rows(self) -> IntArray:
        """Row of every pair, as a new array (n_pairs,) in ascending order."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def components(self) -> IntArray:
        """Return the number of the strongly connected component of every label: (n_labels,).

        The edges of the graph are the pairs with a weight above 0, from winner to loser.
        """
        graph = np.zeros((self.n_labels, self.n_labels), dtype=bool)
        graph[self.winner[self.cap > 0], self.loser[self.cap > 0]] = True
        return connected_components(graph, connection="strong")[1]

    def value(self, F: FloatArray) -> float:
        """Return the sum of hinges at the scores F (n_samples, n_labels)."""
        return float(loops.pair_hinge(np.ascontiguousarray(F), *self.arrays))

    def coefficients(self, duals: FloatArray) -> FloatArray:
        """Return the signed sums of the dual variables of every row and label: (n_samples, n_labels).

        A winner counts positive. The result is a new array; `duals` must be float64 (n_pairs,).
        """
        B = np.zeros((len(self.start) - 1, self.n_labels))
        loops.pair_sums(self.start, self.winner, self.loser, duals, -1.0, B)
        return B


@dataclass
class DualResult:
    """Solution of a ranking SVM with its gap.

    The weights are those of features, or coefficients of the rows of a kernel matrix. The optimum
    lies between the objective and the dual objective. Another solve may start from `duals`, which
    belong to the end, while `best_duals` belong to the dual objective. `n_iter` counts sweeps and
    steps of the interior point method, and `history` has the best primal value at each certificate.
    """

    weights: FloatArray = field(repr=False)
    biases: FloatArray
    objective: float
    dual_objective: float
    gap: float
    duals: FloatArray = field(repr=False)
    best_duals: FloatArray = field(repr=False)
    n_iter: int
    converged: bool
    history: FloatArray = field(repr=False)


def ranking_pairs(Y: IntArray, C: float, weights: FloatArray | None = None) -> HingePairs:
    """Return the pairs of Rank-SVM: relevant and irrelevant labels, with margin 1.

    The labels are -1 and +1. The weight of a pair is `C / (|Y+||Y-|)`, times the weight of the row.
    """
    return _find_pairs(Y, 1.0, _shared_costs(Y, C, weights))


def zero_label_pairs(Y: IntArray, C: float, weights: FloatArray | None = None) -> HingePairs:
    """Return the pairs of Rank-SVMz: each label and the zero label, with margin 1.

    The weight of a pair is `C / |Y+|` for a relevant label and `C / |Y-|` for an irrelevant label.

    Parameters
    ----------
    Y : array (n_samples, n_labels) of -1/+1
    C : float
        Price of a violated pair.
    weights : array (n_samples,), default=None
        Factors of C, one per row.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.ranking_svm.pairs import zero_label_pairs
    >>> zero_label_pairs(np.array([[1, -1, -1]]), C=1.0).cap
    array([1. , 0.5, 0.5])
    """
    costs = C * row_weights(weights, len(Y))[:, None] / np.maximum(_count_sides(Y), 1)
    return _find_pairs(_append_zero_label(Y), 2.0, costs, zero_only=True)


def calibrated_pairs(Y: IntArray, C: float, weights: FloatArray | None = None) -> HingePairs:
    """Return the pairs of calibrated Rank-SVM: relevant, irrelevant and zero labels, with weight `C / (|Y+||Y-|)`.

    The margin is 2 between relevant and irrelevant labels, and 1 from each to the zero label. If a row has no
    relevant or no irrelevant label, this number counts as 1, so that the row contributes to the zero label.

    The parameters are those of :func:`ranking_pairs`.
    """
    return _find_pairs(_append_zero_label(Y), 2.0, _shared_costs(Y, C, weights))


def _count_sides(Y: IntArray) -> IntArray:
    """Return the numbers of relevant and of irrelevant labels of each row: (n_samples, 2)."""
    n_relevant = np.count_nonzero(Y > 0, axis=1)
    return np.stack([n_relevant, Y.shape[1] - n_relevant], axis=1)


def _shared_costs(Y: IntArray, C: float, weights: FloatArray | None) -> FloatArray:
    """Return the weight C / (|Y+||Y-|) of the pairs of each row, in two equal columns.

    Numbers of 0 count as 1. The two columns are those of :func:`_find_pairs`.
    """
    costs = C * row_weights(weights, len(Y)) / np.maximum(_count_sides(Y), 1).prod(axis=1)
    return np.stack([costs, costs], axis=1)


def _append_zero_label(Y: IntArray) -> IntArray:
    """Return a copy of Y with a last column of zeros: the level of the zero label."""
    return np.hstack([Y, np.zeros((len(Y), 1), Y.dtype)])


def _find_pairs(levels: IntArray, margin: float, costs: FloatArray, zero_only: bool = False) -> HingePairs:
    """Return the pairs of labels of every row in which the winner has a higher level than the loser.

    The levels are 1 (relevant), 0 (zero label) and -1 (irrelevant). The levels 1 and -1 should differ by
    `margin`, and the margin of other pairs is proportional. `costs` has two columns; the second is for pairs
    that the zero label wins. With `zero_only`, pairs without the zero label are left out.
    """
    n, l = levels.shape
    blocks = zip(*_compare_levels(levels, max(1, COMPARED_PAIRS // (l * l))))
    rows, winner, loser = (np.concatenate(parts) for parts in blocks)
    if zero_only:
        has_zero = (levels[rows, winner] == 0) | (levels[rows, loser] == 0)
        rows, winner, loser = (indices[has_zero] for indices in (rows, winner, loser))
    high = levels[rows, winner]
    low = levels[rows, loser]
    return HingePairs(
        n_labels=l,
        start=np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]),
        winner=winner.astype(np.int32),
        loser=loser.astype(np.int32),
        margin=0.5 * margin * (high - low).astype(np.float64),
        cap=np.where(high == 0, costs[rows, 1], costs[rows, 0]),
    )


def _compare_levels(levels: IntArray, size: int) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield the rows, winners and losers of all pairs, for `size` rows at a time.

    The order is that of the rows, then of the winners. Without rows, one empty block is yielded.
    """
    for first in range(0, max(len(levels), 1), size):
        block = levels[first : first + size]
        rows, winner, loser = np.nonzero(block[:, :, None] > block[:, None, :])
        yield rows + first, winner, loser


def balance(
    pairs: HingePairs, F: FloatArray, biases: FloatArray, duals: FloatArray, steps: FloatArray, max_iter: int = 200
) -> tuple[FloatArray, FloatArray, float]:
    """Take a gradient step on `duals`, and project it onto the box and the equality constraints.

    A free bias requires that the dual variables of the pairs that a label wins and loses have the
    same sum over all rows. The biases are the multipliers of these constraints. The projection is
    found by minimising a convex, piecewise quadratic function of the biases.

    The scores F are those without biases, and the search starts at the given biases. Each row has
    its own length of the step. The results are the dual variables, the biases and the imbalance.
    The imbalance is the largest violation of an equality constraint; it is infinite if it is more
    than rounding explains.
    """
    duals = np.ascontiguousarray(duals)
    new = np.empty_like(duals)
    longest = LONGEST_BIAS_MOVE + float(np.max(np.abs(F), initial=0.0))

    def evaluate(b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the value, gradient and Hessian at biases b, and write the dual variables to `new`."""
        r = np.zeros(len(b))
        H = np.zeros((len(b), len(b)))
        return loops.project_pairs(F, b, *pairs.arrays, duals, steps, new, r, H), r, H

    value, r, H = evaluate(biases)
    for _ in range(max_iter):
        if np.abs(r).max() <= DUAL_SUM_ROUNDING * new.sum():
            break
        d = _newton_direction(r, H, longest)
        t = 1.0
        while t > 1e-12:
            trial = evaluate(biases + t * d)
            if trial[0] <= value + 1e-4 * t * (r @ d) or _halves_violation(trial, value, r):
                break
            t *= 0.5
        biases = biases + t * d
        value, r, H = trial
    evaluate(biases)
    imbalance = float(np.abs(r).max())
    # A last step may end above the tolerance of the loop, because of rounding in its own sums.
    is_rounding = imbalance <= 100 * DUAL_SUM_ROUNDING * new.sum()
    return new, biases - biases.mean(), imbalance if is_rounding else np.inf


def _halves_violation(trial: tuple[float, FloatArray, FloatArray], value: float, r: FloatArray) -> bool:
    """Tell whether a trial halves the violation r while the value is constant up to rounding.

    `trial` is the value, gradient and Hessian at the trial; `value` and `r` are those before it.
    """
    # With larger changes of the value, steps that increase it could return to an earlier point.
    is_constant = trial[0] <= value + DUAL_SUM_ROUNDING * abs(value)
    return bool(is_constant and np.abs(trial[1]).max() < 0.5 * np.abs(r).max())


def _newton_direction(r: FloatArray, H: FloatArray, longest: float) -> FloatArray:
    """Return a Newton step (n_labels,) of the biases, whose mean is 0 before it is clipped.

    It is clipped at `longest`, because labels whose dual variables are all at a bound have no
    curvature. Its slope r'd is negative.
    """
    scale = np.trace(H) / len(r)
    # It makes the matrix invertible: equal changes of all biases have no curvature.
    floor = 1e-10 * scale + 1e-3 * float(np.abs(r).max()) * (scale == 0) + 1e-300
    d = -np.linalg.solve(H + floor * np.eye(len(r)), r)
    d -= d.mean()
    clipped = np.clip(d, -longest, longest)
    return clipped if clipped @ r < 0 else d * min(1.0, longest / np.abs(d).max())


class GramRows:
    """Rows given by their kernel matrix. A model has coefficients (n_samples, n_labels)."""

    # Number of sweeps before the interior point method starts.
    patience: ClassVar[int] = 2000

    def __init__(self, K: FloatArray) -> None:
        self.K = np.ascontiguousarray(K, dtype=np.float64)
        self.norms = np.diag(self.K).copy()
        self.n_features = len(self.K)

    def set_coefficients(self, B: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Set the current coefficients B (n_samples, n_labels), from which sweeps continue.

        Return the model, which is B itself, its scores without biases, and its squared norm in
        feature space.
        """
        F = self.K @ B
        self._scores = np.ascontiguousarray(F.T)
        return B, F, float(np.vdot(B, F))

    def ascend(
        self, pairs: HingePairs, duals: FloatArray, biases: FloatArray, lift: float, order: IntArray, n_passes: int
    ) -> None:
        """Sweep over the rows in `order`; change dual variables and biases in place.

        Every row gets several passes over its pairs. The lift is the square of the constant feature
        whose weights are the biases.
        """
        loops.ascend_gram(self.K, self._scores, *pairs.arrays, duals, biases, lift, order, n_passes)

    def scores(self) -> FloatArray:
        """Return the scores after the last sweep, without biases: a new array (n_samples, n_labels)."""
        return np.ascontiguousarray(self._scores.T)

    def inner(self, model: FloatArray, other: FloatArray, other_scores: FloatArray) -> float:
        """Return the inner product of two models in feature space, given the scores of the second."""
        return float(np.vdot(model, other_scores))

    def features(self) -> tuple[Matrix, Callable[[FloatArray], FloatArray]]:
        """Return features whose inner products are the kernel values, and a function.

        The function maps weights of these features to coefficients of the rows. Eigenvalues below
        1e-13 of the largest one are rounding and are left out.
        """
        s, Q = eigh(self.K, driver="evd")
        keep = s > 1e-13 * max(s[-1], np.finfo(float).tiny)
        root = np.sqrt(s[keep])
        return np.ascontiguousarray(Q[:, keep] * root), lambda W: (Q[:, keep] / root) @ W


class FeatureRows:
    """Rows given by their features. A model is an array of weights; see :class:`GramRows`."""

    # Number of sweeps before the interior point method starts.
    patience: ClassVar[int] = 300

    def __init__(self, X: Matrix) -> None:
        self.X = sparse.csr_array(X, dtype=np.float64)
        self._transposed = self.X.T.tocsr()
        self.norms = np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        self.n_features = self.X.shape[1]

    def set_coefficients(self, B: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Set the current coefficients; return the model, a copy, its scores and its squared norm."""
        self._W = self._transposed @ B
        return self._W.copy(), self.X @ self._W, float(np.vdot(self._W, self._W))

    def ascend(
        self, pairs: HingePairs, duals: FloatArray, biases: FloatArray, lift: float, order: IntArray, n_passes: int
    ) -> None:
        """Sweep over the rows in `order`; change dual variables and biases in place."""
        X = self.X
        loops.ascend_rows(
            X.data, X.indices, X.indptr, self.norms, self._W, *pairs.arrays, duals, biases, lift, order, n_passes
        )

    def scores(self) -> FloatArray:
        """Return the scores after the last sweep, without biases: a new array (n_samples, n_labels)."""
        return self.X @ self._W

    def inner(self, model: FloatArray, other: FloatArray, other_scores: FloatArray) -> float:
        """Return the inner product of two models in feature space, given the scores of the second."""
        return float(np.vdot(model, other))

    def features(self) -> tuple[Matrix, Callable[[FloatArray], FloatArray]]:
        """Return the features, and a function from their weights to the model, which is the identity.

        They are dense if more than 30 % of the entries are stored: dense products are then faster.
        """
        is_dense = self.X.nnz > 0.3 * np.prod(self.X.shape)
        return self.X.toarray() if is_dense else self.X, lambda W: W


# Rows over which dual ascent sweeps.
Rows: TypeAlias = GramRows | FeatureRows


def choose_rows(X: Matrix) -> Rows:
    """Return the rows as features, or as a Gram matrix if sweeps over it are cheaper.

    Examples
    --------
    >>> type(choose_rows(np.ones((5, 100)))).__name__, type(choose_rows(np.ones((100, 5)))).__name__
    ('GramRows', 'FeatureRows')
    """
    n = X.shape[0]
    # The `size` of a sparse matrix is the number of stored entries.
    if n > LARGEST_ROW_GRAM or 2 * X.size < n * n or not has_similar_columns(X):
        return FeatureRows(X)
    K = X @ X.T
    return GramRows(K if isinstance(K, np.ndarray) else K.toarray())
