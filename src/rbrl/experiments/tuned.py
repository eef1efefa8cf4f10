"""Tune the grid points that are missing, and turn what a search gave into plain records."""

import json
import math
import numbers
import time

from rbrl.exceptions import in_words
from rbrl.experiments.folds import Fold, missing_points
from rbrl.experiments.methods import inner_names
from rbrl.metrics import get_metric
from rbrl.search import tune


def tune_missing(task, estimator, X, Y, known, others=()):
    """Tune the grid points that are not known; return (folds, seconds), the seconds those of the known ones too.

    The same fits are judged by the `others`, a sequence of OtherRule, whose `tuning` grows, or whose `error` says why it
    does not.
    """
    missing = missing_points(task, known)
    seconds = sum(fold.fit_seconds for fold in known if fold.point in set(task.points) - set(missing))
    if not missing:
        return [], seconds
    started = time.perf_counter()
    metrics = [get_metric(metric) for metric in task.metrics]
    options = {"folds": task.folds, "seed": task.seed, "metrics": metrics, "convention": task.convention}
    followed = [other for other in others if _can_follow(other)]
    if followed:
        options["others"] = [(other.parameters, other.task.convention) for other in followed]
    folds = []
    for grid in _as_grids(missing):
        used = time.process_time()
        table = tune(estimator, inner_names(estimator, grid), X, Y, **options)
        table["processor_seconds"] = _shared_out(time.process_time() - used, table, 1 + len(followed))
        own = table[table.rule == 0] if followed else table
        folds += _folds(own, estimator, missing, task.metrics)
        for i, other in enumerate(followed, 1):
            part = table[table.rule == i]
            other.error = other.error or next(filter(None, part.error), "")
            other.tuning += _folds(part[part.error == ""], estimator, missing, task.metrics)
    return folds, seconds + time.perf_counter() - started


def _can_follow(other):
    """Whether a fitted model can be given the parameters of another rule."""
    try:
        other.parameters  # noqa: B018  # built when asked for, by the method's own code
    except (Exception, SystemExit) as error:  # noqa: BLE001  # as of any method of a plan
        other.error = in_words(error)
    return not other.error


def _shared_out(seconds, table, n_rules):
    """What a search took, shared out to its rows by the time of their fits; under each rule the rows add up to it."""
    weights = table.fit_seconds.to_numpy() + 1e-9
    return seconds * n_rules * weights / weights.sum()


def _as_grids(points):
    """Points as full grids, of which a search can make one path; point by point where they fill none."""
    by_names: dict[tuple, list] = {}
    for point in map(json.loads, points):
        by_names.setdefault(tuple(point), []).append(point)
    grids = []
    for names, group in by_names.items():
        full = {name: _distinct(point[name] for point in group) for name in names}
        is_full = math.prod(len(values) for values in full.values()) == len(group)
        grids += [full] if is_full else [{name: [point[name]] for name in names} for point in group]
    return grids


def _distinct(values):
    return list({json.dumps(value): value for value in values}.values())


def _folds(table, estimator, points, metrics):
    """The rows of a search as records, each with the grid point that it belongs to."""
    named = {_signature(inner_names(estimator, json.loads(point))): point for point in points}
    columns = [name for name in table.columns if name.startswith("param_")]
    folds = []
    for row in table.to_dict("records"):
        params = {name.removeprefix("param_"): row[name] for name in columns if not _absent(row[name])}
        values = {metric: float(row[metric]) for metric in metrics}
        point = named[_signature(params)]
        measured = (float(row[name]) for name in ("fit_seconds", "gap", "evaluations", "processor_seconds"))
        folds.append(Fold(point, int(row["fold"]), values, *measured))
    return folds


def _signature(params):
    """Text that does not depend on what a table makes of numbers, such as 10.0 of 10 in a column with gaps."""
    return json.dumps({name: _plain(value) for name, value in params.items()}, sort_keys=True)


def _plain(value):
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return bool(value)
    return float(value) if isinstance(value, numbers.Real) else value


def _absent(value):
    return value is None or (isinstance(value, float) and math.isnan(value))
