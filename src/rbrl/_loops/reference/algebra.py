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


def block_solve(G, first, A, second, B, C, out):
    """Solve (first_k A + second_k B + C) x = G_k for every row k of G; the matrices are symmetric positive definite."""
    blocks = first[:, None, None] * A + second[:, None, None] * B + C
    out[:] = np.linalg.solve(blocks, G[:, :, None])[:, :, 0]
