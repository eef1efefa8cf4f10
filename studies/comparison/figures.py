"""The figures of the page: quality against time, and the distance from the best on every data set."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from rbrl.experiments.figures import INK, MUTED, draw_trade_off, save_figure, use_style
from studies.comparison import rules
from studies.comparison.answers import (
    KIND_WORDS,
    KINDS,
    LABELS,
    SCORES,
    Findings,
    MetricComparison,
    in_sentence,
    title_of,
)
from studies.comparison.methods import BY_NAME
from studies.comparison.tasks import kind

# Okabe and Ito's colours; the markers say the same without colour.
LOOKS = {"dense": ("#d55e00", "s"), "sparse": ("#0072b2", "o"), "many labels": ("#009e73", "^")}
IMAGES = Path("images", "comparison")


def draw_all(findings: Findings, docs: Path) -> dict[str, str]:
    """Write every figure; return their places, relative to the folder of the page."""
    scores = findings.compare(SCORES)
    drawn = {
        "time": draw_time(findings, scores),
        "distance": draw_distances(scores),
        "distance-labels": draw_distances(findings.compare(LABELS)),
    }
    for name, figure in drawn.items():
        save_figure(figure, docs / IMAGES / name, ("svg",))
    return {name: (IMAGES / f"{name}.svg").as_posix() for name in drawn}


def draw_time(findings: Findings, comparison: MetricComparison) -> Figure:
    """Draw the average rank against processor seconds of search and fit."""
    ranks = comparison.ranks.rename(lambda name: BY_NAME[name].title)
    seconds = findings.mean_seconds(rules.TUNED).rename(lambda name: BY_NAME[name].title)
    figure = draw_trade_off(seconds[ranks.index], ranks, "Quality against time", size=(7.6, 5.2))
    axes = figure.axes[0]
    axes.set_xlabel("processor seconds of search and fit, geometric mean over data sets")
    axes.set_ylabel(f"average rank by {in_sentence(comparison.column)}, best on top")
    return figure


def draw_distances(comparison: MetricComparison) -> Figure:
    """Draw the distance of each method from the best one on each data set; the bar is the median."""
    table = comparison.table[comparison.ranks.index]
    lacks = table.rsub(table.max(axis=1), axis=0)
    with use_style():
        figure = Figure(figsize=(7.2, 1.0 + 0.27 * table.shape[1]), layout="constrained")
        axes = figure.add_subplot()
        places = np.arange(table.shape[1])
        for one in KINDS:
            part = lacks[[kind(name) == one for name in lacks.index]]
            if len(part):
                colour, marker = LOOKS[one]
                y = np.repeat(places, len(part))
                x = part.to_numpy().T.ravel()
                axes.scatter(x, y, s=18, c=colour, marker=marker, alpha=0.75, label=KIND_WORDS[one], lw=0)
        axes.scatter(lacks.median(), places, marker="|", s=190, c=INK, lw=2, zorder=3, label="median")
        axes.set_yticks(places, [BY_NAME[name].title for name in table.columns])
        axes.invert_yaxis()
        axes.set_xlabel(f"{title_of(comparison.column)}: distance from the best method on the data set")
        axes.tick_params(axis="y", labelcolor=INK)
        axes.axvline(0, color=MUTED, lw=0.8)
        figure.legend(loc="outside upper right", ncols=4)
    return figure
