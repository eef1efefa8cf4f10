"""Products of sparse rows with many columns at once."""

import numpy as np


def sparse_product(data, indices, indptr, W, out):
    """Add X @ W, for X in compressed rows; W may have further rows."""
    np.add.at(out, _row_of_entry(indptr), data[:, None] * W[indices])


def sparse_adjoint(data, indices, indptr, D, out):
    """Add X' @ D, for X in compressed rows; `out` may have further rows."""
    np.add.at(out, indices, data[:, None] * D[_row_of_entry(indptr)])


def _row_of_entry(indptr):
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
