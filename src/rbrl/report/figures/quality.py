"""Time against quality, and the labels of a data set."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from rbrl.report.figures.style import ACCENT, HEAT, MUTED, RULE, plain_powers, short, style

LETTER, LINE = 5.2, 10  # points


def draw_trade_off(seconds: pd.Series, ranks: pd.Series, title: str = "Time against quality") -> Figure:
    """Draw each method at its training time and average rank, best on top; a line joins those that none dominates.

    Parameters
    ----------
    seconds : Series
        Training time by method.
    ranks : Series
        Average rank by method.
    """
    frame = pd.DataFrame({"seconds": seconds, "rank": ranks}).dropna().sort_values(["seconds", "rank"], kind="stable")
    frame["seconds"] = frame.seconds.clip(lower=1e-4)
    front = undominated(frame)
    with style():
        figure = Figure(figsize=(4.8, 3.3), layout="constrained")
        axes = figure.add_subplot()
        axes.plot(front.seconds, front["rank"], drawstyle="steps-post", color=RULE, lw=2)
        on_front = frame.index.isin(front.index)
        axes.scatter(frame.seconds, frame["rank"], c=np.where(on_front, ACCENT, MUTED), s=34, zorder=3)
        axes.set(xscale="log", xlabel="seconds to train, geometric mean over data sets", ylabel="average rank")
        plain_powers(axes.xaxis)
        axes.margins(x=0.18, y=0.14)
        axes.invert_yaxis()
        axes.set_title(title)
        _name_points(figure, axes, frame)
    return figure


def undominated(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows such that no other is both faster and better ranked; sorted by seconds."""
    best = frame["rank"].cummin()
    return frame[frame["rank"].eq(best) & ~frame["rank"].duplicated()]


def _name_points(figure, axes, frame):
    """Put each name on the first of four sides where it covers neither a point nor another name."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    points = axes.transData.transform(frame[["seconds", "rank"]].to_numpy()) * 72 / figure.dpi
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    for (x, y), name in zip(points, frame.index):
        text = short(name, 18)
        sides = [_box(x, y, len(text) * LETTER, *side) for side in ((0, 1), (1, 0), (-1, 0), (0, -1))]
        box = next((b for b in sides if not any(_overlap(b, other) for other in taken)), sides[0])
        taken.append(box)
        middle = (box[0] + box[2]) / 2 - x, (box[1] + box[3]) / 2 - y
        axes.annotate(
            text,
            frame.loc[name, ["seconds", "rank"]],
            xytext=middle,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
        )


def _box(x, y, width, right, up):
    x, y = x + right * (width / 2 + 6), y + up * 11
    return x - width / 2, y - LINE / 2, x + width / 2, y + LINE / 2


def _overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


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
