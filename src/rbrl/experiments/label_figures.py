"""Figures of labels, weights and probabilities, and reliability diagrams."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rbrl._common.typing import ArrayLike, MatrixLike
from rbrl.experiments.figures import ACCENT, HEAT, MUTED, new_figure, plain_powers, shorten, use_style
from rbrl.experiments.results import Results
from rbrl.metrics import ReliabilityBins, reliability_bins
from rbrl.metrics.probabilities import N_BINS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["reliability_diagram"]

# Largest number of labels in a figure of label pairs; the most frequent ones are drawn.
MAX_DRAWN_LABELS = 40
# Share of rows at which a label without rows is drawn.
SMALLEST_SHARE = 1e-5
# Number of panels in a line of reliability diagrams, and the size of a panel in inches.
PANELS_PER_LINE = 4
PANEL_INCHES = 2.3
# Areas of dots, for a bin with a single entry and for a bin with all entries.
SMALLEST_DOT = 6.0
LARGEST_DOT = 60.0
# Half the length of an error bar that covers 95 %, in standard deviations.
DEVIATIONS_OF_95_PERCENT = 1.96


def draw_cooccurrence(
    Y: MatrixLike, label_names: Sequence[str], title: str = "How often labels come together"
) -> "Figure":
    """Draw how often labels occur together.

    A cell shows the share of the rows with the label of the line that also have the label of the column.

    Parameters
    ----------
    Y : array or sparse array of 0/1, shape (n_samples, n_labels)
        Labels of the rows.
    label_names : sequence of str
        Names of the labels.
    title : str
        Title of the figure.

    Examples
    --------
    >>> from rbrl.experiments.label_figures import draw_cooccurrence
    >>> figure = draw_cooccurrence([[1, 1], [1, 0], [1, 1]], ["sea", "sand"])
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['sea', 'sand']
    """
    Y = sparse.csr_array(Y).astype(float)
    order = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")[:MAX_DRAWN_LABELS]
    together = np.asarray((Y.T @ Y).toarray())[np.ix_(order, order)]
    share = together / np.maximum(together.diagonal()[:, None], 1)
    np.fill_diagonal(share, np.nan)
    names = [shorten(label_names[i], 16) for i in order]
    size = 1.6 + 0.17 * len(order)
    with new_figure(size + 0.8, size, title) as (figure, axes):
        image = axes.imshow(share, cmap=HEAT, vmin=0)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.grid(visible=False)
        figure.colorbar(image, ax=axes, shrink=0.7, label="share of the line's rows")
    return figure


def draw_singular_values(weights: ArrayLike, title: str = "Singular values of the weights") -> "Figure":
    """Draw the singular values of learned weights, relative to the largest.

    Parameters
    ----------
    weights : array, shape (n_features, n_labels)
        Learned weights.
    title : str
        Title of the figure.

    Examples
    --------
    >>> from rbrl.experiments.label_figures import draw_singular_values
    >>> figure = draw_singular_values([[3.0, 0.0], [0.0, 1.5]])
    >>> figure.axes[0].lines[0].get_ydata().tolist()
    [1.0, 0.5]
    """
    values = np.linalg.svd(np.asarray(weights, dtype=float), compute_uv=False)
    relative = np.maximum(values / max(values.max(initial=0.0), np.finfo(float).tiny), 1e-16)
    with new_figure(4.8, 2.8, title) as (figure, axes):
        axes.plot(np.arange(1, len(relative) + 1), relative, "o-", color=ACCENT, ms=4)
        axes.set(yscale="log", xlabel="index", ylabel="singular value / largest")
        plain_powers(axes.yaxis)
    return figure


def draw_label_quality(
    frequency: ArrayLike, quality: ArrayLike, label_names: Sequence[str], measure: str = "F1"
) -> "Figure":
    """Draw the quality of each label against its share of rows, and name the three worst labels.

    Parameters
    ----------
    frequency, quality : array, shape (n_labels,)
        Share of rows, and quality, of each label.
    label_names : sequence of str
        Names of the labels.
    measure : str
        Name of the measure of quality.

    Examples
    --------
    >>> from rbrl.experiments.label_figures import draw_label_quality
    >>> figure = draw_label_quality([0.5, 0.1], [0.8, 0.3], ["sea", "sand"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['sand', 'sea']
    """
    share = np.maximum(np.asarray(frequency, dtype=float), SMALLEST_SHARE)
    quality = np.asarray(quality, dtype=float)
    look: dict[str, Any] = {"xytext": (5, 3), "textcoords": "offset points", "fontsize": 7.5, "color": MUTED}
    with new_figure(4.8, 3.2, f"{measure} of each label") as (figure, axes):
        axes.scatter(share, quality, s=22, color=ACCENT)
        axes.set(xscale="log", xlabel="share of rows with the label", ylabel=measure)
        plain_powers(axes.xaxis)
        for i in np.argsort(quality, kind="stable")[:3]:
            axes.annotate(shorten(label_names[i], 18), (share[i], quality[i]), **look)
    return figure


def reliability_diagram(
    Y: MatrixLike, probabilities: MatrixLike | Mapping[str, MatrixLike], n_bins: int = N_BINS, *, missing: str = "raise",
    title: str = "",
) -> "Figure":  # fmt: skip
    """Draw the share of relevant labels against their predicted probability.

    Well calibrated probabilities lie on the diagonal; below it they are too high. An error bar
    covers the share in 95 of 100 samples of independent entries. A larger dot has more entries.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    probabilities : array or sparse matrix, shape (n_samples, n_labels); or dict of such by name
        Predicted probabilities; a dict gets a panel for each name.
    n_bins : int, default=15
        Number of bins of equal width; the entries of all labels share them.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of NaN in Y, a missing label: raise an error or ignore the entry.
    title : str
        Title of the panel if there is only one.

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
    by_name = probabilities if isinstance(probabilities, Mapping) else {title: probabilities}
    return draw_reliability({name: reliability_bins(Y, P, n_bins, missing=missing) for name, P in by_name.items()})


def bins_by_method(results: Results) -> dict[str, ReliabilityBins]:
    """Return the bins of each method with probabilities, summed over data sets and splits."""
    frame = results.reliability
    columns = ["n", "foretold", "relevant"]
    sums = {name: frame[frame.method == name].groupby("bin")[columns].sum() for name in results.methods}
    return {name: ReliabilityBins(*one.to_numpy(dtype=float).T) for name, one in sums.items() if len(one)}


def draw_reliability(bins: Mapping[str, ReliabilityBins]) -> "Figure":
    """Draw a panel for each set of bins, with its name and its expected calibration error."""
    from matplotlib.figure import Figure

    n_columns = min(PANELS_PER_LINE, len(bins))
    n_lines = math.ceil(len(bins) / n_columns)
    size = (PANEL_INCHES * n_columns + 0.4, PANEL_INCHES * n_lines + 0.5)
    with use_style():
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(n_lines, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes in panels[len(bins) :]:
            axes.remove()
        for axes, (name, one) in zip(panels, bins.items()):
            _draw_panel(axes, one)
            axes.set_title(f"{name}, ECE {one.error:.3f}" if name else f"ECE {one.error:.3f}")
        figure.supxlabel("probability", fontsize=9)
        figure.supylabel("share that is relevant", fontsize=9)
    return figure


def _draw_panel(axes: "Axes", bins: ReliabilityBins) -> None:
    is_used = bins.n > 0
    n, foretold, relevant = (part[is_used] for part in bins)
    x = foretold / n
    y = relevant / n
    deviation = DEVIATIONS_OF_95_PERCENT * np.sqrt(y * (1 - y) / n)
    area = SMALLEST_DOT + (LARGEST_DOT - SMALLEST_DOT) * np.log1p(n) / np.log1p(n.sum())
    axes.plot([0, 1], [0, 1], "--", color=MUTED, linewidth=0.9)
    axes.vlines(x, np.maximum(y - deviation, 0), np.minimum(y + deviation, 1), color=MUTED, linewidth=1.0)
    axes.plot(x, y, color=ACCENT, linewidth=1.2)
    axes.scatter(x, y, s=area, color=ACCENT, zorder=3)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
