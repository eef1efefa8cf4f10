"""Which coordinates suit a feature matrix."""

from scipy import sparse

from rbrl.designs.eigen import EigenDesign
from rbrl.designs.matrix import MatrixDesign
from rbrl.designs.row_space import RowSpaceDesign

# Measured on rcv1subset1 (6000 x 47236): a decomposition of this size costs more than the evaluations it saves.
LARGEST_DECOMPOSITION = 3000


def linear_design(X):
    """The design of a feature matrix: whitened where the decomposition pays, the matrix itself where it does not.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features), float64
    """
    n, m = X.shape
    if min(n, m) > LARGEST_DECOMPOSITION and sparse.issparse(X):
        return MatrixDesign(X)
    return RowSpaceDesign(X) if n < m else EigenDesign(X)
