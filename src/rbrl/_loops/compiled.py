"""The loops compiled with Numba: those of the losses, small algebra, sparse products, and those of the ranking SVMs."""

import numpy as np

from rbrl._common.typing import Array
from rbrl._loops import reference
from rbrl._loops.compiled_hinges import (
    compiled,
    pairwise_hinge,
    pairwise_hinge_labels,
    pairwise_hinge_line,
    pairwise_hinge_product,
    squared_hinge,
    squared_hinge_diagonal,
    squared_hinge_labels,
    squared_hinge_line,
)  # fmt: skip

__all__ = [
    "ascend_gram", "ascend_row", "ascend_rows", "block_solve", "clipped_dual_maximum", "column_dots", "gram_blocks",
    "memory_backward", "memory_forward", "pair_hinge", "pair_products", "pair_slacks", "pair_sums", "pairwise_hinge",
    "pairwise_hinge_labels", "pairwise_hinge_line", "pairwise_hinge_product", "project_pairs", "sparse_adjoint",
    "sparse_product", "squared_hinge", "squared_hinge_diagonal", "squared_hinge_labels", "squared_hinge_line",
]  # fmt: skip

# Loops of numbers, of which NumPy would make nothing shorter: the text is the same.
clipped_dual_maximum = compiled(reference.clipped_dual_maximum)
ascend_row = compiled(reference.ascend_row)


@compiled
def column_dots(A: Array, B: Array, joint: bool) -> Array:
    out = np.zeros(A.shape[1])
    for k in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[j] += A[k, j] * B[k, j]
    if joint:
        out[:] = out.sum()
    return out


@compiled
def memory_backward(q: Array, steps: Array, changes: Array, rho: Array, order: Array, joint: bool) -> Array:
    coefficients = np.zeros_like(rho)
    for i in order[::-1]:
        c = rho[i] * column_dots(steps[i], q, joint)
        coefficients[i] = c
        change = changes[i]
        for k in range(q.shape[0]):
            for j in range(q.shape[1]):
                q[k, j] -= change[k, j] * c[j]
    return coefficients


@compiled
def memory_forward(
    z: Array, steps: Array, changes: Array, rho: Array, order: Array, joint: bool, coefficients: Array
) -> None:
    for i in order:
        c = coefficients[i] - rho[i] * column_dots(changes[i], z, joint)
        step = steps[i]
        for k in range(z.shape[0]):
            for j in range(z.shape[1]):
                z[k, j] += step[k, j] * c[j]


@compiled
def block_solve(G: Array, first: Array, A: Array, second: Array, B: Array, C: Array, out: Array) -> None:
    K, l = G.shape
    M = np.empty((l, l))
    for k in range(K):
        x = out[k]
        for i in range(l):
            x[i] = G[k, i]
            for j in range(i + 1):
                M[i, j] = first[k] * A[i, j] + second[k] * B[i, j] + C[i, j]
        # The lower factor of Cholesky in place, column by column; then the solutions with it and its transpose.
        for j in range(l):
            s = M[j, j]
            for p in range(j):
                s -= M[j, p] * M[j, p]
            M[j, j] = root = np.sqrt(s)
            for i in range(j + 1, l):
                s = M[i, j]
                for p in range(j):
                    s -= M[i, p] * M[j, p]
                M[i, j] = s / root
        for i in range(l):
            s = x[i]
            for p in range(i):
                s -= M[i, p] * x[p]
            x[i] = s / M[i, i]
        for i in range(l - 1, -1, -1):
            s = x[i]
            for p in range(i + 1, l):
                s -= M[p, i] * x[p]
            x[i] = s / M[i, i]


@compiled
def sparse_product(data: Array, indices: Array, indptr: Array, W: Array, out: Array) -> None:
    for i in range(len(indptr) - 1):
        sums = out[i]
        for p in range(indptr[i], indptr[i + 1]):
            x, w = data[p], W[indices[p]]
            for j in range(len(sums)):
                sums[j] += x * w[j]


@compiled
def sparse_adjoint(data: Array, indices: Array, indptr: Array, D: Array, out: Array) -> None:
    for i in range(len(indptr) - 1):
        d = D[i]
        for p in range(indptr[i], indptr[i + 1]):
            x, sums = data[p], out[indices[p]]
            for j in range(len(sums)):
                sums[j] += x * d[j]


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
        ascend_row(start[i : i + 2], winner, loser, margin, cap, alpha, f, K[i, i] + lift, inner, moved)
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
        ascend_row(start[i : i + 2], winner, loser, margin, cap, alpha, f, norms[i] + lift, inner, moved)
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
def pair_sums(start: Array, winner: Array, loser: Array, values: Array, sign: float, R: Array) -> None:
    for i in range(R.shape[0]):
        for e in range(start[i], start[i + 1]):
            R[i, winner[e]] += values[e]
            R[i, loser[e]] += sign * values[e]


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
def gram_blocks(data: Array, indices: Array, indptr: Array, H: Array, G: Array) -> None:
    for i in range(H.shape[0]):
        h = H[i]
        for c in range(indptr[i], indptr[i + 1]):
            for d in range(indptr[i], indptr[i + 1]):
                x, target = data[c] * data[d], G[indices[c], indices[d]]
                for k in range(h.shape[0]):
                    target[k] += x * h[k]
