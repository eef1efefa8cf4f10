"""The loops compiled with Numba: one pass over the scores, or over the pairs of labels of each row.

A row's irrelevant scores are gathered into a contiguous buffer first, so that the inner loop over them vectorises.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

from rbrl._common.typing import Array
from rbrl._loops import reference

_Loop = TypeVar("_Loop", bound=Callable[..., Any])

# Sums may be reordered, which vectorises them; NaN and infinity keep their meaning.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz", "arcp"}}


def compiled(function: _Loop) -> _Loop:
    """Compile a function when it is first called, and keep the machine code for other processes where that is possible.

    Numba refuses to keep it where neither the folder of the sources nor one of the user's can be written to, as in many
    containers; it is then compiled in every process.
    """
    try:
        return njit(cache=True, **_OPTIONS)(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        return njit(**_OPTIONS)(function)


# Loops of numbers, of which NumPy would make nothing shorter: the text is the same.
clipped_dual_maximum = compiled(reference.clipped_dual_maximum)
ascend_row = compiled(reference.ascend_row)


@compiled
def squared_hinge(Y: Array, F: Array, weights: Array, scale: float, costs: Array, R: Array) -> tuple[float, float]:
    n, l = F.shape
    value = linear = 0.0
    for i in range(n):
        w = scale * weights[i]
        for j in range(l):
            y = Y[i, j]
            cost = w * costs[j] if y > 0 else w
            slack = max(1.0 - y * F[i, j], 0.0)
            value += 0.5 * cost * slack * slack
            linear += cost * slack
            R[i, j] -= cost * y * slack
    return value, linear


@compiled
def squared_hinge_diagonal(Y: Array, F: Array, weights: Array, scale: float, costs: Array, H: Array) -> None:
    n, l = F.shape
    for i in range(n):
        w = scale * weights[i]
        for j in range(l):
            cost = w * costs[j] if Y[i, j] > 0 else w
            H[i, j] += cost if Y[i, j] * F[i, j] < 1.0 else 0.0


@compiled
def squared_hinge_labels(Y: Array, F: Array, weights: Array, scale: float, costs: Array, M: Array) -> None:
    n, l = F.shape
    for i in range(n):
        w = scale * weights[i]
        for j in range(l):
            cost = w * costs[j] if Y[i, j] > 0 else w
            M[j, j] += cost if Y[i, j] * F[i, j] < 1.0 else 0.0


@compiled
def squared_hinge_line(
    Y: Array, F: Array, D: Array, t: Array, weights: Array, scale: float, costs: Array, d1: Array, d2: Array
) -> tuple[float, float]:
    n, l = F.shape
    value = joint = 0.0
    for i in range(n):
        w = scale * weights[i]
        for j in range(l):
            y, d = Y[i, j], D[i, j]
            cost = w * costs[j] if y > 0 else w
            slack = max(1.0 - y * (F[i, j] + t[j] * d), 0.0)
            second = cost * d * d if slack > 0 else 0.0
            value += 0.5 * cost * slack * slack
            joint += second
            d1[j] -= cost * y * slack * d
            d2[j] += second
    return value, joint


@compiled
def _split(y: Array, f: Array, pos: Array, neg: Array, f_pos: Array, f_neg: Array) -> tuple[int, int]:
    """Indices and scores of a row's relevant and irrelevant labels; return their numbers."""
    p = q = 0
    for j in range(y.shape[0]):
        if y[j] > 0:
            pos[p], f_pos[p] = j, f[j]
            p += 1
        else:
            neg[q], f_neg[q] = j, f[j]
            q += 1
    return p, q


@compiled
def pairwise_hinge(Y: Array, F: Array, weights: Array, scale: float, margin: float, R: Array) -> tuple[float, float]:
    n, l = F.shape
    pos, neg = np.empty(l, np.int64), np.empty(l, np.int64)
    f_pos, f_neg, push = np.empty(l), np.empty(l), np.empty(l)
    value = linear = 0.0
    for i in range(n):
        p, q = _split(Y[i], F[i], pos, neg, f_pos, f_neg)
        if p == 0 or q == 0:
            continue
        c = scale * weights[i] / (p * q)
        squares = total = 0.0
        push[:q] = 0.0
        for a in range(p):
            shift, pull = margin - f_pos[a], 0.0
            for b in range(q):
                slack = max(shift + f_neg[b], 0.0)
                squares += slack * slack
                pull += slack
                push[b] += slack
            R[i, pos[a]] -= c * pull
            total += pull
        for b in range(q):
            R[i, neg[b]] += c * push[b]
        value += 0.5 * c * squares
        linear += c * margin * total
    return value, linear


@compiled
def pairwise_hinge_product(
    Y: Array, F: Array, D: Array, weights: Array, scale: float, margin: float, coupling: float, P: Array
) -> None:
    n, l = F.shape
    pos, neg = np.empty(l, np.int64), np.empty(l, np.int64)
    f_pos, f_neg, d_neg, moved = np.empty(l), np.empty(l), np.empty(l), np.empty(l)
    for i in range(n):
        p, q = _split(Y[i], F[i], pos, neg, f_pos, f_neg)
        if p == 0 or q == 0:
            continue
        c = scale * weights[i] / (p * q)
        for b in range(q):
            moved[b], d_neg[b] = 0.0, D[i, neg[b]]
        for a in range(p):
            shift, d, total = margin - f_pos[a], D[i, pos[a]], 0.0
            for b in range(q):
                active = 1.0 if shift + f_neg[b] > 0 else 0.0
                total += active * (d - coupling * d_neg[b])
                moved[b] += active * (d_neg[b] - coupling * d)
            P[i, pos[a]] += c * total
        for b in range(q):
            P[i, neg[b]] += c * moved[b]


@compiled
def pairwise_hinge_labels(Y: Array, F: Array, weights: Array, scale: float, margin: float, M: Array) -> None:
    # All labels are visited, the relevant ones far from any margin: a loop without indices vectorises.
    n, l = F.shape
    pos, rest = np.empty(l, np.int64), np.empty(l)
    half, diagonal = np.zeros((l, l)), np.zeros(l)
    for i in range(n):
        p = 0
        for j in range(l):
            rest[j] = F[i, j]
            if Y[i, j] > 0:
                pos[p], rest[j] = j, -np.inf
                p += 1
        if p == 0 or p == l:
            continue
        c = scale * weights[i] / (p * (l - p))
        for a in range(p):
            j = pos[a]
            shift, row, count = margin - F[i, j], half[j], 0.0
            for k in range(l):
                one = c if shift + rest[k] > 0 else 0.0
                row[k] += one
                diagonal[k] += one
                count += one
            diagonal[j] += count
    for j in range(l):
        M[j, j] += diagonal[j]
        for k in range(l):
            M[j, k] -= half[j, k] + half[k, j]


@compiled
def pairwise_hinge_line(
    Y: Array, F: Array, D: Array, t: Array, weights: Array, scale: float, margin: float, d1: Array, d2: Array
) -> tuple[float, float]:
    n, l = F.shape
    pos, neg = np.empty(l, np.int64), np.empty(l, np.int64)
    f_pos, f_neg, d_neg = np.empty(l), np.empty(l), np.empty(l)
    push, active, f = np.empty(l), np.empty(l), np.empty(l)
    value = joint = 0.0
    for i in range(n):
        for j in range(l):
            f[j] = F[i, j] + t[j] * D[i, j]
        p, q = _split(Y[i], f, pos, neg, f_pos, f_neg)
        if p == 0 or q == 0:
            continue
        c = scale * weights[i] / (p * q)
        squares = curvature = 0.0
        for b in range(q):
            push[b] = active[b] = 0.0
            d_neg[b] = D[i, neg[b]]
        for a in range(p):
            shift, d, pull, count = margin - f_pos[a], D[i, pos[a]], 0.0, 0.0
            for b in range(q):
                slack = max(shift + f_neg[b], 0.0)
                one = 1.0 if slack > 0 else 0.0
                squares += slack * slack
                curvature += one * (d - d_neg[b]) ** 2
                pull += slack
                count += one
                push[b] += slack
                active[b] += one
            d1[pos[a]] -= c * pull * d
            d2[pos[a]] += c * count * d * d
        for b in range(q):
            d1[neg[b]] += c * push[b] * d_neg[b]
            d2[neg[b]] += c * active[b] * d_neg[b] ** 2
        value += 0.5 * c * squares
        joint += c * curvature
    return value, joint


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
