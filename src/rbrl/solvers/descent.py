"""Directions and step lengths of the quasi-Newton methods: limited-memory BFGS on matrices, and line searches.

Step lengths are found by Newton's method on scores that are already known: no product with the design.
"""

import numpy as np

from rbrl._loops import rows
from rbrl.problem.objective import SmoothedNuclear


class Memory:
    """Limited-memory BFGS on matrices.

    Joint: one inner product for all labels, as for any vector. Per label: inner products are vectors over labels, so
    that weakly coupled labels each get a quasi-Newton method of their own.
    """

    def __init__(self, shape, size, joint):
        self.size, self.joint = size, joint
        self._steps, self._changes = np.empty((size, *shape)), np.empty((size, *shape))
        self._rho = np.zeros((size, shape[1]))
        self.clear()

    def clear(self):
        """Forget everything."""
        self._order = np.empty(0, dtype=np.int64)

    def push(self, step, change):
        """Remember a step and the change of the gradient along it; the oldest pair makes room."""
        full = len(self._order) == self.size
        slot = self._order[0] if full else len(self._order)
        self._order = np.append(self._order[full:], slot)
        self._steps[slot], self._changes[slot] = step, change
        along = rows.column_dots(step, change, self.joint)
        sizes = rows.column_dots(step, step, self.joint) * rows.column_dots(change, change, self.joint)
        curved = along > 1e-10 * np.sqrt(sizes)
        self._rho[slot] = np.where(curved, 1.0 / np.where(curved, along, 1.0), 0.0)

    def descent(self, gradient, seed):
        """A direction that descends, and the slope along it; the memory is cleared if it misleads."""
        D = self.direction(gradient, seed)
        slope = float(np.vdot(gradient, D))
        if not slope < 0:
            self.clear()
            D = -seed(gradient)
            slope = float(np.vdot(gradient, D))
        return D, slope

    def direction(self, gradient, seed):
        """Minus the inverse Hessian times `gradient`; `seed` applies a first guess of that inverse."""
        z = gradient.copy()
        args = self._steps, self._changes, self._rho, self._order, self.joint
        coefficients = rows.memory_backward(z, *args)
        z = seed(z)
        if len(self._order):
            z *= self._scale(seed)
        rows.memory_forward(z, *args, coefficients)
        return -z

    def _scale(self, seed):
        """Factors with which the seed fits the newest pair."""
        newest = self._order[-1]
        change, rho = self._changes[newest], self._rho[newest]
        # Without any penalty it may be beyond all numbers: the direction is then 0, and the memory cleared.
        with np.errstate(over="ignore"):
            curvature = rho * rows.column_dots(change, seed(change), self.joint)
        return np.where(curvature > 0, 1.0 / np.where(curvature > 0, curvature, 1.0), 1.0)


class Ray:
    """The smoothed objective at W + D diag(t), one step length per label; `line` is the loss's own unless given."""

    def __init__(self, objective, iterate, D, scores, line=None):
        self.objective, self.iterate, self.D, self.scores = objective, iterate, D, scores
        self._line = line or objective.loss.line
        W, ridge = iterate.W, objective.ridge
        weighted = ridge.weight * ridge.row_weights * D
        self._ridge_slope, self._ridge_curvature = (weighted * W).sum(axis=0), (weighted * D).sum(axis=0)
        if objective.nuclear.weight and not iterate.nuclear.left:
            self._cross, self._square = W.T @ D, D.T @ D

    def __call__(self, t):
        """Value, slopes and curvatures in t, and the bend when all t move as one."""
        objective = self.objective
        value, slopes, curvatures, joint = self._line(
            objective.Y, self.iterate.scores, self.scores, t, objective.sample_weight
        )
        value += self.iterate.ridge + float(t @ self._ridge_slope + 0.5 * (t * t) @ self._ridge_curvature)
        slopes, curvatures = slopes + self._ridge_slope + t * self._ridge_curvature, curvatures + self._ridge_curvature
        joint += self._ridge_curvature.sum()
        if objective.nuclear.weight:
            nuclear = self._left_nuclear(t) if self.iterate.nuclear.left else self._right_nuclear(t)
            value, slopes, curvatures, joint = (
                value + nuclear[0],
                slopes + nuclear[1],
                curvatures + nuclear[2],
                joint + nuclear[3],
            )
        return value, slopes, curvatures, joint

    def _right_nuclear(self, t):
        """The nuclear norm's part, with small matrices over labels alone."""
        here = self.iterate.nuclear
        cross = self._cross * t
        moved = here.gram + cross + cross.T + t[:, None] * self._square * t
        smoothed = SmoothedNuclear(moved, here.weight, here.width)
        H, reach = smoothed.hessian, self._cross.T + self._square * t
        slopes, curvatures = (reach * H).sum(axis=1), self._square.diagonal() * H.diagonal()
        return smoothed.value, slopes, curvatures, np.vdot(self._square, H)

    def _left_nuclear(self, t):
        """The nuclear norm's part, with small matrices over columns of the design."""
        here, D = self.iterate.nuclear, self.D
        moved = self.iterate.W + D * t
        smoothed = SmoothedNuclear.at(moved, here.weight, here.width)
        slopes, curvatures = (smoothed.reweigh(moved) * D).sum(axis=0), (smoothed.reweigh(D) * D).sum(axis=0)
        return smoothed.value, slopes, curvatures, curvatures.sum()


def find_step(objective, iterate, D, scores, slope, joint):
    """Step lengths along D, confirmed where the loss's lines are estimates; zeros if nothing descends."""
    t = step_lengths(Ray(objective, iterate, D, scores), slope, joint)
    if not objective.lines_are_estimates:
        return t
    return first_descent(Ray(objective, iterate, D, scores, objective.loss.exact_line), t if t.any() else t + 1, joint)


def step_lengths(ray, slope, joint, tries=12):
    """Minimise along the ray: one length per label, or one for all.

    Newton steps on a piecewise smooth function, shortened while they fail to descend; it ends when the slope has fallen to
    a tenth, or after the first good step that is not among the first three.
    """
    n_labels = ray.D.shape[1]
    # A value that differs by rounding alone counts as descent: the slope then decides how far the method gets.
    start = ray.iterate.smooth_value * (1 + 4e-16)
    t, best, best_value = np.ones(n_labels), None, start
    for i in range(tries):
        value, slopes, curvatures, joint_curvature = ray(t)
        if value > best_value:
            t = 0.3 * t if best is None else 0.5 * (t + best)
            continue
        best, best_value = t, value
        remaining = abs(slopes.sum()) if joint else np.abs(slopes).sum()
        if i >= 3 or remaining <= 0.1 * abs(slope):
            break
        t = np.clip(t - _newton(slopes, curvatures, joint_curvature, joint), 0.0, np.maximum(4.0 * t, 1.0))
    return np.zeros(n_labels) if best is None else best


def first_descent(ray, t, joint, tries=12):
    """The step lengths t, shortened towards the minimum until the value falls."""
    start = ray.iterate.smooth_value * (1 + 4e-16)
    for _ in range(tries):
        value, slopes, curvatures, joint_curvature = ray(t)
        if value <= start:
            return t
        longest = 0.7 * t if joint else np.where(slopes > 0, 0.7, 1.0) * t
        t = np.clip(t - _newton(slopes, curvatures, joint_curvature, joint), 0.1 * t, longest)
    return np.zeros_like(t)


def _newton(slopes, curvatures, joint_curvature, joint):
    """Newton's steps, infinite where nothing curvatures; the caller limits them."""
    with np.errstate(over="ignore"):
        return slopes.sum() / max(joint_curvature, 1e-300) if joint else slopes / np.maximum(curvatures, 1e-300)


def wolfe_step(along, start, slope, tries=12):
    """Bracketing secant search for the weak Wolfe conditions on a smooth function.

    `along(t)` gives value and derivative; the last t tried is the step. Returns whether the value went down.
    """
    low, low_slope, high, high_slope, t = 0.0, slope, np.inf, 0.0, 1.0
    for _ in range(tries):
        value, here = along(t)
        descends = value <= start + 1e-4 * t * slope
        if descends and abs(here) <= 0.5 * abs(slope):
            return True
        if not descends or here > 0:
            high, high_slope = t, here
        else:
            low, low_slope = t, here
        t = _next_trial(low, low_slope, high, high_slope)
    return value < start


def _next_trial(low, low_slope, high, high_slope):
    """Secant guess of the zero of the derivative, kept inside the bracket; a longer step while there is none."""
    if np.isinf(high):
        return 4.0 * low
    guess = low - low_slope * (high - low) / (high_slope - low_slope) if high_slope > 0 else 0.5 * (low + high)
    margin = 0.1 * (high - low)
    return min(max(guess, low + margin), high - margin)
