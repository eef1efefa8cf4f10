"""How probable is it that one method is better than another, or that what they differ by does not matter?"""

from typing import NamedTuple

import numpy as np

from rbrl._common.typing import ArrayLike, FloatArray
from rbrl.statistics.friedman import as_table, check_control

# What differences of binary numbers are rounded by, and more, relative to the largest of them.
ROUNDING = 1e-12


class SignedRankProbabilities(NamedTuple):
    """Probabilities of the three answers for each pair of methods, or of a control with each method; they sum to 1.

    Attributes
    ----------
    better : array, shape (n_methods, n_methods) or (n_methods,)
        That the method of the row, or the control, is better than that of the column, by more than the region of
        equivalence.
    equivalent : array of the same shape
        That the two differ by less than matters; 0 without a region.
    worse : array of the same shape
        That the method of the row, or the control, is worse.

    Examples
    --------
    >>> from rbrl.statistics import bayesian_signed_rank
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
    r"""Bayesian signed-rank test of each pair of methods, with a region of practical equivalence (ROPE).

    The differences :math:`z_1, \dots, z_N` of two methods on the data sets come from a distribution of which we know
    nothing else: a Dirichlet process, with a pseudo-observation :math:`z_0 = 0` of weight `prior`. Weights drawn from
    its posterior, :math:`w \sim \mathrm{Dir}(\mathrm{prior}, 1, \dots, 1)`, give

    .. math:: \theta_{\text{better}} = \sum_{i,j} w_i w_j \, [z_i + z_j > 2 \cdot \mathrm{rope}]

    and likewise :math:`\theta_{\text{worse}}` and :math:`\theta_{\text{equivalent}}`: where the mean of two differences
    lies, as in Wilcoxon's test. The probability of an answer is the share of draws in which its :math:`\theta` is the
    largest. In contrast to a p-value it says how sure we may be that two methods are *equal* for all that matters, and
    it needs no correction for several comparisons.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric.
    greater_is_better : bool
        Direction of the metric.
    rope : float, default=0
        Differences up to this size do not matter, in units of the metric. 0: there is no third answer.
    control : int, default=None
        Column of a method: only its pairs are judged, and the answers have the shape (n_methods,). None: all pairs.
    prior : float, default=0.5
        Weight of the pseudo-observation; each data set has the weight 1.
    n_draws : int, default=50_000
        Draws from the posterior; a probability p has the standard error ``sqrt(p * (1 - p) / n_draws)``.
    seed : int, default=0
        Of the draws. All pairs are judged by the same ones.

    Returns
    -------
    SignedRankProbabilities

    References
    ----------
    Benavoli, Corani, Demšar and Zaffalon, *Time for a Change: a Tutorial for Comparing Multiple Classifiers Through
    Bayesian Analysis*, Journal of Machine Learning Research 18 (2017).

    Examples
    --------
    On five data sets the first method is a little better, and the third far behind.

    >>> from rbrl.statistics import bayesian_signed_rank
    >>> table = [[0.81, 0.80, 0.5], [0.71, 0.70, 0.4], [0.62, 0.60, 0.5], [0.9, 0.89, 0.3], [0.77, 0.77, 0.6]]
    >>> answer = bayesian_signed_rank(table, greater_is_better=True, rope=0.05)
    >>> answer.better[0].round(2).tolist(), answer.equivalent[0].round(2).tolist()
    ([0.0, 0.0, 1.0], [1.0, 1.0, 0.0])
    """
    table = as_table(values) if greater_is_better else -as_table(values)
    _check(rope, prior, n_draws)
    n_datasets, n_methods = table.shape
    if control is not None:
        check_control(control, n_methods)
    size = max(float(np.max(np.abs(table))), rope)
    weights = np.random.default_rng(seed).dirichlet([prior, *np.ones(n_datasets)], n_draws)
    # A method with itself.
    answers = np.empty((3, n_methods, n_methods))
    answers[:] = np.array([0.0, 1.0, 0.0] if rope > 0 else [0.5, 0.0, 0.5])[:, None, None]
    pairs = zip(*np.triu_indices(n_methods, k=1)) if control is None else ((control, j) for j in range(n_methods))
    for i, j in pairs:
        if i != j:
            answers[:, i, j] = _answers(_sums(table[:, i], table[:, j]), weights, rope, size)
            answers[:, j, i] = answers[::-1, i, j]
    return SignedRankProbabilities(*(answers if control is None else answers[:, control]))


def _check(rope: float, prior: float, n_draws: int) -> None:
    if not 0 <= rope < np.inf:
        raise ValueError(f"rope is a size of differences: it must be 0 or more, and finite. Got {rope!r} instead.")
    if not 0 < prior < np.inf:
        raise ValueError(f"prior is a weight beside the data sets' 1: it must be positive. Got {prior!r} instead.")
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1. Got {n_draws!r} instead.")


def _sums(first: FloatArray, second: FloatArray) -> FloatArray:
    """Differences and the 0 of the prior, each with each added."""
    differences = np.concatenate([[0.0], first - second])
    return differences[:, None] + differences


def _answers(sums: FloatArray, weights: FloatArray, rope: float, size: float) -> tuple[float, float, float]:
    """Shares of draws in which the first method is better, equivalent, worse; a draw without a winner is divided."""
    above, below = (np.sum((weights @ _beyond(side, 2 * rope, size)) * weights, axis=1) for side in (sums, -sums))
    between = 1 - above - below if rope > 0 else np.full_like(above, -1.0)  # without a region it never wins
    theta = np.column_stack([above, between, below])
    largest = theta >= theta.max(axis=1, keepdims=True) - ROUNDING
    better, equivalent, worse = np.mean(largest / largest.sum(axis=1, keepdims=True), axis=0)
    return float(better), float(equivalent), float(worse)


def _beyond(sums: FloatArray, border: float, size: float) -> FloatArray:
    """1 beyond the border, 0 within, 1/2 on it, where 0.3 - 0.2 and 0.1 are the same."""
    on_border = np.abs(sums - border) <= ROUNDING * size
    return np.where(on_border, 0.5, sums > border)
