r"""Ranking SVMs by coordinate ascent on their dual, with a duality gap that bounds the distance from the optimum.

The problem is

.. math:: \min_{W, b}\; \tfrac12 \|W\|_F^2 + \tfrac{1}{2\rho} \|b\|^2
          + \sum_{i,(j,k)} c_{ijk} |m_{ijk} - (f_{ij} - f_{ik})|_+, \qquad F = XW + 1b',

with :math:`\rho = 0` (no biases), finite (biases penalised like weights) or infinite (free biases). Its dual has one
variable per pair, between 0 and c:

.. math:: \max_\alpha\; \sum m \alpha - \tfrac12 \|X'B\|_F^2 - \tfrac{\rho}{2} \|1'B\|^2, \qquad
          B_{ik} = \sum_{\text{pairs } k \text{ wins}} \alpha - \sum_{\text{pairs } k \text{ loses}} \alpha,

and for free biases the constraint 1'B = 0 in place of the last term. Those are met by an augmented Lagrangian: sweeps run
with biases held near their last estimate, and each round ends with a projection onto box and constraints, `balance`, from
which both the dual bound and the next estimate come.

Sweeps are cheap and soon near the optimum, unless a large C meets few features: then the last digits would take thousands,
and an interior point method goes on from where they are (:mod:`rbrl.ranking_svm.interior_point`).

It shares no code with :mod:`rbrl.solvers.dual_ascent`. There, a hinge is squared, and the dual variables of a row are those
of its labels, without a bound. Here, a hinge is not squared, and each pair has a variable between two bounds.
"""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl._loops import rows as loops
from rbrl.ranking_svm.interior_point import InteriorPoint, fits
from rbrl.ranking_svm.pairs import HingePairs, Rows
from rbrl.solvers.certificate import relative_gap

# Sweeps between two certificates, and passes over one row's pairs in a sweep.
SWEEPS, INNER = 10, 5
# What rounding leaves of a sum of dual variables, relative to it.
ROUNDING = 1e-13
# No bias moves further than this and the largest score in one Newton step.
LONGEST_MOVE = 4.0
# A projection whose dual variables cross their boxes within less than this margin is a hard problem in the biases.
NARROWEST = 0.03
# Dual variables and biases.
Start: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass
class DualResult:
    """A ranking SVM with its certificate.

    Attributes
    ----------
    weights : array
        As `rows` keeps models: weights of features, or coefficients B of rows.
    biases : array (n_labels,)
    objective, dual_objective : float
        Best primal and dual values; the optimum lies between them.
    gap : float
        Their distance, relative to the dual value.
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
    """Dual coordinate ascent over the pairs of a row at a time.

    Parameters
    ----------
    patience : int, default=None
        Sweeps before the interior point method takes over, if the problem is small enough for it. None leaves it to the
        rows: sweeps over a kernel matrix are short, and the method's steps long.

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
            The rho above: 0 for no biases, `inf` for free ones.
        start : tuple (duals, biases) or None
        tol : float
            The relative gap at which to stop.
        max_iter : int
            Sweeps and steps of the interior point method together.

        Returns
        -------
        DualResult
        """
        run = _Ascent(rows, pairs, lift, start)
        patience = rows.patience if self.patience is None else self.patience
        run.sweep_until(tol, min(patience, max_iter))
        if fits(rows.n_features, pairs.n_labels):
            run.step_inside_until(tol, max_iter)
        run.sweep_until(tol, max_iter)
        return run.result(tol)


class _Ascent:
    """One maximisation: the current duals and biases, the best primal point and the best dual value so far."""

    def __init__(self, rows: Rows, pairs: HingePairs, lift: float, start: Start | None) -> None:
        self.rows, self.pairs, self.free = rows, pairs, bool(np.isinf(lift))
        self.lift = self._loose_lift() if self.free else lift
        duals, biases = (np.zeros(len(pairs.cap)), np.zeros(pairs.n_labels)) if start is None else start
        self.duals, self.biases = np.clip(duals, 0.0, pairs.cap), np.array(biases, dtype=np.float64)
        self.random, self.n_iter, self.steps = np.random.default_rng(0), 0, self._projection_steps()
        weights, self.F, square = rows.place(pairs.coefficients(self.duals))
        # Any point is better than this one.
        self.primal = _PrimalPoint(weights, self.F, self.biases, square, square, np.inf)
        self.dual_value = -np.inf
        self.best_duals = np.zeros_like(self.duals)
        self.history: list[float] = []
        self.certify()

    def _loose_lift(self) -> float:
        """How loosely free biases are held during sweeps: as a typical row holds its own scores, and at least so that all
        dual variables together can move them by several margins."""
        total = float(self.pairs.cap.sum())
        return float(np.mean(self.rows.norms)) + 10.0 * self.pairs.n_labels / total if total > 0 else 1.0

    def _projection_steps(self) -> FloatArray:
        """Steps of the projection: a tenth of a coordinate step, and no more than crosses a box in `NARROWEST` margins."""
        step = 0.1 / (self.rows.norms + self.lift) if self.lift else np.ones_like(self.rows.norms)
        widest = np.zeros_like(step)
        np.maximum.at(widest, np.repeat(np.arange(len(step)), np.diff(self.pairs.start)), self.pairs.cap)
        return np.minimum(step, np.where(widest > 0, widest, 1.0) / NARROWEST)

    @property
    def gap(self) -> float:
        return relative_gap(self.primal.value, self.dual_value)

    def sweep_until(self, tol: float, max_iter: int) -> None:
        """Rounds of sweeps, each with its certificate, until the gap is met."""
        while not self.gap <= tol and self.n_iter < max_iter:
            times = min(SWEEPS, max_iter - self.n_iter)
            for _ in range(times):
                order = self.random.permutation(len(self.rows.norms))
                self.rows.ascend(self.pairs, self.duals, self.biases, self.lift, order, INNER)
            self.F = self.rows.scores()
            self.n_iter += times
            self.certify()

    def step_inside_until(self, tol: float, max_iter: int) -> None:
        """Steps of the interior point method until the gap is met or they make no progress."""
        if self.gap <= tol or self.n_iter >= max_iter:
            return
        X, model_of = self.rows.features()
        weights = X.T @ self.pairs.coefficients(self.duals)
        lift, gap = np.inf if self.free else self.lift, self.primal.value - max(self.dual_value, 0.0)
        inside = InteriorPoint(X, self.pairs, lift, weights, self.biases, self.duals, gap)
        mus = [inside.mu]
        # The first steps may lead away from the centre's path before they follow it.
        while not self.gap <= tol and self.n_iter < max_iter and (len(mus) <= 8 or mus[-1] < 0.9 * mus[-6]):
            self.n_iter += 1
            if not inside.try_step():
                break
            mus.append(inside.mu)
            # Its weights are a primal point; its dual variables become the current ones.
            W, biases = (inside.theta[:-1], inside.theta[-1]) if lift else (inside.theta, np.zeros(self.pairs.n_labels))
            point = self._point(model_of(W), X @ W, biases, float(np.vdot(W, W)))
            self.primal = min(self.primal, point, key=_value)
            self.duals, self.biases = inside.duals.copy(), biases.copy()
            _, self.F, _ = self.rows.place(self.pairs.coefficients(self.duals))
            self.certify()

    def certify(self) -> None:
        """Primal and dual value of the current point; a round of free biases begins anew from its balanced variables."""
        multipliers, imbalance = self._balance() if self.free else (None, 0.0)
        B = self.pairs.coefficients(self.duals)
        weights, self.F, square = self.rows.place(B)
        if multipliers is None:
            self.biases = multipliers = self.lift * B.sum(axis=0)
        # The biases that balance the dual variables are a primal point's, but the sweeps' own are the better multipliers:
        # those of the balance swing where few dual variables are free.
        tried = (multipliers, self.biases) if self.free else (self.biases,)
        now = min((self._point(weights, self.F, biases.copy(), square) for biases in tried), key=_value)
        self.primal = self._between(self.primal, now)
        if np.isfinite(imbalance):
            dual_value = float(self.pairs.margin @ self.duals) - 0.5 * now.penalty
            # What rounding has left of the constraints counts at biases of this size.
            dual_value -= imbalance * float(np.abs(multipliers).sum())
            if dual_value > self.dual_value:
                self.dual_value = dual_value
                self.best_duals = self.duals.copy()
        self.history.append(self.primal.value)

    def _balance(self) -> tuple[FloatArray, float]:
        """Project the dual variables onto the constraints of free biases; their multipliers, and what is left over."""
        self.duals, multipliers, imbalance = balance(self.pairs, self.F, self.biases, self.duals, self.steps)
        if self.duals.sum() > ROUNDING * self.pairs.cap.sum():
            return multipliers, imbalance
        # Biases alone keep all margins, to rounding: a little wider they keep them exactly, also in single precision, and
        # the optimum is 0.
        self.duals = np.zeros_like(self.duals)
        return multipliers * (1.0 + 1e-3), 0.0

    def _point(self, weights: FloatArray, F: FloatArray, biases: FloatArray, square: float) -> "_PrimalPoint":
        """A model, from its scores without biases and the squared norm of its weights."""
        penalised = not self.free and self.lift
        penalty = square + (float(biases @ biases) / self.lift if penalised else 0.0)
        return _PrimalPoint(weights, F, biases, square, penalty, 0.5 * penalty + self.pairs.value(F + biases))

    def _between(self, old: "_PrimalPoint", new: "_PrimalPoint", tries: int = 12) -> "_PrimalPoint":
        """The best point between two, by golden section: dual ascent is long at the optimum while its weights still swing
        around it. Scores are known on the whole segment. Where rounding cannot tell them apart, it is the new one."""
        if new.value <= old.value * (1.0 + 1e-13):
            return new
        cross = self.rows.inner(old.weights, new.weights, new.F)

        def at(t: float) -> _PrimalPoint:
            s = 1.0 - t
            square = s * s * old.square + 2 * s * t * cross + t * t * new.square
            weights, F, biases = (s * a + t * b for a, b in zip(old[:3], new[:3]))
            return self._point(weights, F, biases, square)

        best, low, high = min(old, new, key=_value), 0.0, 1.0
        for _ in range(tries):
            inner, outer = low + 0.382 * (high - low), low + 0.618 * (high - low)
            left, right = at(inner), at(outer)
            best = min(best, left, right, key=_value)
            low, high = (low, outer) if left.value <= right.value else (inner, high)
        return best

    def result(self, tol: float) -> DualResult:
        best, gap, history = self.primal, self.gap, np.array(self.history)
        values = (best.value, self.dual_value, gap)
        points = (self.duals, self.best_duals)
        return DualResult(best.weights, best.biases, *values, *points, self.n_iter, gap <= tol, history)


class _PrimalPoint(NamedTuple):
    """A model: weights, scores without biases, biases, squared norm of the weights, of all that is penalised, objective."""

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
    """Gradient step on `duals`, projected onto box and equality constraints.

    A bias without a penalty demands of the dual variables that every label wins as much as it loses, summed over the rows.
    The nearest point of the box to a gradient step that does so is found through the biases themselves: they are the
    multipliers of the constraints, and minimise a convex function, piecewise quadratic, of as many variables as there are
    labels.

    Parameters
    ----------
    pairs : HingePairs
    F : array (n_samples, n_labels)
        Scores without biases.
    biases : array (n_labels,)
        Where the search for the biases starts.
    steps : array (n_samples,)
        Length of the gradient step on each row's dual variables.

    Returns
    -------
    duals, biases : arrays
    imbalance : float
        Largest violation of an equality constraint; `inf` if it is more than rounding explains.
    """
    duals, new = np.ascontiguousarray(duals), np.empty_like(duals)
    reach = LONGEST_MOVE + float(np.max(np.abs(F), initial=0.0))

    def at(b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        r, H = np.zeros(len(b)), np.zeros((len(b), len(b)))
        return loops.project_pairs(F, b, *pairs.arrays, duals, steps, new, r, H), r, H

    value, r, H = at(biases)
    for _ in range(max_iter):
        if np.abs(r).max() <= ROUNDING * new.sum():
            break
        d = _direction(r, H, reach)
        t = 1.0
        while t > 1e-12:
            trial = at(biases + t * d)
            if trial[0] <= value + 1e-4 * t * (r @ d) or _is_nearer(trial, value, r):
                break
            t *= 0.5
        biases, (value, r, H) = biases + t * d, trial
    at(biases)
    imbalance = float(np.abs(r).max())
    return new, biases - biases.mean(), imbalance if imbalance <= 100 * ROUNDING * new.sum() else np.inf


def _is_nearer(trial: tuple[float, FloatArray, FloatArray], value: float, r: FloatArray) -> bool:
    """Whether the violation halves where rounding hides how the function moves; elsewhere steps could go in circles."""
    is_level = trial[0] <= value + ROUNDING * abs(value)
    return bool(is_level and np.abs(trial[1]).max() < 0.5 * np.abs(r).max())


def _direction(r: FloatArray, H: FloatArray, reach: float) -> FloatArray:
    """A Newton step, cut to `reach`: labels whose pairs are all at a bound have no curvature to hold them."""
    scale = np.trace(H) / len(r)
    floor = 1e-10 * scale + 1e-3 * float(np.abs(r).max()) * (scale == 0) + 1e-300
    d = -np.linalg.solve(H + floor * np.eye(len(r)), r)
    d -= d.mean()
    cut = np.clip(d, -reach, reach)
    return cut if cut @ r < 0 else d * min(1.0, reach / np.abs(d).max())
