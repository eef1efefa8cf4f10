"""Average ranks as bars (Figure 1 of the paper)."""

import pandas as pd
from matplotlib.figure import Figure

from rbrl.report.figures.style import ACCENT, MUTED, short, style


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
