"""How far long work has come: told to a display, which is silent, writes lines, or is a live view in a terminal.

Each kind of work keeps its own account and says what happens once, in the words of every display: `Passes` of a fit,
`Models` of a search, `Transfer` of a download, and `rbrl.experiments.Progress` of a comparison.
"""

import math
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live as RichLive
    from rich.table import Table


# Passes that the speed of convergence is judged by.
RECENT = 6
# A fit that takes less shows nothing.
PATIENCE_SECONDS = 1.0
# A search writes its next line after this share of its time so far, so that long ones do not fill a log.
LINE_SHARE = 0.1


class Display:
    """Where progress is shown; this one shows nothing.

    Examples
    --------
    >>> import sys
    >>> for display in (Display(), Lines(sys.stdout)):
    ...     display.line("3 of 4")
    3 of 4
    """

    def line(self, text: str) -> None:
        """Something happened, in the words of a log.

        Parameters
        ----------
        text : str
        """

    def above(self, text: str, style: str) -> None:
        """Something happened that stays to be read above a live view.

        Parameters
        ----------
        text, style : str
            The style is one of Rich's.
        """

    def view(self, draw: "Callable[[], RenderableType]") -> None:
        """Something has changed; `draw` returns what a live view shows now.

        Parameters
        ----------
        draw : callable
        """

    def close(self) -> None:
        """Nothing more will come."""


class Lines(Display):
    """A line for everything that happens, for logs and pipes; standard error by default.

    Parameters
    ----------
    stream : text stream, default=sys.stderr
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr

    def line(self, text: str) -> None:
        """Write the line, at once."""
        self.stream.write(f"{text}\n")
        self.stream.flush()


class Live(Display):
    """A live view in a terminal, which vanishes at the end.

    Parameters
    ----------
    console : rich.console.Console, optional
        Standard error by default, so that standard output can be piped.
    patience : float, default=0
        Seconds before which nothing is shown: what is quick needs no view.
    """

    def __init__(self, console: "Console | None" = None, patience: float = 0.0) -> None:
        # Here, and not above: whoever is silent need not wait for Rich, nor have it.
        from rich.console import Console

        self.console = console or Console(stderr=True)
        self._from = time.perf_counter() + patience
        self._live: RichLive | None = None

    def above(self, text: str, style: str) -> None:
        """Print the text, which scrolls."""
        from rich.text import Text

        self.console.print(Text(text, style=style))

    def view(self, draw: "Callable[[], RenderableType]") -> None:
        """Open the view if it is time; it then draws itself."""
        from rich.live import Live

        if self._live is None and time.perf_counter() >= self._from:
            self._live = Live(console=self.console, get_renderable=draw, refresh_per_second=4, transient=True)
            self._live.start()

    def close(self) -> None:
        """Close the view."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def display_for(verbose: bool = True, stream: TextIO | None = None, patience: float = 0.0) -> Display:
    """A live view if `stream` (standard error by default) is a terminal, else lines if `verbose`, else silence.

    Parameters
    ----------
    verbose : bool, default=True
    stream : text stream, default=sys.stderr
    patience : float, default=0
        Seconds before a live view opens.

    Returns
    -------
    Display
    """
    stream = stream or sys.stderr
    # A terminal without Rich, which comes with the extra `cli`, is served like a file.
    if not stream.isatty() or find_spec("rich") is None:
        return Lines(stream) if verbose else Display()
    from rich.console import Console

    return Live(Console(file=stream), patience)


def bar(done: float, total: float, text: str, space: int = 1) -> "Table":
    """A bar with a text beside it, for a live view.

    Parameters
    ----------
    done, total : float
    text : str
    space : int, default=1
        Columns between the two.

    Returns
    -------
    rich.table.Table
    """
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    line = Table.grid(padding=(0, space))
    line.add_row(ProgressBar(total=total, completed=done, width=30), text)
    return line


def duration(seconds: float) -> str:
    """Seconds as people say them.

    Parameters
    ----------
    seconds : float

    Returns
    -------
    str

    Examples
    --------
    >>> duration(75), duration(1000), duration(9000)
    ('75 s', '17 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Passes:
    """The passes of a fit over its rows, and the gap that it has certified.

    Parameters
    ----------
    tol : float
        The gap at which training ends.
    display : Display, optional
        Default: a silent one.
    told : callable, optional
        Told every gap too; what it answers is whether to stop.

    Examples
    --------
    >>> passes = Passes(1e-3)
    >>> passes.advance(1, 2)
    >>> passes.advance(2, 2)
    >>> passes.reached(0.5)
    False
    >>> passes.text()
    'pass 1, certified gap 5.0e-01'
    """

    def __init__(self, tol: float, display: Display | None = None, told: Callable[[float], bool] | None = None) -> None:
        self.tol, self.display, self.told = tol, display or Display(), told
        self.n_passes, self.gap = 0, math.inf
        self._share, self._began = 0.0, time.perf_counter()
        self._gaps: list[tuple[int, float]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.display.close()

    def advance(self, n_done: int, n_blocks: int) -> None:
        """Some blocks of a pass are done.

        Parameters
        ----------
        n_done, n_blocks : int
            Of this pass.
        """
        self.n_passes += n_done == n_blocks
        self._share = n_done / n_blocks
        self.display.view(self._drawn)

    def reached(self, gap: float) -> bool:
        """The solver has certified this gap.

        Parameters
        ----------
        gap : float

        Returns
        -------
        bool
            Whether it is asked to stop here.
        """
        self.gap, self._share = gap, 1.0
        if 0 < gap < math.inf:
            self._gaps = [*self._gaps[-RECENT:], (self.n_passes, math.log(gap))]
        self.display.line(self.text())
        self.display.view(self._drawn)
        return self.told is not None and self.told(gap)

    def seconds_left(self) -> float | None:
        """An estimate from the pace so far, or None: gaps shrink by about the same factor in every pass."""
        if len(self._gaps) < 3 or not 0 < self.tol < self.gap:
            return None
        (first, start), (last, end) = self._gaps[0], self._gaps[-1]
        if end >= start or last == first:
            return None
        passes = (end - math.log(self.tol)) * (last - first) / (start - end)
        return passes * (time.perf_counter() - self._began) / self.n_passes

    def text(self) -> str:
        """One line about where training is."""
        gap = f", certified gap {self.gap:.1e}" if self.gap < math.inf else ""
        left = self.seconds_left()
        return f"pass {self.n_passes}{gap}" + (f", about {duration(left)} left" if left is not None else "")

    def _drawn(self) -> "Table":
        return bar(self._share, 1.0, self.text())


def passes_for(
    tol: float, verbose: bool | int, stream: TextIO | None = None, told: Callable[[float], bool] | None = None
) -> Passes:
    """Passes with a bar on a terminal, with lines elsewhere if `verbose`, silent otherwise.

    Parameters
    ----------
    tol : float
        The gap at which training ends.
    verbose : bool or int
    stream : text stream, default=sys.stderr
    told : callable, optional
        As for :class:`Passes`.

    Returns
    -------
    Passes
    """
    return Passes(tol, display_for(bool(verbose), stream, PATIENCE_SECONDS), told)


class Models:
    """The models of a search, of which more may be wanted as it goes on.

    Parameters
    ----------
    owner : str
        Whose search it is.
    display : Display, optional
        Default: a silent one.
    pause : float, default=1
        Seconds between two lines, but for the last; more in long searches.
    told : callable, optional
        Called as models are solved, for others who watch.

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
        told: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        self.owner, self.display, self.pause, self.told = owner, display or Display(), pause, told
        self.n_done, self.n_models = 0, 0
        self._began = self._said = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.display.close()

    def expect(self, n_further: int) -> None:
        """So many will follow, as far as is known.

        Parameters
        ----------
        n_further : int
        """
        self.n_models = self.n_done + n_further

    def advance(self, n_solved: int) -> None:
        """So many more are solved.

        Parameters
        ----------
        n_solved : int
        """
        self.n_done += n_solved
        now = time.perf_counter()
        pause = self.pause + LINE_SHARE * (now - self._began)
        if now - self._said >= pause or self.n_done >= self.n_models:
            self._said = now
            self.display.line(self.text())
        self.display.view(self._drawn)
        if self.told is not None:
            self.told()

    def text(self) -> str:
        """One line about where the search is."""
        seconds, n_left = time.perf_counter() - self._began, max(self.n_models - self.n_done, 0)
        done = f"{self.owner}: {self.n_done} of {self.n_models} models, "
        return done + (
            f"about {duration(seconds / max(self.n_done, 1) * n_left)} left" if n_left else duration(seconds)
        )

    def _drawn(self) -> "Table":
        return bar(self.n_done, max(self.n_models, 1), self.text())


def models_for(
    owner: str, verbose: bool | int, stream: TextIO | None = None, told: Callable[[], object] | None = None
) -> Models:
    """Models with a bar on a terminal and lines elsewhere if `verbose`, silent otherwise.

    Parameters
    ----------
    owner : str
        Whose search it is.
    verbose : bool or int
    stream : text stream, default=sys.stderr
    told : callable, optional
        As for :class:`Models`.

    Returns
    -------
    Models
    """
    return Models(owner, display_for(True, stream, PATIENCE_SECONDS) if verbose else None, told=told)


class Transfer:
    """A file on its way, with a bar on terminals and nothing elsewhere.

    Parameters
    ----------
    name : str
    """

    def __init__(self, name: str) -> None:
        self._display, self._columns = display_for(verbose=False), None
        if isinstance(self._display, Live):
            from rich.progress import Progress

            self._columns = Progress(auto_refresh=False)  # it draws, and never starts itself
            self._task = self._columns.add_task(name, total=None)
            self._display.view(self._columns.get_renderable)

    def received(self, done: int | None = None, total: int | None = None) -> None:
        """So many bytes are there; so many there will be.

        Parameters
        ----------
        done, total : int, optional
        """
        if self._columns is not None:
            self._columns.update(self._task, completed=done, total=total)

    def close(self) -> None:
        """It is there, or failed."""
        self._display.close()
