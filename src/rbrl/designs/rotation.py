"""Coordinates in which the few directions that rows vary most along are axes: a cheap step towards whitened ones."""

import numpy as np
from scipy.linalg import lapack

# Beyond these directions, more of them saved no evaluations on text.
DIRECTIONS = 50


class Rotation:
    r"""An orthogonal matrix Q whose first columns are given, as a product of reflections.

    :math:`Q = I - Y T Y'` costs as much as its few columns, and leaves the other axes almost where they were. Ridge and
    nuclear norm do not notice it.

    Parameters
    ----------
    directions : array (n_features, k), orthonormal columns
    """

    def __init__(self, directions):
        qr, tau, _, _ = lapack.dgeqrf(np.asfortranarray(directions))
        k = directions.shape[1]
        self._Y = np.tril(qr, -1)
        self._Y[np.arange(k), np.arange(k)] = 1.0
        self._T = np.zeros((k, k))
        inner = self._Y.T @ self._Y
        for i in range(k):
            self._T[:i, i] = -tau[i] * (self._T[:i, :i] @ inner[:i, i])
            self._T[i, i] = tau[i]

    def __matmul__(self, W):
        """Q @ W."""
        return W - self._Y @ (self._T @ (self._Y.T @ W))

    @property
    def T(self):
        """Q'."""
        turned = object.__new__(Rotation)
        turned._Y, turned._T = self._Y, self._T.T
        return turned

    def diagonal_of(self, d):
        """Diagonal of Q' diag(d) Q."""
        C = self._T @ self._Y.T
        cross = np.einsum("ja,aj->j", self._Y, C)
        return d * (1.0 - 2.0 * cross) + np.einsum("aj,ab,bj->j", C, self._Y.T @ (d[:, None] * self._Y), C)


def rotated(product, diagonal, n_directions, seed=0, rounds=3):
    r"""A rotation towards the leading directions of a Gram matrix, and the diagonal of the Gram matrix after it.

    With the leading part :math:`V \operatorname{diag}(c) V'` and the diagonal known, the rest is taken for diagonal.

    Parameters
    ----------
    product : callable
        The Gram matrix, or an estimate of it, times a matrix of few columns.
    diagonal : array (n_features,)
    n_directions : int
    """
    V, c = leading_directions(product, len(diagonal), n_directions, seed, rounds)
    # What an estimate leaves of a column is kept above a tenth: too small a curvature would make steps too long.
    rest = np.maximum(diagonal - (V**2) @ c, 0.1 * diagonal)
    rotation = Rotation(V)
    diagonal = rotation.diagonal_of(rest)
    diagonal[:n_directions] = c
    return rotation, diagonal


def leading_directions(product, n_features, n_directions, seed=0, rounds=3):
    """Orthonormal directions in which a Gram matrix is largest, and how large; `product` as for :func:`rotated`."""
    extra = min(8, n_features - n_directions)
    V = np.random.default_rng(seed).standard_normal((n_features, n_directions + extra))
    for _ in range(rounds):
        V = np.linalg.qr(product(V))[0]
    c, turn = np.linalg.eigh(V.T @ product(V))
    return V @ turn[:, ::-1][:, :n_directions], np.maximum(c[::-1][:n_directions], 0.0)


def directions_worth(n_entries, n_features):
    """How many directions cost little beside a product with this many entries of X."""
    return int(min(DIRECTIONS, n_features, max(1, n_entries // (4 * max(n_features, 1)))))
