"""Cross-validated metrics of every grid point, for any classifier."""

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
from rbrl.estimators.convex import ConvexClassifier
from rbrl.exceptions import in_words
from rbrl.metrics import PAPER_METRICS, Metric, evaluate, get_metric, probabilities_of, scores_of
from rbrl.selection.choose import Grid, Scoring, Table
from rbrl.selection.path import Fold, SearchData

if TYPE_CHECKING:
    import pandas as pd


class Predictions(NamedTuple):
    """Predicted labels, scores and probabilities (n_samples, n_labels); None if not available."""

    labels: Array | None = None
    scores: FloatArray | None = None
    probabilities: FloatArray | None = None

    def evaluate(self, Y: Any, metrics: Iterable[str | Metric], convention: str) -> dict[str, float]:
        """Return the values of metrics by name; NaN for metrics of probabilities if there are none.

        The labels Y are 0/1, with NaN for a missing label. Predictions that are NaN or infinite are
        rejected, because the method that returned them has failed.

        Examples
        --------
        >>> Predictions(labels=np.array([[1, 0]])).evaluate([[1, 1]], ["hamming_loss", "log_loss"], "paper")
        {'hamming_loss': 0.5, 'log_loss': nan}
        """
        for name, values in self._asdict().items():
            n_bad = 0 if values is None or values.dtype.kind != "f" else np.count_nonzero(~np.isfinite(values))
            if n_bad:
                raise ValueError(f"The {name} must be finite. Got NaN or infinity in {n_bad} of {values.size} entries.")
        records = [get_metric(metric) for metric in metrics]
        computable = [metric for metric in records if metric.needs != "probabilities" or self.probabilities is not None]
        values = evaluate(Y, self.labels, self.scores, computable, convention, "ignore", self.probabilities)
        return {metric.name: values.get(metric.name, np.nan) for metric in records}


def predict_for_metrics(estimator: Any, X: Any, metrics: Iterable[str | Metric]) -> Predictions:
    """Return the predictions of a fitted classifier of label matrices that some metrics need."""
    needs = {get_metric(metric).needs for metric in metrics}
    has_probabilities = "probabilities" in needs and hasattr(estimator, "predict_proba")
    P = probabilities_of(estimator, X) if has_probabilities else None
    labels = None
    if isinstance(estimator, MultiLabelClassifier) and estimator.targets_.is_matrix:
        # The labels of these classifiers follow from the scores: one pass over the rows is enough.
        scores = estimator.decision_function(X)
        if "labels" in needs:
            labels = relevant_labels(scores, estimator.non_empty_).astype(np.int64)
        return Predictions(labels, scores, P)
    if "labels" in needs:
        labels = estimator.predict(X)
        labels = labels.toarray() if sparse.issparse(labels) else np.asarray(labels)
        labels = labels[:, None] if labels.ndim == 1 else labels
    return Predictions(labels, scores_of(estimator, X) if "scores" in needs else None, P)


# Parameters of a classifier with an objective that change its design.
DESIGN_PARAMETERS = {
    "kernel", "gamma", "degree", "coef0", "low_rank", "fit_intercept", "approximation", "n_components", "random_state",
}  # fmt: skip


def tune(
    estimator: Any, grid: Grid, X: Any, Y: Any, *, folds: int | Iterable[tuple[IntArray, IntArray]] = 5, seed: int = 0,
    metrics: Iterable[str | Metric] = PAPER_METRICS, convention: str = "paper", n_jobs: int = 1, tol: float = 1e-4,
    others: Sequence[tuple[dict[str, Any], str]] = (),
) -> "pd.DataFrame":  # fmt: skip
    """Compute cross-validated metrics of every grid point.

    Models with an objective are solved along a path, with warm starts. Other models are fitted point
    by point, with `fit_many` if they have this method.

    Parameters
    ----------
    estimator : classifier
    grid : dict of str to list
        Values of the parameters.
    X, Y : arrays or sparse matrices
        Features, and labels in 0/1. NaN is a missing label, if the classifier accepts missing
        labels; the metrics leave it out.
    folds : int or iterable of (train, test), default=5
        Number of shuffled folds, or the row indices of each fold.
    seed : int, default=0
        Seed of the shuffled folds.
    metrics : sequence of str or Metric
        Metrics to compute.
    convention : {"paper", "sklearn"}
        Convention of the metrics.
    n_jobs : int, default=1
        Number of folds in parallel.
    tol : float, default=1e-4
        Expected gain of a step, as a share of the objective, below which a model on a path is not
        improved.
    others : sequence of (dict, str), default=()
        Other decision rules for the same fits: `decision_parameters` of the estimator, and a
        convention. With other rules, all models are fitted point by point.

    Returns
    -------
    DataFrame
        A row for each point and fold, with ``param_<name>``, ``fold``, the metrics,
        ``fit_seconds``, ``gap`` and ``evaluations``. Metrics of probabilities are NaN if the
        estimator has no `predict_proba`. With `others`, the column ``rule`` is 0 for the rule of the
        estimator and 1, 2, … for the others, and the column ``error`` is the error message if the
        evaluation of another rule failed.

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
    if isinstance(folds, int):
        splits = KFold(folds, shuffle=True, random_state=seed).split(np.zeros(X.shape[0]))
    else:
        splits = folds
    # With a limited rank, solutions are local optima, and those of neighbours need not be close.
    any_rank = isinstance(estimator, ConvexClassifier) and estimator.max_rank is None and "max_rank" not in grid
    search = _search_path if any_rank and not others else _search_points
    task = _Task(estimator, grid, X, Y, names, [({}, convention), *others], tol)
    tables = Parallel(n_jobs=n_jobs)(delayed(search)(task, *split) for split in splits)
    pandas = import_extra("pandas", "report", "The table of a grid")
    return pandas.DataFrame([{**row, "fold": i} for i, table in enumerate(tables) for row in table])


class _Task(NamedTuple):
    """Arguments that all folds share."""

    estimator: Any
    grid: Grid
    X: Any
    Y: Any
    names: list[str]
    rules: list[tuple[dict[str, Any], str]]
    tol: float


def _points(grid: Grid) -> Table:
    """Return all combinations of the values of a grid; the first name changes slowest."""
    return [dict(zip(grid, values)) for values in itertools.product(*grid.values())]


def _search_path(task: _Task, train: IntArray, test: IntArray) -> Table:
    ((_, convention),) = task.rules
    grid = task.grid
    designs = {name: grid[name] for name in grid if name in DESIGN_PARAMETERS}
    axes = {name: grid[name] for name in grid if name not in DESIGN_PARAMETERS}
    axes = {name: sorted(axes[name], reverse=name == "ridge") for name in sorted(axes, key=lambda n: n != "ridge")}
    table = []
    data = SearchData(task.X, np.asarray(task.Y))
    # Models with an objective have no probabilities.
    computable = [name for name in task.names if get_metric(name).needs != "probabilities"]
    for design_params in _points(designs):
        model = clone(task.estimator).set_params(**design_params)
        fold = Fold(model, data, train, test, Scoring(computable, convention), task.tol)
        for row in fold.search(axes, final=True):
            params = {**design_params, **row["params"]}
            values = {name: row.get(name, np.nan) for name in task.names}
            table.append(_row(params, values, row["seconds"], row["gap"], row["evaluations"]))
    return table


def _search_points(task: _Task, train: IntArray, test: IntArray) -> Table:
    table = []
    with one_thread():
        for params, model, seconds in _fit_points(task.estimator, _points(task.grid), task.X[train], task.Y[train]):
            solver_values = [getattr(model, name, np.nan) for name in ("gap_", "n_evaluations_")]
            for i, rule in enumerate(task.rules):
                values, error = _evaluate_rule(model, task.X[test], task.Y[test], task.names, *rule, strict=i == 0)
                row = _row(params, values, seconds, *solver_values)
                table.append({**row, "rule": i, "error": error} if len(task.rules) > 1 else row)
    return table


def _evaluate_rule(
    model: Any, X: Any, Y: Any, names: list[str], decision: dict[str, Any], convention: str, strict: bool
) -> tuple[dict[str, float], str]:
    """Return the metrics of a fitted model with a decision rule, and an error message or "".

    Errors are raised only if `strict`.
    """
    try:
        predictions = predict_for_metrics(model.set_params(**decision) if decision else model, X, names)
        return predictions.evaluate(Y, names, convention), ""
    except (Exception, SystemExit) as error:
        if strict:
            raise
        return dict.fromkeys(names, np.nan), in_words(error)


def _fit_points(estimator: Any, points: Table, X: Any, Y: Any) -> Iterator[tuple[dict[str, Any], Any, float]]:
    """Yield the parameters, the fitted model and the seconds of every point."""
    started = time.perf_counter()  # `fit_many` may do all its work at the first point
    # The default implementation only clones and fits, so that it works for any classifier.
    fit_many = getattr(type(estimator), "fit_many", MultiLabelClassifier.fit_many)
    for params, model in zip(points, fit_many(estimator, X, Y, points)):
        yield params, model, time.perf_counter() - started
        started = time.perf_counter()


def _row(params: dict[str, Any], values: dict[str, float], seconds: float, gap: float, evaluations: float) -> Any:
    named = {f"param_{name}": value for name, value in params.items()}
    return {**named, **values, "fit_seconds": seconds, "gap": gap, "evaluations": evaluations}
