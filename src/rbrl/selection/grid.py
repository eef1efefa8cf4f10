"""Every point of a grid in every fold, for any classifier: the table behind a choice of parameters."""

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

from rbrl._common.extras import import_extra
from rbrl._common.linalg import one_thread
from rbrl._common.typing import Array, FloatArray, IntArray
from rbrl.decision import relevant_labels
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.exceptions import in_words
from rbrl.metrics import PAPER_METRICS, Metric, evaluate, get_metric, probabilities_of, scores_of
from rbrl.selection.choose import Grid, Scoring, Table
from rbrl.selection.path import Fold, SearchData

if TYPE_CHECKING:
    import pandas as pd


class Predicted(NamedTuple):
    """What a classifier of label matrices says of rows; None for what no metric needs, or it does not have.

    Attributes
    ----------
    labels : array (n_samples, n_labels) or None
    scores : array (n_samples, n_labels) or None
    probabilities : array (n_samples, n_labels) or None
    """

    labels: Array | None = None
    scores: FloatArray | None = None
    probabilities: FloatArray | None = None

    def judged(self, Y: Any, metrics: Iterable[str | Metric], convention: str) -> dict[str, float]:
        """Values by the names of metrics; NaN for those of probabilities, where there are none.

        Predictions that are NaN or infinite are refused: a method that gives them has failed.

        Parameters
        ----------
        Y : array (n_samples, n_labels)
            0/1; NaN where nobody looked.
        metrics : iterable of str or Metric
        convention : {"paper", "mulan", "sklearn"}

        Returns
        -------
        dict of str to float

        Examples
        --------
        >>> Predicted(labels=np.array([[1, 0]])).judged([[1, 1]], ["hamming_loss", "log_loss"], "paper")
        {'hamming_loss': 0.5, 'log_loss': nan}
        """
        for name, values in self._asdict().items():
            n_bad = 0 if values is None or values.dtype.kind != "f" else np.count_nonzero(~np.isfinite(values))
            if n_bad:
                raise ValueError(f"The {name} must be finite. Got NaN or infinity in {n_bad} of {values.size} entries.")
        asked = [get_metric(metric) for metric in metrics]
        known = [metric for metric in asked if metric.needs != "probabilities" or self.probabilities is not None]
        found = evaluate(Y, self.labels, self.scores, known, convention, "ignore", self.probabilities)
        return {metric.name: found.get(metric.name, np.nan) for metric in asked}


def predictions(estimator: Any, X: Any, metrics: Iterable[str | Metric]) -> Predicted:
    """What metrics need of a fitted classifier of label matrices, as far as it has it.

    Parameters
    ----------
    estimator : fitted classifier
    X : array, sparse matrix or data frame (n_samples, n_features)
    metrics : iterable of str or Metric

    Returns
    -------
    Predicted
    """
    needs = {get_metric(metric).needs for metric in metrics}
    likely = "probabilities" in needs and hasattr(estimator, "predict_proba")
    P = probabilities_of(estimator, X) if likely else None
    if isinstance(estimator, MultiLabelClassifier) and estimator.targets_.is_matrix:
        # By their contract predict cuts the scores at zero: one pass over the rows instead of two.
        scores = estimator.decision_function(X)
        relevant = relevant_labels(scores, estimator.non_empty_) if "labels" in needs else None
        return Predicted(None if relevant is None else relevant.astype(np.int64), scores, P)
    labels = None
    if "labels" in needs:
        labels = estimator.predict(X)
        labels = labels.toarray() if sparse.issparse(labels) else np.asarray(labels)
        labels = labels[:, None] if labels.ndim == 1 else labels
    return Predicted(labels, scores_of(estimator, X) if "scores" in needs else None, P)


# Parameters of an objective's classifier that change its design, not only its objective.
DESIGN_PARAMETERS = {
    "kernel", "gamma", "degree", "coef0", "low_rank", "fit_intercept", "approximation", "n_components", "random_state",
}  # fmt: skip


def tune(
    estimator: Any, grid: Grid, X: Any, Y: Any, *, folds: int | Iterable[tuple[IntArray, IntArray]] = 5, seed: int = 0,
    metrics: Iterable[str | Metric] = PAPER_METRICS, convention: str = "paper", n_jobs: int = 1, tol: float = 1e-4,
    others: Sequence[tuple[dict[str, Any], str]] = (),
) -> "pd.DataFrame":  # fmt: skip
    """Cross-validated metrics of every grid point.

    Models with an objective go along a path of warm starts. Others are fitted point by point, with `fit_many` where they
    have it.

    Parameters
    ----------
    estimator : classifier
    grid : dict of str to list
    X, Y : arrays or sparse matrices
        Y in 0/1; NaN where nobody looked, for classifiers that take it: metrics then leave it out.
    folds : int or iterable of (train, test), default=5
        How many, or the row numbers of each.
    seed : int, default=0
        Of the shuffled folds, where only their number is given.
    metrics : sequence of str or Metric
    convention : {"paper", "sklearn"}
    n_jobs : int, default=1
        Folds in parallel.
    tol : float, default=1e-4
        Expected gain of a step below which a model on a path is done.
    others : sequence of (dict, str), default=()
        Other decision rules that the same fits are judged by: `decision_parameters` of the estimator, and a convention.
        Models on a path are then fitted point by point.

    Returns
    -------
    DataFrame
        One row per point and fold: ``param_<name>``, ``fold``, the metrics (those of probabilities NaN where the estimator
        has no `predict_proba`), ``fit_seconds``, ``gap``, ``evaluations``; with `others` also ``rule``, 0 for the
        estimator's own and 1, 2, … for theirs, and ``error``: what judging by another rule raised, where its metrics are
        NaN, or nothing.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.selection import tune
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> table = tune(RBRLClassifier(), {"ridge": [1, 10]}, X, Y, folds=2)
    >>> table[["param_ridge", "fold"]].to_numpy().tolist()
    [[10, 0], [1, 0], [10, 1], [1, 1]]
    """
    names = [get_metric(metric).name for metric in metrics]
    shuffled = (
        KFold(folds, shuffle=True, random_state=seed).split(np.zeros(X.shape[0])) if isinstance(folds, int) else folds
    )
    # Where the rank is limited neighbours on the grid need not have close solutions, for those are local optima.
    of_any_rank = isinstance(estimator, ObjectiveClassifier) and estimator.max_rank is None and "max_rank" not in grid
    search = _along_path if of_any_rank and not others else _point_by_point
    task = _Task(estimator, grid, X, Y, names, [({}, convention), *others], tol)
    tables = Parallel(n_jobs=n_jobs)(delayed(search)(task, *split) for split in shuffled)
    pandas = import_extra("pandas", "report", "The table of a grid")
    return pandas.DataFrame([{**row, "fold": i} for i, table in enumerate(tables) for row in table])


class _Task(NamedTuple):
    """What every fold of a search has in common."""

    estimator: Any
    grid: Grid
    X: Any
    Y: Any
    names: list[str]
    rules: list[tuple[dict[str, Any], str]]
    tol: float


def points(grid: Grid) -> Table:
    """All combinations of a grid, the first name changing slowest.

    Parameters
    ----------
    grid : dict of str to sequence

    Returns
    -------
    list of dict

    Examples
    --------
    >>> points({"ridge": [1, 10], "nuclear": [0]})
    [{'ridge': 1, 'nuclear': 0}, {'ridge': 10, 'nuclear': 0}]
    """
    return [dict(zip(grid, values)) for values in itertools.product(*grid.values())]


def _along_path(task: _Task, train: IntArray, test: IntArray) -> Table:
    ((_, convention),) = task.rules
    grid = task.grid
    outer = {name: grid[name] for name in grid if name in DESIGN_PARAMETERS}
    inner = {name: grid[name] for name in grid if name not in DESIGN_PARAMETERS}
    inner = {name: sorted(inner[name], reverse=name == "ridge") for name in sorted(inner, key=lambda n: n != "ridge")}
    table, data = [], SearchData(task.X, np.asarray(task.Y))
    # Models with an objective have no probabilities.
    known = [name for name in task.names if get_metric(name).needs != "probabilities"]
    for shape in points(outer):
        model = clone(task.estimator).set_params(**shape)
        fold = Fold(model, data, train, test, Scoring(known, convention), task.tol)
        for row in fold.search(inner, final=True):
            values = {name: row.get(name, np.nan) for name in task.names}
            table.append(_row({**shape, **row["params"]}, values, row["seconds"], row["gap"], row["evaluations"]))
    return table


def _point_by_point(task: _Task, train: IntArray, test: IntArray) -> Table:
    table = []
    with one_thread():
        for params, model, seconds in _fitted(task.estimator, points(task.grid), task.X[train], task.Y[train]):
            certified = [getattr(model, name, np.nan) for name in ("gap_", "n_evaluations_")]
            for i, rule in enumerate(task.rules):
                values, error = _judged(model, task.X[test], task.Y[test], task.names, *rule, strict=i == 0)
                row = _row(params, values, seconds, *certified)
                table.append({**row, "rule": i, "error": error} if len(task.rules) > 1 else row)
    return table


def _judged(
    model: Any, X: Any, Y: Any, names: list[str], decision: dict[str, Any], convention: str, strict: bool
) -> tuple[dict[str, float], str]:
    """Metrics of a fitted model under a decision rule, and an error's text: only that of the first rule is raised."""
    try:
        predicted = predictions(model.set_params(**decision) if decision else model, X, names)
        return predicted.judged(Y, names, convention), ""
    except (Exception, SystemExit) as error:
        if strict:
            raise
        return dict.fromkeys(names, np.nan), in_words(error)


def _fitted(estimator: Any, points: Table, X: Any, Y: Any) -> Iterator[tuple[dict[str, Any], Any, float]]:
    """Yield parameters, fitted model and seconds of every point."""
    started = time.perf_counter()  # a `fit_many` may do all its work at once
    # Ours asks no more of a classifier than that it can be cloned: it serves those of others too.
    fit_many = getattr(type(estimator), "fit_many", MultiLabelClassifier.fit_many)
    for params, model in zip(points, fit_many(estimator, X, Y, points)):
        yield params, model, time.perf_counter() - started
        started = time.perf_counter()


def _row(params: dict[str, Any], values: dict[str, float], *measured: float) -> dict[str, Any]:
    named = {f"param_{name}": value for name, value in params.items()}
    return {**named, **values, **dict(zip(("fit_seconds", "gap", "evaluations"), measured, strict=True))}
