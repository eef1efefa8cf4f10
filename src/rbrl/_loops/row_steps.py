"""The loops of dual ascent in plain NumPy: exact maximisation of the dual over one row after another.

They define the compiled loops in `core/row_steps.hpp`. The module `rbrl.solvers.dual_ascent`
explains the dual problem.
"""

import numpy as np

from rbrl._common.typing import Array

# Norm of the gradient to which the subproblem of a row is solved, relative to the first one.
ACCURACY = 0.01


class _Row:
    """The subproblem of a row: loss(z) + |z - centre|^2 / (2 q), for squared hinges and a quadratic form."""

    def __init__(
        self, y: Array, w: Array, of_entries: bool, hinge: float, costs: Array, pairs: float,
        margin: float, graph: Array,
    ) -> None:  # fmt: skip
        self.y = y
        self.margin = margin
        weights = np.where(y != 0, w, 0.0)
        self.form = graph * (weights.sum() / max(np.count_nonzero(y), 1))
        self.price = hinge * weights * np.where(y > 0, costs, 1.0)
        self.pos = np.flatnonzero(y > 0)
        self.neg = np.flatnonzero(y < 0)
        self.pair_price = np.zeros((len(self.pos), len(self.neg)))
        if self.pair_price.size:
            u = weights[self.pos] if of_entries else np.ones(len(self.pos))
            v = weights[self.neg] if of_entries else np.ones(len(self.neg))
            whole = (u.sum() + v.sum()) / (len(u) + len(v)) if of_entries else w[0]
            self.pair_price = pairs * whole * np.outer(u, v) / (u.sum() * v.sum())

    def evaluate(self, z: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian of the loss."""
        slack = np.maximum(np.abs(self.y) - self.y * z, 0.0)
        pair_slack = np.maximum(self.margin - z[self.pos][:, None] + z[self.neg][None, :], 0.0)
        pulls = self.pair_price * pair_slack
        active = self.pair_price * (pair_slack > 0)
        gradient = -self.price * self.y * slack
        gradient[self.pos] -= pulls.sum(axis=1)
        gradient[self.neg] += pulls.sum(axis=0)
        hessian = np.diag(self.price * (slack > 0))
        hessian[self.pos, self.pos] += active.sum(axis=1)
        hessian[self.neg, self.neg] += active.sum(axis=0)
        hessian[np.ix_(self.pos, self.neg)] -= active
        hessian[np.ix_(self.neg, self.pos)] -= active.T
        value = 0.5 * float(self.price @ slack**2 + np.sum(pulls * pair_slack) + z @ self.form @ z)
        return value, gradient + self.form @ z, hessian + self.form

    def minimise(self, z: Array, centre: Array, q: float) -> tuple[Array, Array]:
        """Return the minimiser, by Newton's method from `z`, and the gradient of its loss."""
        loss, gradient, hessian = self.evaluate(z)
        value = loss + np.sum((z - centre) ** 2) / (2 * q)
        first = np.linalg.norm(gradient + (z - centre) / q)
        for _ in range(50):
            residual = gradient + (z - centre) / q
            if np.linalg.norm(residual) <= ACCURACY * first:
                break
            step = np.linalg.solve(hessian + np.eye(len(z)) / q, -residual)
            length = 1.0
            for _ in range(31):
                there = z + length * step
                loss, gradient, hessian = self.evaluate(there)
                new = loss + np.sum((there - centre) ** 2) / (2 * q)
                if new <= value + 1e-4 * length * (step @ residual) + 1e-14 * abs(value):
                    break
                length *= 0.5
            z = there
            value = new
        return z, gradient


def _row_of(start: Array) -> Array:
    """Return the row of each entry of a CSR matrix, or of each pair."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


class _Visit:
    """The step of dual ascent on one row, from the scores of the row."""

    def __init__(
        self, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array, pairs: float, margin: float,
        graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, Z: Array,
    ) -> None:  # fmt: skip
        graph = _dense(graph_data, graph_indices, graph_indptr, (Y.shape[1], Y.shape[1]))
        self.squares = squares
        self.Y = Y
        self.weights = weights
        self.ridge = ridge
        self.Z = Z
        self.terms = hinge, costs, pairs, margin, graph
        self.loss = 0.0

    def change(self, i: int, scores: Array) -> Array:
        """Maximise the dual over row i, and return the change of its dual variables, divided by the ridge."""
        w = self.weights[i] if self.weights.ndim == 2 else np.full(self.Y.shape[1], self.weights[i])
        row = _Row(self.Y[i].astype(float), w, self.weights.ndim == 2, *self.terms)
        q = self.squares[i] / self.ridge
        _, old, _ = row.evaluate(self.Z[i])
        loss, gradient, _ = row.evaluate(scores)
        self.loss += loss
        self.Z[i] = scores
        if q > 0:
            self.Z[i], gradient = row.minimise(scores, scores + q * old, q)
        return (old - gradient) / self.ridge


def _dense(data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Array:
    """Return a CSR matrix as a dense one."""
    X = np.zeros(shape)
    np.add.at(X, (_row_of(indptr), indices), data)
    return X


def dual_ascent_dense(
    X: Array, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array, pairs: float, margin: float,
    graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, order: Array, W: Array, Z: Array,
) -> float:  # fmt: skip
    """Maximise the dual over one row after the other.

    Return the sum of the losses of the rows when they were visited. Z has the scores whose loss
    gradients, times -1, are the dual variables. Z and W change in place. The graph is the CSR matrix
    of a quadratic form in the scores of a row.
    """
    graph = graph_data, graph_indices, graph_indptr
    visit = _Visit(squares, Y, weights, hinge, costs, pairs, margin, *graph, ridge, Z)
    for i in order:
        W += np.outer(X[i], visit.change(i, X[i] @ W))
    return float(visit.loss)


def dual_ascent_sparse(
    data: Array, indices: Array, indptr: Array, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array,
    pairs: float, margin: float, graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, order: Array,
    W: Array, Z: Array,
) -> float:  # fmt: skip
    """Do the same as :func:`dual_ascent_dense` for the rows of a sparse matrix."""
    X = _dense(data, indices, indptr, (len(Y), len(W)))
    graph = graph_data, graph_indices, graph_indptr
    return dual_ascent_dense(X, squares, Y, weights, hinge, costs, pairs, margin, *graph, ridge, order, W, Z)


def dual_ascent_kernel(
    K: Array, scores: Array, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array, pairs: float,
    margin: float, graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, order: Array, W: Array,
    Z: Array,
) -> float:  # fmt: skip
    """Do the same as :func:`dual_ascent_dense` for some rows of a kernel model.

    K has the kernel values of these rows with each other, and `scores` has their scores before the
    first visit. The changes of their coefficients are added to W.
    """
    graph = graph_data, graph_indices, graph_indptr
    visit = _Visit(squares, Y, weights, hinge, costs, pairs, margin, *graph, ridge, Z)
    for i in order:
        W[i] += visit.change(i, scores[i] + K[i] @ W)
    return float(visit.loss)
