"""The loops compiled with Numba: one pass over the scores.

A row's irrelevant scores are gathered into a contiguous buffer first, so that the inner loop over them vectorises.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

from rbrl._common.typing import Array

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
def _split(
    y: Array, f: Array, weight: float, pos: Array, neg: Array, f_pos: Array, f_neg: Array
) -> tuple[int, int, float]:
    """Indices and scores of a row's relevant and irrelevant labels; return their numbers and the weight of a pair, or 0."""
    p = q = 0
    for j in range(y.shape[0]):
        if y[j] > 0:
            pos[p], f_pos[p] = j, f[j]
            p += 1
        else:
            neg[q], f_neg[q] = j, f[j]
            q += 1
    return p, q, weight / (p * q) if p > 0 and q > 0 else 0.0


@compiled
def pairwise_hinge(Y: Array, F: Array, weights: Array, scale: float, margin: float, R: Array) -> tuple[float, float]:
    n, l = F.shape
    pos, neg = np.empty(l, np.int64), np.empty(l, np.int64)
    f_pos, f_neg, push = np.empty(l), np.empty(l), np.empty(l)
    value = linear = 0.0
    for i in range(n):
        p, q, c = _split(Y[i], F[i], scale * weights[i], pos, neg, f_pos, f_neg)
        if c == 0.0:
            continue
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
    f_pos, f_neg, moved = np.empty(l), np.empty(l), np.empty(l)
    for i in range(n):
        p, q, c = _split(Y[i], F[i], scale * weights[i], pos, neg, f_pos, f_neg)
        if c == 0.0:
            continue
        moved[:q] = 0.0
        for a in range(p):
            shift, d, total = margin - f_pos[a], D[i, pos[a]], 0.0
            for b in range(q):
                active = 1.0 if shift + f_neg[b] > 0 else 0.0
                total += active * (d - coupling * D[i, neg[b]])
                moved[b] += active * (D[i, neg[b]] - coupling * d)
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
        p, q, c = _split(Y[i], f, scale * weights[i], pos, neg, f_pos, f_neg)
        if c == 0.0:
            continue
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
def clipped_dual_maximum(
    sigma: Array, linear: float, quadratic: float, reach: float, ridge: float, limit: float
) -> tuple[float, float]:
    best, at, theta = 0.0, 0.0, min(1.0, reach)
    for _ in range(30):
        over2, slope, curvature = 0.0, linear - 2 * theta * quadratic, 2 * quadratic
        for s in sigma:
            over = theta * s - limit
            if over > 0:
                over2 += over * over
                slope -= s * over / ridge
                curvature += s * s / ridge
        value = theta * linear - theta * theta * quadratic - over2 / (2 * ridge)
        if value > best:
            best, at = value, theta
        if curvature <= 0:
            break
        previous = theta
        theta = min(max(theta + slope / curvature, 0.0), reach)
        if abs(theta - previous) < 1e-13 * theta:
            break
    return best, at


@compiled
def block_solve(G: Array, first: Array, A: Array, second: Array, B: Array, C: Array, out: Array) -> None:
    # Row by row of the Cholesky factor, the forward substitution with it; the divisions are by inverses, once each.
    K, l = G.shape
    M, inverse = np.empty((l, l)), np.empty(l)
    for k in range(K):
        x = out[k]
        for i in range(l):
            for j in range(i + 1):
                s = first[k] * A[i, j] + second[k] * B[i, j] + C[i, j]
                for p in range(j):
                    s -= M[i, p] * M[j, p]
                M[i, j] = s * inverse[j] if j < i else np.sqrt(s)
            inverse[i] = 1.0 / M[i, i]
            s = G[k, i]
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
