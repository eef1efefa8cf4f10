r"""The accelerated proximal point method, for a solver that is fast only with a strong ridge.

If the ridge is weak, such a solver minimises

.. math:: \text{objective}(W) + \tfrac{\kappa}{2} \|W - C\|^2

for a sequence of centres C, which move with momentum (Lin, Mairal, Harchaoui: Catalyst
acceleration, JMLR 2018). Each of these proximal problems has the ridge
:math:`R = \lambda_1 + \kappa` and takes a few passes. The momentum starts again at zero when it
points uphill (O'Donoghue, Candes: Adaptive restart, 2015).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.problem import Objective
from rbrl.problem.design import AscentDesign


@dataclass
class ProximalPoints:
    """The sequence of proximal problems.

    Attributes
    ----------
    design : AscentDesign
        Design with the inner product of the distances.
    ridge : float
        Ridge of the objective.
    total : float
        Ridge R of the proximal problem.
    centre, last : arrays (n_columns, n_labels), or None
        Centre of the proximal problem, and minimiser of the previous one. None if the ridge is
        strong, so that kappa is 0.
    momentum : int
        Number of proximal problems since the momentum started.
    best_rate : float
        Largest fall of the logarithm of the gap in a pass, over the ridges that were tried. It is
        infinite after a larger ridge was not better.
    """

    design: AscentDesign
    ridge: float
    total: float
    centre: Any = None
    last: Any = None
    momentum: int = 0
    best_rate: float = 0.0

    @property
    def kappa(self) -> float:
        """The weight of the distance from the centre."""
        return self.total - self.ridge

    def start(self, W: FloatArray) -> None:
        """Take a copy of W (n_columns, n_labels) as the first centre; the momentum starts at zero."""
        self.centre = W.copy()
        self.last = W.copy()
        self.momentum = 0

    def pull(self, W: FloatArray) -> FloatArray:
        """Return the gradient of the ridge and proximal terms, `total * W - kappa * centre`, as a new array."""
        if self.centre is None:
            return self.total * W
        pull = (self.total / self.kappa) * W
        pull -= self.centre
        pull *= self.kappa
        return pull

    def add_centre(self, V: FloatArray) -> FloatArray:
        """Add kappa times the centre to V (n_columns, n_labels), in place; return V itself."""
        if self.centre is not None:
            V += self.kappa * self.centre
        return V

    def move(self, W: FloatArray) -> None:
        """Take W as minimiser of the proximal problem, and move the centre beyond it.

        W is changed in place to the weights that belong to the same dual variables and the new centre.
        """
        # All arrays are reused, because weights are the largest arrays of a fit.
        step = np.subtract(W, self.last, out=self.last)
        uphill = self.design.inner(self.centre - W, step) > 0
        self.momentum = 1 if uphill else self.momentum + 1
        root = np.sqrt(self.ridge / self.total)
        share = min((1 - root) / (1 + root), (self.momentum - 1) / (self.momentum + 2))
        step *= share
        step += W
        change = np.subtract(step, self.centre, out=self.centre)
        change *= self.kappa / self.total
        W += change
        self.centre = step
        self.last = np.subtract(W, change, out=change)

    def change_ridge(self, total: float, W: FloatArray) -> FloatArray:
        """Set R, take W as centre, and return the weights that belong to the same dual variables, as a new array."""
        pull = self.pull(W)
        self.total = total
        self.start(W)
        pull = self.add_centre(pull)
        pull /= self.total
        return pull

    def adapt_ridge(self, rate: float, factor: float, W: FloatArray) -> FloatArray:
        """Multiply R by a factor as long as the gap then falls faster, and undo the last change if it does not.

        A strong nuclear norm needs a larger R. N takes up the changes by the rows in those
        directions that it holds at zero, so that these changes are slow. The more strongly the
        centre holds the weights, the smaller are these changes.

        Parameters
        ----------
        rate : float
            Fall of the logarithm of the gap in a pass, with the present R.
        factor : float
            Factor above 1.
        W : array (n_columns, n_labels)
            Current weights.

        Returns
        -------
        array (n_columns, n_labels)
            Weights that belong to the same dual variables.
        """
        if rate > self.best_rate:
            self.best_rate = rate
            return self.change_ridge(self.total * factor, W)
        if np.isfinite(self.best_rate):
            self.best_rate = np.inf
            return self.change_ridge(self.total / factor, W)
        return W


def choose_proximal_ridge(objective: Objective, share: float) -> float:
    r"""Return a ridge R with which a proximal problem takes few passes.

    It is the ridge itself if that is strong enough.

    With the ridge R, a proximal problem takes about :math:`qL` passes, where
    :math:`q = \|z\|^2 / R` and L is the curvature of the loss of a row. About
    :math:`\sqrt{R / \lambda_1}` proximal problems are needed. The product of the two numbers is
    smallest if :math:`qL` is about 1. Few labels of a row have its largest curvature, and most
    have the curvature 1 of the hinge. The root of the largest curvature lies between. So R is
    `share` of the mean squared norm of a row times the root of the mean curvature.

    Parameters
    ----------
    objective : Objective
        Objective over an :class:`rbrl.problem.design.AscentDesign`.
    share : float
        Share of the mean squared norm of a row.
    """
    ridge = objective.ridge.weight
    blocks = [objective.loss.curvature(Y, weights) for _, Y, weights in objective.row_blocks()]
    curvature = float(np.concatenate(blocks).mean())
    wanted = share * float(objective.design.row_squares.mean()) * float(np.sqrt(curvature))
    return wanted if wanted > 2 * ridge else ridge
