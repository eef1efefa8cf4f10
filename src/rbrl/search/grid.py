"""Every point of a grid in every fold, for any classifier: the table behind a choice of parameters."""

import itertools
import time

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

from rbrl._common.threads import one_thread
from rbrl.decision import NonEmpty, ZeroThreshold
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.exceptions import in_words
from rbrl.metrics import PAPER_METRICS, evaluate, get_metric, scores_of
from rbrl.search.choose import Scoring
from rbrl.search.path import SearchData, search_fold
from rbrl.targets import SignedTargets


def predictions(estimator, X, metrics):
    """Return (labels, scores) of a fitted classifier of label matrices; None for what no metric needs."""
    needs = {get_metric(metric).needs for metric in metrics}
    if isinstance(estimator, MultiLabelClassifier) and estimator.targets_.is_matrix:
        # By their contract predict cuts the scores at zero: one pass over the rows instead of two.
        scores = estimator.decision_function(X)
        rule = NonEmpty() if estimator.non_empty else ZeroThreshold()
        return (rule.labels(scores) if "labels" in needs else None), scores
    labels = _matrix(estimator.predict(X)) if "labels" in needs else None
    return labels, scores_of(estimator, X) if "scores" in needs else None


def _matrix(labels):
    labels = labels.toarray() if sparse.issparse(labels) else np.asarray(labels)
    return labels[:, None] if labels.ndim == 1 else labels


# Parameters of an objective's classifier that change its design, not only its objective.
DESIGN_PARAMETERS = {
    "kernel",
    "gamma",
    "degree",
    "coef0",
    "low_rank",
    "fit_intercept",
    "approximation",
    "n_components",
    "random_state",
}


def tune(
    estimator,
    grid,
    X,
    Y,
    *,
    folds=5,
    seed=0,
    metrics=PAPER_METRICS,
    convention="paper",
    n_jobs=1,
    tol=1e-4,
    others=(),
):
    """Cross-validated metrics of every grid point.

    Models with an objective go along a path of warm starts. Others are fitted point by point, with `fit_many` where they
    have it.

    Parameters
    ----------
    estimator : classifier
    grid : dict of str to list
    X, Y : arrays or sparse matrices
        Y in 0/1.
    folds : int, default=5
    seed : int, default=0
        Of the shuffled folds.
    metrics : sequence of str or Metric
    convention : {"paper", "sklearn"}
    n_jobs : int, default=1
        Folds in parallel.
    tol : float, default=1e-4
        Gain of a step below which a model on a path is done.
    others : sequence of (dict, str), default=()
        Other decision rules that the same fits are judged by: `decision_parameters` of the estimator, and a convention.
        Models on a path are then fitted point by point.

    Returns
    -------
    DataFrame
        One row per point and fold: ``param_<name>``, ``fold``, the metrics, ``fit_seconds``, ``gap``,
        ``evaluations``; with `others` also ``rule``, 0 for the estimator's own and 1, 2, … for theirs, and ``error``:
        what judging by another rule raised, where its metrics are NaN, or nothing.
    """
    names = [get_metric(metric).name for metric in metrics]
    splits = KFold(folds, shuffle=True, random_state=seed).split(np.zeros(X.shape[0]))
    search = _along_path if _has_path(estimator, grid) and not others else _point_by_point
    rules = [({}, convention), *others]
    jobs = (delayed(search)(estimator, grid, X, Y, *split, names, rules, tol) for split in splits)
    tables = Parallel(n_jobs=n_jobs)(jobs)
    return pd.DataFrame([{**row, "fold": i} for i, table in enumerate(tables) for row in table])


def _has_path(estimator, grid):
    """Whether neighbours on the grid have close solutions: not where the rank is limited, for those are local optima."""
    return isinstance(estimator, ObjectiveClassifier) and estimator.max_rank is None and "max_rank" not in grid


def points(grid):
    """All combinations of a grid, the first name changing slowest."""
    return [dict(zip(grid, values)) for values in itertools.product(*grid.values())]


def _along_path(estimator, grid, X, Y, train, test, names, rules, tol):
    ((_, convention),) = rules
    outer = {name: grid[name] for name in grid if name in DESIGN_PARAMETERS}
    inner = {name: grid[name] for name in grid if name not in DESIGN_PARAMETERS}
    inner = {name: sorted(inner[name], reverse=name == "ridge") for name in sorted(inner, key=lambda n: n != "ridge")}
    table = []
    for shape in points(outer):
        model = clone(estimator).set_params(**shape)
        data = SearchData(X, Y, SignedTargets().fit(np.asarray(Y)), None, model._is_precomputed())
        for row in search_fold(model, inner, data, train, test, Scoring(names, convention), tol):
            measured = (row[name] for name in ("seconds", "gap", "evaluations"))
            table.append(_row({**shape, **row["params"]}, {name: row[name] for name in names}, *measured))
    return table


def _point_by_point(estimator, grid, X, Y, train, test, names, rules, tol):
    table = []
    with one_thread():
        for params, model, seconds in _fitted(estimator, grid, X[train], Y[train]):
            certified = [getattr(model, name, np.nan) for name in ("gap_", "n_evaluations_")]
            for i, rule in enumerate(rules):
                values, error = _judged(model, X[test], Y[test], names, *rule, strict=i == 0)
                row = _row(params, values, seconds, *certified)
                table.append({**row, "rule": i, "error": error} if len(rules) > 1 else row)
    return table


def _judged(model, X, Y, names, decision, convention, strict):
    """Metrics of a fitted model under a decision rule, and an error's text: only that of the first rule is raised."""
    try:
        predicted = predictions(model.set_params(**decision) if decision else model, X, names)
        return evaluate(Y, *predicted, names, convention), ""
    except (Exception, SystemExit) as error:
        if strict:
            raise
        return dict.fromkeys(names, np.nan), in_words(error)


def _fitted(estimator, grid, X, Y):
    """Yield parameters, fitted model and seconds of every point."""
    started = time.perf_counter()
    for params, model in zip(points(grid), _models(estimator, points(grid), X, Y)):
        yield params, model, time.perf_counter() - started
        started = time.perf_counter()


def _models(estimator, points, X, Y):
    if hasattr(estimator, "fit_many"):
        return estimator.fit_many(X, Y, points)
    return (clone(estimator).set_params(**params).fit(X, Y) for params in points)


def _row(params, values, seconds, gap, evaluations):
    named = {f"param_{name}": value for name, value in params.items()}
    return {**named, **values, "fit_seconds": seconds, "gap": gap, "evaluations": evaluations}
