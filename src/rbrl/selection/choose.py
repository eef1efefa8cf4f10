"""What a search measures at every grid point, and which point it chooses: one rule for ties, whoever searches."""

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

# What measures: one of our metrics, or a scorer of scikit-learn, by name or itself.
Scorer: TypeAlias = str | Metric | Callable[..., float]
Scorers: TypeAlias = Scorer | Iterable[Scorer] | Mapping[str, Scorer] | None
# Values of parameters, and what was found at their combinations.
Grid: TypeAlias = Mapping[str, Sequence[Any]]
Table: TypeAlias = list[dict[str, Any]]


class Prediction(ClassifierMixin, BaseEstimator):
    """A fitted classifier that has already answered: what a scikit-learn scorer asks of held-out rows.

    Parameters
    ----------
    scores, relevant : arrays (n_samples, n_columns)
    targets : SignedTargets
    """

    def __init__(self, scores: FloatArray, relevant: BoolArray, targets: SignedTargets) -> None:
        self.scores, self.relevant, self.targets = scores, relevant, targets
        self.classes_ = targets.sklearn_classes()

    def decision_function(self, X: Any) -> FloatArray:
        """The known scores.

        Parameters
        ----------
        X : the rows that were held out; not looked at

        Returns
        -------
        array
        """
        return self.scores.ravel() if self.targets.kind == "binary" else self.scores

    def predict(self, X: Any) -> Any:
        """The known labels.

        Parameters
        ----------
        X : the rows that were held out; not looked at

        Returns
        -------
        array
        """
        return self.targets.decode(self.relevant, self.scores)


class Scoring:
    """A named set of metrics and scorers.

    Parameters
    ----------
    scoring : None, str, Metric, callable, or a list or dict of these
        None means the paper's six metrics. A name is one of ours, or else of scikit-learn's scorers.
    convention : {"paper", "sklearn"}

    Examples
    --------
    >>> list(Scoring(["hamming_loss", "f1_macro"]).scorers)
    ['hamming_loss', 'f1_macro']
    """

    def __init__(self, scoring: Scorers = None, convention: str = "paper") -> None:
        self.convention = convention
        self.scorers: dict[str, Any] = dict(_named(scoring))

    def greater_is_better(self, name: str) -> bool:
        """Direction of a metric; a scorer is always better when larger.

        Parameters
        ----------
        name : str

        Returns
        -------
        bool
        """
        return not isinstance(self.scorers[name], Metric) or self.scorers[name].greater_is_better

    def __call__(
        self, X: Any, y: Any, Y: Array, scores: FloatArray, relevant: BoolArray, targets: SignedTargets
    ) -> dict[str, float]:
        """Values by name, of held-out rows X with targets y (as given) and Y (0/1, as floats if some are missing)."""
        prediction, labels, values = Prediction(scores, relevant, targets), relevant.astype(np.int8), {}
        missing = "ignore" if Y.dtype.kind == "f" else None
        for name, scorer in self.scorers.items():
            if isinstance(scorer, Metric):
                values[name] = scorer.value(Y, labels, scores, self.convention, missing)
            else:
                values[name] = float(scorer(prediction, X, y))
        return values


def _named(scoring: Any) -> Iterator[tuple[str, Any]]:
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


# Parameters of which a larger (+1) or smaller (-1) value means a stronger penalty, a smoother or a simpler model.
STRONGER = dict.fromkeys(("ridge", "nuclear", "ranking", "positive", "negative", "n_neighbors"), 1) | {
    "C": -1,
    "beta1": -1,
}
# Losses and means that differ by less are equal: they are sums of the same numbers in another order.
DIGITS = 12


def best_index(points: Sequence[Mapping[str, Any]], losses: Sequence[float] | Array) -> int:
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
    losses = _rounded(losses)
    # A parameter's own name comes after those of the estimators around it.
    own = {name: name.rpartition("__")[2] for point in points for name in point}
    names = sorted(name for name in own if own[name] in STRONGER)

    def weakness(point: Mapping[str, Any]) -> list[float]:
        """Smaller for stronger penalties, one number for each of `names`; 0 where a point has no number of that name."""
        values = (point.get(name) for name in names)
        return [-STRONGER[own[name]] * (v if isinstance(v, int | float) else 0.0) for name, v in zip(names, values)]

    return min(range(len(points)), key=lambda i: (losses[i], *weakness(points[i]), i))


def _rounded(losses: Sequence[float] | Array) -> FloatArray:
    """Losses of which those that tie are equal, and those that are NaN the largest."""
    losses = np.asarray(losses, dtype=float).round(DIGITS)
    return np.where(np.isnan(losses), np.inf, losses)


def choose(
    points: Mapping[str, Mapping[str, Sequence[float]]], criterion: str | Sequence[str], metrics: Sequence[str]
) -> dict[str, Any]:
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
    """Rank of each point by the mean over folds; a point without a value comes last."""
    sign = -1.0 if get_metric(name).greater_is_better else 1.0
    means = np.array([np.mean(values[name]) for values in points.values()], dtype=float)
    return rankdata(_rounded(sign * means))


EXTRA = ("gap", "evaluations", "seconds")


def results_table(tables: Sequence[Table], scoring: Scoring) -> dict[str, Any]:
    """Arrays over grid points: parameters, every fold's values, means, deviations and ranks.

    Parameters
    ----------
    tables : list of list of dict
        One list per fold, its points in the same order.

    Returns
    -------
    dict of arrays
    """
    params = [row["params"] for row in tables[0]]
    results: dict[str, Any] = {f"param_{name}": np.array([p[name] for p in params]) for name in params[0]}
    results["params"] = params
    for name in (*scoring.scorers, *EXTRA):
        values = np.array([[row[name] for row in table] for table in tables])
        prefix = name if name in EXTRA else f"test_{name}"
        results |= {f"split{i}_{prefix}": fold for i, fold in enumerate(values)}
        results[f"mean_{prefix}"] = values.mean(axis=0)
        # Without any penalty a gap is infinite, and has no deviation.
        with np.errstate(invalid="ignore"):
            results[f"std_{prefix}"] = values.std(axis=0)
    for name in scoring.scorers:
        results[f"rank_test_{name}"] = rankdata(_loss(results, scoring, name), method="min").astype(int)
    return results


def _loss(results: Mapping[str, Any], scoring: Scoring, metric: str) -> FloatArray:
    """Means over folds of which the smallest is best."""
    sign = -1.0 if scoring.greater_is_better(metric) else 1.0
    return _rounded(sign * results[f"mean_test_{metric}"])


def best_point(results: Mapping[str, Any], scoring: Scoring, metric: str) -> int:
    """Index of the point that a metric chooses; of those of rank 1, that of :func:`rbrl.selection.choose.best_index`.

    Parameters
    ----------
    results : dict of arrays
        Of :func:`results_table`.
    scoring : Scoring
    metric : str

    Returns
    -------
    int
    """
    return best_index(results["params"], _loss(results, scoring, metric))
