"""Small spectral tools: singular values and thresholding of tall matrices, largest eigenvalues."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dsyevd
from scipy.sparse.linalg import LinearOperator, eigsh

from rbrl._common.typing import FloatArray, Matrix, issparse

# Below this share of the largest singular value, squaring (the Gram matrix) has lost the digits.
GRAM_FLOOR = 1e-4
# The decomposition of a matrix with a shorter side than this is cheap beside what else is done with it.
EXACT_BELOW = 1000


def gram_eigh(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (ascending, not negative) and eigenvectors of a positive semidefinite matrix, without the checks that cost
    more than a small one."""
    if not gram.size:
        return np.zeros(0), gram
    values, V, failed = dsyevd(gram)
    values, V = np.linalg.eigh(gram) if failed else (values, V)
    return np.maximum(values, 0.0), V


def small_gram(W: FloatArray) -> tuple[FloatArray, bool]:
    """The smaller of W'W and WW', and whether it is the latter; of no rows nothing is asked."""
    wide = 0 < W.shape[0] < W.shape[1]
    return W @ W.T if wide else W.T @ W, wide


def gram_singular_values(W: FloatArray) -> FloatArray:
    """Singular values, ascending, from the smaller Gram matrix: quick, with eight digits of the largest."""
    # All of them even for the largest alone: LAPACK's routine for one eigenvalue gives up on matrices whose entries differ
    # by many orders of magnitude.
    gram = small_gram(W)[0]
    if not gram.size:
        return np.zeros(0)
    values, _, failed = dsyevd(gram, compute_v=0)
    return np.sqrt(np.maximum(np.linalg.eigvalsh(gram) if failed else values, 0.0))


def singular_values(W: FloatArray) -> FloatArray:
    """Return singular values, largest first, to the digits of the largest: norms of W times each eigenvector of W'W.

    The Gram matrix blurs the eigenvectors of small singular values. What W has along those is decomposed again, by itself.
    The sum of the result is never below that of the singular values. An SVD takes several times as long.
    """
    tall = W if W.shape[0] >= W.shape[1] else W.T
    _, V = gram_eigh(tall.T @ tall)
    images = tall @ V
    sizes = np.sqrt(squares(images))
    blurred = sizes < GRAM_FLOOR * sizes.max(initial=0.0)
    if blurred.any():
        sizes[blurred] = singular_values(images[:, blurred])
    return np.sort(sizes)[::-1]


def leading_singular(
    W: FloatArray, most: int, above: float = 0.0, near: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Left singular vectors, singular values (descending) and right ones of W: the `most` largest that exceed `above`.

    Exact where all are asked for, or the shorter side is moderate; by subspace iteration else, which finds what stands
    out. It starts from the columns of `near`, where right singular vectors are expected, and as many others as are asked
    for.
    """
    if min(W.shape) > max(EXACT_BELOW, most):
        P, sigma, Q = _subspace_iteration(W, most, near)
        keep = (sigma > above) & (sigma > 1e-8 * sigma.max(initial=0.0))
        return P[:, keep], sigma[keep], Q[:, keep]
    gram, wide = small_gram(W)
    values, V = gram_eigh(gram)
    sigma, V = np.sqrt(values[::-1]), V[:, ::-1]
    largest = np.flatnonzero((sigma > above) & (sigma > 1e-8 * sigma.max(initial=0.0)))[:most]
    sigma, V = sigma[largest], V[:, largest]
    return (V, sigma, (W.T @ V) / sigma) if wide else ((W @ V) / sigma, sigma, V)


def _subspace_iteration(
    W: FloatArray, size: int, near: FloatArray | None = None, spare: int = 10
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The `size` largest singular triples, approximately."""
    Q = np.random.default_rng(0).standard_normal((W.shape[1], size + spare))
    Q = (Q if near is None else np.hstack([near, Q]))[:, : min(W.shape)]
    for _ in range(6):
        P = np.linalg.qr(W @ Q)[0]
        Q = np.linalg.qr(W.T @ P)[0]
    left, sigma, turn = np.linalg.svd(W @ Q, full_matrices=False)
    return left[:, :size], sigma[:size], (Q @ turn.T)[:, :size]


def leading_eigenvectors(
    product: Callable[[FloatArray], FloatArray], size: int, most: int, extra: int = 8, rounds: int = 3
) -> tuple[FloatArray, FloatArray]:
    """Orthonormal directions in which a positive semidefinite matrix is largest, `most` of them, and how large, nearly.

    By subspace iteration on its product with a matrix of few columns; so many `extra` ones make the last directions good,
    too.
    """
    V = np.random.default_rng(0).standard_normal((size, min(most + extra, size)))
    for _ in range(rounds):
        V = np.linalg.qr(product(V))[0]
    values, turn = np.linalg.eigh(V.T @ product(V))
    return V @ turn[:, ::-1][:, :most], np.maximum(values[::-1][:most], 0.0)


def threshold_singular_values(W: FloatArray, amount: float) -> FloatArray:
    """Shrink every singular value by `amount`, to no less than zero: eq. (24) of the paper.

    W V (1 - amount / sigma)_+ V' needs only the small Gram matrix, and is accurate for singular values above
    `GRAM_FLOOR` of the largest. Where smaller ones must be kept, the full SVD is used.
    """
    if amount == 0 or W.size == 0:
        return W.copy()
    if W.shape[0] < W.shape[1]:
        return threshold_singular_values(W.T, amount).T
    values, V = gram_eigh(W.T @ W)
    sigma = np.sqrt(values)
    if amount > GRAM_FLOOR * sigma[-1]:
        keep = sigma > amount
        return ((W @ V[:, keep]) * (1.0 - amount / sigma[keep])) @ V[:, keep].T
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return (U * np.maximum(s - amount, 0.0)) @ Vt


def clip_singular_values(W: FloatArray, limit: float) -> FloatArray:
    """The nearest matrix with no singular value above `limit`."""
    if 0 < W.shape[0] < W.shape[1]:
        return clip_singular_values(W.T, limit).T
    clip, clipped, far = np.eye(W.shape[1]), W, True
    while far:
        values, V = gram_eigh(clipped.T @ clipped)
        sigma = np.sqrt(values)
        clip = clip @ ((V * (limit / np.maximum(sigma, max(limit, np.finfo(float).tiny)))) @ V.T)
        # The Gram matrix of a W far outside blurs singular values near the limit: what it gives is clipped once more.
        clipped, far = W @ clip, bool(sigma[-1] > 10 * limit > 0)
    return clipped


def largest_eigenvalue(product: Callable[[FloatArray], FloatArray], size: int, exact_below: int = 500) -> float:
    """Largest eigenvalue of a symmetric positive semidefinite operator, given its product with a matrix.

    Small operators are formed and solved; for large ones the Lanczos value is raised by its residual.
    """
    if size == 0:
        return 0.0
    if size <= exact_below:
        matrix = product(np.eye(size))
        return float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[-1])
    operator = LinearOperator((size, size), matvec=lambda v: product(v.reshape(size, -1)).ravel(), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    value, vector = eigsh(operator, k=1, which="LA", v0=start, tol=1e-4)
    residual = np.linalg.norm(operator @ vector[:, 0] - value[0] * vector[:, 0])
    return float(value[0] + residual)


# Entries of a dense block of rows: 32 MB.
BLOCK_ENTRIES = 2**22
# A decomposition in double precision knows eigenvalues above this share of its largest to four digits; what is below
# is decomposed again by itself.
SURE = 1e-11
# Below this share of the largest eigenvalue a direction is the rounding of the others: 1e-14 of the largest singular value.
NOISE = 1e-28
# Where the Gram matrix is all that is left of the rows, its own rounding is the limit.
GRAM_NOISE = 1e-14


def whiten(
    gram: FloatArray, projected: Callable[[FloatArray], FloatArray] | None = None
) -> tuple[FloatArray, FloatArray]:
    r"""Orthonormal directions V with :math:`V'X'XV = \operatorname{diag}(c)`, and c, largest first.

    The Gram matrix of columns of very different size holds nothing of the small ones: a column of 1e9 leaves of the others
    what :math:`10^{18}` in double precision leaves of 1. The directions without the large part are right all the same, and
    X times these is computed with the rounding of X, not of its square: its Gram matrix tells the rest, and so on.

    Parameters
    ----------
    gram : array (n_columns, n_columns)
        :math:`X'X`; its memory is reused.
    projected : callable, default=None
        From directions V (n_columns, k) to :math:`(XV)'(XV)`, computed from XV. None where the rows are gone.
    """
    sure, noise = (GRAM_NOISE, 0.0) if projected is None else (SURE, NOISE)
    c, V = eigh(gram, driver="evd", overwrite_a=True)
    largest, found = c[-1], []
    while True:
        first = int(np.searchsorted(c, max(sure * c[-1], noise * largest, 0.0), side="right"))
        found.append((V[:, first:][:, ::-1], c[first:][::-1]))
        if projected is None or first in (0, len(c)):
            break
        c, turn = eigh(projected(V[:, :first]), driver="evd", overwrite_a=True)
        V = V[:, :first] @ turn
    directions, diagonals = zip(*found)
    return np.ascontiguousarray(np.hstack(directions)), np.concatenate(diagonals)


def squares(X: Matrix, axis: int = 0) -> FloatArray:
    """Sums of squares of the columns; of the rows with ``axis=1``."""
    if issparse(X):
        X = X.tocsr(copy=not X.has_canonical_format)
        X.sum_duplicates()
        places = X.indices if axis == 0 else np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return np.bincount(places, np.square(X.data, dtype=np.float64), X.shape[1 - axis]).astype(np.float64)
    return np.einsum("ij,ij->j" if axis == 0 else "ij,ij->i", X, X)


def gram_matrix(X: Matrix) -> FloatArray:
    """X'X, dense."""
    G = X.T @ X
    return G.toarray() if issparse(G) else np.asarray(G)


def projected_gram(X: Matrix, V: FloatArray) -> FloatArray:
    """(XV)'(XV), some rows at a time."""
    step, total = max(1, BLOCK_ENTRIES // V.shape[1]), np.zeros((V.shape[1], V.shape[1]))
    for start in range(0, X.shape[0], step):
        Z = np.asarray(X[start : start + step] @ V)
        total += Z.T @ Z
    return total
