"""`execute`: do the runs of a plan that are not done yet, and show the progress as plain lines or as a live view."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rbrl._common.checks import users_level
from rbrl._common.progress import Display, Lines, Live, bar, display_for, duration
from rbrl.exceptions import RBRLError
from rbrl.experiments.plan import Plan
from rbrl.experiments.runs import FoldResult, Outcome, Progress, Run, describe_changes, expand, find_missing_points
from rbrl.experiments.specs import DatasetLoader
from rbrl.experiments.store import Store
from rbrl.metrics import get_metric

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

    from rbrl.experiments.worker import Serial

# Seconds between two checks of the runs of another process.
POLL_SECONDS = 0.5
# Seconds between two checks for lost data of the running runs.
DATA_CHECK_SECONDS = 5.0


class TuningFailed(RBRLError):
    """The run that tunes for others has no complete tuning."""


class WorkerLost(RBRLError):
    """A worker ended during a run."""


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
        """Wait, and return the runs that have ended; cancel and return those that can never end."""
        while not (done := wait(self.running, DATA_CHECK_SECONDS, FIRST_COMPLETED).done):
            done = {future for future in self.running if self.backend.is_data_lost(future)}
            for future in done:
                future.cancel()
            if done:
                break
        return list(done)

    def _start_runs(self) -> None:
        """Start runs until every worker has one, or a lost run alone; drop data that is not needed."""
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
        """Start a run, or put it among those of other processes, or among the settled ones."""
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
        """Save the outcome of a run, or try it again alone, once, if its worker was lost."""
        try:  # the error is returned; an interrupt that is raised here comes from the user
            error = future.exception()
        except CancelledError as cancelled:
            error = cancelled
        if error is None:
            return self._save(run, future.result())
        if not self.backend.is_worker_lost(error):
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
        for category, text in outcome.warnings:
            warnings.warn(text, category, stacklevel=users_level())
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

    The plan has `n_runs` runs: `n_done` were completed now, `n_reused` before or by another
    process, and `n_failed` failed. `seconds` is the time of the call. The notes are sentences about
    runs that could not be reused. A failure has data set, method, split and error.
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
        Way to run the jobs. Default: "dask" with a scheduler, "serial" for one job, "processes" for more.
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
    # Imported here, because a program that only reads a store needs no methods.
    from rbrl.experiments.worker import make_backend

    start = time.perf_counter()
    progress = progress or Progress()
    plan = plan if isinstance(plan, Plan) else Plan.from_toml(plan)
    store = store if isinstance(store, Store) else Store(Path(store))
    loader = DatasetLoader(plan.folder, data_home)
    runs = expand(plan, loader)
    workers = make_backend(backend, jobs, scheduler)
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


class ShownProgress(Progress):
    """Progress on a display: a line for each run, or a live view of the means with notes and errors above it."""

    def __init__(self, display: Display) -> None:
        self.display = display
        self._dataset = ""
        self._n_new = 0
        self._values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        self._running: list[str] = []

    def planned(self, plan: Plan, n_runs: int, n_reused: int) -> None:
        """Show the number of runs."""
        self._metrics = [get_metric(name) for name in plan.metrics]
        self._methods = [method.name for method in plan.methods]
        self._n_runs = n_runs
        self._n_done = n_reused
        self._start = time.monotonic()
        self.display.line(f"{n_runs} runs, {n_reused} of them done already")
        self.display.view(self._view)

    def noted(self, text: str) -> None:
        """Show the note."""
        self.display.line(text)
        self.display.above(text, "yellow")

    def started(self, run: Run) -> None:
        """Show the run among the running ones."""
        self._running.append(run.title)

    def finished(self, run: Run, outcome: Outcome) -> None:
        """Show the run and the time left."""
        self._count(run, f"{outcome.tune_seconds + outcome.train_seconds + outcome.test_seconds:.1f} s")
        for name, value in outcome.values.items():
            self._values[run.dataset, run.method, name].append(value)

    def failed(self, run: Run, outcome: Outcome) -> None:
        """Show the error."""
        error = " ".join(outcome.error.split())
        self._count(run, f"FAILED: {error}")
        self.display.above(f"{run.title}: {error}", "red")

    def closed(self) -> None:
        """Close the display."""
        self.display.close()

    def _count(self, run: Run, text: str) -> None:
        """Count a run, and write its line with a text about its outcome."""
        self._n_done += 1
        self._n_new += 1
        self._dataset = run.dataset
        if run.title in self._running:
            self._running.remove(run.title)
        self.display.line(f"[{self._n_done}/{self._n_runs}{self._time_left(', ')}] {run.title}: {text}")

    def _time_left(self, prefix: str) -> str:
        """Return the time left at the present pace, after a prefix; empty if unknown or at the end."""
        n_left = self._n_runs - self._n_done
        if self._n_new == 0 or n_left <= 0:
            return ""
        return f"{prefix}{duration((time.monotonic() - self._start) / self._n_new * n_left)} left"

    def _view(self) -> Group:
        """Return the live display: the table of the data set, the progress, and up to four runs."""
        from rich.console import Group
        from rich.text import Text

        done = f"{self._n_done} of {self._n_runs} runs{self._time_left(', about ')}"
        head = bar(self._n_done, max(self._n_runs, 1), done, space=2)
        running = Text("  ".join(self._running[:4]), style="dim", overflow="ellipsis", no_wrap=True)
        return Group(*([self._table()] if self._dataset else []), head, running)

    def _table(self) -> Table:
        """Return the means so far of every method on the data set of the last run."""
        from rich.table import Table

        table = Table(title=f"{self._dataset}, means so far", title_justify="left")
        table.add_column("method")
        for metric in self._metrics:
            table.add_column(f"{metric.abbreviation} {metric.arrow}", justify="right")
        for method in self._methods:
            cells = [self._values.get((self._dataset, method, metric.name)) for metric in self._metrics]
            table.add_row(method, *(f"{sum(cell) / len(cell):.4f}" if cell else "" for cell in cells))
        return table


class PlainProgress(ShownProgress):
    """Progress as a line for each run, for logs and pipes.

    Parameters
    ----------
    stream : text stream, default=sys.stderr
        Stream for the lines.

    Examples
    --------
    >>> import io
    >>> from tempfile import mkdtemp
    >>> from rbrl.experiments import PlainProgress, Plan, execute
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"brl": {"params": {"tol": 0.1}}}, "splits": {"number": 1}})
    >>> log = io.StringIO()
    >>> execute(plan, mkdtemp(), progress=PlainProgress(log)).n_done
    1
    >>> "brl" in log.getvalue()
    True
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(Lines(stream))


class RichProgress(ShownProgress):
    """Progress as a live view, with failures and notes above it.

    The view is on the console, by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(Live(console))


def progress_for(stream: TextIO | None = None) -> Progress:
    """Return a live view if the stream is a terminal, and plain lines otherwise."""
    return ShownProgress(display_for(True, stream))
