"""Which coordinates suit a feature matrix."""

from rbrl.designs.eigen import EigenDesign
from rbrl.designs.rotated import RotatedDesign
from rbrl.designs.row_space import RowSpaceDesign

# A decomposition of this size takes about as much memory as a machine is sure to have: 4 x 8 x size^2 bytes are 2 GB.
LARGEST_DECOMPOSITION = 8000


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
    return RowSpaceDesign(X) if n < m else EigenDesign(X)
