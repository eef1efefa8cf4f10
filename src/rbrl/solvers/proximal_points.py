r"""The accelerated proximal point method, around a solver that works well with strong ridges only.

A weak ridge makes some algorithms slow. They then minimise

.. math:: \text{objective}(W) + \tfrac{\kappa}{2} \|W - C\|^2

for a sequence of centres C, to which momentum is added (Lin, Mairal, Harchaoui: Catalyst acceleration, JMLR 2018). Each of
these proximal problems has the ridge :math:`R = \lambda_1 + \kappa` and takes a few passes. The momentum starts again
whenever it points uphill (O'Donoghue, Candes: Adaptive restart, 2015).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.problem import AscentDesign, Objective


@dataclass
class ProximalPoints:
    """The sequence of centres.

    Attributes
    ----------
    design : AscentDesign
        Design whose inner products the distances are measured in.
    ridge : float
        Ridge of the objective.
    total : float
        Ridge R of the proximal problem.
    centre, last : arrays (n_columns, n_labels), or None
        Centre of the proximal problem, and minimiser of the one before. None where the ridge is strong: kappa is 0.
    momentum : int
        Number of proximal problems since the momentum started.
    """

    design: AscentDesign
    ridge: float
    total: float
    centre: Any = None
    last: Any = None
    momentum: int = 0

    @classmethod
    def of(cls, objective: Objective, share: float) -> "ProximalPoints":
        r"""Return points whose proximal problems take few passes; without a centre where the ridge itself is strong enough.

        With the ridge R, a proximal problem takes some :math:`qL` passes, where :math:`q = \|z\|^2 / R` and L is the
        curvature of the row's loss. There are some :math:`\sqrt{R / \lambda_1}` of them: the product is smallest where
        :math:`qL` is about 1. Few labels of a row have its largest curvature, and most have that of the hinge, 1; the root
        is between the two. So R is `share` of the mean squared length of a row times the root of the mean curvature.

        Parameters
        ----------
        objective : Objective
            Objective over an :class:`rbrl.problem.AscentDesign`.
        share : float

        Returns
        -------
        ProximalPoints
        """
        design = objective.design
        ridge = objective.ridge.weight
        curvature = float(objective.loss.curvature(objective.Y, objective.sample_weight).mean())
        wanted = share * float(design.row_squares.mean()) * float(np.sqrt(curvature))
        return cls(design, ridge, wanted if wanted > 2 * ridge else ridge)

    @property
    def n_problems(self) -> float:
        """The number of proximal problems that momentum needs, to a constant factor."""
        return float(np.sqrt(self.total / self.ridge))

    @property
    def kappa(self) -> float:
        """The weight of the distance from the centre."""
        return self.total - self.ridge

    def start(self, W: FloatArray) -> None:
        """Take a copy of W as the first centre, where there are proximal problems."""
        if self.kappa:
            self.centre = W.copy()
            self.last = W.copy()

    def pull(self, W: FloatArray) -> FloatArray:
        """Return R W without the centre's part: a new array."""
        if self.centre is None:
            return self.total * W
        pull = (self.total / self.kappa) * W
        pull -= self.centre
        pull *= self.kappa
        return pull

    def add_centre(self, V: FloatArray) -> FloatArray:
        """Return V with the centre's part of R W added to it, in place."""
        if self.centre is not None:
            V += self.kappa * self.centre
        return V

    def move(self, W: FloatArray) -> None:
        """Take W as minimiser of the proximal problem, move the centre beyond it, and W with the centre."""
        # All of it is in place: weights are the largest arrays of a fit.
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
        """Change R, take W as centre, and return the weights that belong to the same dual variables."""
        pull = self.pull(W)
        self.total = total
        self.centre = W.copy()
        self.last = W.copy()
        self.momentum = 0
        pull = self.add_centre(pull)
        pull /= self.total
        return pull
