"""What a quasi-Newton method remembers: its last steps and how the gradient changed along them."""

import numpy as np

from rbrl._loops import rows


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
