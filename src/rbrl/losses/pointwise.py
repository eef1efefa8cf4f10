"""Losses of one score at a time."""

from dataclasses import dataclass

import numpy as np

from rbrl.losses.base import row_weights
from rbrl.losses.row_kernels import RowKernelLoss


@dataclass(frozen=True)
class SquaredHinge(RowKernelLoss):
    r"""Squared hinge of every label: the Hamming part of RBRL, eq. (8).

    .. math:: \tfrac12 \sum_{ij} |1 - y_{ij} f_{ij}|_+^2
    """

    kernel = "squared_hinge"

    def _parameter(self, Y):
        return np.ones(Y.shape[1])

    def curvature(self, Y, weights=None):
        """Every label bends by at most 1, and labels do not couple."""
        return row_weights(weights, len(Y)).copy()
