"""Stages 1 and 2 of MLFE: rows are reconstructed from each other, and labels become numbers."""

import warnings

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import svds

from rbrl._common.checks import users_level
from rbrl._common.typing import BoolArray, FloatArray, IntArray, Matrix
from rbrl.exceptions import ConvergenceWarning

# Settings of stage 1 by the authors of MLFE: strength of the lasso, relaxation of ADMM, and its loose tolerances.
# The weights are the iterate at which this rule stops, not the exact solution.
LASSO_STRENGTH = 0.01
RELAXATION = 0.5
ABSOLUTE_TOLERANCE = 1e-4
RELATIVE_TOLERANCE = 1e-2
MAX_LASSO_STEPS = 1000
# Number of lasso problems in a block: for moderate n, the iterates of a block stay in the cache of the processor.
BLOCK_PROBLEMS = 256


def reconstruct(X: Matrix, n_jobs: int | None = None) -> sparse.csr_array:
    r"""Reconstruct each row from the other rows with a lasso.

    .. math:: w_i = \arg\min_w \tfrac12 \|x_i - \sum_{j \ne i} w_j x_j\|^2 + \lambda_i \|w\|_1, \qquad
              \lambda_i = s \max_{j \ne i} |\langle x_j, x_i \rangle|

    The solver is ADMM in scaled form with penalty 1 and the relaxation factor 0.5, which is under-relaxation.

    Parameters
    ----------
    X : array or sparse matrix (n_samples, n_features)
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    sparse array (n_samples, n_samples)
        Weights; row i belongs to x_i, and the diagonal is 0.
    """
    inverse = RidgeInverse(X)
    rows = np.arange(X.shape[0])
    blocks = (rows[start : start + BLOCK_PROBLEMS] for start in range(0, len(rows), BLOCK_PROBLEMS))
    jobs = (delayed(_reconstruct_block)(X, inverse, block) for block in blocks)
    return sparse.vstack(Parallel(n_jobs=n_jobs, prefer="threads")(jobs), format="csr")


def _reconstruct_block(X: Matrix, inverse: "RidgeInverse", block: IntArray) -> sparse.csr_array:
    """Return the weights of the rows `block` of X: (n_block, n_samples).

    Each column of the iterates is a problem, and is removed when it has converged. A problem that
    has not converged after MAX_LASSO_STEPS steps keeps its last weights, without a warning.
    """
    own = np.arange(len(block))
    products = _to_dense(X @ X[block].T)
    products[block, own] = 0.0
    limit = LASSO_STRENGTH * np.abs(products).max(axis=0)
    weights, z, u = (np.zeros_like(products) for _ in range(3))
    for _ in range(MAX_LASSO_STEPS):
        x = inverse.leave_one_out(products + (z - u), block)
        u += RELAXATION * x
        u += (1 - RELAXATION) * z
        # Soft thresholding: what exceeds the limit becomes z, and what is within it is the scaled dual variable u.
        z_old = z
        z = u.copy()
        np.clip(u, -limit, limit, out=u)
        z -= u
        active = ~_has_converged(x, z, z_old, u)
        if active.all():
            continue
        weights[:, own[~active]] = z[:, ~active]
        own = own[active]
        block = block[active]
        limit = limit[active]
        products, z, u = (values[:, active] for values in (products, z, u))
        if not len(own):
            break
    weights[:, own] = z
    return sparse.csr_array(weights.T)


def _has_converged(x: FloatArray, z: FloatArray, z_old: FloatArray, u: FloatArray) -> BoolArray:
    """Return the mask of columns whose primal and dual residual are within the tolerances.

    x, z and u (n_samples, n_problems) are the iterates of ADMM, and z_old is z before the step.
    """
    floor = np.sqrt(len(x) - 1) * ABSOLUTE_TOLERANCE
    primal = _compute_norms(x - z) < floor + RELATIVE_TOLERANCE * np.maximum(_compute_norms(x), _compute_norms(z))
    return primal & (_compute_norms(z - z_old) < floor + RELATIVE_TOLERANCE * _compute_norms(u))


class RidgeInverse:
    """The inverse of X X' + rho I, with any one row and column left out.

    With few features, it is applied by Woodbury's identity, which costs two products with X.
    """

    def __init__(self, X: Matrix, rho: float = 1.0) -> None:
        n, m = X.shape
        self.X = X
        self.rho = rho
        # With many features, one product with the inverse costs less than two products with X.
        self.is_wide = m >= n if sparse.issparse(X) else 2 * m >= n
        if self.is_wide:
            self.inverse = cho_solve(cho_factor(_to_dense(X @ X.T) + rho * np.eye(n)), np.eye(n))
            self.diagonal = np.diag(self.inverse).copy()
            return
        factor = cho_factor(_to_dense(X.T @ X) + rho * np.eye(m))
        # With half = X (X'X + rho I)^-1, the inverse is (I - half X') / rho.
        self.half = half = cho_solve(factor, _to_dense(X).T).T
        own = np.einsum("ij,ij->i", X, half) if isinstance(X, np.ndarray) else np.ravel(X.multiply(half).sum(axis=1))
        self.diagonal = (1.0 - own) / rho

    def leave_one_out(self, Q: FloatArray, left_out: IntArray) -> FloatArray:
        """Multiply column j of Q by the inverse without row and column left_out[j]: a new array.

        Q (n_samples, n_left_out) is 0 in the left-out rows, and so is the result. The inverse P
        without row and column i is P - P[:, i] P[i, :] / P[i, i] in the other rows and columns.
        """
        own = np.arange(len(left_out))
        if self.is_wide:
            T = self.inverse @ Q
            T -= self.inverse[:, left_out] * (T[left_out, own] / self.diagonal[left_out])
        else:
            # P Q - P[:, i] c = P (Q - e_i c) with c = (P Q)_i / P_ii, so that the correction is between the two products.
            V = self.X.T @ Q
            c = -np.einsum("ij,ji->i", self.half[left_out], V) / (self.rho * self.diagonal[left_out])
            V -= _to_dense(self.X[left_out]).T * c
            T = (Q - self.half @ V) / self.rho
        T[left_out, own] = 0.0
        return T


def _multiply_columns(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the inner product (n_columns,) of each column of A with the same column of B."""
    return np.einsum("ij,ij->j", A, B)


def _compute_norms(A: FloatArray) -> FloatArray:
    """Return the Euclidean norms of the columns."""
    return np.sqrt(_multiply_columns(A, A))


def _to_dense(A: Matrix) -> FloatArray:
    """Return A as a dense array, without a copy if it is one."""
    return A if isinstance(A, np.ndarray) else A.toarray()


def enrich_labels(
    W: sparse.csr_array, Y: IntArray, low: float = 1.0, high: float = 2.0, tol: float = 1e-6, max_iter: int = 20_000
) -> FloatArray:
    r"""Compute numerical labels that follow the structure of the features.

    .. math:: \mu_k = \arg\min_\mu \|(I - W) \mu\|^2 \quad \text{s.t.} \quad low \le y_{ik} \mu_i \le high

    The solver takes accelerated projected gradient steps with restarts, for all labels together. It stops
    when the objective of every label is certified to be within `tol` of its optimum, relative to the
    objective of Y. The certificate is
    :math:`\max_s \langle \nabla f(\mu), \mu - s \rangle \ge f(\mu) - f^*` over the box.

    Parameters
    ----------
    W : sparse array (n_samples, n_samples)
        Reconstruction weights of the rows.
    Y : array (n_samples, n_labels) of -1/+1
    low, high : float
        Bounds on the size of a numerical label.
    tol : float
        Relative tolerance of the objective.
    max_iter : int
        Largest number of steps.

    Returns
    -------
    mu : array (n_samples, n_labels)
        Numerical labels, with the signs of Y.
    """
    A = (sparse.eye_array(W.shape[0], format="csr") - W).tocsr()
    At = A.T.tocsr()
    signs = Y.astype(np.float64)
    lower = np.where(Y > 0, low, -high)
    upper = np.where(Y > 0, high, -low)
    step = 1.0 / (2.0 * _bound_squared_norm(A))
    bound = tol * np.maximum(_multiply_columns(A @ signs, A @ signs), np.finfo(float).tiny)
    mu = ahead = low * signs
    t = np.ones(mu.shape[1])
    for iteration in range(max_iter):
        gradient = 2.0 * (At @ (A @ ahead))
        # One check in ten steps costs little, and delays the end little.
        if iteration % 10 == 0 and np.all(_bound_gap(gradient, ahead, lower, upper) <= bound):
            return np.clip(ahead, lower, upper)
        mu_old = mu
        mu = np.clip(ahead - step * gradient, lower, upper)
        moved = mu - mu_old
        # Restart the momentum of a label if it points uphill.
        t = np.where(_multiply_columns(ahead - mu, moved) > 0, 1.0, t)
        t_next = 0.5 * (1 + np.sqrt(1 + 4 * t**2))
        ahead = np.clip(mu + (t - 1) / t_next * moved, lower, upper)
        t = t_next
    gap = _bound_gap(2.0 * (At @ (A @ mu)), mu, lower, upper)
    text = (
        f"Enriched labels stopped at max_iter={max_iter} with a gap up to {np.max(gap / bound):.1f} times the "
        "tolerance. Scale the features."
    )
    warnings.warn(text, ConvergenceWarning, stacklevel=users_level())
    return mu


def _bound_gap(gradient: FloatArray, mu: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return, for each label, a bound on the distance of its objective from the optimum.

    All arrays have the shape (n_samples, n_labels). `gradient` is the gradient at mu, which must be
    in the box between `lower` and `upper`.
    """
    return _multiply_columns(gradient, mu - np.where(gradient > 0, lower, upper))


def _bound_squared_norm(A: sparse.csr_array) -> float:
    """Return an upper bound on the squared spectral norm of A, for a step length.

    It is the product of the largest absolute column and row sums. If Lanczos finds a smaller value,
    that value plus 10 % is taken, because its tolerance is 1 %.
    """
    bound = abs(A).sum(axis=0).max() * abs(A).sum(axis=1).max()
    if min(A.shape) < 3:
        return float(bound)
    start = np.random.default_rng(0).standard_normal(A.shape[0])
    sigma = svds(A, k=1, tol=1e-2, v0=start, return_singular_vectors=False)[0]
    return float(min(bound, 1.1 * sigma**2))
