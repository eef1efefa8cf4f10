"""Time against quality: which methods are worth their seconds?"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rbrl.report.figures.style import ACCENT, MUTED, RULE, plain_powers, short, style

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
