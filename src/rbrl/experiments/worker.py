"""What a worker does: split, standardise, tune, fit, test. It touches no store."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from rbrl._common.linalg import one_thread
from rbrl._common.typing import Array, IntArray, Matrix
from rbrl.exceptions import ConvergenceWarning, in_words
from rbrl.experiments.command import CommandClassifier, processor_seconds
from rbrl.experiments.methods import Classifier, build, inner_names
from rbrl.experiments.runs import Fold, Outcome, Run, by_point, machine, missing_points
from rbrl.metrics import ReliabilityBins, reliability_bins
from rbrl.selection import choose, tune
from rbrl.selection.grid import Predicted, predictions
from rbrl.splits import IterativeStratifiedShuffleSplit, random_split

Grid: TypeAlias = dict[str, list[Any]]


def work(run: Run, X: Matrix, Y: Array, known: Sequence[Fold] = (), others: Iterable[list[Fold]] = ()) -> Outcome:
    """Do one run; its fits are judged by its other decision rules too.

    Parameters
    ----------
    run : Run
    X, Y
        The whole data set; NaN in Y where nobody looked, which metrics leave out.
    known : sequence of Fold
        What is already tuned.
    others : iterable of list of Fold
        What is already tuned of each of the run's `others`.

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
            _work(outcome, run, X, Y, known, [OtherRule(*other) for other in zip(run.others, others)])
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


def _built(run: Run, seed: int | None = None) -> Classifier:
    return build(run.spec.use, run.params, run.plan.folder, non_empty=run.spec.non_empty, seed=seed)


def _work(outcome: Outcome, run: Run, X: Matrix, Y: Array, known: Sequence[Fold], others: list[OtherRule]) -> None:
    estimator, chosen, earlier, used = _built(run, run.seed), {}, 0.0, processor_seconds()
    train, test = _split(run, Y)
    X_train, X_test = prepare(X, train, test, run.plan.standardise)
    if run.tunes:
        earlier = _tune_missing(outcome, run, estimator, X_train, Y[train], known, others)
    if run.points:
        chosen = _choice(run, [*known, *outcome.tuning])
        estimator = clone(estimator).set_params(**inner_names(estimator, chosen))
    started = time.perf_counter()
    estimator.fit(X_train, Y[train])
    fitted = time.perf_counter()
    predicted = predictions(estimator, X_test, run.plan.metrics)
    outcome.train_seconds, outcome.test_seconds = fitted - started, time.perf_counter() - fitted
    if isinstance(estimator, CommandClassifier) and {"fit_seconds", "predict_seconds"} <= set(estimator.answer_):
        # It fits when it is first asked, elsewhere: only the command knows what took how long.
        outcome.train_seconds, outcome.test_seconds = (
            estimator.answer_[f"{name}_seconds"] for name in ("fit", "predict")
        )
    outcome.values = _judge(Y[test], predicted, run)
    outcome.reliability = _reliability(Y[test], predicted)
    outcome.processor_seconds = earlier + processor_seconds() - used
    outcome.gap = float(getattr(estimator, "gap_", math.nan))
    outcome.evaluations = float(getattr(estimator, "n_evaluations_", math.nan))
    outcome.params = {**run.params, **chosen}
    outcome.status = "ok"
    outcome.others = [other.outcome(chosen, outcome, estimator, X_test, Y[test]) for other in others]


def _split(run: Run, Y: Array) -> tuple[IntArray, IntArray]:
    """Return (train, test) row numbers."""
    splits, seed = run.plan.splits, run.plan.splits.seed + run.split
    if splits.stratified:
        return next(IterativeStratifiedShuffleSplit(1, splits.train_fraction, random_state=seed).split(Y, Y))
    return random_split(len(Y), seed, splits.train_fraction)


def prepare(X: Any, train: IntArray, test: IntArray, standardise: str) -> tuple[Matrix, Matrix]:
    """Return the training and test rows of X, standardised by the training part where it is asked for.

    Parameters
    ----------
    X : array or sparse matrix
    train, test : arrays of int
        Row numbers.
    standardise : {"dense", "all", "none"}
        As in a plan.
    """
    if standardise == "none" or (standardise == "dense" and sparse.issparse(X)):
        return X[train], X[test]
    X = X.toarray() if sparse.issparse(X) else X
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), scaler.transform(X[test])


def _choice(run: Run, folds: Iterable[Fold]) -> dict[str, Any]:
    return choose(by_point(run, folds), run.plan.tuning.criterion, run.plan.metrics)


def _judge(Y: Array, predicted: Predicted, run: Run) -> dict[str, float]:
    """Return {metric name: value}; refuse labels, scores and probabilities of another shape than Y."""
    for what, found in predicted._asdict().items():
        if found is not None and found.shape != Y.shape:
            raise ValueError(f"the method's {what} must have the shape of Y, {Y.shape}. Got {found.shape} instead.")
    return predicted.judged(Y, run.plan.metrics, run.convention)


def _reliability(Y: Array, predicted: Predicted) -> ReliabilityBins | None:
    """What a diagram of the probabilities is drawn of, where there are any."""
    P = predicted.probabilities
    return None if P is None else reliability_bins(Y, P, missing="ignore")


class OtherRule:
    """A run that differs in its decision rule alone.

    Parameters
    ----------
    run : Run
    known : list of Fold
        What is already tuned of it; `tuning` adds what the fits of the run that is done have shown.

    Attributes
    ----------
    parameters : dict
        Those that make a fitted model follow this rule.
    error : str
        What judging by this rule raised. It is no error of the run that is done; this one then needs a run of its own.
    """

    def __init__(self, run: Run, known: list[Fold]) -> None:
        self.run, self.known, self.error = run, known, ""
        self.tuning: list[Fold] = []
        try:
            estimator = _built(run)
            self.parameters = {name: getattr(estimator, name) for name in estimator.decision_parameters}
        except (Exception, SystemExit) as error:  # noqa: BLE001  # as of any method of a plan
            self.error = in_words(error)

    def outcome(
        self, chosen: dict[str, Any], done: Outcome, estimator: Classifier, X_test: Matrix, Y_test: Array
    ) -> Outcome:
        """What this run gives, from the `done` one, its fitted estimator, and the grid point that was chosen for it.

        It has failed if it would choose other parameters, or if it cannot be judged; its `error` then says why.

        Parameters
        ----------
        chosen : dict
            The grid point.
        done : Outcome
        estimator : classifier
        X_test, Y_test : arrays

        Returns
        -------
        Outcome
        """
        run, folds = self.run, [*self.known, *self.tuning]
        if not self.error and (not run.points or (not missing_points(run, folds) and _choice(run, folds) == chosen)):
            try:
                predicted = predictions(estimator.set_params(**self.parameters), X_test, run.plan.metrics)
                judged: dict[str, Any] = {
                    "values": _judge(Y_test, predicted, run),
                    "reliability": _reliability(Y_test, predicted),
                }
                return replace(done, **judged, params={**run.params, **chosen}, tuning=self.tuning, others=[])
            except (Exception, SystemExit) as error:  # noqa: BLE001  # as of any method of a plan
                self.error = in_words(error)
        return Outcome(error=self.error, tuning=self.tuning)


def _tune_missing(
    outcome: Outcome, run: Run, estimator: Classifier, X: Matrix, Y: Array, known: Sequence[Fold],
    others: list[OtherRule],
) -> float:  # fmt: skip
    """Tune the grid points that are not known; return the processor time of those that are, as far as it was recorded.

    The outcome gets the new folds, and the seconds of all. The same fits are judged by the `others`, whose `tuning`
    grows, or whose `error` says why it does not.
    """
    missing, metrics, started = missing_points(run, known), run.plan.metrics, time.perf_counter()
    folds: list[Fold] = []
    followed = [other for other in others if not other.error]
    rules = [(other.parameters, other.run.convention) for other in followed]
    options: dict[str, Any] = {"folds": run.plan.tuning.folds, "seed": run.seed, "metrics": metrics, "others": rules}
    for grid in _as_grids(missing):
        used, named = processor_seconds(), inner_names(estimator, grid)
        table = tune(estimator, named, X, Y, convention=run.convention, **options)
        # What the search took, shared out by the time of the fits; under each rule its rows add up to it.
        weights = table.fit_seconds.to_numpy() + 1e-9
        table["processor_seconds"] = (processor_seconds() - used) * (1 + len(rules)) * weights / weights.sum()
        folds += _folds(table[table.rule == 0] if rules else table, grid, named, metrics)
        for i, other in enumerate(followed, 1):
            part = table[table.rule == i]
            other.error = other.error or next(filter(None, part.error), "")
            other.tuning += _folds(part[part.error == ""], grid, named, metrics)
    searched = time.perf_counter() - started if missing else 0.0
    before = [fold for fold in known if fold.point in set(run.points) - set(missing)]
    # All at once and at the end: what a search found before it failed is no tuning.
    outcome.tuning, outcome.tune_seconds = folds, sum(fold.fit_seconds for fold in before) + searched
    return sum(fold.processor_seconds for fold in before if not math.isnan(fold.processor_seconds))


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
        tried = zip(grid, grid.values(), (row[f"param_{name}"] for name in named))
        point = {name: next(value for value in values if value == found) for name, values, found in tried}
        measured = (float(row[name]) for name in ("fit_seconds", "gap", "evaluations", "processor_seconds"))
        values = {metric: float(row[metric]) for metric in metrics}
        folds.append(Fold(json.dumps(point, sort_keys=True), int(row["fold"]), values, *measured))
    return folds
