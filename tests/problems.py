"""Small random problems, the awkward rows always among them."""

import numpy as np
from scipy import sparse

from rbrl.losses import CostWeightedSquaredHinge, LabelGraph, PairwiseSquaredHinge, SquaredHinge, WeightedSum
from rbrl.problem import MatrixDesign, SpectralDesign
from rbrl.problem.linear import PresentColumns
from rbrl.problem.objective import Objective

# One example of each loss, and of their sums: the tests of losses run over it.
ALL_LOSSES = (
    SquaredHinge(),
    PairwiseSquaredHinge(),
    PairwiseSquaredHinge(margin=1.0),
    WeightedSum((1.0, SquaredHinge()), (0.3, PairwiseSquaredHinge())),
    CostWeightedSquaredHinge(np.array([0.0, 0.5, 1.0, 2.0, 4.0])),
    LabelGraph(5.0 * np.eye(5) - 1.0),
    WeightedSum((1.0, CostWeightedSquaredHinge(np.full(5, 2.0))), (0.1, LabelGraph(3.0 * np.eye(5) + 1.0))),
)


def row_design(X, constant=1.0):
    """Make the design over the rows of X that dual ascent visits, as a linear model does."""
    design = PresentColumns(X.tocsr()) if sparse.issparse(X) else MatrixDesign(X)
    design.constant = constant
    return design


def random_labels(rng, n=7, l=5):
    """Signed labels; row 0 all relevant, row 1 all irrelevant."""
    Y = np.where(rng.random((n, l)) < 0.4, np.int8(1), np.int8(-1))
    Y[0] = 1
    Y[1 : min(n, 2)] = -1
    return Y


def random_scores(seed, n=7, l=5):
    """Labels and scores on both sides of every margin."""
    rng = np.random.default_rng(seed)
    return random_labels(rng, n, l), 1.5 * rng.standard_normal((n, l))


def random_entries(seed, n=7, l=5):
    """Labels of which some are missing, in row 2 all, scores, and weights of the entries that are there."""
    Y, F = random_scores(seed, n, l)
    rng = np.random.default_rng(seed + 100)
    Y[rng.random(Y.shape) < 0.25] = 0
    Y[2] = 0
    return Y, F, np.where(Y != 0, 0.1 + 3 * rng.random(Y.shape), 0.0)


def random_gram(rng, n, kind="rbf"):
    """A positive semidefinite matrix: well conditioned ("rbf") or of rank n // 2 ("low_rank")."""
    if kind == "rbf":
        X = rng.standard_normal((n, 3))
        return np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    X = rng.standard_normal((n, n // 2))
    return X @ X.T


def random_design(rng, kind, n=12, m=6):
    """A design by name: dense, wide, sparse, or the kernel's with either low rank."""
    if kind in ("coefficients", "function"):
        return SpectralDesign(random_gram(rng, n), kind)
    if kind == "low_rank":
        return SpectralDesign(random_gram(rng, n, "low_rank"))
    X = rng.standard_normal((n, 2 * n if kind == "wide" else m))
    return MatrixDesign(sparse.csr_array(np.where(rng.random(X.shape) < 0.5, X, 0.0)) if kind == "sparse" else X)


DESIGNS = ("dense", "wide", "sparse", "coefficients", "function", "low_rank")


def rbrl_loss(ranking):
    return WeightedSum((1.0, SquaredHinge()), (ranking, PairwiseSquaredHinge()))


def random_objective(rng, kind="dense", lambdas=(1.0, 0.5, 0.3), n=12, l=4, weights=None):
    """RBRL over a random design."""
    ridge, ranking, nuclear = lambdas
    return Objective(random_design(rng, kind, n), random_labels(rng, n, l), rbrl_loss(ranking), ridge, nuclear, weights)


def central_differences(function, x, step=1e-6):
    """Derivatives of `function` (of any output shape) in every entry of x, along the last axis."""
    columns = []
    for k in range(x.size):
        e = np.zeros(x.size)
        e[k] = step
        e = e.reshape(x.shape)
        columns.append((np.asarray(function(x + e)) - np.asarray(function(x - e))) / (2 * step))
    return np.stack(columns, axis=-1)
