"""The objectives of RBRL, BRL and CPNL as a user poses them, in extended precision, with nothing of the package's own.

Every problem is brought to one form, over weights W of a linear model (its intercept the last row) or of a kernel model:

    loss(Z W) + ridge/2 ||P W||_F^2 + nuclear ||S W||_*

Linear models have P = S = I, but for the intercept, whose entry makes its penalty that of `intercept_ridge`. Kernel
models have Z = K = C C', P = C', and S = I ("coefficients") or S = C' ("function").
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

EXTENDED = np.longdouble
EPSILON = np.finfo(EXTENDED).eps
DOUBLE = np.finfo(np.float64).eps
# Where a long double is a double, the judge would see no better than the judged.
IS_EXTENDED = EPSILON < 1e-18
# Shares of rows that are equal on paper tie in spite of rounding: the rule of CPNL's graphs.
TIE = 1e-9
# Rows of a kernel matrix that those before explain but for this share are not searched over.
SMALLEST_PIVOT = 1e-14


@dataclass(frozen=True)
class Loss:
    """1/2 sum c_ij |1 - y_ij f_ij|_+^2 + 1/2 sum_i pairs_i sum_pq v_ip v_iq |2 - (f_p - f_q)|_+^2
    + 1/2 sum_i w_i f_i' G f_i.

    Sums are over labels that are not 0, which nobody looked at; the last one is over all scores.
    """

    Y: np.ndarray
    costs: np.ndarray
    pairs: np.ndarray
    shares: np.ndarray
    weights: np.ndarray
    graph: np.ndarray

    def _slacks(self, F):
        """(p, q, sign, weight, slack) of each pair of labels, over all rows; weight 0 where the two are no opposites."""
        for p, q in combinations(range(F.shape[1]), 2) if self.pairs.any() else ():
            sign = self.Y[:, p]
            weight = self.pairs * self.shares[:, p] * self.shares[:, q] * (sign * self.Y[:, q] < 0)
            yield p, q, sign, weight, np.maximum(2 - sign * (F[:, p] - F[:, q]), 0)

    def value(self, F):
        hinge = (self.costs * np.maximum(np.abs(self.Y) - self.Y * F, 0) ** 2).sum()
        ranking = sum((weight * slack**2).sum() for *_, weight, slack in self._slacks(F))
        return (hinge + ranking + (self.weights[:, None] * F * (F @ self.graph)).sum()) / 2

    def slopes(self, F):
        """Gradient (n, l) and Hessians (n, l, l) of the rows."""
        slack, labels = np.maximum(np.abs(self.Y) - self.Y * F, 0), np.arange(F.shape[1])
        R = -self.costs * self.Y * slack + self.weights[:, None] * (F @ self.graph)
        H = self.weights[:, None, None] * self.graph[None]
        H[:, labels, labels] += self.costs * (slack > 0)
        for p, q, sign, weight, slack in self._slacks(F):
            pull, curvature = weight * sign * slack, weight * (slack > 0)
            R[:, p] -= pull
            R[:, q] += pull
            for a, b, direction in ((p, p, 1), (q, q, 1), (p, q, -1), (q, p, -1)):
                H[:, a, b] += direction * curvature
        return R, H

    def doubt(self, F, error):
        """How much the value may differ where every score does by its `error` at most; and the judge's own rounding of the
        graph's term, whose entries cancel."""
        R, _ = self.slopes(F)
        pairs = 6 * self.pairs * self.shares.max(axis=1) ** 2 * F.shape[1]
        curvature = self.costs.max(axis=1) + pairs + self.weights * np.abs(self.graph).sum(axis=1).max()
        rounded = EPSILON * (self.weights[:, None] * np.abs(F) * (np.abs(F) @ np.abs(self.graph))).sum() / 2
        return (np.abs(R) * error).sum() + (curvature[:, None] * error**2).sum() / 2 + rounded

    def astype(self, dtype):
        parts = self.Y, self.costs, self.pairs, self.shares, self.weights, self.graph
        return Loss(*(part.astype(dtype) for part in parts))


def rbrl_loss(Y, weights, ranking):
    """RBRL's, and with ranking 0 that of BRL; weights (n, l) are those of the entries."""
    sums = [(weights * side).sum(axis=1) for side in (Y > 0, Y < 0)]
    means, products = mean_weights(Y, weights), sums[0] * sums[1]
    pairs = np.divide(EXTENDED(ranking) * means, products, out=np.zeros_like(means), where=products > 0)
    return Loss(Y, weights, pairs, weights, means, np.zeros((Y.shape[1],) * 2, EXTENDED))


def mean_weights(Y, weights):
    """Of the entries of each row that somebody looked at."""
    return (weights * (Y != 0)).sum(axis=1) / np.maximum((Y != 0).sum(axis=1), 1)


def cpnl_loss(Y, weights, positive, negative, beta, n_neighbors):
    relevant, irrelevant = (weights * (Y > 0)).sum(axis=0), (weights * (Y < 0)).sum(axis=0)
    ratio = np.divide(irrelevant, relevant, out=np.ones_like(relevant), where=relevant > 0)
    costs = weights * np.where(Y > 0, ratio ** EXTENDED(beta), 1)
    # Two entries of a row count the geometric mean of their weights.
    roots = np.sqrt(weights * (Y != 0))
    products, together = (roots * Y).T @ (roots * Y), roots.T @ roots
    agreement = (1 + np.divide(products, together, out=np.zeros_like(products), where=together > 0)) / 2
    graph = EXTENDED(positive) * laplacian(np.where(together > 0, agreement, 0), n_neighbors, -1)
    graph += EXTENDED(negative) * laplacian(np.where(together > 0, 1 - agreement, 0), n_neighbors, +1)
    means = mean_weights(Y, weights)
    return Loss(Y, costs, np.zeros_like(means), weights, means, graph)


def class_weights(class_weight, Y, weights):
    """What the relevant and irrelevant entries of each label weigh by a parameter of the model: (n, l)."""
    factors = np.ones_like(weights)
    for j in range(Y.shape[1]):
        relevant, irrelevant = ((weights[:, j] * side[:, j]).sum() for side in (Y > 0, Y < 0))
        low = high = EXTENDED(1)
        if class_weight == "balanced" and relevant > 0 and irrelevant > 0:
            low, high = ((relevant + irrelevant) / (2 * side) for side in (irrelevant, relevant))
        elif isinstance(class_weight, dict) and j in class_weight:
            given = class_weight[j]
            low, high = given if isinstance(given, tuple) else (1.0, given)
        factors[:, j] = np.where(Y[:, j] > 0, EXTENDED(high), EXTENDED(low))
    return factors


def laplacian(S, n_neighbors, sign):
    """D + sign S of the graph that keeps, in each row, what lies above its n_neighbors-th largest entry."""
    S = S.copy()
    np.fill_diagonal(S, 0)
    threshold = np.sort(S, axis=1)[:, -min(n_neighbors, len(S))]
    S[S - threshold[:, None] <= TIE] = 0
    S = (S + S.T) / 2
    return np.diag(S.sum(axis=0)) + sign * S


@dataclass(frozen=True)
class Posed:
    """One problem: Z, P and S of the module's form, loss and penalties.

    `rows` are those that are there. `error` bounds what rounding did to Z; `support` are the rows of W that suffice to come
    as near to the optimum as one likes.
    """

    Z: np.ndarray
    P: np.ndarray
    S: np.ndarray
    rows: np.ndarray
    loss: Loss
    ridge: np.longdouble
    nuclear: np.longdouble
    error: np.ndarray
    support: np.ndarray
    of_values: np.ndarray | None = None

    def value(self, W):
        """The objective, and what rounding leaves open about it."""
        F = self.Z @ W
        ridge = self.ridge * ((self.P @ W) ** 2).sum() / 2
        nuclear = self.nuclear * singular_values(self.S @ W).sum() if self.nuclear else EXTENDED(0)
        value = self.loss.value(F) + ridge + nuclear
        return value, self.loss.doubt(F, self.error @ np.abs(W)) + 100 * EPSILON * value

    def value_doubt(self, W):
        """How much the objective may differ because kernel values are numbers in double precision; 0 of features."""
        if self.of_values is None:
            return EXTENDED(0)
        error = self.of_values @ np.abs(W)
        # A last row of biases has no kernel values.
        return self.loss.doubt(self.Z @ W, error) + self.ridge * (np.abs(W[: len(error)]) * error).sum() / 2

    @property
    def shape(self):
        return self.Z.shape[1], self.loss.Y.shape[1]


def pose(model, X, Y, weights=None):
    """What a fit of `model` to X, labels Y (0, 1, or NaN) and weights of rows or entries is to minimise: over the rows that
    have a label with a weight."""
    weights = np.ones(len(Y), EXTENDED) if weights is None else np.asarray(weights, EXTENDED)
    weights = np.array(np.broadcast_to(weights[:, None] if weights.ndim == 1 else weights, Y.shape))
    signs = np.where(Y > 0, EXTENDED(1), EXTENDED(-1))
    signs[np.isnan(Y)] = 0
    weights = weights * class_weights(getattr(model, "class_weight", None), signs, weights)
    signs[weights == 0] = 0
    rows = np.flatnonzero((signs != 0).any(axis=1))
    X = extended(X)
    loss = _loss(model, signs[rows], weights[rows] * (signs[rows] != 0))
    penalties = EXTENDED(model.ridge), EXTENDED(model.nuclear)
    if model.kernel == "linear":
        Z = np.hstack([X[rows], np.ones((len(rows), 1), EXTENDED)]) if model.fit_intercept else X[rows]
        scaled = np.eye(Z.shape[1], dtype=EXTENDED)
        if model.fit_intercept and model.intercept_ridge is not None and model.ridge:
            scaled[-1, -1] = np.sqrt(EXTENDED(model.intercept_ridge) / EXTENDED(model.ridge))
        return Posed(Z, scaled, scaled, rows, loss, *penalties, rounding(Z), np.arange(Z.shape[1]))
    K = kernel_values(model, X)[np.ix_(rows, rows)]
    root, pivots = cholesky(K)
    error, of_values = rounding(K) + np.abs(K - root @ root.T), double_rounding(model, X[rows])
    if model.nuclear and model.low_rank == "coefficients":
        identity = np.eye(len(K), dtype=EXTENDED)
        return Posed(K, root.T, identity, rows, loss, *penalties, error, np.arange(len(K)), of_values)
    return Posed(K, root.T, root.T, rows, loss, *penalties, error, pivots, of_values)


def rounding(Z):
    """Of the entries of Z, and of sums over its rows."""
    return (Z.shape[1] + 20) * EPSILON * np.abs(Z)


def _loss(model, signs, weights):
    if hasattr(model, "beta"):
        return cpnl_loss(signs, weights, model.positive, model.negative, model.beta, model.n_neighbors)
    return rbrl_loss(signs, weights, getattr(model, "ranking", 0.0))


def stored_weights(model, posed):
    """The coefficients of a fitted model as they are stored, in the form of :func:`pose`."""
    if model.kernel == "linear":
        coefficients = model.coef_
        if "feature_factors_" in vars(model):
            coefficients = model.label_factors_.astype(EXTENDED) @ model.feature_factors_.astype(EXTENDED).T
        if sparse.issparse(coefficients):
            coefficients = coefficients.toarray()
        parts = [coefficients, model.intercept_[:, None]] if model.fit_intercept else [coefficients]
        return np.hstack([part.astype(EXTENDED) for part in parts]).T
    return model.dual_coef_[posed.rows].astype(EXTENDED)


def extended(X):
    return (X.toarray() if sparse.issparse(X) else np.asarray(X)).astype(EXTENDED)


def kernel_values(model, X):
    if model.kernel == "precomputed":
        return (X + X.T) / 2
    gamma = EXTENDED(1) / X.shape[1] if model.gamma in (None, "paper") else EXTENDED(model.gamma)
    if model.kernel == "rbf":
        return np.exp(-gamma * np.stack([((X - row) ** 2).sum(axis=1) for row in X]))
    return (gamma * (X @ X.T) + EXTENDED(model.coef0)) ** int(model.degree)


def double_rounding(model, X):
    """What kernel values in double precision may differ by from exact ones; None where they were given."""
    if model.kernel == "precomputed":
        return None
    terms = X.shape[1] + 20
    if model.kernel == "rbf":
        K = kernel_values(model, X)
        return terms * DOUBLE * K * (1 - np.log(np.maximum(K, np.finfo(EXTENDED).tiny)))
    return terms * DOUBLE * np.abs(kernel_values(model, np.abs(X)))


def cholesky(K):
    """C (n, r) with C C' = K, and the pivots that stand out.

    The pivot is the row that is least explained, as a share of its own diagonal entry.
    """
    diagonal, C, pivots, shares = np.diag(K), np.zeros_like(K), [], []
    left = diagonal.copy()
    while len(pivots) < len(K):
        share = np.divide(left, diagonal, out=np.zeros_like(left), where=diagonal > 0)
        k, rank = int(np.argmax(share)), len(pivots)
        if share[k] <= len(K) * EPSILON:
            break
        C[:, rank] = (K[k] - C[:, :rank] @ C[k, :rank]) / np.sqrt(left[k])
        left = np.maximum(left - C[:, rank] ** 2, 0)
        left[k] = 0
        pivots.append(k)
        shares.append(share[k])
    return C[:, : len(pivots)], np.array(pivots, int)[np.array(shares) > SMALLEST_PIVOT]


def singular_values(A):
    """One-sided Jacobi: columns are turned in pairs until all are orthogonal."""
    A = np.array(A if A.shape[0] >= A.shape[1] else A.T, EXTENDED)
    # Columns that are scaled to 1 neither overflow nor vanish when squared.
    scale = np.abs(A).max(initial=0)
    if scale == 0:
        return np.zeros(A.shape[1], EXTENDED)
    A /= scale
    for _ in range(60):
        turned = [_orthogonalise(A, p, q) for p, q in combinations(range(A.shape[1]), 2)]
        if not any(turned):
            break
    return np.sort(np.sqrt((A**2).sum(axis=0)))[::-1] * scale


def _orthogonalise(A, p, q):
    a, b = A[:, p], A[:, q]
    alpha, beta, gamma = a @ a, b @ b, a @ b
    if abs(gamma) <= 10 * EPSILON * np.sqrt(alpha * beta):
        return False
    zeta = (beta - alpha) / (2 * gamma)
    tangent = (1 if zeta >= 0 else -1) / (abs(zeta) + np.sqrt(1 + zeta**2))
    cosine = 1 / np.sqrt(1 + tangent**2)
    A[:, p], A[:, q] = cosine * (a - tangent * b), cosine * (tangent * a + b)
    return True
