"""Quadratic losses on a graph of labels, and counts of labels for the graph and for costs."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.typing import Array, FloatArray
from rbrl.losses.base import Loss, RowTerms, Terms
from rbrl.losses.weights import Weights, mean_weights, row_weights

# Number of differences of scores that are computed at a time: 32 MB.
EDGE_BLOCK_ENTRIES = 2**22


@dataclass(frozen=True, eq=False)
class LabelGraph(Loss):
    r"""Quadratic form in the scores of every row.

    .. math:: \tfrac12 \operatorname{tr}(F L F') = \tfrac12 \sum_i f_i' L f_i

    The loss does not depend on the values of the labels. It includes the scores of missing labels, unless
    all labels of the row are missing. With weights of entries, a row has their mean as its weight.

    Parameters
    ----------
    matrix : array (n_labels, n_labels)
        Matrix L, symmetric and positive semidefinite: the Laplacian or signless Laplacian of a graph.

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
        """Add scale x gradient to R; the quadratic term of the dual bound is the loss itself."""
        w = scale * mean_weights(Y, weights)
        R += w[:, None] * (F @ self.matrix)
        value = 0.5 * self._form(F, w)
        return Terms(value, linear=0.0, quadratic=value)

    def _form(self, F: FloatArray, w: FloatArray) -> float:
        r"""Return the weighted sum of :math:`f' L f = \sum_{j<k} |L_{jk}| (f_j \pm f_k)^2 + \sum_j r_j f_j^2`.

        This form avoids the cancellation of large scores that differ little.
        """
        j, k, signs, sizes, rest = self._edges
        total = 0.0
        step = max(1, EDGE_BLOCK_ENTRIES // (len(j) + 1))
        for start in range(0, len(F), step):
            G = F[start : start + step]
            forms = (G[:, j] + signs * G[:, k]) ** 2 @ sizes + (G**2 @ rest if rest.any() else 0.0)
            total += float(w[start : start + step] @ forms)
        return max(total, 0.0)

    @cached_property
    def _edges(self) -> tuple[Array, Array, FloatArray, FloatArray, FloatArray]:
        """Return pairs of labels j < k, their signs and weights, and the rest of the diagonal.

        The first four arrays have one entry for each non-zero L_jk. The rest r has one entry for
        each label: L_jj minus the sum of |L_jk|, without rounding errors. It may be negative.
        """
        L = self.matrix
        j, k = np.nonzero(np.triu(L, 1))
        diagonal = np.diag(L)
        rest = diagonal - (np.abs(L).sum(axis=1) - np.abs(diagonal))
        # The rest of the Laplacian of a graph is 0, and its rounding errors are smaller than this.
        rest = np.where(np.abs(rest) > 1e-12 * np.abs(diagonal), rest, 0.0)
        return j, k, np.sign(L[j, k]), np.abs(L[j, k]), rest

    def row_terms(self, n_labels: int) -> RowTerms:
        """Return the quadratic form alone."""
        return RowTerms(0.0, np.ones(n_labels), 0.0, 0.0, sparse.csr_array(self.matrix))

    def hessian_diagonal(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the weighted diagonal of L in every row."""
        return np.outer(mean_weights(Y, weights), np.diag(self.matrix))

    def hessian_product(self, Y: Array, F: FloatArray, D: FloatArray, weights: Weights = None) -> FloatArray:
        """Return D times L, times the weight of each row: a new array."""
        return mean_weights(Y, weights)[:, None] * (D @ self.matrix)

    def rounding_reach(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return the absolute scores times the absolute entries of L, weighted."""
        return mean_weights(Y, weights)[:, None] * (np.abs(F) @ np.abs(self.matrix))

    def label_hessian(self, Y: Array, F: FloatArray, weights: Weights = None) -> FloatArray:
        """Return L times the sum of the weights of the rows."""
        return mean_weights(Y, weights).sum() * self.matrix

    def curvature(self, Y: Array, weights: Weights = None) -> FloatArray:
        """Return the largest eigenvalue of L times the weight of each row."""
        return np.linalg.eigvalsh(self.matrix)[-1] * mean_weights(Y, weights)


class LabelCounts(NamedTuple):
    """Weighted counts of labels, for losses that depend on all labels.

    Attributes
    ----------
    n_samples : float
        Number of rows.
    relevant, irrelevant : arrays (n_labels,)
        Numbers of rows in which each label is relevant, and irrelevant.
    products : array (n_labels, n_labels)
        Matrix Y'Y of labels in {-1, 0, +1}.
    together : array (n_labels, n_labels)
        Number of rows in which both labels of each pair are known.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses.label_graph import label_counts
    >>> counts = label_counts(np.array([[1, -1], [1, 1], [-1, -1]]))
    >>> counts.n_samples, counts.relevant.tolist(), counts.products.tolist()
    (3.0, [2.0, 1.0], [[3.0, 1.0], [1.0, 3.0]])
    """

    n_samples: float
    relevant: FloatArray
    irrelevant: FloatArray
    products: FloatArray
    together: FloatArray


def label_counts(Y: Array, weights: Weights = None) -> LabelCounts:
    """Return the weighted counts of labels in {-1, 0, +1}, where 0 is a missing label.

    Parameters
    ----------
    Y : array (n_rows, n_labels)
    weights : array (n_rows,) or (n_rows, n_labels), or None
        Weights of rows or of entries. A pair of entries has the geometric mean of their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses.label_graph import label_counts
    >>> label_counts(np.array([[1, -1], [1, 1]])).relevant
    array([2., 1.])
    """
    w = row_weights(weights, len(Y))
    Y = np.asarray(Y)
    labels = Y.astype(np.float64)
    known = np.abs(labels)
    n_samples = float(mean_weights(Y, weights).sum())
    if w.ndim == 2:
        relevant, irrelevant = (np.where(side, w, 0.0).sum(axis=0) for side in (Y > 0, Y < 0))
        labels *= np.sqrt(w)
        known *= np.sqrt(w)
        return LabelCounts(n_samples, relevant, irrelevant, labels.T @ labels, known.T @ known)
    together = np.full((Y.shape[1],) * 2, n_samples) if Y.all() else known.T @ (w[:, None] * known)
    return LabelCounts(n_samples, w @ (Y > 0), w @ (Y < 0), labels.T @ (w[:, None] * labels), together)


def costs_of_counts(relevant: FloatArray, irrelevant: FloatArray, power: float = 0.5) -> FloatArray:
    r"""Return costs of relevant entries that are higher for rare labels.

    .. math:: c_j = (n_j^- / n_j^+)^\beta

    Parameters
    ----------
    relevant, irrelevant : arrays (n_labels,)
        Numbers of rows in which each label is relevant, and irrelevant.
    power : float
        Exponent :math:`\beta`.

    Returns
    -------
    array (n_labels,)
        Costs. The cost is 1 for a label that is relevant in no row. For :math:`\beta > 0`, it is 0 for a
        label that is irrelevant in no row.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses.label_graph import costs_of_counts
    >>> costs_of_counts(np.array([1, 3]), np.array([4, 2]), power=1.0).round(2).tolist()
    [4.0, 0.67]
    """
    ratio = np.divide(irrelevant, relevant, out=np.ones(len(relevant)), where=relevant > 0)
    return ratio**power


def laplacians_of_products(
    products: FloatArray, n_samples: float | FloatArray, n_neighbors: int = 3
) -> tuple[FloatArray, FloatArray]:
    r"""Return the Laplacians of the label graphs of CPNL.

    :math:`S^+_{jk}` is the share of rows in which the labels j and k agree, and :math:`S^-_{jk}` is the share
    of rows in which they differ. Each row of S keeps only the entries above its `n_neighbors`-th largest
    entry, where the zero diagonal counts as an entry. Then S is made symmetric.

    Parameters
    ----------
    products : array (n_labels, n_labels)
        Matrix Y'Y of labels in {-1, 0, +1}.
    n_samples : float or array (n_labels, n_labels)
        Number of rows, or, if labels are missing, number of rows in which both labels of each pair are
        known. Labels without a common row are not neighbours.
    n_neighbors : int
        Number that limits the neighbours of a label, as above: usually `n_neighbors` - 1 remain.

    Returns
    -------
    positive, negative : arrays (n_labels, n_labels)
        Matrix :math:`L^+ = D^+ - S^+`, which makes scores of labels that agree similar, and matrix
        :math:`L^- = D^- + S^-`, which makes scores of labels that differ opposite.

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
    positive, negative = (_keep_neighbors(S, n_neighbors) for S in shares)
    return np.diag(positive.sum(axis=0)) - positive, np.diag(negative.sum(axis=0)) + negative


def _keep_neighbors(S: FloatArray, n_neighbors: int) -> FloatArray:
    """Return the entries of each row of S above its `n_neighbors`-th largest one, made symmetric.

    S (n_labels, n_labels) gets a diagonal of 0, in place. The result is a new array.
    """
    np.fill_diagonal(S, 0.0)
    # If there are fewer labels than neighbours, all entries above the smallest one are kept.
    rank = min(n_neighbors, len(S))
    threshold = np.sort(S, axis=1)[:, -rank]
    # Shares that differ by rounding errors count as equal.
    kept = np.where(S - threshold[:, None] > 1e-9, S, 0.0)
    return 0.5 * (kept + kept.T)
