"""Squared hinges: of one score at a time, with a price on missed labels, and of pairs of labels of one row."""

from dataclasses import dataclass

import numpy as np

from rbrl.losses.base import RowKernelLoss, row_weights


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
