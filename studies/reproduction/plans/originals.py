"""Methods as their original programs solve them, for plans that ask what difference this makes."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import pairwise_kernels

FREE = 1e-4  # share of its bound by which a multiplier must be away from both ends to count as free


class FrankWolfeRankSVMz(ClassifierMixin, BaseEstimator):
    r"""Rank-SVMz by at most 50 steps of Frank and Wolfe, as its program takes by default: far from the optimum.

    The dual, with :math:`B_{ik} = y_{ik} a_{ik}`, is

    .. math:: \min_a \tfrac12 \operatorname{tr}\bigl((I + 1 1') B' K B\bigr) - \sum_{ik} a_{ik}, \qquad
        0 \le a_{ik} \le C / |Y_i^\pm|, \qquad \sum_i B_{ik} = 0

    Parameters
    ----------
    C : float
    kernel : {"linear", "rbf"}
    gamma : float, optional
        Default: 1 / n_features.
    max_iter : int
    """

    def __init__(self, C=1.0, kernel="linear", gamma=None, max_iter=50):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.max_iter = max_iter

    def fit(self, X, y):
        """Take the steps from a = 0, each as far as the objective falls."""
        self.X_, Y = X, np.where(y > 0, 1.0, -1.0)
        bound = self.C / np.where(Y > 0, (Y > 0).sum(axis=1, keepdims=True), (Y < 0).sum(axis=1, keepdims=True))
        K, a = self._kernel(X), np.zeros(Y.shape)
        H = np.zeros(Y.shape)
        for _ in range(self.max_iter):
            gradient = Y * H - 1
            step = _vertex(gradient, Y, bound) - a
            slope, dH = (gradient * step).sum(), _with_zero_label(K @ (Y * step))
            curvature = (Y * step * dH).sum()
            if slope >= 0 or curvature <= 0:
                break
            length = min(1.0, -slope / curvature)
            a, H = a + length * step, H + length * dH
        free = (a > FREE * bound) & (a < (1 - FREE) * bound)
        self.intercept_ = ((Y - H) * free).sum(axis=0) / np.maximum(free.sum(axis=0), 1)
        self.dual_coef_ = Y * a
        return self

    def decision_function(self, X):
        """Scores of the labels less that of the zero label."""
        return _with_zero_label(self._kernel(X) @ self.dual_coef_) + self.intercept_

    def predict(self, X):
        """Labels that score no less than the zero label."""
        return (self.decision_function(X) >= 0).astype(int)

    def _kernel(self, X):
        gamma = {"gamma": self.gamma} if self.kernel == "rbf" else {}
        return pairwise_kernels(X, self.X_, metric=self.kernel, **gamma)


def _with_zero_label(F):
    """Scores less the zero label's, whose weights are the others' negative sum."""
    return F + F.sum(axis=1, keepdims=True)


def _vertex(gradient, Y, bound):
    """Minimise <gradient, a> over the bounds with balanced labels: move equal mass to both sides while it pays."""
    a = np.zeros(Y.shape)
    for k in range(Y.shape[1]):
        sides = [np.flatnonzero(Y[:, k] > 0), np.flatnonzero(Y[:, k] < 0)]
        sides = [side[np.argsort(gradient[side, k], kind="stable")] for side in sides]
        filled = [np.cumsum(bound[side, k]) for side in sides]
        if not all(len(one) for one in filled):
            continue
        ends = np.unique(np.concatenate(filled))
        ends = ends[ends <= min(one[-1] for one in filled)]
        places = [np.minimum(np.searchsorted(one, ends), len(one) - 1) for one in filled]
        prices = sum(gradient[side[place], k] for side, place in zip(sides, places))
        paying = ends[: np.argmax(prices >= 0)] if (prices >= 0).any() else ends
        mass = paying[-1] if len(paying) else 0.0
        for side, one in zip(sides, filled):
            a[side, k] = np.clip(mass - one + bound[side, k], 0.0, bound[side, k])
    return a
