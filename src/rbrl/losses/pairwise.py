"""Losses of pairs of labels of one row."""

from dataclasses import dataclass

import numpy as np

from rbrl.losses.base import row_weights
from rbrl.losses.row_kernels import RowKernelLoss


@dataclass(frozen=True)
class PairwiseSquaredHinge(RowKernelLoss):
    r"""Squared hinge over each row's (relevant, irrelevant) label pairs: the ranking part of RBRL, eq. (16).

    .. math:: \tfrac12 \sum_i \tfrac{1}{|Y_i^+||Y_i^-|} \sum_{p \in Y_i^+,\, q \in Y_i^-} |c - (f_{ip} - f_{iq})|_+^2

    A row whose labels are all relevant or all irrelevant has no pair and contributes 0.

    Parameters
    ----------
    margin : float, default=2
        The margin c. Two is what a relevant score of +1 and an irrelevant one of -1 leave between them.
    """

    margin: float = 2.0
    kernel = "pairwise_hinge"

    def _parameter(self, Y):
        return float(self.margin)

    def curvature(self, Y, weights=None):
        """The Hessian of a row is at most the Laplacian of a complete bipartite graph over |Y+||Y-|: l / (|Y+||Y-|)."""
        p = np.count_nonzero(Y > 0, axis=1)
        pairs = p * (Y.shape[1] - p)
        bend = np.divide(Y.shape[1], pairs, out=np.zeros(len(Y)), where=pairs > 0)
        return bend * row_weights(weights, len(Y))
