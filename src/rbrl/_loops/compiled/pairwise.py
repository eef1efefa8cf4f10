"""The squared hinge of pairs of labels, compiled: direct loops over relevant x irrelevant.

A row's irrelevant scores are gathered into a contiguous buffer first, so that the inner loop over them vectorises.
"""

import numpy as np

from rbrl._loops.compiled.options import compiled


@compiled
def _gather(y, f, pos, neg, f_pos, f_neg):
    """Split a row: indices and scores of its relevant and irrelevant labels; return their numbers."""
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
def pairwise_hinge(Y, F, weights, scale, margin, R):
    n, l = F.shape
    pos, neg = np.empty(l, np.int64), np.empty(l, np.int64)
    f_pos, f_neg, push = np.empty(l), np.empty(l), np.empty(l)
    value = linear = 0.0
    for i in range(n):
        p, q = _gather(Y[i], F[i], pos, neg, f_pos, f_neg)
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
def pairwise_hinge_diagonal(Y, F, weights, scale, margin, H):
    n, l = F.shape
    pos, neg = np.empty(l, np.int64), np.empty(l, np.int64)
    f_pos, f_neg, active = np.empty(l), np.empty(l), np.empty(l)
    for i in range(n):
        p, q = _gather(Y[i], F[i], pos, neg, f_pos, f_neg)
        if p == 0 or q == 0:
            continue
        c = scale * weights[i] / (p * q)
        active[:q] = 0.0
        for a in range(p):
            shift, count = margin - f_pos[a], 0.0
            for b in range(q):
                one = 1.0 if shift + f_neg[b] > 0 else 0.0
                count += one
                active[b] += one
            H[i, pos[a]] += c * count
        for b in range(q):
            H[i, neg[b]] += c * active[b]


@compiled
def pairwise_hinge_product(Y, F, D, weights, scale, margin, P):
    n, l = F.shape
    pos, neg = np.empty(l, np.int64), np.empty(l, np.int64)
    f_pos, f_neg, moved = np.empty(l), np.empty(l), np.empty(l)
    for i in range(n):
        p, q = _gather(Y[i], F[i], pos, neg, f_pos, f_neg)
        if p == 0 or q == 0:
            continue
        c = scale * weights[i] / (p * q)
        moved[:q] = 0.0
        for a in range(p):
            shift, d, total = margin - f_pos[a], D[i, pos[a]], 0.0
            for b in range(q):
                step = d - D[i, neg[b]] if shift + f_neg[b] > 0 else 0.0
                total += step
                moved[b] += step
            P[i, pos[a]] += c * total
        for b in range(q):
            P[i, neg[b]] -= c * moved[b]


@compiled
def pairwise_hinge_labels(Y, F, weights, scale, margin, M):
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
def pairwise_hinge_line(Y, F, D, t, weights, scale, margin, d1, d2):
    n, l = F.shape
    pos, neg = np.empty(l, np.int64), np.empty(l, np.int64)
    f_pos, f_neg, d_neg = np.empty(l), np.empty(l), np.empty(l)
    push, active, f = np.empty(l), np.empty(l), np.empty(l)
    value = joint = 0.0
    for i in range(n):
        for j in range(l):
            f[j] = F[i, j] + t[j] * D[i, j]
        p, q = _gather(Y[i], f, pos, neg, f_pos, f_neg)
        if p == 0 or q == 0:
            continue
        c = scale * weights[i] / (p * q)
        squares = bends = 0.0
        for b in range(q):
            push[b] = active[b] = 0.0
            d_neg[b] = D[i, neg[b]]
        for a in range(p):
            shift, d, pull, count = margin - f_pos[a], D[i, pos[a]], 0.0, 0.0
            for b in range(q):
                slack = max(shift + f_neg[b], 0.0)
                one = 1.0 if slack > 0 else 0.0
                squares += slack * slack
                bends += one * (d - d_neg[b]) ** 2
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
        joint += c * bends
    return value, joint
