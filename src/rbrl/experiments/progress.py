"""Progress of `execute`: a listener for its events, shown as plain lines or as a live view in a terminal."""

import time
from collections import defaultdict
from typing import TYPE_CHECKING, TextIO

from rbrl._common.progress import Display, Lines, Live, bar, display_for, duration
from rbrl.metrics import get_metric

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

    from rbrl.experiments.plan import Plan
    from rbrl.experiments.runs import Outcome, Run


class Progress:
    """Listener for the events of a comparison.

    Each method is called when its event happens, in the thread that called `execute`. Write a
    subclass with the methods that you need; the others do nothing.

    Examples
    --------
    >>> from rbrl.experiments import Progress
    >>> class Failures(Progress):
    ...     def failed(self, run, outcome):
    ...         print(run.title, outcome.error)
    """

    def planned(self, plan: "Plan", n_runs: int, n_reused: int) -> None:
        """Handle the start of a plan with `n_runs` runs, of which `n_reused` are done already."""

    def noted(self, text: str) -> None:
        """Handle a note for the user."""

    def started(self, run: "Run") -> None:
        """Handle the start of a run on a worker."""

    def finished(self, run: "Run", outcome: "Outcome") -> None:
        """Handle the end of a run whose result is in the store."""

    def failed(self, run: "Run", outcome: "Outcome") -> None:
        """Handle the failure of a run whose error is in the store."""

    def closed(self) -> None:
        """Handle the end of the comparison, complete or not."""


class ShownProgress(Progress):
    """Progress on a display: a line for each run, or a live view of the means with notes and errors above it.

    Parameters
    ----------
    display : Display
        Lines or live view.
    """

    def __init__(self, display: Display) -> None:
        self.display = display
        self._dataset = ""
        self._n_new = 0
        self._values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        self._running: list[str] = []

    def planned(self, plan: "Plan", n_runs: int, n_reused: int) -> None:
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

    def started(self, run: "Run") -> None:
        """Show the run among the running ones."""
        self._running.append(run.title)

    def finished(self, run: "Run", outcome: "Outcome") -> None:
        """Show the run and the time left."""
        self._count(run, f"{outcome.tune_seconds + outcome.train_seconds + outcome.test_seconds:.1f} s")
        for name, value in outcome.values.items():
            self._values[run.dataset, run.method, name].append(value)

    def failed(self, run: "Run", outcome: "Outcome") -> None:
        """Show the error."""
        error = " ".join(outcome.error.split())
        self._count(run, f"FAILED: {error}")
        self.display.above(f"{run.title}: {error}", "red")

    def closed(self) -> None:
        """Close the display."""
        self.display.close()

    def _count(self, run: "Run", text: str) -> None:
        self._n_done += 1
        self._n_new += 1
        self._dataset = run.dataset
        if run.title in self._running:
            self._running.remove(run.title)
        self.display.line(f"[{self._n_done}/{self._n_runs}{self._time_left(', ')}] {run.title}: {text}")

    def _time_left(self, prefix: str) -> str:
        """Return the time left at the present pace, after a prefix; empty if unknown or if no run is left."""
        n_left = self._n_runs - self._n_done
        if self._n_new == 0 or n_left <= 0:
            return ""
        return f"{prefix}{duration((time.monotonic() - self._start) / self._n_new * n_left)} left"

    def _view(self) -> "Group":
        from rich.console import Group
        from rich.text import Text

        done = f"{self._n_done} of {self._n_runs} runs{self._time_left(', about ')}"
        head = bar(self._n_done, max(self._n_runs, 1), done, space=2)
        running = Text("  ".join(self._running[:4]), style="dim", overflow="ellipsis", no_wrap=True)
        return Group(*([self._table()] if self._dataset else []), head, running)

    def _table(self) -> "Table":
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

    Parameters
    ----------
    console : rich.console.Console, optional
        Console of the view; by default standard error.

    Examples
    --------
    >>> import io
    >>> from tempfile import mkdtemp
    >>> from rich.console import Console
    >>> from rbrl.experiments import Plan, RichProgress, execute
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"brl": {"params": {"tol": 0.1}}}, "splits": {"number": 1}})
    >>> screen = Console(file=io.StringIO(), width=80)
    >>> execute(plan, mkdtemp(), progress=RichProgress(screen)).n_done
    1
    """

    def __init__(self, console: "Console | None" = None) -> None:
        super().__init__(Live(console))


def progress_for(stream: TextIO | None = None) -> Progress:
    """Return a live view if the stream is a terminal, and plain lines otherwise.

    Parameters
    ----------
    stream : text stream, default=sys.stderr
        Stream for the progress.

    Returns
    -------
    Progress

    Examples
    --------
    >>> import io
    >>> from rbrl.experiments import Progress, progress_for
    >>> isinstance(progress_for(io.StringIO()), Progress)
    True
    """
    return ShownProgress(display_for(True, stream))
