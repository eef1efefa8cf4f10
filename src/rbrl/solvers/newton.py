"""Newton's direction: conjugate gradients on exact products with the Hessian, preconditioned by a block for every label.

A block is the Hessian of one label with every row's own curvature b,
Z' diag(b) Z + diag(d). Where most rows are beyond their margins few curve it, and it is factored over those
rows if they are fewer than columns. Pairs of labels couple the blocks as a bipartite graph does: its
Laplacian is at most twice its diagonal, and is blind to what all labels have in common. So one more block, for scores that
move together, leaves conjugate gradients little to do.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

from rbrl._common.typing import FloatArray, IntArray, issparse
from rbrl.problem.design import RowDesign
from rbrl.problem.objective import Objective
from rbrl.solvers.lbfgs import InverseHessian, Iterate

# Conjugate gradients end when a step gains less than this share of the mean gain so far, or after MOST steps;
# where labels do not couple, FEWEST do.
ENOUGH, FEWEST, MOST = 0.1, 3, 30
# Entries of all factors together, at most; the Gram matrix of the rows has an eighth of that.
LARGEST = 2**28
# Factors over rows are in single precision, in half the time, where the trace of what the identity is added to leaves digits
# for that: raw counts of yahoo_arts_full at (100, 1, .01) are certified after 58 s, and not after 74 s without; with single
# precision at any trace they are not at (.01, .01, .01).
SINGLE_TRACE = 1e6
# Operations of a large factorisation in double precision that take as long as one of the solver's products with narrow
# matrices; of HALF rows, half as many. With 1.5 for all sizes, slashdot at (.01, .01, .01) takes 3.3 instead of 2.7 s; with
# 2.7 for all, emotions takes 50 instead of 36 evaluations to a gap of 1e-3.
BLOCKED, HALF = 2.7, 60
# What a Newton step costs at least, in steps of the quasi-Newton method: its products.
LEAST_COST = 2 * FEWEST
# Rows that a forecast looks at.
SAMPLE_ROWS = 1000

Solve = Callable[[FloatArray], tuple[FloatArray, int]]


def conjugate_gradients(
    gradient: FloatArray, product: Callable[[FloatArray], FloatArray], inverse: InverseHessian
) -> FloatArray:
    """Nearly minus the inverse Hessian times `gradient`."""
    D, residual, gained = np.zeros_like(gradient), -gradient, 0.0
    z = inverse(residual)
    p, rz = z, float(np.vdot(residual, z))
    for k in range(1, MOST + 1):
        Hp = product(p)
        curvature = float(np.vdot(p, Hp))
        if not curvature > 0:
            # What is left is beyond the digits.
            break
        t = rz / curvature
        D, residual, gain = D + t * p, residual - t * Hp, t * rz
        gained += gain
        if k * gain <= ENOUGH * gained:
            break
        z = inverse(residual)
        before, rz = rz, float(np.vdot(residual, z))
        p = z + (rz / before) * p
    return D


def hessian_product(objective: Objective, now: Iterate, D: FloatArray) -> FloatArray:
    """The Hessian at an iterate, with the nuclear norm as a reweighted ridge, times D: an evaluation."""
    scores = objective.design.scores(D)
    curved = objective.loss.hessian_product(objective.Y, now.scores, scores, objective.sample_weight)
    out = objective.design.adjoint(curved) + objective.ridge.gradient(D)
    return out if now.nuclear is None else out + now.nuclear.reweigh(D)


class LabelBlocks:
    """The inverse of every label's own block of the Hessian, and of that of scores that move together.

    Parameters
    ----------
    objective : Objective
    now : Iterate
    """

    def __init__(self, objective: Objective, now: Iterate) -> None:
        self.design = design = objective.design
        curvatures, d, (k, l) = row_curvatures(objective, now), column_penalties(objective, now), objective.shape
        self.diagonal = d[:, None] * np.append(np.ones(l), l)
        self.in_rows: list[tuple[int, IntArray, FloatArray, Solve]] = []
        self.in_columns: list[tuple[int, Solve]] = []
        gram = None
        # Where labels do not couple, their own blocks are the Hessian.
        self.couples = curvatures[:, -1].sum() < 0.5 * curvatures[:, :-1].sum()
        for j in range(l + self.couples):
            rows = np.flatnonzero(curvatures[:, j])
            if len(rows) < k:
                if gram is None:
                    gram = design.row_gram(d).astype(np.float32 if single_does(design, curvatures, d) else np.float64)
                root = np.sqrt(curvatures[rows, j] / (l if j == l else 1)).astype(gram.dtype)
                G = gram[np.ix_(rows, rows)]
                G *= root[:, None]
                G *= root
                G[np.diag_indices(len(G))] += 1.0
                self.in_rows.append((j, rows, root, solver_of(G)))
            else:
                G = design.weighted_gram(curvatures[:, j])
                G[np.diag_indices(k)] += self.diagonal[:, j]
                self.in_columns.append((j, solver_of(G)))

    def __call__(self, G: FloatArray) -> FloatArray:
        G = np.hstack([G, G.sum(axis=1, keepdims=True)])
        out = G / self.diagonal
        if self.in_rows:
            F = self.design.scores(out)
            S = np.zeros_like(F)
            for j, rows, root, solve in self.in_rows:
                if len(rows):
                    S[rows, j] = root * solve(root * F[rows, j])[0]
            out -= self.design.adjoint(S) / self.diagonal
        for j, solve in self.in_columns:
            out[:, j] = solve(G[:, j])[0]
        return out[:, :-1] + out[:, -1:] if self.couples else out[:, :-1]


def column_penalties(objective: Objective, now: Iterate) -> FloatArray:
    """Second derivatives of ridge and nuclear norm, the same for all labels: (n_columns,).

    Those of the nuclear norm are those of a typical label: singular values that fade would make up all of the mean (langlog
    at (1, .1, .1) took 195 instead of 82 evaluations).
    """
    nuclear = 0.0 if now.nuclear is None else float(np.median(now.nuclear.hessian.diagonal()))
    ridge = objective.ridge.weight * np.ravel(objective.ridge.row_weights) * np.ones(objective.shape[0])
    return ridge + nuclear + 1e-14 * np.max(objective.design.gram_diagonal, initial=0.0)


def single_does(design: RowDesign, curvatures: FloatArray, d: FloatArray) -> bool:
    """Whether blocks over rows keep digits enough in single precision: by the largest trace, were all rows equally long."""
    return bool(np.sum(design.gram_diagonal / d) * curvatures[:, :-1].mean(axis=0).max() <= SINGLE_TRACE)


def solver_of(G: FloatArray) -> Solve:
    """Solves with a positive definite matrix, which is overwritten."""
    factorise, solve = (spotrf, spotrs) if G.dtype == np.float32 else (dpotrf, dpotrs)
    return partial(solve, factorise(G.T, lower=1, overwrite_a=1)[0], lower=1)


def row_curvatures(objective: Objective, now: Iterate, rows: slice = slice(None)) -> FloatArray:
    """Second derivatives of the loss of each of these rows in each score, and in all together: (n_rows, n_labels + 1)."""
    weights = objective.sample_weight
    Y, F, weights = objective.Y[rows], now.scores[rows], None if weights is None else weights[rows]
    own = objective.loss.hessian_diagonal(Y, F, weights)
    together = objective.loss.hessian_product(Y, F, np.ones_like(F), weights).sum(axis=1)
    # Rounding of the Laplacian leaves less than nothing.
    return np.column_stack([own, np.maximum(together, 0.0)])


def newton_cost(objective: Objective, now: Iterate) -> float:
    """What a Newton step costs, in steps of the quasi-Newton method, by counts of operations; infinite where
    it cannot be made."""
    rows_at_hand = isinstance(objective.design, RowDesign) and objective.lines_are_exact
    if not rows_at_hand or now.images:
        return np.inf
    (n, k), l = objective.design.shape, objective.shape[1]
    X: Any = None if objective.design.whitened else getattr(objective.design, "X", None)
    entries = 3 * X.nnz + 100 * k if issparse(X) else n * k
    step = 4 * entries * l + 160 * k * l + 50 * n * l
    curvatures = row_curvatures(objective, now, slice(None, None, max(1, n // SAMPLE_ROWS)))
    active = np.count_nonzero(curvatures, axis=0) * (n / len(curvatures))
    size, in_rows = np.minimum(active, k), active < k
    if size @ size > LARGEST or (in_rows.any() and n**2 > LARGEST / 8):
        return np.inf
    if issparse(X):
        # Measured: products of sparse matrices are ten times slower than of dense ones.
        grams = 10 * np.where(in_rows, active**2, active * (X.nnz / n) ** 2)
    else:
        grams = n**2 * k * in_rows.any() / (l + 1) + ~in_rows * active * k * (k + HALF)
    # The less scores that move together are curved, the more the blocks miss. A product comes with one of the blocks.
    shared = float(curvatures[:, -1].sum() / max(curvatures[:, :-1].sum(), 1e-300))
    products = min(FEWEST / max(shared, 1e-3), MOST)
    single = single_does(objective.design, curvatures, column_penalties(objective, now))
    factors = size**2 * ((0.5 if single else 1.0) * size + HALF) / 3
    return float(np.sum(factors + grams)) / BLOCKED / step + products * (2 + 8 * float(size @ size) / step)
