"""Metrics of a search at every grid point, and the choice of the best point."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import get_scorer

from rbrl._common.bases import BaseEstimator, ClassifierMixin
from rbrl._common.typing import Array, BoolArray, FloatArray
from rbrl.metrics import METRICS, PAPER_METRICS, Metric, get_metric
from rbrl.targets import SignedTargets

# A metric of rbrl or a scorer of scikit-learn, or the name of one.
Scorer: TypeAlias = str | Metric | Callable[..., float]
Scorers: TypeAlias = Scorer | Iterable[Scorer] | Mapping[str, Scorer] | None
# Values of parameters, and results at their combinations.
Grid: TypeAlias = Mapping[str, Sequence[Any]]
Table: TypeAlias = list[dict[str, Any]]


class Prediction(ClassifierMixin, BaseEstimator):
    """A fitted classifier with stored predictions for held-out rows, for scikit-learn scorers."""

    def __init__(self, scores: FloatArray, relevant: BoolArray, targets: SignedTargets) -> None:
        self.scores = scores
        self.relevant = relevant
        self.targets = targets
        self.classes_ = targets.sklearn_classes()

    def decision_function(self, X: Any) -> FloatArray:
        """Return the stored scores."""
        return self.scores.ravel() if self.targets.kind == "binary" else self.scores

    def predict(self, X: Any) -> Any:
        """Return the stored labels."""
        return self.targets.decode(self.relevant, self.scores)


class Scoring:
    """A named set of metrics and scorers.

    Parameters
    ----------
    scoring : None, str, Metric, callable, or a list or dict of these
        Metrics and scorers; None means the six metrics of the paper. A name is that of a metric of
        rbrl, or else that of a scorer of scikit-learn.
    convention : {"paper", "sklearn"}
        Convention of the metrics.

    Examples
    --------
    >>> list(Scoring(["hamming_loss", "f1_macro"]).scorers)
    ['hamming_loss', 'f1_macro']
    """

    def __init__(self, scoring: Scorers = None, convention: str = "paper") -> None:
        self.convention = convention
        self.scorers: dict[str, Any] = dict(_scorers_by_name(scoring))

    def greater_is_better(self, name: str) -> bool:
        """Return the direction of a metric; a larger value of a scorer is always better."""
        return not isinstance(self.scorers[name], Metric) or self.scorers[name].greater_is_better

    def __call__(
        self, X: Any, y: Any, Y: Array, scores: FloatArray, relevant: BoolArray, targets: SignedTargets
    ) -> dict[str, float]:
        """Return the values by name, for held-out rows X with targets y, as given, and Y in 0/1.

        Y has floats, with NaN for missing labels, if labels are missing.
        """
        prediction = Prediction(scores, relevant, targets)
        labels = relevant.astype(np.int8)
        values = {}
        missing = "ignore" if Y.dtype.kind == "f" else None
        for name, scorer in self.scorers.items():
            if isinstance(scorer, Metric):
                values[name] = scorer.value(Y, labels, scores, self.convention, missing)
            else:
                values[name] = float(scorer(prediction, X, y))
        return values


def _scorers_by_name(scoring: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(scoring, Mapping):
        yield from ((name, _resolve(scorer)) for name, scorer in scoring.items())
        return
    scoring = PAPER_METRICS if scoring is None else scoring
    for scorer in [scoring] if isinstance(scoring, str | Metric) or callable(scoring) else scoring:
        resolved = _resolve(scorer)
        name = scorer if isinstance(scorer, str) else getattr(scorer, "__name__", "score")
        yield (resolved.name if isinstance(resolved, Metric) else name), resolved


def _resolve(scorer: Scorer) -> Any:
    if not isinstance(scorer, str):
        return scorer
    return get_metric(scorer) if scorer in METRICS else get_scorer(scorer)


# Parameters whose larger (+1) or smaller (-1) values mean a stronger penalty, or a smoother or simpler model.
STRONGER = dict.fromkeys(("ridge", "nuclear", "ranking", "positive", "negative", "n_neighbors"), 1) | {
    "C": -1,
    "beta1": -1,
}
# Number of decimals to which losses and means are compared. Sums of the same numbers in another order may differ in the
# decimals after that.
COMPARED_DECIMALS = 12


def best_index(points: Sequence[Mapping[str, Any]], losses: Sequence[float] | Array) -> int:
    """Return the index of the grid point with the smallest loss.

    Parameters
    ----------
    points : sequence of dict
        Parameters of each point.
    losses : sequence of float
        Loss of each point; NaN is worst.

    Returns
    -------
    int
        Index. Of tied points, the one with the stronger penalties is best, parameter by parameter
        in the order of their names; then the first one.

    Examples
    --------
    >>> best_index([{"ridge": 10, "nuclear": 1}, {"ridge": 1, "nuclear": 10}, {"ridge": 1, "nuclear": 1}], [0, 0, 0])
    1
    """
    losses = _round_losses(losses)
    # A nested parameter has the names of the outer estimators before its own name.
    own = {name: name.rpartition("__")[2] for point in points for name in point}
    names = sorted(name for name in own if own[name] in STRONGER)

    def weakness(point: Mapping[str, Any]) -> list[float]:
        """Return a smaller number for a stronger penalty, for each of `names`; 0 without a number."""
        values = (point.get(name) for name in names)
        return [-STRONGER[own[name]] * (v if isinstance(v, int | float) else 0.0) for name, v in zip(names, values)]

    return min(range(len(points)), key=lambda i: (losses[i], *weakness(points[i]), i))


def _round_losses(losses: Sequence[float] | Array) -> FloatArray:
    """Round losses so that ties are equal, and replace NaN by infinity."""
    losses = np.asarray(losses, dtype=float).round(COMPARED_DECIMALS)
    return np.where(np.isnan(losses), np.inf, losses)


def choose(
    points: Mapping[str, Mapping[str, Sequence[float]]], criterion: str | Sequence[str], metrics: Sequence[str]
) -> dict[str, Any]:
    """Return the best grid point.

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
        Parameters of the best point. Ties go to the stronger penalties.

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
    """Rank the points by the mean over folds; a point without a value comes last."""
    sign = -1.0 if get_metric(name).greater_is_better else 1.0
    means = np.array([np.mean(values[name]) for values in points.values()], dtype=float)
    return rankdata(_round_losses(sign * means))


# Columns of a table beside the metrics.
SOLVER_COLUMNS = ("gap", "evaluations", "seconds")


def results_table(tables: Sequence[Table], scoring: Scoring) -> dict[str, Any]:
    """Return arrays over grid points: parameters, the values of every fold, means, deviations, ranks.

    There is a table for each fold, with the points in the same order.
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
    """Return means over folds, negated if larger is better."""
    sign = -1.0 if scoring.greater_is_better(metric) else 1.0
    return _round_losses(sign * results[f"mean_test_{metric}"])


def best_point(results: Mapping[str, Any], scoring: Scoring, metric: str) -> int:
    """Return the index of the best point of a :func:`results_table` by a metric; see `best_index`."""
    return best_index(results["params"], _loss(results, scoring, metric))
