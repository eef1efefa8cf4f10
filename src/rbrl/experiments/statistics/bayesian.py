"""Bayesian comparison: the probability that a method is better than another, or practically equal."""

from typing import NamedTuple

import numpy as np

from rbrl._common.typing import ArrayLike, FloatArray
from rbrl.experiments.statistics.friedman_test import check_control, oriented_values

# Rounding error of a difference of two values, relative to the largest value; on the safe side.
RELATIVE_ROUNDING = 1e-12


class SignedRankProbabilities(NamedTuple):
    """Probabilities of the three answers for each pair of methods; they sum to 1.

    Attributes
    ----------
    better : array, shape (n_methods, n_methods) or (n_methods,)
        Probability that the method of the row, or the control, is better than the method of the
        column by more than the region of equivalence.
    equivalent : array of the same shape
        Probability that the two methods are practically equal; 0 without a region of equivalence.
    worse : array of the same shape
        Probability that the method of the row, or the control, is worse.

    Examples
    --------
    >>> from rbrl.experiments.statistics import bayesian_signed_rank
    >>> values = [[0.9, 0.5], [0.8, 0.4], [0.9, 0.6], [0.7, 0.3], [0.8, 0.5]]  # data sets x methods
    >>> answer = bayesian_signed_rank(values, greater_is_better=True, rope=0.01)
    >>> bool(answer.better[0, 1] > 0.9), bool(answer.worse[0, 1] < 0.1)
    (True, True)
    """

    better: FloatArray
    equivalent: FloatArray
    worse: FloatArray


def bayesian_signed_rank(
    values: ArrayLike,
    greater_is_better: bool,
    rope: float = 0.0,
    *,
    control: int | None = None,
    prior: float = 0.5,
    n_draws: int = 50_000,
    seed: int = 0,
) -> SignedRankProbabilities:
    r"""Bayesian signed-rank test of each pair of methods, with a region of practical equivalence.

    The differences :math:`z_1, \dots, z_N` of two methods on the data sets are a sample of an
    unknown distribution. Its prior is a Dirichlet process with a pseudo-observation
    :math:`z_0 = 0` of weight `prior`. A draw from the posterior has the weights
    :math:`w \sim \mathrm{Dir}(\mathrm{prior}, 1, \dots, 1)` and gives

    .. math:: \theta_{\text{better}} = \sum_{i,j} w_i w_j \, [z_i + z_j > 2 \cdot \mathrm{rope}]

    and likewise :math:`\theta_{\text{worse}}` and :math:`\theta_{\text{equivalent}}`. The
    probability of an answer is the share of draws in which its :math:`\theta` is the largest. In
    contrast to a p-value, it can show that two methods are practically *equal*, and it needs no
    correction for several comparisons.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        Values of one metric.
    greater_is_better : bool
        Direction of the metric.
    rope : float, default=0
        Largest difference without practical importance, in units of the metric. With 0, no two
        methods are practically equal.
    control : int, default=None
        Column of a control method. Only pairs with the control are tested, and the answers have
        the shape (n_methods,). By default, all pairs are tested.
    prior : float, default=0.5
        Weight of the pseudo-observation; each data set has the weight 1.
    n_draws : int, default=50_000
        Number of draws from the posterior. A probability p has the standard error
        ``sqrt(p * (1 - p) / n_draws)``.
    seed : int, default=0
        Seed of the draws. All pairs use the same draws.

    Returns
    -------
    SignedRankProbabilities

    References
    ----------
    Benavoli, Corani, Demšar and Zaffalon, *Time for a Change: a Tutorial for Comparing Multiple
    Classifiers Through Bayesian Analysis*, Journal of Machine Learning Research 18 (2017).

    Examples
    --------
    On five data sets the first method is slightly better than the second, and the third is far worse.

    >>> from rbrl.experiments.statistics import bayesian_signed_rank
    >>> table = [[0.81, 0.80, 0.5], [0.71, 0.70, 0.4], [0.62, 0.60, 0.5], [0.9, 0.89, 0.3], [0.77, 0.77, 0.6]]
    >>> answer = bayesian_signed_rank(table, greater_is_better=True, rope=0.05)
    >>> answer.better[0].round(2).tolist(), answer.equivalent[0].round(2).tolist()
    ([0.0, 0.0, 1.0], [1.0, 1.0, 0.0])
    """
    table = oriented_values(values, greater_is_better)
    _check_options(rope, prior, n_draws)
    n_datasets, n_methods = table.shape
    if control is not None:
        check_control(control, n_methods)
    scale = max(float(np.max(np.abs(table))), rope)
    weights = np.random.default_rng(seed).dirichlet([prior, *np.ones(n_datasets)], n_draws)
    answers = np.empty((3, n_methods, n_methods))
    # The answers for a method and itself; the loop sets all others.
    answers[:] = np.array([0.0, 1.0, 0.0] if rope > 0 else [0.5, 0.0, 0.5])[:, None, None]
    pairs = zip(*np.triu_indices(n_methods, k=1)) if control is None else ((control, j) for j in range(n_methods))
    for i, j in pairs:
        if i != j:
            answers[:, i, j] = _test_pair(table[:, i] - table[:, j], weights, rope, scale)
            answers[:, j, i] = answers[::-1, i, j]
    return SignedRankProbabilities(*(answers if control is None else answers[:, control]))


def _check_options(rope: float, prior: float, n_draws: int) -> None:
    if not 0 <= rope < np.inf:
        raise ValueError(f"rope is the size of a difference: it must be finite and at least 0. Got {rope!r} instead.")
    if not 0 < prior < np.inf:
        raise ValueError(f"prior is a weight: it must be finite and positive. Got {prior!r} instead.")
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1. Got {n_draws!r} instead.")


def _test_pair(differences: FloatArray, weights: FloatArray, rope: float, scale: float) -> tuple[float, float, float]:
    """Return the shares of draws in which the first method is better, equivalent and worse.

    A draw in which two answers are equally likely is shared between them.
    """
    extended = np.concatenate([[0.0], differences])  # the 0 is the pseudo-observation of the prior
    sums = extended[:, None] + extended
    above = np.sum((weights @ _exceeds(sums, 2 * rope, scale)) * weights, axis=1)
    below = np.sum((weights @ _exceeds(-sums, 2 * rope, scale)) * weights, axis=1)
    between = 1 - above - below if rope > 0 else np.full_like(above, -1.0)  # -1 is never the largest
    theta = np.column_stack([above, between, below])
    largest = theta >= theta.max(axis=1, keepdims=True) - RELATIVE_ROUNDING
    better, equivalent, worse = np.mean(largest / largest.sum(axis=1, keepdims=True), axis=0)
    return float(better), float(equivalent), float(worse)


def _exceeds(sums: FloatArray, bound: float, scale: float) -> FloatArray:
    """Return 1 for a sum above the bound, 0 below, and 1/2 where they are equal up to rounding."""
    is_equal = np.abs(sums - bound) <= RELATIVE_ROUNDING * scale
    return np.where(is_equal, 0.5, sums > bound)
