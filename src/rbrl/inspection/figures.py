"""Figures of explanations and label maps, in the style of those of a comparison."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from rbrl._common.extras import explain_import_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rbrl.inspection.labels import LabelMap

try:
    from matplotlib.figure import Figure

    from rbrl.experiments.figures import ACCENT, CONTRAST, INK, MUTED, RULE, use_style
except ImportError as error:
    raise explain_import_error(error, "report", "Drawing figures") from error

# From opposed to alike, white where there is nothing to say.
SIGNED = "RdBu"
# Letters of a term beside its bar, or of a label beside the matrix.
LONGEST = 34
# Labels that have room for their names and figures in a matrix.
MANY_LABELS, FEW_LABELS = 40, 16


def draw_terms(
    title: str,
    terms: Sequence[tuple[str, float]],
    score: float,
    n_constants: int,
    sides: tuple[str, str] = ("against", "for"),
) -> Figure:
    """Draw terms as bars around 0, the first on top, and their sum below them.

    Parameters
    ----------
    title : str
    terms : sequence of (name, contribution)
        Constants last.
    score : float
        Their sum.
    n_constants : int
        How many of the last terms are constants; these are grey.
    sides : tuple of two str
        What bars to the left and to the right speak for.

    Returns
    -------
    Figure

    Examples
    --------
    >>> figure = draw_terms("sea", [("salt = 3", 1.5), ("intercept", -0.5)], 1.0, 1)
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['salt = 3', 'intercept', 'score']
    """
    names = [_shortened(name) for name, _ in terms] + ["score"]
    values = np.array([value for _, value in terms] + [score])
    first_constant = len(terms) - n_constants
    places = np.arange(len(names)) + 0.35 * (np.arange(len(names)) >= len(terms))
    colours = [ACCENT if value > 0 else CONTRAST for value in values[:first_constant]] + [MUTED] * n_constants + [INK]
    with use_style():
        figure = Figure(figsize=(5.6, 0.75 + 0.24 * len(names)), layout="constrained")
        axes = figure.add_subplot(title=title)
        bars = axes.barh(places, values, color=colours, height=0.66)
        axes.bar_label(bars, labels=[f"{value:+.2f}" for value in values], padding=3, fontsize=8)
        axes.axvline(0, color=INK, lw=0.8)
        axes.axhline(len(terms) - 0.32, color=RULE, lw=0.8)
        axes.set_yticks(places, names, color=INK, fontsize=8.5)
        axes.invert_yaxis()
        axes.margins(x=0.16, y=0.02)
        axes.grid(visible=False)
        axes.tick_params(axis="y", length=0)
        for text, side, offset in ((f"← {sides[0]}", "right", -4), (f"{sides[1]} →", "left", 4)):
            axes.annotate(
                text, (0, 0), xycoords=("data", "axes fraction"), xytext=(offset, -4), textcoords="offset points",
                ha=side, va="top", fontsize=8, color=MUTED,
            )  # fmt: skip
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        axes.xaxis.set_ticks([])
    return figure


def draw_label_map(found: "LabelMap") -> Figure:
    """Draw the cosines between labels, in the order of the tree that joins them, and the tree.

    Of more than 40 labels those with the largest weights are drawn.

    Parameters
    ----------
    found : LabelMap

    Returns
    -------
    Figure
    """
    drawn, title = _largest(found)
    order = drawn.order
    n_labels, names = len(order), [_shortened(str(drawn.label_names[i])) for i in order]
    cosines = drawn.similarity[np.ix_(order, order)]
    size = 1.2 + (0.3 if n_labels <= FEW_LABELS else 0.19) * n_labels
    with use_style():
        figure = Figure(figsize=(size + 2.2, size), layout="constrained")
        tree, axes = figure.subplots(1, 2, width_ratios=(1, 5), sharey=True)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9.5, weight="bold")
        image = axes.imshow(cosines, cmap=SIGNED, vmin=-1, vmax=1, aspect="auto")
        axes.set_xticks(range(n_labels), names, rotation=90, fontsize=8, color=INK)
        axes.yaxis.tick_right()
        axes.set_yticks(range(n_labels), names, fontsize=8, color=INK)
        axes.tick_params(length=0, labelright=True)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        if n_labels <= FEW_LABELS:
            _write_figures(axes, cosines)
        if n_labels > 2:
            _draw_tree(tree, drawn.tree)
        tree.axis("off")
        bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02, ticks=[-1, 0, 1])
        bar.ax.set_yticklabels(["opposed", "unrelated", "alike"])
    return figure


def _largest(found: "LabelMap") -> "tuple[LabelMap, str]":
    """A map of no more labels than can be read, and its title."""
    n_labels = len(found.label_names)
    if n_labels <= MANY_LABELS:
        return found, "Cosines between the weights of labels"
    chosen = np.sort(np.argsort(-np.linalg.norm(found.factors, axis=1), kind="stable")[:MANY_LABELS])
    part = replace(found, label_names=[found.label_names[i] for i in chosen], factors=found.factors[chosen])
    return part, f"Cosines between the {MANY_LABELS} largest weights of {n_labels} labels"


def _write_figures(axes: "Axes", cosines: np.ndarray) -> None:
    for (i, j), value in np.ndenumerate(cosines):
        if i != j:
            text = f"{value:.1f}".replace("0.", ".") if abs(value) >= 0.05 else "0"
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if abs(value) > 0.65 else INK)


def _draw_tree(axes: "Axes", tree: np.ndarray) -> None:
    """The joins of labels, the leaves at the middle of the matrix's lines."""
    drawn = dendrogram(tree, no_plot=True)
    for across, up in zip(drawn["icoord"], drawn["dcoord"]):
        axes.plot(up, (np.array(across) - 5) / 10, color=MUTED, lw=1.1)
    axes.invert_xaxis()


def _shortened(name: str) -> str:
    """A name that fits beside a bar: the value at its end stays."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 13]}…{name[-12:]}"
