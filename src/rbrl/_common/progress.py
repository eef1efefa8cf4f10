"""Progress of long computations, shown as nothing, as lines of a log or as a live view in a terminal.

A class counts the progress of each kind of work and sends it to a :class:`Display`: `Passes` of a fit,
`Models` of a search, and `rbrl.experiments.Progress` of a comparison.
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live as RichLive
    from rich.table import Table


# Number of gaps from which, together with the latest gap, the speed of convergence is estimated.
N_RECENT_GAPS = 6
# Seconds before the live view of a fit or a search opens.
PATIENCE_SECONDS = 1.0
# Share of the elapsed time that is added to the pause between two lines of a search, so that a long
# search does not fill a log.
LINE_SHARE = 0.1


class Display:
    """Display that shows nothing; base class of the displays of progress.

    Examples
    --------
    >>> import sys
    >>> for display in (Display(), Lines(sys.stdout)):
    ...     display.line("3 of 4")
    3 of 4
    """

    is_silent = True

    def line(self, text: str) -> None:
        """Write a line of a log."""

    def above(self, text: str, style: str) -> None:
        """Print a text that remains above a live view.

        Parameters
        ----------
        text, style : str
            Text, and a style of Rich.
        """

    def view(self, draw: "Callable[[], RenderableType]") -> None:
        """Update a live view.

        Parameters
        ----------
        draw : callable
            Function that returns the current content of the view.
        """

    def close(self) -> None:
        """Close the display."""


class Lines(Display):
    """Display that writes lines, for logs and pipes.

    Parameters
    ----------
    stream : text stream, default=sys.stderr
    """

    is_silent = False

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr

    def line(self, text: str) -> None:
        """Write the line and flush the stream."""
        self.stream.write(f"{text}\n")
        self.stream.flush()


class Live(Display):
    """Live view in a terminal, which is removed at the end.

    Parameters
    ----------
    console : rich.console.Console, optional
        Console of the view. The default is standard error, so that standard output can be piped.
    patience : float, default=0
        Seconds before the view opens, so that quick work shows none.
    """

    is_silent = False

    def __init__(self, console: "Console | None" = None, patience: float = 0.0) -> None:
        # Rich is optional and slow to import: only a live view imports it.
        from rich.console import Console

        self.console = console or Console(stderr=True)
        self._opening_time = time.perf_counter() + patience
        self._live: RichLive | None = None

    def above(self, text: str, style: str) -> None:
        """Print the text above the view."""
        from rich.text import Text

        self.console.print(Text(text, style=style))

    def view(self, draw: "Callable[[], RenderableType]") -> None:
        """Open the view if `patience` seconds have passed; an open view refreshes itself."""
        from rich.live import Live

        if self._live is None and time.perf_counter() >= self._opening_time:
            self._live = Live(console=self.console, get_renderable=draw, refresh_per_second=4, transient=True)
            self._live.start()

    def close(self) -> None:
        """Close the view."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def display_for(verbose: bool = True, stream: TextIO | None = None, patience: float = 0.0) -> Display:
    """Return a live view if `stream` is a terminal, else lines if `verbose`, else a silent display.

    The caller must close it.

    Parameters
    ----------
    verbose : bool, default=True
    stream : text stream, default=sys.stderr
    patience : float, default=0
        Seconds before a live view opens.
    """
    stream = stream or sys.stderr
    # Without Rich, which the extra `cli` installs, a terminal gets lines, as a file does.
    if not stream.isatty() or find_spec("rich") is None:
        return Lines(stream) if verbose else Display()
    from rich.console import Console

    return Live(Console(file=stream), patience)


def bar(done: float, total: float, text: str, space: int = 1) -> "Table":
    """Return a progress bar with a text beside it, for a live view.

    Parameters
    ----------
    done, total : float
    text : str
    space : int, default=1
        Number of blank columns between bar and text.
    """
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    line = Table.grid(padding=(0, space))
    line.add_row(ProgressBar(total=total, completed=done, width=30), text)
    return line


def duration(seconds: float) -> str:
    """Return a number of seconds as text, in seconds, minutes or hours.

    Examples
    --------
    >>> duration(75), duration(1000), duration(9000)
    ('75 s', '17 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@dataclass
class Passes:
    """Passes of a fit over its rows, and the latest certified gap.

    Parameters
    ----------
    tol : float
        Gap at which the fit ends.
    display : Display, optional
        Display of the progress; the default is silent.
    callback : callable, optional
        Function that is called with every certified gap and returns True to stop the fit.

    Examples
    --------
    >>> passes = Passes(1e-3)
    >>> passes.advance(1, 2)
    >>> passes.advance(2, 2)
    >>> passes.on_gap(0.5)
    False
    >>> passes.text()
    'pass 1, certified gap 5.0e-01'
    """

    tol: float
    display: Display = field(default_factory=Display)
    callback: Callable[[float], bool] | None = None
    n_passes: int = field(default=0, init=False)
    gap: float = field(default=math.inf, init=False)
    _share: float = field(default=0.0, init=False)
    _gaps: list[tuple[int, float]] = field(default_factory=list, init=False)  # passes, and logarithm of the gap
    _start: float = field(default_factory=time.perf_counter, init=False)

    def advance(self, n_done: int, n_blocks: int) -> None:
        """Count blocks of the current pass.

        Parameters
        ----------
        n_done, n_blocks : int
            Numbers of finished blocks and of all blocks of the pass.
        """
        self.n_passes += n_done == n_blocks
        self._share = n_done / n_blocks
        if not self.display.is_silent:
            self.display.view(self._draw)

    def on_gap(self, gap: float) -> bool:
        """Show a gap that the solver has certified.

        Returns
        -------
        bool
            Whether the solver shall stop.
        """
        self.gap = gap
        self._share = 1.0
        if 0 < gap < math.inf:
            self._gaps = [*self._gaps[-N_RECENT_GAPS:], (self.n_passes, math.log(gap))]
        if not self.display.is_silent:
            self.display.line(self.text())
            self.display.view(self._draw)
        return self.callback is not None and self.callback(gap)

    def seconds_left(self) -> float | None:
        """Return an estimate of the remaining seconds, or None if the gaps are too few or do not fall.

        The estimate assumes that every pass reduces the gap by the same factor.
        """
        if len(self._gaps) < 3 or not 0 < self.tol < self.gap:
            return None
        first_pass, first_gap = self._gaps[0]
        last_pass, last_gap = self._gaps[-1]
        if last_gap >= first_gap or last_pass == first_pass:
            return None
        passes = (last_gap - math.log(self.tol)) * (last_pass - first_pass) / (first_gap - last_gap)
        return passes * (time.perf_counter() - self._start) / self.n_passes

    def text(self) -> str:
        """Return the progress as one line."""
        gap = f", certified gap {self.gap:.1e}" if self.gap < math.inf else ""
        seconds = self.seconds_left()
        return f"pass {self.n_passes}{gap}" + ("" if seconds is None else f", about {duration(seconds)} left")

    def _draw(self) -> "Table":
        """Return the bar of the current pass with the text beside it."""
        return bar(self._share, 1.0, self.text())


class Models:
    """Number of models that a search has fitted, of a total that may grow during the search.

    Parameters
    ----------
    owner : str
        Class that runs the search.
    display : Display, optional
        Display of the progress; the default is silent.
    pause : float, default=1
        Seconds between two lines. The pause grows in a long search, and the last line has none.
    callback : callable, optional
        Function that is called when models are fitted.

    Examples
    --------
    >>> models = Models("RBRLClassifierCV")
    >>> models.expect(4)
    >>> models.advance(3)
    >>> models.text()
    'RBRLClassifierCV: 3 of 4 models, about 0 s left'
    >>> models.advance(1)
    >>> models.text()
    'RBRLClassifierCV: 4 of 4 models, 0 s'
    """

    def __init__(
        self, owner: str, display: Display | None = None, pause: float = PATIENCE_SECONDS,
        callback: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        self.display = display or Display()
        self._start = time.perf_counter()
        self.owner = owner
        self.pause = pause
        self.callback = callback
        self.n_done = 0
        self.n_models = 0
        self._last_line = self._start

    def __enter__(self) -> Self:
        """Return this object; nothing is shown before the first call of `advance`."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the display; an error of the block is raised as usual."""
        self.display.close()

    def expect(self, n_further: int) -> None:
        """Set the number of models that are still to be fitted."""
        self.n_models = self.n_done + n_further

    def advance(self, n_solved: int) -> None:
        """Count models that were fitted."""
        self.n_done += n_solved
        now = time.perf_counter()
        pause = self.pause + LINE_SHARE * (now - self._start)
        if now - self._last_line >= pause or self.n_done >= self.n_models:
            self._last_line = now
            self.display.line(self.text())
        self.display.view(self._draw)
        if self.callback is not None:
            self.callback()

    def text(self) -> str:
        """Return the progress as one line."""
        seconds = time.perf_counter() - self._start
        n_left = self.n_models - self.n_done
        if n_left > 0:
            time_text = f"about {duration(seconds / max(self.n_done, 1) * n_left)} left"
        else:
            time_text = duration(seconds)
        return f"{self.owner}: {self.n_done} of {self.n_models} models, {time_text}"

    def _draw(self) -> "Table":
        """Return the bar of the fitted models with the text beside it."""
        return bar(self.n_done, max(self.n_models, 1), self.text())
