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
thousands of sweeps. In this case, an interior point method continues (:class:`InteriorPoint`).

This module shares no code with :mod:`rbrl.solvers.dual_ascent`. The dual variables of a row there belong to its labels
and have no bound, because hinges are squared. Here, each pair has a dual variable between two bounds.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rbrl._common.typing import FloatArray, Matrix
from rbrl._loops import rows as loops
from rbrl.problem import with_constant
from rbrl.ranking_svm.pairs import DUAL_SUM_ROUNDING, DualResult, HingePairs, Rows, Start, balance
from rbrl.solvers.certificate import relative_gap

# Number of sweeps between two certificates.
SWEEPS_PER_CERTIFICATE = 10
# Number of passes over the pairs of a row in a sweep.
PASSES_PER_ROW = 5
# Smallest margin within which the projection moves a dual variable through its box. Smaller margins make the
# problem in the biases hard.
SMALLEST_BOX_MARGIN = 0.03
# Largest number of entries of the preconditioner of the interior point method.
MAX_PRECONDITIONER_ENTRIES = 2.5e7
# Length of a step of the interior point method, as a share of the distance to the boundary.
STEP_TO_BOUNDARY = 0.98
# Smallest distance of its initial dual variables from their bounds, as a share of the box.
INITIAL_DISTANCE = 0.1
Operator: TypeAlias = Callable[[FloatArray], FloatArray]


def solve_pairs(
    rows: Rows, pairs: HingePairs, lift: float, start: Start | None = None, tol: float = 1e-3,
    max_iter: int = 10_000, patience: int | None = None,
) -> DualResult:  # fmt: skip
    """Solve a ranking SVM by dual coordinate ascent over the pairs of one row at a time.

    The lift rho is 0 for no biases, and infinite for free biases. The start consists of dual
    variables and biases. `tol` is the relative gap at which the solver stops, and `max_iter` limits
    sweeps and steps of the interior point method together. This method starts after `patience`
    sweeps, if the problem is small enough for it. None means the value of the rows: for a kernel
    matrix, sweeps are cheap and steps of the method expensive.
    """
    run = _Ascent(rows, pairs, lift, start)
    run.sweep_until(tol, min(rows.patience if patience is None else patience, max_iter))
    if (rows.n_features + 1) ** 2 * pairs.n_labels <= MAX_PRECONDITIONER_ENTRIES:
        run.take_interior_steps(tol, max_iter)
    run.sweep_until(tol, max_iter)
    return DualResult(
        weights=run.primal.weights,
        biases=run.primal.biases,
        objective=run.primal.value,
        dual_objective=run.dual_value,
        gap=run.gap,
        duals=run.duals,
        best_duals=run.best_duals,
        n_iter=run.n_iter,
        converged=run.gap <= tol,
        history=np.array(run.history),
    )


class _Ascent:
    """State of one run: current dual variables and biases, best primal point and best dual value."""

    def __init__(self, rows: Rows, pairs: HingePairs, lift: float, start: Start | None) -> None:
        self.rows = rows
        self.pairs = pairs
        self.free = bool(np.isinf(lift))
        self.lift = lift
        if self.free:
            self._set_lift_and_steps()
        duals, biases = (np.zeros(len(pairs.cap)), np.zeros(pairs.n_labels)) if start is None else start
        self.duals = np.clip(duals, 0.0, pairs.cap)
        self.biases = np.array(biases, dtype=np.float64)
        self.random = np.random.default_rng(0)
        self.n_iter = 0
        weights, self.F, square = rows.set_coefficients(pairs.coefficients(self.duals))
        # The infinite value makes any other point better than this one.
        self.primal = _PrimalPoint(weights, self.F, self.biases, square, square, np.inf)
        self.dual_value = -np.inf
        self.best_duals = np.zeros_like(self.duals)
        self.history: list[float] = []
        self.certify()

    def _set_lift_and_steps(self) -> None:
        """Set the lift in sweeps of free biases, and the lengths of the steps of the balance.

        The mean squared norm of the rows makes biases as free as scores. The second term lets all
        dual variables together move a bias by several margins. A step is a tenth of a coordinate
        step, but bounded by the boxes. Both affect only the speed.
        """
        cap = self.pairs.cap
        norms = self.rows.norms
        total = float(cap.sum())
        self.lift = float(np.mean(norms)) + 10.0 * self.pairs.n_labels / total if total > 0 else 1.0
        widest = np.zeros_like(norms)
        np.maximum.at(widest, self.pairs.rows, cap)
        longest = np.where(widest > 0, widest, 1.0) / SMALLEST_BOX_MARGIN
        self.steps = np.minimum(0.1 / (norms + self.lift), longest)

    @property
    def gap(self) -> float:
        """The relative gap between the best primal and the best dual value."""
        return relative_gap(self.primal.value, self.dual_value)

    def sweep_until(self, tol: float, max_iter: int) -> None:
        """Sweep, and compute a certificate after each round, until the gap is at most `tol`.

        `max_iter` limits `n_iter`, which counts the iterations of the whole run.
        """
        while not self.gap <= tol and self.n_iter < max_iter:
            n_sweeps = min(SWEEPS_PER_CERTIFICATE, max_iter - self.n_iter)
            for _ in range(n_sweeps):
                order = self.random.permutation(len(self.rows.norms))
                self.rows.ascend(self.pairs, self.duals, self.biases, self.lift, order, PASSES_PER_ROW)
            self.F = self.rows.scores()
            self.n_iter += n_sweeps
            self.certify()

    def take_interior_steps(self, tol: float, max_iter: int) -> None:
        """Take steps of the interior point method until the gap is at most `tol` or no longer falls.

        Sweeps may continue afterwards: duals, biases, scores and the best points are set. It may
        end at once.
        """
        if self.gap <= tol or self.n_iter >= max_iter:
            return
        X, to_model = self.rows.features()
        weights = X.T @ self.pairs.coefficients(self.duals)
        lift = np.inf if self.free else self.lift
        gap = self.primal.value - max(self.dual_value, 0.0)
        interior = InteriorPoint(X, self.pairs, lift, weights, self.biases, self.duals, gap)
        mus = [interior.mu]
        # The first steps may lead away from the central path before they follow it.
        while not self.gap <= tol and self.n_iter < max_iter and (len(mus) <= 8 or mus[-1] < 0.9 * mus[-6]):
            self.n_iter += 1
            if not interior.step():
                break
            mus.append(interior.mu)
            # The weights are a primal point, and the dual variables become the current ones.
            W = interior.theta[:-1] if lift else interior.theta
            biases = interior.theta[-1] if lift else np.zeros(self.pairs.n_labels)
            point = self._point(to_model(W), X @ W, biases, float(np.vdot(W, W)))
            self.primal = min(self.primal, point, key=_value)
            self.duals = interior.duals.copy()
            self.biases = biases.copy()
            _, self.F, _ = self.rows.set_coefficients(self.pairs.coefficients(self.duals))
            self.certify()

    def certify(self) -> None:
        """Compute the primal and the dual value of the current point; free biases are balanced first.

        The best points so far are kept in `primal`, `dual_value` and `best_duals`. The balance
        replaces `duals`, and without free biases `biases` follow from them.
        """
        imbalance = 0.0
        if self.free:
            multipliers, imbalance = self._balance()
        B = self.pairs.coefficients(self.duals)
        weights, self.F, square = self.rows.set_coefficients(B)
        if not self.free:
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
        """Project the dual variables onto the constraints of free biases.

        Replace `duals`; return the multipliers (n_labels,), and the imbalance that :func:`balance`
        returns.
        """
        self.duals, multipliers, imbalance = balance(self.pairs, self.F, self.biases, self.duals, self.steps)
        if self.duals.sum() > DUAL_SUM_ROUNDING * self.pairs.cap.sum():
            return multipliers, imbalance
        # Biases alone satisfy all margins up to rounding, and the optimum is 0. Slightly larger biases satisfy them
        # exactly, also in single precision.
        self.duals = np.zeros_like(self.duals)
        return multipliers * (1.0 + 1e-3), 0.0

    def _point(self, weights: FloatArray, F: FloatArray, biases: FloatArray, square: float) -> "_PrimalPoint":
        """Return the primal point of a model, from its scores without biases; arrays are not copied."""
        has_penalty = not self.free and self.lift
        penalty = square + (float(biases @ biases) / self.lift if has_penalty else 0.0)
        return _PrimalPoint(weights, F, biases, square, penalty, 0.5 * penalty + self.pairs.value(F + biases))

    def _search_between(self, old: "_PrimalPoint", new: "_PrimalPoint", tries: int = 12) -> "_PrimalPoint":
        """Return the best point between two points, by golden section.

        The weights of dual ascent oscillate around the optimum, and the scores are known on the whole segment. If
        the values differ by rounding only, the new point is returned.
        """
        # A difference of 1e-13 is a rounding error of two sums.
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


class _PrimalPoint(NamedTuple):
    """Model with its scores without biases, squared norm of the weights, penalty and objective."""

    weights: FloatArray
    F: FloatArray
    biases: FloatArray
    square: float
    penalty: float
    value: float


_value = attrgetter("value")


class InteriorPoint:
    r"""Iterates of an interior point method, which needs few steps where coordinate ascent is slow.

    Every pair has a hinge :math:`\xi` and a surplus s with :math:`\xi - s = m - (f_a - f_b)`, and
    the dual variables :math:`\alpha` and :math:`c - \alpha`. A step of Newton's method aims at
    :math:`\alpha s = (c - \alpha) \xi = \mu`. Its linear system in the weights is

    .. math:: (M + \tilde X' L \tilde X)\, \Delta = g,

    where L is the Laplacian of the pairs of every row with the curvatures
    :math:`1 / (\xi / (c - \alpha) + s / \alpha)`. It is solved by conjugate gradients with one block
    per label as preconditioner. Weights and dual variables need not be exact, because the caller
    certifies both.

    The lift is the square of the constant feature of the biases: 0 for no biases, infinite for free
    biases. The initial dual variables are moved inside their boxes. The gap is the distance between
    the primal and the dual value at the start.
    """

    def __init__(
        self, X: Matrix, pairs: HingePairs, lift: float,
        weights: FloatArray, biases: FloatArray, duals: FloatArray, gap: float,
    ) -> None:  # fmt: skip
        self.pairs = pairs
        self.X = with_constant(X) if lift else X
        self._Xt = self.X.T if isinstance(self.X, np.ndarray) else self.X.T.tocsr()
        self.ridge = np.ones((self.X.shape[1], 1))
        if lift:
            self.ridge[-1] = 0.0 if np.isinf(lift) else 1.0 / lift
        theta = np.vstack([weights, biases]) if lift else weights
        self.theta = theta - theta.mean(axis=1, keepdims=True)
        cap = pairs.cap
        mu = gap / (2 * len(cap))
        v = self._slacks(self.theta, pairs.margin)
        self.duals = np.clip(duals, INITIAL_DISTANCE * cap, (1.0 - INITIAL_DISTANCE) * cap)
        self.rest = cap - self.duals
        self.xi = np.where(v > 0, v + mu / self.duals, mu / self.rest)
        self.surplus = np.where(v > 0, mu / self.duals, mu / self.rest - v)
        self.mu = float(self.duals @ self.surplus + self.rest @ self.xi) / (2 * len(cap))

    def _slacks(self, theta: FloatArray, margin: FloatArray) -> FloatArray:
        """Return the margin minus the score difference of each pair: a new array (n_pairs,).

        `theta` (n_columns, n_labels) are weights, with the biases in the last row if there are any.
        """
        out = np.empty_like(margin)
        loops.pair_slacks(self.X @ theta, *self.pairs.arrays[:3], margin, out)
        return out

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def step(self) -> bool:
        """Take one predictor-corrector step of Newton's method.

        Return False if the rounding of huge features made numbers infinite or NaN.
        """
        curvatures = 1.0 / (self.xi / self.rest + self.surplus / self.duals)
        try:
            precondition = self._preconditioner(curvatures)
        except LinAlgError:
            return False
        _, d_duals, d_xi, d_surplus = self._direction(curvatures, precondition, 0.0, 0.0)
        primal, dual = self._lengths(d_duals, d_xi, d_surplus)
        predicted = self._products(primal, dual, d_duals, d_xi, d_surplus)
        # Mehrotra's rule, which may not aim at 0.
        mu = self.mu * max((predicted / self.mu) ** 3, 1e-6)
        delta, d_duals, d_xi, d_surplus = self._direction(
            curvatures, precondition, mu - d_duals * d_surplus, mu + d_duals * d_xi
        )
        primal, dual = (STEP_TO_BOUNDARY * length for length in self._lengths(d_duals, d_xi, d_surplus))
        self.mu = self._products(primal, dual, d_duals, d_xi, d_surplus)
        self.theta = self.theta + primal * delta
        self.xi = self.xi + primal * d_xi
        self.surplus = self.surplus + primal * d_surplus
        self.duals = self.duals + dual * d_duals
        self.rest = self.rest - dual * d_duals
        return bool(np.isfinite(self.theta).all() and np.isfinite(self.duals).all() and np.isfinite(self.mu))

    def _direction(
        self, curvatures: FloatArray, precondition: Operator, won: FloatArray | float, lost: FloatArray | float
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return Newton's direction towards alpha s = won and (c - alpha) xi = lost.

        `won` and `lost` are numbers or arrays (n_pairs,). The results are the changes of `theta`,
        `duals`, `xi` and `surplus`.
        """
        missing = won / self.duals - lost / self.rest + self._slacks(self.theta, self.pairs.margin)
        right = self._Xt @ self.pairs.coefficients(self.duals + curvatures * missing) - self.ridge * self.theta
        delta = self._solve(right, curvatures, precondition)
        d_duals = curvatures * (missing + self._slacks(delta, np.zeros_like(curvatures)))
        d_xi = (lost - self.rest * self.xi + self.xi * d_duals) / self.rest
        d_surplus = (won - self.duals * self.surplus - self.surplus * d_duals) / self.duals
        return delta, d_duals, d_xi, d_surplus

    def _lengths(self, d_duals: FloatArray, d_xi: FloatArray, d_surplus: FloatArray) -> tuple[float, float]:
        """Return the longest primal and dual step, at most 1, along changes (n_pairs,) of variables."""
        primal = np.max([-d_xi / self.xi, -d_surplus / self.surplus], initial=1.0)
        dual = np.max([-d_duals / self.duals, d_duals / self.rest], initial=1.0)
        return float(1.0 / primal), float(1.0 / dual)

    def _products(
        self, primal: float, dual: float, d_duals: FloatArray, d_xi: FloatArray, d_surplus: FloatArray
    ) -> float:
        """Return the mean complementarity after steps of these lengths; the iterate does not change."""
        won = (self.duals + dual * d_duals) @ (self.surplus + primal * d_surplus)
        lost = (self.rest - dual * d_duals) @ (self.xi + primal * d_xi)
        return float(won + lost) / (2 * len(d_duals))

    def _solve(
        self, right: FloatArray, curvatures: FloatArray, precondition: Operator, tol: float = 1e-4, max_iter: int = 300
    ) -> FloatArray:
        """Solve the system of the class by conjugate gradients; return the change of `theta`.

        The weights sum to zero over the labels; others change no pair. `tol` is relative to
        `right`. It is coarse, because the caller certifies.
        """
        r = right - right.mean(axis=1, keepdims=True)
        x = np.zeros_like(r)
        largest_residual = tol * np.linalg.norm(r)
        p = z = precondition(r)
        rz = float(np.vdot(r, z))
        for _ in range(max_iter):
            if not rz > 0:
                break
            R = np.zeros((self.X.shape[0], r.shape[1]))
            loops.pair_products(self.X @ p, *self.pairs.arrays[:3], curvatures, R)
            Hp = self._Xt @ R + self.ridge * p
            curvature = float(np.vdot(p, Hp))
            # The computed curvature may not be positive if features are large and far from their mean.
            if not curvature > 0:
                break
            length = rz / curvature
            x = x + length * p
            r = r - length * Hp
            if np.linalg.norm(r) <= largest_residual:
                break
            z = precondition(r)
            old_rz = rz
            rz = float(np.vdot(r, z))
            p = z + (rz / old_rz) * p
        return x

    def _preconditioner(self, curvatures: FloatArray) -> Operator:
        """Return the inverse of the diagonal blocks, one per label, as a function.

        The function maps (n_columns, n_labels) to a new array of this shape. A block that is not
        positive definite raises LinAlgError.
        """
        n, k = self.X.shape
        H = np.zeros((n, self.pairs.n_labels))
        loops.pair_sums(*self.pairs.arrays[:3], curvatures, 1.0, H)
        if isinstance(self.X, np.ndarray):
            blocks = (self._Xt @ (h[:, None] * self.X) for h in H.T)
        else:
            G = np.zeros((k, k, self.pairs.n_labels))
            loops.gram_blocks(self.X.data, self.X.indices, self.X.indptr, H, G)
            blocks = (np.ascontiguousarray(block) for block in np.moveaxis(G, -1, 0))
        factors = []
        for block in blocks:
            # The last two terms make the block of free biases positive definite.
            block[np.diag_indices(k)] += self.ridge[:, 0] + 1e-12 * np.trace(block) / k + 1e-300
            factors.append(cho_factor(block, lower=True, overwrite_a=True, check_finite=False))

        def apply(r: FloatArray) -> FloatArray:
            z = np.column_stack([cho_solve(f, r[:, j], check_finite=False) for j, f in enumerate(factors)])
            return z - z.mean(axis=1, keepdims=True)

        return apply
