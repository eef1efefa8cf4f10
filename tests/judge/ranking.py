"""Random problems of the ranking SVMs, and their objectives in extended precision.

Only the rounding of kernel values is taken from the package; nothing else of its code is used.

Every problem has the form of :mod:`judge.posed`, with ridge 1 and no nuclear norm: the hinges of pairs of labels, over
weights whose last row holds the biases. A zero label is a last column of the weights. Models store the differences from
the zero label; the zero label that makes the penalty smallest is minus the mean of these differences over all labels.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.base import clone

from rbrl import CalibratedRankSVM, RankSVM, RankSVMz
from rbrl.kernels import gram

from .posed import EXTENDED, Posed, cholesky, double_rounding, extended, kernel_values, rounding
from .problems import KERNELS, Problem, awkward_columns, kernel_matrix, random_labels, random_weights
from .witness import Search

RANKING_KINDS = ("dense", "wide", "sparse", "float32", "offsets", "tiny", "scales", *KERNELS)


@dataclass(frozen=True)
class PairHinges:
    """Sum over rows and pairs (a, b) of labels of c_iab |m_iab - (f_ia - f_ib)|_+."""

    Y: np.ndarray
    caps: np.ndarray
    margins: np.ndarray

    def _slacks(self, F):
        return self.margins - (F[:, :, None] - F[:, None, :])

    def value(self, F):
        return (self.caps * np.maximum(self._slacks(F), 0)).sum()

    def doubt(self, F, error):
        """How much the value may differ where every score does by its `error` at most."""
        slacks, of_pairs = self._slacks(F), error[:, :, None] + error[:, None, :]
        return (self.caps * (np.maximum(slacks + of_pairs, 0) - np.maximum(slacks, 0))).sum()

    def astype(self, dtype):
        return PairHinges(*(part.astype(dtype) for part in (self.Y, self.caps, self.margins)))

    def candidates(self, posed, start=None):
        """Weights near the optimum: those of interior points, and the same a little larger, which keep a margin that they
        missed by rounding."""
        yield np.zeros(posed.shape, EXTENDED)
        search = Search(posed)
        for V in InteriorPoints(search, self.astype(float)).run():
            W = search.weights(V)
            yield W
            yield from (W * (1 + EXTENDED(share)) for share in (1e-13, 1e-11, 1e-9, 1e-7, 1e-5))


class InteriorPoints:
    """Mehrotra's method for the hinges of a ranking SVM in the coordinates of a search, with dense matrices.

    Every pair has a hinge xi and a surplus s, xi - s = m - (f_a - f_b), and a dual variable alpha in [0, c]. A step aims
    at alpha s = (c - alpha) xi = mu.
    """

    def __init__(self, search, hinges):
        self.shape, (p, l) = search.shape, search.shape
        rows, winner, loser = np.nonzero(hinges.caps > 0)
        self.c, self.m = hinges.caps[rows, winner, loser], hinges.margins[rows, winner, loser]
        A = np.zeros((len(rows), p, l))
        pairs = np.arange(len(rows))
        A[pairs, :, winner] = search.Z[rows]
        A[pairs, :, loser] -= search.Z[rows]
        self.A, self.Q = A.reshape(len(rows), p * l), np.kron(search.PP, np.eye(l))

    def run(self, steps=80):
        """Yield the last points on the way to the optimum."""
        if not len(self.c):
            return
        x, alpha = np.zeros(self.A.shape[1]), 0.5 * self.c
        xi, s = self.m + 1.0, np.ones_like(self.m)
        points = []
        for _ in range(steps):
            new = self._step(x, alpha, xi, s)
            if new is None:
                break
            x, alpha, xi, s = new
            points.append(x.reshape(self.shape))
        yield from points[-4:]

    def _step(self, x, alpha, xi, s):
        rest = self.c - alpha
        D = 1 / (xi / rest + s / alpha)
        H = self.Q + self.A.T @ (D[:, None] * self.A)
        factor = _factor(H)
        if factor is None:
            return None

        def direction(won, lost):
            missing = won / alpha - lost / rest + self.m - self.A @ x
            dx = cho_solve(factor, self.A.T @ (alpha + D * missing) - self.Q @ x)
            da = D * (missing - self.A @ dx)
            return dx, da, (lost - rest * xi + xi * da) / rest, (won - alpha * s - s * da) / alpha

        def lengths(da, dxi, ds):
            def longest(*moves):
                return min(1.0, *(1 / max(np.max(-d / v), 1e-300) for v, d in moves))

            return longest((xi, dxi), (s, ds)), longest((alpha, da), (rest, -da))

        mu = (alpha @ s + rest @ xi) / (2 * len(s))
        dx, da, dxi, ds = direction(0.0, 0.0)
        primal, dual = lengths(da, dxi, ds)
        ahead = (alpha + dual * da) @ (s + primal * ds) + (rest - dual * da) @ (xi + primal * dxi)
        target = mu * max((ahead / (2 * len(s)) / mu) ** 3, 1e-8)
        dx, da, dxi, ds = direction(target - da * ds, target + da * dxi)
        primal, dual = (0.99 * length for length in lengths(da, dxi, ds))
        new = x + primal * dx, alpha + dual * da, xi + primal * dxi, s + primal * ds
        interior = all(np.isfinite(part).all() for part in new) and min(new[1].min(), new[2].min(), new[3].min()) > 0
        return new if interior and (self.c - new[1]).min() > 0 else None


def _factor(H):
    damping = 1e-15 * max(np.trace(H) / len(H), 1e-300)
    for _ in range(12):
        try:
            return cho_factor(H + damping * np.eye(len(H)))
        except (LinAlgError, ValueError):
            damping *= 10
    return None


def ranking_hinges(model, Y, weights):
    """The hinges of a ranking SVM on labels Y, 0 or 1."""
    relevant = (Y > 0).astype(EXTENDED)
    p, q = relevant.sum(axis=1), (1 - relevant).sum(axis=1)
    price = EXTENDED(model.C) * weights
    if isinstance(model, RankSVM):
        caps = relevant[:, :, None] * (1 - relevant)[:, None, :] * (price / np.maximum(p * q, 1))[:, None, None]
        return PairHinges(relevant, caps, np.ones_like(caps))
    n, l = Y.shape
    caps, margins = np.zeros((2, n, l + 1, l + 1), EXTENDED)
    margins[:] = 1
    if isinstance(model, RankSVMz):
        caps[:, :l, l] = relevant * (price / np.maximum(p, 1))[:, None]
        caps[:, l, :l] = (1 - relevant) * (price / np.maximum(q, 1))[:, None]
    else:
        price = price / (np.maximum(p, 1) * np.maximum(q, 1))
        caps[:, :l, l], caps[:, l, :l] = relevant * price[:, None], (1 - relevant) * price[:, None]
        caps[:, :l, :l] = relevant[:, :, None] * (1 - relevant)[:, None, :] * price[:, None, None]
        margins[:, :l, :l] = 2
    return PairHinges(np.hstack([relevant, np.zeros((n, 1), EXTENDED)]), caps, margins)


def pose_ranking(model, X, Y, weights=None):
    """What a fit of a ranking SVM is to minimise, over the rows that have a weight."""
    weights = np.ones(len(Y), EXTENDED) if weights is None else np.asarray(weights, EXTENDED)
    rows = np.flatnonzero(weights > 0)
    # A single label is ranked against its absence.
    Y = np.hstack([1 - Y, Y]) if isinstance(model, RankSVM) and Y.shape[1] == 1 else Y
    loss, X = ranking_hinges(model, Y[rows], weights[rows]), extended(X)
    of_values, biased = None, model.bias != "none"
    if model.kernel == "linear":
        Z, P = X[rows], np.eye(X.shape[1], dtype=EXTENDED)
        error, support = rounding(Z), np.arange(Z.shape[1])
    else:
        Z = kernel_values(model, X)[np.ix_(rows, rows)]
        root, support = cholesky(Z)
        P, error = root.T, rounding(Z) + np.abs(Z - root @ root.T)
        of_values = double_rounding(model, X[rows])
        if of_values is not None:
            given = gram(
                X.astype(float), kernel=model.kernel, gamma=model.gamma, degree=model.degree, coef0=model.coef0
            )
            of_values = of_values + 2 * np.abs(given[np.ix_(rows, rows)] - Z)
    if biased:
        size = EXTENDED(0 if model.bias == "free" else 1)
        support = np.append(support, Z.shape[1])
        Z, error = (np.hstack([A, np.full((len(rows), 1), last, EXTENDED)]) for A, last in ((Z, 1), (error, 0)))
        of_values = None if of_values is None else np.hstack([of_values, np.zeros((len(rows), 1), EXTENDED)])
        P = np.block([[P, np.zeros((len(P), 1), EXTENDED)], [np.zeros((1, P.shape[1]), EXTENDED), size]])
    none = np.zeros((0, Z.shape[1]), EXTENDED)
    return Posed(Z, P, none, rows, loss, EXTENDED(1), EXTENDED(0), error, support.astype(int), of_values)


def stored_ranking_weights(model, posed):
    """The coefficients of a fitted model as they are stored, with the best zero label where there is one."""
    W = model.coef_.T if model.kernel == "linear" else model.dual_coef_[posed.rows]
    W = W.astype(EXTENDED)
    if model.bias != "none":
        W = np.vstack([W, model.intercept_.astype(EXTENDED)])
    if W.shape[1] < posed.shape[1]:
        zero = -W.sum(axis=1, keepdims=True) / posed.shape[1]
        if model.bias == "free":
            # Free biases may be shifted at no cost: they stay as they are, without rounding.
            zero[-1] = 0
        W = np.hstack([W + zero, zero])
    return W


@dataclass
class RankingProblem(Problem):
    """A ranking SVM to fit, perhaps after a fit with another C."""

    earlier_C: float | None = None

    # Hinges move with the scores at their kinks, squared hinges do not: rounding of kernel values shows more often.
    gap_covers_kernel_rounding = True

    def fit(self):
        model = clone(self.model)
        if self.earlier_C is not None:
            model.set_params(C=self.earlier_C, warm_start=True).fit(self.X, self.Y, self.weights)
            model.set_params(C=self.model.C)
        return model.fit(self.X, self.Y, self.weights)

    def pose(self):
        return pose_ranking(self.model, self.X, self.Y, self.weights)

    def stored_weights(self, model, posed):
        return stored_ranking_weights(model, posed)

    def __str__(self):
        changed = {
            name: value for name, value in self.model.get_params().items() if name not in ("verbose", "warm_start")
        }
        words = [f"{name}={value}" for name, value in changed.items()]
        words += [f"weights ({np.count_nonzero(self.weights == 0)} zeros)"] if self.weights is not None else []
        words += [f"after C={self.earlier_C:.3g}"] if self.earlier_C is not None else []
        shape = f"{self.X.shape[0]}x{self.X.shape[1]} {self.X.dtype}, {self.Y.shape[1]} labels"
        return f"{type(self.model).__name__} {self.kind} {shape}: {', '.join(words + self.story)}"


def random_ranking_problem(seed):
    """The problem of that number; kinds take turns."""
    rng, kind = np.random.default_rng([seed, 2]), RANKING_KINDS[seed % len(RANKING_KINDS)]
    n, m, l = _sizes(rng, kind)
    base = rng.standard_normal((n, m))
    Y = random_labels(rng, base, l) if n > 1 else (rng.random((n, l)) < 0.5).astype(int)
    Y[0, 0] = 1
    if l > 1:
        Y[0, 1] = 0
    X, story = _features(rng, kind, base)
    problem = RankingProblem(seed, kind, _model(rng, kind), X, Y, story=story)
    if n > 1 and rng.random() < 0.3:
        problem.weights = random_weights(rng, n)
    if rng.random() < 0.15:
        problem.earlier_C = float(10.0 ** rng.uniform(-3, 3))
    return problem


def _sizes(rng, kind):
    if kind == "tiny":
        return int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    if kind in KERNELS:
        return int(rng.integers(4, 16)), int(rng.integers(1, 8)), int(rng.integers(1, 5))
    if kind == "wide":
        n = int(rng.integers(3, 12))
        return n, n + int(rng.integers(1, 12)), int(rng.integers(1, 5))
    return int(rng.integers(3, 41)), int(rng.integers(1, 9)), int(rng.integers(1, 6))


def _features(rng, kind, base):
    """Features of the kind, with what was done to them."""
    if kind == "offsets":
        offset = 10.0 ** rng.uniform(2, 9)
        return base + offset, [f"offset {offset:.1e}"]
    if kind in ("scales", "float32"):
        size = 10.0 ** rng.uniform(-6, 6)
        X = base * size
        return X.astype(np.float32) if kind == "float32" else X, [f"scale {size:.1e}"]
    if kind == "tiny" and rng.random() < 0.7:
        offset = 10.0 ** rng.uniform(2, 8)
        X = base + offset
        return X.astype(np.float32) if rng.random() < 0.3 else X, [f"offset {offset:.1e}"]
    X, story = awkward_columns(rng, base) if rng.random() < 0.5 else (base, [])
    if kind == "sparse":
        X = sparse.csr_array(np.where(rng.random(X.shape) < 0.4, X, 0.0))
    return kernel_matrix(rng, X) if kind == "precomputed" else X, story


def _model(rng, kind):
    choices = {"C": float(10.0 ** rng.uniform(-4, 4)), "bias": str(rng.choice(["free", "absorbed", "none"]))}
    choices |= {"tol": float(rng.choice([1e-3] * 4 + [1e-2, 1e-4, 1e-6, 1e-8])), "max_iter": 2000}
    if kind in KERNELS:
        gamma = None if rng.random() < 0.5 else float(10.0 ** rng.uniform(-2, 1))
        choices |= {"kernel": kind, "gamma": gamma, "degree": int(rng.integers(1, 4))}
    return (RankSVM, RankSVMz, CalibratedRankSVM)[rng.integers(3)](**choices)
