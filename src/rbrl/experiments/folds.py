"""Results of tuning as plain records: what is known, and what is missing."""

from math import isnan
from typing import NamedTuple


class Fold(NamedTuple):
    """What one grid point gave on one fold; `point` is JSON.

    `processor_seconds` is its part of the search's processor time, judging and preparing included; NaN where it was not
    recorded.
    """

    point: str
    fold: int
    values: dict
    fit_seconds: float
    gap: float
    evaluations: float
    processor_seconds: float = float("nan")


def missing_points(task, known):
    """Grid points of which not every fold and metric is known."""
    complete = by_point(task, known)
    return [point for point in task.points if point not in complete]


def by_point(task, folds):
    """Values of the plan's metrics on the folds, by grid point: only points of the grid, and only complete ones."""
    found: dict[str, dict[int, dict]] = {point: {} for point in task.points}
    for one in folds:
        if one.point in found and set(task.metrics) <= set(one.values):
            found[one.point][one.fold] = one.values
    return {
        point: {metric: [rows[fold][metric] for fold in sorted(rows)] for metric in task.metrics}
        for point, rows in found.items()
        if len(rows) == task.folds
    }


def processor_seconds(task, known):
    """Processor time of the searches that gave what is known of a run's grid, as far as it was recorded."""
    complete = by_point(task, known)
    recorded = (one.processor_seconds for one in known if one.point in complete)
    return sum(seconds for seconds in recorded if not isnan(seconds))
