"""Figures of a comparison, and the style of all figures of rbrl.

The colours are safe for colour-blind readers, a grey print can be read, and the same figure gives the same bytes.
Average ranks are the paper's Figure 1, critical differences its Figure 2.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rbrl._common.environment import explain_import_error, replace_file
from rbrl.experiments.comparison import Comparison
from rbrl.experiments.results import SHORTEST_SECONDS
from rbrl.experiments.tables import heading

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.rcsetup import cycler
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
    from matplotlib.transforms import Bbox
except ImportError as error:
    raise explain_import_error(error, "report", "Drawing figures") from error

__all__ = [
    "draw_average_ranks", "draw_critical_difference", "draw_trade_off", "plain_powers", "save_figure", "use_style",
]  # fmt: skip

# Colour of text.
INK = "#1d1f24"
# Colour of less important text and marks.
MUTED = "#667080"
# Colour of grid lines.
RULE = "#cfd4dc"
# Colour of the most important marks. It differs from CONTRAST for colour-blind readers and in a grey print.
ACCENT = "#0b5fa5"
# Colour of marks that are set against ACCENT.
CONTRAST = "#c4601d"
# Colour map, ordered by lightness, so that a grey print keeps the order.
HEAT = "viridis"
# Longest name of a method, in letters.
LONGEST_NAME = 26
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# A fixed salt gives the same ids every time. Names may contain a dollar sign, so no text is parsed as a formula.
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "rbrl", "text.parse_math": False,
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9, "text.color": INK,
    "axes.titlecolor": INK, "axes.titlesize": 9.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.edgecolor": RULE, "axes.labelcolor": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": RULE, "grid.linewidth": 0.6, "lines.linewidth": 1.6,
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "legend.frameon": False, "legend.fontsize": 8, "axes.prop_cycle": cycler(color=[ACCENT, CONTRAST, INK, MUTED]),
}  # fmt: skip


class Palette(NamedTuple):
    """Colours of the style."""

    ink: str = INK
    muted: str = MUTED
    accent: str = ACCENT
    contrast: str = CONTRAST


@contextmanager
def use_style(more: Mapping[Any, Any] | None = None) -> Iterator[Palette]:
    """Apply the style of all figures inside a `with` block, which gets the colours of the style.

    Parameters
    ----------
    more : mapping, optional
        Further settings of matplotlib.

    Yields
    ------
    Palette
        Colours with the names `ink`, `muted`, `accent` and `contrast`.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> from rbrl.experiments.figures import use_style
    >>> with use_style({"font.size": 12}) as colours:
    ...     mpl.rcParams["svg.hashsalt"], mpl.rcParams["font.size"], colours.ink
    ('rbrl', 12.0, '#1d1f24')
    """
    with mpl.rc_context(_STYLE | dict(more or {})):
        yield Palette()


@contextmanager
def new_figure(width: float, height: float, title: str = "") -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure with one pair of axes and a title; width and height are in inches."""
    with use_style():
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title)
        yield figure, axes


def shorten(name: str, length: int = LONGEST_NAME) -> str:
    """Return a name without control characters, cut after `length` letters."""
    name = "".join(letter if letter.isprintable() else " " for letter in " ".join(str(name).split()))
    return name if len(name) <= length else name[: length - 1] + "…"


def plain_powers(*axes: Axis) -> None:
    """Label logarithmic axes with plain text instead of formulas.

    Parameters
    ----------
    *axes : Axis
        Axes to label.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from rbrl.experiments.figures import plain_powers
    >>> axes = Figure().add_subplot(yscale="log", ylim=(1e-6, 1))
    >>> plain_powers(axes.yaxis)
    >>> axes.yaxis.get_major_formatter()(1e-6)
    '10⁻⁶'
    """
    for axis in axes:
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
        axis.set_minor_formatter(NullFormatter())


def _power(value: float) -> str:
    """Return the text of a power of ten: 0.01, 1, 100, but 10⁻⁴ and 10⁵.

    Examples
    --------
    >>> _power(0.001), _power(1e-6), _power(1e4)
    ('0.001', '10⁻⁶', '10⁴')
    """
    exponent = round(math.log10(value))
    if abs(exponent) < 4 or not math.isclose(value, 10.0**exponent):
        return f"{value:g}"
    return "10" + str(exponent).translate(SUPERSCRIPTS)


def save_figure(figure: Figure, path: Path | str, formats: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write a figure in several formats; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure
    path : path
        Path of the files, without an ending.
    formats : sequence of str
        Endings of the files.

    Returns
    -------
    list of Path
        Paths of the files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import pandas as pd
    >>> from rbrl.experiments.figures import draw_average_ranks, save_figure
    >>> figure = draw_average_ranks(pd.Series({"BR": 1.75, "RBRL": 1.25}))
    >>> [path.name for path in save_figure(figure, Path(mkdtemp(), "ranks"))]
    ['ranks.svg', 'ranks.png']
    """
    stem = Path(path)
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in formats]
    for target, ending in zip(paths, formats):
        metadata = {"Date": None} if ending == "svg" else {"Software": None}
        with use_style(), replace_file(target) as temporary:
            figure.savefig(temporary, format=ending, dpi=200, facecolor="white", metadata=metadata)
        figure.set_layout_engine("none")  # all files get the layout of the first one
    return paths


def draw_average_ranks(ranks: pd.Series, title: str = "Average rank over all metrics") -> Figure:
    """Draw the average rank of each method as a bar, the best on top.

    Parameters
    ----------
    ranks : Series
        Average rank of each method.
    title : str
        Title of the figure.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.figures import draw_average_ranks
    >>> figure = draw_average_ranks(pd.Series({"BR": 1.75, "RBRL": 1.25}))
    >>> [float(bar.get_width()) for bar in figure.axes[0].patches]
    [1.75, 1.25]
    """
    ranks = ranks.dropna().sort_values(ascending=False, kind="stable")
    with new_figure(4.8, 0.55 + 0.27 * len(ranks), title) as (figure, axes):
        colours = [ACCENT if rank == ranks.min() else MUTED for rank in ranks]
        bars = axes.barh([shorten(name) for name in ranks.index], ranks, color=colours, height=0.62)
        axes.bar_label(bars, labels=[f"{rank:.2f}" for rank in ranks], padding=4, fontsize=8.5)
        axes.set_xlim(0, ranks.max() * 1.12)
        axes.tick_params(axis="y", length=0, labelsize=8.5)
        axes.xaxis.set_visible(False)
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
    return figure


# Sizes in a critical-difference diagram, in inches: a line of text, a bar with its gap, a letter, and the distance of
# the axis from the upper edge.
LINE_HEIGHT = 0.2
BAR_HEIGHT = 0.1
LETTER_WIDTH = 0.085
AXIS_DEPTH = 0.62


def draw_critical_difference(comparison: Comparison, width: float = 4.8) -> Figure:
    """Draw the critical-difference diagram of one metric, with the best methods on the left.

    Parameters
    ----------
    comparison : Comparison
        Comparison whose test can separate two methods (`decides_pairs`). This needs three data sets
        at least, and four for two methods.
    width : float, default=4.8
        Width in inches; the height follows from the number of methods.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, compare
    >>> from rbrl.experiments.figures import draw_critical_difference
    >>> means = {"br": [0.3, 0.2, 0.4, 0.3], "clr": [0.2, 0.3, 0.3, 0.2], "rbrl": [0.1, 0.1, 0.2, 0.1]}
    >>> summary = pd.DataFrame([(f"d{i}", "ranking_loss", method, mean, 0.0) for method, line in means.items()
    ...                         for i, mean in enumerate(line)], columns=["dataset", "metric", "method", "mean", "std"])
    >>> figure = draw_critical_difference(compare(Results.from_summary(summary), "ranking_loss"))
    >>> [text.get_text() for text in figure.axes[0].texts if "rbrl" in text.get_text()]
    ['rbrl  1.00']
    """
    if comparison.distance is None:
        raise ValueError(
            f"A critical-difference diagram needs two methods and two data sets. Got {comparison.values.shape[1]} "
            f"and {comparison.n_datasets} for {comparison.metric.name}."
        )
    if not comparison.decides_pairs:
        raise ValueError(
            f"A critical-difference diagram needs more data sets: average ranks of {len(comparison.ranks)} methods differ "
            f"by {len(comparison.ranks) - 1} at most, less than the critical distance. Got {comparison.distance:.2f} for "
            f"{comparison.metric.name} on {comparison.n_datasets} data sets."
        )
    ranks = comparison.ranks.sort_values(kind="stable")
    names = [shorten(name) for name in ranks.index]
    margin = (max(map(len, names)) + 7) * LETTER_WIDTH
    scale = _Scale(len(ranks), margin, max(width, 2 * margin + 1.4))
    spans = [ranks[list(group)] for group in comparison.groups]
    bars = _bar_levels([(scale(span.min()) - 0.04, scale(span.max()) + 0.04) for span in spans])
    levels = 1 + max((level for _, _, level in bars), default=-1)
    first_line = AXIS_DEPTH + 0.16 + levels * BAR_HEIGHT + 0.14
    n_left = (len(ranks) + 1) // 2
    with use_style():
        # The coordinates are inches on the whole figure, with y downwards; matplotlib draws no axes.
        height = first_line + n_left * LINE_HEIGHT
        figure = Figure(figsize=(scale.width, height))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, scale.width), ylim=(height, 0))
        axes.axis("off")
        axes.text(0.06, 0.14, heading(comparison.metric), weight="bold", va="center", fontsize=9.5)
        _draw_axis(axes, scale)
        _draw_distance(axes, scale, comparison.distance)
        for low, high, level in bars:
            y = AXIS_DEPTH + 0.16 + level * BAR_HEIGHT
            axes.plot([low, high], [y, y], color=ACCENT, lw=3.4, solid_capstyle="butt")
        for i, (name, rank) in enumerate(zip(names, ranks)):
            on_left = i < n_left
            line = i if on_left else len(ranks) - 1 - i
            weight = "bold" if i < len(comparison.best) else "normal"
            _draw_name(axes, scale, name, rank, first_line + line * LINE_HEIGHT, on_left, weight)
    return figure


class _Scale:
    """Map from ranks 1..k to inches, between margins for the names."""

    def __init__(self, k: int, margin: float, width: float) -> None:
        self.k = k
        self.width = width
        self.left = margin
        self.right = width - margin

    def __call__(self, rank: float) -> float:
        """Return the horizontal position of a rank, in inches from the left."""
        return self.left + (rank - 1) / max(self.k - 1, 1) * (self.right - self.left)


def _draw_axis(axes: Axes, scale: _Scale) -> None:
    """Draw the axis of ranks, with at most about ten numbers."""
    axes.plot([scale(1), scale(scale.k)], [AXIS_DEPTH, AXIS_DEPTH], color=INK, lw=1.1)
    step = max(1, round(scale.k / 10))
    for rank in range(1, scale.k + 1):
        has_label = (rank - 1) % step == 0
        axes.plot([scale(rank)] * 2, [AXIS_DEPTH - (0.06 if has_label else 0.03), AXIS_DEPTH], color=INK, lw=0.9)
        if has_label:
            axes.text(scale(rank), AXIS_DEPTH - 0.14, str(rank), ha="center", va="center", color=MUTED, fontsize=8)


def _draw_distance(axes: Axes, scale: _Scale, distance: float) -> None:
    """Draw the critical distance to scale in the upper right corner."""
    end = scale.width - 0.06
    start = end - (scale(1 + distance) - scale(1))
    axes.plot([start, end], [0.24, 0.24], color=INK, lw=1.1)
    for x in (start, end):
        axes.plot([x, x], [0.205, 0.275], color=INK, lw=1.1)
    axes.text(end, 0.11, f"critical distance {distance:.2f}", ha="right", va="center", fontsize=8, color=MUTED)


def _draw_name(axes: Axes, scale: _Scale, name: str, rank: float, y: float, on_left: bool, weight: str) -> None:
    """Draw a name with its rank at the side, and a line to its place on the axis.

    `y` is the height of the name, in inches from above. `weight` is the weight of the font.
    """
    x = scale(rank)
    edge = scale.left - 0.06 if on_left else scale.right + 0.06
    axes.plot([x, x, edge], [AXIS_DEPTH, y, y], color=MUTED, lw=0.7)
    axes.plot([x], [AXIS_DEPTH], "o", ms=3.4, color=INK)
    text, side = (f"{name}  {rank:.2f}", "right") if on_left else (f"{rank:.2f}  {name}", "left")
    axes.text(edge + (-0.05 if on_left else 0.05), y, text, ha=side, va="center", weight=weight, fontsize=9)


def _bar_levels(spans: Sequence[tuple[float, float]], gap: float = 0.08) -> list[tuple[float, float, int]]:
    """Return each bar (low, high) with the lowest level at which it overlaps no earlier bar.

    The bars must be in the order of their left ends. `gap` is the least distance of two bars.

    Examples
    --------
    >>> _bar_levels([(1, 3), (2, 5), (4, 6)])
    [(1, 3, 0), (2, 5, 1), (4, 6, 0)]
    """
    ends: list[float] = []
    placed = []
    for low, high in spans:
        level = next((i for i, end in enumerate(ends) if end + gap <= low), len(ends))
        ends[level : level + 1] = [high]
        placed.append((low, high, level))
    return placed


def draw_trade_off(
    seconds: pd.Series, ranks: pd.Series, title: str = "Time against quality", size: tuple[float, float] = (4.8, 3.3)
) -> Figure:
    """Draw training time against average rank, the best on top.

    A line joins the methods for which no other method is both faster and better.

    Parameters
    ----------
    seconds : Series
        Training time of each method.
    ranks : Series
        Average rank of each method.
    title : str
        Title of the figure.
    size : pair of float
        Width and height in inches; many methods need a larger figure.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.figures import draw_trade_off
    >>> figure = draw_trade_off(pd.Series({"BR": 0.5, "RBRL": 4.0}), pd.Series({"BR": 1.75, "RBRL": 1.25}))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['BR', 'RBRL']
    """
    frame = pd.DataFrame({"seconds": seconds, "rank": ranks}).dropna().sort_values(["seconds", "rank"], kind="stable")
    frame["seconds"] = frame.seconds.clip(lower=SHORTEST_SECONDS)
    front = frame[frame["rank"].eq(frame["rank"].cummin()) & ~frame["rank"].duplicated()]
    with new_figure(*size, title) as (figure, axes):
        axes.plot(front.seconds, front["rank"], drawstyle="steps-post", color=RULE, lw=2)
        colours = np.where(frame.index.isin(front.index), ACCENT, MUTED)
        axes.scatter(frame.seconds, frame["rank"], c=colours, s=34, zorder=3)
        axes.set(xscale="log", xlabel="seconds to train, geometric mean over data sets", ylabel="average rank")
        plain_powers(axes.xaxis)
        axes.margins(x=0.18, y=0.14)
        axes.invert_yaxis()
        _name_points(figure, axes, frame)
    return figure


# Sizes of the names in `draw_trade_off`, in points.
LETTER_WIDTH_POINTS = 5.2
LINE_HEIGHT_POINTS = 10
# Sides of a point where its name may stand, in order of preference: above, right, left, below.
NAME_SIDES = ((0, 1), (1, 0), (-1, 0), (0, -1))


def _name_points(figure: Figure, axes: Axes, frame: pd.DataFrame) -> None:
    """Write each name on the first side of its point where it covers no point and no other name.

    A name without a free side stands above. The layout is fixed by this call.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    points = axes.transData.transform(frame[["seconds", "rank"]].to_numpy()) * 72 / figure.dpi
    taken = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in points]
    look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center", "fontsize": 8}
    for (x, y), name in zip(points, frame.index):
        text = shorten(name, 18)
        width = len(text) * LETTER_WIDTH_POINTS
        offsets = [(right * (width / 2 + 6), up * 11) for right, up in NAME_SIDES]
        corners = [(x + right - width / 2, y + up - LINE_HEIGHT_POINTS / 2) for right, up in offsets]
        boxes = [Bbox.from_bounds(*corner, width, LINE_HEIGHT_POINTS) for corner in corners]
        free = (i for i, box in enumerate(boxes) if not any(box.fully_overlaps(other) for other in taken))
        side = next(free, 0)
        taken.append(boxes[side])
        axes.annotate(text, frame.loc[name, ["seconds", "rank"]], xytext=offsets[side], **look)
