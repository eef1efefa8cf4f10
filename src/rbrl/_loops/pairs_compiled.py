"""Hinge constraints on pairs of labels, compiled: dual coordinate ascent and what goes with it."""

import numpy as np

from rbrl._common.typing import Array
from rbrl._loops.compiled import compiled


@compiled
def _ascend_row(
    pairs: Array, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array, f: Array, curvature: float,
    inner: int, moved: Array,
) -> None:  # fmt: skip
    """Coordinate steps over the pairs of one row; its scores f follow, the change of its coefficients is left in moved."""
    first, last = pairs
    moved[:] = 0.0
    if curvature <= 0.0:
        # Nothing depends on this row's coefficients: its hinges stay whole.
        alpha[first:last] = cap[first:last]
        return
    length = 0.5 / curvature
    for _ in range(inner):
        change = 0.0
        for e in range(first, last):
            a, b, old = winner[e], loser[e], alpha[e]
            new = min(max(old + (margin[e] - f[a] + f[b]) * length, 0.0), cap[e])
            step = new - old
            if step != 0.0:
                alpha[e] = new
                f[a] += step * curvature
                f[b] -= step * curvature
                moved[a] += step
                moved[b] -= step
                change = max(change, abs(step) / cap[e])
        if change < 1e-3:
            break


@compiled
def ascend_gram(
    K: Array, scores: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array,
    biases: Array, lift: float, order: Array, inner: int,
) -> None:  # fmt: skip
    l, n = scores.shape
    moved = np.empty(l)
    for i in order:
        if start[i] == start[i + 1]:
            continue
        f = scores[:, i] + biases
        _ascend_row(start[i : i + 2], winner, loser, margin, cap, alpha, f, K[i, i] + lift, inner, moved)
        column = K[i]
        for j in range(l):
            step = moved[j]
            if step != 0.0:
                biases[j] += lift * step
                target = scores[j]
                for k in range(n):
                    target[k] += step * column[k]


@compiled
def ascend_rows(
    data: Array, indices: Array, indptr: Array, norms: Array, W: Array, start: Array, winner: Array, loser: Array,
    margin: Array, cap: Array, alpha: Array, biases: Array, lift: float, order: Array, inner: int,
) -> None:  # fmt: skip
    l = W.shape[1]
    moved = np.empty(l)
    for i in order:
        if start[i] == start[i + 1]:
            continue
        f = biases.copy()
        for e in range(indptr[i], indptr[i + 1]):
            x, w = data[e], W[indices[e]]
            for j in range(l):
                f[j] += x * w[j]
        _ascend_row(start[i : i + 2], winner, loser, margin, cap, alpha, f, norms[i] + lift, inner, moved)
        if moved.any():
            biases += lift * moved
            for e in range(indptr[i], indptr[i + 1]):
                x, w = data[e], W[indices[e]]
                for j in range(l):
                    w[j] += x * moved[j]


@compiled
def pair_hinge(F: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array) -> float:
    value = 0.0
    for i in range(F.shape[0]):
        for e in range(start[i], start[i + 1]):
            value += cap[e] * max(margin[e] - F[i, winner[e]] + F[i, loser[e]], 0.0)
    return value


@compiled
def pair_coefficients(start: Array, winner: Array, loser: Array, alpha: Array, R: Array) -> None:
    for i in range(R.shape[0]):
        for e in range(start[i], start[i + 1]):
            R[i, winner[e]] += alpha[e]
            R[i, loser[e]] -= alpha[e]


@compiled
def project_pairs(
    F: Array, biases: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array,
    steps: Array, new: Array, r: Array, H: Array,
) -> float:  # fmt: skip
    value = 0.0
    for i in range(F.shape[0]):
        step = steps[i]
        for e in range(start[i], start[i + 1]):
            a, b = winner[e], loser[e]
            slack = margin[e] - F[i, a] - biases[a] + F[i, b] + biases[b]
            z = alpha[e] + step * slack
            inside = min(max(z, 0.0), cap[e])
            new[e] = inside
            value += inside * (z - 0.5 * inside) / step
            r[a] -= inside
            r[b] += inside
            if 0.0 < z < cap[e]:
                H[a, a] += step
                H[b, b] += step
                H[a, b] -= step
                H[b, a] -= step
    return value


@compiled
def pair_slacks(F: Array, start: Array, winner: Array, loser: Array, margin: Array, out: Array) -> None:
    for i in range(F.shape[0]):
        for e in range(start[i], start[i + 1]):
            out[e] = margin[e] - F[i, winner[e]] + F[i, loser[e]]


@compiled
def pair_products(F: Array, start: Array, winner: Array, loser: Array, curvatures: Array, R: Array) -> None:
    for i in range(F.shape[0]):
        for e in range(start[i], start[i + 1]):
            a, b = winner[e], loser[e]
            step = curvatures[e] * (F[i, a] - F[i, b])
            R[i, a] += step
            R[i, b] -= step


@compiled
def pair_curvatures(start: Array, winner: Array, loser: Array, curvatures: Array, H: Array) -> None:
    for i in range(H.shape[0]):
        for e in range(start[i], start[i + 1]):
            H[i, winner[e]] += curvatures[e]
            H[i, loser[e]] += curvatures[e]


@compiled
def gram_blocks(data: Array, indices: Array, indptr: Array, H: Array, G: Array) -> None:
    for i in range(H.shape[0]):
        h = H[i]
        for c in range(indptr[i], indptr[i + 1]):
            for d in range(indptr[i], indptr[i + 1]):
                x, target = data[c] * data[d], G[indices[c], indices[d]]
                for k in range(h.shape[0]):
                    target[k] += x * h[k]
