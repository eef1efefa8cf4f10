"""Weights with an objective as low as can be found: a witness against any certificate that denies them.

Newton's method in coordinates in which a problem of any scale is well conditioned: with the stack

    [Z; ridge^(1/2) P; c S; d I] = Q R    (extended precision),    W = R^-1 V,

Z W, P W and S W are blocks of Q times V. These have entries of at most 1, so that double precision does for the search.
The nuclear norm is smoothed, sum (sigma^2 + epsilon^2)^(1/2), with epsilon falling to almost nothing.
What counts is the value of W, which :class:`Posed` computes in extended precision without any of this.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .posed import EXTENDED, Posed

# Epsilons, as shares of the largest singular value.
SMOOTHING = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
# Singular values below this share of the largest are noise of the smoothing, and are tried without.
NOISE = 1e-5
# The last block of the stack, as a share of the columns: it makes R regular, and is not part of the problem.
REGULAR = 1e-9
# Newton's steps in double precision for each epsilon, and in extended precision at last; they end below this progress.
NEWTON_STEPS, POLISHING_STEPS, PROGRESS = 40, 5, 1e-15
# Penalties of V: none, unless the weights are so large then that rounding hides more than this share of their objective.
TETHERS, UNSURE = (0.0, 1e-12, 1e-8, 1e-4), 1e-10


def lowest_value(posed, known):
    """The lowest objective found, rounding added, and whether the search came as low as the `known` weights by itself."""
    known_value = sum(posed.value(known))
    lowest = min(sum(posed.value(W)) for W in candidates(posed))
    good = bool(lowest <= known_value * (1 + EXTENDED(1e-9)))
    if not good:
        lowest = min(lowest, *(sum(posed.value(W)) for W in candidates(posed, known)))
    return min(known_value, lowest), good


def candidates(posed, start=None):
    """Zero, the ends of searches from `start` (or zero), and the same with vanishing singular values set to zero."""
    if hasattr(posed.loss, "candidates"):
        yield from posed.loss.candidates(posed, start)
        return
    yield np.zeros(posed.shape, EXTENDED)
    for tether in TETHERS if posed.ridge or posed.nuclear else TETHERS[1:]:
        search = Search(posed, tether)
        W = search.weights(search.run(None if start is None else search.coordinates(start)))
        yield W
        if posed.nuclear:
            yield without_noise(posed, W)
        value, doubt = posed.value(W)
        if doubt <= UNSURE * value:
            break


def without_noise(posed, W):
    _, sigma, Vt = np.linalg.svd((posed.S @ W).astype(np.float64), full_matrices=False)
    kept = Vt[sigma > NOISE * sigma.max(initial=0.0)].astype(EXTENDED)
    return W @ (kept.T @ kept)


class Search:
    """A posed problem in its well-conditioned coordinates: first in double precision, at last in extended precision."""

    def __init__(self, posed: Posed, tether=0.0):
        self.support, self.n_rows = posed.support, posed.shape[0]
        self.shape = len(self.support), posed.shape[1]
        at_zero = posed.loss.value(np.zeros_like(posed.loss.Y))
        self.nuclear = float(posed.nuclear)
        # Weights whose nuclear norm costs more than all of the loss are no better than zero.
        self.largest = float(at_zero / posed.nuclear) if posed.nuclear else 1.0
        factors = [EXTENDED(1), np.sqrt(posed.ridge), posed.nuclear / np.sqrt(at_zero) if at_zero > 0 else EXTENDED(0)]
        blocks = [factor * block[:, self.support] for factor, block in zip(factors, (posed.Z, posed.P, posed.S))]
        norms = np.sqrt((np.vstack(blocks) ** 2).sum(axis=0))
        blocks.append(np.diag(np.where(norms > 0, REGULAR * norms, 1)))
        Q, self.R = orthogonalised(np.vstack(blocks))
        Z, P, S, _ = np.split(Q, np.cumsum([len(block) for block in blocks])[:-1])
        self.exact = Z, P.T @ P + tether * np.eye(Q.shape[1]), posed.loss
        self.S = (S / factors[2] if factors[2] else S[:0]).astype(float)
        self.rough = self.Z, self.PP, self.loss = Z.astype(float), self.exact[1].astype(float), posed.loss.astype(float)

    def coordinates(self, W):
        return (self.R @ W[self.support]).astype(float)

    def weights(self, V):
        found = V.astype(EXTENDED)
        for k in reversed(range(len(found))):
            found[k] = (found[k] - self.R[k, k + 1 :] @ found[k + 1 :]) / self.R[k, k]
        W = np.zeros((self.n_rows, self.shape[1]), EXTENDED)
        W[self.support] = found
        return W

    def run(self, V=None):
        V = np.zeros(self.shape) if V is None else V
        self.Z, self.PP, self.loss = self.rough
        for share in SMOOTHING if self.nuclear else (0.0,):
            scale = np.linalg.norm(self.S @ V, 2) if self.nuclear and V.any() else self.largest
            epsilon = max(share * scale, 1e-14 * self.largest)
            V = self.minimise(V, epsilon, NEWTON_STEPS)
        self.Z, self.PP, self.loss = self.exact
        return self.minimise(V.astype(EXTENDED), epsilon, POLISHING_STEPS)

    def minimise(self, V, epsilon, steps):
        """Newton's method with backtracking."""
        here = self.at(V, epsilon)
        for _ in range(steps):
            step = self.newton_step(here)
            slope = float((step * here.gradient).sum())
            t, there = 1.0, self.at(V + step, epsilon)
            while there.value > here.value + 1e-4 * t * slope and t > 1e-9:
                t /= 2
                there = self.at(V + t * step, epsilon)
            if there.value >= here.value:
                break
            V, done, here = V + t * step, here.value - there.value < PROGRESS * here.value, there
            if done:
                break
        return V

    def at(self, V, epsilon):
        F = self.Z @ V
        pull = self.PP @ V
        smooth = Smoothed(self.S @ V.astype(float), epsilon) if self.nuclear else None
        return Point(self, F, pull, V, smooth)

    def newton_step(self, point):
        H, g = point.hessian(), point.gradient.ravel().astype(float)
        damping = 1e-14 * max(np.trace(H) / len(H), 1e-300)
        while True:
            try:
                factor = cho_factor(H + damping * np.eye(len(H)), check_finite=False)
                return -cho_solve(factor, g, check_finite=False).reshape(self.shape)
            except LinAlgError:
                damping *= 100


class Point:
    """Value, gradient and Hessian of a search at one place."""

    def __init__(self, search, F, pull, V, smooth):
        self.search, self.F, self.pull, self.smooth = search, F, pull, smooth
        self.value = search.loss.value(F) + (V * pull).sum() / 2
        if smooth is not None:
            self.value += search.nuclear * smooth.value

    @cached_property
    def slopes(self):
        return self.search.loss.slopes(self.F)

    @cached_property
    def gradient(self):
        search = self.search
        gradient = search.Z.T @ self.slopes[0] + self.pull
        return gradient if self.smooth is None else gradient + search.nuclear * (search.S.T @ self.smooth.gradient)

    def hessian(self):
        search, (p, l), curvature = self.search, self.search.shape, self.slopes[1].astype(float)
        Z, PP, _ = search.rough
        H = np.zeros((p, l, p, l))
        for j in range(l):
            for k in range(j, l):
                H[:, j, :, k] = Z.T @ (curvature[:, j, k, None] * Z)
                H[:, k, :, j] = H[:, j, :, k]
            H[:, j, :, j] += PP
        H = H.reshape(p * l, p * l)
        return H if self.smooth is None else H + search.nuclear * self.smooth.hessian(search.S)


class Smoothed:
    """sum h(sigma) of B (p, l), h(s) = (s^2 + epsilon^2)^(1/2), with its derivatives."""

    def __init__(self, B, epsilon):
        self.U, self.sigma, self.Vt = np.linalg.svd(B, full_matrices=True)
        self.sigma = np.concatenate([self.sigma, np.zeros(B.shape[1] - len(self.sigma))])
        self.epsilon, self.smoothed = epsilon, np.hypot(self.sigma, epsilon)
        self.value = float(self.smoothed.sum())

    @property
    def gradient(self):
        k = min(len(self.U), len(self.Vt))
        slope = self.sigma / self.smoothed
        return (self.U[:, :k] * slope[:k]) @ self.Vt[:k]

    def hessian(self, S):
        """Of B = S V in V: divided differences of h' in the basis of the singular vectors."""
        p, l = len(self.U), len(self.Vt)
        s, h = np.zeros(max(p, l)), np.full(max(p, l), self.epsilon)
        s[: len(self.sigma)], h[: len(self.sigma)] = self.sigma, self.smoothed
        same, other = self._differences(s, h)
        turn = S.T @ self.U
        T = np.einsum("ap,jk->ajpk", turn, self.Vt.T).reshape(S.shape[1] * l, p * l)
        k = min(p, l)
        C = np.diag(((same + other) / 2)[:p, :l].ravel())
        swap = ((same - other) / 2)[:k, :k]
        rows, columns = np.divmod(np.arange(k * k), k)
        C[rows * l + columns, columns * l + rows] += swap.ravel()
        return T @ C @ T.T

    def _differences(self, s, h):
        """(h'(a) - h'(b)) / (a - b) and (h'(a) + h'(b)) / (a + b), without cancellation."""
        a, b, ha, hb = s[:, None], s[None], h[:, None], h[None]
        # a/ha - b/hb = (a - b) (a + b) epsilon^2 / (ha hb (a hb + b ha)); for a = b = 0 the limit is 1 / epsilon.
        below = ha * hb * (a * hb + b * ha)
        same = np.divide((a + b) * self.epsilon**2, below, out=np.full(below.shape, 1 / self.epsilon), where=below > 0)
        total = a + b
        other = np.divide(a / ha + b / hb, total, out=np.full(total.shape, 1 / self.epsilon), where=total > 0)
        return same, other


def orthogonalised(A):
    """Q R = A by modified Gram-Schmidt, in the precision of A."""
    Q, R = A.copy(), np.zeros((A.shape[1],) * 2, A.dtype)
    for k in range(A.shape[1]):
        R[k, k] = np.sqrt((Q[:, k] ** 2).sum())
        Q[:, k] /= R[k, k]
        R[k, k + 1 :] = Q[:, k] @ Q[:, k + 1 :]
        Q[:, k + 1 :] -= np.outer(Q[:, k], R[k, k + 1 :])
    return Q, R
