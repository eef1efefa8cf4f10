"""Stochastic methods in the coordinates and with the preconditioner of the default solver: the best case for them."""

import numpy as np

from rbrl.losses import WeightedSum
from rbrl.out_of_core import BlockDesign, LocalBlocks
from rbrl.out_of_core.objective import BlockObjective
from rbrl.problem.design import add_adjoint, scores
from rbrl.solvers import QuasiNewton
from rbrl.solvers.line_search import Iterate
from rbrl.solvers.preconditioner import PencilSolver, model_start

BUDGET = 12  # passes


def preconditioner(problem, point):
    """Return the values of the default solver at a point."""
    objective = problem.objective
    H = objective.loss.label_hessian(objective.Y, point.scores) / problem.n
    S = point.nuclear.hessian if point.nuclear else np.zeros_like(H)
    return PencilSolver(objective.design.gram_diagonal, H, S, problem.ridge)


class Problem:
    """Rows in memory and the objective over them."""

    def __init__(self, X, Y, loss, ridge, nuclear):
        order = np.random.default_rng(0).permutation(len(Y))
        self.X, self.Y = X[order], Y[order]
        self.loss, self.ridge, self.nuclear, self.n = loss, ridge, nuclear, len(Y)
        self.objective = self.over(self.n)
        self.design = self.objective.design

    def over(self, n_rows):
        """Return the objective over the first rows, with their loss scaled up to that of all rows."""
        cuts = range(0, n_rows, 10_000)
        parts = [(self.X[a : min(a + 10_000, n_rows)], self.Y[a : min(a + 10_000, n_rows)]) for a in cuts]
        scaled = WeightedSum((self.n / n_rows, self.loss))
        return BlockObjective(BlockDesign(LocalBlocks(parts)), scaled, self.ridge, self.nuclear)

    def start(self):
        """Return the starting point of the default solver, which costs half a pass."""
        return model_start(self.objective)

    def at(self, W):
        """Evaluate the objective at W, which takes one pass."""
        return Iterate(self.objective, W, self.design.scores(W), 1e-3)

    def batch_gradient(self, W, rows):
        """Gradient of the loss on some rows, scaled up to all."""
        C = self.design.coefficients(W)
        _, R = self.loss.evaluate(self.Y[rows], scores(self.X[rows], C))
        G = np.zeros(C.shape)
        add_adjoint(self.X[rows], R, G)
        return self.design.weights(G) * (self.n / len(rows))

    def penalty_gradient(self, point, W):
        """Gradient of ridge and nuclear norm, the latter as the reweighted ridge of a point nearby."""
        nuclear = W @ point.nuclear.hessian if point.nuclear else 0.0
        return self.ridge * W + nuclear


def quasi_newton(problem, seed):
    """Run the default solver; return (passes, value) of its iterates."""
    result = QuasiNewton().solve(problem.over(problem.n), tol=1e-9, max_iter=BUDGET + 1)
    return list(zip(result.costs, result.history))


def growing(problem, seed, share):
    """Run the default solver on some rows to 1e-2, then on all rows from there."""
    part = problem.over(int(share * problem.n))
    found = QuasiNewton().solve(part, tol=1e-2)
    paid = share * (found.evaluations + 1)  # and the part's own Gram matrix
    start = problem.design.weights(part.design.coefficients(found.weights))
    result = QuasiNewton().solve(problem.objective, start=start, tol=1e-9, max_iter=BUDGET)
    return [(paid + cost, value) for cost, value in zip(result.costs, result.history)]


def variance_reduced(problem, seed, batch, step):
    """SVRG: a full gradient, then half an epoch of batches, each with two gradients: two passes a round."""
    rng, W, passes, way = np.random.default_rng(seed), problem.start(), 0.5, []
    while passes + 1 <= BUDGET and np.isfinite(W).all() and np.abs(W).max() < 1e6:
        point = problem.at(W)
        passes += 1
        way.append((passes, point.value))
        precondition, anchor = preconditioner(problem, point), W
        order = rng.permutation(problem.n)[: problem.n // 2]
        for rows in np.split(order, range(batch, len(order), batch)):
            change = problem.batch_gradient(W, rows) - problem.batch_gradient(anchor, rows)
            change += problem.penalty_gradient(point, W - anchor)
            W = W - step * precondition(point.gradient + change)
        passes += 1
    return way


def averaged(problem, seed, batch, step):
    """Stochastic gradients with falling steps, weighted average of the iterates: a pass an epoch."""
    rng, W, passes = np.random.default_rng(seed), problem.start(), 0.5
    point = problem.at(W)
    precondition, mean, total, t, way = preconditioner(problem, point), np.zeros_like(W), 0.0, 0, []
    while passes + 1 <= BUDGET and np.isfinite(W).all():
        order = rng.permutation(problem.n)
        for rows in np.split(order, range(batch, problem.n, batch)):
            t += 1
            gradient = problem.batch_gradient(W, rows) + problem.penalty_gradient(point, W)
            W = W - step / (1 + 0.1 * t) ** 0.7 * precondition(gradient)
            mean, total = mean + t * W, total + t
        passes += 1
        way.append((passes, problem.at(mean / total).value))
    return way
