r"""Ranking SVMs by coordinate ascent on their dual, with a duality gap that bounds the distance from the optimum.

A bias without a penalty demands of the dual variables that every label wins as much as it loses, summed over the rows. The
nearest point of the box to a gradient step that does so is found through the biases themselves: they are the multipliers of
the constraints, and minimise a convex function, piecewise quadratic, of as many variables as there are labels.

The problem is

.. math:: \min_{W, b}\; \tfrac12 \|W\|_F^2 + \tfrac{1}{2\rho} \|b\|^2
          + \sum_{i,(j,k)} c_{ijk} |m_{ijk} - (f_{ij} - f_{ik})|_+, \qquad F = XW + 1b',

with :math:`\rho = 0` (no biases), finite (biases penalised like weights) or infinite (free biases). Its dual has one
variable per pair, between 0 and c:

.. math:: \max_\alpha\; \sum m \alpha - \tfrac12 \|X'B\|_F^2 - \tfrac{\rho}{2} \|1'B\|^2, \qquad
          B_{ik} = \sum_{\text{pairs } k \text{ wins}} \alpha - \sum_{\text{pairs } k \text{ loses}} \alpha,

and for free biases the constraint 1'B = 0 in place of the last term. Those are met by an augmented Lagrangian: sweeps run
with biases held near their last estimate, and each round ends with a projection onto box and constraints
(:mod:`rbrl.ranking_svm.dual_ascent`), from which both the dual bound and the next estimate come.

Sweeps are cheap and soon near the optimum, unless a large C meets few features: then the last digits would take thousands,
and an interior point method goes on from where they are (:mod:`rbrl.ranking_svm.interior_point`).
"""

from dataclasses import dataclass, field

import numpy as np

from rbrl._loops import pairs as loops
from rbrl.ranking_svm.interior_point import InteriorPoint, fits
from rbrl.solvers.base import warn_unconverged
from rbrl.solvers.certificate import relative_gap

# What rounding leaves of a sum of dual variables, relative to it.
ROUNDING = 1e-13
# No bias moves further than this and the largest score in one Newton step.
LONGEST_MOVE = 4.0


def balance(pairs, F, biases, alpha, steps, max_iter=200):
    """Gradient step on `alpha`, projected onto box and equality constraints.

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
    alpha, biases : arrays
    imbalance : float
        Largest violation of an equality constraint; `inf` if it is more than rounding explains.
    """
    alpha, new = np.ascontiguousarray(alpha), np.empty_like(alpha)
    reach = LONGEST_MOVE + float(np.max(np.abs(F), initial=0.0))

    def at(b):
        r, H = np.zeros(len(b)), np.zeros((len(b), len(b)))
        return loops.project_pairs(F, b, *pairs.arrays, alpha, steps, new, r, H), r, H

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


def _is_nearer(trial, value, r):
    """Whether the violation halves where rounding hides how the function moves; elsewhere steps could go in circles."""
    return trial[0] <= value + ROUNDING * abs(value) and np.abs(trial[1]).max() < 0.5 * np.abs(r).max()


def _direction(r, H, reach):
    """A Newton step, cut to `reach`: labels whose pairs are all at a bound have no curvature to hold them."""
    scale = np.trace(H) / len(r)
    floor = 1e-10 * scale + 1e-3 * float(np.abs(r).max()) * (scale == 0) + 1e-300
    d = -np.linalg.solve(H + floor * np.eye(len(r)), r)
    d -= d.mean()
    cut = np.clip(d, -reach, reach)
    return cut if cut @ r < 0 else d * min(1.0, reach / np.abs(d).max())


# Passes over one row's pairs in a sweep.
INNER = 5
# A projection that bends within less than this is a hard problem in the biases.
NARROWEST = 0.03


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
    alpha : array (n_pairs,)
        Dual variables of the pairs.
    n_iter : int
        Sweeps over the rows and steps of the interior point method.
    """

    weights: np.ndarray = field(repr=False)
    biases: np.ndarray
    objective: float
    dual_objective: float
    gap: float
    alpha: np.ndarray = field(repr=False)
    n_iter: int
    converged: bool
    history: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class DualAscent:
    """Dual coordinate ascent over the pairs of a row at a time.

    Parameters
    ----------
    sweeps : int, default=10
        Sweeps between two certificates.
    patience : int, default=None
        Sweeps before the interior point method takes over, if the problem is small enough for it. None leaves it to the
        rows: sweeps over a kernel matrix are short, and the method's steps long.
    seed : int, default=0
        Of the random order of the rows.
    """

    sweeps: int = 10
    patience: int | None = None
    seed: int = 0

    def solve(self, rows, pairs, lift, start=None, tol=1e-3, max_iter=10_000):
        """Solve a ranking SVM; return a :class:`DualResult`.

        Parameters
        ----------
        rows : GramRows or FeatureRows
        pairs : HingePairs
        lift : float
            The rho above: 0 for no biases, `inf` for free ones.
        start : tuple (alpha, biases) or None
        """
        run = _Run(rows, pairs, lift, start, self.seed)
        run.certify()
        patience = rows.patience if self.patience is None else self.patience
        run.ascend(tol, min(patience, max_iter), self.sweeps)
        run.go_inside(tol, max_iter)
        run.ascend(tol, max_iter, self.sweeps)
        result = run.result(tol)
        if not result.converged:
            warn_unconverged(
                "Dual ascent", result, tol, max_iter, "Raise max_iter or tol, scale X, or use a smaller C."
            )
        return result


class _Run:
    """One maximisation: the dual variables, the biases, and the best primal and dual points so far."""

    def __init__(self, rows, pairs, lift, start, seed):
        self.rows, self.pairs, self.free = rows, pairs, np.isinf(lift)
        self.lift = _hold(rows, pairs) if self.free else lift
        self.alpha, self.biases = _start(pairs, start)
        self.rng = np.random.default_rng(seed)
        self.n_iter, self.history = 0, []
        self.best, self.dual = None, -np.inf
        self.steps = self._steps()
        self.F, _ = rows.place(pairs.coefficients(self.alpha))

    def _steps(self):
        """Steps of the projection: a tenth of a coordinate step, and no more than crosses a box in `NARROWEST` margins."""
        step = 0.1 / (self.rows.norms + self.lift) if self.lift else np.ones_like(self.rows.norms)
        widest = np.zeros_like(step)
        np.maximum.at(widest, np.repeat(np.arange(len(step)), np.diff(self.pairs.start)), self.pairs.cap)
        return np.minimum(step, np.where(widest > 0, widest, 1.0) / NARROWEST)

    def ascend(self, tol, max_iter, sweeps):
        """Rounds of sweeps until the gap is met."""
        while not self.gap() <= tol and self.n_iter < max_iter:
            self.sweep(min(sweeps, max_iter - self.n_iter))
            self.certify()

    def go_inside(self, tol, max_iter):
        """Steps of the interior point method until the gap is met or they make no progress."""
        if self.gap() <= tol or self.n_iter >= max_iter or not fits(self.rows.n_features, self.pairs.n_labels):
            return
        X, model = self.rows.features()
        weights = X.T @ self.pairs.coefficients(self.alpha)
        lift, gap = np.inf if self.free else self.lift, self.best.value - max(self.dual, 0.0)
        inside = InteriorPoint(X, self.pairs, lift, weights, self.biases, self.alpha, gap)
        mus = [inside.mu]
        # The first steps may lead away from the centre's path before they follow it.
        while not self.gap() <= tol and self.n_iter < max_iter and (len(mus) <= 8 or mus[-1] < 0.9 * mus[-6]):
            inside.step()
            mus.append(inside.mu)
            self.n_iter += 1
            if not np.isfinite(inside.theta).all():
                break
            self.offer(X, model, inside, lift)
            self.certify()

    def offer(self, X, model, inside, lift):
        """Take over the interior point's weights as a primal point, its dual variables as the current ones."""
        biases = inside.theta[-1] if lift else np.zeros(self.pairs.n_labels)
        W = inside.theta[:-1] if lift else inside.theta
        point = _Primal(self, model(W), X @ W, biases, float(np.vdot(W, W)))
        self.best = min(self.best, point, key=lambda p: p.value)
        self.alpha, self.biases = inside.alpha.copy(), biases.copy()
        self.F, _ = self.rows.place(self.pairs.coefficients(self.alpha))

    def sweep(self, times):
        n = len(self.rows.norms)
        for _ in range(times):
            self.rows.ascend(self.pairs, self.alpha, self.biases, self.lift, self.rng.permutation(n), INNER)
        self.F = self.rows.scores()
        self.n_iter += times

    def certify(self):
        """Primal and dual value of the current point; a round of free biases begins anew from its balanced variables.

        The biases that balance them are a primal point's, but the sweeps' own are the better multipliers: those of the
        balance swing where few dual variables are free.
        """
        imbalance, biases = 0.0, None
        if self.free:
            self.alpha, biases, imbalance = balance(self.pairs, self.F, self.biases, self.alpha, self.steps)
            if self.alpha.sum() <= ROUNDING * self.pairs.cap.sum():
                # Biases alone keep all margins, to rounding: a little wider they do so exactly, and the optimum is 0.
                self.alpha, biases, imbalance = np.zeros_like(self.alpha), biases * (1.0 + 1e-9), 0.0
        B = self.pairs.coefficients(self.alpha)
        self.F, square = self.rows.place(B)
        if not self.free:
            self.biases = self.lift * B.sum(axis=0)
            biases = self.biases
        weights = self.rows.weights(B)
        now = _Primal(self, weights, self.F, biases.copy(), square)
        if self.free:
            now = min(now, _Primal(self, weights, self.F, self.biases.copy(), square), key=lambda p: p.value)
        self.best = now if self.best is None else self.best.towards(now)
        if np.isfinite(imbalance):
            dual = float(self.pairs.margin @ self.alpha) - 0.5 * now.square
            # What rounding has left of the constraints counts at biases of this size.
            self.dual = max(self.dual, dual - imbalance * float(np.abs(biases).sum()))
        self.history.append(self.best.value)

    def gap(self):
        return relative_gap(self.best.value, self.dual)

    def result(self, tol):
        return DualResult(
            weights=self.best.weights,
            biases=self.best.biases,
            objective=self.best.value,
            dual_objective=self.dual,
            gap=self.gap(),
            alpha=self.alpha,
            n_iter=self.n_iter,
            converged=self.gap() <= tol,
            history=np.array(self.history),
        )


class _Primal:
    """A model with its scores (without biases) and objective; `square` is that of all that is penalised."""

    def __init__(self, run, weights, F, biases, weights_square):
        self.run, self.weights, self.F, self.biases, self.weights_square = run, weights, F, biases, weights_square
        penalised = not run.free and run.lift
        self.square = weights_square + (float(biases @ biases) / run.lift if penalised else 0.0)
        self.value = 0.5 * self.square + run.pairs.value(F + biases)

    def towards(self, other, tries=12):
        """The best point between this one and another: dual ascent is long at the optimum while its weights still swing
        around it. Scores are known on the whole segment. Where rounding cannot tell them apart, it is the other."""
        if other.value <= self.value * (1.0 + 1e-13):
            return other
        cross = self.run.rows.inner(self, other)

        def at(t):
            s = 1.0 - t
            square = s * s * self.weights_square + 2 * s * t * cross + t * t * other.weights_square
            mixed = (s * getattr(self, part) + t * getattr(other, part) for part in ("weights", "F", "biases"))
            return _Primal(self.run, *mixed, square)

        best = min(self, other, key=lambda point: point.value)
        low, high = 0.0, 1.0
        for _ in range(tries):
            left, right = at(low + 0.382 * (high - low)), at(low + 0.618 * (high - low))
            best = min(best, left, right, key=lambda point: point.value)
            if left.value <= right.value:
                high = low + 0.618 * (high - low)
            else:
                low = low + 0.382 * (high - low)
        return best


def _hold(rows, pairs):
    """How loosely free biases are held during sweeps: as a typical row holds its own scores, and at least so that all dual
    variables together can move them by several margins."""
    total = float(pairs.cap.sum())
    return float(np.mean(rows.norms)) + 10.0 * pairs.n_labels / total if total > 0 else 1.0


def _start(pairs, start):
    if start is None:
        return np.zeros(len(pairs.cap)), np.zeros(pairs.n_labels)
    alpha, biases = start
    return np.clip(alpha, 0.0, pairs.cap), np.array(biases, dtype=np.float64)
