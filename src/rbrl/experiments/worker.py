"""Work of one run (split, standardise, tune, fit, test), and the backends whose workers do it.

A worker does not use the store.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from threading import Thread
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from rbrl._common.checks import check_one_of, check_whole
from rbrl._common.environment import import_extra, one_thread
from rbrl._common.typing import Array, IntArray, Matrix
from rbrl.exceptions import ConvergenceWarning, in_words
from rbrl.experiments.command import CommandClassifier, processor_seconds
from rbrl.experiments.methods import Classifier, build, inner_names
from rbrl.experiments.runs import FoldResult, Outcome, Run, find_missing_points, group_by_point, machine
from rbrl.metrics import ReliabilityBins, reliability_bins
from rbrl.selection import choose, tune
from rbrl.selection.grid_search import Predictions, predict_for_metrics
from rbrl.splits import IterativeStratifiedShuffleSplit, random_split

Grid: TypeAlias = dict[str, list[Any]]

# Names of Dask's errors for a lost worker; the classes exist only if Dask is installed.
DASK_WORKER_ERRORS = ("KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError")
# Seconds between two checks of a worker that its parent still runs. A check takes microseconds, and a
# worker should not outlive its parent noticeably.
PARENT_CHECK_SECONDS = 1.0

# Parents whose end a thread of this process waits for.
_watched_parents: set[int] = set()


def work(
    run: Run, X: Matrix, Y: Array, known: Sequence[FoldResult] = (), others: Iterable[list[FoldResult]] = ()
) -> Outcome:
    """Do one run, and evaluate its fits with its other decision rules, too.

    Parameters
    ----------
    run : Run
        Run to do.
    X, Y
        The whole data set; NaN in Y is a missing label, which metrics leave out.
    known : sequence of FoldResult
        Known results of the tuning.
    others : iterable of list of FoldResult
        Known results of the tuning of each of the run's `others`.

    Returns
    -------
    Outcome
        Outcome of the run. An error of the method, even `sys.exit`, is an outcome. Only
        KeyboardInterrupt is raised, because the user may have stopped the comparison.
    """
    outcome = Outcome(machine=machine())
    caught: list[warnings.WarningMessage] = []
    try:
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            # The gap of a fit has its own column; a warning for each fit would hide the progress.
            warnings.simplefilter("ignore", ConvergenceWarning)
            _work(outcome, run, X, Y, known, [OtherRule(*other) for other in zip(run.others, others)])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a method of a plan may raise anything, and the other runs go on
        outcome.fail(error)
    outcome.warnings = _list_warnings(caught)
    return outcome


def _list_warnings(caught: Iterable[warnings.WarningMessage]) -> list[tuple[type[Warning], str]]:
    """Return each different warning once, as a class that every process can import, and its text."""
    found: dict[tuple[type[Warning], str], None] = {}
    for one in caught:
        homes = ((base, base.__module__.partition(".")[0]) for base in one.category.__mro__)
        category = next(base for base, home in homes if home in ("rbrl", "sklearn", "builtins"))
        found[category, str(one.message)] = None
    return list(found)


def work_for_parent(parent: int, *arguments: Any) -> Outcome:
    """Call `work_in_process` in a child of the process `parent`; the child ends if the parent is killed."""
    if parent not in _watched_parents:
        _watched_parents.add(parent)
        Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    return work_in_process(*arguments)


def _end_with_parent(parent: int) -> None:
    """Wait until the process `parent` has ended, and end this process, too; a killed parent cannot do so itself.

    It runs in a daemon thread and does not return, except on Windows in a process without a known parent.
    """
    if sys.platform == "win32":
        # Only there does joblib give a child the handle of its parent. The number is not needed.
        process = multiprocessing.parent_process()
        if process is None:
            return
        process.join()
    else:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


def work_in_process(*arguments: Any) -> Outcome:
    """Call `work` in a worker process, where an interrupt fails this run only; the next start tries it again.

    A user who stops the comparison also interrupts the process that called `execute`, and that ends it.
    """
    try:
        return work(*arguments)
    except KeyboardInterrupt as error:
        return Outcome(machine=machine()).fail(error, again=True)


def _build_estimator(run: Run, seed: int | None = None) -> Classifier:
    """Return the unfitted method of a run; None keeps the default seed."""
    return build(run.spec.use, run.params, run.plan.folder, non_empty=run.spec.non_empty, seed=seed)


def _work(
    outcome: Outcome, run: Run, X: Matrix, Y: Array, known: Sequence[FoldResult], others: list[OtherRule]
) -> None:
    """Do a run and fill in its outcome; after an error, the outcome keeps the tuning that is complete.

    The arguments are those of :func:`work`, with the other rules as objects.
    """
    estimator = _build_estimator(run, run.seed)
    processor_start = processor_seconds()
    train, test = _split(run, Y)
    X_train, X_test = prepare(X, train, test, run.plan.standardise)
    earlier = 0.0
    if run.tunes:
        earlier = _tune_missing(outcome, run, estimator, X_train, Y[train], known, others)
    chosen: dict[str, Any] = {}
    if run.points:
        chosen = _choose_point(run, [*known, *outcome.tuning])
        estimator = clone(estimator).set_params(**inner_names(estimator, chosen))
    start = time.perf_counter()
    estimator.fit(X_train, Y[train])
    fit_end = time.perf_counter()
    predicted = predict_for_metrics(estimator, X_test, run.plan.metrics)
    outcome.train_seconds = fit_end - start
    outcome.test_seconds = time.perf_counter() - fit_end
    if isinstance(estimator, CommandClassifier) and {"fit_seconds", "predict_seconds"} <= set(estimator.answer_):
        # A command fits when it is first asked for predictions, so that only the command knows its times.
        outcome.train_seconds = estimator.answer_["fit_seconds"]
        outcome.test_seconds = estimator.answer_["predict_seconds"]
    outcome.values, outcome.reliability = _evaluate(Y[test], predicted, run)
    outcome.processor_seconds = earlier + processor_seconds() - processor_start
    outcome.gap = float(getattr(estimator, "gap_", math.nan))
    outcome.evaluations = float(getattr(estimator, "n_evaluations_", math.nan))
    outcome.params = {**run.params, **chosen}
    outcome.status = "ok"
    outcome.others = [other.outcome(chosen, outcome, estimator, X_test, Y[test]) for other in others]


def _split(run: Run, Y: Array) -> tuple[IntArray, IntArray]:
    """Return the indices of the training and the test rows of a run."""
    splits = run.plan.splits
    seed = splits.seed + run.split
    if splits.stratified:
        return next(IterativeStratifiedShuffleSplit(1, splits.train_fraction, random_state=seed).split(Y, Y))
    return random_split(len(Y), seed, splits.train_fraction)


def prepare(X: Any, train: IntArray, test: IntArray, standardise: str) -> tuple[Matrix, Matrix]:
    """Return the training and test rows of X, standardised by the training part if the plan asks.

    `train` and `test` are indices. Standardised rows are dense. The results are new arrays.
    """
    if standardise == "none" or (standardise == "dense" and sparse.issparse(X)):
        return X[train], X[test]
    X = X.toarray() if sparse.issparse(X) else X
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), scaler.transform(X[test])


def _choose_point(run: Run, folds: Iterable[FoldResult]) -> dict[str, Any]:
    """Return the best grid point by the criterion of the plan, as parameters.

    Incomplete points do not count; there must be a complete one.
    """
    return choose(group_by_point(run, folds), run.plan.tuning.criterion, run.plan.metrics)


def _evaluate(Y: Array, predicted: Predictions, run: Run) -> tuple[dict[str, float], ReliabilityBins | None]:
    """Return (values of the metrics, reliability bins); refuse predictions that do not have the shape of Y."""
    for kind, values in predicted._asdict().items():
        if values is not None and values.shape != Y.shape:
            raise ValueError(f"the method's {kind} must have the shape of Y, {Y.shape}. Got {values.shape} instead.")
    P = predicted.probabilities
    bins = None if P is None else reliability_bins(Y, P, missing="ignore")
    return predicted.evaluate(Y, run.plan.metrics, run.convention), bins


class OtherRule:
    """Run that differs from the current run only in its decision rule, with its known tuning.

    `tuning` has further results of its tuning, from the fits of the current run. `parameters` make
    a fitted model follow this rule. `error` is the error of the evaluation with this rule. The
    current run does not fail with it; the run with the other rule must then do its own fits.
    """

    def __init__(self, run: Run, known: list[FoldResult]) -> None:
        self.run = run
        self.known = known
        self.error = ""
        self.tuning: list[FoldResult] = []
        try:
            estimator = _build_estimator(run)
            self.parameters = {name: getattr(estimator, name) for name in estimator.decision_parameters}
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a method of a plan may raise anything
            self.error = in_words(error)

    def outcome(
        self, chosen: dict[str, Any], done: Outcome, estimator: Classifier, X_test: Matrix, Y_test: Array
    ) -> Outcome:
        """Return the outcome of this run from the outcome and the fitted estimator of the current run.

        `chosen` is the grid point of the current run. This run fails if it would choose another point,
        or if its evaluation raises an error.
        """
        run = self.run
        folds = [*self.known, *self.tuning]
        is_same = not run.points or (not find_missing_points(run, folds) and _choose_point(run, folds) == chosen)
        if not self.error and is_same:
            try:
                predicted = predict_for_metrics(estimator.set_params(**self.parameters), X_test, run.plan.metrics)
                values, bins = _evaluate(Y_test, predicted, run)
                params = {**run.params, **chosen}
                done = replace(done, others=[], tuning=self.tuning)
                return replace(done, values=values, reliability=bins, params=params)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # a method of a plan may raise anything
                self.error = in_words(error)
        return Outcome(error=self.error, tuning=self.tuning)


def _tune_missing(
    outcome: Outcome, run: Run, estimator: Classifier, X: Matrix, Y: Array, known: Sequence[FoldResult],
    others: list[OtherRule],
) -> float:  # fmt: skip
    """Tune the grid points that are not known; return the recorded processor time of the known ones.

    X and Y are the training rows. The outcome gets the new folds and the seconds of all folds. The
    same fits are evaluated with the `others`: each gets its tuning, or its error.
    """
    missing = find_missing_points(run, known)
    metrics = run.plan.metrics
    start = time.perf_counter()
    folds: list[FoldResult] = []
    evaluated = [other for other in others if not other.error]
    rules = [(other.parameters, other.run.convention) for other in evaluated]
    options: dict[str, Any] = {"folds": run.plan.tuning.folds, "seed": run.seed, "metrics": metrics, "others": rules}
    for grid in _as_grids(missing):
        processor_start = processor_seconds()
        names = inner_names(estimator, grid)
        table = tune(estimator, names, X, Y, convention=run.convention, **options)
        # The processor time of the search is divided by the time of the fits. Under each rule the rows add up to it.
        weights = table.fit_seconds.to_numpy() + 1e-9
        table["processor_seconds"] = (
            (processor_seconds() - processor_start) * (1 + len(rules)) * weights / weights.sum()
        )
        folds += _read_folds(table[table.rule == 0] if rules else table, grid, names, metrics)
        for i, other in enumerate(evaluated, 1):
            part = table[table.rule == i]
            other.error = other.error or next(filter(None, part.error), "")
            other.tuning += _read_folds(part[part.error == ""], grid, names, metrics)
    search_seconds = time.perf_counter() - start if missing else 0.0
    before = [fold for fold in known if fold.point in set(run.points) - set(missing)]
    # Set at the end only: the results of a search that fails later are no tuning.
    outcome.tuning = folds
    outcome.tune_seconds = sum(fold.fit_seconds for fold in before) + search_seconds
    return sum(fold.processor_seconds for fold in before if not math.isnan(fold.processor_seconds))


def _as_grids(points: Iterable[str]) -> list[Grid]:
    """Return points, as JSON, as grids that together contain each point once.

    A full grid can be solved as one path. Otherwise, every point is a grid of its own.
    """
    by_names: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for point in map(json.loads, points):
        by_names.setdefault(tuple(point), []).append(point)
    grids: list[Grid] = []
    for names, group in by_names.items():
        full = {name: list({json.dumps(point[name]): point[name] for point in group}.values()) for name in names}
        is_full = math.prod(len(values) for values in full.values()) == len(group)
        grids += [full] if is_full else [{name: [point[name]] for name in names} for point in group]
    return grids


def _read_folds(table: Any, grid: Grid, names: Iterable[str], metrics: Iterable[str]) -> list[FoldResult]:
    """Return the rows of a search as records.

    `table` is the result of :func:`tune`, and `names` are the names of the grid's parameters in it.
    """
    folds = []
    for row in table.to_dict("records"):
        # The values are taken from the grid, because a column with 0.5 turns 10 into 10.0.
        columns = zip(grid, grid.values(), (row[f"param_{name}"] for name in names))
        point = {name: next(one for one in values if one == value) for name, values, value in columns}
        measured = (float(row[name]) for name in ("fit_seconds", "gap", "evaluations", "processor_seconds"))
        values = {metric: float(row[metric]) for metric in metrics}
        folds.append(FoldResult(json.dumps(point, sort_keys=True), int(row["fold"]), values, *measured))
    return folds


class Serial(AbstractContextManager["Serial"]):
    """Backend that does one run after the other in this process; base class of the other backends.

    The end of its `with` block stops the workers; after an error, at once.
    """

    n_workers = 1

    def submit(self, *arguments: Any) -> Future[Outcome]:
        """Do a run, and return a future with its outcome; the arguments are those of `work`."""
        future: Future[Outcome] = Future()
        future.set_result(work(*arguments))
        return future

    def is_worker_lost(self, error: BaseException) -> bool:
        """Return True for an error that means that a worker ended during a run."""
        is_broken = isinstance(error, BrokenExecutor | CancelledError)
        return is_broken or type(error).__name__ in DASK_WORKER_ERRORS

    def worker_lost(self) -> None:
        """Forget the data that only a lost worker had, so that the next run sends it again."""

    def is_data_lost(self, run: Future[Outcome]) -> bool:
        """Return True if the data of a running run is lost, so that it would never end."""
        return False

    def __exit__(self, *error: object) -> None:
        """Do nothing: there are no workers."""
        pass


class Processes(Serial):
    """Backend with worker processes on this machine (joblib's loky), which replaces dead ones."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers

    def submit(self, *arguments: Any) -> Future[Outcome]:
        """Send a run to a worker."""
        return self._executor().submit(work_for_parent, os.getpid(), *arguments)

    def __exit__(self, *error: object) -> None:
        """End the workers; after an error, kill them without waiting for their runs."""
        self._executor().shutdown(wait=True, kill_workers=error[0] is not None)

    def _executor(self) -> Any:
        """Return the pool of processes, which joblib shares and reuses."""
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(max_workers=self.n_workers)


class Dask(Serial):
    """Backend with the workers of a Dask cluster; each data set is sent to them once.

    A `scheduler` of None means the current client, or else a new local cluster. One worker means
    one for each thread of the cluster.
    """

    def __init__(self, scheduler: Any, n_workers: int) -> None:
        self._client, self._is_own_client = _connect(scheduler)
        self._executor = self._client.get_executor(pure=False)
        self.n_workers = n_workers if n_workers > 1 else max(1, sum(self._client.nthreads().values()))
        self._sent: dict[int, tuple[Any, Any]] = {}
        self._needs: WeakKeyDictionary[Future[Outcome], Any] = WeakKeyDictionary()

    def submit(self, *arguments: Any) -> Future[Outcome]:
        """Send a run to the cluster."""
        run, X, Y, *rest = arguments
        if id(X) not in self._sent:
            # Keep X itself: otherwise other data could get its id.
            self._sent = {id(X): (X, self._client.scatter([X, Y], hash=False))}
        parts = self._sent[id(X)][1]
        future: Future[Outcome] = self._executor.submit(work_in_process, run, *parts, *rest)
        self._needs[future] = parts
        return future

    def worker_lost(self) -> None:
        """Send the data again with the next run."""
        self._sent = {}

    def is_data_lost(self, run: Future[Outcome]) -> bool:
        """Return True if no worker has the data any more.

        Dask repeats a run whose worker was lost. If the data is lost as well, Dask waits for ever.
        """
        return any(part.status in ("lost", "cancelled") for part in self._needs[run])

    def __exit__(self, *error: object) -> None:
        """Forget the data, and close the client unless the user gave it."""
        self._sent = {}
        self._executor.shutdown(wait=False)  # every run has ended, or its result is not needed
        if self._is_own_client:
            self._client.close()


def _connect(scheduler: Any) -> tuple[Any, bool]:
    """Return a client of Dask, and True if it was made here and is to be closed.

    `scheduler` is a client, a cluster, an address, or None for the active client or a local
    cluster.
    """
    distributed = import_extra("distributed", "dask", "backend='dask'")
    if isinstance(scheduler, distributed.Client):
        return scheduler, False
    if scheduler is None:
        with suppress(ValueError):
            return distributed.default_client(), False
    return distributed.Client(scheduler, set_as_default=False), True


def make_backend(backend: str | None, jobs: int, scheduler: Any) -> Serial:
    """Return the backend for the arguments of `execute`."""
    jobs = (os.cpu_count() or 1) if jobs == -1 else check_whole("jobs", jobs, 1)
    if backend is None:
        backend = "dask" if scheduler is not None else "processes" if jobs > 1 else "serial"
    if check_one_of("backend", backend, ("serial", "processes", "dask")) == "dask":
        return Dask(scheduler, jobs)
    return Processes(jobs) if backend == "processes" else Serial()
