r"""Dual coordinate ascent for ranking SVMs, with a duality gap that bounds the distance from the optimum.

The problem is

.. math:: \min_{W, b}\; \tfrac12 \|W\|_F^2 + \tfrac{1}{2\rho} \|b\|^2
          + \sum_{i,(j,k)} c_{ijk} |m_{ijk} - (f_{ij} - f_{ik})|_+, \qquad F = XW + 1b',

with :math:`\rho = 0` (no biases), finite (biases penalised like weights) or infinite (free biases). Its dual has one
variable per pair, between 0 and c:

.. math:: \max_\alpha\; \sum m \alpha - \tfrac12 \|X'B\|_F^2 - \tfrac{\rho}{2} \|1'B\|^2, \qquad
          B_{ik} = \sum_{\text{pairs } k \text{ wins}} \alpha - \sum_{\text{pairs } k \text{ loses}} \alpha,

and for free biases the constraint 1'B = 0 in place of the last term. An augmented Lagrangian meets this constraint:
sweeps keep the biases near their last estimate, and each round ends with `balance`, a projection onto the box and the
constraint. The projection gives the dual bound and the next estimate of the biases.

Sweeps are cheap and soon near the optimum. If C is large and the features are few, however, the last digits would take
thousands of sweeps. In this case, an interior point method continues (:mod:`rbrl.ranking_svm.interior_point`).

This module shares no code with :mod:`rbrl.solvers.dual_ascent`. The dual variables of a row there belong to its labels
and have no bound, because hinges are squared. Here, each pair has a dual variable between two bounds.
"""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl._loops import rows as loops
from rbrl.ranking_svm.interior_point import InteriorPoint, is_small_enough
from rbrl.ranking_svm.pairs import HingePairs, Rows
from rbrl.solvers.certificate import relative_gap

# Number of sweeps between two certificates.
SWEEPS_PER_CERTIFICATE = 10
# Number of passes over the pairs of a row in a sweep.
PASSES_PER_ROW = 5
# Relative rounding error of a sum of dual variables.
DUAL_SUM_ROUNDING = 1e-13
# Largest move of a bias in one Newton step, in addition to the largest score.
LONGEST_BIAS_MOVE = 4.0
# Smallest margin within which the projection moves a dual variable through its box. Smaller margins make the
# problem in the biases hard.
SMALLEST_BOX_MARGIN = 0.03
# Dual variables and biases.
Start: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass
class DualResult:
    """Solution of a ranking SVM with its gap.

    Attributes
    ----------
    weights : array
        Weights of the features, or coefficients B of the rows of a kernel matrix.
    biases : array (n_labels,)
    objective, dual_objective : float
        Best primal and dual values; the optimum lies between them.
    gap : float
        Difference of these values, relative to the dual value.
    duals : array (n_pairs,)
        Dual variables of the pairs, from which another solve may start.
    best_duals : array (n_pairs,)
        Dual variables that gave `dual_objective`.
    n_iter : int
        Sweeps over the rows and steps of the interior point method.
    converged : bool
        Whether the gap is within the tolerance.
    history : array
        Best primal value at each certificate.
    """

    weights: FloatArray = field(repr=False)
    biases: FloatArray
    objective: float
    dual_objective: float
    gap: float
    duals: FloatArray = field(repr=False)
    best_duals: FloatArray = field(repr=False)
    n_iter: int
    converged: bool
    history: FloatArray = field(repr=False)


@dataclass(frozen=True)
class PairwiseAscent:
    """Dual coordinate ascent over the pairs of one row at a time.

    Parameters
    ----------
    patience : int, default=None
        Number of sweeps before the interior point method starts, if the problem is small enough for it. None
        uses the value of the rows: for a kernel matrix, sweeps are cheap and steps of the method expensive.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.ranking_svm.pairs import FeatureRows, ranking_pairs
    >>> X, Y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1, -1], [-1, 1]])
    >>> result = PairwiseAscent().solve(FeatureRows(X), ranking_pairs(Y, C=1.0), lift=0.0)
    >>> result.weights.round(2), result.gap <= 1e-3
    (array([[ 0.5, -0.5],
           [-0.5,  0.5]]), True)
    """

    patience: int | None = None

    def solve(
        self, rows: Rows, pairs: HingePairs, lift: float, start: Start | None = None, tol: float = 1e-3,
        max_iter: int = 10_000,
    ) -> DualResult:  # fmt: skip
        """Solve a ranking SVM.

        Parameters
        ----------
        rows : GramRows or FeatureRows
        pairs : HingePairs
        lift : float
            Parameter rho of the problem: 0 for no biases, `inf` for free biases.
        start : tuple (duals, biases) or None
        tol : float
            Relative gap at which the solver stops.
        max_iter : int
            Largest number of sweeps and steps of the interior point method together.

        Returns
        -------
        DualResult
        """
        run = _Ascent(rows, pairs, lift, start)
        patience = rows.patience if self.patience is None else self.patience
        run.sweep_until(tol, min(patience, max_iter))
        if is_small_enough(rows.n_features, pairs.n_labels):
            run.step_inside_until(tol, max_iter)
        run.sweep_until(tol, max_iter)
        return run.result(tol)


class _Ascent:
    """State of one run: current dual variables and biases, best primal point and best dual value."""

    def __init__(self, rows: Rows, pairs: HingePairs, lift: float, start: Start | None) -> None:
        self.rows = rows
        self.pairs = pairs
        self.free = bool(np.isinf(lift))
        self.lift = self._choose_lift() if self.free else lift
        duals, biases = (np.zeros(len(pairs.cap)), np.zeros(pairs.n_labels)) if start is None else start
        self.duals = np.clip(duals, 0.0, pairs.cap)
        self.biases = np.array(biases, dtype=np.float64)
        self.random = np.random.default_rng(0)
        self.n_iter = 0
        self.steps = self._projection_steps()
        weights, self.F, square = rows.set_coefficients(pairs.coefficients(self.duals))
        # The infinite value makes any other point better than this one.
        self.primal = _PrimalPoint(weights, self.F, self.biases, square, square, np.inf)
        self.dual_value = -np.inf
        self.best_duals = np.zeros_like(self.duals)
        self.history: list[float] = []
        self.certify()

    def _choose_lift(self) -> float:
        """Return the square of the constant feature during the sweeps of free biases.

        The mean squared norm of the rows makes biases as free as scores. The second term lets all dual variables
        together move a bias by several margins.
        """
        total = float(self.pairs.cap.sum())
        return float(np.mean(self.rows.norms)) + 10.0 * self.pairs.n_labels / total if total > 0 else 1.0

    def _projection_steps(self) -> FloatArray:
        """Return the step lengths of the projection: a tenth of a coordinate step, but bounded by the boxes."""
        step = 0.1 / (self.rows.norms + self.lift) if self.lift else np.ones_like(self.rows.norms)
        widest = np.zeros_like(step)
        np.maximum.at(widest, self.pairs.rows, self.pairs.cap)
        return np.minimum(step, np.where(widest > 0, widest, 1.0) / SMALLEST_BOX_MARGIN)

    @property
    def gap(self) -> float:
        return relative_gap(self.primal.value, self.dual_value)

    def sweep_until(self, tol: float, max_iter: int) -> None:
        """Sweep, and compute a certificate after each round, until the gap is at most `tol`."""
        while not self.gap <= tol and self.n_iter < max_iter:
            n_sweeps = min(SWEEPS_PER_CERTIFICATE, max_iter - self.n_iter)
            for _ in range(n_sweeps):
                order = self.random.permutation(len(self.rows.norms))
                self.rows.ascend(self.pairs, self.duals, self.biases, self.lift, order, PASSES_PER_ROW)
            self.F = self.rows.scores()
            self.n_iter += n_sweeps
            self.certify()

    def step_inside_until(self, tol: float, max_iter: int) -> None:
        """Take steps of the interior point method until the gap is at most `tol` or no longer falls."""
        if self.gap <= tol or self.n_iter >= max_iter:
            return
        X, to_model = self.rows.features()
        weights = X.T @ self.pairs.coefficients(self.duals)
        lift = np.inf if self.free else self.lift
        gap = self.primal.value - max(self.dual_value, 0.0)
        inside = InteriorPoint(X, self.pairs, lift, weights, self.biases, self.duals, gap)
        mus = [inside.mu]
        # The first steps may lead away from the central path before they follow it.
        while not self.gap <= tol and self.n_iter < max_iter and (len(mus) <= 8 or mus[-1] < 0.9 * mus[-6]):
            self.n_iter += 1
            if not inside.try_step():
                break
            mus.append(inside.mu)
            # The weights are a primal point, and the dual variables become the current ones.
            W = inside.theta[:-1] if lift else inside.theta
            biases = inside.theta[-1] if lift else np.zeros(self.pairs.n_labels)
            point = self._point(to_model(W), X @ W, biases, float(np.vdot(W, W)))
            self.primal = min(self.primal, point, key=_value)
            self.duals = inside.duals.copy()
            self.biases = biases.copy()
            _, self.F, _ = self.rows.set_coefficients(self.pairs.coefficients(self.duals))
            self.certify()

    def certify(self) -> None:
        """Compute the primal and the dual value of the current point; free biases are balanced first."""
        multipliers, imbalance = self._balance() if self.free else (None, 0.0)
        B = self.pairs.coefficients(self.duals)
        weights, self.F, square = self.rows.set_coefficients(B)
        if multipliers is None:
            self.biases = multipliers = self.lift * B.sum(axis=0)
        # The multipliers of the balance are the biases of a primal point. The sweeps keep their own biases, because
        # the multipliers oscillate if few dual variables are free.
        candidates = (multipliers, self.biases) if self.free else (self.biases,)
        now = min((self._point(weights, self.F, biases.copy(), square) for biases in candidates), key=_value)
        self.primal = self._search_between(self.primal, now)
        if np.isfinite(imbalance):
            dual_value = float(self.pairs.margin @ self.duals) - 0.5 * now.penalty
            # Rounding violates the constraints by at most `imbalance`, which costs this much with biases of this size.
            dual_value -= imbalance * float(np.abs(multipliers).sum())
            if dual_value > self.dual_value:
                self.dual_value = dual_value
                self.best_duals = self.duals.copy()
        self.history.append(self.primal.value)

    def _balance(self) -> tuple[FloatArray, float]:
        """Project the dual variables onto the constraints of free biases; return multipliers and imbalance."""
        self.duals, multipliers, imbalance = balance(self.pairs, self.F, self.biases, self.duals, self.steps)
        if self.duals.sum() > DUAL_SUM_ROUNDING * self.pairs.cap.sum():
            return multipliers, imbalance
        # Biases alone satisfy all margins up to rounding, and the optimum is 0. Slightly larger biases satisfy them
        # exactly, also in single precision.
        self.duals = np.zeros_like(self.duals)
        return multipliers * (1.0 + 1e-3), 0.0

    def _point(self, weights: FloatArray, F: FloatArray, biases: FloatArray, square: float) -> "_PrimalPoint":
        """Return the primal point of a model, given its scores without biases and its squared norm."""
        has_penalty = not self.free and self.lift
        penalty = square + (float(biases @ biases) / self.lift if has_penalty else 0.0)
        return _PrimalPoint(weights, F, biases, square, penalty, 0.5 * penalty + self.pairs.value(F + biases))

    def _search_between(self, old: "_PrimalPoint", new: "_PrimalPoint", tries: int = 12) -> "_PrimalPoint":
        """Return the best point between two points, by golden section.

        The weights of dual ascent oscillate around the optimum, and the scores are known on the whole segment. If
        the values differ by rounding only, the new point is returned.
        """
        if new.value <= old.value * (1.0 + 1e-13):
            return new
        cross = self.rows.inner(old.weights, new.weights, new.F)

        def at(t: float) -> _PrimalPoint:
            s = 1.0 - t
            square = s * s * old.square + 2 * s * t * cross + t * t * new.square
            weights, F, biases = (s * a + t * b for a, b in zip(old[:3], new[:3]))
            return self._point(weights, F, biases, square)

        best = min(old, new, key=_value)
        low = 0.0
        high = 1.0
        for _ in range(tries):
            inner = low + 0.382 * (high - low)
            outer = low + 0.618 * (high - low)
            left = at(inner)
            right = at(outer)
            best = min(best, left, right, key=_value)
            low, high = (low, outer) if left.value <= right.value else (inner, high)
        return best

    def result(self, tol: float) -> DualResult:
        return DualResult(
            weights=self.primal.weights, biases=self.primal.biases,
            objective=self.primal.value, dual_objective=self.dual_value, gap=self.gap,
            duals=self.duals, best_duals=self.best_duals,
            n_iter=self.n_iter, converged=self.gap <= tol, history=np.array(self.history),
        )  # fmt: skip


class _PrimalPoint(NamedTuple):
    """Model with its scores without biases, squared norm of the weights, penalty and objective."""

    weights: FloatArray
    F: FloatArray
    biases: FloatArray
    square: float
    penalty: float
    value: float


_value = attrgetter("value")


def balance(
    pairs: HingePairs, F: FloatArray, biases: FloatArray, duals: FloatArray, steps: FloatArray, max_iter: int = 200
) -> tuple[FloatArray, FloatArray, float]:
    """Take a gradient step on `duals`, and project it onto the box and the equality constraints.

    A free bias requires that the dual variables of the pairs that a label wins and loses have the same sum over
    all rows. The biases are the multipliers of these constraints. The projection is found by minimising a convex,
    piecewise quadratic function of the biases.

    Parameters
    ----------
    pairs : HingePairs
    F : array (n_samples, n_labels)
        Scores without biases.
    biases : array (n_labels,)
        Initial biases of the search.
    duals : array (n_pairs,)
        Dual variables before the step.
    steps : array (n_samples,)
        Length of the gradient step on the dual variables of each row.

    Returns
    -------
    duals, biases : arrays
    imbalance : float
        Largest violation of an equality constraint; `inf` if it is more than rounding explains.
    """
    duals = np.ascontiguousarray(duals)
    new = np.empty_like(duals)
    longest = LONGEST_BIAS_MOVE + float(np.max(np.abs(F), initial=0.0))

    def evaluate(b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the value, gradient and Hessian at biases b, and write the dual variables to `new`."""
        r = np.zeros(len(b))
        H = np.zeros((len(b), len(b)))
        return loops.project_pairs(F, b, *pairs.arrays, duals, steps, new, r, H), r, H

    value, r, H = evaluate(biases)
    for _ in range(max_iter):
        if np.abs(r).max() <= DUAL_SUM_ROUNDING * new.sum():
            break
        d = _newton_direction(r, H, longest)
        t = 1.0
        while t > 1e-12:
            trial = evaluate(biases + t * d)
            if trial[0] <= value + 1e-4 * t * (r @ d) or _halves_violation(trial, value, r):
                break
            t *= 0.5
        biases = biases + t * d
        value, r, H = trial
    evaluate(biases)
    imbalance = float(np.abs(r).max())
    is_rounding = imbalance <= 100 * DUAL_SUM_ROUNDING * new.sum()
    return new, biases - biases.mean(), imbalance if is_rounding else np.inf


def _halves_violation(trial: tuple[float, FloatArray, FloatArray], value: float, r: FloatArray) -> bool:
    """Tell whether a trial halves the violation while the value is constant up to rounding."""
    # With larger changes of the value, steps that increase it could return to an earlier point.
    is_constant = trial[0] <= value + DUAL_SUM_ROUNDING * abs(value)
    return bool(is_constant and np.abs(trial[1]).max() < 0.5 * np.abs(r).max())


def _newton_direction(r: FloatArray, H: FloatArray, longest: float) -> FloatArray:
    """Return a Newton step, clipped because labels whose dual variables are all at a bound have no curvature."""
    scale = np.trace(H) / len(r)
    floor = 1e-10 * scale + 1e-3 * float(np.abs(r).max()) * (scale == 0) + 1e-300
    d = -np.linalg.solve(H + floor * np.eye(len(r)), r)
    d -= d.mean()
    clipped = np.clip(d, -longest, longest)
    return clipped if clipped @ r < 0 else d * min(1.0, longest / np.abs(d).max())
