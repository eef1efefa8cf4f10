"""Figures of a comparison: average ranks (Figure 1), critical differences (Figure 2), time against quality."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rbrl.report.comparison import Comparison
from rbrl.report.figures.style import ACCENT, INK, MUTED, RULE, drawing, plain_powers, short, style
from rbrl.report.results import SHORTEST, heading


def draw_average_ranks(ranks: pd.Series, title: str = "Average rank over all metrics") -> Figure:
    """Draw one bar per method, the best on top, with its figure at the end.

    Parameters
    ----------
    ranks : Series
        Average rank by method.
    title : str

    Examples
    --------
    >>> figure = draw_average_ranks(pd.Series({"BR": 1.75, "RBRL": 1.25}))
    >>> [float(bar.get_width()) for bar in figure.axes[0].patches]
    [1.75, 1.25]
    """
    ranks = ranks.dropna().sort_values(ascending=False, kind="stable")
    with drawing(4.8, 0.55 + 0.27 * len(ranks), title) as (figure, axes):
        colours = [ACCENT if rank == ranks.min() else MUTED for rank in ranks]
        bars = axes.barh([short(name) for name in ranks.index], ranks, color=colours, height=0.62)
        axes.bar_label(bars, labels=[f"{rank:.2f}" for rank in ranks], padding=4, fontsize=8.5)
        axes.set_xlim(0, ranks.max() * 1.12)
        axes.tick_params(axis="y", length=0, labelsize=8.5)
        axes.xaxis.set_visible(False)
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
    return figure


# Inches: a line of text, a bar with its gap, a letter; where the axis of ranks lies below the upper edge.
LINE, BAR, LETTER = 0.2, 0.1, 0.085
AXIS = 0.62


def draw_critical_difference(comparison: Comparison, width: float = 4.8, title: str | None = None) -> Figure:
    """Draw the diagram of one metric, best methods on the left.

    Parameters
    ----------
    comparison : Comparison
        With a test that can tell methods apart (`decides_pairs`), so three data sets at least, four for two methods.
    width : float, default=4.8
        Inches; the height follows from the number of methods.
    title : str, optional
        Default: the metric.
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
    names = [short(name) for name in ranks.index]
    margin = (max(map(len, names)) + 7) * LETTER
    scale = _Scale(len(ranks), margin, max(width, 2 * margin + 1.4))
    spans = [ranks[list(group)] for group in comparison.groups]
    bars = bar_levels([(scale(span.min()) - 0.04, scale(span.max()) + 0.04) for span in spans])
    levels = 1 + max((level for _, _, level in bars), default=-1)
    first_line = AXIS + 0.16 + levels * BAR + 0.14
    n_left = (len(ranks) + 1) // 2
    with style():
        # Drawn in inches on the whole figure, y downwards, with no axes of matplotlib's.
        height = first_line + n_left * LINE
        figure = Figure(figsize=(scale.width, height))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, scale.width), ylim=(height, 0))
        axes.axis("off")
        axes.text(0.06, 0.14, title or heading(comparison.metric), weight="bold", va="center", fontsize=9.5)
        _draw_axis(axes, scale)
        _draw_distance(axes, scale, comparison.distance)
        for low, high, level in bars:
            y = AXIS + 0.16 + level * BAR
            axes.plot([low, high], [y, y], color=ACCENT, lw=3.4, solid_capstyle="butt")
        for i, (name, rank) in enumerate(zip(names, ranks)):
            on_left = i < n_left
            line = i if on_left else len(ranks) - 1 - i
            weight = "bold" if i < len(comparison.best) else "normal"
            _draw_name(axes, scale, name, rank, first_line + line * LINE, on_left, weight)
    return figure


class _Scale:
    """Ranks 1..k to inches, between margins for the names."""

    def __init__(self, k: int, margin: float, width: float) -> None:
        self.k, self.width, self.left, self.right = k, width, margin, width - margin

    def __call__(self, rank: float) -> float:
        return self.left + (rank - 1) / max(self.k - 1, 1) * (self.right - self.left)


def _draw_axis(axes: Axes, scale: _Scale) -> None:
    axes.plot([scale(1), scale(scale.k)], [AXIS, AXIS], color=INK, lw=1.1)
    step = max(1, round(scale.k / 10))
    for rank in range(1, scale.k + 1):
        labelled = (rank - 1) % step == 0
        axes.plot([scale(rank)] * 2, [AXIS - (0.06 if labelled else 0.03), AXIS], color=INK, lw=0.9)
        if labelled:
            axes.text(scale(rank), AXIS - 0.14, str(rank), ha="center", va="center", color=MUTED, fontsize=8)


def _draw_distance(axes: Axes, scale: _Scale, distance: float) -> None:
    """The critical distance to scale, in the upper right corner."""
    text, end = f"critical distance {distance:.2f}", scale.width - 0.06
    start = end - (scale(1 + distance) - scale(1))
    axes.plot([start, end], [0.24, 0.24], color=INK, lw=1.1)
    for x in (start, end):
        axes.plot([x, x], [0.205, 0.275], color=INK, lw=1.1)
    axes.text(end, 0.11, text, ha="right", va="center", fontsize=8, color=MUTED)


def _draw_name(axes: Axes, scale: _Scale, name: str, rank: float, y: float, on_left: bool, weight: str) -> None:
    """A name with its rank at the side, joined by a line with its place on the axis."""
    x, edge = scale(rank), scale.left - 0.06 if on_left else scale.right + 0.06
    axes.plot([x, x, edge], [AXIS, y, y], color=MUTED, lw=0.7)
    axes.plot([x], [AXIS], "o", ms=3.4, color=INK)
    text, side = (f"{name}  {rank:.2f}", "right") if on_left else (f"{rank:.2f}  {name}", "left")
    axes.text(edge + (-0.05 if on_left else 0.05), y, text, ha=side, va="center", weight=weight, fontsize=9)


def bar_levels(spans: Sequence[tuple[float, float]], gap: float = 0.08) -> list[tuple[float, float, int]]:
    """Give each bar the lowest level at which it stays clear of all others.

    Examples
    --------
    >>> bar_levels([(1, 3), (2, 5), (4, 6)])
    [(1, 3, 0), (2, 5, 1), (4, 6, 0)]
    """
    ends: list[float] = []
    placed = []
    for low, high in spans:
        level = next((i for i, end in enumerate(ends) if end + gap <= low), len(ends))
        ends[level : level + 1] = [high]
        placed.append((low, high, level))
    return placed


def draw_trade_off(seconds: pd.Series, ranks: pd.Series, title: str = "Time against quality") -> Figure:
    """Draw each method at its training time and average rank, best on top; a line joins those that none dominates.

    Parameters
    ----------
    seconds : Series
        Training time by method.
    ranks : Series
        Average rank by method.
    title : str

    Examples
    --------
    >>> figure = draw_trade_off(pd.Series({"BR": 0.5, "RBRL": 4.0}), pd.Series({"BR": 1.75, "RBRL": 1.25}))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['BR', 'RBRL']
    """
    frame = pd.DataFrame({"seconds": seconds, "rank": ranks}).dropna().sort_values(["seconds", "rank"], kind="stable")
    frame["seconds"] = frame.seconds.clip(lower=SHORTEST)
    front = undominated(frame)
    with drawing(4.8, 3.3, title) as (figure, axes):
        axes.plot(front.seconds, front["rank"], drawstyle="steps-post", color=RULE, lw=2)
        colours = np.where(frame.index.isin(front.index), ACCENT, MUTED)
        axes.scatter(frame.seconds, frame["rank"], c=colours, s=34, zorder=3)
        axes.set(xscale="log", xlabel="seconds to train, geometric mean over data sets", ylabel="average rank")
        plain_powers(axes.xaxis)
        axes.margins(x=0.18, y=0.14)
        axes.invert_yaxis()
        _name_points(figure, axes, frame)
    return figure


def undominated(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows such that no other is both faster and better ranked; sorted by seconds."""
    best = frame["rank"].cummin()
    return frame[frame["rank"].eq(best) & ~frame["rank"].duplicated()]


Box = tuple[float, float, float, float]
LETTER_POINTS, LINE_POINTS = 5.2, 10
SIDES = ((0, 1), (1, 0), (-1, 0), (0, -1))  # above, on the right, on the left, below


def _name_points(figure: Figure, axes: Axes, frame: pd.DataFrame) -> None:
    """Put each name on the first of four sides where it covers neither a point nor another name."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    points = axes.transData.transform(frame[["seconds", "rank"]].to_numpy()) * 72 / figure.dpi
    taken: list[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    for (x, y), name in zip(points, frame.index):
        text = short(name, 18)
        width = len(text) * LETTER_POINTS
        offsets = [(right * (width / 2 + 6), up * 11) for right, up in SIDES]
        boxes = [_box(x + right, y + up, width) for right, up in offsets]
        free = (i for i, box in enumerate(boxes) if not any(_overlap(box, other) for other in taken))
        side = next(free, 0)
        taken.append(boxes[side])
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
        point = frame.loc[name, ["seconds", "rank"]]
        axes.annotate(text, point, xytext=offsets[side], textcoords="offset points", **look)


def _box(x: float, y: float, width: float) -> Box:
    return x - width / 2, y - LINE_POINTS / 2, x + width / 2, y + LINE_POINTS / 2


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
