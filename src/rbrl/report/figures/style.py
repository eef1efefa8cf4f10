"""Colours, type and saving: what all figures share."""

import html
import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from rbrl._common.files import replacing

INK, MUTED, RULE, ACCENT = "#1d1f24", "#667080", "#cfd4dc", "#0b5fa5"
# Okabe and Ito's colours without black and yellow, in an order whose neighbours differ in lightness, too.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Ordered by lightness, so that a print in grey keeps the order.
HEAT = "viridis"
LONGEST_NAME = 26
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# On a page the figure takes the colours of the page, light or dark.
PAGE_COLOURS = {INK: "var(--ink)", MUTED: "var(--muted)", RULE: "var(--rule)", ACCENT: "var(--accent)"}

# A fixed salt gives elements the same ids every time; names may hold a dollar sign, so no text is read as a formula.
_RC: dict[Any, Any] = {
    "svg.hashsalt": "rbrl", "text.parse_math": False,
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9, "text.color": INK,
    "axes.titlecolor": INK, "axes.titlesize": 9.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.edgecolor": RULE, "axes.labelcolor": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": RULE, "grid.linewidth": 0.6, "lines.linewidth": 1.6,
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "legend.frameon": False, "legend.fontsize": 8,
}  # fmt: skip


def style() -> AbstractContextManager[None]:
    """The look of every figure, without touching the user's settings."""
    return mpl.rc_context(_RC)


@contextmanager
def drawing(width: float, height: float, title: str = "") -> Iterator[tuple[Figure, Axes]]:
    """A figure of so many inches with one pair of axes under a title, drawn in our style."""
    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title)
        yield figure, axes


@contextmanager
def panels(n_rows: int, n_columns: int, width: float, height: float, title: str = "") -> Iterator[tuple[Figure, Any]]:
    """A figure with a grid of axes, under a common title if there is one, drawn in our style."""
    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots(n_rows, n_columns, squeeze=False)
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=9.5, weight="bold")


def line_look(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th line: lines differ in both, so that colour is not needed."""
    return {"color": PALETTE[i % len(PALETTE)], "ls": DASHES[i % len(DASHES)]}


def short(name: str, length: int = LONGEST_NAME) -> str:
    """A name that fits beside a line."""
    name = "".join(letter if letter.isprintable() else " " for letter in " ".join(str(name).split()))
    return name if len(name) <= length else name[: length - 1] + "…"


def plain_powers(*axes: Axis) -> None:
    """Label a logarithmic axis with plain text: matplotlib's own labels are formulas."""
    for axis in axes:
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
        axis.set_minor_formatter(NullFormatter())


def power(value: float) -> str:
    """A power of ten for people: 0.01, 1, 100, but 10⁻⁴ and 10⁵.

    Examples
    --------
    >>> power(0.001), power(1e-6), power(1e4)
    ('0.001', '10⁻⁶', '10⁴')
    """
    exponent = round(math.log10(value))
    if abs(exponent) < 4 or not math.isclose(value, 10.0**exponent):
        return f"{value:g}"
    return "10" + str(exponent).translate(RAISED)


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
    """
    stem = Path(path)
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in formats]
    for target, ending in zip(paths, formats):
        metadata = {"Date": None} if ending == "svg" else {"Software": None}
        with style(), replacing(target) as temporary:
            figure.savefig(temporary, format=ending, dpi=200, facecolor="white", metadata=metadata)
        figure.set_layout_engine("none")  # what was laid out for the first file serves the others
    return paths


def inline_svg(figure: Figure, title: str, description: str, key: str) -> str:
    """The figure as an element for a page: text stays text, colours follow the page, a screen reader reads it.

    Parameters
    ----------
    figure : Figure
    title, description : str
        What a screen reader says.
    key : str
        Unique on the page; goes before every id.
    """
    stream = io.StringIO()
    with style(), mpl.rc_context({"svg.fonttype": "none"}), warnings.catch_warnings():
        # Text stays text, so a letter that matplotlib's font lacks is the browser's to find.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]*)"', rf'id="{key}-\1"', text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{key}-", text)
    text = re.sub(r"font: ([^;\"]*?)'DejaVu Sans'[^;\"]*", r"font: \1inherit", text)
    for colour, variable in PAGE_COLOURS.items():
        text = text.replace(colour, variable)
    head = re.match(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', text)
    assert head is not None, "matplotlib writes an svg element with a viewBox"
    # Points are 4/3 of a CSS pixel; a figure may be shown a little larger than it was drawn.
    largest = float(head[1].split()[2]) * 1.6
    return (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{head[1]}" role="img" '
        f'aria-labelledby="{key}-title {key}-description" style="max-width: {largest:.0f}px">'
        f'<title id="{key}-title">{html.escape(title)}</title>'
        f'<desc id="{key}-description">{html.escape(description)}</desc>{text[head.end() :].strip()}'
    )
