"""Pairs of labels that should differ by a margin, and rows as dual coordinate ascent needs them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from rbrl._common.typing import Array, FloatArray, IntArray, Matrix
from rbrl._loops import rows as loops
from rbrl.losses.base import row_weights
from rbrl.problem.linear import rows_tell_columns

# Rows are unfolded in blocks of about this many label pairs.
BLOCK = 5_000_000


@dataclass(frozen=True, eq=False)
class HingePairs:
    r"""A weighted sum of hinges, one for each pair of a row's labels that should differ.

    .. math:: \sum_i \sum_{(a, b) \in P_i} c_{iab} \, |m_{iab} - (f_{ia} - f_{ib})|_+

    Attributes
    ----------
    n_labels : int
        Columns of the scores; the last one is the zero label, where there is one.
    start : array (n_samples + 1,)
        Pairs ``start[i]`` up to ``start[i + 1]`` belong to row i.
    winner, loser : arrays (n_pairs,)
        The labels a and b.
    margin, cap : arrays (n_pairs,)
        m and c; c is also the upper bound of the pair's dual variable.

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
        """What the loops take."""
        return self.start, self.winner, self.loser, self.margin, self.cap

    def value(self, F: FloatArray) -> float:
        """The sum of hinges at scores F (n_samples, n_labels).

        Parameters
        ----------
        F : array (n_samples, n_labels)

        Returns
        -------
        float
        """
        return float(loops.pair_hinge(np.ascontiguousarray(F), *self.arrays))

    def coefficients(self, duals: FloatArray) -> FloatArray:
        """What the dual variables of the pairs sum to for every row and label: (n_samples, n_labels).

        Parameters
        ----------
        duals : array (n_pairs,)

        Returns
        -------
        array (n_samples, n_labels)
        """
        B = np.zeros((len(self.start) - 1, self.n_labels))
        loops.pair_sums(self.start, self.winner, self.loser, duals, -1.0, B)
        return B


def ranking_pairs(Y: IntArray, C: float, weights: FloatArray | None = None) -> HingePairs:
    """Rank-SVM: every relevant label above every irrelevant one by 1, at the price `C / (|Y+||Y-|)`.

    Parameters
    ----------
    Y : array (n_samples, n_labels) of -1/+1
    C : float
        Price of a violated pair.
    weights : array (n_samples,), default=None
        Factors of C, one per row.

    Returns
    -------
    HingePairs
    """
    return _unfold(Y, 1.0, _shared_prices(Y, C, weights))


def zero_label_pairs(Y: IntArray, C: float, weights: FloatArray | None = None) -> HingePairs:
    """Rank-SVMz: relevant labels above the zero label by 1, irrelevant ones below it, at `C / |Y+|` and `C / |Y-|`.

    Parameters
    ----------
    Y : array (n_samples, n_labels) of -1/+1
    C : float
        Price of a violated pair.
    weights : array (n_samples,), default=None
        Factors of C, one per row.

    Returns
    -------
    HingePairs

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.ranking_svm import zero_label_pairs
    >>> zero_label_pairs(np.array([[1, -1, -1]]), C=1.0).cap
    array([1. , 0.5, 0.5])
    """
    prices = C * row_weights(weights, len(Y))[:, None] / np.maximum(_sides(Y), 1)
    return _unfold(_with_zero(Y), 2.0, prices, zero_only=True)


def calibrated_pairs(Y: IntArray, C: float, weights: FloatArray | None = None) -> HingePairs:
    """Calibrated Rank-SVM: margin 2 between relevant and irrelevant, 1 from each to the zero label, at `C / (|Y+||Y-|)`.

    A side without labels counts as one label in the price, so that such a row still tells where the zero label is.

    Parameters
    ----------
    Y : array (n_samples, n_labels) of -1/+1
    C : float
        Price of a violated pair.
    weights : array (n_samples,), default=None
        Factors of C, one per row.

    Returns
    -------
    HingePairs
    """
    return _unfold(_with_zero(Y), 2.0, _shared_prices(Y, C, weights))


def _sides(Y: IntArray) -> IntArray:
    """How many relevant and irrelevant labels each row has."""
    p = np.count_nonzero(Y > 0, axis=1)
    return np.stack([p, Y.shape[1] - p], axis=1)


def _shared_prices(Y: IntArray, C: float, weights: FloatArray | None) -> FloatArray:
    price = C * row_weights(weights, len(Y)) / np.maximum(_sides(Y), 1).prod(axis=1)
    return np.stack([price, price], axis=1)


def _with_zero(Y: IntArray) -> IntArray:
    return np.hstack([Y, np.zeros((len(Y), 1), Y.dtype)])


def _unfold(levels: IntArray, margin: float, prices: FloatArray, zero_only: bool = False) -> HingePairs:
    """Pairs of every row whose levels (1, 0 of the zero label, -1) fall from winner to loser.

    The margin of a pair is its share of `margin`, which levels 1 and -1 should keep. `prices` has two for each row, the
    second for pairs that the zero label wins. With `zero_only`, pairs without the zero label are left out.
    """
    n, l = levels.shape
    rows, winner, loser = (np.concatenate(part) for part in zip(*_blocks(levels, max(1, BLOCK // (l * l)))))
    if zero_only:
        has_zero = (levels[rows, winner] == 0) | (levels[rows, loser] == 0)
        rows, winner, loser = rows[has_zero], winner[has_zero], loser[has_zero]
    high, low = levels[rows, winner], levels[rows, loser]
    return HingePairs(
        n_labels=l,
        start=np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]),
        winner=winner.astype(np.int32),
        loser=loser.astype(np.int32),
        margin=0.5 * margin * (high - low).astype(np.float64),
        cap=np.where(high == 0, prices[rows, 1], prices[rows, 0]),
    )


def _blocks(levels: IntArray, size: int) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    for first in range(0, max(len(levels), 1), size):
        block = levels[first : first + size]
        rows, winner, loser = np.nonzero(block[:, :, None] > block[:, None, :])
        yield rows + first, winner, loser


# Gram matrices are formed for dense features up to this many rows.
LARGEST_GRAM = 8000


class GramRows:
    """Rows known by their kernel values; a model is its coefficients.

    Parameters
    ----------
    K : array (n_samples, n_samples)
        Symmetric and positive semidefinite.
    """

    patience: ClassVar[int] = 2000

    def __init__(self, K: FloatArray) -> None:
        self.K = np.ascontiguousarray(K, dtype=np.float64)
        self.norms = np.diag(self.K).copy()
        self.n_features = len(self.K)

    def place(self, B: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Go to the coefficients B (n_samples, n_labels); return the model, its scores and squared norm.

        Parameters
        ----------
        B : array (n_samples, n_labels)

        Returns
        -------
        model : array
        scores : array (n_samples, n_labels)
            Without biases.
        square : float
            Squared norm of the model in feature space.
        """
        F = self.K @ B
        self._scores = np.ascontiguousarray(F.T)
        return B, F, float(np.vdot(B, F))

    def ascend(
        self, pairs: HingePairs, duals: FloatArray, biases: FloatArray, lift: float, order: IntArray, inner: int
    ) -> None:
        """One sweep over the rows in `order`.

        Parameters
        ----------
        pairs : HingePairs
        duals : array (n_pairs,)
            Changed in place, and so are the biases.
        biases : array (n_labels,)
        lift : float
            The constant feature whose weights are the biases, squared.
        order : array of int
            Rows to visit.
        inner : int
            Passes over the pairs of a row.
        """
        loops.ascend_gram(self.K, self._scores, *pairs.arrays, duals, biases, lift, order, inner)

    def scores(self) -> FloatArray:
        """Scores after the last sweep, without biases."""
        return np.ascontiguousarray(self._scores.T)

    def inner(self, model: FloatArray, other: FloatArray, scores: FloatArray) -> float:
        """Inner product in feature space of a model with another one, of which the scores are known.

        Parameters
        ----------
        model, other : arrays
            As :meth:`place` returns them.
        scores : array (n_samples, n_labels)
            Of the other model.

        Returns
        -------
        float
        """
        return float(np.vdot(model, scores))

    def features(self) -> tuple[Matrix, Callable[[FloatArray], FloatArray]]:
        """Features whose inner products are the kernel values, and a function from weights of them to coefficients."""
        s, Q = eigh(self.K, driver="evd")
        keep = s > 1e-13 * max(s[-1], np.finfo(float).tiny)
        root = np.sqrt(s[keep])
        return np.ascontiguousarray(Q[:, keep] * root), lambda W: (Q[:, keep] / root) @ W


class FeatureRows:
    """Rows known by their features; a model is its weights.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    """

    patience: ClassVar[int] = 300

    def __init__(self, X: Matrix) -> None:
        self.X = sparse.csr_array(X, dtype=np.float64)
        self._transposed = self.X.T.tocsr()
        self.norms = np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        self.n_features = self.X.shape[1]

    def place(self, B: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Go to the coefficients B (n_samples, n_labels); return the model, its scores and squared norm.

        Parameters
        ----------
        B : array (n_samples, n_labels)

        Returns
        -------
        model : array
        scores : array (n_samples, n_labels)
            Without biases.
        square : float
            Squared norm of the model in feature space.
        """
        self._W = self._transposed @ B
        return self._W.copy(), self.X @ self._W, float(np.vdot(self._W, self._W))

    def ascend(
        self, pairs: HingePairs, duals: FloatArray, biases: FloatArray, lift: float, order: IntArray, inner: int
    ) -> None:
        """One sweep over the rows in `order`.

        Parameters
        ----------
        pairs : HingePairs
        duals : array (n_pairs,)
            Changed in place, and so are the biases.
        biases : array (n_labels,)
        lift : float
            The constant feature whose weights are the biases, squared.
        order : array of int
            Rows to visit.
        inner : int
            Passes over the pairs of a row.
        """
        X = self.X
        loops.ascend_rows(
            X.data, X.indices, X.indptr, self.norms, self._W, *pairs.arrays, duals, biases, lift, order, inner
        )

    def scores(self) -> FloatArray:
        """Scores after the last sweep, without biases."""
        return self.X @ self._W

    def inner(self, model: FloatArray, other: FloatArray, scores: FloatArray) -> float:
        """Inner product in feature space of a model with another one, of which the scores are known.

        Parameters
        ----------
        model, other : arrays
            As :meth:`place` returns them.
        scores : array (n_samples, n_labels)
            Of the other model.

        Returns
        -------
        float
        """
        return float(np.vdot(model, other))

    def features(self) -> tuple[Matrix, Callable[[FloatArray], FloatArray]]:
        """The features, dense where that is shorter, and a function from weights of them to what the model keeps."""
        dense = self.X.nnz > 0.3 * np.prod(self.X.shape)
        return self.X.toarray() if dense else self.X, lambda W: W


# What dual ascent sweeps over.
Rows: TypeAlias = GramRows | FeatureRows


def feature_rows(X: Matrix) -> Rows:
    """Features as they are, or their Gram matrix where a sweep over it is shorter.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)

    Returns
    -------
    GramRows or FeatureRows

    Examples
    --------
    >>> type(feature_rows(np.ones((5, 100)))).__name__, type(feature_rows(np.ones((100, 5)))).__name__
    ('GramRows', 'FeatureRows')
    """
    n = X.shape[0]
    # Of sparse rows, `size` counts the stored entries.
    if n > LARGEST_GRAM or 2 * X.size < n * n or not rows_tell_columns(X):
        return FeatureRows(X)
    K = X @ X.T
    return GramRows(K if isinstance(K, np.ndarray) else K.toarray())
