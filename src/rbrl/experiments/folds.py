"""Results of tuning as plain records: what is known, and what is missing."""

from typing import NamedTuple


class Fold(NamedTuple):
    """What one grid point gave on one fold; `point` is JSON."""

    point: str
    fold: int
    values: dict
    fit_seconds: float
    gap: float
    evaluations: float


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
