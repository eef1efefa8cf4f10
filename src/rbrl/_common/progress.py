"""How far long work has come, told as lines or as a bar, or not at all."""

import math
import sys
import time

# Passes that the speed of convergence is judged by.
RECENT = 6
# A fit that takes less shows nothing.
PATIENCE_SECONDS = 1.0


class Progress:
    """Counts blocks and passes and knows the certified gap; what it says goes to `show`, which does nothing here.

    Parameters
    ----------
    tol : float
        The gap at which training ends.
    """

    def __init__(self, tol):
        self.tol, self.n_passes, self.gap = tol, 0, math.inf
        self._began = time.perf_counter()
        self._gaps = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def advance(self, n_done, n_blocks):
        """Some blocks of a pass are done."""
        self.n_passes += n_done == n_blocks
        self.show(n_done / n_blocks, new=False)

    def reached(self, gap):
        """The solver has certified this gap."""
        self.gap = gap
        if 0 < gap < math.inf:
            self._gaps = [*self._gaps[-RECENT:], (self.n_passes, math.log(gap))]
        self.show(1.0, new=True)

    def seconds_left(self):
        """An estimate from the pace so far, or None."""
        if len(self._gaps) < 3 or self.gap <= self.tol:
            return None
        (first, start), (last, end) = self._gaps[0], self._gaps[-1]
        if end >= start or last == first:
            return None
        passes = (end - math.log(self.tol)) * (last - first) / (start - end)
        return passes * (time.perf_counter() - self._began) / self.n_passes

    def text(self):
        """One line about where training is."""
        gap = f", certified gap {self.gap:.1e}" if self.gap < math.inf else ""
        left = self.seconds_left()
        return f"pass {self.n_passes}{gap}" + (f", about {duration(left)} left" if left is not None else "")

    def show(self, share, new):
        """Show that this share of a pass is done; `new`: the gap is a new one."""

    def close(self):
        """Nothing more will come."""


class Lines(Progress):
    """A line for every certified gap, for logs and pipes."""

    def __init__(self, tol, stream=None):
        super().__init__(tol)
        self.stream = stream or sys.stderr

    def show(self, share, new):
        if new:
            self.stream.write(f"{self.text()}\n")
            self.stream.flush()


class Bar(Progress):
    """A bar for the pass at hand, on a terminal; it vanishes at the end."""

    def __init__(self, tol, console=None):
        super().__init__(tol)
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Display

        columns = BarColumn(bar_width=30), TextColumn("{task.description}")
        self._display = Display(*columns, console=console or Console(stderr=True), transient=True)
        self._task = self._display.add_task("pass 0", total=1.0)
        self._started = False

    def show(self, share, new):
        if not self._started and time.perf_counter() - self._began > PATIENCE_SECONDS:
            self._started = True
            self._display.start()
        self._display.update(self._task, completed=share, description=self.text())

    def close(self):
        if self._started:
            self._display.stop()


def progress_for(tol, verbose, stream=None):
    """A bar on a terminal, lines elsewhere if `verbose`, silence otherwise."""
    stream = stream or sys.stderr
    if stream.isatty():
        from rich.console import Console

        return Bar(tol, Console(file=stream))
    return Lines(tol, stream) if verbose else Progress(tol)


def duration(seconds):
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
