"""Average ranks as bars (Figure 1), and critical-difference diagrams (Figure 2)."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from rbrl.report.comparison import Comparison
from rbrl.report.figures.style import ACCENT, INK, MUTED, blank, short, style


def draw_average_ranks(ranks: pd.Series, title: str = "Average rank over all metrics") -> Figure:
    """Draw one bar per method, the best on top, with its figure at the end.

    Parameters
    ----------
    ranks : Series
        Average rank by method.
    title : str
    """
    ranks = ranks.dropna().sort_values(ascending=False, kind="stable")
    with style():
        figure = Figure(figsize=(4.8, 0.55 + 0.27 * len(ranks)), layout="constrained")
        axes = figure.add_subplot()
        colours = [ACCENT if rank == ranks.min() else MUTED for rank in ranks]
        bars = axes.barh([short(name) for name in ranks.index], ranks, color=colours, height=0.62)
        axes.bar_label(bars, labels=[f"{rank:.2f}" for rank in ranks], padding=4, fontsize=8.5)
        axes.set_title(title)
        axes.set_xlim(0, ranks.max() * 1.12)
        axes.tick_params(axis="y", length=0, labelsize=8.5)
        axes.xaxis.set_visible(False)
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
    return figure


LINE, BAR, LETTER = 0.2, 0.1, 0.085  # inches: a line of text, a bar with its gap, a letter
TOP, AXIS = 0.42, 0.62


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
    width = max(width, 2 * margin + 1.4)
    scale = _Scale(len(ranks), margin, width)
    spans = [ranks[list(group)] for group in comparison.groups]
    bars = bar_levels([(scale(span.min()) - 0.04, scale(span.max()) + 0.04) for span in spans])
    levels = 1 + max((level for _, _, level in bars), default=-1)
    first_line = AXIS + 0.16 + levels * BAR + 0.14
    n_left = (len(ranks) + 1) // 2
    with style():
        figure, axes = blank(width, first_line + n_left * LINE)
        _draw_axis(axes, scale, comparison.distance, title or f"{comparison.metric.title} {comparison.metric.arrow}")
        for low, high, level in bars:
            y = AXIS + 0.16 + level * BAR
            axes.plot([low, high], [y, y], color=ACCENT, lw=3.4, solid_capstyle="butt")
        _draw_names(axes, scale, list(zip(names, ranks)), n_left, first_line, len(comparison.best))
    return figure


class _Scale:
    """Ranks 1..k to inches, between margins for the names."""

    def __init__(self, k, margin, width):
        self.k, self.left, self.right = k, margin, width - margin

    def __call__(self, rank):
        return self.left + (rank - 1) / max(self.k - 1, 1) * (self.right - self.left)


def _draw_axis(axes, scale, distance, title):
    axes.text(0.06, 0.14, title, weight="bold", va="center", fontsize=9.5)
    axes.plot([scale(1), scale(scale.k)], [AXIS, AXIS], color=INK, lw=1.1)
    step = max(1, round(scale.k / 10))
    for rank in range(1, scale.k + 1):
        labelled = (rank - 1) % step == 0
        axes.plot([scale(rank)] * 2, [AXIS - (0.06 if labelled else 0.03), AXIS], color=INK, lw=0.9)
        if labelled:
            axes.text(scale(rank), AXIS - 0.14, str(rank), ha="center", va="center", color=MUTED, fontsize=8)
    _draw_distance(axes, scale, distance)


def _draw_distance(axes, scale, distance):
    """The critical distance to scale, in the upper right corner."""
    text, end = f"critical distance {distance:.2f}", axes.get_xlim()[1] - 0.06
    length = scale(1 + distance) - scale(1)
    axes.plot([end - length, end], [0.24, 0.24], color=INK, lw=1.1)
    for x in (end - length, end):
        axes.plot([x, x], [0.205, 0.275], color=INK, lw=1.1)
    axes.text(end, 0.11, text, ha="right", va="center", fontsize=8, color=MUTED)


def _draw_names(axes, scale, ranked, n_left, first_line, best):
    for i, (name, rank) in enumerate(ranked):
        on_left = i < n_left
        line = i if on_left else len(ranked) - 1 - i
        x, y = scale(rank), first_line + line * LINE
        edge = scale.left - 0.06 if on_left else scale.right + 0.06
        axes.plot([x, x, edge], [AXIS, y, y], color=MUTED, lw=0.7)
        axes.plot([x], [AXIS], "o", ms=3.4, color=INK)
        text = f"{name}  {rank:.2f}" if on_left else f"{rank:.2f}  {name}"
        weight = "bold" if i < best else "normal"
        axes.text(
            edge + (-0.05 if on_left else 0.05),
            y,
            text,
            ha="right" if on_left else "left",
            va="center",
            weight=weight,
            fontsize=9,
        )


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
