"""Lipschitz constants of the smooth part's gradient."""

import numpy as np

from rbrl.losses import PairwiseSquaredHinge, SquaredHinge, WeightedSum


def rigorous(objective):
    """Largest eigenvalue of Z' diag(row curvature of the loss) Z, plus that of the ridge: an upper bound, always."""
    row_curvature = objective.loss.curvature(objective.Y, objective.sample_weight)
    if not np.isfinite(row_curvature).all():
        raise ValueError(
            f"A constant step needs a loss of bounded curvature. Got {objective.loss!r}, whose curvature has no bound; "
            "use a solver that searches for its step."
        )
    return objective.design.largest_curvature(row_curvature) + objective.ridge.curvature


def paper(objective):
    """The constant of the paper's eqs. (23) and (31).

    It is not an upper bound in general: its proof varies one label's weights with the others fixed.
    """
    norms = objective.design.row_norms()
    r = objective.ridge.row_weights
    ridge = objective.ridge.weight * (1.0 if np.ndim(r) == 0 else float(np.linalg.norm(r)))
    ranking = _ranking_weight(objective.loss) * _paper_pairwise(objective.Y, norms)
    return float(np.sqrt(3 * np.sum(norms**2) ** 2 + 3 * ridge**2 + 3 * ranking**2))


def _paper_pairwise(Y, norms):
    """sqrt(max_j A_j B_j) of the paper's Proposition 1; rows without a pair are left out."""
    relevant = Y > 0
    p = relevant.sum(axis=1)
    q = Y.shape[1] - p
    both = (p > 0) & (q > 0)
    relevant, p, q, norms = relevant[both], p[both], q[both], norms[both]
    partners = np.where(relevant, q[:, None], p[:, None]).astype(float)
    B = (partners * (norms**4 / (p * q) ** 2.0)[:, None]).sum(axis=0)
    return float(np.sqrt(np.max(partners.sum(axis=0) * B, initial=0.0)))


def _ranking_weight(loss):
    terms = loss.terms if isinstance(loss, WeightedSum) else ((1.0, loss),)
    if any(not isinstance(part, SquaredHinge | PairwiseSquaredHinge) for _, part in terms):
        raise ValueError(f"lipschitz='paper' is defined for RBRL's loss only. Got {loss!r}; use lipschitz='rigorous'.")
    return sum(c for c, part in terms if isinstance(part, PairwiseSquaredHinge))


CONSTANTS = {"paper": paper, "rigorous": rigorous}
