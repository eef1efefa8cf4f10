"""Directions in which a Gram matrix is diagonal, also where its columns differ by many orders of magnitude."""

import numpy as np
from scipy.linalg import eigh

# A decomposition in double precision knows eigenvalues above this share of its largest to four digits; what is below
# is decomposed again by itself.
SURE = 1e-11
# Below this share of the largest eigenvalue a direction is the rounding of the others: 1e-14 of the largest singular value.
NOISE = 1e-28
# Where the Gram matrix is all that is left of the rows, its own rounding is the limit.
GRAM_NOISE = 1e-14


def whiten(gram, projected=None):
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
