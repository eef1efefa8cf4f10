"""Linear algebra: singular values, eigenvalues and Gram matrices; and the order of scores in rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dsyevd
from scipy.sparse.linalg import LinearOperator, eigsh

from rbrl._common.typing import Array, FloatArray, IntArray, Matrix, issparse

# A Gram matrix squares the singular values. Below this share of the largest one, their digits are lost.
GRAM_FLOOR = 1e-4
# Matrices whose shorter side is at most this long are decomposed exactly, which is cheap enough.
EXACT_BELOW = 1000
# Number of entries of a dense block of rows of a projected Gram matrix: 32 MB.
GRAM_BLOCK_ENTRIES = 2**22
# Number of entries of a sparse matrix that are squared at a time, if its rows are shorter: 1 MB.
SPARSE_ENTRIES = 2**16
# Eigenvalues above this share of the largest one are accurate to four digits in double precision.
# Smaller ones are computed again from the rest of the matrix.
ACCURATE_SHARE = 1e-11
# An eigenvalue below this share of the largest one is a rounding error. The square root of this share
# is 1e-14 of the largest singular value.
NOISE_SHARE = 1e-28
# The same limit if only the Gram matrix is known, whose own rounding is larger.
GRAM_NOISE_SHARE = 1e-14


def gram_eigh(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues and eigenvectors of a symmetric positive semidefinite matrix.

    The eigenvalues ascend, and negative rounding errors are set to 0. The eigenvectors are the
    columns of the second array. `gram` is not changed. LAPACK is called directly, because the
    checks of NumPy cost more than a small decomposition.
    """
    if not gram.size:
        return np.zeros(0), gram
    values, V, failed = dsyevd(gram)
    if failed:
        values, V = np.linalg.eigh(gram)
    return np.maximum(values, 0.0), V


def small_gram(W: FloatArray) -> tuple[FloatArray, bool]:
    """Return the smaller of W'W and WW', and whether it is WW'; return W'W if they are equally large.

    Without rows, W'W is a matrix of zeros. It is always a new array.
    """
    is_wide = 0 < W.shape[0] < W.shape[1]
    return W @ W.T if is_wide else W.T @ W, is_wide


def gram_singular_values(W: FloatArray) -> FloatArray:
    """Return the singular values of W in ascending order, to eight digits of the largest one.

    They are computed from the smaller Gram matrix, which has min(W.shape) of them.
    """
    # All values are computed even if only the largest is needed: LAPACK's routine for one eigenvalue
    # fails for matrices whose entries differ by many orders of magnitude.
    gram = small_gram(W)[0]
    if not gram.size:
        return np.zeros(0)
    values, _, failed = dsyevd(gram, compute_v=0)
    return np.sqrt(np.maximum(np.linalg.eigvalsh(gram) if failed else values, 0.0))


def singular_values(W: FloatArray) -> FloatArray:
    """Return singular values in descending order, as the norms of W times each eigenvector of W'W.

    There are min(W.shape) of them. The errors are rounding errors of the largest singular value.
    The Gram matrix does not resolve the eigenvectors of small singular values, so that the
    projection of W on these is decomposed again. The sum of the result is never below the sum of
    the exact singular values. This is faster than an SVD.
    """
    tall = W if W.shape[0] >= W.shape[1] else W.T
    _, V = gram_eigh(tall.T @ tall)
    projections = tall @ V
    sigma = np.sqrt(squares(projections))
    is_small = sigma < GRAM_FLOOR * sigma.max(initial=0.0)
    if is_small.any():
        sigma[is_small] = singular_values(projections[:, is_small])
    return np.sort(sigma)[::-1]


def leading_singular(
    W: Any, most: int, above: float = 0.0, near: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return left singular vectors, singular values (descending) and right singular vectors of W.

    Vectors are columns. The result has the `most` largest singular values that exceed `above` and
    1e-8 of the largest one; there may be none. It is exact if all are asked for or if the shorter
    side of W is at most `EXACT_BELOW`. Otherwise, subspace iteration starts from the columns of
    `near` (W.shape[1], k), which approximate right singular vectors, and from `most` random columns
    with a fixed seed. W may be a LinearOperator, of which only products are known.
    """
    if isinstance(W, LinearOperator) or min(W.shape) > max(EXACT_BELOW, most):
        P, sigma, Q = _subspace_iteration(W, most, near)
        keep = (sigma > above) & (sigma > 1e-8 * sigma.max(initial=0.0))
        return P[:, keep], sigma[keep], Q[:, keep]
    gram, is_wide = small_gram(W)
    values, V = gram_eigh(gram)
    sigma = np.sqrt(values)
    ascending = np.flatnonzero((sigma > above) & (sigma > 1e-8 * sigma.max(initial=0.0)))
    largest = ascending[::-1][:most]
    sigma = sigma[largest]
    V = V[:, largest]
    return (V, sigma, (W.T @ V) / sigma) if is_wide else ((W @ V) / sigma, sigma, V)


def _subspace_iteration(
    W: Any, size: int, near: FloatArray | None = None, spare: int = 10
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return approximations of the `size` largest singular values with their vectors.

    The form is that of :func:`leading_singular`. `spare` further columns make the last values more
    accurate. The random columns have a fixed seed.
    """
    Q = np.random.default_rng(0).standard_normal((W.shape[1], size + spare))
    Q = (Q if near is None else np.hstack([near, Q]))[:, : min(W.shape)]
    # Callers check what they do with these vectors, so that six rounds are exact enough.
    for _ in range(6):
        P = np.linalg.qr(W @ Q)[0]
        Q = np.linalg.qr(W.T @ P)[0]
    left, sigma, right = np.linalg.svd(W @ Q, full_matrices=False)
    return left[:, :size], sigma[:size], (Q @ right.T)[:, :size]


def leading_eigenvectors(
    product: Callable[[FloatArray], FloatArray], size: int, most: int, extra: int = 8, rounds: int = 3
) -> tuple[FloatArray, FloatArray]:
    """Return approximate leading eigenvectors and eigenvalues of a positive semidefinite matrix.

    The largest comes first; vectors are columns. There are `most` of them, or `size` if that is
    less. Subspace iteration multiplies the matrix by `most` columns and `extra` columns, which
    improve the accuracy of the last eigenvectors. The start is random with a fixed seed.
    """
    V = np.random.default_rng(0).standard_normal((size, min(most + extra, size)))
    for _ in range(rounds):
        V = np.linalg.qr(product(V))[0]
    values, rotation = np.linalg.eigh(V.T @ product(V))
    return V @ rotation[:, ::-1][:, :most], np.maximum(values[::-1][:most], 0.0)


def threshold_singular_values(W: FloatArray, amount: float) -> FloatArray:
    """Reduce every singular value by `amount`, but not below zero: eq. (24) of the paper.

    The result is a new array. W V (1 - amount / sigma)_+ V' needs only the small Gram matrix. It is
    accurate for singular values above `GRAM_FLOOR` of the largest. If smaller singular values
    remain, the full SVD is used.
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
    """Return the nearest matrix with no singular value above `limit` >= 0, as a new array."""
    if 0 < W.shape[0] < W.shape[1]:
        return clip_singular_values(W.T, limit).T
    clip = np.eye(W.shape[1])
    clipped = W
    while True:
        values, V = gram_eigh(clipped.T @ clipped)
        sigma = np.sqrt(values)
        clip = clip @ ((V * (limit / np.maximum(sigma, max(limit, np.finfo(float).tiny)))) @ V.T)
        clipped = W @ clip
        # If the largest singular value is far above the limit, the Gram matrix does not resolve those
        # near the limit, and the result is clipped once more.
        if not sigma[-1] > 10 * limit > 0:
            return clipped


def largest_eigenvalue(product: Callable[[FloatArray], FloatArray], size: int, exact_below: int = 500) -> float:
    """Return the largest eigenvalue of a positive semidefinite operator of a given size.

    `product` applies it to arrays (size, k), for any k. A small operator is formed and decomposed.
    For a large one, the residual is added to the Lanczos value, so that the result is not too
    small.
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


def whiten(
    gram: FloatArray, projected: Callable[[FloatArray], FloatArray] | None = None
) -> tuple[FloatArray, FloatArray]:
    r"""Return orthonormal directions V with :math:`V'X'XV = \operatorname{diag}(c)`, and c, largest first.

    If the columns of X differ much in size, the Gram matrix does not resolve the small columns: beside
    the square of a column of size 1e9, a column of size 1 is lost in double precision. The span of the
    remaining directions is accurate nevertheless. X times these directions has the rounding error of X
    and not of its square. Its Gram matrix is therefore decomposed in the same way, and so on.

    Parameters
    ----------
    gram : array (n_columns, n_columns)
        Gram matrix :math:`X'X`; it is overwritten.
    projected : callable, default=None
        Function that returns :math:`(XV)'(XV)`, computed from XV, for directions V (n_columns, k). None if
        the rows are not available.
    """
    shares = (GRAM_NOISE_SHARE, 0.0) if projected is None else (ACCURATE_SHARE, NOISE_SHARE)
    accurate_share, noise_share = shares
    c, V = eigh(gram, driver="evd", overwrite_a=True)
    largest = c[-1]
    found = []
    while True:
        limit = max(accurate_share * c[-1], noise_share * largest, 0.0)
        first = int(np.searchsorted(c, limit, side="right"))
        found.append((V[:, first:][:, ::-1], c[first:][::-1]))
        if projected is None or first in (0, len(c)):
            break
        c, rotation = eigh(projected(V[:, :first]), driver="evd", overwrite_a=True)
        V = V[:, :first] @ rotation
    directions, diagonals = zip(*found)
    return np.ascontiguousarray(np.hstack(directions)), np.concatenate(diagonals)


def squares(X: Matrix, axis: int = 0) -> FloatArray:
    """Return the sums of squares of the columns, or of the rows with ``axis=1``.

    They have the type of a dense X, and float64 for a sparse X.

    X is not changed.
    """
    if not issparse(X):
        return np.einsum("ij,ij->j" if axis == 0 else "ij,ij->i", X, X)
    X = sum_duplicates(X)
    sums = np.zeros(X.shape[1 - axis])
    # Some rows at a time are squared. The sums of a block are as long as a row of X.
    step = max(1, max(SPARSE_ENTRIES, X.shape[1]) * X.shape[0] // max(X.nnz, 1))
    for start in range(0, X.shape[0], step):
        block = X[start : start + step].astype(np.float64)
        place = slice(start, start + step) if axis else slice(None)
        sums[place] += np.asarray(block.power(2).sum(axis=axis)).ravel()
    return sums


def sum_duplicates(X: Any) -> Any:
    """Return sparse X as canonical CSR, with one entry for each place, in order; X itself if it is."""
    X = X.tocsr(copy=not X.has_canonical_format)
    X.sum_duplicates()
    return X


def gram_matrix(X: Matrix) -> FloatArray:
    """Return X'X as a new dense array (n_columns, n_columns)."""
    G = X.T @ X
    return G.toarray() if issparse(G) else np.asarray(G)


def projected_gram(X: Matrix, V: FloatArray) -> FloatArray:
    """Return (XV)'(XV), computed in blocks of rows: a new float64 array (k, k) for V (n_columns, k)."""
    step = max(1, GRAM_BLOCK_ENTRIES // V.shape[1])
    total = np.zeros((V.shape[1], V.shape[1]))
    for start in range(0, X.shape[0], step):
        Z = np.asarray(X[start : start + step] @ V)
        total += Z.T @ Z
    return total


def best_columns(F: FloatArray, k: int) -> IntArray:
    """Return the columns of the k largest scores of each row, best first.

    Of equal scores, the first column comes first. All columns are returned if there are at most k.

    Parameters
    ----------
    F : array (n_rows, n_columns)
        Scores.
    k : int

    Returns
    -------
    array (n_rows, k) of int

    Examples
    --------
    >>> best_columns(np.array([[0.1, 0.7, 0.7], [3.0, 1.0, 2.0]]), 2)
    array([[1, 2],
           [0, 2]])
    """
    k = min(k, F.shape[1])
    # If there are many labels, a partition and a sort of k columns cost much less than a sort of all.
    kth_score = np.partition(F, F.shape[1] - k, axis=1)[:, F.shape[1] - k, None]
    above = kth_score < F
    tied = kth_score == F
    n_free = k - np.count_nonzero(above, axis=1, keepdims=True)
    rows = np.flatnonzero(np.count_nonzero(tied, axis=1, keepdims=True) > n_free)
    tied[rows] &= tied[rows].cumsum(axis=1) <= n_free[rows]
    columns = np.nonzero(above | tied)[1].reshape(-1, k)
    order = np.argsort(-np.take_along_axis(F, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def best_columns_of_sparse(F: Any, k: int) -> IntArray:
    """Return what `best_columns` returns for the dense form of a CSR matrix.

    An entry that is not stored is 0. F is not changed. Time and memory grow with n_rows * k and the
    stored entries.

    Examples
    --------
    >>> from scipy import sparse
    >>> best_columns_of_sparse(sparse.csr_array([[0, 0, 0.7], [-3.0, 0, 2.0]]), 2)
    array([[2, 0],
           [2, 1]])
    """
    n_rows, n_columns = F.shape
    F = sum_duplicates(F)
    k = min(k, n_columns)
    n_stored = np.diff(F.indptr).astype(np.int64)
    # Of its zeros, a row needs at most the first k. They are among its first k + n_stored columns.
    n_first = np.minimum(k + n_stored, n_columns)
    first_columns = np.arange(n_first.sum()) - np.repeat(np.cumsum(n_first) - n_first, n_first)
    rows = np.arange(n_rows)
    places = np.concatenate([
        np.repeat(rows, n_stored) * n_columns + F.indices,
        np.repeat(rows, n_first) * n_columns + first_columns,
    ])  # fmt: skip
    scores = np.concatenate([F.data, np.zeros(len(first_columns))])
    places, chosen = np.unique(places, return_index=True)  # stored entries come first
    row, column = np.divmod(places, n_columns)
    order = np.lexsort((-scores[chosen], row))
    starts = np.searchsorted(row, rows)
    best: IntArray = column[order[starts[:, None] + np.arange(k)]]
    return best


def descending_order(F: FloatArray, later_first: bool = False) -> IntArray:
    """Return the columns of each row in the order of descending scores.

    Columns with equal scores come in any order, or the later column comes first. For the second, the
    tied columns are sorted as integers, which is faster than a stable sort of the scores.

    Parameters
    ----------
    F : array (n_rows, n_columns)
        Scores.
    later_first : bool, default=False
        Whether the later one of two columns with equal scores comes first.

    Returns
    -------
    array (n_rows, n_columns) of int
    """
    order = np.argsort(-F, axis=1)
    if not later_first:
        return order
    scores = np.take_along_axis(F, order, axis=1)
    tied = np.flatnonzero((scores[:, 1:] == scores[:, :-1]).any(axis=1))
    # A key is the pair (number of the tie, column counted from the right) as one integer.
    n_columns = F.shape[1]
    tie = np.zeros((len(tied), n_columns), dtype=np.int32 if n_columns**2 < 2**31 else np.int64)
    np.cumsum(scores[tied, 1:] != scores[tied, :-1], axis=1, out=tie[:, 1:])
    tie *= n_columns
    keys = tie + (n_columns - 1 - order[tied]).astype(tie.dtype)
    keys.sort(axis=1)
    order[tied] = n_columns - 1 - (keys - tie)
    return order


def last_of_tie(scores: Array) -> IntArray:
    """Return the position of the last score that equals each score, perhaps as a read-only view.

    Parameters
    ----------
    scores : array (n_rows, n_columns)
        Scores in descending order in each row.

    Returns
    -------
    array (n_rows, n_columns) of int

    Examples
    --------
    >>> last_of_tie(np.array([[3.0, 2.0, 2.0, 1.0]]))
    array([[0, 2, 2, 3]])
    """
    n_columns = scores.shape[1]
    position = np.broadcast_to(np.arange(n_columns), scores.shape)
    tied = scores[:, 1:] == scores[:, :-1]
    if not tied.any():
        return position
    position = position.copy()
    position[:, :-1][tied] = n_columns
    return np.minimum.accumulate(position[:, ::-1], axis=1)[:, ::-1]


def first_of_tie(scores: Array) -> IntArray:
    """Return the position of the first score that equals each score.

    Parameters
    ----------
    scores : array (n_rows, n_columns)
        Scores in descending order in each row.

    Returns
    -------
    array (n_rows, n_columns) of int
    """
    return scores.shape[1] - 1 - last_of_tie(scores[:, ::-1])[:, ::-1]
