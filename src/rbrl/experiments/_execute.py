"""`execute`: do the runs of a plan that are not done yet."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from rbrl._version import __version__
from rbrl.experiments.backends import make_backend
from rbrl.experiments.changes import changes
from rbrl.experiments.data import Shelf
from rbrl.experiments.plan import Plan
from rbrl.experiments.progress import Progress
from rbrl.experiments.runs import expand
from rbrl.experiments.session import Session
from rbrl.experiments.store import Store


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
