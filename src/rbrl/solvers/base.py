"""What every solver returns, and how it says that it did not arrive."""

import warnings
from dataclasses import dataclass, field

import numpy as np

from rbrl.exceptions import ConvergenceWarning


@dataclass
class SolverResult:
    """Weights with a certificate.

    Attributes
    ----------
    weights : array (n_columns, n_labels)
        In the coordinates of the objective's design.
    objective : float
    gap : float
        Rigorous upper bound on the relative distance of `objective` from the optimum.
    evaluations : float
        One is a product with the design and one with its transpose.
    n_iter : int
    converged : bool
        Whether the solver's own stopping rule was met.
    history : array
        Objective values, one per iteration.
    costs : array
        Evaluations after which each of them was known.
    scores : array (n_samples, n_labels)
        Both may be None: not every solver keeps them.
    dual_scores : array (n_samples, n_labels)
        The scores whose loss gradient gave the best lower bound; None means `scores`.
    """

    weights: np.ndarray
    objective: float
    gap: float
    evaluations: float
    n_iter: int
    converged: bool
    history: np.ndarray = field(repr=False)
    costs: np.ndarray | None = field(repr=False, default=None)
    scores: np.ndarray | None = field(repr=False, default=None)
    dual_scores: np.ndarray | None = field(repr=False, default=None)


def relative_gap(value, bound):
    """Distance of `value` from the optimum at most, relative to a lower bound of that optimum."""
    if value <= bound:
        return 0.0
    return float((value - bound) / bound) if bound > 0 else np.inf


WAY_OUT = "Raise max_iter or tol, scale X, or use a larger ridge."
NO_CERTIFICATE = (
    "With ridge=0 and nuclear=0 no weights have a certificate. Use a small ridge, such as 1e-4, to have one."
)


def way_out(objective):
    """What to do about a gap that stays above the tolerance."""
    return WAY_OUT if objective.ridge.weight or objective.nuclear.weight else NO_CERTIFICATE


def warn_unconverged(solver, result, tol, max_iter, way_out=WAY_OUT):
    """One warning that names what was reached and the way out; a `tol` of None is not mentioned."""
    aim = "" if tol is None else f", above tol={tol:g}"
    certified = f"a certified relative gap of {result.gap:.1e}{aim}"
    reached = certified if np.isfinite(result.gap) else f"an objective of {result.objective:.6g}, not certified"
    warnings.warn(
        f"{solver} stopped after {result.n_iter} iterations (max_iter={max_iter}) with {reached}. {way_out}",
        ConvergenceWarning,
        stacklevel=3,
    )
