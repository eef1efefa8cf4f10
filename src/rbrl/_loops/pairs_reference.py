"""Hinge constraints on pairs of labels in plain NumPy: the definition that the compiled loops are tested against.

A pair e of row i, ``start[i] <= e < start[i + 1]``, asks that ``winner[e]`` scores ``margin[e]`` above ``loser[e]``; its
dual variable ``alpha[e]`` lies between 0 and ``cap[e]``.
"""

import numpy as np

from rbrl._common.typing import Array


def _ascend_row(
    pairs: range, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array, f: Array, curvature: float,
    inner: int,
) -> Array:  # fmt: skip
    """Coordinate steps over the pairs of one row; its scores f follow; return the change of its coefficients."""
    moved = np.zeros_like(f)
    if curvature <= 0.0:
        alpha[pairs] = cap[pairs]
        return moved
    for _ in range(inner):
        change = 0.0
        for e in pairs:
            a, b = winner[e], loser[e]
            new = min(max(alpha[e] + (margin[e] - f[a] + f[b]) * (0.5 / curvature), 0.0), cap[e])
            step, alpha[e] = new - alpha[e], new
            f[a], f[b] = f[a] + step * curvature, f[b] - step * curvature
            moved[a], moved[b] = moved[a] + step, moved[b] - step
            change = max(change, abs(step) / cap[e])
        if change < 1e-3:
            break
    return moved


def ascend_gram(
    K: Array, scores: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array,
    biases: Array, lift: float, order: Array, inner: int,
) -> None:  # fmt: skip
    """One sweep of dual coordinate ascent over the rows in `order`; alpha, scores (n_labels, n) and biases follow."""
    for i in order:
        f, pairs = scores[:, i] + biases, range(start[i], start[i + 1])
        moved = _ascend_row(pairs, winner, loser, margin, cap, alpha, f, K[i, i] + lift, inner)
        biases += lift * moved
        scores += np.outer(moved, K[i])


def ascend_rows(
    data: Array, indices: Array, indptr: Array, norms: Array, W: Array, start: Array, winner: Array, loser: Array,
    margin: Array, cap: Array, alpha: Array, biases: Array, lift: float, order: Array, inner: int,
) -> None:  # fmt: skip
    """One sweep of dual coordinate ascent over the CSR rows in `order`; alpha, weights W and biases follow."""
    for i in order:
        x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        f, pairs = x @ W[columns] + biases, range(start[i], start[i + 1])
        moved = _ascend_row(pairs, winner, loser, margin, cap, alpha, f, norms[i] + lift, inner)
        biases += lift * moved
        W[columns] += np.outer(x, moved)


def _row_of(start: Array) -> Array:
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def pair_hinge(F: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array) -> float:
    """Sum over the pairs of cap times hinge."""
    rows = _row_of(start)
    return float(np.sum(cap * np.maximum(margin - F[rows, winner] + F[rows, loser], 0.0)))


def pair_coefficients(start: Array, winner: Array, loser: Array, alpha: Array, R: Array) -> None:
    """Add the dual variables to their winners in R and take them from their losers."""
    rows = _row_of(start)
    np.add.at(R, (rows, winner), alpha)
    np.add.at(R, (rows, loser), -alpha)


def project_pairs(
    F: Array, biases: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array,
    steps: Array, new: Array, r: Array, H: Array,
) -> float:  # fmt: skip
    """Gradient steps on alpha clipped to their boxes, into `new`, with the scores shifted by the biases.

    The steps are the derivative of a convex function of the biases: its value is returned, its gradient added to r and
    its generalised Hessian to H.
    """
    rows = _row_of(start)
    step = steps[rows]
    slack = margin - F[rows, winner] - biases[winner] + F[rows, loser] + biases[loser]
    z = alpha + step * slack
    new[:] = np.clip(z, 0.0, cap)
    np.add.at(r, winner, -new)
    np.add.at(r, loser, new)
    curvature = np.where((z > 0) & (z < cap), step, 0.0)
    for a, b, sign in ((winner, winner, 1), (loser, loser, 1), (winner, loser, -1), (loser, winner, -1)):
        np.add.at(H, (a, b), sign * curvature)
    return float(np.sum(new * (z - 0.5 * new) / step))


def pair_slacks(F: Array, start: Array, winner: Array, loser: Array, margin: Array, out: Array) -> None:
    """What each pair lacks of its margin, into `out`."""
    rows = _row_of(start)
    out[:] = margin - F[rows, winner] + F[rows, loser]


def pair_products(F: Array, start: Array, winner: Array, loser: Array, curvatures: Array, R: Array) -> None:
    """Add to R the Hessian times F of half the sum over pairs of curvature times squared score difference."""
    rows = _row_of(start)
    pair_coefficients(start, winner, loser, curvatures * (F[rows, winner] - F[rows, loser]), R)


def pair_curvatures(start: Array, winner: Array, loser: Array, curvatures: Array, H: Array) -> None:
    """Add to H every row's sum of curvatures over the pairs of each label."""
    rows = _row_of(start)
    np.add.at(H, (rows, winner), curvatures)
    np.add.at(H, (rows, loser), curvatures)


def gram_blocks(data: Array, indices: Array, indptr: Array, H: Array, G: Array) -> None:
    """Add X' diag(h) X to G[:, :, k] for every column h of H, X a CSR matrix."""
    for i in range(len(H)):
        x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        G[np.ix_(columns, columns)] += np.multiply.outer(np.outer(x, x), H[i])
