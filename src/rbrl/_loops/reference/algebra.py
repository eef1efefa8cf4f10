"""Small algebra of the solvers."""

import numpy as np


def column_dots(A, B, joint):
    """Inner products of the columns of A and B; with `joint`, every entry is the sum of all."""
    out = np.einsum("kj,kj->j", A, B)
    return np.full_like(out, out.sum()) if joint else out


def memory_backward(q, steps, changes, rho, order, joint):
    """First loop of L-BFGS, newest pair first: q is changed in place; return the coefficients."""
    coefficients = np.zeros_like(rho)
    for i in order[::-1]:
        coefficients[i] = rho[i] * column_dots(steps[i], q, joint)
        q -= changes[i] * coefficients[i]
    return coefficients


def memory_forward(z, steps, changes, rho, order, joint, coefficients):
    """Second loop of L-BFGS, oldest pair first: z is changed in place."""
    for i in order:
        z += steps[i] * (coefficients[i] - rho[i] * column_dots(changes[i], z, joint))


def clipped_dual_maximum(sigma, linear, quadratic, reach, ridge, limit):
    """Largest value over theta in [0, reach] of theta linear - theta^2 quadratic - sum (theta sigma - limit)_+^2 / 2 ridge,
    and that theta.

    Newton on a concave function.
    """
    best, at, theta = 0.0, 0.0, min(1.0, reach)
    for _ in range(30):
        over = np.maximum(theta * sigma - limit, 0.0)
        value = theta * linear - theta**2 * quadratic - np.sum(over**2) / (2 * ridge)
        if value > best:
            best, at = value, theta
        slope = linear - 2 * theta * quadratic - np.sum(sigma * over) / ridge
        bend = 2 * quadratic + np.sum(sigma[over > 0] ** 2) / ridge
        if bend <= 0:
            break
        previous, theta = theta, min(max(theta + slope / bend, 0.0), reach)
        if abs(theta - previous) < 1e-13 * theta:
            break
    return best, at


def block_solve(G, first, A, second, B, C, out):
    """Solve (first_k A + second_k B + C) x = G_k for every row k of G; the matrices are symmetric positive definite."""
    blocks = first[:, None, None] * A + second[:, None, None] * B + C
    out[:] = np.linalg.solve(blocks, G[:, :, None])[:, :, 0]
