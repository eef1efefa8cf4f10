"""Hinge constraints on pairs of labels, compiled: dual coordinate ascent and what goes with it."""

import numpy as np

from rbrl._loops.compiled import compiled


@compiled
def _ascend_row(first, last, winner, loser, margin, cap, alpha, f, curvature, inner, moved):
    """Coordinate steps over the pairs of one row; its scores f follow, the change of its coefficients is left in moved."""
    moved[:] = 0.0
    bend = 0.5 / curvature
    for _ in range(inner):
        change = 0.0
        for e in range(first, last):
            a, b, old = winner[e], loser[e], alpha[e]
            new = min(max(old + (margin[e] - f[a] + f[b]) * bend, 0.0), cap[e])
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
def ascend_gram(K, scores, start, winner, loser, margin, cap, alpha, biases, lift, order, inner):
    l, n = scores.shape
    f, moved = np.empty(l), np.empty(l)
    for i in order:
        curvature = K[i, i] + lift
        if curvature <= 0.0:
            alpha[start[i] : start[i + 1]] = cap[start[i] : start[i + 1]]
            continue
        if start[i] == start[i + 1]:
            continue
        for j in range(l):
            f[j] = scores[j, i] + biases[j]
        _ascend_row(start[i], start[i + 1], winner, loser, margin, cap, alpha, f, curvature, inner, moved)
        column = K[i]
        for j in range(l):
            step = moved[j]
            if step != 0.0:
                biases[j] += lift * step
                target = scores[j]
                for k in range(n):
                    target[k] += step * column[k]


@compiled
def ascend_rows(data, indices, indptr, norms, W, start, winner, loser, margin, cap, alpha, biases, lift, order, inner):
    l = W.shape[1]
    f, moved = np.empty(l), np.empty(l)
    for i in order:
        curvature = norms[i] + lift
        if curvature <= 0.0:
            alpha[start[i] : start[i + 1]] = cap[start[i] : start[i + 1]]
            continue
        if start[i] == start[i + 1]:
            continue
        f[:] = biases
        for e in range(indptr[i], indptr[i + 1]):
            x, w = data[e], W[indices[e]]
            for j in range(l):
                f[j] += x * w[j]
        _ascend_row(start[i], start[i + 1], winner, loser, margin, cap, alpha, f, curvature, inner, moved)
        if moved.any():
            biases += lift * moved
            for e in range(indptr[i], indptr[i + 1]):
                x, w = data[e], W[indices[e]]
                for j in range(l):
                    w[j] += x * moved[j]


@compiled
def pair_hinge(F, start, winner, loser, margin, cap):
    value = 0.0
    for i in range(F.shape[0]):
        for e in range(start[i], start[i + 1]):
            value += cap[e] * max(margin[e] - F[i, winner[e]] + F[i, loser[e]], 0.0)
    return value


@compiled
def pair_coefficients(start, winner, loser, alpha, R):
    for i in range(R.shape[0]):
        for e in range(start[i], start[i + 1]):
            R[i, winner[e]] += alpha[e]
            R[i, loser[e]] -= alpha[e]


@compiled
def project_pairs(F, biases, start, winner, loser, margin, cap, alpha, steps, new, r, H):
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
def pair_slacks(F, start, winner, loser, margin, out):
    for i in range(F.shape[0]):
        for e in range(start[i], start[i + 1]):
            out[e] = margin[e] - F[i, winner[e]] + F[i, loser[e]]


@compiled
def pair_products(F, start, winner, loser, bends, R):
    for i in range(F.shape[0]):
        for e in range(start[i], start[i + 1]):
            a, b = winner[e], loser[e]
            step = bends[e] * (F[i, a] - F[i, b])
            R[i, a] += step
            R[i, b] -= step


@compiled
def pair_bends(start, winner, loser, bends, H):
    for i in range(H.shape[0]):
        for e in range(start[i], start[i + 1]):
            H[i, winner[e]] += bends[e]
            H[i, loser[e]] += bends[e]


@compiled
def gram_blocks(data, indices, indptr, H, G):
    for i in range(H.shape[0]):
        h = H[i]
        for c in range(indptr[i], indptr[i + 1]):
            for d in range(indptr[i], indptr[i + 1]):
                x, target = data[c] * data[d], G[indices[c], indices[d]]
                for k in range(h.shape[0]):
                    target[k] += x * h[k]
