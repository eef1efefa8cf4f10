r"""Ranking SVMs of few features by an interior point method: where coordinate ascent is slow, its steps do not multiply.

Every pair has its hinge :math:`\xi` and its surplus s, :math:`\xi - s = m - (f_a - f_b)`, and dual variables
:math:`\alpha`, :math:`c - \alpha`; a step of Newton's method aims at :math:`\alpha s = (c - \alpha) \xi = \mu`. Its linear
system, in the weights, is

.. math:: (M + \tilde X' L \tilde X)\, \Delta = g,

L the Laplacian of every row's pairs with curvatures :math:`1 / (\xi / (c - \alpha) + s / \alpha)`, solved by conjugate
gradients with one block per label as preconditioner. Weights and dual variables need not be exact: the caller certifies
both.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rbrl._common.typing import FloatArray, Matrix
from rbrl._loops import rows as loops
from rbrl.problem import with_constant
from rbrl.ranking_svm.pairs import HingePairs

# Entries of the preconditioner at most.
LARGEST_BLOCKS = 2.5e7
# A step goes this share of the way to the boundary.
SHORT_OF_BOUNDARY = 0.98
# Dual variables enter at least this share of their box away from its bounds.
INSET = 0.1
Operator: TypeAlias = Callable[[FloatArray], FloatArray]


def fits(n_features: int, n_labels: int) -> bool:
    """Whether the preconditioner's blocks are small enough.

    Parameters
    ----------
    n_features, n_labels : int

    Returns
    -------
    bool
    """
    return (n_features + 1) ** 2 * n_labels <= LARGEST_BLOCKS


class InteriorPoint:
    """Primal and dual iterates of one problem.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)
    pairs : HingePairs
    lift : float
        0 for no biases, `inf` for free ones.
    weights : array (n_features, n_labels)
    biases : array (n_labels,)
    duals : array (n_pairs,)
        Dual variables near the weights; they are moved inside their boxes.
    gap : float
        Distance between primal and dual value there.
    """

    def __init__(
        self, X: Matrix, pairs: HingePairs, lift: float,
        weights: FloatArray, biases: FloatArray, duals: FloatArray, gap: float,
    ) -> None:  # fmt: skip
        self.pairs, self.X, self.theta = pairs, with_constant(X) if lift else X, weights
        self._Xt = self.X.T if isinstance(self.X, np.ndarray) else self.X.T.tocsr()
        self.ridge = np.ones((self.X.shape[1], 1))
        if lift:
            self.ridge[-1] = 0.0 if np.isinf(lift) else 1.0 / lift
            self.theta = np.vstack([weights, biases])
        self.theta = self.theta - self.theta.mean(axis=1, keepdims=True)
        self._enter(duals, gap / (2 * len(pairs.cap)))

    def _enter(self, duals: FloatArray, mu: float) -> None:
        """Dual variables inside their boxes, hinges and surpluses that belong to theta and them."""
        v, cap = self._slacks(self.theta, self.pairs.margin), self.pairs.cap
        self.duals = np.clip(duals, INSET * cap, (1.0 - INSET) * cap)
        self.rest = cap - self.duals
        self.xi = np.where(v > 0, v + mu / self.duals, mu / self.rest)
        self.surplus = np.where(v > 0, mu / self.duals, mu / self.rest - v)
        self.mu = float(self.duals @ self.surplus + self.rest @ self.xi) / (2 * len(cap))

    def _slacks(self, theta: FloatArray, margin: FloatArray) -> FloatArray:
        out = np.empty_like(margin)
        loops.pair_slacks(self.X @ theta, *self.pairs.arrays[:3], margin, out)
        return out

    def try_step(self) -> bool:
        """Take a step, and return whether numbers are still finite: rounding of huge features may end the method."""
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
        reached = self._products(primal, dual, d_duals, d_xi, d_surplus)
        mu = self.mu * max((reached / self.mu) ** 3, 1e-6)
        delta, d_duals, d_xi, d_surplus = self._direction(
            curvatures, precondition, mu - d_duals * d_surplus, mu + d_duals * d_xi
        )
        primal, dual = (SHORT_OF_BOUNDARY * length for length in self._lengths(d_duals, d_xi, d_surplus))
        self.mu = self._products(primal, dual, d_duals, d_xi, d_surplus)
        self.theta = self.theta + primal * delta
        self.xi, self.surplus = self.xi + primal * d_xi, self.surplus + primal * d_surplus
        self.duals, self.rest = self.duals + dual * d_duals, self.rest - dual * d_duals

    def _direction(
        self, curvatures: FloatArray, precondition: Operator, won: FloatArray | float, lost: FloatArray | float
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Newton's direction towards alpha s = won, (c - alpha) xi = lost."""
        missing = won / self.duals - lost / self.rest + self._slacks(self.theta, self.pairs.margin)
        right = self._Xt @ self.pairs.coefficients(self.duals + curvatures * missing) - self.ridge * self.theta
        delta = self._solve(right, curvatures, precondition)
        d_duals = curvatures * (missing + self._slacks(delta, np.zeros_like(curvatures)))
        d_xi = (lost - self.rest * self.xi + self.xi * d_duals) / self.rest
        d_surplus = (won - self.duals * self.surplus - self.surplus * d_duals) / self.duals
        return delta, d_duals, d_xi, d_surplus

    def _lengths(self, d_duals: FloatArray, d_xi: FloatArray, d_surplus: FloatArray) -> tuple[float, float]:
        """The longest primal and dual step that leave all variables positive."""
        primal = _longest((self.xi, d_xi), (self.surplus, d_surplus))
        return primal, _longest((self.duals, d_duals), (self.rest, -d_duals))

    def _products(
        self, primal: float, dual: float, d_duals: FloatArray, d_xi: FloatArray, d_surplus: FloatArray
    ) -> float:
        """Mean complementarity after steps of these lengths."""
        won = (self.duals + dual * d_duals) @ (self.surplus + primal * d_surplus)
        lost = (self.rest - dual * d_duals) @ (self.xi + primal * d_xi)
        return float(won + lost) / (2 * len(d_duals))

    def _solve(
        self, right: FloatArray, curvatures: FloatArray, precondition: Operator, tol: float = 1e-4, max_iter: int = 300
    ) -> FloatArray:
        """Conjugate gradients on weights whose labels sum to zero: the others do not change a pair."""
        r = right - right.mean(axis=1, keepdims=True)
        x, stop = np.zeros_like(r), tol * np.linalg.norm(r)
        z = precondition(r)
        p, rz = z, float(np.vdot(r, z))
        for _ in range(max_iter):
            if not rz > 0:
                break
            R = np.zeros((self.X.shape[0], r.shape[1]))
            loops.pair_products(self.X @ p, *self.pairs.arrays[:3], curvatures, R)
            Hp = self._Xt @ R + self.ridge * p
            curvature = float(np.vdot(p, Hp))
            # Rounding may leave none where features are large and far from their mean.
            if not curvature > 0:
                break
            length = rz / curvature
            x, r = x + length * p, r - length * Hp
            if np.linalg.norm(r) <= stop:
                break
            z = precondition(r)
            rz, old = float(np.vdot(r, z)), rz
            p = z + (rz / old) * p
        return x

    def _preconditioner(self, curvatures: FloatArray) -> Operator:
        """Inverse of the diagonal blocks, one per label."""
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
        """X' diag(h) X for the curvatures h of every label."""
        (n, k), l = self.X.shape, self.pairs.n_labels
        H = np.zeros((n, l))
        loops.pair_sums(*self.pairs.arrays[:3], curvatures, 1.0, H)
        if isinstance(self.X, np.ndarray):
            yield from (self._Xt @ (H[:, j : j + 1] * self.X) for j in range(l))
            return
        G = np.zeros((k, k, l))
        loops.gram_blocks(self.X.data, self.X.indices, self.X.indptr, H, G)
        yield from (np.ascontiguousarray(G[:, :, j]) for j in range(l))


def _longest(*moves: tuple[FloatArray, FloatArray]) -> float:
    """The longest step up to 1 that keeps all of them positive."""
    ratios = [np.max(-d / x, initial=0.0) for x, d in moves]
    return float(min(1.0, 1.0 / max(*ratios, 1e-300)))
