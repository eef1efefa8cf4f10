"""Reliability diagrams: what probabilities foretell, beside what comes."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from rbrl._common.extras import import_extra
from rbrl._common.typing import MatrixLike
from rbrl.experiments.results import Results
from rbrl.metrics import ReliabilityBins, reliability_bins
from rbrl.metrics.probabilities import N_BINS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PER_LINE = 4  # panels
PANEL = 2.3  # inches
# Areas of dots, from the bin of a single entry to that of all.
SMALLEST_DOT, LARGEST_DOT = 6.0, 60.0
# A share of so few entries is hardly known: no error bar is longer than the panel.
DEVIATIONS = 1.96


def reliability_diagram(
    Y: MatrixLike, probabilities: MatrixLike | Mapping[str, MatrixLike], n_bins: int = N_BINS, *, missing: str = "raise",
    title: str = "",
) -> "Figure":  # fmt: skip
    """Draw what share of the labels was relevant that were given about each probability.

    On the diagonal probabilities mean what they say; below it they promise too much. A bar is where the share would lie
    in 95 of 100 draws of so many entries, if they were independent; a dot is the larger, the more entries are in its bin.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    probabilities : array or sparse matrix, shape (n_samples, n_labels); or dict of such by name
        A dict has a panel for each.
    n_bins : int, default=15
        Of equal width; entries of all labels share them.
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or is left out.
    title : str
        Of the panel, where there is one.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from rbrl.experiments.label_figures import reliability_diagram
    >>> figure = reliability_diagram([[1, 0], [1, 0]], {"bold": [[0.9, 0.1]] * 2, "shy": [[0.6, 0.4]] * 2})
    >>> [axes.get_title("left") for axes in figure.axes]
    ['bold, ECE 0.100', 'shy, ECE 0.400']
    """
    named = probabilities if isinstance(probabilities, Mapping) else {title: probabilities}
    return draw_reliability({name: reliability_bins(Y, P, n_bins, missing=missing) for name, P in named.items()})


def bins_by_method(results: Results) -> dict[str, ReliabilityBins]:
    """The bins of each method that has probabilities, summed over data sets and splits.

    Parameters
    ----------
    results : Results

    Returns
    -------
    dict of str to ReliabilityBins
    """
    columns, frame = ["n", "foretold", "relevant"], results.reliability
    sums = {name: frame[frame.method == name].groupby("bin")[columns].sum() for name in results.methods}
    return {name: ReliabilityBins(*one.to_numpy(dtype=float).T) for name, one in sums.items() if len(one)}


def draw_reliability(bins: Mapping[str, ReliabilityBins]) -> "Figure":
    """Draw a panel for each set of bins, with its expected calibration error.

    Parameters
    ----------
    bins : mapping of str to ReliabilityBins
        By what the panel is called.

    Returns
    -------
    Figure
    """
    from rbrl.experiments.figures import ACCENT, MUTED, styled

    figures = import_extra("matplotlib.figure", "report", "Drawing figures")
    n_columns = min(PER_LINE, len(bins))
    n_lines = math.ceil(len(bins) / n_columns)
    with styled():
        figure = figures.Figure(figsize=(PANEL * n_columns + 0.4, PANEL * n_lines + 0.5), layout="constrained")
        panels = figure.subplots(n_lines, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes in panels[len(bins) :]:
            axes.remove()
        for axes, (name, one) in zip(panels, bins.items()):
            held = one.n > 0
            n, foretold, came = (part[held] for part in one)
            x, y = foretold / n, came / n
            spread = DEVIATIONS * np.sqrt(y * (1 - y) / n)
            area = SMALLEST_DOT + (LARGEST_DOT - SMALLEST_DOT) * np.log1p(n) / np.log1p(n.sum())
            axes.plot([0, 1], [0, 1], "--", color=MUTED, linewidth=0.9)
            axes.vlines(x, np.maximum(y - spread, 0), np.minimum(y + spread, 1), color=MUTED, linewidth=1.0)
            axes.plot(x, y, color=ACCENT, linewidth=1.2)
            axes.scatter(x, y, s=area, color=ACCENT, zorder=3)
            axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
            axes.set_title(f"{name}, ECE {one.error:.3f}" if name else f"ECE {one.error:.3f}")
        figure.supxlabel("probability", fontsize=9)
        figure.supylabel("share that is relevant", fontsize=9)
    return figure
