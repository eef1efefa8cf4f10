"""Second stage of MLFE: labels enriched to real numbers, one box-constrained quadratic program per label."""

import warnings

import numpy as np
from scipy.sparse import eye_array
from scipy.sparse.linalg import svds

from rbrl.exceptions import ConvergenceWarning


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
