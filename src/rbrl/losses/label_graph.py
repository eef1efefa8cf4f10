"""Quadratic terms that couple labels: scores of neighbours in a graph of labels pull together or push apart."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from rbrl._common.typing import Array, FloatArray
from rbrl.losses.base import Loss, RowTerms, Terms
from rbrl.losses.weights import Weights, mean_weights

# Differences of scores at a time: 32 MB.
BLOCK_ENTRIES = 2**22


@dataclass(frozen=True, eq=False)
class LabelGraph(Loss):
    r"""Quadratic form in every row's scores.

    .. math:: \tfrac12 \operatorname{tr}(F L F') = \tfrac12 \sum_i f_i' L f_i

    No label enters: it holds for the scores of entries that nobody looked at, too, in a row where somebody looked at others.
    With weights of entries, a row counts their mean.

    Parameters
    ----------
    matrix : array (n_labels, n_labels)
        L, symmetric and positive semidefinite: the Laplacian or signless Laplacian of a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import LabelGraph
    >>> together = LabelGraph(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    >>> together.value(np.array([[1, -1]], dtype=np.int8), np.array([[3.0, 1.0]]))
    2.0
    """

    matrix: FloatArray

    def accumulate(self, Y: Array, F: FloatArray, weights: Weights, scale: float, R: FloatArray) -> Terms:
        """Add scale x gradient to R; a quadratic form is its own dual term."""
        w = scale * mean_weights(Y, weights)
        R += w[:, None] * (F @ self.matrix)
        value = 0.5 * self._form(F, w)
        return Terms(value, linear=0.0, quadratic=value)

    def _form(self, F: FloatArray, w: FloatArray) -> float:
        r"""The weighted sum of :math:`f' L f = \sum_{j<k} |L_{jk}| (f_j \pm f_k)^2 + \sum_j r_j f_j^2`.

        Large scores that hardly differ, which a Laplacian does not mind, do not cancel in this form.
        """
        j, k, signs, sizes, rest = self._edges
        total, step = 0.0, max(1, BLOCK_ENTRIES // (len(j) + 1))
        for start in range(0, len(F), step):
            G = F[start : start + step]
            of_rows = (G[:, j] + signs * G[:, k]) ** 2 @ sizes + (G**2 @ rest if rest.any() else 0.0)
            total += float(w[start : start + step] @ of_rows)
        return max(total, 0.0)

    @cached_property
    def _edges(self) -> tuple[Array, Array, FloatArray, FloatArray, FloatArray]:
        """Pairs of labels, their signs and weights, and what the diagonal has beyond them, rounding left out."""
        L = self.matrix
        j, k = np.nonzero(np.triu(L, 1))
        diagonal = np.diag(L)
        rest = diagonal - (np.abs(L).sum(axis=1) - np.abs(diagonal))
        return j, k, np.sign(L[j, k]), np.abs(L[j, k]), np.where(np.abs(rest) > 1e-12 * np.abs(diagonal), rest, 0.0)

    def row_terms(self, n_labels: int) -> RowTerms:
        """Return the quadratic form alone."""
        return RowTerms(0.0, np.ones(n_labels), 0.0, 0.0, sparse.csr_array(self.matrix))

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """The diagonal of L in every row: (n, l)."""
        return np.outer(mean_weights(Y, weights), np.diag(self.matrix))

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        """D times L: (n, l)."""
        return mean_weights(Y, weights)[:, None] * (D @ self.matrix)

    def rounding_reach(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the sizes of the scores times those of L: (n, l)."""
        return mean_weights(Y, weights)[:, None] * (np.abs(F) @ np.abs(self.matrix))

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """L as often as there are rows: (n_labels, n_labels)."""
        return mean_weights(Y, weights).sum() * self.matrix

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """The largest eigenvalue of L, in every row."""
        return np.linalg.eigvalsh(self.matrix)[-1] * mean_weights(Y, weights)


def laplacians_of_products(
    products: FloatArray, n_samples: float | FloatArray, n_neighbors: int = 3
) -> tuple[FloatArray, FloatArray]:
    r"""Label graphs of CPNL, from how often two labels agree.

    Entries :math:`S^+_{jk}` are the share of rows in which labels j and k agree, :math:`S^-_{jk}` in which they differ. In
    each row of S only entries above its `n_neighbors`-th largest are kept, the zero diagonal taking part; then S is made
    symmetric.

    Parameters
    ----------
    products : array (n_labels, n_labels)
        Y'Y of labels in {-1, 0, +1}.
    n_samples : float or array (n_labels, n_labels)
        How many rows these are sums over; an array where not all labels were looked at in all rows. Labels that never were
        in the same row are no neighbours.
    n_neighbors : int

    Returns
    -------
    positive, negative : arrays (n_labels, n_labels)
        :math:`L^+ = D^+ - S^+`, under which labels that agree pull together, and :math:`L^- = D^- + S^-`, under which
        labels that differ push apart.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses.label_graph import laplacians_of_products
    >>> Y = np.array([[1, 1, -1], [1, 1, 1], [-1, -1, 1]])
    >>> positive, _ = laplacians_of_products(Y.T @ Y, n_samples=3, n_neighbors=2)
    >>> positive.round(2).tolist()
    [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    counts = np.broadcast_to(n_samples, products.shape)
    agreement = 0.5 * (1.0 + np.divide(products, counts, out=np.zeros(products.shape), where=counts > 0))
    shares = (np.where(counts > 0, S, 0.0) for S in (agreement, 1.0 - agreement))
    positive, negative = (_sparsified(S, n_neighbors) for S in shares)
    return np.diag(positive.sum(axis=0)) - positive, np.diag(negative.sum(axis=0)) + negative


def _sparsified(S: FloatArray, n_neighbors: int) -> FloatArray:
    np.fill_diagonal(S, 0.0)
    # With fewer labels than neighbours, what lies above the smallest entry is kept.
    rank = min(n_neighbors, len(S))
    threshold = np.sort(S, axis=1)[:, -rank]
    # Shares that are equal stay so in spite of rounding.
    kept = np.where(S - threshold[:, None] > 1e-9, S, 0.0)
    return 0.5 * (kept + kept.T)
