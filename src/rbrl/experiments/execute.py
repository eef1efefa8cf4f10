"""`execute`: do the runs of a plan that are not done yet."""

import time
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path

from rbrl._version import __version__
from rbrl.exceptions import RBRLError
from rbrl.experiments.backends import make_backend
from rbrl.experiments.data import Shelf, missing_points
from rbrl.experiments.plan import Plan
from rbrl.experiments.progress import Progress
from rbrl.experiments.runs import changes, expand
from rbrl.experiments.store import Store
from rbrl.experiments.worker import OtherRule, Outcome

POLL_SECONDS = 0.5


class TuningFailed(RBRLError):
    """The run that tunes for others failed before it had tuned."""


class WorkerLost(RBRLError):
    """A worker ended in the middle of a run."""


class Session:
    """One call of `execute`.

    A run waits for its turn in `waiting`, for another process in `elsewhere`, and for its worker in `flying`. When a
    worker dies, all runs in flight are lost and nobody knows whose fault it was: each is tried again `alone`.
    """

    def __init__(self, plan, store, shelf, backend, progress, version):
        self.store, self.shelf, self.backend, self.progress, self.version = store, shelf, backend, progress, version
        self.specs = {data.name: data for data in plan.datasets}
        self.n_done = 0
        self.flying: dict = {}
        self.alone, self.lost = [], set()

    def do(self, todo, finished):
        """Do the runs of `todo`, or wait until others have done them."""
        self.waiting, self.elsewhere = list(todo), []
        # A result that was there at the start does not count for a run that is to be done anew.
        now = time.time()
        self.since = {run.key: now if run.key in finished else 0.0 for run in todo}
        self.settled = set(finished) - {run.key for run in todo}
        while self.waiting or self.elsewhere or self.flying or self.alone:
            self._fill()
            if self.flying:
                for future in self.backend.first_done(set(self.flying)):
                    self._land(self.flying.pop(future), future)
            elif self.elsewhere:
                time.sleep(POLL_SECONDS)
                self.waiting, self.elsewhere = self.waiting + self.elsewhere, []

    def _fill(self):
        """Start runs until every worker has one."""
        if self.alone and not self.flying:
            self._start(self.alone.pop())
        if self.alone or any(run.key in self.lost for run in self.flying.values()):
            return
        remaining = []
        for i, run in enumerate(self.waiting):
            if len(self.flying) >= self.backend.n_workers:
                remaining += self.waiting[i:]
                break
            if run.first != run.key and run.first not in self.settled and run.first in self.since:
                remaining.append(run)
            else:
                self._take(run)
        self.waiting = remaining
        self.shelf.drop({run.dataset for run in [*self.waiting, *self.elsewhere, *self.alone, *self.flying.values()]})

    def _take(self, run):
        state = self.store.claim(run.key, self.since[run.key])
        if state == "theirs":
            self.elsewhere.append(run)
        elif state == "done":
            self._done_elsewhere(run)
        else:
            self._start(run)

    def _done_elsewhere(self, run):
        """Another process did it; with other metrics, perhaps, and then it is ours after all."""
        status, metrics, _, _ = self.store.finished()[run.key]
        if status == "ok" and not set(run.task.metrics) <= metrics:
            self.since[run.key] = time.time()
            self.elsewhere.append(run)
            return
        self.settled.add(run.key)

    def _start(self, run):
        self.progress.started(run)
        try:
            known = self._known(run)
            data = self.shelf.get(self.specs[run.dataset])
        except TuningFailed as error:
            self._keep(run, Outcome().fail(error))
        except (RBRLError, OSError) as error:
            self._keep(run, Outcome().fail(error, again=True))
        else:
            self.flying[self.backend.submit(run.task, *data, known, run.tunes, self._others(run))] = run

    def _known(self, run):
        known = self.store.known(run.tune_key) if run.tune_key else []
        if run.tune_key and not run.tunes and missing_points(run.task, known):
            status, error = self.store.result(run.first) or ("absent", "it has no result")
            raise TuningFailed(f"the first split, which is tuned on, has no complete tuning ({status}: {error}).")
        return known

    def _others(self, run):
        return [OtherRule(other.task, self.store.known(other.tune_key)) for other in run.others]

    def _land(self, run, future):
        error = _error(future)
        if error is None:
            self._keep(run, future.result())
        elif not self.backend.died(error):
            raise error
        elif run.key in self.lost:
            lost = WorkerLost(f"the worker ended during the run; was there enough memory? ({type(error).__name__})")
            self._keep(run, Outcome().fail(lost, again=True))
        else:
            self.lost.add(run.key)
            self.alone.append(run)

    def _keep(self, run, outcome):
        self.store.save(run, outcome, self.version)
        for other, (tuning, result, error) in zip(run.others, outcome.others):
            self.store.save_other(other, tuning, result, self.version)
            if error:
                self.progress.noted(f"{run.title}: judging by another rule failed, and is left to its own run: {error}")
        self.settled.add(run.key)
        if outcome.status == "ok":
            self.n_done += 1
            self.progress.finished(run, outcome)
        else:
            self.progress.failed(run, outcome)


def _error(future):
    """What ended a worker's run, or None; returned, not raised, so that an interrupt that is raised is the user's."""
    try:
        return future.exception()
    except CancelledError as error:
        return error


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
    """

    n_runs: int
    n_done: int
    n_reused: int
    n_failed: int
    seconds: float
    notes: list = field(default_factory=list)
    failures: list = field(default_factory=list)


def execute(
    plan,
    store,
    *,
    jobs=1,
    backend=None,
    scheduler=None,
    progress=None,
    data_home=None,
    retry_failed=False,
):
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
        Default: by `jobs` and `scheduler`.
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
        Before anything is run: a method or parameter does not exist, or a file cannot be read.
    StoreError
        The store cannot be read or written; the message says what has become of what it held, and the way out.
    """
    began, progress = time.perf_counter(), progress or Progress()
    plan = plan if isinstance(plan, Plan) else Plan.from_toml(plan)
    store = store if isinstance(store, Store) else Store(Path(store))
    shelf = Shelf(plan.folder, data_home)
    runs = expand(plan, shelf)
    backend = make_backend(backend, jobs, scheduler)
    try:
        sizes = {data.name: shelf.sizes(data) for data in plan.datasets if data.file is not None}
        before, finished = store.begin(plan, runs, sizes), store.finished()
        todo = [run for run in runs if _is_open(run, finished.get(run.key), retry_failed)]
        notes = changes(before, runs, todo, finished, __version__)
        progress.planned(plan, len(runs), len(runs) - len(todo))
        for note in notes:
            progress.noted(note)
        session = Session(plan, store, shelf, backend, progress, __version__)
        _do(session, todo, finished)
        return _summary(store, runs, session.n_done, time.perf_counter() - began, notes)
    finally:
        progress.closed()
        store.close()


def _do(session, todo, finished):
    try:
        session.do(todo, finished)
    except BaseException:
        session.backend.close(kill=True)
        raise
    session.backend.close()


def _is_open(run, result, retry_failed):
    """Whether a run is to be done, given what the store has of it."""
    if result is None:
        return True
    status, metrics, again, _ = result
    if status == "failed":
        return again or retry_failed
    return not set(run.task.metrics) <= metrics


def _summary(store, runs, n_done, seconds, notes):
    results = [(run, *(store.result(run.key) or ("absent", ""))) for run in runs]
    failures = [(run.dataset, run.method, run.split, error) for run, status, error in results if status == "failed"]
    n_reused = len(runs) - n_done - len(failures)
    return Summary(len(runs), n_done, n_reused, len(failures), seconds, notes, failures)
