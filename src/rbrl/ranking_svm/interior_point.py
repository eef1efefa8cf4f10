r"""Interior point method for ranking SVMs with few features, which needs few steps where coordinate ascent is slow.

Every pair has a hinge :math:`\xi` and a surplus s with :math:`\xi - s = m - (f_a - f_b)`, and the dual variables
:math:`\alpha` and :math:`c - \alpha`. A step of Newton's method aims at :math:`\alpha s = (c - \alpha) \xi = \mu`.
Its linear system in the weights is

.. math:: (M + \tilde X' L \tilde X)\, \Delta = g,

where L is the Laplacian of the pairs of every row with the curvatures :math:`1 / (\xi / (c - \alpha) + s / \alpha)`.
It is solved by conjugate gradients with one block per label as preconditioner. Weights and dual variables need not be
exact, because the caller certifies both.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rbrl._common.typing import FloatArray, Matrix
from rbrl._loops import rows as loops
from rbrl.problem import with_constant
from rbrl.ranking_svm.pairs import HingePairs

# Largest number of entries of the preconditioner.
MAX_PRECONDITIONER_ENTRIES = 2.5e7
# Length of a step, as a share of the distance to the boundary.
STEP_TO_BOUNDARY = 0.98
# Smallest distance of the initial dual variables from their bounds, as a share of the box.
INITIAL_DISTANCE = 0.1
Operator: TypeAlias = Callable[[FloatArray], FloatArray]


def is_small_enough(n_features: int, n_labels: int) -> bool:
    """Tell whether the preconditioner of a problem fits in memory.

    Parameters
    ----------
    n_features, n_labels : int

    Returns
    -------
    bool
    """
    return (n_features + 1) ** 2 * n_labels <= MAX_PRECONDITIONER_ENTRIES


class InteriorPoint:
    """Primal and dual iterates of the interior point method for one problem.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    pairs : HingePairs
    lift : float
        Square of the constant feature of the biases: 0 for no biases, `inf` for free biases.
    weights : array (n_features, n_labels)
        Initial weights.
    biases : array (n_labels,)
        Initial biases.
    duals : array (n_pairs,)
        Initial dual variables, which are moved inside their boxes.
    gap : float
        Distance between the primal and the dual value at the start.
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
        self._move_inside(duals, gap / (2 * len(pairs.cap)))

    def _move_inside(self, duals: FloatArray, mu: float) -> None:
        """Set dual variables inside their boxes, and the hinges and surpluses that belong to them and to theta."""
        v = self._slacks(self.theta, self.pairs.margin)
        cap = self.pairs.cap
        self.duals = np.clip(duals, INITIAL_DISTANCE * cap, (1.0 - INITIAL_DISTANCE) * cap)
        self.rest = cap - self.duals
        self.xi = np.where(v > 0, v + mu / self.duals, mu / self.rest)
        self.surplus = np.where(v > 0, mu / self.duals, mu / self.rest - v)
        self.mu = float(self.duals @ self.surplus + self.rest @ self.xi) / (2 * len(cap))

    def _slacks(self, theta: FloatArray, margin: FloatArray) -> FloatArray:
        out = np.empty_like(margin)
        loops.pair_slacks(self.X @ theta, *self.pairs.arrays[:3], margin, out)
        return out

    def try_step(self) -> bool:
        """Take a step; return False if rounding of huge features made numbers infinite or NaN."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                self.step()
        except LinAlgError:
            return False
        return bool(np.isfinite(self.theta).all() and np.isfinite(self.duals).all() and np.isfinite(self.mu))

    def step(self) -> None:
        """Take one predictor-corrector step of Newton's method."""
        curvatures = 1.0 / (self.xi / self.rest + self.surplus / self.duals)
        precondition = self._preconditioner(curvatures)
        _, d_duals, d_xi, d_surplus = self._direction(curvatures, precondition, 0.0, 0.0)
        primal, dual = self._lengths(d_duals, d_xi, d_surplus)
        predicted = self._products(primal, dual, d_duals, d_xi, d_surplus)
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

    def _direction(
        self, curvatures: FloatArray, precondition: Operator, won: FloatArray | float, lost: FloatArray | float
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return Newton's direction towards alpha s = won and (c - alpha) xi = lost."""
        missing = won / self.duals - lost / self.rest + self._slacks(self.theta, self.pairs.margin)
        right = self._Xt @ self.pairs.coefficients(self.duals + curvatures * missing) - self.ridge * self.theta
        delta = self._solve(right, curvatures, precondition)
        d_duals = curvatures * (missing + self._slacks(delta, np.zeros_like(curvatures)))
        d_xi = (lost - self.rest * self.xi + self.xi * d_duals) / self.rest
        d_surplus = (won - self.duals * self.surplus - self.surplus * d_duals) / self.duals
        return delta, d_duals, d_xi, d_surplus

    def _lengths(self, d_duals: FloatArray, d_xi: FloatArray, d_surplus: FloatArray) -> tuple[float, float]:
        """Return the longest primal and the longest dual step that keep all variables positive."""
        primal = _longest((self.xi, d_xi), (self.surplus, d_surplus))
        return primal, _longest((self.duals, d_duals), (self.rest, -d_duals))

    def _products(
        self, primal: float, dual: float, d_duals: FloatArray, d_xi: FloatArray, d_surplus: FloatArray
    ) -> float:
        """Return the mean complementarity after steps of these lengths."""
        won = (self.duals + dual * d_duals) @ (self.surplus + primal * d_surplus)
        lost = (self.rest - dual * d_duals) @ (self.xi + primal * d_xi)
        return float(won + lost) / (2 * len(d_duals))

    def _solve(
        self, right: FloatArray, curvatures: FloatArray, precondition: Operator, tol: float = 1e-4, max_iter: int = 300
    ) -> FloatArray:
        """Solve by conjugate gradients in the weights that sum to zero over the labels; others change no pair."""
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
        """Return the inverse of the diagonal blocks, one per label, as a function."""
        k = self.X.shape[1]
        factors = []
        for block in self._blocks(curvatures):
            block[np.diag_indices(k)] += self.ridge[:, 0] + 1e-12 * np.trace(block) / k + 1e-300
            factors.append(cho_factor(block, lower=True, overwrite_a=True, check_finite=False))

        def apply(r: FloatArray) -> FloatArray:
            z = np.column_stack([cho_solve(f, r[:, j], check_finite=False) for j, f in enumerate(factors)])
            return z - z.mean(axis=1, keepdims=True)

        return apply

    def _blocks(self, curvatures: FloatArray) -> Iterator[FloatArray]:
        """Yield X' diag(h) X for the curvatures h of every label."""
        n, k = self.X.shape
        l = self.pairs.n_labels
        H = np.zeros((n, l))
        loops.pair_sums(*self.pairs.arrays[:3], curvatures, 1.0, H)
        if isinstance(self.X, np.ndarray):
            yield from (self._Xt @ (H[:, j : j + 1] * self.X) for j in range(l))
            return
        G = np.zeros((k, k, l))
        loops.gram_blocks(self.X.data, self.X.indices, self.X.indptr, H, G)
        yield from (np.ascontiguousarray(G[:, :, j]) for j in range(l))


def _longest(*moves: tuple[FloatArray, FloatArray]) -> float:
    """Return the longest step, at most 1, that keeps all variables positive."""
    ratios = [np.max(-d / x, initial=0.0) for x, d in moves]
    return float(min(1.0, 1.0 / max(*ratios, 1e-300)))
