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

The rows may be those of a kernel model. Then W has the coefficients of the function :math:`Z'a / \lambda_1`, and inner
products are those of functions.

**Weak ridges.** The number of passes over the rows grows with q. Where q is large, the solver minimises a sequence of
proximal problems, :mod:`rbrl.solvers.proximal_points`, whose ridge is stronger.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.linalg import gram_eigh
from rbrl._common.typing import FloatArray
from rbrl._loops import rows
from rbrl.losses import Terms
from rbrl.losses.base import row_weights
from rbrl.problem import AscentDesign, MatrixDesign, Objective
from rbrl.solvers.base import ROUNDING, Bound, Run, SolverResult, Start
from rbrl.solvers.proximal_points import ProximalPoints


@dataclass(frozen=True)
class DualAscent:
    """Block dual coordinate ascent over the rows of a linear model or of a kernel model.

    It needs a ridge, and a loss that is made of squared hinges and quadratic forms.

    Parameters
    ----------
    seed : int, default=0
        Seed of the order in which the rows are visited.
    proximal_share : float, default=0.3
        Ridge of the proximal problems, as a share of the mean squared length of a row times the root of its mean curvature.
        Where the ridge itself is half as large or larger, there are no proximal problems.
    passes : int, default=2
        Number of passes over the rows for each proximal problem.
    stronger : float, default=8
        Factor by which the ridge of the proximal problems grows where a nuclear norm makes them slow.
    first_forecast : int, default=8
        Number of passes after which the ridge of the proximal problems may grow.
    standstill : float, default=1e-13
        Share of the norm of the weights: where a pass moves them by less, they stand still. It matters only where `tol` is
        rounding.
    give_up : float, default=1
        Share of `max_iter` after which it stops if the fall of the gap says that the rest will not be enough; 1 means
        never.
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
    stronger: float = 8.0
    first_forecast: int = 8
    standstill: float = 1e-13
    give_up: float = 1.0
    dual_scores: FloatArray | None = field(default=None, repr=False, compare=False)

    def solve(self, objective: Objective, start: Start = None, tol: float = 1e-4, max_iter: int = 1000) -> SolverResult:
        """Minimise `objective`; return a :class:`SolverResult`. An iteration is a pass over all rows."""
        if not is_visitable(objective):
            raise ValueError(
                "Dual ascent visits the rows of a linear model in memory, or of a kernel model whose nuclear norm is that "
                f"of the function. Got a {type(objective.design).__name__}; use kernel='linear', low_rank='function', or "
                "the solver 'auto'."
            )
        if objective.loss.row_terms(objective.Y.shape[1]) is None:
            raise ValueError(
                f"Dual ascent needs a loss of squared hinges and quadratic forms. Got {objective.loss!r}; use the solver "
                "'auto'."
            )
        if not objective.ridge.weight > 0:
            raise ValueError(
                f"Dual ascent needs a ridge above 0. Got {objective.ridge.weight:g}; use a small ridge, such as 1e-4, or "
                "the solver 'auto'."
            )
        return Ascent(self, objective, tol, max_iter).run(start)


def is_visitable(objective: Objective) -> bool:
    """Return whether dual ascent can visit the rows of the objective's design.

    Parameters
    ----------
    objective : Objective

    Returns
    -------
    bool
    """
    return isinstance(objective.design, AscentDesign) and objective.design.turn is None


class Checked(NamedTuple):
    """The objective at the weights reached, and their squared norm. Their scores are not kept."""

    value: float
    square: float = 0.0
    scores: None = None


class Ascent(Run):
    """The state of an ascent.

    Attributes
    ----------
    W : array (n_columns, n_labels)
        Weights that belong to the dual variables, to N and to the centre of the proximal problem.
    dual_scores : array (n_samples, n_labels)
        Scores whose loss gradients, times -1, are the dual variables.
    points : ProximalPoints
        Centres of the proximal problems, and their ridge.
    sigma, pull_sigma : arrays
        Singular values of W and of Z'a; empty without a nuclear norm.
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

    def __init__(self, settings: DualAscent, objective: Objective, tol: float, max_iter: int) -> None:
        super().__init__(objective, tol, max_iter)
        self.settings = settings
        self.random = np.random.default_rng(settings.seed)
        self.row_weights = row_weights(objective.sample_weight, len(objective.Y))
        self.terms: Any = objective.loss.row_terms(objective.Y.shape[1])
        self.points = ProximalPoints.of(objective, settings.proximal_share)
        self.sigma: FloatArray = np.zeros(0)
        self.pull_sigma: FloatArray = np.zeros(0)
        self.settled = False
        self.best_rate = 0.0
        self.next_check = 2
        self.now = Checked(np.inf)
        self.gaps: list[tuple[int, float]] = []

    def run(self, start: Start) -> SolverResult:
        """Ascend from `start`, or from dual variables of zero, until the gap is at most the tolerance."""
        self.begin(start)
        while not self.finished():
            before = self.W.copy() if self.tol <= ROUNDING else None
            visited_loss = self.visit_rows()
            if self.objective.nuclear.weight:
                self.update_nuclear_block()
            # A row's dual scores were its scores when it was visited.
            square = self.objective.design.squared_norm(self.W, self.dual_scores.__getitem__)
            self.note(visited_loss + self.penalties(square))
            if self.n_iter >= min(self.next_check, self.max_iter):
                self.check()
            if before is not None:
                before -= self.W
                self.settled = np.linalg.norm(before) <= self.settings.standstill * np.linalg.norm(self.W)
            if self.points.kappa and self.n_iter % self.settings.passes == 0 and not self.finished():
                self.points.move(self.W)
        if self.settled:
            self.check()
        result = self.result(self.name, self.W, self.gap() <= self.tol)
        return replace(result, gave_up=self.stopped_by == "forecast")

    def finished(self) -> bool:
        """Return whether there is nothing more to do. A tolerance that is rounding asks for weights that stand still."""
        if self.tol > ROUNDING:
            return super().finished()
        return self.settled or bool(self.stopped_by) or self.n_iter >= self.max_iter

    def begin(self, start: Start) -> None:
        """Set the first dual variables: those of the scores of `start`, or those of scores of +1 and -1."""
        objective = self.objective
        known = self.settings.dual_scores
        if start is None:
            # These scores keep every margin: hinges have no gradient there.
            self.dual_scores = objective.Y.astype(np.float64)
            self.W = objective.zeros()
        else:
            fits = known is not None and known.shape == objective.Y.shape
            self.dual_scores = np.array(known) if fits else objective.design.scores(start)
        self.points.start(self.W if start is None else start)
        if start is not None or self.terms.graph.nnz:
            gradient = self.dual_gradient()[1]
            V = objective.design.adjoint(np.negative(gradient, out=gradient))
            self.W = self.points.add_centre(V)
            self.W /= self.points.total
        if start is not None:
            if objective.nuclear.weight:
                self.update_nuclear_block()
            self.note(np.inf)
            self.check()

    def visit_rows(self) -> float:
        """Maximise D over each row in turn; return the sum of the rows' losses when they were visited."""
        objective = self.objective
        order = self.random.permutation(len(objective.Y)).astype(np.int32)
        loss = self.row_weights, self.terms.numbers
        return objective.design.visit_rows(order, objective.Y, *loss, self.points.total, self.W, self.dual_scores)

    def dual_gradient(self) -> tuple[Terms, FloatArray]:
        """Return the terms of the loss and its gradients at the dual scores: the gradients are minus the dual variables."""
        objective = self.objective
        return objective.loss.evaluate(objective.Y, self.dual_scores, objective.sample_weight)

    def update_nuclear_block(self) -> None:
        """Maximise D over N: shrink the singular values of Z'a, the centre's part added.

        They come from a Gram matrix: of the shorter side, and from the rows where these are fewer than columns.
        """
        objective, design, points = self.objective, self.objective.design, self.points
        A = self.dual_gradient()[1]
        np.negative(A, out=A)
        V = design.adjoint(A)
        has_centre = points.centre is not None
        if has_centre:
            self.pull_sigma = np.sqrt(gram_eigh(design.label_gram(V))[0])
            V = points.add_centre(V)
        by_columns = isinstance(design, MatrixDesign) and V.shape[0] < V.shape[1]
        by_rows = not by_columns and not has_centre and len(A) < len(V)
        if by_rows:
            gram = A.T @ design.scores(V)
        else:
            gram = V @ V.T if by_columns else design.label_gram(V)
        values, basis = gram_eigh(gram)
        sigma = np.sqrt(values)
        if not has_centre:
            self.pull_sigma = sigma
        self.sigma = np.maximum(sigma - objective.nuclear.weight, 0.0) / points.total
        factors = np.divide(self.sigma, sigma, out=np.zeros_like(sigma), where=self.sigma > 0)
        shrink = (basis * factors) @ basis.T
        if by_rows:
            self.W = design.adjoint(A @ shrink)
        else:
            self.W = shrink @ V if by_columns else V @ shrink

    def penalties(self, square: float) -> float:
        """Return the sum of ridge and nuclear norm at the weights, from their squared norm."""
        return 0.5 * self.objective.ridge.weight * square + self.objective.nuclear.weight * float(self.sigma.sum())

    def check(self) -> None:
        """Compute the objective, and the lower bound that the dual variables give."""
        objective = self.objective
        row_scores = objective.design.row_scores(self.W)
        square = objective.design.squared_norm(self.W, row_scores)
        value = objective.sum_loss(row_scores).value + self.penalties(square)
        self.now = Checked(value, square)
        self.bound = Bound(self.dual_value(), self.dual_scores)
        if self.n_iter:
            self.way[-1] = value, objective.evaluations
        self.plan_next_check()
        if objective.reached is not None and objective.reached(self.gap()):
            self.stopped_by = "callback"

    def dual_value(self) -> float:
        """Return the largest value of D over multiples of the dual variables, and over N: a lower bound of the optimum."""
        objective, points = self.objective, self.points
        loss = objective.sum_loss(self.dual_scores.__getitem__)
        if objective.nuclear.weight:
            sigma = self.pull_sigma
        elif points.centre is None:
            sigma = np.array([points.total * np.sqrt(self.now.square)])
        else:
            pull = points.pull(self.W)
            sigma = np.array([np.sqrt(max(objective.design.inner(pull, pull), 0.0))])
        return float(rows.clipped_dual_maximum(sigma, *loss[1:], points.ridge, objective.nuclear.weight)[0])

    def plan_next_check(self) -> None:
        """Set the iteration of the next check: where the last two gaps say that the tolerance is reached.

        The gap is taken to fall by the same factor in each pass. The next check comes after half as many passes again as
        there were, at the latest.
        """
        n, gap = self.n_iter, self.gap()
        self.gaps.append((n, gap))
        before, gap_before = self.gaps[-2:][0]
        latest = max(n + (n + 1) // 2, 2)
        if not (np.isfinite(gap_before) and 0 < gap < gap_before and self.tol > 0):
            self.next_check = latest
            return
        rate = np.log(gap_before / gap) / (n - before)
        left = np.log(gap / self.tol) / rate
        self.next_check = int(np.clip(np.ceil(n + left), n + 1, latest))
        if n + left > self.max_iter > n >= self.settings.give_up * self.max_iter:
            self.stopped_by = "forecast"
        elif self.objective.nuclear.weight and left > n >= self.settings.first_forecast:
            self.adapt_proximal_ridge(rate)

    def adapt_proximal_ridge(self, rate: float) -> None:
        """Multiply the ridge of the proximal problems as long as the gap then falls faster; `rate` says how fast it does.

        A strong nuclear norm needs it. N takes up what the rows move in the directions that it holds at zero, so that they
        move slowly. The more the centre holds the weights, the less there is to take up.
        """
        if rate > self.best_rate:
            self.best_rate = rate
            self.W = self.points.change_ridge(self.points.total * self.settings.stronger, self.W)
        elif np.isfinite(self.best_rate):
            self.W = self.points.change_ridge(self.points.total / self.settings.stronger, self.W)
            self.best_rate = np.inf
