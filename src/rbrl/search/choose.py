"""Choose a grid point from what cross-validation says of each: one rule for ties, whoever searches."""

import json

import numpy as np

from rbrl.metrics import get_metric
from rbrl.statistics import ranks

# Parameters of which a larger (+1) or smaller (-1) value means a stronger penalty, a smoother or a simpler model.
STRONGER = {
    "ridge": 1,
    "nuclear": 1,
    "ranking": 1,
    "positive": 1,
    "negative": 1,
    "C": -1,
    "n_neighbors": 1,
    "beta1": -1,
}
# Losses and means that differ by less are equal: they are sums of the same numbers in another order.
DIGITS = 12


def best_index(points, losses):
    """Return the index of the grid point with the smallest loss.

    Parameters
    ----------
    points : sequence of dict
        Parameters of each point.
    losses : sequence of float
        Smaller is better; NaN is worst.

    Returns
    -------
    int
        Of tied points that with the stronger penalties, parameter by parameter in the order of their names, and of
        those the first.

    Examples
    --------
    >>> best_index([{"ridge": 10, "nuclear": 1}, {"ridge": 1, "nuclear": 10}, {"ridge": 1, "nuclear": 1}], [0, 0, 0])
    1
    """
    losses = rounded(losses)
    names = sorted({name for point in points for name in point if _inner(name) in STRONGER})
    return min(range(len(points)), key=lambda i: (losses[i], *_weakness(points[i], names), i))


def rounded(losses):
    """Losses of which those that tie are equal, and those that are NaN the largest."""
    losses = np.asarray(losses, dtype=float).round(DIGITS)
    return np.where(np.isnan(losses), np.inf, losses)


def choose(points, criterion, metrics):
    """Return the best grid point.

    Parameters
    ----------
    points : dict of str to dict of str to list
        Values of each metric on the folds, by grid point (JSON).
    criterion : str or sequence of str
        The name of a metric; several, of which the mean of a point's ranks by each counts; or "mean_rank": all of
        `metrics`.
    metrics : sequence of str

    Returns
    -------
    dict
        Of tied points the one that `best_index` takes.

    Examples
    --------
    >>> points = {'{"C": 1}': {"hamming_loss": [0.2, 0.3]}, '{"C": 10}': {"hamming_loss": [0.1, 0.2]}}
    >>> choose(points, "hamming_loss", ["hamming_loss"])
    {'C': 10}
    """
    candidates = [json.loads(point) for point in points]
    if len(candidates) == 1:
        return candidates[0]
    losses = np.mean([_ranks(points, name) for name in considered(criterion, metrics)], axis=0)
    return candidates[best_index(candidates, losses)]


def considered(criterion, metrics):
    """Names of the metrics that a criterion looks at."""
    if criterion == "mean_rank":
        return list(metrics)
    return [criterion] if isinstance(criterion, str) else list(criterion)


def _ranks(points, name):
    """Rank of each point by the mean over folds; a point without a value comes last."""
    sign = -1.0 if get_metric(name).greater_is_better else 1.0
    means = [np.mean(values[name]) for values in points.values()]
    return ranks([rounded(sign * np.array(means, dtype=float))], greater_is_better=False)[0]


def _weakness(point, names):
    """Smaller for stronger penalties, one number for each of `names`; 0 where a point has no number of that name."""
    values = (point.get(name) for name in names)
    return [-STRONGER[_inner(name)] * (v if isinstance(v, int | float) else 0.0) for name, v in zip(names, values)]


def _inner(name):
    """A parameter's own name, without those of the estimators around it."""
    return name.rpartition("__")[2]
