"""What `execute` tells while it runs: plain lines, or a live view in a terminal."""

import sys
import time
from collections import defaultdict

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rbrl.metrics import get_metric


class Progress:
    """A listener; each method is called when its event happens, always from the thread that called `execute`.

    Write a subclass with the methods that you need; the others do nothing.
    """

    def planned(self, plan, n_runs, n_reused):
        """Before the first run: how many runs the plan has, and how many are done already."""

    def noted(self, text):
        """Something worth knowing, for people."""

    def started(self, run):
        """A run was given to a worker."""

    def finished(self, run, outcome):
        """A run is in the store."""

    def failed(self, run, outcome):
        """A run failed; its error is in the store."""

    def closed(self):
        """Nothing more will come, whether all was done or not."""


class PlainProgress(Progress):
    """A line for each run, for logs and pipes.

    Parameters
    ----------
    stream : text stream, default=sys.stderr
    """

    def __init__(self, stream=None):
        self.stream = stream or sys.stderr
        self._n_runs = self._n_done = self._n_new = 0
        self._began = time.monotonic()

    def planned(self, plan, n_runs, n_reused):
        """Write how much there is to do."""
        self._n_runs, self._n_done, self._began = n_runs, n_reused, time.monotonic()
        self._line(f"{n_runs} runs, {n_reused} of them done already")

    def noted(self, text):
        """Write the note."""
        self._line(text)

    def finished(self, run, outcome):
        """Write what was done and how long the rest may take."""
        seconds = outcome.tune_seconds + outcome.train_seconds + outcome.test_seconds
        self._count(f"{run.title}: {seconds:.1f} s")

    def failed(self, run, outcome):
        """Write the error."""
        self._count(f"{run.title}: FAILED: {one_line(outcome.error)}")

    def _count(self, text):
        self._n_done += 1
        self._n_new += 1
        left = time_left(self._began, self._n_new, self._n_runs - self._n_done)
        self._line(f"[{self._n_done}/{self._n_runs}{left and f', {left} left'}] {text}")

    def _line(self, text):
        self.stream.write(f"{text}\n")
        self.stream.flush()


def one_line(text):
    """Text without line breaks, such as errors have them."""
    return " ".join(text.split())


def time_left(began, n_new, n_left):
    """About how long the rest takes at the pace so far, as text; empty if nothing is left or known."""
    if n_new == 0 or n_left <= 0:
        return ""
    seconds = round((time.monotonic() - began) / n_new * n_left)
    if seconds < 60:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class RichProgress(Progress):
    """The live view; failures and notes scroll above it.

    Parameters
    ----------
    console : rich.console.Console, optional
        Standard error by default, so that standard output can be piped.
    """

    def __init__(self, console=None):
        self.console = console or Console(stderr=True)
        self._live = None
        self._values = defaultdict(list)
        self._running, self._dataset = [], ""
        self._n_runs = self._n_done = self._n_new = 0

    def planned(self, plan, n_runs, n_reused):
        """Open the view."""
        self._metrics, self._methods = [get_metric(name) for name in plan.metrics], [m.name for m in plan.methods]
        self._n_runs, self._n_done, self._began = n_runs, n_reused, time.monotonic()
        self._live = Live(console=self.console, get_renderable=self._view, refresh_per_second=4, transient=True)
        self._live.start()

    def noted(self, text):
        """Print the note above the view."""
        self.console.print(Text(text, style="yellow"))

    def started(self, run):
        """Show the run among those in flight."""
        self._running.append(run.title)

    def finished(self, run, outcome):
        """Add the values to the table."""
        self._count(run)
        for name, value in outcome.values.items():
            self._values[run.dataset, run.method, name].append(value)

    def failed(self, run, outcome):
        """Print the error above the view."""
        self._count(run)
        self.console.print(Text(f"{run.title}: {one_line(outcome.error)}", style="red"))

    def closed(self):
        """Close the view."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _count(self, run):
        self._n_done, self._n_new, self._dataset = self._n_done + 1, self._n_new + 1, run.dataset
        if run.title in self._running:
            self._running.remove(run.title)

    def _view(self):
        left = time_left(self._began, self._n_new, self._n_runs - self._n_done)
        head = Table.grid(padding=(0, 2))
        head.add_row(
            ProgressBar(total=max(self._n_runs, 1), completed=self._n_done, width=30),
            f"{self._n_done} of {self._n_runs} runs{left and f', about {left} left'}",
        )
        running = Text("  ".join(self._running[:4]), style="dim", overflow="ellipsis", no_wrap=True)
        return Group(*([self._table()] if self._dataset else []), head, running)

    def _table(self):
        table = Table(title=f"{self._dataset}, means so far", title_justify="left")
        table.add_column("method")
        for metric in self._metrics:
            table.add_column(f"{metric.abbreviation} {metric.arrow}", justify="right")
        for method in self._methods:
            cells = [self._values.get((self._dataset, method, metric.name)) for metric in self._metrics]
            table.add_row(method, *(f"{np.mean(cell):.4f}" if cell else "" for cell in cells))
        return table


def progress_for(stream=None):
    """Return the live view if `stream` (standard error by default) is a terminal, and plain lines otherwise."""
    stream = stream or sys.stderr
    return RichProgress(Console(file=stream)) if stream.isatty() else PlainProgress(stream)
