"""A cell: one method on one task. Search within the budget, fit, predict, judge."""

import math
import time
import warnings
from dataclasses import dataclass, field
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
from scipy import sparse

from rbrl import evaluate
from rbrl.decision import GlobalThreshold, LabelThresholds
from rbrl.experiments.statistics import ranks
from rbrl.metrics import probabilities_of, scores_of
from studies.comparison import rules
from studies.comparison.methods import Method, Point
from studies.comparison.tasks import Task


@dataclass
class Predicted:
    """Predictions of a fitted method, its processor seconds, and the threshold that its scores are made for."""

    scores: Any
    labels: Any
    probabilities: Any
    fit_seconds: float
    predict_seconds: float
    gap: float
    cut: float
    command_megabytes: float = 0.0


@dataclass
class Tried:
    """A point of the search: scores of all training rows, each by a model that has not seen it, and values by fold."""

    point: Point
    scores: Any
    cut: float = 0.0
    values: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0


def fit_and_predict(method: Method, point: Point, seed: int, X: Any, Y: Any, X_test: Any) -> Predicted:
    """Fit a method and predict the labels of other rows.

    Labels that all rows of Y share or lack are not given to it: they come first or last, with probability 1 or 0.
    """
    varies = Y.any(axis=0) & ~Y.all(axis=0)
    estimator = method.build(point, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        estimator.fit(X, Y[:, varies])
        fitted = time.process_time()
        scores = scores_of(estimator, X_test)
        predicted = time.process_time()
        labels = estimator.predict(X_test)
        probabilities = probabilities_of(estimator, X_test) if hasattr(estimator, "predict_proba") else None
    answer = getattr(estimator, "answer_", {})
    labels = labels.toarray() if sparse.issparse(labels) else np.asarray(labels)
    always = Y.all(axis=0)
    low, high = scores.min() - 1.0, scores.max() + 1.0
    return Predicted(
        _add_constant_labels(scores, varies, np.where(always, high, low)),
        _add_constant_labels(labels.astype(np.int64), varies, always.astype(np.int64)),
        None if probabilities is None else _add_constant_labels(probabilities, varies, always.astype(float)),
        answer.get("fit_seconds", fitted - started),
        answer.get("predict_seconds", predicted - fitted),
        float(getattr(estimator, "gap_", math.nan)),
        0.0 if hasattr(estimator, "decision_function") else 0.5,
        answer.get("megabytes", 0.0),
    )


def _add_constant_labels(found: Any, varies: Any, others: Any) -> Any:
    """Return the columns of the labels that vary, with constants for the others."""
    whole = np.tile(others, (len(found), 1))
    whole[:, varies] = found
    return whole


def try_point(method: Method, point: Point, task: Task) -> Tried:
    """Fit a point on the rows without a fold, for each fold, and judge it on that fold by the criterion."""
    tried = Tried(point, np.empty(task.Y.shape))
    for held_out in task.folds:
        rest = np.setdiff1d(np.arange(len(task.Y)), held_out)
        found = fit_and_predict(method, point, task.split, task.X[rest], task.Y[rest], task.X[held_out])
        tried.scores[held_out] = found.scores
        tried.seconds += found.fit_seconds + found.predict_seconds
        tried.cut = found.cut
    for held_out in task.folds:
        rest = np.setdiff1d(np.arange(len(task.Y)), held_out)
        rule = GlobalThreshold(start=tried.cut).fit(tried.scores[rest], task.Y[rest])
        labels = _fill_empty_rows(rule.labels(tried.scores[held_out]), tried.scores[held_out], task)
        values = evaluate(task.Y[held_out], labels, tried.scores[held_out], rules.CRITERION, rules.CONVENTION)
        for name, value in values.items():
            tried.values.setdefault(name, []).append(value)
    return tried


def best(tried: list[Tried]) -> Tried:
    """Return the point with the best mean rank over the metrics of the criterion, the earlier one on ties."""
    if len(tried) == 1:
        return tried[0]
    means = np.array([[np.mean(one.values[name]) for one in tried] for name in rules.CRITERION])
    return tried[int(ranks(means, greater_is_better=True).mean(axis=0).round(9).argmin())]


def evaluate_rules(task: Task, found: Predicted, held_out: Tried) -> dict[str, float]:
    """Evaluate every metric, with the labels of each rule."""
    labels = {rules.OWN: found.labels}
    for name, rule in ((rules.ONE, GlobalThreshold(start=found.cut)), (rules.EACH, LabelThresholds(start=found.cut))):
        labels[name] = _fill_empty_rows(rule.fit(held_out.scores, task.Y).labels(found.scores), found.scores, task)
    values = evaluate(task.Y_test, None, found.scores, rules.SCORE_METRICS, rules.CONVENTION)
    for rule_name, one in labels.items():
        of_labels = evaluate(task.Y_test, one, None, rules.LABEL_METRICS, rules.CONVENTION)
        values |= {rules.column(metric, rule_name): value for metric, value in of_labels.items()}
    if found.probabilities is not None:
        P = np.clip(found.probabilities, 0.0, 1.0)
        values |= evaluate(task.Y_test, None, None, rules.PROBABILITY_METRICS, rules.CONVENTION, probabilities=P)
    return values


def _fill_empty_rows(labels: Any, scores: Any, task: Task) -> Any:
    """Give each row at least one label if every training row has one."""
    if task.never_empty:
        empty = ~labels.any(axis=1)
        labels[empty, scores[empty].argmax(axis=1)] = 1
    return labels


def do_cell(method: Method, task: Task) -> list[dict[str, Any]]:
    """Return the two rows of a cell: the method with its defaults, and as its search chose among its points."""
    at_start = _peak_megabytes()
    default = fit_and_predict(method, method.points[0], task.split, task.X, task.Y, task.X_test)
    tried = [try_point(method, method.points[0], task)]
    spent = default.fit_seconds + tried[0].seconds
    for point in method.points[1:]:
        # One more point and the fit of the chosen one must fit into the budget, as far as this is known beforehand.
        if spent + max(one.seconds for one in tried) + default.fit_seconds > rules.BUDGET_SECONDS:
            break
        tried.append(try_point(method, point, task))
        spent += tried[-1].seconds
    chosen = best(tried)
    tuned = default
    if chosen is not tried[0]:
        tuned = fit_and_predict(method, chosen.point, task.split, task.X, task.Y, task.X_test)
    megabytes = max(_peak_megabytes() - at_start, default.command_megabytes, tuned.command_megabytes)
    search = sum(one.seconds for one in tried)
    rows = []
    for variant, found, held_out, n_points, seconds in (
        (rules.DEFAULT, default, tried[0], 1, 0.0), (rules.TUNED, tuned, chosen, len(tried), search),
    ):  # fmt: skip
        facts = {"variant": variant, "status": "ok", "reason": "", "params": dict(held_out.point), "n_points": n_points}
        took = {"search_seconds": seconds, "fit_seconds": found.fit_seconds, "predict_seconds": found.predict_seconds}
        rows.append(facts | took | {"megabytes": megabytes, "gap": found.gap} | evaluate_rules(task, found, held_out))
    return rows


def _peak_megabytes() -> float:
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024
