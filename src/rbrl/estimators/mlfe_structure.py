"""The first two stages of MLFE: the structure of the features, and labels enriched by it."""

import warnings
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import eye_array
from scipy.sparse.linalg import svds

from rbrl.exceptions import ConvergenceWarning

# Problems per block: a block's iterates stay in the processor's cache for moderate n.
BLOCK = 256


@dataclass(frozen=True)
class LassoADMM:
    r"""Lasso reconstruction of each row from the others, by over-relaxed ADMM in scaled form.

    .. math:: w_i = \arg\min_w \tfrac12 \|x_i - \sum_{j \ne i} w_j x_j\|^2 + \lambda_i \|w\|_1, \qquad
              \lambda_i = s \max_{j \ne i} |\langle x_j, x_i \rangle|

    The defaults, the loose tolerance included, are those of the authors of MLFE: the weights are the iterate at which
    this rule stops, not the exact solution.

    Parameters
    ----------
    strength : float
        s.
    rho, relaxation : float
        Penalty and relaxation of ADMM.
    absolute, relative : float
        Tolerances of the stopping rule.
    max_iter : int
    """

    strength: float = 0.01
    rho: float = 1.0
    relaxation: float = 0.5
    absolute: float = 1e-4
    relative: float = 1e-2
    max_iter: int = 1000

    def weights(self, X, n_jobs=None):
        """Weights W (n_samples, n_samples), row i those of x_i, as a sparse array; its diagonal is 0."""
        n = X.shape[0]
        solve = RidgeInverse(X, self.rho)
        blocks = [np.arange(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
        jobs = (delayed(self._solve_block)(X, solve, block) for block in blocks)
        return sparse.vstack(Parallel(n_jobs=n_jobs, prefer="threads")(jobs), format="csr")

    def _solve_block(self, X, solve, block):
        """Weights of the problems `block`; a column of the iterates is a problem, and leaves when it has converged."""
        own = np.arange(len(block))
        products = _dense(X @ X[block].T)
        products[block, own] = 0.0
        limit = self.strength * np.abs(products).max(axis=0) / self.rho
        found = np.zeros_like(products)
        z, u = np.zeros_like(products), np.zeros_like(products)
        for _ in range(self.max_iter):
            x = solve.leave_one_out(products + self.rho * (z - u), block)
            z_old, z = z, self._shrink(x, z, u, limit)
            going = ~self._converged(x, z, z_old, u)
            if going.all():
                continue
            found[:, own[~going]] = z[:, ~going]
            own, block, limit = own[going], block[going], limit[going]
            products, z, u = products[:, going], z[:, going], u[:, going]
            if not len(own):
                break
        found[:, own] = z
        return sparse.csr_array(found.T)

    def _shrink(self, x, z, u, limit):
        """The next z; u is updated in place."""
        u += self.relaxation * x
        u += (1 - self.relaxation) * z
        z = u.copy()
        np.clip(u, -limit, limit, out=u)
        z -= u
        return z

    def _converged(self, x, z, z_old, u):
        floor = np.sqrt(len(x) - 1) * self.absolute
        primal = floor + self.relative * np.maximum(_norms(x), _norms(z))
        dual = floor + self.relative * self.rho * _norms(u)
        return (_norms(x - z) < primal) & (self.rho * _norms(z - z_old) < dual)


class RidgeInverse:
    """The inverse of X X' + rho I, as a product, with any one row and column left out.

    With few features it is applied by Woodbury's identity, at the cost of two products with X.
    """

    def __init__(self, X, rho):
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
        self.half = cho_solve(factor, _dense(X).T).T
        self.diagonal = (1.0 - np.asarray(_rowsum(X, self.half))) / rho

    def leave_one_out(self, Q, left_out):
        """Column j of Q times the inverse without row and column left_out[j]; Q is 0 there, and so is the result.

        The inverse P without row and column i is P - P[:, i] P[i, :] / P[i, i] on the others.
        """
        own = np.arange(len(left_out))
        if self.is_wide:
            T = self.inverse @ Q
            T -= self.inverse[:, left_out] * (T[left_out, own] / self.diagonal[left_out])
        else:
            T = self._leave_one_out_woodbury(Q, left_out)
        T[left_out, own] = 0.0
        return T

    def _leave_one_out_woodbury(self, Q, left_out):
        # P Q - P[:, i] c = P (Q - e_i c) with c = (P Q)_i / P_ii: the correction enters between the two products.
        V = self.X.T @ Q
        c = -np.einsum("ij,ji->i", self.half[left_out], V) / (self.rho * self.diagonal[left_out])
        V -= _dense(self.X[left_out]).T * c
        return (Q - self.half @ V) / self.rho


def _norms(A):
    return np.sqrt(np.einsum("ij,ij->j", A, A))


def _rowsum(X, A):
    return np.ravel(X.multiply(A).sum(axis=1)) if sparse.issparse(X) else np.einsum("ij,ij->i", X, A)


def _dense(A):
    return A.toarray() if sparse.issparse(A) else A


def enrich_labels(W, Y, low=1.0, high=2.0, tol=1e-6, max_iter=20_000):
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
    A = (eye_array(W.shape[0], format="csr") - W).tocsr()
    At = A.T.tocsr()
    Y = Y.astype(np.float64)
    lower, upper = np.where(Y > 0, low, -high), np.where(Y > 0, high, -low)
    step = 1.0 / (2.0 * _squared_norm(A))
    scale = np.maximum(np.einsum("ij,ij->j", A @ Y, A @ Y), np.finfo(float).tiny)
    return _minimise(A, At, low * Y, lower, upper, step, tol * scale, max_iter)


def _minimise(A, At, mu, lower, upper, step, tol, max_iter):
    ahead, t = mu, np.ones(mu.shape[1])
    for iteration in range(max_iter):
        gradient = 2.0 * (At @ (A @ ahead))
        if iteration % 10 == 0 and np.all(_gap(gradient, ahead, lower, upper) <= tol):
            return np.clip(ahead, lower, upper)
        mu_old, mu = mu, np.clip(ahead - step * gradient, lower, upper)
        moved = mu - mu_old
        # Restart a label's momentum where it points uphill.
        t = np.where(np.einsum("ij,ij->j", ahead - mu, moved) > 0, 1.0, t)
        t_next = 0.5 * (1 + np.sqrt(1 + 4 * t**2))
        ahead, t = np.clip(mu + (t - 1) / t_next * moved, lower, upper), t_next
    gap = _gap(2.0 * (At @ (A @ mu)), mu, lower, upper)
    warnings.warn(
        f"Enriched labels stopped at max_iter={max_iter} with a gap up to {np.max(gap / tol):.1f} times its tolerance; "
        "the features may need scaling.",
        ConvergenceWarning,
        stacklevel=4,
    )
    return mu


def _gap(gradient, mu, lower, upper):
    """Bound on the distance of each label's objective from its optimum."""
    corner = np.where(gradient > 0, lower, upper)
    return np.einsum("ij,ij->j", gradient, mu - corner)


def _squared_norm(A):
    """An upper bound on the squared spectral norm of A, tight where Lanczos converges."""
    bound = abs(A).sum(axis=0).max() * abs(A).sum(axis=1).max()
    if min(A.shape) < 3:
        return float(bound)
    start = np.random.default_rng(0).standard_normal(A.shape[0])
    sigma = svds(A, k=1, tol=1e-2, v0=start, return_singular_vectors=False)[0]
    return float(min(bound, 1.1 * sigma**2))
