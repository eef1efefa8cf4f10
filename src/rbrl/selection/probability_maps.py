r"""From scores to probabilities: a rising map for every label, each learned with the help of the others.

A label with three relevant rows says next to nothing about a map of its own. The sigmoids

.. math:: P(y_{ij} = 1) = \sigma(a_j f_{ij} + b_j), \qquad (a_j, b_j) \sim N(\mu, \Sigma)

are therefore those of one hierarchical model: :math:`\mu` is the pooled map, and :math:`\Sigma`, how far labels are from it,
is learned from the labels themselves (empirical Bayes: expectation maximisation, with Laplace's approximation of each
label's posterior). A label with many relevant rows keeps Platt's map of its own; one with few stays near the pooled
map, the nearer the more alike the labels are. A single label is Platt's case.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from rbrl._common.typing import BoolArray, FloatArray, IntArray

# Rounds of expectation maximisation: with 60 the log losses of ten data sets differ by 2e-4 at most, of the smallest two
# (emotions, flags) by 1e-3, for better or worse.
ROUNDS = 8
# Newton's steps of a label: a few from the map of the round before, a dozen from the pooled one.
MOST_STEPS = 50
# A step is the last one when it is expected to gain less than this share of a row's weight.
SMALLEST_GAIN = 1e-12
# Keeps the equations of labels regular whose scores are all equal.
WEAKEST_PRIOR = 1e-8
# Entries at a time: 8 MB for each of the arrays of a block.
BLOCK_ENTRIES = 2**20
# An isotonic map is worth as much as its sigmoid where so many rows are relevant (or irrelevant, if these are fewer): of
# 3, 10, 20 and 50 rows the last gave the smallest log loss on nine of ten data sets with 1,000 rows.
SIGMOID_ROWS = 50.0


class Scores(NamedTuple):
    """Scores of rows that their model has not seen, and what is true of them.

    Attributes
    ----------
    values : array (n_samples, n_labels)
    relevant : array (n_samples, n_labels) of floats
        1 or 0.
    weights : array (n_samples, n_labels)
        0 where label or score is not known.
    totals : array (2, n_labels)
        Weight of the relevant and of the irrelevant rows of each label, also of those without a score.
    """

    values: FloatArray
    relevant: FloatArray
    weights: FloatArray
    totals: FloatArray

    @classmethod
    def known(cls, scores: FloatArray, Y: IntArray, row_weights: FloatArray | None = None) -> "Scores":
        """Those of labels in {-1, 0, +1}; what is 0 there, or has no finite score, counts nothing.

        Parameters
        ----------
        scores : array (n_samples, n_labels)
        Y : array (n_samples, n_labels)
        row_weights : array (n_samples,), default=None

        Returns
        -------
        Scores
        """
        is_known, rows = (Y != 0) & np.isfinite(scores), np.ones(len(Y)) if row_weights is None else row_weights
        values = np.where(is_known, scores, 0.0).astype(np.float64)
        return cls(
            values, (Y > 0).astype(np.float64), is_known * rows[:, None], np.stack([rows @ (Y > 0), rows @ (Y < 0)])
        )

    @property
    def n_relevant(self) -> FloatArray:
        """Weight of the relevant rows of each label."""
        return (self.weights * self.relevant).sum(axis=0)

    @property
    def n_irrelevant(self) -> FloatArray:
        """Weight of the irrelevant rows of each label."""
        return (self.weights * (1 - self.relevant)).sum(axis=0)

    def columns(self, which: BoolArray | slice) -> "Scores":
        """Those of some labels."""
        return Scores(*(part[:, which] for part in self))

    def pooled(self) -> "Scores":
        """Those of all labels, as if they were one."""
        values, relevant, weights = (part.reshape(-1, 1) for part in self[:3])
        return Scores(values, relevant, weights, self.totals.sum(axis=1, keepdims=True))


class Sigmoids(NamedTuple):
    """Maps :math:`\\sigma(a f + b)`.

    Attributes
    ----------
    slopes, intercepts : arrays (n_labels,)
        No slope is negative: probabilities rise with the scores. A label of which only relevant or only irrelevant rows
        are known has the slope 0.
    pooled : array (2,)
        Slope and intercept of the pooled map.
    """

    slopes: FloatArray
    intercepts: FloatArray
    pooled: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Probabilities of scores (n_samples, n_labels)."""
        # A slope of 0 makes a constant of any score, also of one that is not known.
        products = np.where(self.slopes > 0, scores, 0.0) * self.slopes
        return expit(products + self.intercepts)


def fit_sigmoids(scores: Scores) -> Sigmoids:
    """The map of every label, shrunk towards the pooled one.

    Parameters
    ----------
    scores : Scores

    Returns
    -------
    Sigmoids

    Examples
    --------
    >>> F, Y = np.array([[-2.0, 1.0], [-1.0, 0.5], [1.0, -1.0], [2.0, 0.2]]), np.array([[-1, 1], [1, 1], [-1, -1], [1, 1]])
    >>> maps = fit_sigmoids(Scores.known(F, Y))
    >>> maps(F).round(1)
    array([[0.2, 0.9],
           [0.4, 0.8],
           [0.8, 0.4],
           [0.9, 0.7]])
    """
    learned = (scores.n_relevant > 0) & (scores.n_irrelevant > 0)
    # A constant label: its share, and one row more that is like all labels together (with a row of each kind more).
    (n_relevant, _), n_rows = scores.totals, scores.totals.sum(axis=0)
    share = (n_relevant.sum() + 1) / (n_rows.sum() + 2)
    constant = (n_relevant + share) / (n_rows + 1)
    slopes, intercepts = np.zeros(len(constant)), np.log(constant / (1 - constant))
    pooled = np.array([0.0, np.log(share / (1 - share))])
    if learned.any():
        centre, scale = _location(scores)
        standard = scores._replace(values=(scores.values - centre) / scale).columns(learned)
        mean, found = _hierarchical(standard)
        slopes[learned], intercepts[learned] = found[:, 0] / scale, found[:, 1] - found[:, 0] * centre / scale
        pooled = np.array([mean[0] / scale, mean[1] - mean[0] * centre / scale])
    return Sigmoids(slopes, intercepts, pooled)


def _location(scores: Scores) -> tuple[float, float]:
    """Mean and deviation of all scores: what is learned does not depend on their units."""
    total = scores.weights.sum()
    centre = (scores.weights * scores.values).sum() / total
    scale = np.sqrt((scores.weights * (scores.values - centre) ** 2).sum() / total)
    return float(centre), float(scale) or 1.0


def _hierarchical(scores: Scores) -> tuple[FloatArray, FloatArray]:
    """The pooled (slope, intercept), and those of every label (n_labels, 2), none of them falling."""
    n_labels, weak = scores.values.shape[1], WEAKEST_PRIOR * np.eye(2)
    everything = _platt(scores.pooled())
    mean, _ = _most_probable(everything, np.array([[1.0, 0.0]]), np.zeros(2), weak)
    mean = mean[0]
    if n_labels == 1:
        return mean, _rising(everything, mean[None], np.zeros(2), weak)
    maps, precision = np.tile(mean, (n_labels, 1)), np.eye(2)
    for _ in range(ROUNDS):
        maps, covariances = _most_probable(scores, maps, mean, precision)
        mean = maps.mean(axis=0)
        apart = maps - mean
        precision = np.linalg.inv((apart[:, :, None] * apart[:, None, :] + covariances).mean(axis=0)) + weak
    maps, _ = _most_probable(scores, maps, mean, precision)
    return mean, _rising(scores, maps, mean, precision)


def _platt(scores: Scores) -> Scores:
    """Platt's targets: one relevant and one irrelevant row more, of unknown score; without a prior they keep maps finite."""
    n_relevant, n_irrelevant = scores.n_relevant, scores.n_irrelevant
    high, low = (n_relevant + 1) / (n_relevant + 2), 1 / (n_irrelevant + 2)
    return scores._replace(relevant=np.where(scores.relevant > 0, high, low))


def _rising(scores: Scores, maps: FloatArray, mean: FloatArray, precision: FloatArray) -> FloatArray:
    """The maps, and instead of falling ones the best that are constant."""
    falling = maps[:, 0] < 0
    if falling.any():
        flat = scores.columns(falling)
        flat = flat._replace(values=np.zeros_like(flat.values))
        # All scores 0: only the prior speaks of the slope, which does not matter; the intercept is that of a constant.
        maps = maps.copy()
        maps[falling], _ = _most_probable(flat, maps[falling] * [0, 1], mean * [0, 1], precision * np.eye(2))
        maps[falling, 0] = 0.0
    return maps


def _most_probable(
    scores: Scores, start: FloatArray, mean: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The most probable (slope, intercept) of every label under a normal prior, and Laplace's covariances."""
    maps, covariances = np.empty_like(start), np.empty((len(start), 2, 2))
    step = max(1, BLOCK_ENTRIES // len(scores.values))
    for first in range(0, len(start), step):
        part = slice(first, first + step)
        maps[part], covariances[part] = _newton(scores.columns(part), start[part], mean, precision)
    return maps, covariances


def _newton(
    scores: Scores, start: FloatArray, mean: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Newton's method for all labels at once; a step that makes a label worse is halved."""
    z, t, w, _ = scores
    enough = SMALLEST_GAIN * max(float(w.sum(axis=0).max(initial=0.0)), 1.0)
    base, step, value = start, np.zeros_like(start), np.full(len(start), np.inf)
    hessian = np.empty((len(start), 2, 2))
    for _ in range(MOST_STEPS):
        trial = base + step
        margins = z * trial[:, 0] + trial[:, 1]
        apart = trial - mean
        pulled = apart @ precision
        found = (w * (np.logaddexp(0, margins) - t * margins)).sum(axis=0) + 0.5 * (apart * pulled).sum(axis=1)
        better = found <= value + enough
        P = expit(margins)
        residual, curvature = w * (P - t), w * P * (1 - P)
        gradient = np.stack([(residual * z).sum(axis=0), residual.sum(axis=0)], axis=1) + pulled
        mixed = (curvature * z).sum(axis=0)
        square = np.stack([(curvature * z * z).sum(axis=0), mixed, mixed, curvature.sum(axis=0)], axis=1)
        hessian = np.where(better[:, None, None], square.reshape(-1, 2, 2) + precision, hessian)
        newton = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        gain = np.where(better, -0.5 * (gradient * newton).sum(axis=1), np.inf)
        base, value = np.where(better[:, None], trial, base), np.where(better, found, value)
        step = np.where(better[:, None], newton, 0.5 * step)
        if (gain <= enough).all():
            break
    return base, np.linalg.inv(hessian)


def fit_isotonic(scores: Scores, sigmoids: Sigmoids) -> list[FloatArray]:
    """A map of free, rising form for every label, shrunk towards its sigmoid.

    The rows' labels are mixed with what the sigmoid says of them, the more so the fewer there are: with
    r relevant rows (or irrelevant ones, if they are fewer) it counts :math:`50 / (50 + r)`. So no probability is 0 or 1.

    Parameters
    ----------
    scores : Scores
    sigmoids : Sigmoids

    Returns
    -------
    list of arrays (2, n_knots)
        Of each label scores and their probabilities, between which lines are drawn.

    Examples
    --------
    >>> F, Y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[-1], [1], [-1], [1]])
    >>> scores = Scores.known(F, Y)
    >>> (knots,) = fit_isotonic(scores, fit_sigmoids(scores))
    >>> knots.round(2)
    array([[-2.  , -1.  ,  1.  ,  2.  ],
           [ 0.38,  0.47,  0.53,  0.62]])
    """
    P = sigmoids(scores.values)
    rarer = np.minimum(scores.n_relevant, scores.n_irrelevant)
    mixed = (rarer * scores.relevant + SIGMOID_ROWS * P) / (rarer + SIGMOID_ROWS)
    return [_rising_knots(scores.values[:, j], mixed[:, j], scores.weights[:, j]) for j in range(P.shape[1])]


def _rising_knots(values: FloatArray, targets: FloatArray, weights: FloatArray) -> FloatArray:
    counted = weights > 0
    if not counted.any():
        return np.empty((2, 0))
    # Equal scores are one: their targets are averaged.
    scores, place = np.unique(values[counted], return_inverse=True)
    total = np.bincount(place, weights[counted])
    means = np.bincount(place, weights[counted] * targets[counted]) / total
    rising = isotonic_regression(means, sample_weight=total)
    # Of a level part only the ends are needed.
    inner = np.zeros(len(scores), dtype=bool)
    inner[1:-1] = (rising[1:-1] == rising[:-2]) & (rising[1:-1] == rising[2:])
    return np.stack([scores[~inner], rising[~inner]])
