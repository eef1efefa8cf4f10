"""Directions and step lengths of the quasi-Newton methods: limited-memory BFGS on matrices, and line searches.

Step lengths are found by Newton's method on scores that are already known: no product with the design.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rbrl._common.linalg import small_gram
from rbrl._common.typing import FloatArray
from rbrl._loops import rows
from rbrl.losses.base import LineValue
from rbrl.problem.objective import Objective, SmoothedNuclear
from rbrl.solvers.base import SmoothedPoint

# A singular value below this share of the largest is on its way to zero.
FADING = 1e-3
# A value that differs from the one before by rounding alone counts as descent: the slope then decides how far a method gets.
ROUNDED = 1 + 4e-16

# Where the nuclear norm has more than MANY_VALUES singular values, and curves a line by less than MINOR of what loss and
# ridge do, its majorant stands for it, without an eigenproblem for every length tried: corel5k, 374 labels, at (1, .1, .1)
# takes 3.4 instead of 4.2 s, and at (100, 100, 1) 12 instead of 20 evaluations; with few values, searches stopped earlier.
# It does so for HELD iterates, and so does their seed: delicious, 983 labels, at (1, .1, .1) takes 42 instead of 56 s, and
# the same steps.
MANY_VALUES, MINOR, HELD = 100, 0.1, 5

InverseHessian = Callable[[FloatArray], FloatArray]


class Iterate(SmoothedPoint):
    """Weights with everything known there: scores, loss, penalties, gradient.

    `out` is where to put the residual, and `held` the nuclear norm of an earlier iterate, whose majorant is taken for it.

    Attributes
    ----------
    gradient : array
        Gradient of `smooth_value`; `smooth_gradient` is that of loss and ridge alone.
    images : tuple of two arrays, or empty
        W and the gradient times K, where inner products go through a matrix K.
    adjoint : array
        That of the loss alone.
    rank_share : float
        Share of the singular values that are not on their way to zero; 1 where there is no nuclear norm.
    """

    images: tuple[FloatArray, ...] = ()

    def __init__(
        self, objective: Objective, W: FloatArray, scores: Any, tol: float, out: Any = None,
        held: SmoothedNuclear | None = None,
    ) -> None:  # fmt: skip
        weight = objective.nuclear.weight
        if held is not None:
            pulled = held.reweigh(W)
            nuclear: SmoothedNuclear | None = held.held(W, pulled)
        else:
            nuclear = SmoothedNuclear(*small_gram(W), weight) if weight else None
        super().__init__(objective, scores, objective.ridge.value(W), nuclear, tol, out)
        self.W, self.adjoint = W, objective.design.adjoint(self.residual)
        self.gradient = self.smooth_gradient = self.adjoint + objective.ridge.gradient(W)
        self.rank_share = 1.0
        if nuclear is not None:
            self.gradient = self.smooth_gradient + (nuclear.reweigh(W) if held is None else pulled)
            self.rank_share = float(np.mean(nuclear.sigma >= FADING * nuclear.sigma[-1]))


class Memory:
    """Limited-memory BFGS on matrices.

    Joint: one inner product for all labels, as for any vector. Per label: inner products are vectors over labels, so
    that weakly coupled labels each get a quasi-Newton method of their own.

    Parameters
    ----------
    shape : tuple
        Of the matrices.
    size : int
        Pairs of a step and the change of the gradient along it that are remembered.
    joint : bool
    images : bool
        Whether inner products go through a matrix K, <A, K B>: then every pair comes with its products with K, and the
        first guess of the inverse Hessian is taken as it is, not scaled to the newest pair.
    """

    def __init__(self, shape: tuple[int, ...], size: int, joint: bool, images: bool = False) -> None:
        self.size, self.joint, self.scaled = size, joint, not images
        self._steps, self._changes = np.empty((2, size, *shape))
        self._step_images, self._change_images = np.empty((2, size, *shape)) if images else (self._steps, self._changes)
        self._rho = np.zeros((size, shape[1]))
        self._order = np.empty(0, dtype=np.int64)
        self._last: tuple[FloatArray, ...] | None = None

    def __len__(self) -> int:
        return len(self._order)

    def clear(self) -> None:
        """Forget all pairs; the next step is from the point visited last."""
        self._order = self._order[:0]

    def visit(self, *point: FloatArray) -> None:
        """Come to a point, given by W, the gradient, and their images.

        The step from the last one is remembered, with the change of the gradient along it; the oldest pair makes room.
        """
        last, self._last = self._last, point
        if last is None:
            return
        step, change, *images = (new - old for new, old in zip(point, last))
        full = len(self._order) == self.size
        slot = self._order[0] if full else len(self._order)
        self._order = np.append(self._order[full:], slot)
        self._steps[slot], self._changes[slot] = step, change
        if images:
            self._step_images[slot], self._change_images[slot] = images
        step_image, change_image = self._step_images[slot], self._change_images[slot]
        along = rows.column_dots(step_image, change, self.joint)
        sizes = rows.column_dots(step, step_image, self.joint) * rows.column_dots(change, change_image, self.joint)
        # The reciprocal of less is no number: steps of a label that has long arrived.
        curved = along > np.maximum(1e-10 * np.sqrt(sizes), 1e-300)
        self._rho[slot] = np.where(curved, 1.0 / np.where(curved, along, 1.0), 0.0)

    def descent(
        self, gradient: FloatArray, seed: InverseHessian, image: FloatArray | None = None
    ) -> tuple[FloatArray, float]:
        """Minus the inverse Hessian times `gradient`, of which `seed` applies a first guess, and the slope along it.

        The memory is cleared if that does not descend. `image` is K times the gradient, where inner products go through K.
        """
        z, image = gradient.copy(), gradient if image is None else image
        backward = self._step_images, self._changes, self._rho, self._order, self.joint
        forward = self._steps, self._change_images, self._rho, self._order, self.joint
        coefficients = rows.memory_backward(z, *backward)
        z = seed(z)
        if len(self._order) and self.scaled:
            # The factors with which the seed fits the newest pair: without, 17 problems took 1.06 times the evaluations,
            # cal500 at (.01, 100, .01) 1.23 times. Without any penalty the curvature may be beyond all numbers: the
            # direction is then 0, and the memory cleared.
            change, rho = self._changes[self._order[-1]], self._rho[self._order[-1]]
            with np.errstate(over="ignore"):
                curvature = rho * rows.column_dots(change, seed(change), self.joint)
            z *= np.where(curvature > 0, 1.0 / np.where(curvature > 0, curvature, 1.0), 1.0)
        rows.memory_forward(z, *forward, coefficients)
        if not np.vdot(image, z) > 0:
            self.clear()
            z = seed(gradient)
        return -z, -float(np.vdot(image, z))


class Ray:
    """The smoothed objective at W + D diag(t), one step length per label."""

    def __init__(self, objective: Objective, iterate: Iterate, D: FloatArray, scores: Any) -> None:
        self.objective, self.iterate, self.D, self.scores = objective, iterate, D, scores
        self.line, W, ridge, norm = objective.loss.line, iterate.W, objective.ridge, iterate.nuclear
        image = scores if iterate.images else D
        weighted = ridge.weight * ridge.row_weights * image
        self._ridge_slope, self._ridge_curvature = (np.einsum("ij,ij->j", weighted, V) for V in (W, D))
        self.minor, self._many = False, norm is not None and len(norm.sigma) > MANY_VALUES
        if norm is not None and not norm.left:
            self._cross, self._square = W.T @ image, D.T @ image
        # The reweighted ridge that has the nuclear norm's gradient at W is nowhere below it: a quadratic of t.
        if self._many and norm.left:
            pulled = norm.reweigh(D)
            self._first, self._second = np.sum(pulled * W, axis=0), np.diag(np.sum(pulled * D, axis=0))
        elif self._many:
            self._first, self._second = (self._cross.T * norm.hessian).sum(axis=1), self._square * norm.hessian

    def __call__(self, t: FloatArray) -> LineValue:
        """Value, slopes and curvatures in t, and the curvature when all t move as one."""
        objective, here = self.objective, self.iterate
        value, slopes, curvatures, joint = self.line(objective.Y, here.scores, self.scores, t, objective.sample_weight)
        value += here.ridge + float(t @ self._ridge_slope + 0.5 * (t * t) @ self._ridge_curvature)
        slopes = slopes + self._ridge_slope + t * self._ridge_curvature
        curvatures, joint = curvatures + self._ridge_curvature, joint + self._ridge_curvature.sum()
        if here.nuclear is None:
            return LineValue(value, slopes, curvatures, joint)
        self.minor = self._many and self._second.sum() <= MINOR * joint
        if not self.minor and not here.nuclear.age:
            norm, first, second, jointly = self._nuclear(t)
        else:
            jointly, moved = float(self._second.sum()), self._second @ t
            norm, first = here.nuclear.value + float(t @ (self._first + 0.5 * moved)), self._first + moved
            second = self._second.diagonal()
        return LineValue(value + norm, slopes + first, curvatures + second, joint + jointly)

    def _nuclear(self, t: FloatArray) -> LineValue:
        """What the smoothed nuclear norm adds; its curvatures are those of the reweighted ridge there."""
        norm, D = self.iterate.nuclear, self.D
        if norm.left:
            # Small matrices over columns of the design.
            moved = self.iterate.W + D * t
            there = SmoothedNuclear(*small_gram(moved), norm.weight, norm.width)
            first, second = (np.sum(there.reweigh(V) * D, axis=0) for V in (moved, D))
            return LineValue(there.value, first, second, float(second.sum()))
        # Small matrices over labels alone.
        cross, square = self._cross * t, self._square
        there = SmoothedNuclear(norm.gram + cross + cross.T + t[:, None] * square * t, False, norm.weight, norm.width)
        first = ((self._cross.T + square * t) * there.hessian).sum(axis=1)
        second = square.diagonal() * there.hessian.diagonal()
        return LineValue(there.value, first, second, float(np.vdot(square, there.hessian)))


def step_lengths(
    ray: Ray, slope: float, joint: bool, least: int = 3, start: FloatArray | None = None, tries: int = 12
) -> FloatArray:
    """Minimise along the ray: one length per label, or one for all; zeros if nothing descends.

    Newton steps on a piecewise smooth function, shortened while they fail to descend; it ends when the slope has fallen to
    a tenth, or after the first good step that is not among the first `least`.
    """
    t, best_value = np.ones(ray.D.shape[1]) if start is None else start, ray.iterate.smooth_value * ROUNDED
    best: FloatArray | None = None
    for i in range(tries if slope < 0 else 0):
        here = ray(t)
        if here.value > best_value:
            t = 0.3 * t if best is None else 0.5 * (t + best)
            continue
        best, best_value = t, here.value
        slopes, curvatures = (here.slopes.sum(), here.joint_curvature) if joint else here[1:3]
        if i >= least or np.abs(slopes).sum() <= 0.1 * abs(slope):
            break
        # Newton's steps are infinite where there is no curvature.
        with np.errstate(over="ignore"):
            t = np.clip(t - slopes / np.maximum(curvatures, 1e-300), 0.0, np.maximum(4.0 * t, 1.0))
    return np.zeros_like(t) if best is None else best


def stepped(
    objective: Objective, now: Iterate, D: FloatArray, slope: float, joint: bool, tol: float, least: int = 3
) -> Iterate | None:
    """The iterate after a step along D, its nuclear norm smoothed for `tol`; None if nothing descends."""
    scores = objective.design.scores(D)
    ray = Ray(objective, now, D, scores)
    t = step_lengths(ray, slope, joint, least)
    if not objective.lines_are_exact:
        # Lengths that an estimate gave are shortened until they descend.
        ray.line = objective.loss.exact_line
        t = step_lengths(ray, slope, joint, 0, t if t.any() else t + 1)
    if not t.any():
        return None
    # Memory of the size of the scores is used again: to ask the system for it took a fifth of the time on delicious.
    scores *= t
    scores += now.scores
    norm = now.nuclear
    holds = norm is not None and ray.minor and norm.age < HELD - 1
    return type(now)(objective, now.W + D * t, scores, tol, now.residual, norm if holds else None)


def wolfe_step(along: Callable[[float], tuple[float, float, Any]], start: float, slope: float, tries: int = 12) -> Any:
    """Bracketing secant search for the weak Wolfe conditions on a smooth function.

    `along(t)` gives value, derivative and the point there. Returns the last point tried; None if its value is no lower.
    """
    low, low_slope, high, high_slope, t = 0.0, slope, np.inf, 0.0, 1.0
    for _ in range(tries):
        value, here, point = along(t)
        descends = value <= start + 1e-4 * t * slope
        if descends and abs(here) <= 0.5 * abs(slope):
            return point
        if not descends or here > 0:
            high, high_slope = t, here
        else:
            low, low_slope = t, here
        if np.isinf(high):
            t = 4.0 * low
            continue
        # The secant guess of the zero of the derivative, kept inside the bracket.
        guess = low - low_slope * (high - low) / (high_slope - low_slope) if high_slope > 0 else 0.5 * (low + high)
        t = min(max(guess, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return point if value < start else None
