"""MLFE: labels are enriched by the structure of the features, and then a regression learns them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_chunked

from rbrl._common.checks import check_number
from rbrl._common.typing import FloatArray, IntArray, LabelNames, Matrix, MatrixLike
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.label_enrichment import enrich_labels, reconstruct
from rbrl.estimators.validation import check_training_data
from rbrl.kernels import gram

# Share of a step below which backtracking of stage 3 stops.
SMALLEST_STEP = 1e-8
# Parameters that only stage 3 depends on.
STAGE_THREE = {"beta1", "beta2", "beta3", "epsilon", "tol", "max_iter", "non_empty"}


class Enriched(NamedTuple):
    """Results of stages 1 and 2, and the kernel of stage 3.

    Attributes
    ----------
    X : array or sparse matrix (n_samples, n_features)
        Training rows.
    reconstruction : sparse array (n_samples, n_samples)
        Reconstruction weights of the rows.
    labels : array (n_samples, n_labels)
        Enriched labels.
    gamma : float
        Width of the kernel.
    K : array (n_samples, n_samples)
        Kernel values.
    """

    X: Matrix
    reconstruction: sparse.csr_array
    labels: FloatArray
    gamma: float
    K: FloatArray


class Regression(NamedTuple):
    """Solution of stage 3.

    Attributes
    ----------
    dual_coef : array (n_samples, n_labels)
        Coefficients B.
    intercept : array (n_labels,)
        Intercept b.
    objective : float
        Final objective.
    n_iter : int
        Number of iterations.
    """

    dual_coef: FloatArray
    intercept: FloatArray
    objective: float
    n_iter: int


@dataclass(frozen=True)
class SignedRegression:
    r"""Multi-output kernel regression of numerical labels: stage 3 of :class:`MLFE`, which states the objective.

    Each iteration minimises a quadratic model. The model of the first loss is its tangent with the
    curvature 2, which the loss nowhere exceeds, and the model of the second loss is its slope. The step is
    shortened until the objective decreases. The curvature is constant, so that one factorisation of
    :math:`I + 2 \beta_1 K` serves all iterations.
    """

    beta1: float = 1.0
    beta2: float = 1.0
    beta3: float = 1.0
    epsilon: float = 1e-3
    tol: float = 1e-5
    max_iter: int = 100

    def fit(self, K: FloatArray, MU: FloatArray) -> Regression:
        """Minimise from B = 0, b = 0.

        Parameters
        ----------
        K : array (n_samples, n_samples)
            Kernel values.
        MU : array (n_samples, n_labels)
            Enriched labels.
        """
        Z = _compute_contrast(MU)
        B = np.zeros_like(MU)
        KB = np.zeros_like(MU)
        b = np.zeros(MU.shape[1])
        system = cho_factor(np.eye(len(K)) + 2 * self.beta1 * K, overwrite_a=True)
        values = [self._compute_value(B, KB, KB + b, MU, Z)]
        while len(values) <= self.max_iter:
            dB, dKB, db = (new - old for new, old in zip(self._minimise_model(system, MU, Z, KB + b), (B, KB, b)))
            # The first length that is tried is 1.
            step = 10.0
            value = np.inf
            while not value < values[-1] and step >= SMALLEST_STEP:
                step /= 10
                F = KB + step * dKB + b + step * db
                value = self._compute_value(B + step * dB, KB + step * dKB, F, MU, Z)
            if value < values[-1]:
                B = B + step * dB
                KB = KB + step * dKB
                b = b + step * db
            values.append(min(value, values[-1]))
            if values[-2] - values[-1] <= self.tol * abs(values[-2]):
                break
        return Regression(B, b, values[-1], len(values) - 1)

    def _compute_value(self, B: FloatArray, KB: FloatArray, F: FloatArray, MU: FloatArray, Z: FloatArray) -> float:
        """Return the objective of stage 3 for coefficients B, with KB = K B and scores F = KB + 1b.

        All arrays, with labels MU and their contrast Z, have the shape (n_samples, n_labels).
        """
        u = np.linalg.norm(MU - F, axis=1)
        fit = np.sum(np.maximum(u - self.epsilon, 0.0) ** 2)
        signs = np.sum(np.maximum(-np.sign(MU) * F, 0.0))
        return float(0.5 * np.sum(B * KB) + self.beta1 * fit + self.beta2 * signs - self.beta3 * np.sum(Z * F))

    def _minimise_model(
        self, system: tuple[FloatArray, bool], MU: FloatArray, Z: FloatArray, F: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the minimiser (B, K B, b) of the quadratic model that touches the objective at F.

        `system` is the Cholesky factor of I + 2 beta1 K, as `cho_factor` returns it. The results
        are new arrays; b has the shape (n_labels,). Let r be the slopes of the two linear losses,
        and T the targets of the first loss. The minimiser satisfies B = r + 2 beta1 (T - K B - 1b)
        and 1'B = 0. Therefore `rest` = B / (2 beta1) solves (I + 2 beta1 K) rest = T + r / (2
        beta1) - 1b.
        """
        u = np.linalg.norm(MU - F, axis=1)
        share = np.maximum(u - self.epsilon, 0.0) / np.maximum(u, np.finfo(float).tiny)
        slopes = self.beta2 * np.where(np.sign(MU) * F < 0, np.sign(MU), 0.0) + self.beta3 * Z
        pull = F + share[:, None] * (MU - F) + slopes / (2 * self.beta1)
        solution = cho_solve(system, np.column_stack([pull, np.ones(len(MU))]), check_finite=False)
        rest = solution[:, :-1]
        ones = solution[:, -1:]
        b = rest.sum(axis=0) / ones.sum()
        rest -= ones * b
        return 2 * self.beta1 * rest, pull - b - rest, b


def _compute_contrast(MU: FloatArray) -> FloatArray:
    """Return Z (n_samples, n_labels) for enriched labels MU, whose signs say what is relevant.

    sum(Z * F) is the sum over rows of (mean of relevant scores - mean of irrelevant scores).
    """
    relevant = MU > 0
    p = np.maximum(relevant.sum(axis=1, keepdims=True), 1)
    q = np.maximum((~relevant).sum(axis=1, keepdims=True), 1)
    return np.where(relevant, 1.0 / p, -1.0 / q)


class MLFE(MultiLabelClassifier):
    r"""Multi-label learning with feature-induced labelling information enrichment.

    1. A lasso reconstructs every row from the others, :math:`x_i \approx \sum_j w_{ij} x_j`.
    2. Labels become numbers with the same signs, which follow the same structure:
       :math:`\min_{\mu_k} \|(I - W) \mu_k\|^2` subject to :math:`1 \le y_{ik} \mu_{ik} \le 2`.
    3. A kernel regression :math:`F = KB + 1b` learns these numbers:

    .. math:: \min_{B, b} \tfrac12 \mathrm{tr}(B'KB) + \beta_1 \sum_i |\|\mu_i - f_i\| - \varepsilon|_+^2
              + \beta_2 \sum_{ik} |-y_{ik} f_{ik}|_+ - \beta_3 \sum_{ik} z_{ik} f_{ik}

    where :math:`z_{ik}` is 1 / (number of relevant labels of the row) for a relevant label, and
    -1 / (number of its irrelevant labels) for an irrelevant label. A label is relevant if
    :math:`f_k(x) \ge 0`.

    Stages 1 and 2 and the prediction are those of the authors. Stage 3 is a **reconstruction**: its
    inputs, parameters and kernel are published, and its program is not. The first two losses are those of
    a related method of the same group, and the third loss is a guess.

    Parameters
    ----------
    beta1, beta2, beta3 : float, default=1.0
        Weights of three losses: the distance to the enriched labels, wrong signs, and the contrast between
        relevant and irrelevant labels.
    bounds : pair of floats, default=(1.0, 2.0)
        Bounds on the size of an enriched label.
    epsilon : float, default=0.001
        Distance to the enriched labels that is not penalised.
    gamma : float, default=None
        Width of the RBF kernel. None means :math:`1 / (2 \sigma^2)` with the mean distance
        :math:`\sigma` between two training rows.
    tol : float, default=1e-5
        Relative decrease of the objective at which stage 3 stops.
    max_iter : int, default=100
        Largest number of iterations of stage 3.
    non_empty : bool, default=False
        If True, a row without a relevant label gets its best label.
    n_jobs : int, default=None
        Number of threads of stage 1.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y. None means those of a data frame.

    Attributes
    ----------
    reconstruction_ : sparse array (n_samples, n_samples)
        Reconstruction weights W of the rows.
    enriched_labels_ : array (n_samples, n_labels)
        Numerical labels of stage 2.
    dual_coef_ : array (n_samples, n_labels)
        Coefficients B of the training rows `X_fit_`.
    intercept_ : array (n_labels,)
        Intercepts b.
    gamma_ : float
        Width of the kernel as a number.
    objective_, n_iter_ : float, int
        Final objective and number of iterations of stage 3.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Notes
    -----
    The n lasso problems of stage 1 share one factorisation. They are solved in blocks of columns, with the
    tolerance of the authors. The quadratic programs of stage 2 are solved for all labels together, each to
    a certified gap. Memory grows with the square of n_samples.

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

    reconstruction_: sparse.csr_array
    enriched_labels_: FloatArray
    X_fit_: Matrix
    dual_coef_: FloatArray
    intercept_: FloatArray
    gamma_: float
    objective_: float
    n_iter_: int

    def __init__(
        self, beta1: float = 1.0, beta2: float = 1.0, beta3: float = 1.0, bounds: tuple[float, float] = (1.0, 2.0),
        epsilon: float = 1e-3, gamma: float | None = None, tol: float = 1e-5, max_iter: int = 100,
        non_empty: bool = False, n_jobs: int | None = None, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
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
        self.label_names = label_names

    def fit_many(self, X: MatrixLike, y: MatrixLike | None, points: Iterable[Mapping[str, Any]]) -> Iterator[Self]:
        """Yield a fitted copy for each dict of parameters.

        If only parameters of stage 3 differ, stages 1 and 2 are computed once.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
        y : label matrix
            Labels, in a form that :meth:`fit` accepts.
        points : iterable of dicts

        Yields
        ------
        MLFE
        """
        points = list(points)
        if any(not set(params) <= STAGE_THREE for params in points):
            yield from super().fit_many(X, y, points)
            return
        enriched = None
        for params in points:
            model = clone(self).set_params(**params)
            model._check_parameters()
            rows, Y, _ = check_training_data(model, X, y)
            enriched = enriched or model._enrich(rows, Y)
            model._regress(enriched)
            yield model

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        """Run the three stages. Row weights are not supported, so `weights` is None."""
        self._regress(self._enrich(X, Y))

    def _enrich(self, X: Matrix, Y: IntArray) -> Enriched:
        """Compute stages 1 and 2, and the kernel of stage 3; no attribute is set."""
        X = X.astype(np.float64, copy=False)
        W = reconstruct(X, self.n_jobs)
        gamma = 0.5 / _compute_mean_distance(X) ** 2 if self.gamma is None else self.gamma
        return Enriched(X, W, enrich_labels(W, Y, *self.bounds), gamma, gram(X, kernel="rbf", gamma=gamma))

    def _regress(self, enriched: Enriched) -> None:
        """Compute stage 3, and store the results of all stages."""
        self.X_fit_ = enriched.X
        self.reconstruction_ = enriched.reconstruction
        self.enriched_labels_ = enriched.labels
        self.gamma_ = enriched.gamma
        regression = SignedRegression(self.beta1, self.beta2, self.beta3, self.epsilon, self.tol, self.max_iter)
        solution = regression.fit(enriched.K, enriched.labels)
        self.dual_coef_ = solution.dual_coef
        self.intercept_ = solution.intercept
        self.objective_ = solution.objective
        self.n_iter_ = solution.n_iter

    def _scores(self, X: Matrix) -> FloatArray:
        """Return the scores K B + b, shifted so that a score of exactly 0 is positive."""
        # A score of exactly 0 means relevant. The smallest positive number changes no other sign.
        K = gram(X, self.X_fit_, kernel="rbf", gamma=self.gamma_)
        return K @ self.dual_coef_ + self.intercept_ + np.finfo(np.float64).tiny

    def _check_parameters(self) -> None:
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


def _compute_mean_distance(X: Matrix) -> float:
    """Return the mean distance between two different rows of X, or 1 if it is 0."""
    n = X.shape[0]
    total = sum(float(D.sum()) for D in pairwise_distances_chunked(X))
    return total / (n * (n - 1)) if n > 1 and total > 0 else 1.0
