"""Hinge losses of the ranking SVMs, as a list of pairs of labels that should differ by a margin."""

from dataclasses import dataclass

import numpy as np

from rbrl._loops import pairs as loops
from rbrl.losses.base import row_weights

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
