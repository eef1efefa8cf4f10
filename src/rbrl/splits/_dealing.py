"""Iterative stratification: deal samples to parts, the rarest label first, then exchange where it helps."""

from itertools import combinations

import numpy as np
from scipy import sparse

# Samples of each part that an exchange between two parts looks at, and rounds over all pairs of parts.
# On arts and on 50,000 x 500 random labels, more candidates or rounds hardly changed the result.
_CANDIDATES = 50
_ROUNDS = 3

# Exchanges visit every pair of parts: with more parts than this they are left out, for the time they would take.
_MOST_PARTS = 30


def deal_samples(Y: sparse.csr_array, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the part of each sample, so that parts of these sizes have every label in proportion.

    Parameters
    ----------
    Y : CSR array of bool, shape (n_samples, n_labels)
        Relevant labels.
    sizes : array of int, shape (n_parts,)
        Sizes of the parts; their sum is n_samples.
    rng : Generator
        Decides ties and the order of samples.
    """
    totals = np.asarray(Y.sum(axis=0)).ravel().astype(np.int64)
    demand = np.outer(sizes / Y.shape[0], totals)
    part = _deal_by_label(Y, sizes, totals, demand, rng)
    if len(sizes) <= _MOST_PARTS:
        _exchange_samples(Y.astype(np.float64), part, -demand)
    return part


def _deal_by_label(Y, sizes, remaining, demand, rng):
    """Deal the samples of one label after the other; `demand` becomes what the parts still lack.

    Within one label's turn only its own demand and the free places change what is decided, so the demand for the
    other labels is brought up to date once per turn.
    """
    part, free, by_label = np.full(Y.shape[0], -1), sizes.astype(float), Y.tocsc()
    tie_break = rng.random(Y.shape[1])
    while np.any(remaining > 0):
        label = _rarest(remaining, tie_break)
        rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        rows = rng.permutation(rows[part[rows] < 0])
        part[rows] = _deal(demand[:, label], free, rng.random((len(rows), len(sizes))))
        columns, owners = _entries(Y, rows, part)
        np.subtract.at(demand, (owners, columns), 1.0)
        np.subtract.at(remaining, columns, 1)
    unlabelled = rng.permutation(np.flatnonzero(part < 0))
    part[unlabelled] = _deal(np.zeros(len(sizes)), free, rng.random((len(unlabelled), len(sizes))), wanted=0.0)
    return part


def _rarest(remaining, tie_break):
    fewest = remaining[remaining > 0].min()
    return int(np.argmax(np.where(remaining == fewest, tie_break, -1.0)))


def _deal(demand, free, tie_break, wanted=1.0):
    """Give each sample to the part that wants it most, then to the emptiest, then at random; `free` is updated."""
    demand, places = demand.tolist(), free.tolist()
    chosen = []
    for random in tie_break.tolist():
        open_parts = [j for j, n in enumerate(places) if n > 0]
        best = max(open_parts, key=lambda j: (demand[j], places[j], random[j]))
        demand[best] -= wanted
        places[best] -= 1
        chosen.append(best)
    free[:] = places
    return chosen


def _entries(Y, rows, part):
    """Columns of the positive entries of some rows, and the parts that own them."""
    counts = np.diff(Y.indptr)[rows]
    return Y[rows].indices, np.repeat(part[rows], counts)


def _exchange_samples(Y, part, surplus):
    """Let samples of two parts change places while that lowers the sum of squared surpluses; `part` is updated."""
    for _ in range(_ROUNDS):
        pairs = combinations(range(len(surplus)), 2)
        if not sum(_exchange_between(Y, part, surplus, p, q) for p, q in pairs):
            break


def _exchange_between(Y, part, surplus, p, q):
    """Exchange samples of parts p and q, and return how many.

    With u the difference of the two surpluses, an exchange of a (in p) for b (in q) changes the sum of squares by
    twice u'(b - a) + |b - a|^2.
    """
    pull = Y @ (surplus[p] - surplus[q])
    rows_p, rows_q = _largest(pull, part == p), _largest(-pull, part == q)
    A, B = Y[rows_p].toarray(), Y[rows_q].toarray()
    for n_exchanges in range(_CANDIDATES):
        u = surplus[p] - surplus[q]
        change = B @ u - (A @ u)[:, None] + _squared_distances(A, B)
        i, j = np.unravel_index(np.argmin(change), change.shape)
        if change[i, j] > -1e-9:
            return n_exchanges
        step = B[j] - A[i]
        surplus[p] += step
        surplus[q] -= step
        A[i], B[j] = B[j].copy(), A[i].copy()
        part[rows_p[i]], part[rows_q[j]] = q, p
        rows_p[i], rows_q[j] = rows_q[j], rows_p[i]
    return _CANDIDATES


def _largest(values, members):
    rows = np.flatnonzero(members)
    return rows[np.argsort(-values[rows], kind="stable")[:_CANDIDATES]]


def _squared_distances(A, B):
    return A.sum(axis=1)[:, None] + B.sum(axis=1) - 2 * A @ B.T
