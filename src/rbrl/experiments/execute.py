"""`execute`: do the runs of a plan that are not done yet, in this process, in others, or on a Dask cluster."""

from __future__ import annotations

import os
import time
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from rbrl._common.checks import check_one_of, check_whole
from rbrl._common.environment import import_extra
from rbrl.exceptions import RBRLError
from rbrl.experiments.plan import Plan
from rbrl.experiments.progress import Progress
from rbrl.experiments.runs import FoldResult, Outcome, Run, describe_changes, expand, find_missing_points
from rbrl.experiments.specs import DatasetLoader
from rbrl.experiments.store import Store

# Seconds between two checks of the runs of another process.
POLL_SECONDS = 0.5
# Seconds between two checks for lost data of the running runs.
DATA_CHECK_SECONDS = 5.0
# Names of Dask's errors for a lost worker; the classes exist only if Dask is installed.
DASK_WORKER_ERRORS = ("KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError")


class TuningFailed(RBRLError):
    """The run that tunes for others has no complete tuning."""


class WorkerLost(RBRLError):
    """A worker ended during a run."""


class Serial(AbstractContextManager["Serial"]):
    """Backend that does one run after the other in this process; base class of the other backends.

    The end of its `with` block stops the workers; after an error, at once.
    """

    n_workers = 1

    def submit(self, *arguments: Any) -> Future[Outcome]:
        """Do a run, and return a future that has its outcome; the arguments are those of `worker.work`."""
        # Imported here, because a program that only reads a store needs no methods.
        from rbrl.experiments.worker import work

        future: Future[Outcome] = Future()
        future.set_result(work(*arguments))
        return future

    def worker_lost(self) -> None:
        """Forget the data that only a lost worker had, so that the next run sends it again."""

    def is_data_lost(self, run: Future[Outcome]) -> bool:
        """Return True if the data of a running run is lost, so that it would never end."""
        return False

    def __exit__(self, *error: object) -> None:
        pass


class Processes(Serial):
    """Backend with worker processes on this machine (joblib's loky), which replaces dead ones."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers

    def submit(self, *arguments: Any) -> Future[Outcome]:
        """Send a run to a worker."""
        from rbrl.experiments.worker import work_in_process

        return self._executor().submit(work_in_process, *arguments)

    def __exit__(self, *error: object) -> None:
        self._executor().shutdown(wait=True, kill_workers=error[0] is not None)

    def _executor(self) -> Any:
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
        from rbrl.experiments.worker import work_in_process

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
        self._sent = {}
        self._executor.shutdown(wait=False)  # every run has ended, or its result is not needed
        if self._is_own_client:
            self._client.close()


def _connect(scheduler: Any) -> tuple[Any, bool]:
    """Return (client, True if it was made here)."""
    distributed = import_extra("distributed", "dask", "backend='dask'")
    if isinstance(scheduler, distributed.Client):
        return scheduler, False
    if scheduler is None:
        with suppress(ValueError):
            return distributed.default_client(), False
    return distributed.Client(scheduler, set_as_default=False), True


def _make_backend(backend: str | None, jobs: int, scheduler: Any) -> Serial:
    """Return the backend for the arguments of `execute`."""
    jobs = (os.cpu_count() or 1) if jobs == -1 else check_whole("jobs", jobs, 1)
    if backend is None:
        backend = "dask" if scheduler is not None else "processes" if jobs > 1 else "serial"
    if check_one_of("backend", backend, ("serial", "processes", "dask")) == "dask":
        return Dask(scheduler, jobs)
    return Processes(jobs) if backend == "processes" else Serial()


@dataclass
class Session:
    """Runs of one call of `execute`.

    A run is `waiting` for its turn, done `elsewhere` by another process, or `running` on a worker.
    When a worker dies, all running runs are lost and the cause is unknown: each is tried again alone
    (`alone`).
    `finished` has the keys of the runs with a result.
    """

    waiting: list[Run]
    finished: set[str]
    store: Store
    loader: DatasetLoader
    backend: Serial
    progress: Progress
    n_done: int = 0
    elsewhere: list[Run] = field(default_factory=list)
    alone: list[Run] = field(default_factory=list)
    running: dict[Future[Outcome], Run] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        # For a run that is to be repeated, only a result after the start counts.
        now = time.time()
        self.since = {run.key: now if run.key in self.finished else 0.0 for run in self.waiting}
        self.settled = self.finished - set(self.since)

    def do(self) -> None:
        """Do the runs, or wait until other processes have done them."""
        while self.waiting or self.elsewhere or self.running or self.alone:
            self._start_runs()
            if self.running:
                for future in self._wait_for_runs():
                    self._end_run(self.running.pop(future), future)
            elif self.elsewhere:
                time.sleep(POLL_SECONDS)
                self.waiting += self.elsewhere
                self.elsewhere = []

    def _wait_for_runs(self) -> list[Future[Outcome]]:
        """Return the runs that have ended; cancel and return those that can never end."""
        while not (done := wait(self.running, DATA_CHECK_SECONDS, FIRST_COMPLETED).done):
            done = {future for future in self.running if self.backend.is_data_lost(future)}
            for future in done:
                future.cancel()
            if done:
                break
        return list(done)

    def _start_runs(self) -> None:
        """Start runs until every worker has one."""
        if self.alone and not self.running:
            self._start(self.alone.pop())
        if self.alone or any(run.key in self.lost for run in self.running.values()):
            return
        waiting = self.waiting
        self.waiting = []
        for run in waiting:
            needs_tuning = run.first != run.key and run.first not in self.settled and run.first in self.since
            if needs_tuning or len(self.running) >= self.backend.n_workers:
                self.waiting.append(run)
            else:
                self._claim(run)
        needed = [*self.waiting, *self.elsewhere, *self.alone, *self.running.values()]
        self.loader.drop({run.dataset for run in needed})

    def _claim(self, run: Run) -> None:
        """Start a run, unless another process does it or has done it."""
        state = self.store.claim(run.key, self.since[run.key])
        if state == "ours":
            self._start(run)
        elif state == "theirs":
            self.elsewhere.append(run)
        elif self.store.finished()[run.key].lacks(run):
            # Another process has done it without some of our metrics: this process repeats it.
            self.since[run.key] = time.time()
            self.elsewhere.append(run)
        else:
            self.settled.add(run.key)

    def _start(self, run: Run) -> None:
        """Send a run to the backend; save an error of its data or of its tuning as its outcome."""
        self.progress.started(run)
        try:
            known = self._known_folds(run)
            data = self.loader.get(run.data)
        except (RBRLError, OSError) as error:
            self._save(run, Outcome().fail(error, again=not isinstance(error, TuningFailed)))
        else:
            others = [self.store.known(other.tune_key) for other in run.others]
            self.running[self.backend.submit(run, *data, known, others)] = run

    def _known_folds(self, run: Run) -> list[FoldResult]:
        """Return the known folds of a tuning; raise TuningFailed if the first split left it incomplete."""
        known = self.store.known(run.tune_key)
        if run.tune_key and not run.tunes and find_missing_points(run, known):
            first = self.store.finished().get(run.first)
            reason = f"{first.status}: {first.error}" if first else "absent: it has no result"
            raise TuningFailed(f"the first split, which is tuned on, has no complete tuning ({reason}).")
        return known

    def _end_run(self, run: Run, future: Future[Outcome]) -> None:
        """Save the outcome of a run, or try it again alone if its worker was lost."""
        try:  # the error is returned; an interrupt that is raised here comes from the user
            error = future.exception()
        except CancelledError as cancelled:
            error = cancelled
        if error is None:
            return self._save(run, future.result())
        if not isinstance(error, BrokenExecutor | CancelledError) and type(error).__name__ not in DASK_WORKER_ERRORS:
            raise error
        self.backend.worker_lost()
        if run.key in self.lost:
            lost = WorkerLost(
                f"the worker process ended during the run, perhaps for lack of memory ({type(error).__name__})"
            )
            self._save(run, Outcome().fail(lost, again=True))
        else:
            self.lost.add(run.key)
            self.alone.append(run)

    def _save(self, run: Run, outcome: Outcome) -> None:
        """Write an outcome to the store, and report it to the progress."""
        self.store.save(run, outcome)
        for error in (other.error for other in outcome.others if other.error):
            self.progress.noted(f"{run.title}: the evaluation with another decision rule failed: {error}")
        self.settled.add(run.key)
        if outcome.status == "ok":
            self.n_done += 1
            self.progress.finished(run, outcome)
        else:
            self.progress.failed(run, outcome)


@dataclass(frozen=True)
class Summary:
    """Summary of a comparison.

    Attributes
    ----------
    n_runs : int
        Number of runs of the plan: n_done + n_reused + n_failed.
    n_done, n_reused : int
        Numbers of runs that were completed now, and before or by another process.
    n_failed : int
        Number of failed runs.
    seconds : float
        Time of the call.
    notes : list of str
        Sentences about runs that could not be reused.
    failures : list of (dataset, method, split, error)
        Failed runs.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from rbrl.experiments import Plan, execute
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"brl": {"params": {"tol": 0.1}}}, "splits": {"number": 1}})
    >>> summary = execute(plan, mkdtemp())
    >>> summary.n_runs, summary.n_done, summary.n_reused, summary.failures
    (1, 1, 0, [])
    """

    n_runs: int
    n_done: int
    n_reused: int
    n_failed: int
    seconds: float
    notes: list[str] = field(default_factory=list)
    failures: list[tuple[str, str, int, str]] = field(default_factory=list)


def execute(
    plan: Plan | str | PathLike[str], store: Store | str | PathLike[str], *, jobs: int = 1, backend: str | None = None,
    scheduler: Any = None, progress: Progress | None = None, data_home: str | PathLike[str] | None = None,
    retry_failed: bool = False,
) -> Summary:  # fmt: skip
    """Do the runs of a plan that are not in the store, and save every result.

    The call may be interrupted at any time and repeated; only the running runs are lost. Several
    processes may work on one store: they share the runs, and each returns when all runs are done.

    Parameters
    ----------
    plan : Plan or path
        Plan, or the path of a plan file.
    store : Store or path
        Store, or its folder.
    jobs : int, default=1
        Number of runs at a time; -1 means one per core. The rows do not depend on it.
    backend : {"serial", "processes", "dask"}, optional
        By default "dask" with a scheduler, "serial" for one job, "processes" for more.
    scheduler : str, distributed.Client or cluster, optional
        Address of Dask's scheduler, or an object of `distributed`.
    progress : Progress, optional
        Listener for events.
    data_home : path, optional
        Folder of the data sets of the catalogue.
    retry_failed : bool, default=False
        If True, failed runs are tried again. Runs that failed because of missing data or a dead
        worker are always tried again.

    Returns
    -------
    Summary

    Raises
    ------
    PlanError
        Before the first run: a method or a parameter does not exist, a file cannot be read, or a
        method cannot learn with missing labels.
    StoreError
        The store cannot be read or written. The message says if its results are safe.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from rbrl.experiments import Plan, execute
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"brl": {"params": {"tol": 0.1}}}, "splits": {"number": 1}})
    >>> execute(plan, mkdtemp()).n_done
    1
    """
    start = time.perf_counter()
    progress = progress or Progress()
    plan = plan if isinstance(plan, Plan) else Plan.from_toml(plan)
    store = store if isinstance(store, Store) else Store(Path(store))
    loader = DatasetLoader(plan.folder, data_home)
    runs = expand(plan, loader)
    workers = _make_backend(backend, jobs, scheduler)
    try:
        sizes = {data.name: loader.sizes(data) for data in plan.datasets if data.file is not None}
        before = store.begin(plan, runs, sizes)
        finished = store.finished()
        todo = [run for run in runs if run.key not in finished or finished[run.key].is_open(run, retry_failed)]
        notes = describe_changes(before, runs, todo, finished)
        progress.planned(plan, len(runs), len(runs) - len(todo))
        for note in notes:
            progress.noted(note)
        with workers:
            session = Session(list(todo), set(finished), store, loader, workers, progress)
            session.do()
        results = store.finished()
        failures = [(*run.place, results[run.key].error) for run in runs if results[run.key].status == "failed"]
        n_reused = len(runs) - session.n_done - len(failures)
        seconds = time.perf_counter() - start
        return Summary(len(runs), session.n_done, n_reused, len(failures), seconds, notes, failures)
    finally:
        progress.closed()
        store.close()
