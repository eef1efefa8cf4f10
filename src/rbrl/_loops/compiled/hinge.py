"""The squared hinge of one score at a time, compiled."""

from rbrl._loops.compiled.options import compiled


@compiled
def squared_hinge(Y, F, weights, scale, costs, R):
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
def squared_hinge_diagonal(Y, F, weights, scale, costs, H):
    n, l = F.shape
    for i in range(n):
        w = scale * weights[i]
        for j in range(l):
            cost = w * costs[j] if Y[i, j] > 0 else w
            H[i, j] += cost if Y[i, j] * F[i, j] < 1.0 else 0.0


@compiled
def squared_hinge_product(Y, F, D, weights, scale, costs, P):
    n, l = F.shape
    for i in range(n):
        w = scale * weights[i]
        for j in range(l):
            cost = w * costs[j] if Y[i, j] > 0 else w
            P[i, j] += cost * D[i, j] if Y[i, j] * F[i, j] < 1.0 else 0.0


@compiled
def squared_hinge_labels(Y, F, weights, scale, costs, M):
    n, l = F.shape
    for i in range(n):
        w = scale * weights[i]
        for j in range(l):
            cost = w * costs[j] if Y[i, j] > 0 else w
            M[j, j] += cost if Y[i, j] * F[i, j] < 1.0 else 0.0


@compiled
def squared_hinge_line(Y, F, D, t, weights, scale, costs, d1, d2):
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
