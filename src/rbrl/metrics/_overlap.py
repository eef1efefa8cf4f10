"""How true and predicted labels overlap: the counts behind every label-based metric."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl.metrics._inputs import check_label_pair


class Overlap(NamedTuple):
    """Sizes of true sets, predicted sets and their intersections."""

    hits: np.ndarray
    true: np.ndarray
    predicted: np.ndarray
    n_entries: int

    @property
    def misses(self) -> np.ndarray:
        """Entries that are in one of the two sets only."""
        return self.true + self.predicted - 2 * self.hits


def overlap(Y: Any, labels: Any, axis: int) -> Overlap:
    """Count per row (axis=1) or per label (axis=0), without making sparse input dense."""
    Y, labels = check_label_pair(Y, labels)
    both = Y.multiply(labels) if sparse.issparse(Y) else np.logical_and(Y, labels)
    hits, true, predicted = (_count(M, axis) for M in (both, Y, labels))
    return Overlap(hits, true, predicted, Y.shape[0] * Y.shape[1])


def _count(M, axis):
    if not sparse.issparse(M):
        return np.count_nonzero(M, axis=axis).astype(np.float64)
    return np.asarray(M.astype(np.float64).sum(axis=axis), dtype=np.float64).ravel()


def ratio(numerator: np.ndarray, denominator: np.ndarray, undefined: float) -> np.ndarray:
    """Divide entry by entry; 0/0 gives `undefined`."""
    out = np.full(np.shape(denominator), undefined, dtype=np.float64)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)
