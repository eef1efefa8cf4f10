"""`execute`: do the runs of a plan that are not done yet, here, in processes beside, or on a Dask cluster."""

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
from rbrl._common.extras import import_extra
from rbrl.exceptions import RBRLError
from rbrl.experiments.plan import Plan
from rbrl.experiments.progress import Progress
from rbrl.experiments.runs import Fold, Outcome, Run, Shelf, changes, expand, missing_points
from rbrl.experiments.store import Store

# Seconds between two looks at the runs that another process does.
POLL_SECONDS = 0.5
# Seconds between two looks whether the data of the runs in flight is lost.
LOST_SECONDS = 5.0
# Names of Dask's errors that mean that a worker was lost; their classes are there only where Dask is installed.
DASK_LOST = ("KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError")


class TuningFailed(RBRLError):
    """The run that tunes for others failed before it had tuned."""


class WorkerLost(RBRLError):
    """A worker ended in the middle of a run."""


class Serial(AbstractContextManager["Serial"]):
    """Runs one after the other, in this process; the interface of the other backends, too.

    Leaving its `with` block lets the workers go; after an error, at once.
    """

    n_workers = 1

    def submit(self, *what: Any) -> Future[Outcome]:
        """Do the run, and return a future that has its outcome; the arguments are those of `worker.work`."""
        # Here, and not above: who reads a store should not wait for every method.
        from rbrl.experiments.worker import work

        future: Future[Outcome] = Future()
        future.set_result(work(*what))
        return future

    def worker_lost(self) -> None:
        """A run ended without an outcome: what its worker alone held is gone, and the next run needs it again."""

    def data_lost(self, run: Future[Outcome]) -> bool:
        """Whether the data of a run in flight is gone: it would be waited for in vain."""
        return False

    def __exit__(self, *error: object) -> None:
        pass


class Processes(Serial):
    """Worker processes on this machine (joblib's loky); they are replaced when one of them dies.

    Parameters
    ----------
    n_workers : int
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers

    def submit(self, *what: Any) -> Future[Outcome]:
        """Send the run to a worker."""
        from rbrl.experiments.worker import work_apart

        return self._executor().submit(work_apart, *what)

    def __exit__(self, *error: object) -> None:
        self._executor().shutdown(wait=True, kill_workers=error[0] is not None)

    def _executor(self) -> Any:
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(max_workers=self.n_workers)


class Dask(Serial):
    """Workers of a Dask cluster; a data set is sent to them once.

    Parameters
    ----------
    scheduler : str, Client, cluster or None
        Address of the scheduler, or an object of `distributed`. None: the client in use, or else a new local cluster.
    n_workers : int
        Runs in flight; 1 means as many as the cluster has threads.
    """

    def __init__(self, scheduler: Any, n_workers: int) -> None:
        self._client, self._ours = _client(scheduler)
        self._executor = self._client.get_executor(pure=False)
        self.n_workers = n_workers if n_workers > 1 else max(1, sum(self._client.nthreads().values()))
        self._sent: dict[int, tuple[Any, Any]] = {}
        self._needs: WeakKeyDictionary[Future[Outcome], Any] = WeakKeyDictionary()

    def submit(self, *what: Any) -> Future[Outcome]:
        """Send the run to the cluster."""
        from rbrl.experiments.worker import work_apart

        run, X, Y, *rest = what
        if id(X) not in self._sent:
            # The data itself is kept beside its copies: its id may otherwise be given to other data.
            self._sent = {id(X): (X, self._client.scatter([X, Y], hash=False))}
        parts = self._sent[id(X)][1]
        future: Future[Outcome] = self._executor.submit(work_apart, run, *parts, *rest)
        self._needs[future] = parts
        return future

    def worker_lost(self) -> None:
        """Send the data to the workers that are left."""
        self._sent = {}

    def data_lost(self, run: Future[Outcome]) -> bool:
        """Whether no worker has the data any more.

        A result that its worker took along is computed again from the data; where that is gone too, Dask waits for ever.
        """
        return any(part.status in ("lost", "cancelled") for part in self._needs[run])

    def __exit__(self, *error: object) -> None:
        self._sent = {}
        self._executor.shutdown(wait=False)  # every run has landed, or nobody waits for it
        if self._ours:
            self._client.close()


def _client(scheduler: Any) -> tuple[Any, bool]:
    """Return (client, whether it was made here)."""
    distributed = import_extra("distributed", "dask", "backend='dask'")
    if isinstance(scheduler, distributed.Client):
        return scheduler, False
    if scheduler is None:
        with suppress(ValueError):
            return distributed.default_client(), False
    return distributed.Client(scheduler, set_as_default=False), True


def _backend(backend: str | None, jobs: int, scheduler: Any) -> Serial:
    """The backend that `execute` was asked for."""
    jobs = (os.cpu_count() or 1) if jobs == -1 else check_whole("jobs", jobs, 1)
    if backend is None:
        backend = "dask" if scheduler is not None else "processes" if jobs > 1 else "serial"
    if check_one_of("backend", backend, ("serial", "processes", "dask")) == "dask":
        return Dask(scheduler, jobs)
    return Processes(jobs) if backend == "processes" else Serial()


class Session:
    """What one call of `execute` does with the runs of `todo`; `finished` are the keys of those that have a result.

    A run waits for its turn in `waiting`, for another process in `elsewhere`, and for its worker in `flying`. When a
    worker dies, all runs in flight are lost and nobody knows whose fault it was: each is tried again `alone`.

    Parameters
    ----------
    todo : list of Run
    finished : set of str
        Keys of the runs that have a result.
    store : Store
    shelf : Shelf
    backend : Serial
    progress : Progress
    """

    def __init__(
        self, todo: list[Run], finished: set[str], store: Store, shelf: Shelf, backend: Serial, progress: Progress
    ) -> None:
        self.store, self.shelf, self.backend, self.progress = store, shelf, backend, progress
        self.n_done, self.waiting, now = 0, list(todo), time.time()
        self.elsewhere: list[Run] = []
        self.alone: list[Run] = []
        self.flying: dict[Future[Outcome], Run] = {}
        self.lost: set[str] = set()
        # A result that was there at the start does not count for a run that is to be done anew.
        self.since = {run.key: now if run.key in finished else 0.0 for run in todo}
        self.settled = finished - {run.key for run in todo}

    def do(self) -> None:
        """Do the runs, or wait until others have done them."""
        while self.waiting or self.elsewhere or self.flying or self.alone:
            self._fill()
            if self.flying:
                for future in self._landed():
                    self._land(self.flying.pop(future), future)
            elif self.elsewhere:
                time.sleep(POLL_SECONDS)
                self.waiting, self.elsewhere = self.waiting + self.elsewhere, []

    def _landed(self) -> list[Future[Outcome]]:
        """The runs that have ended, and those that cannot, cancelled."""
        while not (done := wait(self.flying, LOST_SECONDS, FIRST_COMPLETED).done):
            done = {future for future in self.flying if self.backend.data_lost(future)}
            for future in done:
                future.cancel()
            if done:
                break
        return list(done)

    def _fill(self) -> None:
        """Start runs until every worker has one."""
        if self.alone and not self.flying:
            self._start(self.alone.pop())
        if self.alone or any(run.key in self.lost for run in self.flying.values()):
            return
        waiting, self.waiting = self.waiting, []
        for run in waiting:
            needs_tuning = run.first != run.key and run.first not in self.settled and run.first in self.since
            if needs_tuning or len(self.flying) >= self.backend.n_workers:
                self.waiting.append(run)
            else:
                self._take(run)
        self.shelf.drop({run.dataset for run in [*self.waiting, *self.elsewhere, *self.alone, *self.flying.values()]})

    def _take(self, run: Run) -> None:
        state = self.store.claim(run.key, self.since[run.key])
        if state == "ours":
            self._start(run)
        elif state == "theirs":
            self.elsewhere.append(run)
        elif self.store.finished()[run.key].lacks(run):
            # Another process did it, but with other metrics: it is ours after all.
            self.since[run.key] = time.time()
            self.elsewhere.append(run)
        else:
            self.settled.add(run.key)

    def _start(self, run: Run) -> None:
        self.progress.started(run)
        try:
            known, data = self._known(run), self.shelf.get(run.data)
        except (RBRLError, OSError) as error:
            self._keep(run, Outcome().fail(error, again=not isinstance(error, TuningFailed)))
        else:
            others = [self.store.known(other.tune_key) for other in run.others]
            self.flying[self.backend.submit(run, *data, known, others)] = run

    def _known(self, run: Run) -> list[Fold]:
        known = self.store.known(run.tune_key)
        if run.tune_key and not run.tunes and missing_points(run, known):
            first = self.store.finished().get(run.first)
            why = f"{first.status}: {first.error}" if first else "absent: it has no result"
            raise TuningFailed(f"the first split, which is tuned on, has no complete tuning ({why}).")
        return known

    def _land(self, run: Run, future: Future[Outcome]) -> None:
        try:  # returned, not raised, so that an interrupt that is raised is the user's
            error = future.exception()
        except CancelledError as cancelled:
            error = cancelled
        if error is None:
            return self._keep(run, future.result())
        if not isinstance(error, BrokenExecutor | CancelledError) and type(error).__name__ not in DASK_LOST:
            raise error
        self.backend.worker_lost()
        if run.key in self.lost:
            lost = WorkerLost(f"the worker ended during the run; was there enough memory? ({type(error).__name__})")
            self._keep(run, Outcome().fail(lost, again=True))
        else:
            self.lost.add(run.key)
            self.alone.append(run)

    def _keep(self, run: Run, outcome: Outcome) -> None:
        self.store.save(run, outcome)
        for error in (other.error for other in outcome.others if other.error):
            self.progress.noted(f"{run.title}: judging by another rule failed, and is left to its own run: {error}")
        self.settled.add(run.key)
        if outcome.status == "ok":
            self.n_done += 1
            self.progress.finished(run, outcome)
        else:
            self.progress.failed(run, outcome)


@dataclass(frozen=True)
class Summary:
    """How a comparison ended.

    Attributes
    ----------
    n_runs : int
        Of the plan: n_done + n_reused + n_failed.
    n_done, n_reused : int
        Runs completed now, and those that were complete before or that another process completed.
    n_failed : int
        Runs without a result, now or before.
    seconds : float
    notes : list of str
        What could not be reused, and why.
    failures : list of (dataset, method, split, error)

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
    """Do what is missing of a plan, and keep every result in a store.

    It may be interrupted at any moment, and called again: only the runs in flight are lost. Several processes may work
    on one store; they share the runs out among them, and each returns when all are done.

    Parameters
    ----------
    plan : Plan or path
    store : Store or path
    jobs : int, default=1
        Runs at a time; -1 means one per core. The rows do not depend on it.
    backend : {"serial", "processes", "dask"}, optional
        Default: "dask" if there is a scheduler, "serial" for one job, "processes" for more.
    scheduler : str, distributed.Client or cluster, optional
        Where Dask is: the scheduler's address, or an object.
    progress : Progress, optional
        Told what happens; default: nobody.
    data_home : path, optional
        Folder of catalogue data sets.
    retry_failed : bool, default=False
        Try failed runs once more. Runs that failed for want of data or because a worker died always are.

    Returns
    -------
    Summary

    Raises
    ------
    PlanError
        Before anything is run: a method or parameter does not exist, a file cannot be read, or labels are missing that a
        method needs.
    StoreError
        The store cannot be read or written; the message says what has become of what it held, and the way out.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from rbrl.experiments import Plan, execute
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"brl": {"params": {"tol": 0.1}}}, "splits": {"number": 1}})
    >>> execute(plan, mkdtemp()).n_done
    1
    """
    began, progress = time.perf_counter(), progress or Progress()
    plan = plan if isinstance(plan, Plan) else Plan.from_toml(plan)
    store = store if isinstance(store, Store) else Store(Path(store))
    shelf = Shelf(plan.folder, data_home)
    runs = expand(plan, shelf)
    workers = _backend(backend, jobs, scheduler)
    try:
        sizes = {data.name: shelf.sizes(data) for data in plan.datasets if data.file is not None}
        before, finished = store.begin(plan, runs, sizes), store.finished()
        todo = [run for run in runs if run.key not in finished or finished[run.key].is_open(run, retry_failed)]
        notes = changes(before, runs, todo, finished)
        progress.planned(plan, len(runs), len(runs) - len(todo))
        for note in notes:
            progress.noted(note)
        with workers:
            session = Session(todo, set(finished), store, shelf, workers, progress)
            session.do()
        results = store.finished()
        failures = [(*run.place, results[run.key].error) for run in runs if results[run.key].status == "failed"]
        n_reused, seconds = len(runs) - session.n_done - len(failures), time.perf_counter() - began
        return Summary(len(runs), session.n_done, n_reused, len(failures), seconds, notes, failures)
    finally:
        progress.closed()
        store.close()
