"""Products of some rows with coefficients and back; coefficients with one row more than features have intercepts there."""

import numpy as np
from scipy import sparse

from rbrl._loops import rows

# Scores of this many entries at a time stay in the processor's cache.
SLICE_CELLS = 2**18


def slices(X, Y):
    """Yield (features, labels in {-1, +1}) of a few rows at a time."""
    step = max(1, SLICE_CELLS // max(Y.shape[1], 1))
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    for start in range(0, X.shape[0], step):
        yield X[start : start + step], signed(Y[start : start + step])


def signed(Y):
    """Labels in {-1, +1} of int8, from 0/1 or -1/+1, dense or sparse."""
    Y = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    return np.where(Y > 0, np.int8(1), np.int8(-1))


def scores(X, coefficients):
    """X @ coefficients, and the intercepts."""
    m = X.shape[1]
    F = np.zeros((X.shape[0], coefficients.shape[1]))
    if len(coefficients) > m:
        F += coefficients[m]
    if sparse.issparse(X):
        rows.sparse_product(X.data, X.indices, X.indptr, coefficients, F)
    else:
        F += X @ coefficients[:m]
    return F


def extended_scores(X, coefficients):
    """The same in extended precision where the machine has it, then rounded: slow, for weights whose products cancel."""
    W, m = coefficients.astype(np.longdouble), X.shape[1]
    F = np.asarray(X.astype(np.longdouble) @ W[:m])
    return (F + W[m] if len(W) > m else F).astype(np.float64)


def add_adjoint(X, R, out):
    """Add X' @ R to `out`, and the sum of R to its row of intercepts if it has one."""
    m = X.shape[1]
    if len(out) > m:
        out[m] += R.sum(axis=0)
    if sparse.issparse(X):
        rows.sparse_adjoint(X.data, X.indices, X.indptr, R, out)
    else:
        out[:m] += X.T @ R


def projected_gram(block, V):
    """(XV)'(XV) of one block, the ones of the intercept included, in a tuple."""
    total = np.zeros((V.shape[1], V.shape[1]))
    for X, _ in slices(block.X, block.Y):
        Z = scores(X, V)
        total += Z.T @ Z
    return (total,)


def label_products(block):
    """Number of rows, how often each label is relevant, and Y'Y of labels in {-1, +1}."""
    Y = signed(block.Y).astype(np.float64)
    return len(Y), np.count_nonzero(Y > 0, axis=0).astype(np.float64), Y.T @ Y
