"""The loops of the losses compiled with Numba: one pass over the scores, or over the pairs of labels of each row.

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


# One text serves weights of rows and of entries: Numba compiles it for each of them, and what a helper below answers with
# None or 1 is not there in the machine code for rows.
@compiled
def _of_row(weights: Array, i: int) -> tuple[float, Array | None]:
    """The weight of a row, and those of its entries where these have their own."""
    return (weights[i], None) if weights.ndim == 1 else (1.0, weights[i])


@compiled
def _at(weights: Array | None, j: int) -> float:
    return 1.0 if weights is None else weights[j]


@compiled
def squared_hinge(Y: Array, F: Array, weights: Array, scale: float, costs: Array, R: Array) -> tuple[float, float]:
    n, l = F.shape
    value = linear = 0.0
    for i in range(n):
        of_row, of_entries = _of_row(weights, i)
        w = scale * of_row
        for j in range(l):
            y, weight = float(Y[i, j]), w * _at(of_entries, j)
            cost = weight * costs[j] if y > 0 else weight
            slack = max(abs(y) - y * F[i, j], 0.0)
            value += 0.5 * cost * slack * slack
            linear += cost * slack
            R[i, j] -= cost * y * slack
    return value, linear


@compiled
def squared_hinge_diagonal(Y: Array, F: Array, weights: Array, scale: float, costs: Array, H: Array) -> None:
    n, l = F.shape
    for i in range(n):
        of_row, of_entries = _of_row(weights, i)
        w = scale * of_row
        for j in range(l):
            y, weight = float(Y[i, j]), w * _at(of_entries, j)
            cost = weight * costs[j] if y > 0 else weight
            H[i, j] += cost if y * F[i, j] < abs(y) else 0.0


@compiled
def squared_hinge_labels(Y: Array, F: Array, weights: Array, scale: float, costs: Array, M: Array) -> None:
    n, l = F.shape
    for i in range(n):
        of_row, of_entries = _of_row(weights, i)
        w = scale * of_row
        for j in range(l):
            y, weight = float(Y[i, j]), w * _at(of_entries, j)
            cost = weight * costs[j] if y > 0 else weight
            M[j, j] += cost if y * F[i, j] < abs(y) else 0.0


@compiled
def squared_hinge_line(
    Y: Array, F: Array, D: Array, t: Array, weights: Array, scale: float, costs: Array, d1: Array, d2: Array
) -> tuple[float, float]:
    n, l = F.shape
    value = joint = 0.0
    for i in range(n):
        of_row, of_entries = _of_row(weights, i)
        w = scale * of_row
        for j in range(l):
            y, d, weight = float(Y[i, j]), D[i, j], w * _at(of_entries, j)
            cost = weight * costs[j] if y > 0 else weight
            slack = max(abs(y) - y * (F[i, j] + t[j] * d), 0.0)
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
    # Without a branch: what is written where the label is of the other kind, the next one overwrites.
    for j in range(y.shape[0]):
        pos[p], f_pos[p] = j, f[j]
        p += y[j] > 0
        neg[q], f_neg[q] = j, f[j]
        q += y[j] < 0
    return p, q


@compiled
def _sides(weights: Array) -> tuple[Array | None, Array | None]:
    """Room for the weights of a row's relevant and irrelevant entries, where these have their own."""
    return (None, None) if weights.ndim == 1 else (np.empty(weights.shape[1]), np.empty(weights.shape[1]))


@compiled
def _gather(weights: Array, i: int, labels: Array, count: int, out: Any) -> None:
    """The weights of some entries of a row, into `out`, if they have their own."""
    if weights.ndim == 2:
        for a in range(count):
            out[a] = weights[i, labels[a]]


@compiled
def _price(Y: Array, weights: Array, i: int, scale: float, p: int, q: int) -> float:
    """What a pair of a row counts beside the weights of its two entries."""
    if weights.ndim == 1:
        return scale * weights[i] / (p * q)
    of_pos = of_neg = 0.0
    for j in range(Y.shape[1]):
        if Y[i, j] > 0:
            of_pos += weights[i, j]
        elif Y[i, j] < 0:
            of_neg += weights[i, j]
    return scale * ((of_pos + of_neg) / (p + q)) / (of_pos * of_neg)


@compiled
def pairwise_hinge(Y: Array, F: Array, weights: Array, scale: float, margin: float, R: Array) -> tuple[float, float]:
    n, l = F.shape
    pos, neg = np.empty(l, np.int64), np.empty(l, np.int64)
    f_pos, f_neg, push = np.empty(l), np.empty(l), np.empty(l)
    w_pos, w_neg = _sides(weights)
    value = linear = 0.0
    for i in range(n):
        p, q = _split(Y[i], F[i], pos, neg, f_pos, f_neg)
        if p == 0 or q == 0:
            continue
        price = _price(Y, weights, i, scale, p, q)
        _gather(weights, i, pos, p, w_pos)
        _gather(weights, i, neg, q, w_neg)
        squares = total = 0.0
        push[:q] = 0.0
        for a in range(p):
            shift, pull, w = margin - f_pos[a], 0.0, _at(w_pos, a)
            for b in range(q):
                slack = max(shift + f_neg[b], 0.0)
                weighted = _at(w_neg, b) * slack
                squares += w * weighted * slack
                pull += weighted
                push[b] += w * weighted
            R[i, pos[a]] -= price * w * pull
            total += w * pull
        for b in range(q):
            R[i, neg[b]] += price * push[b]
        value += 0.5 * price * squares
        linear += price * margin * total
    return value, linear


@compiled
def pairwise_hinge_product(
    Y: Array, F: Array, D: Array, weights: Array, scale: float, margin: float, coupling: float, P: Array
) -> None:
    n, l = F.shape
    pos, neg = np.empty(l, np.int64), np.empty(l, np.int64)
    f_pos, f_neg, d_neg, moved = np.empty(l), np.empty(l), np.empty(l), np.empty(l)
    w_pos, w_neg = _sides(weights)
    for i in range(n):
        p, q = _split(Y[i], F[i], pos, neg, f_pos, f_neg)
        if p == 0 or q == 0:
            continue
        price = _price(Y, weights, i, scale, p, q)
        _gather(weights, i, pos, p, w_pos)
        _gather(weights, i, neg, q, w_neg)
        for b in range(q):
            moved[b], d_neg[b] = 0.0, D[i, neg[b]]
        for a in range(p):
            shift, d, total, w = margin - f_pos[a], D[i, pos[a]], 0.0, _at(w_pos, a)
            for b in range(q):
                active = _at(w_neg, b) if shift + f_neg[b] > 0 else 0.0
                total += active * (d - coupling * d_neg[b])
                moved[b] += w * active * (d_neg[b] - coupling * d)
            P[i, pos[a]] += price * w * total
        for b in range(q):
            P[i, neg[b]] += price * moved[b]


@compiled
def pairwise_hinge_labels(Y: Array, F: Array, weights: Array, scale: float, margin: float, M: Array) -> None:
    # All labels are visited, those that are not irrelevant far from any margin: a loop without indices vectorises.
    n, l = F.shape
    pos, rest = np.empty(l, np.int64), np.empty(l)
    half, diagonal = np.zeros((l, l)), np.zeros(l)
    for i in range(n):
        _, of_entries = _of_row(weights, i)
        p = q = 0
        for j in range(l):
            rest[j] = F[i, j] if Y[i, j] < 0 else -np.inf
            q += Y[i, j] < 0
        for j in range(l):
            if Y[i, j] > 0:
                pos[p] = j
                p += 1
        if p == 0 or q == 0:
            continue
        price = _price(Y, weights, i, scale, p, q)
        for a in range(p):
            j = pos[a]
            shift, row, count = margin - F[i, j], half[j], 0.0
            w = price * _at(of_entries, j)
            for k in range(l):
                one = w * _at(of_entries, k) if shift + rest[k] > 0 else 0.0
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
    w_pos, w_neg = _sides(weights)
    value = joint = 0.0
    for i in range(n):
        for j in range(l):
            f[j] = F[i, j] + t[j] * D[i, j]
        p, q = _split(Y[i], f, pos, neg, f_pos, f_neg)
        if p == 0 or q == 0:
            continue
        price = _price(Y, weights, i, scale, p, q)
        _gather(weights, i, pos, p, w_pos)
        _gather(weights, i, neg, q, w_neg)
        squares = curvature = 0.0
        for b in range(q):
            push[b] = active[b] = 0.0
            d_neg[b] = D[i, neg[b]]
        for a in range(p):
            shift, d, pull, count, w = margin - f_pos[a], D[i, pos[a]], 0.0, 0.0, _at(w_pos, a)
            for b in range(q):
                slack = max(shift + f_neg[b], 0.0)
                weighted, one = _at(w_neg, b) * slack, _at(w_neg, b) if slack > 0 else 0.0
                squares += w * weighted * slack
                curvature += w * one * (d - d_neg[b]) ** 2
                pull += weighted
                count += one
                push[b] += w * weighted
                active[b] += w * one
            d1[pos[a]] -= price * w * pull * d
            d2[pos[a]] += price * w * count * d * d
        for b in range(q):
            d1[neg[b]] += price * push[b] * d_neg[b]
            d2[neg[b]] += price * active[b] * d_neg[b] ** 2
        value += 0.5 * price * squares
        joint += price * curvature
    return value, joint
