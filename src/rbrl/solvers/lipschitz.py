"""Lipschitz constants of the smooth part's gradient."""

import numpy as np

from rbrl.losses import CostWeightedSquaredHinge, LabelGraph, PairwiseSquaredHinge, SquaredHinge, WeightedSum


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
    """The constant of the authors' own program: RBRL's, or CPNL's."""
    terms = objective.loss.terms if isinstance(objective.loss, WeightedSum) else ((1.0, objective.loss),)
    for constant, losses in (
        (_rbrl, (SquaredHinge, PairwiseSquaredHinge)),
        (_cpnl, (CostWeightedSquaredHinge, LabelGraph)),
    ):
        if all(isinstance(loss, losses) for _, loss in terms):
            return constant(objective, terms)
    raise ValueError(
        f"lipschitz='paper' is defined for the losses of RBRL and CPNL only. Got {objective.loss!r}; "
        "use lipschitz='rigorous'."
    )


def _rbrl(objective, terms):
    """Eqs. (23) and (31) of the RBRL paper.

    It is not an upper bound in general: its proof varies one label's weights with the others fixed.
    """
    norms = objective.design.row_norms()
    weight = sum(c for c, loss in terms if isinstance(loss, PairwiseSquaredHinge))
    ranking = weight * _paper_pairwise(objective.Y, norms)
    return float(np.sqrt(3 * np.sum(norms**2) ** 2 + 3 * _ridge_norm(objective) ** 2 + 3 * ranking**2))


def _cpnl(objective, terms):
    """The constant of CPNL's program: an upper bound, every term bounded by its Frobenius norm."""
    cost = max(float(np.max(np.where(objective.Y > 0, loss.costs, 1.0))) for _, loss in terms if hasattr(loss, "costs"))
    graphs = sum((c * np.linalg.norm(loss.matrix)) ** 2 for c, loss in terms if isinstance(loss, LabelGraph))
    squares = float(np.sum(objective.design.row_norms() ** 2))
    Z = objective.design.matrix()
    gram = float(np.linalg.norm(Z.T @ Z))
    return float(2 * np.sqrt(squares**2 * cost**2 + _ridge_norm(objective) ** 2 + graphs * gram**2))


def _ridge_norm(objective):
    r = objective.ridge.row_weights
    return objective.ridge.weight * (1.0 if np.ndim(r) == 0 else float(np.linalg.norm(r)))


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


CONSTANTS = {"paper": paper, "rigorous": rigorous}
