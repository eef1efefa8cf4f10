"""The limited-memory BFGS direction on matrices (Nocedal, Updating quasi-Newton matrices with limited storage, 1980)."""

from collections.abc import Callable

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl._loops import rows

InverseHessian = Callable[[FloatArray], FloatArray]


class Memory:
    """Limited-memory BFGS on matrices.

    A joint memory has one inner product for all labels, as for any vector. Otherwise inner products are vectors over
    labels, so that every label has a quasi-Newton method of its own.

    Parameters
    ----------
    shape : tuple (n_rows, n_labels)
        Shape of the matrices.
    size : int
        Largest number of pairs that are remembered. A pair is a step and the change of the gradient along it.
    joint : bool
        Whether all labels share one memory.
    """

    def __init__(self, shape: tuple[int, ...], size: int, joint: bool) -> None:
        self.size = size
        self.joint = joint
        self._steps = np.empty((size, *shape))
        self._changes = np.empty((size, *shape))
        self._rho = np.zeros((size, shape[1]))
        self._order = np.empty(0, dtype=np.int64)
        self._last: tuple[FloatArray, FloatArray] | None = None

    def clear(self) -> bool:
        """Forget all pairs; return whether there were any. The next pair starts at the last point."""
        had_pairs = len(self._order) > 0
        self._order = self._order[:0]
        return had_pairs

    def visit(self, W: FloatArray, gradient: FloatArray) -> None:
        """Remember the step from the last point to W, and the change of the gradient along it.

        If the memory is full, the oldest pair is forgotten. W and the gradient are kept without a
        copy until the next visit, so they must not change.

        Both have the shape of the memory.
        """
        last = self._last
        self._last = W, gradient
        if last is None:
            return
        full = len(self._order) == self.size
        slot = self._order[0] if full else len(self._order)
        self._order = np.append(self._order[full:], slot)
        step = np.subtract(W, last[0], out=self._steps[slot])
        change = np.subtract(gradient, last[1], out=self._changes[slot])
        along = rows.column_dots(step, change, self.joint)
        sizes = rows.column_dots(step, step, self.joint) * rows.column_dots(change, change, self.joint)
        # A label that has converged takes steps whose curvature is rounding.
        curved = along > np.maximum(1e-10 * np.sqrt(sizes), 1e-300)
        self._rho[slot] = np.where(curved, 1.0 / np.where(curved, along, 1.0), 0.0)

    def descent(self, gradient: FloatArray, seed: InverseHessian) -> tuple[FloatArray, float]:
        """Return minus the inverse Hessian times `gradient`, and the slope along it.

        The memory is cleared if the objective does not descend along this direction.

        Parameters
        ----------
        gradient : array (n_rows, n_labels)
            It is not changed.
        seed : callable
            Function that multiplies by a first guess of the inverse Hessian and returns a new array,
            which is overwritten. Its result is scaled to fit the last pair.

        Returns
        -------
        direction : array
        slope : float
        """
        z = gradient.copy()
        pairs = self._steps, self._changes, self._rho, self._order, self.joint
        coefficients = rows.memory_backward(z, *pairs)
        z = seed(z)
        if len(self._order):
            newest = self._order[-1]
            change = self._changes[newest]
            # Without any penalty the curvature may overflow. The direction is then 0, and the memory is cleared.
            with np.errstate(over="ignore"):
                curvature = self._rho[newest] * rows.column_dots(change, seed(change), self.joint)
            z *= np.where(curvature > 0, 1.0 / np.where(curvature > 0, curvature, 1.0), 1.0)
        rows.memory_forward(z, *pairs, coefficients)
        if not np.vdot(gradient, z) > 0:
            self.clear()
            z = seed(gradient)
        return -z, -float(np.vdot(gradient, z))
