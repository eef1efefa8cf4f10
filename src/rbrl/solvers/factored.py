r"""Low rank by factors: W = U V' with the nuclear norm as (||U||^2 + ||V||^2) / 2.

The optimum is the same, the problem is smooth at low rank, and products have the width of the rank. A round ends at a
stationary point; it is the optimum when no singular value of the smooth part's gradient exceeds the nuclear weight, and the
directions that do exceed it join the factors for another round.
"""

import numpy as np

from rbrl._common.linalg import leading_singular
from rbrl.solvers.descent import Memory, wolfe_step
from rbrl.solvers.preconditioner import MeanModel, factor_blocks, full_factor_hessian

# With the full Hessian, singular values above this share of the largest are worth keeping.
FAINT = 1e-7


class Factors:
    """W = U V' with its scores, the objective in factors and its gradient."""

    def __init__(self, objective, U, V, scores_U):
        self.U, self.V, self.scores_U = U, V, scores_U
        self.scores = scores_U @ V.T
        self.loss, self.residual = objective.loss.evaluate(objective.Y, self.scores, objective.sample_weight)
        self._rU = objective.ridge.row_weights * U
        self._UU, self._VV = U.T @ self._rU, V.T @ V
        ridge, nuclear = objective.ridge.weight, objective.nuclear.weight
        self.value = self.loss.value + 0.5 * ridge * float(np.sum(self._UU * self._VV))
        self.value += 0.5 * nuclear * float(np.sum(U**2) + np.trace(self._VV))

    def gradient(self, objective):
        """Derivatives in U and V, stacked; costs a product of the width of the rank."""
        ridge, nuclear = objective.ridge.weight, objective.nuclear.weight
        in_U = objective.design.adjoint(self.residual @ self.V) + ridge * self._rU @ self._VV + nuclear * self.U
        in_V = self.residual.T @ self.scores_U + ridge * self.V @ self._UU + nuclear * self.V
        return np.vstack([in_U, in_V])

    def slope(self, objective, dU, dV, scores_dU):
        """Derivative along (dU, dV): no product with the design."""
        ridge, nuclear = objective.ridge.weight, objective.nuclear.weight
        slope = np.vdot(self.residual @ self.V, scores_dU) + np.vdot(self.residual.T @ self.scores_U, dV)
        slope += ridge * (np.vdot(dU.T @ self._rU, self._VV) + np.vdot(self._UU, self.V.T @ dV))
        return float(slope + nuclear * (np.vdot(self.U, dU) + np.vdot(self.V, dV)))


def split(W, nuclear, floor=1e-4):
    """Balanced factors of W, from its smoothed nuclear norm; singular values below `floor` of the largest are left out."""
    sigma, V = nuclear.right_vectors(W, floor)
    root = np.sqrt(sigma)
    return (W @ V) / root, V * root


def balance(U, V, floor=1e-7):
    """The same product with U'U = V'V = diag(sigma), tiny sigma dropped."""
    Q, T = np.linalg.qr(V)
    P, sigma, Ot = np.linalg.svd(U @ T.T, full_matrices=False)
    keep = sigma > floor * sigma.max(initial=0.0)
    root = np.sqrt(sigma[keep])
    return P[:, keep] * root, (Q @ Ot.T)[:, keep] * root


def descend(objective, U, V, small, max_iter, memory_size, note, full=False):
    """Quasi-Newton in the factors until neither slope nor progress exceeds `small` of the objective.

    Returns the factors and the number of iterations. `note(value)` is called at every new point. With `full`, the full
    Hessian is the preconditioner.
    """
    point = Factors(objective, U, V, objective.design.scores(U))
    memory = old = None
    last, k, used = np.inf, len(U), 0
    floor = FAINT if full else 1e-5
    while used < max_iter:
        if memory is None:
            memory, old = Memory((k + len(V), point.U.shape[1]), memory_size, joint=True), None
        gradient = point.gradient(objective)
        if old is not None:
            memory.push(np.vstack([point.U, point.V]) - old[0], gradient - old[1])
        D, slope = memory.descent(gradient, (_full_seed if full else _block_seed)(objective, point))
        if -slope <= small * point.value and last - point.value <= small * point.value:
            break
        old, last = (np.vstack([point.U, point.V]), gradient), point.value
        moved = _step(objective, point, D[:k], D[k:], slope)
        if moved is None:
            break
        point, used = moved, used + 1
        note(point.value)
        if used % 5 == 0 and (lean := _drop_rank(objective, point, floor)) is not None:
            point, memory = lean, None
    return _drop_rank(objective, point, floor) or point, used


def _block_seed(objective, point):
    return factor_blocks(objective, MeanModel(objective, point.scores), point.U, point.V, point.scores_U)


def _full_seed(objective, point):
    gradient = objective.smooth_gradient(point.U @ point.V.T, point.residual)
    return full_factor_hessian(objective, point.U, point.V, point.scores_U, gradient)


def _step(objective, point, dU, dV, slope):
    scores_dU = objective.design.scores(dU)
    trial = {}

    def along(t):
        trial["at"] = Factors(objective, point.U + t * dU, point.V + t * dV, point.scores_U + t * scores_dU)
        return trial["at"].value, trial["at"].slope(objective, dU, dV, scores_dU)

    return trial["at"] if wolfe_step(along, point.value, slope) else None


def _drop_rank(objective, point, floor):
    """The same point in fewer columns, if some have faded."""
    U, V = balance(point.U, point.V, floor)
    if U.shape[1] == point.U.shape[1]:
        return None
    return Factors(objective, U, V, point.scores_U @ (point.V.T @ V / np.sum(V**2, axis=0)))


def join_violations(objective, U, V, gradient, mean_hessian, most=None):
    """Factors with the directions, at most `most`, in which the smooth gradient exceeds the nuclear weight.

    None if there are none.
    """
    nuclear, design = objective.nuclear.weight, objective.design
    P, sigma, Q = leading_singular(gradient, most or min(gradient.shape), nuclear * (1 + 1e-6), near=V)
    if not len(sigma):
        return None
    bend = design.gram_diagonal[:, None] * (np.trace(mean_hessian) / len(mean_hessian))
    bend = bend + objective.ridge.weight * objective.ridge.row_weights
    size = np.sqrt((sigma - nuclear) / np.sum(P**2 * bend, axis=0))
    U, V = np.hstack([U, -P * size]), np.hstack([V, Q * size])
    return balance(U, V) if U.shape[1] > V.shape[0] else (U, V)
