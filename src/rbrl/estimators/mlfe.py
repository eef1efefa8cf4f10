"""MLFE: labels enriched by the structure of the features, then regressed; a section for each of the three stages."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import svds
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_chunked

from rbrl._common.checks import check_number, users_level
from rbrl._common.typing import BoolArray, FloatArray, IntArray, LabelNames, Matrix, MatrixLike
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.exceptions import ConvergenceWarning
from rbrl.kernels import gram

# Stage 1 as the authors of MLFE set it: strength of the lasso, relaxation of ADMM, and its loose tolerances. The weights
# are the iterate at which this rule stops, not the exact solution.
STRENGTH, RELAXATION = 0.01, 0.5
ABSOLUTE, RELATIVE, MAX_LASSO_STEPS = 1e-4, 1e-2, 1000
# Lasso problems per block: a block's iterates stay in the processor's cache for moderate n.
BLOCK = 256
# The share of a step below which backtracking of stage 3 gives up.
SMALLEST_STEP = 1e-8
# What stage 3 is given: training rows, their reconstruction W, enriched labels, width and values of the kernel.
Enriched: TypeAlias = tuple[Matrix, sparse.csr_array, FloatArray, float, FloatArray]
# Parameters that only stage 3 sees.
STAGE_THREE = {"beta1", "beta2", "beta3", "epsilon", "tol", "max_iter", "non_empty"}


def reconstruct(X: Matrix, n_jobs: int | None = None) -> sparse.csr_array:
    r"""Lasso reconstruction of each row from the others, by over-relaxed ADMM in scaled form with penalty 1.

    .. math:: w_i = \arg\min_w \tfrac12 \|x_i - \sum_{j \ne i} w_j x_j\|^2 + \lambda_i \|w\|_1, \qquad
              \lambda_i = s \max_{j \ne i} |\langle x_j, x_i \rangle|

    Returns
    -------
    sparse array (n_samples, n_samples)
        Row i holds the weights of x_i; the diagonal is 0.
    """
    inverse, rows = RidgeInverse(X), np.arange(X.shape[0])
    blocks = (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
    jobs = (delayed(_reconstruct_block)(X, inverse, block) for block in blocks)
    return sparse.vstack(Parallel(n_jobs=n_jobs, prefer="threads")(jobs), format="csr")


def _reconstruct_block(X: Matrix, inverse: "RidgeInverse", block: IntArray) -> sparse.csr_array:
    """Weights of the rows `block`; a column of the iterates is a problem, and leaves when it has converged."""
    own = np.arange(len(block))
    products = _dense(X @ X[block].T)
    products[block, own] = 0.0
    limit = STRENGTH * np.abs(products).max(axis=0)
    found, z, u = (np.zeros_like(products) for _ in range(3))
    for _ in range(MAX_LASSO_STEPS):
        x = inverse.leave_one_out(products + (z - u), block)
        u += RELAXATION * x
        u += (1 - RELAXATION) * z
        # Soft thresholding: what is clipped away is z, the rest the scaled dual.
        z_old, z = z, u.copy()
        np.clip(u, -limit, limit, out=u)
        z -= u
        going = ~_has_converged(x, z, z_old, u)
        if going.all():
            continue
        found[:, own[~going]] = z[:, ~going]
        own, block, limit = own[going], block[going], limit[going]
        products, z, u = products[:, going], z[:, going], u[:, going]
        if not len(own):
            break
    found[:, own] = z
    return sparse.csr_array(found.T)


def _has_converged(x: FloatArray, z: FloatArray, z_old: FloatArray, u: FloatArray) -> BoolArray:
    """Whether the primal and the dual residual of each column are within the tolerances."""
    floor = np.sqrt(len(x) - 1) * ABSOLUTE
    primal = _norms(x - z) < floor + RELATIVE * np.maximum(_norms(x), _norms(z))
    return primal & (_norms(z - z_old) < floor + RELATIVE * _norms(u))


class RidgeInverse:
    """The inverse of X X' + rho I, as a product, with any one row and column left out.

    With few features it is applied by Woodbury's identity, at the cost of two products with X.
    """

    def __init__(self, X: Matrix, rho: float = 1.0) -> None:
        n, m = X.shape
        self.X, self.rho = X, rho
        # One product with the inverse costs less than the two; that with a sparse X is almost free.
        self.is_wide = m >= n if sparse.issparse(X) else 2 * m >= n
        if self.is_wide:
            self.inverse = cho_solve(cho_factor(_dense(X @ X.T) + rho * np.eye(n)), np.eye(n))
            self.diagonal = np.diag(self.inverse).copy()
            return
        factor = cho_factor(_dense(X.T @ X) + rho * np.eye(m))
        # X (X'X + rho I)^-1, with which the inverse is (I - this X') / rho.
        self.half = half = cho_solve(factor, _dense(X).T).T
        own = np.einsum("ij,ij->i", X, half) if isinstance(X, np.ndarray) else np.ravel(X.multiply(half).sum(axis=1))
        self.diagonal = (1.0 - own) / rho

    def leave_one_out(self, Q: FloatArray, left_out: IntArray) -> FloatArray:
        """Column j of Q times the inverse without row and column left_out[j]; Q is 0 there, and so is the result.

        The inverse P without row and column i is P - P[:, i] P[i, :] / P[i, i] on the others.
        """
        own = np.arange(len(left_out))
        if self.is_wide:
            T = self.inverse @ Q
            T -= self.inverse[:, left_out] * (T[left_out, own] / self.diagonal[left_out])
        else:
            # P Q - P[:, i] c = P (Q - e_i c) with c = (P Q)_i / P_ii: the correction enters between the two products.
            V = self.X.T @ Q
            c = -np.einsum("ij,ji->i", self.half[left_out], V) / (self.rho * self.diagonal[left_out])
            V -= _dense(self.X[left_out]).T * c
            T = (Q - self.half @ V) / self.rho
        T[left_out, own] = 0.0
        return T


def _column_products(A: FloatArray, B: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->j", A, B)


def _norms(A: FloatArray) -> FloatArray:
    return np.sqrt(_column_products(A, A))


def _dense(A: Matrix) -> FloatArray:
    return A if isinstance(A, np.ndarray) else A.toarray()


def enrich_labels(
    W: sparse.csr_array, Y: IntArray, low: float = 1.0, high: float = 2.0, tol: float = 1e-6, max_iter: int = 20_000
) -> FloatArray:
    r"""Numerical labels that follow the structure of the features.

    .. math:: \mu_k = \arg\min_\mu \|(I - W) \mu\|^2 \quad \text{s.t.} \quad low \le y_{ik} \mu_i \le high

    All labels at once, by accelerated projected gradient steps with restarts. It stops when every label's objective is
    certified, by :math:`\max_s \langle \nabla f(\mu), \mu - s \rangle \ge f(\mu) - f^*` over the box, to be within `tol`
    of its optimum, relative to the objective of Y itself.

    Parameters
    ----------
    W : sparse array (n_samples, n_samples)
        Reconstruction weights of the rows.
    Y : array (n_samples, n_labels) of -1/+1

    Returns
    -------
    mu : array (n_samples, n_labels)
        Its signs are those of Y.
    """
    A = (sparse.eye_array(W.shape[0], format="csr") - W).tocsr()
    At = A.T.tocsr()
    signs = Y.astype(np.float64)
    lower, upper = np.where(Y > 0, low, -high), np.where(Y > 0, high, -low)
    step = 1.0 / (2.0 * _squared_norm(A))
    bound = tol * np.maximum(_column_products(A @ signs, A @ signs), np.finfo(float).tiny)
    mu = ahead = low * signs
    t = np.ones(mu.shape[1])
    for iteration in range(max_iter):
        gradient = 2.0 * (At @ (A @ ahead))
        if iteration % 10 == 0 and np.all(_gap(gradient, ahead, lower, upper) <= bound):
            return np.clip(ahead, lower, upper)
        mu_old, mu = mu, np.clip(ahead - step * gradient, lower, upper)
        moved = mu - mu_old
        # Restart a label's momentum where it points uphill.
        t = np.where(_column_products(ahead - mu, moved) > 0, 1.0, t)
        t_next = 0.5 * (1 + np.sqrt(1 + 4 * t**2))
        ahead, t = np.clip(mu + (t - 1) / t_next * moved, lower, upper), t_next
    gap = _gap(2.0 * (At @ (A @ mu)), mu, lower, upper)
    reached = f"with a gap up to {np.max(gap / bound):.1f} times its tolerance; the features may need scaling."
    warnings.warn(
        f"Enriched labels stopped at max_iter={max_iter} {reached}", ConvergenceWarning, stacklevel=users_level()
    )
    return mu


def _gap(gradient: FloatArray, mu: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Bound on the distance of each label's objective from its optimum."""
    return _column_products(gradient, mu - np.where(gradient > 0, lower, upper))


def _squared_norm(A: sparse.csr_array) -> float:
    """An upper bound on the squared spectral norm of A, tight where Lanczos converges."""
    bound = abs(A).sum(axis=0).max() * abs(A).sum(axis=1).max()
    if min(A.shape) < 3:
        return float(bound)
    start = np.random.default_rng(0).standard_normal(A.shape[0])
    sigma = svds(A, k=1, tol=1e-2, v0=start, return_singular_vectors=False)[0]
    return float(min(bound, 1.1 * sigma**2))


class Regression(NamedTuple):
    """Coefficients B (n_samples, n_labels), intercept b (n_labels,), final objective and number of iterations."""

    dual_coef: FloatArray
    intercept: FloatArray
    objective: float
    n_iter: int


@dataclass(frozen=True)
class SignedRegression:
    r"""Multi-output kernel regression of numerical labels, stage 3 of :class:`MLFE`, which states the objective.

    Each iteration minimises a quadratic: the first loss is replaced by its tangent with the curvature 2, which it nowhere
    exceeds, the second by its slope; the step is shortened until the objective falls. Since the curvature is always the
    same, one factorisation of :math:`I + 2 \beta_1 K` serves all iterations.
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

        Returns
        -------
        Regression
        """
        Z = _mean_contrast(MU)
        B, b, KB = np.zeros_like(MU), np.zeros(MU.shape[1]), np.zeros_like(MU)
        system = cho_factor(np.eye(len(K)) + 2 * self.beta1 * K, overwrite_a=True)
        values = [self._value(B, KB, KB + b, MU, Z)]
        while len(values) <= self.max_iter:
            dB, dKB, db = (new - old for new, old in zip(self._minimise(system, MU, Z, KB + b), (B, KB, b)))
            step, value = 10.0, np.inf
            while not value < values[-1] and step >= SMALLEST_STEP:
                step /= 10
                F = KB + step * dKB + b + step * db
                value = self._value(B + step * dB, KB + step * dKB, F, MU, Z)
            if value < values[-1]:
                B, b, KB = B + step * dB, b + step * db, KB + step * dKB
            values.append(min(value, values[-1]))
            if values[-2] - values[-1] <= self.tol * abs(values[-2]):
                break
        return Regression(B, b, values[-1], len(values) - 1)

    def _value(self, B: FloatArray, KB: FloatArray, F: FloatArray, MU: FloatArray, Z: FloatArray) -> float:
        u = np.linalg.norm(MU - F, axis=1)
        fit = np.sum(np.maximum(u - self.epsilon, 0.0) ** 2)
        signs = np.sum(np.maximum(-np.sign(MU) * F, 0.0))
        return float(0.5 * np.sum(B * KB) + self.beta1 * fit + self.beta2 * signs - self.beta3 * np.sum(Z * F))

    def _minimise(
        self, system: tuple[FloatArray, bool], MU: FloatArray, Z: FloatArray, F: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The minimiser (B, K B, b) of the quadratic that touches the objective at F.

        Stationarity is B = r + 2 beta1 (T - K B - 1b), r the slopes of the two linear losses and T the targets of
        the first, and 1'B = 0: `rest` = B / (2 beta1) solves (I + 2 beta1 K) rest = T + r / (2 beta1) - 1b.
        """
        u = np.linalg.norm(MU - F, axis=1)
        share = np.maximum(u - self.epsilon, 0.0) / np.maximum(u, np.finfo(float).tiny)
        slopes = self.beta2 * np.where(np.sign(MU) * F < 0, np.sign(MU), 0.0) + self.beta3 * Z
        pull = F + share[:, None] * (MU - F) + slopes / (2 * self.beta1)
        solution = cho_solve(system, np.column_stack([pull, np.ones(len(MU))]), check_finite=False)
        rest, ones = solution[:, :-1], solution[:, -1:]
        b = rest.sum(axis=0) / ones.sum()
        rest -= ones * b
        return 2 * self.beta1 * rest, pull - b - rest, b


def _mean_contrast(MU: FloatArray) -> FloatArray:
    """Z with sum(Z * F) = sum over rows of (mean of relevant scores - mean of irrelevant ones)."""
    relevant = MU > 0
    p = np.maximum(relevant.sum(axis=1, keepdims=True), 1)
    q = np.maximum((~relevant).sum(axis=1, keepdims=True), 1)
    return np.where(relevant, 1.0 / p, -1.0 / q)


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
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.

    Attributes
    ----------
    reconstruction_ : sparse array (n_samples, n_samples)
        W.
    enriched_labels_ : array (n_samples, n_labels)
    dual_coef_ : array (n_samples, n_labels)
        B, with `intercept_` (n_labels,) and `X_fit_`, the training rows.
    gamma_ : float
        Width of the kernel that was used.
    objective_, n_iter_ : float, int
        Final objective and iterations of stage 3.
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
        self.beta1, self.beta2, self.beta3 = beta1, beta2, beta3
        self.bounds, self.epsilon, self.gamma = bounds, epsilon, gamma
        self.tol, self.max_iter = tol, max_iter
        self.non_empty, self.n_jobs, self.label_names = non_empty, n_jobs, label_names

    def fit_many(self, X: MatrixLike, y: MatrixLike | None, points: Iterable[Mapping[str, Any]]) -> Iterator[Self]:
        """Yield a fitted copy for each dict of parameters; the first two stages are common to all weights of the third.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
        y : label matrix
            As in :meth:`fit`.
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
            rows, Y, _ = model._checked_data(X, y)
            enriched = enriched or model._enrich(rows, Y)
            model._regress(*enriched)
            yield model

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        self._regress(*self._enrich(X, Y))

    def _enrich(self, X: Matrix, Y: IntArray) -> Enriched:
        """Stages 1 and 2, and the kernel of stage 3."""
        X = X.astype(np.float64, copy=False)
        W = reconstruct(X, self.n_jobs)
        gamma = 0.5 / _mean_distance(X) ** 2 if self.gamma is None else self.gamma
        return X, W, enrich_labels(W, Y, *self.bounds), gamma, gram(X, kernel="rbf", gamma=gamma)

    def _regress(self, X: Matrix, W: sparse.csr_array, labels: FloatArray, gamma: float, K: FloatArray) -> None:
        """Stage 3."""
        self.X_fit_, self.reconstruction_, self.enriched_labels_, self.gamma_ = X, W, labels, gamma
        regression = SignedRegression(self.beta1, self.beta2, self.beta3, self.epsilon, self.tol, self.max_iter)
        self.dual_coef_, self.intercept_, self.objective_, self.n_iter_ = regression.fit(K, labels)

    def _scores(self, X: Matrix) -> FloatArray:
        # A score of exactly 0 is relevant: the smallest positive number leaves all others as they are.
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


def _mean_distance(X: Matrix) -> float:
    """Mean distance between two different rows; 1 where it would be 0."""
    n = X.shape[0]
    total = sum(float(D.sum()) for D in pairwise_distances_chunked(X))
    return total / (n * (n - 1)) if n > 1 and total > 0 else 1.0
