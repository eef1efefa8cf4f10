r"""Increasing maps from scores to probabilities, one for each label, learned together.

A label with three relevant rows cannot determine a map of its own. The sigmoids of all labels are
therefore part of one hierarchical model

.. math:: P(y_{ij} = 1) = \sigma(a_j f_{ij} + b_j), \qquad (a_j, b_j) \sim N(\mu, \Sigma)

where :math:`\mu` is the pooled map, and the covariance :math:`\Sigma` of the labels is learned from
the labels (empirical Bayes: expectation maximisation, with Laplace's approximation of each label's
posterior). A label with many relevant rows keeps its own map. A label with few relevant rows stays
near the pooled map, and nearer if the labels are alike. A single label has Platt's map.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from rbrl._common.typing import BoolArray, FloatArray, IntArray

# Number of rounds of expectation maximisation.
EM_ROUNDS = 8
# Maximal number of Newton steps of a label. It needs a few from the map of the previous round.
MAX_NEWTON_STEPS = 50
# Expected gain of a step, as a share of the weight of a row, below which Newton's method stops.
SMALLEST_GAIN = 1e-12
# Precision of the prior that keeps the equations regular if all scores of a label are equal.
WEAKEST_PRIOR = 1e-8
# Number of entries of a block: 8 MB for each of its arrays.
MAP_BLOCK_ENTRIES = 2**20
# Number of relevant rows (or irrelevant, if these are fewer) with which an isotonic map has the same weight as its sigmoid.
SIGMOID_ROWS = 50.0


class Scores(NamedTuple):
    """Held-out scores and their true labels.

    Attributes
    ----------
    values : array (n_samples, n_labels)
        Scores.
    relevant : array (n_samples, n_labels)
        Labels as floats, 1 or 0.
    weights : array (n_samples, n_labels)
        Weights; 0 if the label or the score is missing.
    totals : array (2, n_labels)
        Weight of the relevant and of the irrelevant rows of each label, including rows without a
        score.
    """

    values: FloatArray
    relevant: FloatArray
    weights: FloatArray
    totals: FloatArray

    @classmethod
    def from_labels(cls, scores: FloatArray, Y: IntArray, row_weights: FloatArray | None = None) -> "Scores":
        """Combine scores with labels in {-1, 0, +1}; missing labels and scores get the weight 0."""
        is_known = (Y != 0) & np.isfinite(scores)
        rows = np.ones(len(Y)) if row_weights is None else row_weights
        values = np.where(is_known, scores, 0.0).astype(np.float64)
        totals = np.stack([rows @ (Y > 0), rows @ (Y < 0)])
        return cls(values, (Y > 0).astype(np.float64), is_known * rows[:, None], totals)

    @property
    def n_relevant(self) -> FloatArray:
        """Weight of the relevant rows of each label."""
        return (self.weights * self.relevant).sum(axis=0)

    @property
    def n_irrelevant(self) -> FloatArray:
        """Weight of the irrelevant rows of each label."""
        return (self.weights * (1 - self.relevant)).sum(axis=0)

    def columns(self, which: BoolArray | slice) -> "Scores":
        """Return the scores of some labels."""
        return Scores(*(part[:, which] for part in self))

    def pool(self) -> "Scores":
        """Return the scores of all labels as those of one label."""
        values, relevant, weights = (part.reshape(-1, 1) for part in self[:3])
        return Scores(values, relevant, weights, self.totals.sum(axis=1, keepdims=True))


class Sigmoids(NamedTuple):
    """Maps :math:`\\sigma(a f + b)`.

    Attributes
    ----------
    slopes, intercepts : arrays (n_labels,)
        Slopes, not negative, and intercepts. A label with only relevant or only irrelevant rows has
        the slope 0.
    pooled : array (2,)
        Slope and intercept of the pooled map.
    """

    slopes: FloatArray
    intercepts: FloatArray
    pooled: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities of scores (n_samples, n_labels)."""
        # With a slope of 0, a score may be missing.
        products = np.where(self.slopes > 0, scores, 0.0) * self.slopes
        return expit(products + self.intercepts)


def fit_sigmoids(scores: Scores) -> Sigmoids:
    """Fit the map of every label, shrunk towards the pooled map.

    Examples
    --------
    >>> F, Y = np.array([[-2.0, 1.0], [-1.0, 0.5], [1.0, -1.0], [2.0, 0.2]]), np.array([[-1, 1], [1, 1], [-1, -1], [1, 1]])
    >>> maps = fit_sigmoids(Scores.from_labels(F, Y))
    >>> maps(F).round(1)
    array([[0.2, 0.9],
           [0.4, 0.8],
           [0.8, 0.4],
           [0.9, 0.7]])
    """
    learned = (scores.n_relevant > 0) & (scores.n_irrelevant > 0)
    # The probability of a constant label is its share, with an additional row of the mean share of
    # all labels. The mean share has an additional relevant row and an additional irrelevant row.
    n_relevant = scores.totals[0]
    n_rows = scores.totals.sum(axis=0)
    share = (n_relevant.sum() + 1) / (n_rows.sum() + 2)
    constant = (n_relevant + share) / (n_rows + 1)
    slopes = np.zeros(len(constant))
    intercepts = np.log(constant / (1 - constant))
    pooled = np.array([0.0, np.log(share / (1 - share))])
    if learned.any():
        centre, scale = _location(scores)
        standard = scores._replace(values=(scores.values - centre) / scale).columns(learned)
        mean, maps = _fit_hierarchical(standard)
        slopes[learned] = maps[:, 0] / scale
        intercepts[learned] = maps[:, 1] - maps[:, 0] * centre / scale
        pooled = np.array([mean[0] / scale, mean[1] - mean[0] * centre / scale])
    return Sigmoids(slopes, intercepts, pooled)


def _location(scores: Scores) -> tuple[float, float]:
    """Return the mean and the deviation of all scores, which are standardised with them."""
    total = scores.weights.sum()
    centre = (scores.weights * scores.values).sum() / total
    scale = np.sqrt((scores.weights * (scores.values - centre) ** 2).sum() / total)
    return float(centre), float(scale) or 1.0


def _fit_hierarchical(scores: Scores) -> tuple[FloatArray, FloatArray]:
    """Return slope and intercept of the pooled map, and those of every label, none decreasing."""
    n_labels = scores.values.shape[1]
    weak = WEAKEST_PRIOR * np.eye(2)
    pooled = _use_platt_targets(scores.pool())
    mean = _maximise_posterior(pooled, np.array([[1.0, 0.0]]), np.zeros(2), weak)[0][0]
    if n_labels == 1:
        return mean, _flatten_decreasing(pooled, mean[None], np.zeros(2), weak)
    maps = np.tile(mean, (n_labels, 1))
    precision = np.eye(2)
    for _ in range(EM_ROUNDS):
        maps, covariances = _maximise_posterior(scores, maps, mean, precision)
        mean = maps.mean(axis=0)
        deviations = maps - mean
        scatter = deviations[:, :, None] * deviations[:, None, :]
        precision = np.linalg.inv((scatter + covariances).mean(axis=0)) + weak
    maps, _ = _maximise_posterior(scores, maps, mean, precision)
    return mean, _flatten_decreasing(scores, maps, mean, precision)


def _use_platt_targets(scores: Scores) -> Scores:
    """Replace labels by Platt's targets, which keep maps finite without a prior.

    They are the shares after adding a relevant and an irrelevant row.
    """
    n_relevant = scores.n_relevant
    high = (n_relevant + 1) / (n_relevant + 2)
    low = 1 / (scores.n_irrelevant + 2)
    return scores._replace(relevant=np.where(scores.relevant > 0, high, low))


def _flatten_decreasing(scores: Scores, maps: FloatArray, mean: FloatArray, precision: FloatArray) -> FloatArray:
    """Replace decreasing maps by the best constant maps."""
    decreasing = maps[:, 0] < 0
    if decreasing.any():
        flat = scores.columns(decreasing)
        flat = flat._replace(values=np.zeros_like(flat.values))
        # With all scores 0, the slope has no effect, and the intercept is that of a constant map.
        maps = maps.copy()
        start = maps[decreasing] * [0, 1]
        maps[decreasing], _ = _maximise_posterior(flat, start, mean * [0, 1], precision * np.eye(2))
        maps[decreasing, 0] = 0.0
    return maps


def _maximise_posterior(
    scores: Scores, start: FloatArray, mean: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the most probable slope and intercept of every label, and Laplace's covariances."""
    maps = np.empty_like(start)
    covariances = np.empty((len(start), 2, 2))
    step = max(1, MAP_BLOCK_ENTRIES // len(scores.values))
    for first in range(0, len(start), step):
        part = slice(first, first + step)
        maps[part], covariances[part] = _newton(scores.columns(part), start[part], mean, precision)
    return maps, covariances


def _newton(
    scores: Scores, start: FloatArray, mean: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Run Newton's method for all labels at once; halve a step that makes a label worse."""
    z, t, w, _ = scores
    smallest_gain = SMALLEST_GAIN * max(float(w.sum(axis=0).max(initial=0.0)), 1.0)
    base = start
    step = np.zeros_like(start)
    value = np.full(len(start), np.inf)
    hessian = np.empty((len(start), 2, 2))
    for _ in range(MAX_NEWTON_STEPS):
        trial = base + step
        margins = z * trial[:, 0] + trial[:, 1]
        deviation = trial - mean
        prior_gradient = deviation @ precision
        loss = (w * (np.logaddexp(0, margins) - t * margins)).sum(axis=0)
        trial_value = loss + 0.5 * (deviation * prior_gradient).sum(axis=1)
        better = trial_value <= value + smallest_gain
        P = expit(margins)
        residual = w * (P - t)
        curvature = w * P * (1 - P)
        gradient = np.stack([(residual * z).sum(axis=0), residual.sum(axis=0)], axis=1) + prior_gradient
        mixed = (curvature * z).sum(axis=0)
        square = np.stack([(curvature * z * z).sum(axis=0), mixed, mixed, curvature.sum(axis=0)], axis=1)
        hessian = np.where(better[:, None, None], square.reshape(-1, 2, 2) + precision, hessian)
        newton = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        gain = np.where(better, -0.5 * (gradient * newton).sum(axis=1), np.inf)
        base = np.where(better[:, None], trial, base)
        value = np.where(better, trial_value, value)
        step = np.where(better[:, None], newton, 0.5 * step)
        if (gain <= smallest_gain).all():
            break
    return base, np.linalg.inv(hessian)


def fit_isotonic(scores: Scores, sigmoids: Sigmoids) -> list[FloatArray]:
    """Fit a map of any increasing form for every label, shrunk towards its sigmoid.

    The labels are mixed with the probabilities of the sigmoid, which have the weight
    :math:`50 / (50 + r)` for r relevant rows (or irrelevant rows, if these are fewer). Therefore no
    probability is 0 or 1.

    Returns
    -------
    list of arrays (2, n_knots)
        Scores of each label and their probabilities; the map is linear between them.

    Examples
    --------
    >>> F, Y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[-1], [1], [-1], [1]])
    >>> scores = Scores.from_labels(F, Y)
    >>> (knots,) = fit_isotonic(scores, fit_sigmoids(scores))
    >>> knots.round(2)
    array([[-2.  , -1.  ,  1.  ,  2.  ],
           [ 0.38,  0.47,  0.53,  0.62]])
    """
    P = sigmoids(scores.values)
    rarer = np.minimum(scores.n_relevant, scores.n_irrelevant)
    mixed = (rarer * scores.relevant + SIGMOID_ROWS * P) / (rarer + SIGMOID_ROWS)
    return [_increasing_knots(scores.values[:, j], mixed[:, j], scores.weights[:, j]) for j in range(P.shape[1])]


def _increasing_knots(values: FloatArray, targets: FloatArray, weights: FloatArray) -> FloatArray:
    counted = weights > 0
    if not counted.any():
        return np.empty((2, 0))
    # The targets of equal scores are averaged.
    scores, index = np.unique(values[counted], return_inverse=True)
    total = np.bincount(index, weights[counted])
    means = np.bincount(index, weights[counted] * targets[counted]) / total
    increasing = isotonic_regression(means, sample_weight=total)
    # Only the ends of a constant part are needed.
    inner = np.zeros(len(scores), dtype=bool)
    inner[1:-1] = (increasing[1:-1] == increasing[:-2]) & (increasing[1:-1] == increasing[2:])
    return np.stack([scores[~inner], increasing[~inner]])
