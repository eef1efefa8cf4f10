r"""Block dual coordinate ascent: one block of dual variables for each row of the data, and one for the nuclear norm.

The dual of the objective, with rows :math:`z_i` of the design, dual variables :math:`a_i` for the labels of row i, and a
matrix N that has no singular value above :math:`\lambda_3`, is

.. math:: D(a, N) = -\sum_i \text{loss}_i^*(-a_i) - \frac{1}{2\lambda_1} \|Z'a - N\|_F^2, \qquad
          W = \frac{1}{\lambda_1} (Z'a - N).

A step maximises D over one block, exactly:

- **A row.** Let :math:`q = |z_i|^2 / \lambda_1`, and let c be the scores of the row that W gives without the row's own
  part. The best scores of the row are :math:`f = \arg\min \text{loss}_i(f) + |f - c|^2 / 2q`, and
  :math:`a_i = -\nabla \text{loss}_i(f)`. Newton's method finds them in one to three steps.
- **The nuclear norm.** The best N has the singular values of Z'a, clipped at :math:`\lambda_3`. So W has those of
  :math:`Z'a / \lambda_1`, shrunk: its rank is low without any smoothing.

D never falls, and each of its values is a lower bound of the optimum. The dual variables are stored as the scores f whose
loss gradients they are. So the certificate of every other solver serves here, too.

**Weak ridges.** The number of passes over the rows grows with q. Where q is large, the solver minimises

.. math:: \text{objective}(W) + \tfrac{\kappa}{2} \|W - C\|_F^2

for a sequence of centres C, to which it adds momentum (the accelerated proximal point method; Lin, Mairal, Harchaoui:
Catalyst acceleration, JMLR 2018). Each of these problems has the ridge :math:`\lambda_1 + \kappa` and takes a few passes.
The momentum starts again whenever it points uphill (O'Donoghue, Candes: Adaptive restart, 2015).
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.linalg import gram_eigh, gram_singular_values, squares
from rbrl._common.typing import FloatArray, issparse
from rbrl._loops import rows
from rbrl.losses import Terms
from rbrl.losses.base import row_weights
from rbrl.problem import MatrixDesign, Objective
from rbrl.solvers.base import ROUNDING, Bound, Run, SolverResult, Start

# Where more passes are left than were made, after this many at least, the ridge of the proximal problems is multiplied.
FIRST_FORECAST, STRONGER = 8, 8.0
# Weights stand still where a pass moves them by this share of their norm at most.
STANDSTILL = 1e-13


@dataclass(frozen=True)
class DualAscent:
    """Block dual coordinate ascent over the rows of a linear design.

    It needs a ridge, and a loss that is made of squared hinges of labels and of pairs of labels.

    Parameters
    ----------
    seed : int, default=0
        Seed of the order in which the rows are visited.
    proximal_share : float, default=0.3
        Ridge of the proximal problems, as a share of the mean squared length of a row times the root of its mean curvature.
        Where the ridge itself is half as large or larger, there are no proximal problems.
    passes : int, default=2
        Number of passes over the rows for each proximal problem.
    dual_scores : array (n_samples, n_labels), default=None
        Scores whose loss gradients are the first dual variables, such as those of an earlier result. They serve whatever the
        penalties and the weights of losses are now.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> from rbrl.solvers import DualAscent
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> result = DualAscent().solve(Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0))
    >>> result.weights.round(3).tolist(), result.gap <= 1e-4
    ([[0.5]], True)
    """

    seed: int = 0
    proximal_share: float = 0.3
    passes: int = 2
    dual_scores: FloatArray | None = field(default=None, repr=False, compare=False)

    def solve(self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult`. An iteration is a pass over all rows."""
        if not (isinstance(objective.design, MatrixDesign) and objective.design.turn is None):
            raise ValueError(
                f"Dual ascent visits the rows of a linear model in memory. Got a {type(objective.design).__name__}; use "
                "kernel='linear', or the solver 'auto'."
            )
        if objective.loss.row_hinges(objective.Y.shape[1]) is None:
            raise ValueError(
                f"Dual ascent needs a loss of squared hinges of labels and of pairs. Got {objective.loss!r}; use the solver "
                "'auto'."
            )
        if not objective.ridge.weight > 0:
            raise ValueError(
                f"Dual ascent needs a ridge above 0. Got {objective.ridge.weight:g}; use a small ridge, such as 1e-4, or "
                "the solver 'auto'."
            )
        return Ascent(self, objective, tol, max_iter).run(start)

    def proximal_ridge(self, objective: Objective) -> float:
        r"""Return the ridge of the proximal problems; the objective's own where it is strong enough.

        With the ridge R, a proximal problem takes some :math:`qL` passes, where :math:`q = \|z\|^2 / R` and L is the
        curvature of the row's loss. There are some :math:`\sqrt{R / \lambda_1}` of them: the product is smallest where
        :math:`qL` is about 1. Few labels of a row have its largest curvature, and most have that of the hinge, 1; the root
        is between the two.

        Parameters
        ----------
        objective : Objective

        Returns
        -------
        float
        """
        ridge = objective.ridge.weight
        size = float(squares(objective.design.X, axis=1).mean())
        curvature = float(objective.loss.curvature(objective.Y, objective.sample_weight).mean())
        wanted = self.proximal_share * size * float(np.sqrt(curvature))
        return wanted if wanted > 2 * ridge else ridge

    def is_fit_for(self, objective: Objective, max_iter: int) -> bool:
        """Return whether the ridge is strong enough for so many iterations: momentum needs some sqrt(R / ridge) problems.

        Parameters
        ----------
        objective : Objective
        max_iter : int

        Returns
        -------
        bool
        """
        n_problems = np.sqrt(self.proximal_ridge(objective) / objective.ridge.weight)
        return bool(self.passes * n_problems <= max_iter)


class Checked(NamedTuple):
    """The objective at the weights reached, and their scores."""

    value: float
    scores: Any


class Ascent(Run):
    """The state of an ascent.

    Attributes
    ----------
    W : array (n_columns, n_labels)
        Weights that belong to the dual variables, to N and to the centre.
    dual_scores : array (n_samples, n_labels)
        Scores whose loss gradients, times -1, are the dual variables.
    sigma, pull_sigma : arrays
        Singular values of W and of Z'a; empty without a nuclear norm.
    total : float
        Ridge of the proximal problem: the objective's own, plus kappa.
    centre, last : arrays (n_columns, n_labels), or None
        Centre of the proximal problem, and minimiser of the one before.
    momentum : int
        Number of proximal problems since the momentum started.
    best_rate : float
        Largest fall of the logarithm of the gap in a pass, over the ridges of proximal problems that were tried; infinite
        once a larger ridge was no better.
    settled : bool
        Whether the last pass hardly moved the weights, where the tolerance is rounding.
    next_check : int
        Iteration after which the gap is computed next.
    """

    name = "Dual ascent"
    now: Checked
    centre: Any = None
    last: Any = None

    def __init__(self, settings: DualAscent, objective: Objective, tol: float, max_iter: int) -> None:
        super().__init__(objective, tol, max_iter)
        self.settings = settings
        self.random = np.random.default_rng(settings.seed)
        X = objective.design.X
        self.rows = (X.data, X.indices, X.indptr) if issparse(X) else (np.ascontiguousarray(X),)
        self.squares = squares(X, axis=1)
        self.loss = (
            row_weights(objective.sample_weight, len(objective.Y)),
            *objective.loss.row_hinges(objective.Y.shape[1]),
        )
        self.sigma: FloatArray = np.zeros(0)
        self.pull_sigma: FloatArray = np.zeros(0)
        self.momentum = 0
        self.settled = False
        self.best_rate = 0.0
        self.next_check = 2
        self.now = Checked(np.inf, None)
        self.gaps: list[tuple[int, float]] = []
        self.total = settings.proximal_ridge(objective)

    @property
    def kappa(self) -> float:
        """The weight of the distance from the centre."""
        return self.total - self.objective.ridge.weight

    def run(self, start: Start) -> SolverResult:
        """Ascend from `start`, or from dual variables of zero, until the gap is at most the tolerance."""
        self.begin(start)
        while not self.finished():
            before = self.W.copy() if self.tol <= ROUNDING else None
            visited_loss = self.visit_rows()
            if self.objective.nuclear.weight:
                self.update_nuclear_block()
            self.note(visited_loss + self.penalties())
            if self.n_iter >= min(self.next_check, self.max_iter):
                self.check()
            if before is not None:
                before -= self.W
                self.settled = np.linalg.norm(before) <= STANDSTILL * np.linalg.norm(self.W)
            if self.kappa and self.n_iter % self.settings.passes == 0 and not self.finished():
                self.move_centre()
        if self.settled:
            self.check()
        return self.result(self.name, self.W, self.gap() <= self.tol)

    def finished(self) -> bool:
        """Return whether there is nothing more to do. A tolerance that is rounding asks for weights that stand still."""
        if self.tol > ROUNDING:
            return super().finished()
        return self.settled or bool(self.stopped_by) or self.n_iter >= self.max_iter

    def begin(self, start: Start) -> None:
        """Set the first dual variables: those of the scores of `start`, or zero."""
        objective = self.objective
        known = self.settings.dual_scores
        if start is None:
            # Scores of +1 and -1 keep every margin: the loss has no gradient there.
            self.dual_scores = objective.Y.astype(np.float64)
            self.W = objective.zeros()
        else:
            fits = known is not None and known.shape == objective.Y.shape
            self.dual_scores = np.array(known) if fits else objective.design.scores(start)
            self.W = self.weights_of_duals(start)
        if self.kappa:
            # The weights change in place.
            self.centre = objective.zeros() if start is None else start
            self.last = self.centre
        if start is not None:
            if objective.nuclear.weight:
                self.update_nuclear_block()
            self.note(np.inf)
            self.check()

    def weights_of_duals(self, centre: FloatArray) -> FloatArray:
        """Return the weights that belong to the dual variables and to a centre, with N = 0."""
        W = self.objective.design.adjoint(-self.dual_gradient()[1])
        if self.kappa:
            W += self.kappa * centre
        W /= self.total
        return W

    def visit_rows(self) -> float:
        """Maximise D over each row in turn; return the sum of the rows' losses when they were visited."""
        objective = self.objective
        order = self.random.permutation(len(objective.Y)).astype(np.int32)
        data = (*self.rows, self.squares, objective.Y, *self.loss)
        visit = rows.dual_ascent_sparse if len(self.rows) == 3 else rows.dual_ascent_dense
        visited_loss = visit(*data, self.total, order, self.W, self.dual_scores)
        objective.design.columns += 2 * objective.Y.shape[1]
        return float(visited_loss)

    def dual_gradient(self) -> tuple[Terms, FloatArray]:
        """Return the terms of the loss and its gradients at the dual scores: the gradients are minus the dual variables."""
        objective = self.objective
        return objective.loss.evaluate(objective.Y, self.dual_scores, objective.sample_weight)

    def update_nuclear_block(self) -> None:
        """Maximise D over N: shrink the singular values of Z'a, the centre's part added.

        The Gram matrix is that of the shorter side. Where rows are fewer than columns, it is computed from the rows.
        """
        objective, design = self.objective, self.objective.design
        A = -self.dual_gradient()[1]
        V = design.adjoint(A)
        if self.centre is not None:
            self.pull_sigma = gram_singular_values(V)
            V += self.kappa * self.centre
        by_columns = V.shape[0] < V.shape[1]
        by_rows = not by_columns and self.centre is None and len(A) < len(V)
        if by_rows:
            gram = A.T @ design.scores(V)
        else:
            gram = V @ V.T if by_columns else V.T @ V
        values, basis = gram_eigh(gram)
        sigma = np.sqrt(values)
        if self.centre is None:
            self.pull_sigma = sigma
        self.sigma = np.maximum(sigma - objective.nuclear.weight, 0.0) / self.total
        factors = np.divide(self.sigma, sigma, out=np.zeros_like(sigma), where=self.sigma > 0)
        shrink = (basis * factors) @ basis.T
        if by_rows:
            self.W = design.adjoint(A @ shrink)
        else:
            self.W = shrink @ V if by_columns else V @ shrink

    def penalties(self) -> float:
        """Return the sum of ridge and nuclear norm at the weights."""
        ridge = 0.5 * self.objective.ridge.weight * float(np.vdot(self.W, self.W))
        return ridge + self.objective.nuclear.weight * float(self.sigma.sum())

    def move_centre(self) -> None:
        """Take the weights as minimiser of the proximal problem, and move the centre beyond them."""
        step = self.W - self.last
        uphill = np.vdot(self.centre - self.W, step) > 0
        self.momentum = 1 if uphill else self.momentum + 1
        root = np.sqrt(self.objective.ridge.weight / self.total)
        share = min((1 - root) / (1 + root), (self.momentum - 1) / (self.momentum + 2))
        self.last = self.W.copy()
        step *= share
        step += self.W
        self.W += (self.kappa / self.total) * (step - self.centre)
        self.centre = step

    def check(self) -> None:
        """Compute the objective, and the lower bound that the dual variables give."""
        objective = self.objective
        scores = objective.design.scores(self.W)
        value = objective.loss.value(objective.Y, scores, objective.sample_weight) + self.penalties()
        self.now = Checked(value, scores)
        self.bound = Bound(self.dual_value(), self.dual_scores)
        if self.n_iter:
            self.way[-1] = value, objective.evaluations
        self.plan_next_check()
        if objective.reached is not None and objective.reached(self.gap()):
            self.stopped_by = "callback"

    def dual_value(self) -> float:
        """Return the largest value of D over multiples of the dual variables, and over N: a lower bound of the optimum."""
        objective, ridge = self.objective, self.objective.ridge.weight
        loss, _ = self.dual_gradient()
        if objective.nuclear.weight:
            sigma = self.pull_sigma
        elif self.centre is None:
            sigma = np.array([self.total * np.linalg.norm(self.W)])
        else:
            sigma = np.array([np.linalg.norm(self.total * self.W - self.kappa * self.centre)])
        return float(rows.clipped_dual_maximum(sigma, *loss[1:], ridge, objective.nuclear.weight)[0])

    def plan_next_check(self) -> None:
        """Set the iteration of the next check: where the last two gaps say that the tolerance is reached.

        The gap is taken to fall by the same factor in each pass. The next check comes after half as many passes again as
        there were, at the latest.
        """
        n, gap = self.n_iter, self.gap()
        self.gaps.append((n, gap))
        before, gap_before = self.gaps[-2:][0]
        latest = max(2 * n, 2)
        if not (np.isfinite(gap_before) and 0 < gap < gap_before and self.tol > 0):
            self.next_check = latest
            return
        rate = np.log(gap_before / gap) / (n - before)
        left = np.log(gap / self.tol) / rate
        self.next_check = int(np.clip(np.ceil(n + left), n + 1, latest))
        if self.objective.nuclear.weight and left > n >= FIRST_FORECAST:
            self.adapt_proximal_ridge(rate)

    def adapt_proximal_ridge(self, rate: float) -> None:
        """Multiply the ridge of the proximal problems as long as the gap then falls faster; `rate` says how fast it does.

        A strong nuclear norm needs it. N takes up what the rows move in the directions that it holds at zero, so that they
        move slowly. The more the centre holds the weights, the less there is to take up.
        """
        if rate > self.best_rate:
            self.best_rate = rate
            self.set_total(self.total * STRONGER)
        elif np.isfinite(self.best_rate):
            self.set_total(self.total / STRONGER)
            self.best_rate = np.inf

    def set_total(self, total: float) -> None:
        """Change the ridge of the proximal problems, and take the weights as their centre; the dual variables stay."""
        pull = self.total * self.W
        if self.centre is not None:
            pull -= self.kappa * self.centre
        self.total = total
        self.centre = self.last = self.W.copy()
        self.W = (pull + self.kappa * self.centre) / self.total
        self.momentum = 0
