"""Small algebra of the solvers, compiled."""

import numpy as np

from rbrl._loops.compiled.options import compiled


@compiled
def column_dots(A, B, joint):
    out = np.zeros(A.shape[1])
    for k in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[j] += A[k, j] * B[k, j]
    if joint:
        out[:] = out.sum()
    return out


@compiled
def memory_backward(q, steps, changes, rho, order, joint):
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
def memory_forward(z, steps, changes, rho, order, joint, coefficients):
    for i in order:
        c = coefficients[i] - rho[i] * column_dots(changes[i], z, joint)
        step = steps[i]
        for k in range(z.shape[0]):
            for j in range(z.shape[1]):
                z[k, j] += step[k, j] * c[j]


@compiled
def clipped_dual_maximum(sigma, linear, quadratic, reach, ridge, limit):
    best, at, theta = 0.0, 0.0, min(1.0, reach)
    for _ in range(30):
        over2, slope, bend = 0.0, linear - 2 * theta * quadratic, 2 * quadratic
        for s in sigma:
            over = theta * s - limit
            if over > 0:
                over2 += over * over
                slope -= s * over / ridge
                bend += s * s / ridge
        value = theta * linear - theta * theta * quadratic - over2 / (2 * ridge)
        if value > best:
            best, at = value, theta
        if bend <= 0:
            break
        previous = theta
        theta = min(max(theta + slope / bend, 0.0), reach)
        if abs(theta - previous) < 1e-13 * theta:
            break
    return best, at


@compiled
def _cholesky(M):
    """The lower factor, in place."""
    l = M.shape[0]
    for j in range(l):
        s = M[j, j]
        for p in range(j):
            s -= M[j, p] * M[j, p]
        root = np.sqrt(s)
        M[j, j] = root
        for i in range(j + 1, l):
            s = M[i, j]
            for p in range(j):
                s -= M[i, p] * M[j, p]
            M[i, j] = s / root


@compiled
def _cholesky_solve(M, x):
    """Solve with a lower factor and its transpose, in place."""
    l = M.shape[0]
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
def block_solve(G, first, A, second, B, C, out):
    K, l = G.shape
    M = np.empty((l, l))
    for k in range(K):
        for i in range(l):
            out[k, i] = G[k, i]
            for j in range(i + 1):
                M[i, j] = first[k] * A[i, j] + second[k] * B[i, j] + C[i, j]
        _cholesky(M)
        _cholesky_solve(M, out[k])
