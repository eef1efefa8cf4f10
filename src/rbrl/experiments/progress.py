"""What `execute` tells while it runs, and how it is shown: as plain lines, or as a live view in a terminal."""

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
    """A listener; each method is called when its event happens, always from the thread that called `execute`.

    Write a subclass with the methods that you need; the others do nothing.

    Examples
    --------
    >>> from rbrl.experiments import Progress
    >>> class Failures(Progress):
    ...     def failed(self, run, outcome):
    ...         print(run.title, outcome.error)
    """

    def planned(self, plan: "Plan", n_runs: int, n_reused: int) -> None:
        """Before the first run: how many runs the plan has, and how many are done already.

        Parameters
        ----------
        plan : Plan
        n_runs, n_reused : int
        """

    def noted(self, text: str) -> None:
        """Something worth knowing, for people.

        Parameters
        ----------
        text : str
        """

    def started(self, run: "Run") -> None:
        """A run was given to a worker.

        Parameters
        ----------
        run : Run
        """

    def finished(self, run: "Run", outcome: "Outcome") -> None:
        """A run is in the store.

        Parameters
        ----------
        run : Run
        outcome : Outcome
        """

    def failed(self, run: "Run", outcome: "Outcome") -> None:
        """A run failed; its error is in the store.

        Parameters
        ----------
        run : Run
        outcome : Outcome
        """

    def closed(self) -> None:
        """Nothing more will come, whether all was done or not."""


class ShownProgress(Progress):
    """A comparison on a display: lines have each run, a live view the means so far; notes and errors stay above it.

    Parameters
    ----------
    display : Display
    """

    def __init__(self, display: Display) -> None:
        self.display, self._dataset, self._n_new = display, "", 0
        self._values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        self._running: list[str] = []

    def planned(self, plan: "Plan", n_runs: int, n_reused: int) -> None:
        """Show how much there is to do."""
        self._metrics, self._methods = [get_metric(name) for name in plan.metrics], [m.name for m in plan.methods]
        self._n_runs, self._n_done, self._began = n_runs, n_reused, time.monotonic()
        self.display.line(f"{n_runs} runs, {n_reused} of them done already")
        self.display.view(self._view)

    def noted(self, text: str) -> None:
        """Show the note."""
        self.display.line(text)
        self.display.above(text, "yellow")

    def started(self, run: "Run") -> None:
        """Show the run among those in flight."""
        self._running.append(run.title)

    def finished(self, run: "Run", outcome: "Outcome") -> None:
        """Show what was done and how long the rest may take."""
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
        self._n_done, self._n_new, self._dataset = self._n_done + 1, self._n_new + 1, run.dataset
        if run.title in self._running:
            self._running.remove(run.title)
        self.display.line(f"[{self._n_done}/{self._n_runs}{self._left(', ')}] {run.title}: {text}")

    def _left(self, before: str) -> str:
        """About how long the rest takes at the pace so far; nothing if nothing is left or known."""
        n_left = self._n_runs - self._n_done
        if self._n_new == 0 or n_left <= 0:
            return ""
        return f"{before}{duration((time.monotonic() - self._began) / self._n_new * n_left)} left"

    def _view(self) -> "Group":
        from rich.console import Group
        from rich.text import Text

        done = f"{self._n_done} of {self._n_runs} runs{self._left(', about ')}"
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
    """A line for each run, for logs and pipes.

    Parameters
    ----------
    stream : text stream, default=sys.stderr

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
    """The live view; failures and notes scroll above it.

    Parameters
    ----------
    console : rich.console.Console, optional
        Standard error by default, so that standard output can be piped.

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
    """Return the live view if `stream` (standard error by default) is a terminal, and plain lines otherwise.

    Parameters
    ----------
    stream : text stream, default=sys.stderr

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
