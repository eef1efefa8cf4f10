"""Cross-validated metrics of grid points, over all folds, and the choice of the best point."""

import itertools
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import KFold

from rbrl._common.environment import import_extra, one_thread
from rbrl._common.frames import as_dense
from rbrl._common.progress import Models
from rbrl._common.typing import Array, FloatArray, IntArray
from rbrl.decision import relevant_labels
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.convex import ConvexClassifier
from rbrl.exceptions import in_words
from rbrl.metrics import PAPER_METRICS, Metric, evaluate, get_metric, probabilities_of, scores_of
from rbrl.selection.path import Best, Fold, Grid, Scoring, SearchData, Stage, Table

if TYPE_CHECKING:
    import pandas as pd

# Parameters whose larger (+1) or smaller (-1) values mean a stronger penalty, or a smoother or
# simpler model.
STRONGER = {
    "ridge": 1, "nuclear": 1, "ranking": 1, "positive": 1, "negative": 1, "n_neighbors": 1,
    "C": -1, "beta1": -1,
}  # fmt: skip
# Number of decimals to which losses and means are compared. Sums of the same numbers in another
# order may differ in the decimals after that.
COMPARED_DECIMALS = 12
# Parameters of a classifier with an objective that change its design.
DESIGN_PARAMETERS = {
    "kernel", "gamma", "degree", "coef0", "low_rank", "fit_intercept", "approximation", "n_components", "random_state",
}  # fmt: skip
# Columns of a table of results beside the metrics.
SOLVER_COLUMNS = ("gap", "evaluations", "seconds")


def best_index(points: Sequence[Mapping[str, Any]], losses: Sequence[float] | Array) -> int:
    """Return the index of the grid point with the smallest loss; NaN is worst.

    Of tied points, the one with the stronger penalties is best; parameters are compared in the
    order of their names. If these tie, too, the first point is best.

    Examples
    --------
    >>> best_index([{"ridge": 10, "nuclear": 1}, {"ridge": 1, "nuclear": 10}, {"ridge": 1, "nuclear": 1}], [0, 0, 0])
    1
    """
    losses = round_losses(losses)
    # A nested parameter has the names of the outer estimators before its own name.
    own = {name: name.rpartition("__")[2] for point in points for name in point}
    names = sorted(name for name in own if own[name] in STRONGER)

    def weakness(point: Mapping[str, Any]) -> list[float]:
        """Return a smaller number for a stronger penalty, for each of `names`; 0 without a number."""
        values = (point.get(name) for name in names)
        return [-STRONGER[own[name]] * (v if isinstance(v, int | float) else 0.0) for name, v in zip(names, values)]

    return min(range(len(points)), key=lambda i: (losses[i], *weakness(points[i]), i))


def round_losses(losses: Sequence[float] | Array) -> FloatArray:
    """Round losses (n_points,) so that ties are equal, and replace NaN by infinity, in a new array."""
    losses = np.asarray(losses, dtype=float).round(COMPARED_DECIMALS)
    return np.where(np.isnan(losses), np.inf, losses)


def choose(
    points: Mapping[str, Mapping[str, Sequence[float]]], criterion: str | Sequence[str], metrics: Sequence[str]
) -> dict[str, Any]:
    """Return the parameters of the best grid point.

    Parameters
    ----------
    points : dict of str to dict of str to list
        Values of each metric on the folds, by grid point in JSON.
    criterion : str or sequence of str
        Name of a metric, or several names, which are combined by the mean rank of a point;
        "mean_rank" means all of `metrics`.
    metrics : sequence of str
        Names of the metrics in `points`.

    Returns
    -------
    dict
        Parameters of the best point; of tied points, the one that `best_index` chooses.

    Examples
    --------
    >>> from rbrl.selection import choose
    >>> points = {'{"C": 1}': {"hamming_loss": [0.2, 0.3]}, '{"C": 10}': {"hamming_loss": [0.1, 0.2]}}
    >>> choose(points, "hamming_loss", ["hamming_loss"])
    {'C': 10}
    """
    candidates: list[dict[str, Any]] = [json.loads(point) for point in points]
    if len(candidates) == 1:
        return candidates[0]
    if isinstance(criterion, str):
        criterion = metrics if criterion == "mean_rank" else [criterion]
    losses = np.mean([_ranks(points, name) for name in criterion], axis=0)
    return candidates[best_index(candidates, losses)]


def _ranks(points: Mapping[str, Mapping[str, Sequence[float]]], name: str) -> FloatArray:
    """Rank the points by the mean over folds: (n_points,), 1 for the best, NaN worst."""
    sign = -1.0 if get_metric(name).greater_is_better else 1.0
    means = np.array([np.mean(values[name]) for values in points.values()], dtype=float)
    return rankdata(round_losses(sign * means))


class Predictions(NamedTuple):
    """Predicted labels, scores and probabilities (n_samples, n_labels); None if not available."""

    labels: Array | None = None
    scores: FloatArray | None = None
    probabilities: FloatArray | None = None

    def evaluate(self, Y: Any, metrics: Iterable[str | Metric], convention: str) -> dict[str, float]:
        """Return the values of metrics by name; NaN for metrics of probabilities if there are none.

        The labels Y are 0/1, with NaN for a missing label. It rejects NaN and infinite predictions.

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
        labels = as_dense(estimator.predict(X))
        labels = labels[:, None] if labels.ndim == 1 else labels
    return Predictions(labels, scores_of(estimator, X) if "scores" in needs else None, P)


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
    convention : {"paper", "mulan", "sklearn"}
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
    if any_rank and not others:
        path = (estimator, grid, X, Y, names, convention, tol)
        jobs = (delayed(_search_path)(*path, *split) for split in splits)
    else:
        points = (estimator, grid, X, Y, names, [({}, convention), *others])
        jobs = (delayed(_search_points)(*points, *split) for split in splits)
    tables = Parallel(n_jobs=n_jobs)(jobs)
    pandas = import_extra("pandas", "report", "The table of a grid")
    return pandas.DataFrame([{**row, "fold": i} for i, table in enumerate(tables) for row in table])


def _points(grid: Grid) -> Table:
    """Return all combinations of the values of a grid as dicts; the first name changes slowest."""
    return [dict(zip(grid, values)) for values in itertools.product(*grid.values())]


def _search_path(
    estimator: ConvexClassifier, grid: Grid, X: Any, Y: Any, names: list[str], convention: str,
    tol: float, train: IntArray, test: IntArray,
) -> Table:  # fmt: skip
    """Solve the points of a fold, given by row indices, along a path for each design; return rows."""
    designs = {name: grid[name] for name in grid if name in DESIGN_PARAMETERS}
    weights = [name for name in grid if name not in DESIGN_PARAMETERS]
    weights.sort(key=lambda name: name != "ridge")
    axes = {name: sorted(grid[name], reverse=name == "ridge") for name in weights}
    data = SearchData(X, np.asarray(Y))
    # Models with an objective have no probabilities.
    computable = [name for name in names if get_metric(name).needs != "probabilities"]
    scoring = Scoring(computable, convention)
    table = []
    for design_params in _points(designs):
        fold = Fold(clone(estimator).set_params(**design_params), data, train, test, scoring, tol)
        for row in fold.search(axes, final=True):
            values = {name: row.get(name, np.nan) for name in names}
            params = {**design_params, **row["params"]}
            table.append(_row(params, values, row["seconds"], row["gap"], row["evaluations"]))
    return table


def _search_points(
    estimator: Any, grid: Grid, X: Any, Y: Any, names: list[str],
    rules: list[tuple[dict[str, Any], str]], train: IntArray, test: IntArray,
) -> Table:  # fmt: skip
    """Fit every point to one fold, and evaluate it with every decision rule.

    Return a row for each point and rule. A rule has parameters of the decision, and a convention.
    Only an error of the first rule is raised.
    """
    points = _points(grid)
    # The default implementation only clones and fits, so that it works for any classifier.
    fit_many = getattr(type(estimator), "fit_many", MultiLabelClassifier.fit_many)
    table = []
    with one_thread():
        started = time.perf_counter()  # `fit_many` may do all its work at the first point
        for params, model in zip(points, fit_many(estimator, X[train], Y[train], points)):
            seconds = time.perf_counter() - started
            solver_values = [getattr(model, name, np.nan) for name in ("gap_", "n_evaluations_")]
            for i, rule in enumerate(rules):
                values, error = _evaluate_rule(model, X[test], Y[test], names, *rule, strict=i == 0)
                row = _row(params, values, seconds, *solver_values)
                table.append({**row, "rule": i, "error": error} if len(rules) > 1 else row)
            started = time.perf_counter()
    return table


def _evaluate_rule(
    model: Any, X: Any, Y: Any, names: list[str], decision: dict[str, Any], convention: str, strict: bool
) -> tuple[dict[str, float], str]:
    """Return the metrics of a fitted model with a decision rule, and an error message or "".

    The parameters in `decision` are set in the model. Errors are raised only if `strict`; otherwise
    all metrics are NaN.
    """
    try:
        predictions = predict_for_metrics(model.set_params(**decision) if decision else model, X, names)
        return predictions.evaluate(Y, names, convention), ""
    except (Exception, SystemExit) as error:
        if strict:
            raise
        return dict.fromkeys(names, np.nan), in_words(error)


def _row(params: dict[str, Any], values: dict[str, float], seconds: float, gap: float, evaluations: float) -> Any:
    """Return a row of the table of :func:`tune`."""
    named = {f"param_{name}": value for name, value in params.items()}
    return {**named, **values, "fit_seconds": seconds, "gap": gap, "evaluations": evaluations}


class Folds:
    """All folds of a search, and its results so far.

    A generator makes each fold on demand, so that a final stage holds one at a time. The metric
    chooses the best point. `results` has the format of :func:`results_table`, and `best_index` is
    the index of the best point.
    """

    results: dict[str, Any]
    best_index: int

    def __init__(
        self, folds: Iterable[Fold], n_folds: int, scoring: Scoring, metric: str, n_jobs: int | None,
        progress: Models,
    ) -> None:  # fmt: skip
        self.folds = folds
        self.scoring = scoring
        self.metric = metric
        self.n_jobs = n_jobs
        self.progress = progress
        self.tables: list[Table] = [[] for _ in range(n_folds)]

    def search(self, stage: Stage) -> Best:
        """Try the new points of a stage in all folds, and return the best point of all stages so far."""
        solved = [tuple(row["params"].values()) for row in self.tables[0]]
        n_new = sum(point not in solved for point in itertools.product(*stage.axes.values()))
        self.progress.expect(len(self.tables) * (n_new + stage.n_later))
        serial = effective_n_jobs(self.n_jobs) == 1
        if serial:
            found = (_search_fold(fold, stage, self.progress) for fold in self.folds)
        else:
            jobs = (delayed(_search_fold)(fold, stage) for fold in self.folds)
            found = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        kept = []
        for table, (fold, rows) in zip(self.tables, found):
            table += rows
            kept += [] if fold is None else [fold]
            if not serial:
                self.progress.advance(len(rows))
        self.folds = kept
        self.results = results_table(self.tables, self.scoring)
        self.best_index = best_point(self.results, self.scoring, self.metric)
        points = self.results["params"]
        ties = np.flatnonzero(self.results[f"rank_test_{self.metric}"] == 1)
        return Best(points[self.best_index], [points[i] for i in ties])

    def nuclear_reference(self, params: dict[str, Any]) -> float:
        """Return the mean over folds of :meth:`Fold.nuclear_reference`."""
        return float(np.mean([fold.nuclear_reference(params) for fold in self.folds]))


def _search_fold(fold: Fold, stage: Stage, progress: Models | None = None) -> tuple[Fold | None, Table]:
    """Return the fold, or None after the final stage, and the rows of its table; workers run it, too."""
    rows = []
    for row in fold.search(stage.axes, stage.final):
        rows.append(row)
        if progress is not None:
            progress.advance(1)
    return (None if stage.final else fold), rows


def results_table(tables: Sequence[Table], scoring: Scoring) -> dict[str, Any]:
    """Return arrays over grid points, in the order of the tables, of which each fold has one.

    They are the parameters, the values of every fold, means, deviations and ranks.
    """
    params = [row["params"] for row in tables[0]]
    results: dict[str, Any] = {f"param_{name}": np.array([p[name] for p in params]) for name in params[0]}
    results["params"] = params
    for name in (*scoring.scorers, *SOLVER_COLUMNS):
        values = np.array([[row[name] for row in table] for table in tables])
        prefix = name if name in SOLVER_COLUMNS else f"test_{name}"
        results |= {f"split{i}_{prefix}": fold for i, fold in enumerate(values)}
        results[f"mean_{prefix}"] = values.mean(axis=0)
        # Without any penalty, a gap is infinite and its deviation is NaN.
        with np.errstate(invalid="ignore"):
            results[f"std_{prefix}"] = values.std(axis=0)
    for name in scoring.scorers:
        results[f"rank_test_{name}"] = rankdata(_loss(results, scoring, name), method="min").astype(int)
    return results


def _loss(results: Mapping[str, Any], scoring: Scoring, metric: str) -> FloatArray:
    """Return means over folds (n_points,), negated if larger is better, in the form of `best_index`."""
    sign = -1.0 if scoring.greater_is_better(metric) else 1.0
    return round_losses(sign * results[f"mean_test_{metric}"])


def best_point(results: Mapping[str, Any], scoring: Scoring, metric: str) -> int:
    """Return the index of the best point of a :func:`results_table` by a metric; see `best_index`."""
    return best_index(results["params"], _loss(results, scoring, metric))
