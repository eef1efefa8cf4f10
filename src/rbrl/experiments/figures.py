"""Figures of a comparison, of labels and of weights: colour-blind safe, readable without colour, always the same bytes.

Average ranks are the paper's Figure 1, critical differences its Figure 2.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from rbrl._common.atomic_files import replace_file
from rbrl._common.extras import explain_import_error
from rbrl._common.typing import ArrayLike, MatrixLike
from rbrl.experiments.cells import heading
from rbrl.experiments.comparison import Comparison
from rbrl.experiments.results import SHORTEST

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
    "ACCENT", "CONTRAST", "HEAT", "INK", "MUTED", "draw_average_ranks", "draw_cooccurrence", "draw_critical_difference",
    "draw_label_quality", "draw_singular_values", "draw_trade_off", "plain_powers", "save_figure", "styled",
]  # fmt: skip

# Colours of all figures: of text, of what is less important, and of lines.
INK, MUTED, RULE = "#1d1f24", "#667080", "#cfd4dc"
# Told apart by those who see no red or no green, and in a print in grey.
ACCENT, CONTRAST = "#0b5fa5", "#c4601d"
# Ordered by lightness, so that a print in grey keeps the order.
HEAT = "viridis"
LONGEST_NAME = 26
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# A fixed salt gives elements the same ids every time; names may hold a dollar sign, so no text is read as a formula.
_RC: dict[Any, Any] = {
    "svg.hashsalt": "rbrl", "text.parse_math": False,
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9, "text.color": INK,
    "axes.titlecolor": INK, "axes.titlesize": 9.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.edgecolor": RULE, "axes.labelcolor": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": RULE, "grid.linewidth": 0.6, "lines.linewidth": 1.6,
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "legend.frameon": False, "legend.fontsize": 8, "axes.prop_cycle": cycler(color=[ACCENT, CONTRAST, INK, MUTED]),
}  # fmt: skip


def styled(more: Mapping[Any, Any] | None = None) -> AbstractContextManager[None]:
    """The look of every figure, without touching the user's settings.

    Parameters
    ----------
    more : mapping, optional
        Further settings of matplotlib.

    Returns
    -------
    context manager

    Examples
    --------
    >>> import matplotlib as mpl
    >>> from rbrl.experiments.figures import styled
    >>> with styled({"font.size": 12}):
    ...     mpl.rcParams["svg.hashsalt"], mpl.rcParams["font.size"]
    ('rbrl', 12.0)
    """
    return mpl.rc_context(_RC | dict(more or {}))


@contextmanager
def _drawing(width: float, height: float, title: str = "") -> Iterator[tuple[Figure, Axes]]:
    """A figure of so many inches with one pair of axes under a title, drawn in our style."""
    with styled():
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title)
        yield figure, axes


def _short(name: str, length: int = LONGEST_NAME) -> str:
    """A name that fits beside a line."""
    name = "".join(letter if letter.isprintable() else " " for letter in " ".join(str(name).split()))
    return name if len(name) <= length else name[: length - 1] + "…"


def plain_powers(*axes: Axis) -> None:
    """Label a logarithmic axis with plain text: matplotlib's own labels are formulas.

    Parameters
    ----------
    *axes : Axis

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
    """A power of ten for people: 0.01, 1, 100, but 10⁻⁴ and 10⁵.

    Examples
    --------
    >>> _power(0.001), _power(1e-6), _power(1e4)
    ('0.001', '10⁻⁶', '10⁴')
    """
    exponent = round(math.log10(value))
    if abs(exponent) < 4 or not math.isclose(value, 10.0**exponent):
        return f"{value:g}"
    return "10" + str(exponent).translate(RAISED)


def draw_average_ranks(ranks: pd.Series, title: str = "Average rank over all metrics") -> Figure:
    """Draw one bar per method, the best on top, with its figure at the end.

    Parameters
    ----------
    ranks : Series
        Average rank by method.
    title : str

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
    with _drawing(4.8, 0.55 + 0.27 * len(ranks), title) as (figure, axes):
        colours = [ACCENT if rank == ranks.min() else MUTED for rank in ranks]
        bars = axes.barh([_short(name) for name in ranks.index], ranks, color=colours, height=0.62)
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
    names = [_short(name) for name in ranks.index]
    margin = (max(map(len, names)) + 7) * LETTER
    scale = _Scale(len(ranks), margin, max(width, 2 * margin + 1.4))
    spans = [ranks[list(group)] for group in comparison.groups]
    bars = _bar_levels([(scale(span.min()) - 0.04, scale(span.max()) + 0.04) for span in spans])
    levels = 1 + max((level for _, _, level in bars), default=-1)
    first_line = AXIS + 0.16 + levels * BAR + 0.14
    n_left = (len(ranks) + 1) // 2
    with styled():
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


def _bar_levels(spans: Sequence[tuple[float, float]], gap: float = 0.08) -> list[tuple[float, float, int]]:
    """Give each bar the lowest level at which it stays clear of all others.

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
    """Draw each method at its training time and average rank, best on top; a line joins those that none dominates.

    Parameters
    ----------
    seconds : Series
        Training time by method.
    ranks : Series
        Average rank by method.
    title : str
    size : pair of float
        Width and height in inches: more for many methods, so that names do not meet.

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
    frame["seconds"] = frame.seconds.clip(lower=SHORTEST)
    # No other method is both faster and better ranked than one of these.
    front = frame[frame["rank"].eq(frame["rank"].cummin()) & ~frame["rank"].duplicated()]
    with _drawing(*size, title) as (figure, axes):
        axes.plot(front.seconds, front["rank"], drawstyle="steps-post", color=RULE, lw=2)
        colours = np.where(frame.index.isin(front.index), ACCENT, MUTED)
        axes.scatter(frame.seconds, frame["rank"], c=colours, s=34, zorder=3)
        axes.set(xscale="log", xlabel="seconds to train, geometric mean over data sets", ylabel="average rank")
        plain_powers(axes.xaxis)
        axes.margins(x=0.18, y=0.14)
        axes.invert_yaxis()
        _name_points(figure, axes, frame)
    return figure


LETTER_POINTS, LINE_POINTS = 5.2, 10
SIDES = ((0, 1), (1, 0), (-1, 0), (0, -1))  # above, on the right, on the left, below


def _name_points(figure: Figure, axes: Axes, frame: pd.DataFrame) -> None:
    """Put each name on the first of four sides where it covers neither a point nor another name."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    points = axes.transData.transform(frame[["seconds", "rank"]].to_numpy()) * 72 / figure.dpi
    taken = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in points]
    look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center", "fontsize": 8}
    for (x, y), name in zip(points, frame.index):
        text = _short(name, 18)
        width = len(text) * LETTER_POINTS
        offsets = [(right * (width / 2 + 6), up * 11) for right, up in SIDES]
        corners = [(x + right - width / 2, y + up - LINE_POINTS / 2) for right, up in offsets]
        boxes = [Bbox.from_bounds(*corner, width, LINE_POINTS) for corner in corners]
        free = (i for i, box in enumerate(boxes) if not any(box.fully_overlaps(other) for other in taken))
        side = next(free, 0)
        taken.append(boxes[side])
        axes.annotate(text, frame.loc[name, ["seconds", "rank"]], xytext=offsets[side], **look)


MANY_LABELS = 40
SMALLEST_SHARE = 1e-5  # of rows; a label that no row has is drawn here


def draw_cooccurrence(
    Y: MatrixLike, label_names: Sequence[str], title: str = "How often labels come together"
) -> Figure:
    """Draw the share of rows with the label of the line that also have the label of the column.

    Parameters
    ----------
    Y : array or sparse array of 0/1, shape (n_samples, n_labels)
    label_names : sequence of str
    title : str

    Returns
    -------
    Figure

    Examples
    --------
    >>> from rbrl.experiments.figures import draw_cooccurrence
    >>> figure = draw_cooccurrence([[1, 1], [1, 0], [1, 1]], ["sea", "sand"])
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['sea', 'sand']
    """
    Y = sparse.csr_array(Y).astype(float)
    order = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")[:MANY_LABELS]
    together = np.asarray((Y.T @ Y).toarray())[np.ix_(order, order)]
    share = together / np.maximum(together.diagonal()[:, None], 1)
    np.fill_diagonal(share, np.nan)
    names = [_short(label_names[i], 16) for i in order]
    size = 1.6 + 0.17 * len(order)
    with _drawing(size + 0.8, size, title) as (figure, axes):
        image = axes.imshow(share, cmap=HEAT, vmin=0)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.grid(visible=False)
        figure.colorbar(image, ax=axes, shrink=0.7, label="share of the line's rows")
    return figure


def draw_singular_values(weights: ArrayLike, title: str = "Singular values of the weights") -> Figure:
    """Draw the singular values of learned weights, relative to the largest: a low rank shows as a cliff.

    Parameters
    ----------
    weights : array, shape (n_features, n_labels)
    title : str

    Returns
    -------
    Figure

    Examples
    --------
    >>> from rbrl.experiments.figures import draw_singular_values
    >>> figure = draw_singular_values([[3.0, 0.0], [0.0, 1.5]])
    >>> figure.axes[0].lines[0].get_ydata().tolist()
    [1.0, 0.5]
    """
    values = np.linalg.svd(np.asarray(weights, dtype=float), compute_uv=False)
    relative = np.maximum(values / max(values.max(initial=0.0), np.finfo(float).tiny), 1e-16)
    with _drawing(4.8, 2.8, title) as (figure, axes):
        axes.plot(np.arange(1, len(relative) + 1), relative, "o-", color=ACCENT, ms=4)
        axes.set(yscale="log", xlabel="index", ylabel="singular value / largest")
        plain_powers(axes.yaxis)
    return figure


def draw_label_quality(
    frequency: ArrayLike, quality: ArrayLike, label_names: Sequence[str], measure: str = "F1"
) -> Figure:
    """Draw the quality of each label against its share of rows; the three worst are named.

    Parameters
    ----------
    frequency, quality : array, shape (n_labels,)
    label_names : sequence of str
    measure : str
        What `quality` is.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from rbrl.experiments.figures import draw_label_quality
    >>> figure = draw_label_quality([0.5, 0.1], [0.8, 0.3], ["sea", "sand"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['sand', 'sea']
    """
    share, quality = np.maximum(np.asarray(frequency, dtype=float), SMALLEST_SHARE), np.asarray(quality, dtype=float)
    look: dict[str, Any] = {"xytext": (5, 3), "textcoords": "offset points", "fontsize": 7.5, "color": MUTED}
    with _drawing(4.8, 3.2, f"{measure} of each label") as (figure, axes):
        axes.scatter(share, quality, s=22, color=ACCENT)
        axes.set(xscale="log", xlabel="share of rows with the label", ylabel=measure)
        plain_powers(axes.xaxis)
        for i in np.argsort(quality, kind="stable")[:3]:
            axes.annotate(_short(label_names[i], 18), (share[i], quality[i]), **look)
    return figure


def save_figure(figure: Figure, path: Path | str, formats: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write a figure as `path` with each ending; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure
    path : path
        Without an ending.
    formats : sequence of str
        Endings.

    Returns
    -------
    list of Path
        The files.

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
        with styled(), replace_file(target) as temporary:
            figure.savefig(temporary, format=ending, dpi=200, facecolor="white", metadata=metadata)
        figure.set_layout_engine("none")  # what was laid out for the first file serves the others
    return paths
