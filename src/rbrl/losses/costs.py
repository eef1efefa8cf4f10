"""Squared hinge with a price on missed relevant labels."""

from dataclasses import dataclass

import numpy as np

from rbrl.losses.base import row_weights
from rbrl.losses.row_kernels import RowKernelLoss


@dataclass(frozen=True, eq=False)
class CostWeightedSquaredHinge(RowKernelLoss):
    r"""Squared hinge of every label, relevant entries at the cost of their label: the loss of CPNL.

    .. math:: \tfrac12 \sum_{ij} c_{ij} |1 - y_{ij} f_{ij}|_+^2, \qquad
              c_{ij} = c_j \text{ if } y_{ij} = 1, \text{ else } 1

    Parameters
    ----------
    costs : array (n_labels,)
    """

    costs: np.ndarray
    kernel = "squared_hinge"

    def _parameter(self, Y):
        return self.costs

    def curvature(self, Y, weights=None):
        """Labels do not couple: the highest cost in the row."""
        return np.where(Y > 0, self.costs, 1.0).max(axis=1) * row_weights(weights, len(Y))


def imbalance_costs(Y, power=0.5, weights=None):
    r"""Costs of relevant entries that rise with their rarity.

    .. math:: c_j = (n_j^- / n_j^+)^\beta

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, +1}.
    power : float
        :math:`\beta`.
    weights : array (n_samples,) or None
        Rows count that often.

    Returns
    -------
    array (n_labels,)
        1 for a label that is nowhere relevant: it has no entry to be used on.
    """
    counts = row_weights(weights, len(Y))
    return costs_of_counts(counts @ (Y > 0), counts @ (Y < 0), power)


def costs_of_counts(relevant, irrelevant, power=0.5):
    """The costs of :func:`imbalance_costs`, from how often each label is relevant and irrelevant."""
    ratio = np.divide(irrelevant, relevant, out=np.ones(len(relevant)), where=relevant > 0)
    return ratio**power
