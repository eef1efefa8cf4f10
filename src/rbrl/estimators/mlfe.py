"""MLFE: labels enriched by the structure of the features, then regressed."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_chunked

from rbrl._common.checks import check_number
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.mlfe_structure import LassoADMM, enrich_labels
from rbrl.problem.kernel import gram

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


# Parameters that only the last stage sees.
STAGE_THREE = {"beta1", "beta2", "beta3", "epsilon", "tol", "max_iter", "non_empty"}


class MLFE(MultiLabelClassifier):
    r"""Multi-label learning with feature-induced labelling information enrichment.

    1. Every row is reconstructed from the others, :math:`x_i \approx \sum_j w_{ij} x_j`, by a lasso.
    2. Labels become numbers that follow the same structure, keeping their signs:
       :math:`\min_{\mu_k} \|(I - W) \mu_k\|^2` subject to :math:`1 \le y_{ik} \mu_{ik} \le 2`.
    3. The numbers are regressed with a kernel, :math:`F = KB + 1b`:

    .. math:: \min_{B, b} \tfrac12 \mathrm{tr}(B'KB) + \beta_1 \sum_i |\|\mu_i - f_i\| - \varepsilon|_+^2
              + \beta_2 \sum_{ik} |-y_{ik} f_{ik}|_+ - \beta_3 \sum_{ik} z_{ik} f_{ik}

    with :math:`z_{ik}` one over the row's number of relevant labels, or minus one over that of irrelevant ones. A label
    is relevant iff :math:`f_k(x) \ge 0`.

    Stages 1 and 2 and the prediction are the authors'. Stage 3 is a **reconstruction**: inputs, parameters and kernel
    are known, the program is not; its first two losses are those of a sister method of the same group, the third is a
    guess.

    Parameters
    ----------
    beta1, beta2, beta3 : float, default=1.0
        Weights of the distance to the enriched labels, of their signs, and of the contrast between relevant and
        irrelevant labels.
    bounds : pair of floats, default=(1.0, 2.0)
        Bounds on the size of an enriched label.
    epsilon : float, default=0.001
        Distance to the enriched labels that costs nothing.
    gamma : float, default=None
        Width of the RBF kernel; None means :math:`1 / (2 \sigma^2)` with the mean distance :math:`\sigma` between two
        training rows.
    tol : float, default=1e-5
        Stage 3 stops when an iteration lowers the objective by less than this share.
    max_iter : int, default=100
        Iterations of stage 3.
    non_empty : bool, default=False
        Give a row without a relevant label its best one.
    n_jobs : int, default=None
        Threads of stage 1.

    Attributes
    ----------
    reconstruction_ : sparse array (n_samples, n_samples)
        W.
    enriched_labels_ : array (n_samples, n_labels)
    dual_coef_ : array (n_samples, n_labels)
        B, with `intercept_` (n_labels,) and `X_fit_`, the training rows.
    gamma_ : float
        Width of the kernel that was used.
    objective_ : float
        Of stage 3.
    n_iter_ : int
        Of stage 3.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Notes
    -----
    The n lasso problems of stage 1 share one factorisation and are solved as blocks of columns, with the authors'
    tolerance; the quadratic programs of stage 2 are solved for all labels at once, each to a certified gap.
    Memory grows with the square of n_samples.

    References
    ----------
    Q.-W. Zhang, Y. Zhong, M.-L. Zhang: Feature-induced labeling information enrichment for multi-label learning. AAAI
    2018.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import MLFE
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> MLFE().fit(X, Y).predict(X[:2])
    array([[1, 1, 1, 1],
           [0, 0, 1, 0]])
    """

    def __init__(
        self,
        beta1=1.0,
        beta2=1.0,
        beta3=1.0,
        bounds=(1.0, 2.0),
        epsilon=1e-3,
        gamma=None,
        tol=1e-5,
        max_iter=100,
        non_empty=False,
        n_jobs=None,
    ):
        self.beta1 = beta1
        self.beta2 = beta2
        self.beta3 = beta3
        self.bounds = bounds
        self.epsilon = epsilon
        self.gamma = gamma
        self.tol = tol
        self.max_iter = max_iter
        self.non_empty = non_empty
        self.n_jobs = n_jobs

    def fit_many(self, X, y, points):
        """Yield a fitted copy for each dict of parameters; the first two stages are common to all weights of the third."""
        if any(not set(params) <= STAGE_THREE for params in points):
            yield from super().fit_many(X, y, points)
            return
        shared = None
        for params in points:
            model = clone(self).set_params(**params)
            model._shared = shared
            model._learn(X, y)
            shared, model._shared = model._shared, None
            yield model

    def fit(self, X, y=None):
        """Learn from rows X (n_samples, n_features) and their labels y (n_samples, n_labels), 0/1 or -1/+1."""
        self._shared = None
        self._learn(X, y)
        self._shared = None
        return self

    def _fit(self, X, Y, weights):
        self._shared = getattr(self, "_shared", None) or self._enrich(X.astype(np.float64, copy=False), Y)
        self.X_fit_, self.reconstruction_, self.enriched_labels_, self.gamma_, K = self._shared
        regression = SignedRegression(self.beta1, self.beta2, self.beta3, self.epsilon, self.tol, self.max_iter)
        self._store(regression.fit(K, self.enriched_labels_))

    def _enrich(self, X, Y):
        """Stages 1 and 2, and the kernel of stage 3."""
        reconstruction = LassoADMM().weights(X, self.n_jobs)
        gamma = 0.5 / _mean_distance(X) ** 2 if self.gamma is None else self.gamma
        K = gram(X, kernel="rbf", gamma=gamma)
        return X, reconstruction, enrich_labels(reconstruction, Y, *self.bounds), gamma, K

    def _store(self, found):
        self.dual_coef_, self.intercept_ = found.dual_coef, found.intercept
        self.objective_, self.n_iter_ = found.objective, found.n_iter

    def _scores(self, X):
        # A score of exactly 0 is relevant: the smallest positive number leaves all others as they are.
        K = gram(X, self.X_fit_, kernel="rbf", gamma=self.gamma_)
        return K @ self.dual_coef_ + self.intercept_ + np.finfo(np.float64).tiny

    def _check_parameters(self):
        owner = type(self).__name__
        check_number(owner, "beta1", self.beta1, strict=True)
        for name in ("beta2", "beta3", "epsilon"):
            check_number(owner, name, getattr(self, name))
        check_number(owner, "tol", self.tol, strict=True)
        check_number(owner, "max_iter", self.max_iter, low=1, integer=True)
        if self.gamma is not None:
            check_number(owner, "gamma", self.gamma, strict=True)
        low, high = self.bounds
        if not 0 < low <= high < np.inf:
            raise ValueError(f"The bounds parameter of {owner} must be 0 < low <= high. Got {self.bounds!r} instead.")


def _mean_distance(X):
    """Mean distance between two different rows; 1 where it would be 0."""
    n = X.shape[0]
    total = sum(float(D.sum()) for D in pairwise_distances_chunked(X))
    return total / (n * (n - 1)) if n > 1 and total > 0 else 1.0
