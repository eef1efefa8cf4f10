"""Add a loss: the exponential loss, from its formula to a classifier. docs/add-a-loss.md explains this file.

Run it with `python examples/exponential_loss.py`.
"""

from dataclasses import dataclass

import numpy as np

from rbrl import datasets, evaluate
from rbrl.estimators.convex import ConvexClassifier
from rbrl.losses import Loss, Terms, entry_weights
from rbrl.solvers import SolverResult, lower_bound
from rbrl.solvers.base import explain_unconverged
from rbrl.solvers.certificate import relative_gap


@dataclass(frozen=True)
class ExponentialLoss(Loss):
    r"""Exponential loss of every label, as in boosting.

    .. math:: \sum_{ij} \exp(-y_{ij} f_{ij})
    """

    def accumulate(self, Y, F, weights, scale, R):
        margin = Y * F
        P = self._curvatures(Y, F, weights) * scale
        R -= Y * P
        value = float(P.sum())
        return Terms(value, linear=float(np.sum(P * (2.0 + margin))), quadratic=value)

    def hessian_diagonal(self, Y, F, weights=None):
        return self._curvatures(Y, F, weights)

    def hessian_product(self, Y, F, D, weights=None):
        return self._curvatures(Y, F, weights) * D

    def curvature(self, Y, weights=None):
        """Return no bound: the curvature grows with the distance of a score on the wrong side."""
        return np.full(len(Y), np.inf)

    @staticmethod
    def _curvatures(Y, F, weights):
        """Return weight times exp(-yf): the loss of an entry, its slope but for the sign, and its second derivative.

        A missing label, y = 0, adds nothing.
        """
        return entry_weights(Y, weights) * np.exp(-Y * F)


@dataclass(frozen=True)
class BacktrackingGradient:
    """Proximal gradient whose step halves until the objective falls enough: it needs no bound on the curvature.

    Parameters
    ----------
    check_every : int
        Iterations between two certificates.
    """

    check_every: int = 10

    def solve(self, objective, start=None, tol=1e-4, max_iter=1000):
        """Minimise `objective`; return a `SolverResult` with a certified gap."""
        before, history = objective.evaluations, []
        point = objective.at(objective.zeros() if start is None else start)
        step = _first_step(objective, point)
        for n_iter in range(1, max_iter + 1):
            point, step = _descend(objective, point, step)
            history.append(point.value)
            if n_iter % self.check_every == 0 or n_iter == max_iter:
                gap = _gap(objective, point)
                if gap <= tol:
                    break
        evaluations = objective.evaluations - before
        result = SolverResult(
            point.W, point.value, gap, evaluations, n_iter, gap <= tol, np.array(history), scores=point.scores
        )
        if not result.converged:
            result.messages = (explain_unconverged("BacktrackingGradient", result, tol, max_iter),)
        return result


def _first_step(objective, point):
    """Return the first step, from the curvature at the start; a longer one could overflow the exponential."""
    curvatures = objective.loss.hessian_diagonal(objective.Y, point.scores, objective.sample_weight).max(axis=1)
    return 1.0 / (objective.design.largest_curvature(curvatures) + objective.ridge.curvature)


def _descend(objective, point, step):
    """Return the next point, and the step for the one after it."""
    gradient = objective.smooth_gradient(point.W, point.residual)
    smooth = point.loss.value + objective.ridge.value(point.W)
    while True:
        new = objective.at(objective.nuclear.prox(point.W - step * gradient, step))
        move = new.W - point.W
        model = smooth + np.vdot(gradient, move) + np.vdot(move, move) / (2 * step)
        if new.loss.value + objective.ridge.value(new.W) <= model + 1e-12 * smooth:
            return new, 1.5 * step
        step /= 2


def _gap(objective, point):
    adjoint = objective.design.adjoint(point.residual)
    return relative_gap(point.value, lower_bound(objective, point.W, point.loss, adjoint))


class ExponentialClassifier(ConvexClassifier):
    """Linear or kernel classifier with the exponential loss, ridge and nuclear norm."""

    def loss(self, count_labels):
        return ExponentialLoss()


def main():
    train, test = datasets.load("yeast").split(seed=0)
    model = ExponentialClassifier(ridge=1, nuclear=30, solver=BacktrackingGradient()).fit(*train)
    for name, value in evaluate(test.Y, model.predict(test.X), model.decision_function(test.X)).items():
        print(f"{name:18} {value:.4f}")
    print(f"rank {model.rank_}, certified gap {model.gap_:.1e}, {model.n_iter_} iterations")


if __name__ == "__main__":
    main()
