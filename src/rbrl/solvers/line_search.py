"""Points of a minimisation, and the steps between them: Newton's method and the Wolfe conditions.

Scores are linear in the weights. So the objective along a direction D needs the scores of D once, and no further product
with the design for any step length.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbrl._common.linalg import small_gram
from rbrl._common.typing import FloatArray
from rbrl.losses.base import LineValue, Terms
from rbrl.problem.objective import Objective, SmoothedNuclear


class SmoothedPoint:
    """Value of the objective at given scores, with the nuclear norm smoothed.

    Parameters
    ----------
    objective : Objective
    scores : array (n_samples, n_labels)
    ridge : float
        Value of the ridge.
    nuclear : SmoothedNuclear or None
        Nuclear norm of the weights, which is smoothed here.
    tol : float
        Tolerance of the solver. Smoothing moves the value by a tenth of it at most.
    out : array (n_samples, n_labels), default=None
        Array that the residual is written to. None means a new array; rows in blocks always use one.

    Attributes
    ----------
    value, smooth_value : float
        The objective, and the objective with the smoothed nuclear norm.
    loss : Terms
    residual : array (n_samples, n_labels)
        Gradient of the loss in the scores.
    evaluations : float
        Number of evaluations of the objective at which `value` was known.
    """

    def __init__(
        self, objective: Objective, scores: Any, ridge: float, nuclear: SmoothedNuclear | None = None,
        tol: float = 0.0, out: Any = None,
    ) -> None:  # fmt: skip
        self.scores = scores
        self.ridge = ridge
        self.nuclear: Any = nuclear
        self.loss, self.residual = self._evaluate_loss(objective, out)
        self.evaluations = objective.evaluations
        self.value = self.loss.value + ridge
        self.smooth_value = self.value
        if nuclear is not None:
            self.value += nuclear.exact
            nuclear.smooth(0.1 * tol * self.value / (nuclear.weight * len(nuclear.sigma)))
            self.smooth_value += nuclear.value

    def _evaluate_loss(self, objective: Objective, out: Any) -> tuple[Terms, Any]:
        """Return the terms of the loss at the scores, and the residual, its gradient.

        The residual is written to `out` if it is an array. Points in factors compute it in another
        form; see :mod:`rbrl.solvers.factored`.
        """
        data = objective.Y, self.scores, objective.sample_weight
        if not isinstance(out, np.ndarray):
            evaluated: tuple[Terms, Any] = objective.loss.evaluate(*data)
            return evaluated
        out.fill(0.0)
        return objective.loss.accumulate(*data, 1.0, out), out


class Iterate(SmoothedPoint):
    """Weights with the value and the gradient of the objective there.

    Parameters
    ----------
    objective : Objective
    W : array (n_columns, n_labels)
    scores : array (n_samples, n_labels)
        Scores of W.
    tol : float
        Tolerance that the nuclear norm is smoothed for.
    out : array (n_samples, n_labels), default=None
        Array that the residual is written to; None means a new array.

    Attributes
    ----------
    adjoint : array (n_columns, n_labels)
        Gradient of the loss with respect to W.
    smooth_gradient : array (n_columns, n_labels)
        Gradient of loss and ridge.
    gradient : array (n_columns, n_labels)
        Gradient of `smooth_value`.
    """

    def __init__(self, objective: Objective, W: FloatArray, scores: Any, tol: float, out: Any = None) -> None:
        weight = objective.nuclear.weight
        nuclear = SmoothedNuclear(*small_gram(W), weight) if weight else None
        super().__init__(objective, scores, objective.ridge.value(W), nuclear, tol, out)
        self.W = W
        self.adjoint = objective.design.adjoint(self.residual)
        self.smooth_gradient = self.adjoint + objective.ridge.gradient(W)
        self.gradient = self.smooth_gradient
        if nuclear is not None:
            self.gradient = self.smooth_gradient + nuclear.reweigh(W)

    def rank_share(self, negligible: float) -> float:
        """Return the share of the singular values that are above `negligible` times the largest one.

        It is 1 without a nuclear norm.
        """
        if self.nuclear is None:
            return 1.0
        sigma = self.nuclear.sigma
        return float(np.mean(sigma >= negligible * sigma[-1]))


class Ray:
    """The smoothed objective at W + D diag(t), a function of one step length for each label.

    Parameters
    ----------
    objective : Objective
    iterate : Iterate
        Point where the ray starts.
    D : array (n_columns, n_labels)
        Direction of the ray.
    scores : array (n_samples, n_labels)
        Scores of D.
    """

    def __init__(self, objective: Objective, iterate: Iterate, D: FloatArray, scores: Any) -> None:
        self.objective = objective
        self.iterate = iterate
        self.D = D
        self.scores = scores
        self.line = objective.loss.line
        weighted = objective.ridge.weight * objective.ridge.row_weights * D
        self._ridge_slope = np.einsum("ij,ij->j", weighted, iterate.W)
        self._ridge_curvature = np.einsum("ij,ij->j", weighted, D)
        if iterate.nuclear is not None and not iterate.nuclear.left:
            self._cross = iterate.W.T @ D
            self._square = D.T @ D

    def __call__(self, t: FloatArray) -> LineValue:
        """Return the value, the slopes and the curvatures in t, and the curvature along equal lengths.

        `t` has one step length for each label, (n_labels,), and is not changed. The slopes and
        curvatures are new arrays.
        """
        objective, start = self.objective, self.iterate
        data = objective.Y, start.scores, self.scores, t, objective.sample_weight
        value, slopes, curvatures, joint = self.line(*data)
        value += start.ridge + float(t @ self._ridge_slope + 0.5 * (t * t) @ self._ridge_curvature)
        slopes = slopes + self._ridge_slope + t * self._ridge_curvature
        curvatures = curvatures + self._ridge_curvature
        joint += self._ridge_curvature.sum()
        if start.nuclear is None:
            return LineValue(value, slopes, curvatures, joint)
        norm = self._nuclear(t)
        return LineValue(
            value + norm.value, slopes + norm.slopes, curvatures + norm.curvatures, joint + norm.joint_curvature
        )

    def _nuclear(self, t: FloatArray) -> LineValue:
        """Return the part of the smoothed nuclear norm; its curvatures are those of the reweighted ridge at t.

        It is called only with a nuclear norm. `t` has the shape (n_labels,).
        """
        norm = self.iterate.nuclear
        if norm.left:
            # Small matrices over the columns of the design.
            moved = self.iterate.W + self.D * t
            there = SmoothedNuclear(*small_gram(moved), norm.weight, norm.width)
            slopes = np.sum(there.reweigh(moved) * self.D, axis=0)
            curvatures = np.sum(there.reweigh(self.D) * self.D, axis=0)
            return LineValue(there.value, slopes, curvatures, float(curvatures.sum()))
        # Small matrices over the labels.
        cross = self._cross * t
        gram = norm.gram + cross + cross.T + t[:, None] * self._square * t
        there = SmoothedNuclear(gram, False, norm.weight, norm.width)
        slopes = ((self._cross.T + self._square * t) * there.hessian).sum(axis=1)
        curvatures = self._square.diagonal() * there.hessian.diagonal()
        return LineValue(there.value, slopes, curvatures, float(np.vdot(self._square, there.hessian)))


@dataclass(frozen=True)
class NewtonLineSearch:
    """Newton's method for the step lengths along a ray, shortened while the objective does not descend.

    Parameters
    ----------
    max_corrections : int, default=3
        Newton steps beside the first length, unless the slope falls to a tenth before.
    max_trials : int, default=12
        Largest number of lengths that are tried.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> from rbrl.solvers.line_search import Iterate, NewtonLineSearch
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> start = Iterate(objective, np.zeros((1, 1)), np.zeros((2, 1)), tol=1e-4)
    >>> step = NewtonLineSearch().take_step(objective, start, np.ones((1, 1)), -3.0, joint=True, tol=1e-4)
    >>> step.W.round(3).tolist()
    [[0.5]]
    """

    max_corrections: int = 3
    max_trials: int = 12

    def take_step(
        self, objective: Objective, start: Iterate, D: FloatArray, slope: float, joint: bool, tol: float
    ) -> Iterate | None:
        """Return the iterate after a step along D, or None if no length descends.

        Parameters
        ----------
        objective : Objective
        start : Iterate
            Its residual is overwritten.
        D : array (n_columns, n_labels)
        slope : float
            Derivative of the smoothed objective along D.
        joint : bool
            Whether all labels have the same step length.
        tol : float
            Tolerance that the nuclear norm of the new iterate is smoothed for.
        """
        scores = objective.design.scores(D)
        ray = Ray(objective, start, D, scores)
        t = self.step_lengths(ray, slope, joint)
        if not objective.lines_are_exact:
            # An estimate gave these lengths: confirm them, and shorten them until they descend.
            ray.line = objective.loss.exact_line
            t = replace(self, max_corrections=0).step_lengths(ray, slope, joint, t if t.any() else t + 1)
        if not t.any():
            return None
        # Arrays of the size of the scores are used again: to allocate them takes longer than to fill them.
        scores *= t
        scores += start.scores
        return Iterate(objective, start.W + D * t, scores, tol, start.residual)

    def step_lengths(self, ray: Ray, slope: float, joint: bool, first: FloatArray | None = None) -> FloatArray:
        """Return lengths that minimise the objective along a ray, (n_labels,); zeros if none descends.

        Parameters
        ----------
        ray : Ray
        slope : float
            Derivative of the smoothed objective along the ray.
        joint : bool
            Whether all labels have the same length.
        first : array (n_labels,), default=None
            Lengths that are tried first; ones by default.

        Returns
        -------
        array (n_labels,)
        """
        t = np.ones(ray.D.shape[1]) if first is None else first
        # A value that differs by rounding alone counts as descent. The slope then decides.
        lowest = ray.iterate.smooth_value * (1 + 4e-16)
        best: FloatArray | None = None
        for i in range(self.max_trials if slope < 0 else 0):
            here = ray(t)
            if here.value > lowest:
                t = 0.3 * t if best is None else 0.5 * (t + best)
                continue
            best = t
            lowest = here.value
            slopes = here.slopes.sum() if joint else here.slopes
            curvatures = here.joint_curvature if joint else here.curvatures
            if i >= self.max_corrections or np.abs(slopes).sum() <= 0.1 * abs(slope):
                break
            # Newton's step is infinite where there is no curvature.
            with np.errstate(over="ignore"):
                t = np.clip(t - slopes / np.maximum(curvatures, 1e-300), 0.0, np.maximum(4.0 * t, 1.0))
        return np.zeros_like(t) if best is None else best


def wolfe_step(along: Callable[[float], tuple[float, float, Any]], start: float, slope: float, tries: int = 12) -> Any:
    """Return a point that meets the Wolfe conditions, by a bracketing secant search on a smooth function.

    Parameters
    ----------
    along : callable
        Function of the step length that returns value, derivative and the point there. A call may
        overwrite the arrays of the previous point.
    start, slope : float
        Value and derivative at the length 0.
    tries : int, default=12
        Largest number of lengths that are tried.

    Returns
    -------
    object
        The last point tried, or None if its value is not below `start`. If no length meets the
        conditions, this point may violate them.
    """
    low, low_slope = 0.0, slope
    high, high_slope = np.inf, 0.0
    t = 1.0
    for _ in range(tries):
        value, derivative, point = along(t)
        # 1e-4 and 0.5 are the usual constants of the two conditions.
        descends = value <= start + 1e-4 * t * slope
        if descends and abs(derivative) <= 0.5 * abs(slope):
            return point
        if not descends or derivative > 0:
            high, high_slope = t, derivative
        else:
            low, low_slope = t, derivative
        if np.isinf(high):
            t = 4.0 * low
            continue
        width = high - low
        guess = low + 0.5 * width
        if high_slope > 0:
            # Zero of the derivative, by the secant.
            guess = low - low_slope * width / (high_slope - low_slope)
        t = min(max(guess, low + 0.1 * width), high - 0.1 * width)
    return point if value < start else None
