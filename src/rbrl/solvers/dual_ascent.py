r"""Ranking SVMs by coordinate ascent on their dual, with a duality gap that bounds the distance from the optimum.

The problem is

.. math:: \min_{W, b}\; \tfrac12 \|W\|_F^2 + \tfrac{1}{2\rho} \|b\|^2 + \sum_{i,(a,b)} c_{iab} |m_{iab} - (f_{ia} - f_{ib})|_+,
          \qquad F = XW + 1b',

with :math:`\rho = 0` (no biases), finite (biases penalised like weights) or infinite (free biases). Its dual has one
variable per pair, between 0 and c:

.. math:: \max_\alpha\; \sum m \alpha - \tfrac12 \|X'B\|_F^2 - \tfrac{\rho}{2} \|1'B\|^2, \qquad
          B_{ik} = \sum_{\text{pairs } k \text{ wins}} \alpha - \sum_{\text{pairs } k \text{ loses}} \alpha,

and for free biases the constraint 1'B = 0 in place of the last term. Those are met by an augmented Lagrangian: sweeps run
with biases held near their last estimate, and each round ends with a projection onto box and constraints
(:mod:`rbrl.solvers.bias_balance`), from which both the dual bound and the next estimate come.
"""

from dataclasses import dataclass, field

import numpy as np

from rbrl.solvers.base import relative_gap, warn_unconverged
from rbrl.solvers.bias_balance import balance

# Passes over one row's pairs in a sweep.
INNER = 5
# A projection that bends within less than this is a hard problem in the biases.
NARROWEST = 0.03


@dataclass
class DualResult:
    """A ranking SVM with its certificate.

    Attributes
    ----------
    coefficients : array (n_samples, n_labels)
        B; the weights are X'B.
    biases : array (n_labels,)
    objective, dual_objective : float
        Best primal and dual values; the optimum lies between them.
    gap : float
        Their distance, relative to the dual value.
    alpha : array (n_pairs,)
        Dual variables of the pairs.
    n_iter : int
        Sweeps over the rows.
    """

    coefficients: np.ndarray = field(repr=False)
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
    seed : int, default=0
        Of the random order of the rows.
    """

    sweeps: int = 10
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
        while not run.gap() <= tol and run.n_iter < max_iter:
            run.sweep(min(self.sweeps, max_iter - run.n_iter))
            run.certify()
        result = run.result(tol)
        if not result.converged:
            warn_unconverged("Dual ascent", result, tol, max_iter, "Raise max_iter or tol, scale X, or use a smaller C.")
        return result


class _Run:
    """One maximisation: the dual variables, the biases, and the best primal and dual points so far."""

    def __init__(self, rows, pairs, lift, start, seed):
        self.rows, self.pairs, self.free = rows, pairs, np.isinf(lift)
        self.lift = _hold(rows, pairs) if self.free else lift
        self.alpha, self.biases = _start(pairs, start)
        self.rng = np.random.default_rng(seed)
        self.n_iter, self.history = 0, []
        self.primal, self.dual = np.inf, -np.inf
        self.steps = self._steps()
        self.F, _ = rows.place(pairs.coefficients(self.alpha))

    def _steps(self):
        """Steps of the projection: a tenth of a coordinate step, and no more than crosses a box in `NARROWEST` margins."""
        step = 0.1 / (self.rows.norms + self.lift) if self.lift else np.ones_like(self.rows.norms)
        widest = np.zeros_like(step)
        np.maximum.at(widest, np.repeat(np.arange(len(step)), np.diff(self.pairs.start)), self.pairs.cap)
        return np.minimum(step, np.where(widest > 0, widest, 1.0) / NARROWEST)

    def sweep(self, times):
        n = len(self.rows.norms)
        for _ in range(times):
            self.rows.ascend(self.pairs, self.alpha, self.biases, self.lift, self.rng.permutation(n), INNER)
        self.F = self.rows.scores()
        self.n_iter += times

    def certify(self):
        """Primal and dual value of the current point; a round of free biases begins anew from its balanced variables."""
        imbalance = 0.0
        if self.free:
            self.alpha, self.biases, imbalance = balance(self.pairs, self.F, self.biases, self.alpha, self.steps)
        B = self.pairs.coefficients(self.alpha)
        self.F, square = self.rows.place(B)
        if not self.free:
            totals = B.sum(axis=0)
            self.biases = self.lift * totals
            square += self.lift * float(totals @ totals)
        primal = 0.5 * square + self.pairs.value(self.F + self.biases)
        dual = float(self.pairs.margin @ self.alpha) - 0.5 * square
        if primal < self.primal:
            self.primal, self.best = primal, (B, self.biases.copy())
        if np.isfinite(imbalance):
            self.dual = max(self.dual, dual)
        self.history.append(self.primal)

    def gap(self):
        return relative_gap(self.primal, self.dual)

    def result(self, tol):
        return DualResult(
            *self.best,
            objective=self.primal,
            dual_objective=self.dual,
            gap=self.gap(),
            alpha=self.alpha,
            n_iter=self.n_iter,
            converged=self.gap() <= tol,
            history=np.array(self.history),
        )


def _hold(rows, pairs):
    """How loosely free biases are held during sweeps: as a typical row holds its own scores, and at least so that all dual
    variables together can move them by several margins."""
    total = float(pairs.cap.sum())
    return float(np.mean(rows.norms)) + (10.0 * pairs.n_labels / total if total > 0 else 1.0)


def _start(pairs, start):
    if start is None:
        return np.zeros(len(pairs.cap)), np.zeros(pairs.n_labels)
    alpha, biases = start
    return np.clip(alpha, 0.0, pairs.cap), np.array(biases, dtype=np.float64)
