"""Choose a grid point from what cross-validation says of each."""

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
DIGITS = 12


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
        Of tied points that with the stronger penalties, and of those the first.

    Examples
    --------
    >>> points = {'{"C": 1}': {"hamming_loss": [0.2, 0.3]}, '{"C": 10}': {"hamming_loss": [0.1, 0.2]}}
    >>> choose(points, "hamming_loss", ["hamming_loss"])
    {'C': 10}
    """
    candidates = [json.loads(point) for point in points]
    if len(candidates) == 1:
        return candidates[0]
    loss = np.mean([_ranks(points, name) for name in considered(criterion, metrics)], axis=0)
    order = sorted(range(len(candidates)), key=lambda i: (round(loss[i], DIGITS), *_weakness(candidates[i]), i))
    return candidates[order[0]]


def considered(criterion, metrics):
    """Names of the metrics that a criterion looks at."""
    if criterion == "mean_rank":
        return list(metrics)
    return [criterion] if isinstance(criterion, str) else list(criterion)


def _ranks(points, name):
    """Rank of each point by the mean over folds; a point without a value comes last."""
    better = get_metric(name).greater_is_better
    means = np.array([np.mean(values[name]) for values in points.values()], dtype=float).round(DIGITS)
    worst = -np.inf if better else np.inf
    return ranks([np.where(np.isnan(means), worst, means)], greater_is_better=better)[0]


def _weakness(point):
    """Smaller for stronger penalties, in the order of their names."""
    known = [(name, value) for name, value in sorted(point.items()) if isinstance(value, int | float)]
    return [
        -STRONGER[name.rpartition("__")[2]] * value for name, value in known if name.rpartition("__")[2] in STRONGER
    ]
