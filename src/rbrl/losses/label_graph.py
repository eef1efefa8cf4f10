"""Quadratic terms that couple labels: scores of neighbours in a graph of labels pull together or push apart."""

from dataclasses import dataclass

import numpy as np

from rbrl.losses.base import Loss, Terms, row_weights


@dataclass(frozen=True, eq=False)
class LabelGraph(Loss):
    r"""Quadratic form in every row's scores.

    .. math:: \tfrac12 \operatorname{tr}(F L F') = \tfrac12 \sum_i f_i' L f_i

    Parameters
    ----------
    matrix : array (n_labels, n_labels)
        L, symmetric and positive semidefinite: the Laplacian or signless Laplacian of a graph.
    """

    matrix: np.ndarray

    def accumulate(self, Y, F, weights, scale, R):
        pull = (scale * row_weights(weights, len(F)))[:, None] * (F @ self.matrix)
        R += pull
        # Large scores that hardly differ cancel, but a quadratic form is not negative.
        value = max(0.5 * float(np.vdot(pull, F)), 0.0)
        return Terms(value, linear=0.0, quadratic=value)

    def hessian_diagonal(self, Y, F, weights=None):
        return np.outer(row_weights(weights, len(F)), np.diag(self.matrix))

    def hessian_product(self, Y, F, D, weights=None):
        return row_weights(weights, len(F))[:, None] * (D @ self.matrix)

    def label_hessian(self, Y, F, weights=None):
        return row_weights(weights, len(F)).sum() * self.matrix

    def curvature(self, Y, weights=None):
        """The largest eigenvalue of L, in every row."""
        return np.linalg.eigvalsh(self.matrix)[-1] * row_weights(weights, len(Y))


def agreement_laplacians(Y, n_neighbors=3, weights=None):
    r"""Label graphs of CPNL, from how often two labels agree.

    Entries :math:`S^+_{jk}` are the share of rows in which labels j and k agree, :math:`S^-_{jk}` in which they differ. In
    each row of S only entries above its `n_neighbors`-th largest are kept, the zero diagonal taking part; then S is made
    symmetric.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, +1}.
    n_neighbors : int
    weights : array (n_samples,) or None
        Rows count that often.

    Returns
    -------
    positive, negative : arrays (n_labels, n_labels)
        :math:`L^+ = D^+ - S^+`, under which labels that agree pull together, and :math:`L^- = D^- + S^-`, under which
        labels that differ push apart.
    """
    counts = row_weights(weights, len(Y))
    signed = Y.astype(np.float64)
    return laplacians_of_products(signed.T @ (counts[:, None] * signed), counts.sum(), n_neighbors)


def laplacians_of_products(products, n_samples, n_neighbors=3):
    """The graphs of :func:`agreement_laplacians`, from Y'Y of labels in {-1, +1}."""
    agreement = 0.5 * (1.0 + products / n_samples)
    positive, negative = (_sparsified(S, n_neighbors) for S in (agreement, 1.0 - agreement))
    return np.diag(positive.sum(axis=0)) - positive, np.diag(negative.sum(axis=0)) + negative


def _sparsified(S, n_neighbors):
    np.fill_diagonal(S, 0.0)
    # With fewer labels than neighbours, what lies above the smallest entry is kept.
    rank = min(n_neighbors, len(S))
    threshold = np.sort(S, axis=1)[:, -rank]
    # Shares that are equal stay so in spite of rounding.
    kept = np.where(S - threshold[:, None] > 1e-9, S, 0.0)
    return 0.5 * (kept + kept.T)
