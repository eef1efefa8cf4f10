"""Pairs of labels that should differ by a margin, and rows as dual coordinate ascent needs them."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from rbrl._loops import pairs as loops
from rbrl.losses.base import row_weights
from rbrl.problem import rows_tell_columns

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
    """

    n_labels: int
    start: np.ndarray
    winner: np.ndarray
    loser: np.ndarray
    margin: np.ndarray
    cap: np.ndarray

    @property
    def arrays(self):
        """What the loops take."""
        return self.start, self.winner, self.loser, self.margin, self.cap

    def value(self, F):
        """The sum of hinges at scores F (n_samples, n_labels)."""
        return float(loops.pair_hinge(np.ascontiguousarray(F), *self.arrays))

    def coefficients(self, alpha):
        """What the dual variables of the pairs sum to for every row and label: (n_samples, n_labels)."""
        B = np.zeros((len(self.start) - 1, self.n_labels))
        loops.pair_coefficients(self.start, self.winner, self.loser, alpha, B)
        return B


def ranking_pairs(Y, C, weights=None):
    """Rank-SVM: every relevant label above every irrelevant one by 1, at the price C / (|Y+||Y-|)."""
    return _unfold(Y, lambda zero_side: zero_side == 0, 1.0, *_shared_price(Y, C, weights))


def zero_label_pairs(Y, C, weights=None):
    """Rank-SVMz: relevant labels above the zero label by 1, irrelevant ones below it, at C / |Y+| and C / |Y-|."""
    prices = C * row_weights(weights, len(Y))[:, None] / np.maximum(_sides(Y), 1)
    return _unfold(_with_zero(Y), lambda zero_side: zero_side > 0, 2.0, prices[:, 0], prices[:, 1])


def calibrated_pairs(Y, C, weights=None):
    """Calibrated Rank-SVM: margin 2 between relevant and irrelevant, 1 from each to the zero label, at C / (|Y+||Y-|).

    A side without labels counts as one label in the price, so that such a row still tells where the zero label is.
    """
    return _unfold(_with_zero(Y), lambda zero_side: zero_side >= 0, 2.0, *_shared_price(Y, C, weights))


def _sides(Y):
    p = np.count_nonzero(Y > 0, axis=1)
    return np.stack([p, Y.shape[1] - p], axis=1)


def _shared_price(Y, C, weights):
    price = C * row_weights(weights, len(Y)) / np.maximum(_sides(Y), 1).prod(axis=1)
    return price, price


def _with_zero(Y):
    return np.hstack([Y, np.zeros((len(Y), 1), Y.dtype)])


def _unfold(levels, wanted, margin, price_above, price_below):
    """Pairs of every row whose levels (1, 0, -1) fall from winner to loser.

    `wanted` sees which side of a pair is the zero label: 0 neither, 1 the loser, 2 the winner. The margin of a pair is its
    share of `margin`, which levels 1 and -1 should keep; a pair that zero wins costs `price_below`.
    """
    n, l = levels.shape
    rows, winner, loser = (np.concatenate(part) for part in zip(*_blocks(levels, max(1, BLOCK // (l * l)))))
    high, low = levels[rows, winner], levels[rows, loser]
    zero_side = np.where(low == 0, 1, np.where(high == 0, 2, 0))
    keep = wanted(zero_side)
    rows, winner, loser, zero_side = (part[keep] for part in (rows, winner, loser, zero_side))
    return HingePairs(
        n_labels=l,
        start=np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]),
        winner=winner.astype(np.int32),
        loser=loser.astype(np.int32),
        margin=0.5 * margin * (high[keep] - low[keep]).astype(np.float64),
        cap=np.where(zero_side == 2, price_below[rows], price_above[rows]),
    )


def _blocks(levels, size):
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

    patience = 2000

    def __init__(self, K):
        self.K = np.ascontiguousarray(K, dtype=np.float64)
        self.norms = np.diag(self.K).copy()
        self.n_features = len(self.K)

    def place(self, B):
        """Go to the coefficients B (n_samples, n_labels); return scores and squared norm of the weights."""
        F = self.K @ B
        self._scores = np.ascontiguousarray(F.T)
        return F, float(np.vdot(B, F))

    def ascend(self, pairs, alpha, biases, lift, order, inner):
        """One sweep over the rows in `order`."""
        loops.ascend_gram(self.K, self._scores, *pairs.arrays, alpha, biases, lift, order, inner)

    def scores(self):
        """Scores after the last sweep, without biases."""
        return np.ascontiguousarray(self._scores.T)

    def weights(self, B):
        """What the model keeps: the coefficients themselves."""
        return B

    def inner(self, one, other):
        """Inner product of two models in feature space, each with its `weights` and scores `F`."""
        return float(np.vdot(one.weights, other.F))

    def features(self):
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

    patience = 300

    def __init__(self, X):
        self.X = sparse.csr_array(X, dtype=np.float64)
        self._transposed = self.X.T.tocsr()
        self.norms = np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        self.n_features = self.X.shape[1]

    def place(self, B):
        """Go to the coefficients B (n_samples, n_labels); return scores and squared norm of the weights."""
        self._W = self._transposed @ B
        return self.X @ self._W, float(np.vdot(self._W, self._W))

    def ascend(self, pairs, alpha, biases, lift, order, inner):
        """One sweep over the rows in `order`."""
        X = self.X
        loops.ascend_rows(
            X.data, X.indices, X.indptr, self.norms, self._W, *pairs.arrays, alpha, biases, lift, order, inner
        )

    def scores(self):
        """Scores after the last sweep, without biases."""
        return self.X @ self._W

    def weights(self, B):
        """What the model keeps: the weights X'B."""
        return self._transposed @ B

    def inner(self, one, other):
        """Inner product of two models in feature space, each with its `weights` and scores `F`."""
        return float(np.vdot(one.weights, other.weights))

    def features(self):
        """The features, dense where that is shorter, and a function from weights of them to what the model keeps."""
        dense = self.X.nnz > 0.3 * np.prod(self.X.shape)
        return self.X.toarray() if dense else self.X, lambda W: W


def feature_rows(X):
    """Features as they are, or their Gram matrix where a sweep over it is shorter."""
    n, stored = X.shape[0], X.nnz if sparse.issparse(X) else X.size
    if n > LARGEST_GRAM or 2 * stored < n * n or not rows_tell_columns(X):
        return FeatureRows(X)
    return GramRows((X @ X.T).toarray() if sparse.issparse(X) else X @ X.T)
