"""Which coordinates suit a feature matrix."""

from rbrl.designs.eigen import EigenDesign
from rbrl.designs.matrix import column_squares
from rbrl.designs.rotated import RotatedDesign
from rbrl.designs.row_space import RowSpaceDesign

# A decomposition of this size takes about as much memory as a machine is sure to have: 4 x 8 x size^2 bytes are 2 GB.
LARGEST_DECOMPOSITION = 8000
# Weights of few rows are sums over rows, in which a column this much larger than another leaves the other's no digits
# that a certificate could use.
LARGEST_SPREAD = 1e4
# Up to this many features they are decomposed instead, in about a second.
WIDEST = 2000


def linear_design(X):
    """The design of a feature matrix: whitened where the decomposition pays, turned towards its leading
    directions where it does not.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features), float64
    """
    n, m = X.shape
    if min(n, m) > LARGEST_DECOMPOSITION:
        return RotatedDesign(X)
    few_rows = n < m and (m > WIDEST or rows_tell_columns(X))
    return RowSpaceDesign(X) if few_rows else EigenDesign(X)


def rows_tell_columns(X):
    """Whether inner products of rows hold enough digits of every column: these do not differ too much in size."""
    squares = column_squares(X)
    present = squares[squares > 0]
    return not len(present) or present.max() <= LARGEST_SPREAD**2 * present.min()
