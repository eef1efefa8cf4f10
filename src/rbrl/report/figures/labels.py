"""Labels of a data set and what a model learned of them."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse

from rbrl.report.figures.style import ACCENT, HEAT, MUTED, plain_powers, short, style

MANY_LABELS = 40


def draw_cooccurrence(Y: Any, label_names: Any, title: str = "How often labels come together") -> Figure:
    """Draw the share of rows with the label of the line that also have the label of the column.

    Parameters
    ----------
    Y : array or sparse array of 0/1, shape (n_samples, n_labels)
    label_names : sequence of str
    title : str
    """
    Y = sparse.csr_array(Y).astype(float)
    order = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")[:MANY_LABELS]
    together = np.asarray((Y.T @ Y).toarray())[np.ix_(order, order)]
    share = together / np.maximum(together.diagonal()[:, None], 1)
    np.fill_diagonal(share, np.nan)
    names = [short(label_names[i], 16) for i in order]
    size = 1.6 + 0.17 * len(order)
    with style():
        figure = Figure(figsize=(size + 0.8, size), layout="constrained")
        axes = figure.add_subplot()
        image = axes.imshow(share, cmap=HEAT, vmin=0)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.grid(visible=False)
        axes.set_title(title)
        figure.colorbar(image, ax=axes, shrink=0.7, label="share of the line's rows")
    return figure


def draw_singular_values(weights: Any, title: str = "Singular values of the weights") -> Figure:
    """Draw the singular values of learned weights, relative to the largest: a low rank shows as a cliff."""
    values = np.linalg.svd(np.asarray(weights, dtype=float), compute_uv=False)
    relative = np.maximum(values / max(values.max(initial=0.0), np.finfo(float).tiny), 1e-16)
    with style():
        figure = Figure(figsize=(4.8, 2.8), layout="constrained")
        axes = figure.add_subplot()
        axes.plot(np.arange(1, len(relative) + 1), relative, "o-", color=ACCENT, ms=4)
        axes.set(yscale="log", xlabel="index", ylabel="singular value / largest", title=title)
        plain_powers(axes.yaxis)
    return figure


def draw_label_quality(frequency: Any, quality: Any, label_names: Any, measure: str = "F1") -> Figure:
    """Draw the quality of each label against its share of rows; the three worst are named.

    Parameters
    ----------
    frequency, quality : array, shape (n_labels,)
    label_names : sequence of str
    measure : str
        What `quality` is.
    """
    frequency, quality = np.asarray(frequency, dtype=float), np.asarray(quality, dtype=float)
    with style():
        figure = Figure(figsize=(4.8, 3.2), layout="constrained")
        axes = figure.add_subplot()
        axes.scatter(np.maximum(frequency, 1e-5), quality, s=22, color=ACCENT)
        axes.set(xscale="log", xlabel="share of rows with the label", ylabel=measure, title=f"{measure} of each label")
        plain_powers(axes.xaxis)
        for i in np.argsort(quality, kind="stable")[:3]:
            axes.annotate(
                short(label_names[i], 18),
                (max(frequency[i], 1e-5), quality[i]),
                xytext=(5, 3),
                textcoords="offset points",
                fontsize=7.5,
                color=MUTED,
            )
    return figure
