"""Third stage of MLFE, a reconstruction: kernel regression of the enriched labels that respects their signs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

# The share of a step below which backtracking gives up.
SMALLEST_STEP = 1e-8


class Regression(NamedTuple):
    """Coefficients B (n_samples, n_labels), intercept b (n_labels,), final objective and number of iterations."""

    dual_coef: np.ndarray
    intercept: np.ndarray
    objective: float
    n_iter: int


@dataclass(frozen=True)
class SignedRegression:
    r"""Multi-output kernel regression of numerical labels.

    .. math:: \min_{B, b} \tfrac12 \mathrm{tr}(B'KB) + \beta_1 \sum_i |\|\mu_i - f_i\| - \varepsilon|_+^2
              + \beta_2 \sum_{ik} |-\mathrm{sign}(\mu_{ik}) f_{ik}|_+ - \beta_3 \sum_{ik} z_{ik} f_{ik},
              \qquad F = KB + 1b

    where z is 1 / (number of relevant labels of the row) for a relevant label and -1 / (number of irrelevant ones) for
    an irrelevant one. Each iteration minimises a quadratic: the first loss is replaced by its tangent with the curvature
    2, which it nowhere exceeds, the second by its slope; the step is shortened until the objective falls. Since the
    curvature is always the same, one factorisation of :math:`I + 2 \beta_1 K` serves all iterations.
    """

    beta1: float = 1.0
    beta2: float = 1.0
    beta3: float = 1.0
    epsilon: float = 1e-3
    tol: float = 1e-5
    max_iter: int = 100

    def fit(self, K, MU):
        """Minimise from B = 0, b = 0."""
        Z = _mean_contrast(MU)
        B, b, KB = np.zeros_like(MU), np.zeros(MU.shape[1]), np.zeros_like(MU)
        system = cho_factor(np.eye(len(K)) + 2 * self.beta1 * K, overwrite_a=True)
        values = [self._value(B, KB, KB + b, MU, Z)]
        while len(values) <= self.max_iter:
            dB, dKB, db = (new - old for new, old in zip(self._minimise(system, MU, Z, KB + b), (B, KB, b)))
            step, value = self._backtrack(values[-1], B, b, KB, dB, db, dKB, MU, Z)
            if value < values[-1]:
                B, b, KB = B + step * dB, b + step * db, KB + step * dKB
            values.append(min(value, values[-1]))
            if values[-2] - values[-1] <= self.tol * abs(values[-2]):
                break
        return Regression(B, b, float(values[-1]), len(values) - 1)

    def _value(self, B, KB, F, MU, Z):
        u = np.linalg.norm(MU - F, axis=1)
        fit = np.sum(np.maximum(u - self.epsilon, 0.0) ** 2)
        signs = np.sum(np.maximum(-np.sign(MU) * F, 0.0))
        return 0.5 * np.sum(B * KB) + self.beta1 * fit + self.beta2 * signs - self.beta3 * np.sum(Z * F)

    def _backtrack(self, value, B, b, KB, dB, db, dKB, MU, Z):
        step = 1.0
        while True:
            F = KB + step * dKB + b + step * db
            new_value = self._value(B + step * dB, KB + step * dKB, F, MU, Z)
            if new_value < value or step < SMALLEST_STEP:
                return step, new_value
            step /= 10

    def _minimise(self, system, MU, Z, F):
        """The minimiser (B, K B, b) of the quadratic that touches the objective at F.

        Stationarity is B = r + 2 beta1 (T - K B - 1b), with r the slopes of the two linear losses and T the targets, and
        1'B = 0: `rest`, which is B / (2 beta1), solves (I + 2 beta1 K) rest = T + r / (2 beta1) - 1b.
        """
        u = np.linalg.norm(MU - F, axis=1)
        share = np.maximum(u - self.epsilon, 0.0) / np.maximum(u, np.finfo(float).tiny)
        slopes = self.beta2 * np.where(np.sign(MU) * F < 0, np.sign(MU), 0.0) + self.beta3 * Z
        targets = F + share[:, None] * (MU - F)
        pull = targets + slopes / (2 * self.beta1)
        solution = cho_solve(system, np.column_stack([pull, np.ones(len(MU))]), check_finite=False)
        rest, ones = solution[:, :-1], solution[:, -1:]
        b = rest.sum(axis=0) / ones.sum()
        rest -= ones * b
        return 2 * self.beta1 * rest, pull - b - rest, b


def _mean_contrast(MU):
    """Z with sum(Z * F) = sum over rows of (mean of relevant scores - mean of irrelevant ones)."""
    relevant = MU > 0
    p = np.maximum(relevant.sum(axis=1, keepdims=True), 1)
    q = np.maximum((~relevant).sum(axis=1, keepdims=True), 1)
    return np.where(relevant, 1.0 / p, -1.0 / q)
