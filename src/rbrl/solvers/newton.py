"""Newton's direction: conjugate gradients on exact products with the Hessian, preconditioned label by label.

The block of a label is Z' diag(b) Z + diag(d), with the curvature b of every row in the score of this label, and the
second derivatives d of the penalties. The label pairs of a row add the Laplacian of a bipartite graph to the Hessian.
The blocks contain its diagonal, and it is at most twice this diagonal. But it is zero if all scores of a row move
together, so these moves get one more block.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from rbrl._common.typing import FloatArray, IntArray
from rbrl.problem.design import RowDesign
from rbrl.problem.objective import Objective
from rbrl.solvers.lbfgs import InverseHessian
from rbrl.solvers.line_search import Iterate

Solve = Callable[[FloatArray], tuple[FloatArray, int]]


@dataclass(frozen=True)
class NewtonDirection:
    """Newton's direction by preconditioned conjugate gradients.

    Parameters
    ----------
    max_products : int, default=30
        Largest number of products with the Hessian for one direction.
    enough : float, default=0.1
        Conjugate gradients end where a product gains less than this share of the mean gain of the products so far.
    largest_blocks : int, default=2**28
        Number of entries of all blocks, above which they are not computed.
    """

    max_products: int = 30
    enough: float = 0.1
    largest_blocks: int = 2**28

    def cost(self, objective: Objective, iterate: Iterate) -> float:
        """Return the cost of a direction in quasi-Newton steps, by counts of operations; infinite if it is not available.

        It needs rows in memory, and room for the blocks.
        """
        if not (isinstance(objective.design, RowDesign) and objective.lines_are_exact):
            return np.inf
        n, k = objective.design.shape
        curvatures = row_curvatures(objective, iterate)
        active = np.count_nonzero(curvatures, axis=0)
        size = np.minimum(active, k)
        in_rows = active < k
        if size @ size > self.largest_blocks or (in_rows.any() and n**2 > self.largest_blocks / 8):
            return np.inf
        step = 4 * n * k * objective.shape[1]
        blocks = np.sum(size**3 / 3 + ~in_rows * active * k**2) + in_rows.any() * n**2 * k
        # The smaller the curvature of scores that move together, the worse is the preconditioner.
        shared = float(curvatures[:, -1].sum() / max(curvatures[:, :-1].sum(), 1e-300))
        products = min(3 / max(shared, 1e-3), self.max_products)
        # Factorisations are some three times as fast, for each operation, as products with narrow matrices.
        return float(blocks / (3 * step) + 2 * products)

    def compute(self, objective: Objective, iterate: Iterate) -> tuple[FloatArray, float]:
        """Return the direction and the slope along it.

        Returns
        -------
        direction : array (n_columns, n_labels)
        slope : float
        """
        product = partial(hessian_product, objective, iterate)
        D = self.conjugate_gradients(iterate.gradient, product, LabelBlocks(objective, iterate))
        return D, float(np.vdot(iterate.gradient, D))

    def conjugate_gradients(
        self, gradient: FloatArray, product: Callable[[FloatArray], FloatArray], inverse: InverseHessian
    ) -> FloatArray:
        """Return nearly minus the inverse Hessian times `gradient`.

        Parameters
        ----------
        gradient : array (n_columns, n_labels)
        product, inverse : callable
            Products with the Hessian and with the preconditioner. Both are symmetric and positive
            semidefinite, and return new arrays.

        Returns
        -------
        array (n_columns, n_labels)
        """
        D = np.zeros_like(gradient)
        residual = -gradient
        z = inverse(residual)
        p = z
        rz = float(np.vdot(residual, z))
        gained = 0.0
        for k in range(1, self.max_products + 1):
            Hp = product(p)
            curvature = float(np.vdot(p, Hp))
            if not curvature > 0:
                # The rest is rounding.
                break
            t = rz / curvature
            D = D + t * p
            residual = residual - t * Hp
            gained += t * rz
            if k * t * rz <= self.enough * gained:
                break
            z = inverse(residual)
            before = rz
            rz = float(np.vdot(residual, z))
            p = z + (rz / before) * p
        return D


def hessian_product(objective: Objective, iterate: Iterate, D: FloatArray) -> FloatArray:
    """Return the Hessian at an iterate times D, with the nuclear norm as a reweighted ridge.

    D (n_columns, n_labels) is not changed; the result is a new array. It costs one evaluation.
    """
    scores = objective.design.scores(D)
    curved = objective.loss.hessian_product(objective.Y, iterate.scores, scores, objective.sample_weight)
    out = objective.design.adjoint(curved) + objective.ridge.gradient(D)
    return out if iterate.nuclear is None else out + iterate.nuclear.reweigh(D)


class LabelBlocks:
    """Inverse of every label's own block of the Hessian, and of the block of scores that move together.

    If fewer rows than columns have curvature in a label, its block is factored over these rows (Woodbury's identity).

    Parameters
    ----------
    objective : Objective
    iterate : Iterate
    """

    def __init__(self, objective: Objective, iterate: Iterate) -> None:
        self.design = objective.design
        n_columns, n_labels = objective.shape
        curvatures = row_curvatures(objective, iterate)
        penalties = column_penalties(objective, iterate)
        self.diagonal = penalties[:, None] * np.append(np.ones(n_labels), n_labels)
        # Without coupling, the labels' own blocks are the Hessian.
        self.has_common_block = bool(curvatures[:, -1].sum() < 0.5 * curvatures[:, :-1].sum())
        self.in_rows: list[tuple[int, IntArray, FloatArray, Solve]] = []
        self.in_columns: list[tuple[int, Solve]] = []
        gram: FloatArray | None = None
        for j in range(n_labels + self.has_common_block):
            active = np.flatnonzero(curvatures[:, j])
            if len(active) < n_columns:
                gram = self.design.row_gram(penalties) if gram is None else gram
                root = np.sqrt(curvatures[active, j] / (n_labels if j == n_labels else 1))
                block = gram[np.ix_(active, active)] * root[:, None] * root
                block[np.diag_indices(len(block))] += 1.0
                self.in_rows.append((j, active, root, factorise(block)))
            else:
                block = self.design.weighted_gram(curvatures[:, j])
                block[np.diag_indices(n_columns)] += self.diagonal[:, j]
                self.in_columns.append((j, factorise(block)))

    def __call__(self, G: FloatArray) -> FloatArray:
        """Return the blocks' inverse times G (n_columns, n_labels), as a new array.

        The common block is solved for the sums over the labels. Its solution is added to all
        labels.
        """
        G = np.hstack([G, G.sum(axis=1, keepdims=True)])
        out = G / self.diagonal
        if self.in_rows:
            F = self.design.scores(out)
            S = np.zeros_like(F)
            for j, active, root, solve in self.in_rows:
                if len(active):
                    S[active, j] = root * solve(root * F[active, j])[0]
            out -= self.design.adjoint(S) / self.diagonal
        for j, solve in self.in_columns:
            out[:, j] = solve(G[:, j])[0]
        return out[:, :-1] + out[:, -1:] if self.has_common_block else out[:, :-1]


def factorise(block: FloatArray) -> Solve:
    """Return a function that solves with a positive definite matrix for one right-hand side.

    The matrix must be symmetric, in C order and float64. It is overwritten by its Cholesky factor,
    which the function keeps. The function returns LAPACK's pair (solution, info). Definiteness is
    not checked.
    """
    return partial(dpotrs, dpotrf(block.T, lower=1, overwrite_a=1)[0], lower=1)


def column_penalties(objective: Objective, iterate: Iterate) -> FloatArray:
    """Return the second derivatives of ridge and nuclear norm, equal for all labels: (n_columns,).

    The nuclear norm has the curvature of a typical label: singular values near 0 would dominate the mean.

    A small share of the largest entry of the Gram diagonal is added, so that every entry can be
    divided by.
    """
    nuclear = 0.0 if iterate.nuclear is None else float(np.median(iterate.nuclear.hessian.diagonal()))
    ridge = objective.ridge.weight * np.ravel(objective.ridge.row_weights) * np.ones(objective.shape[0])
    return ridge + nuclear + 1e-14 * np.max(objective.design.gram_diagonal, initial=0.0)


def row_curvatures(objective: Objective, iterate: Iterate) -> FloatArray:
    """Return the second derivatives of each row's loss in each score: (n_rows, n_labels + 1).

    The last column has the second derivatives along equal changes of all scores of a row.

    The result is a new array of numbers that are not negative.
    """
    data: Any = objective.Y, iterate.scores
    own = objective.loss.hessian_diagonal(*data, objective.sample_weight)
    ones = np.ones_like(iterate.scores)
    together = objective.loss.hessian_product(*data, ones, objective.sample_weight).sum(axis=1)
    # Rounding of the Laplacian may leave negative numbers.
    return np.column_stack([own, np.maximum(together, 0.0)])
