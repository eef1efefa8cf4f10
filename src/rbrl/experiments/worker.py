"""What a worker does: split, standardise, tune, fit, test. It touches no store."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from sklearn.base import clone

from rbrl._common.threads import one_thread
from rbrl._common.typing import Array, IntArray, Matrix
from rbrl.exceptions import ConvergenceWarning, in_words
from rbrl.experiments.data import prepare, split_rows
from rbrl.experiments.methods import Classifier, build, inner_names
from rbrl.experiments.runs import Fold, Outcome, Task, by_point, machine, missing_points, processor_seconds
from rbrl.metrics import evaluate, get_metric
from rbrl.search import tune
from rbrl.search.choose import choose
from rbrl.search.grid import predictions

# A run under another decision rule, and what is already tuned of it.
Other: TypeAlias = tuple[Task, list[Fold]]
Grid: TypeAlias = dict[str, list[Any]]


def work(
    task: Task,
    X: Matrix,
    Y: IntArray,
    known: Iterable[Fold] = (),
    owns_tuning: bool = True,
    others: Iterable[Other] = (),
) -> Outcome:
    """Do one run.

    Parameters
    ----------
    task : Task
    X, Y
        The whole data set.
    known : iterable of Fold
        What is already tuned.
    owns_tuning : bool, default=True
        Whether grid points that are not known are tuned here; False where another run tunes for this one.
    others : iterable of (Task, list of Fold)
        The same run under other decision rules, by which the fits are judged too, and what is already tuned of it.

    Returns
    -------
    Outcome
        Also of a method that raises: whatever it raises is its result, `sys.exit` included. Only KeyboardInterrupt
        goes on: here it cannot be told from the user who stops the comparison.
    """
    outcome = Outcome(machine=machine())
    try:
        with one_thread(), warnings.catch_warnings():
            # How far a fit is from its optimum is a column of its own; a line per fit would drown the progress.
            warnings.simplefilter("ignore", ConvergenceWarning)
            _work(outcome, task, X, Y, list(known), owns_tuning, [OtherRule(*other) for other in others])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a method of a plan may raise anything, and the other runs go on
        outcome.fail(error)
    return outcome


def work_apart(*what: Any) -> Outcome:
    """`work` in a process of its own, where an interrupt ends the run alone; a new start tries it again.

    Who stops the comparison interrupts the process that called `execute`, too, and that one ends it.
    """
    try:
        return work(*what)
    except KeyboardInterrupt as error:
        return Outcome(machine=machine()).fail(error, again=True)


def _built(task: Task, seed: int | None = None) -> Classifier:
    return build(task.method.use, task.params, task.plan.folder, non_empty=task.method.non_empty, seed=seed)


def _work(
    outcome: Outcome, task: Task, X: Matrix, Y: IntArray, known: list[Fold], owns_tuning: bool, others: list[OtherRule]
) -> None:
    plan, estimator, chosen = task.plan, _built(task, task.seed), {}
    used, earlier = time.process_time(), 0.0
    train, test = split_rows(Y, plan.splits.seed + task.split, plan.splits.train_fraction, plan.splits.stratified)
    X_train, X_test = prepare(X, train, test, plan.standardise)
    if task.points:
        if owns_tuning:
            earlier = processor_seconds(task, known)
            outcome.tuning, outcome.tune_seconds = _tune_missing(task, estimator, X_train, Y[train], known, others)
        chosen = choose(by_point(task, [*known, *outcome.tuning]), plan.tuning.criterion, plan.metrics)
        estimator = clone(estimator).set_params(**inner_names(estimator, chosen))
    started = time.perf_counter()
    estimator.fit(X_train, Y[train])
    fitted = time.perf_counter()
    predicted = predictions(estimator, X_test, task.metrics)
    outcome.train_seconds, outcome.test_seconds = fitted - started, time.perf_counter() - fitted
    outcome.values = _judge(Y[test], predicted, task)
    outcome.processor_seconds = earlier + time.process_time() - used
    outcome.gap = float(getattr(estimator, "gap_", math.nan))
    outcome.evaluations = float(getattr(estimator, "n_evaluations_", math.nan))
    outcome.params = {**task.params, **chosen}
    outcome.status = "ok"
    for other in others:
        result = other.outcome(chosen, outcome, estimator, X_test, Y[test])
        outcome.others.append((other.tuning, result, other.error))


def _judge(Y: IntArray, predicted: tuple[Array | None, Array | None], task: Task) -> dict[str, float]:
    """Return {metric name: value}; refuse labels and scores of another shape than Y."""
    for what, found in zip(("labels", "scores"), predicted):
        if found is not None and found.shape != Y.shape:
            raise ValueError(f"the method's {what} must have the shape of Y, {Y.shape}. Got {found.shape} instead.")
    return evaluate(Y, *predicted, task.metrics, task.convention)


class OtherRule:
    """A run that differs in its decision rule alone.

    Parameters
    ----------
    task : Task
    known : list of Fold
        What is already tuned of it; `tuning` adds what the fits of the run itself have shown.

    Attributes
    ----------
    parameters : dict
        Those that make a fitted model follow this rule.
    error : str
        What judging by this rule raised. It is no error of the run itself; this one then needs a run of its own.
    """

    parameters: dict[str, Any]

    def __init__(self, task: Task, known: list[Fold]) -> None:
        self.task, self.known, self.error = task, known, ""
        self.tuning: list[Fold] = []
        try:
            estimator = _built(task)
            self.parameters = {name: getattr(estimator, name) for name in estimator.decision_parameters}
        except (Exception, SystemExit) as error:  # noqa: BLE001  # as of any method of a plan
            self.error = in_words(error)

    def outcome(
        self, chosen: dict[str, Any], done: Outcome, estimator: Classifier, X_test: Matrix, Y_test: IntArray
    ) -> Outcome | None:
        """What this run gives, from the `done` one, its fitted estimator, and the grid point that was chosen for it.

        None if it would choose other parameters, or if it cannot be judged; `error` then says why.
        """
        task = self.task
        if self.error:
            return None
        if task.points:
            points = by_point(task, [*self.known, *self.tuning])
            if len(points) < len(task.points) or choose(points, task.plan.tuning.criterion, task.metrics) != chosen:
                return None
        try:
            predicted = predictions(estimator.set_params(**self.parameters), X_test, task.metrics)
            values = _judge(Y_test, predicted, task)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # as of any method of a plan
            self.error = in_words(error)
            return None
        return replace(done, values=values, params={**task.params, **chosen}, tuning=[], others=[])


def _tune_missing(
    task: Task, estimator: Classifier, X: Matrix, Y: IntArray, known: list[Fold], others: Sequence[OtherRule]
) -> tuple[list[Fold], float]:
    """Tune the grid points that are not known; return (folds, seconds), the seconds those of the known ones too.

    The same fits are judged by the `others`, whose `tuning` grows, or whose `error` says why it does not.
    """
    missing = missing_points(task, known)
    seconds = sum(fold.fit_seconds for fold in known if fold.point in set(task.points) - set(missing))
    if not missing:
        return [], seconds
    started, folds = time.perf_counter(), []
    options = {
        "folds": task.plan.tuning.folds,
        "seed": task.seed,
        "metrics": [get_metric(name) for name in task.metrics],
    }
    followed = [other for other in others if not other.error]
    rules = [(other.parameters, other.task.convention) for other in followed]
    for grid in _as_grids(missing):
        used, named = time.process_time(), inner_names(estimator, grid)
        table = tune(estimator, named, X, Y, convention=task.convention, others=rules, **options)
        # What the search took, shared out by the time of the fits; under each rule its rows add up to it.
        weights = table.fit_seconds.to_numpy() + 1e-9
        table["processor_seconds"] = (time.process_time() - used) * (1 + len(rules)) * weights / weights.sum()
        folds += _folds(table[table.rule == 0] if rules else table, grid, named, task.metrics)
        for i, other in enumerate(followed, 1):
            part = table[table.rule == i]
            other.error = other.error or next(filter(None, part.error), "")
            other.tuning += _folds(part[part.error == ""], grid, named, task.metrics)
    return folds, seconds + time.perf_counter() - started


def _as_grids(points: Iterable[str]) -> list[Grid]:
    """Points as full grids, of which a search can make one path; point by point where they fill none."""
    by_names: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for point in map(json.loads, points):
        by_names.setdefault(tuple(point), []).append(point)
    grids: list[Grid] = []
    for names, group in by_names.items():
        full = {name: list({json.dumps(point[name]): point[name] for point in group}.values()) for name in names}
        is_full = math.prod(len(values) for values in full.values()) == len(group)
        grids += [full] if is_full else [{name: [point[name]] for name in names} for point in group]
    return grids


def _folds(table: Any, grid: Grid, named: Iterable[str], metrics: Iterable[str]) -> list[Fold]:
    """The rows of a search as records; `named` are the names of the grid's parameters in the table."""
    folds = []
    for row in table.to_dict("records"):
        # The grid's own values, since a table makes 10.0 of 10 in a column with 0.5.
        point = {
            name: next(value for value in tried if value == row[f"param_{inner}"])
            for (name, tried), inner in zip(grid.items(), named)
        }
        measured = (float(row[name]) for name in ("fit_seconds", "gap", "evaluations", "processor_seconds"))
        values = {metric: float(row[metric]) for metric in metrics}
        folds.append(Fold(json.dumps(point, sort_keys=True), int(row["fold"]), values, *measured))
    return folds
