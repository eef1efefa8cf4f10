r"""Block dual coordinate ascent: one block of variables for each row, and one for the nuclear norm.

The dual of the objective, with rows :math:`z_i` of the design, dual variables :math:`a_i` for the
labels of row i, and a matrix N that has no singular value above :math:`\lambda_3`, is

.. math:: D(a, N) = -\sum_i \text{loss}_i^*(-a_i) - \frac{1}{2\lambda_1} \|Z'a - N\|_F^2, \qquad
          W = \frac{1}{\lambda_1} (Z'a - N).

A step maximises D over one block, exactly:

- **A row.** Let :math:`q = |z_i|^2 / \lambda_1`, and let c be the scores of the row for the W
  without the contribution of this row. The best scores of the row are
  :math:`f = \arg\min \text{loss}_i(f) + |f - c|^2 / 2q`, and
  :math:`a_i = -\nabla \text{loss}_i(f)`. Newton's method finds them in one to three steps.
- **The nuclear norm.** The best N has the singular values of Z'a, clipped at :math:`\lambda_3`. So
  W has the shrunk singular values of :math:`Z'a / \lambda_1`, and a low rank.

D never decreases, and each of its values is a lower bound on the optimum. The dual variables are
stored as the scores f, so that the certificate of all other solvers applies here, too.

The rows may also be those of a kernel model. Then W has the coefficients of the function
:math:`Z'a / \lambda_1`, and inner products are those of functions.

**Weak ridges.** The number of passes grows with q. If q is large, the solver minimises a sequence
of proximal problems with a stronger ridge, see :mod:`rbrl.solvers.proximal_points`.
"""

import warnings
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from rbrl._common.linalg import gram_eigh
from rbrl._common.typing import FloatArray
from rbrl._loops import rows
from rbrl.losses.weights import row_weights
from rbrl.problem import MatrixDesign, Objective
from rbrl.problem.design import AscentDesign
from rbrl.solvers.base import ROUNDING_GAP, Bound, GapForecast, Run, SolverResult, Start
from rbrl.solvers.proximal_points import ProximalPoints, choose_proximal_ridge


@dataclass(frozen=True)
class DualAscent:
    """Block dual coordinate ascent over the rows of a linear model or of a kernel model.

    It needs a ridge, and a loss that consists of squared hinges and quadratic forms. The settings affect
    the speed, but not the validity of the gap.

    Parameters
    ----------
    seed : int, default=0
        Seed of the order in which the rows are visited.
    proximal_share : float, default=0.3
        Ridge of the proximal problems, relative to the mean squared norm of a row times the root of
        its mean curvature. If the ridge itself is at least half as large, there are none.
    passes : int, default=2
        Number of passes over the rows for each proximal problem.
    stronger : float, default=8
        Factor by which the ridge of the proximal problems grows if a nuclear norm makes them slow.
    first_forecast : int, default=8
        Number of passes after which the ridge of the proximal problems may grow.
    standstill : float, default=1e-13
        Relative change of the weights in a pass at which the solver stops if `tol` is rounding.
    give_up : float, default=1
        Share of `max_iter` after which the solver stops if it expects not to reach `tol`.
    dual_scores : array (n_samples, n_labels), default=None
        Scores whose loss gradients are the first dual variables, for example those of an earlier
        result. The earlier problem may have had other penalties and other weights of losses.

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
        """Minimise an objective. An iteration is a pass over all rows."""
        if reason := explain_unsuitable(objective):
            raise ValueError(reason)
        return Ascent(self, objective, start, tol, max_iter).run()


def explain_unsuitable(objective: Objective) -> str:
    """Return why dual ascent cannot minimise an objective, with a remedy; "" if it can.

    Only types and weights are read, so that the call costs no product with the data.
    """
    design = objective.design
    if not isinstance(design, AscentDesign) or design.turn is not None:
        return (
            "Dual ascent visits the rows of a linear model in memory, or of a kernel model whose nuclear norm is that "
            f"of the function. Got a {type(design).__name__}; use kernel='linear', low_rank='function', or the solver "
            "'auto'."
        )
    if objective.loss.row_terms(objective.Y.shape[1]) is None:
        return (
            f"Dual ascent needs a loss of squared hinges and quadratic forms. Got {objective.loss!r}; use the solver "
            "'auto'."
        )
    if not objective.ridge.weight > 0:
        return (
            f"Dual ascent needs a ridge above 0. Got {objective.ridge.weight:g}; use a small ridge, such as 1e-4, or "
            "the solver 'auto'."
        )
    return ""


@dataclass(frozen=True)
class KernelBlocks(DualAscent):
    """Old name of dual ascent, which model files of version 0.1.0 may contain.

    Parameters
    ----------
    memory, leading : int
        Old parameters without effect.
    """

    memory: int = 20
    leading: int = 200

    def __post_init__(self) -> None:
        warnings.warn(
            "KernelBlocks is an old name: use rbrl.solvers.DualAscent, or the solver 'auto'.",
            DeprecationWarning,
            stacklevel=3,
        )


class CheckedPoint(NamedTuple):
    """Value of the objective at the current weights. Their scores are not kept."""

    value: float
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
        Centre and ridge of the proximal problem.
    forecast : GapForecast
        Pass of the next check, and the number of passes that are still needed.
    nuclear_value : float
        Nuclear norm of W, times its weight.
    pull_sigma : array
        Singular values of Z'a; empty without a nuclear norm.
    is_settled : bool
        Whether the tolerance is rounding, and the last pass did not change the weights beyond
        rounding.
    """

    now: CheckedPoint

    def __init__(self, settings: DualAscent, objective: Objective, start: Start, tol: float, max_iter: int) -> None:
        super().__init__(objective, tol, max_iter)
        self.settings = settings
        self.random = np.random.default_rng(settings.seed)
        hinge, costs, pairs, margin, self.graph = objective.loss.row_terms(objective.Y.shape[1])
        graph = self.graph.data, self.graph.indices, self.graph.indptr
        # The rows are visited with these labels, weights and parameters of the loss.
        weights = row_weights(objective.sample_weight, len(objective.Y))
        self.data = objective.Y, weights, (hinge, costs, pairs, margin, *graph)
        total = choose_proximal_ridge(objective, settings.proximal_share)
        self.points = ProximalPoints(objective.design, objective.ridge.weight, total)
        self.forecast = GapForecast(tol)
        self.nuclear_value = 0.0
        self.pull_sigma: FloatArray = np.zeros(0)
        self.is_settled = False
        self.now = CheckedPoint(np.inf)
        # The first dual variables are those at the scores of `start`, or at scores of +1 and -1.
        known = self.settings.dual_scores
        if start is None:
            # At these scores every margin is kept, and the gradients of the hinges are 0.
            self.dual_scores = np.array(objective.Y, dtype=np.float64)
            self.W: FloatArray = np.zeros(objective.shape)
        else:
            fits = known is not None and known.shape == objective.Y.shape
            self.dual_scores = np.array(known) if fits else objective.design.scores(start)
        if self.points.total > self.points.ridge:
            self.points.start(self.W if start is None else start)
        if start is not None or self.graph.nnz:
            self.W = self.points.add_centre(objective.design.adjoint(self.dual_variables()))
            self.W /= self.points.total
        if start is not None:
            if objective.nuclear.weight:
                self.update_nuclear_block()
            self.note(np.inf)
            self.check()

    def run(self) -> SolverResult:
        """Ascend until a stopping rule is met; return the result with the last weights.

        A run can be run once.

        The objective values of the history are estimates where they were not checked: the loss of a
        row is its loss when it was visited.
        """
        design = self.objective.design
        while not self.is_finished():
            before = self.W.copy() if self.tol <= ROUNDING_GAP else None
            # Maximise D over one row after the other.
            order = self.random.permutation(len(self.dual_scores)).astype(np.int32)
            visited_loss = design.visit_rows(order, *self.data, self.points.total, self.W, self.dual_scores)
            if self.objective.nuclear.weight:
                self.update_nuclear_block()
            # The dual scores of a row were its scores when it was visited.
            square = design.squared_norm(self.W, self.dual_scores.__getitem__)
            self.note(visited_loss + 0.5 * self.points.ridge * square + self.nuclear_value)
            if self.n_iter >= min(self.forecast.next_check, self.max_iter):
                self.check()
            if before is not None:
                before -= self.W
                self.is_settled = np.linalg.norm(before) <= self.settings.standstill * np.linalg.norm(self.W)
            if self.points.centre is not None and self.n_iter % self.settings.passes == 0 and not self.is_finished():
                self.points.move(self.W)
        if self.is_settled:
            self.check()
        result = self.result("Dual ascent", self.W, self.gap() <= self.tol)
        return replace(result, gave_up=self.stopped_by == "forecast")

    def is_finished(self) -> bool:
        """Return whether the run may stop. If the tolerance is rounding, the weights must no longer change."""
        is_certified = self.tol > ROUNDING_GAP and self.gap() <= self.tol
        return is_certified or self.is_settled or bool(self.stopped_by) or self.n_iter >= self.max_iter

    def dual_variables(self) -> FloatArray:
        """Return the dual variables, minus the gradient of the loss at the dual scores.

        They are a new array (n_samples, n_labels), which the caller may change.
        """
        A = np.empty_like(self.dual_scores)
        for part, Y, weights in self.objective.row_blocks():
            np.negative(self.objective.loss.gradient(Y, self.dual_scores[part], weights), out=A[part])
        return A

    def update_nuclear_block(self) -> None:
        """Maximise D over N: shrink the singular values of Z'a plus the contribution of the centre.

        The singular values come from the smallest Gram matrix: over labels, over columns, or over
        rows.

        It replaces `W`, its nuclear norm and `pull_sigma`; the dual scores do not change.
        """
        points = self.points
        nuclear = self.objective.nuclear.weight
        design = self.objective.design
        A = self.dual_variables()
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
        shrunk = np.maximum(sigma - nuclear, 0.0) / points.total
        self.nuclear_value = nuclear * float(shrunk.sum())
        factors = np.divide(shrunk, sigma, out=np.zeros_like(sigma), where=shrunk > 0)
        shrink = (basis * factors) @ basis.T
        if by_rows:
            self.W = design.adjoint(A @ shrink)
        else:
            self.W = shrink @ V if by_columns else V @ shrink

    def check(self) -> None:
        """Compute the certified gap. If it falls slowly, give up or change the proximal ridge.

        It sets `now`, `bound`, `forecast` and, if the run must end, `stopped_by`. The value of the
        last iteration in `way` becomes exact. A change of the proximal ridge replaces `W`.
        """
        objective = self.objective
        points = self.points
        row_scores = objective.design.row_scores(self.W)
        square = objective.design.squared_norm(self.W, row_scores)
        value = objective.sum_loss(row_scores).value + 0.5 * points.ridge * square + self.nuclear_value
        self.now = CheckedPoint(value)
        # D is largest over N and over multiples of the dual variables.
        dual = objective.sum_loss(self.dual_scores.__getitem__)
        if objective.nuclear.weight:
            sigma = self.pull_sigma
        elif points.centre is None:
            sigma = np.array([points.total * np.sqrt(square)])
        else:
            pull = points.pull(self.W)
            sigma = np.array([np.sqrt(max(objective.design.inner(pull, pull), 0.0))])
        bound = rows.clipped_dual_maximum(sigma, *dual[1:], points.ridge, objective.nuclear.weight)[0]
        self.bound = Bound(float(bound), self.dual_scores)
        if self.n_iter:
            self.way[-1] = value, objective.evaluations
        self.forecast.update(self.n_iter, self.gap())
        left = self.forecast.passes_left
        if self.n_iter + left > self.max_iter > self.n_iter >= self.settings.give_up * self.max_iter:
            self.stopped_by = "forecast"
        elif objective.nuclear.weight and left > self.n_iter >= self.settings.first_forecast:
            self.W = points.adapt_ridge(self.forecast.rate, self.settings.stronger, self.W)
        if objective.on_gap is not None and objective.on_gap(self.gap()):
            self.stopped_by = "callback"
