"""Drawings of the paper's studies: convergence (Figure 3) and sensitivity (Figures 4 and 5)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rbrl.experiments.figures import HEAT, INK, MUTED, plain_powers, use_style
from rbrl.experiments.tables import heading
from rbrl.metrics import Metric, get_metric

# Okabe and Ito's colours without black and yellow, in an order whose neighbours differ in lightness, too.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Colours of the two scoring rules in the figure of leads: hard votes as published, and decision values.
HARD, SOFT = "#d55e00", "#0072b2"
FLOOR = 1e-12  # smallest gap that is drawn: a logarithm needs a positive number
DEFAULT_TOL = 1e-4  # the default tolerance of the classifiers, marked by a line


def draw_convergence(curves: pd.DataFrame) -> Figure:
    """Draw the objective against evaluations, and the certified gap against these and time; a row per problem.

    Parameters
    ----------
    curves : DataFrame
        Columns problem, solver, evaluations, seconds, objective and gap: an upper bound on the relative distance of
        the objective from its optimum.

    Examples
    --------
    >>> curves = pd.DataFrame({"problem": "yeast", "solver": "apg", "evaluations": [1, 2, 4], "seconds": [0.1, 0.2, 0.4],
    ...                        "objective": [9.0, 5.0, 4.0], "gap": [1.2, 0.2, 0.01]})
    >>> len(draw_convergence(curves).axes)
    3
    """
    problems = list(dict.fromkeys(curves.problem))
    with panels(len(problems), 3, 9.2, 2.5 * len(problems) + 0.3) as (figure, grid):
        for row, problem in zip(grid, problems):
            _draw_problem(row, curves[curves.problem == problem])
            row[0].set_title(problem)
        for axes, title in zip(grid[-1], ("evaluations", "evaluations", "processor seconds")):
            axes.set_xlabel(title)
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=len(DASHES))
    return figure


def _draw_problem(row: Sequence[Axes], curves: pd.DataFrame) -> None:
    left, middle, right = row
    for i, (solver, curve) in enumerate(curves.groupby("solver", sort=False)):
        look, gap = line_look(i) | {"label": solver}, curve.gap.clip(lower=FLOOR)
        left.plot(curve.evaluations, curve.objective, **look)
        middle.plot(curve.evaluations, gap, **look)
        right.plot(curve.seconds, gap, **look)
    left.set(xscale="log", ylabel="objective")
    middle.set_ylabel("certified relative gap")
    for axes in (middle, right):
        axes.set(xscale="log", yscale="log")
        axes.axhline(DEFAULT_TOL, color=MUTED, lw=0.9, ls=":")
    plain_powers(*(axes.xaxis for axes in row), middle.yaxis, right.yaxis)


def draw_leads(leads: pd.DataFrame, equivalent: float) -> Figure:
    """Draw a method's lead over others under two scoring rules: a point per data set, a bar at their mean.

    Parameters
    ----------
    leads : DataFrame
        Columns metric, rival, dataset, hard and soft: the lead where the rivals rank by hard votes, and where by decision
        values. Two markers distinguish them without colour.
    equivalent : float
        Leads up to this size count as equal; their region is shaded.
    """
    metrics, rivals = list(dict.fromkeys(leads.metric)), list(dict.fromkeys(leads.rival))
    with panels(len(metrics), 1, 5.6, 1.95 * len(metrics) + 0.5) as (figure, grid):
        for axes, name in zip(grid[:, 0], metrics):
            _lead_panel(axes, leads[leads.metric == name], rivals, equivalent)
            axes.set_title(heading(get_metric(name)))
        low, high = min(leads.hard.min(), leads.soft.min()), max(leads.hard.max(), leads.soft.max())
        for axes in grid[:, 0]:
            axes.set_xlim(low - 0.02, high + 0.11)
        grid[-1, 0].set_xlabel("RBRL's lead, in units of the metric: right of 0 RBRL is better")
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper left", ncols=3, fontsize=8)
    return figure


def _lead_panel(axes: Axes, part: pd.DataFrame, rivals: Sequence[str], equivalent: float) -> None:
    axes.axvspan(-equivalent, equivalent, color=MUTED, alpha=0.25, lw=0, label=f"within ±{equivalent}")
    axes.axvline(0, color=INK, lw=0.8)
    for place, rival in enumerate(rivals):
        own = part[part.rival == rival]
        rules = (("hard", "hard votes, as published", HARD, "o", -0.17), ("soft", "decision values", SOFT, "D", 0.17))
        for column, label, colour, marker, shift in rules:
            look: dict[str, Any] = {"color": colour, "ms": 3.6, "mfc": "none", "mew": 0.9, "ls": "none"}
            named = {"label": label} if place == 0 else {}
            axes.plot(own[column], [place + shift] * len(own), marker, **look | named)
            axes.plot([own[column].mean()] * 2, [place + shift - 0.15, place + shift + 0.15], color=colour, lw=2.4)
        right = max(own.hard.max(), own.soft.max()) + 0.008
        fall = " → ".join(f"{own[column].mean():.3f}".replace("-0.000", "0.000") for column in ("hard", "soft"))
        axes.text(right, place, fall.replace("-", "−"), va="center", fontsize=8)
    axes.set_yticks(range(len(rivals)), [f"over {rival}" for rival in rivals])
    axes.set_ylim(len(rivals) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def draw_gamma(study: pd.DataFrame, title: str = "") -> Figure:
    """Draw each metric against the kernel width, one line per method; the paper's default is marked.

    Parameters
    ----------
    study : DataFrame
        Columns method, factor (gamma times the number of features; 1 is the default), metric, value.
    title : str
    """
    metrics = list(dict.fromkeys(study.metric))
    n_rows = -(-len(metrics) // 3)
    with panels(n_rows, 3, 7.6, 2.1 * n_rows + 0.4, title) as (figure, grid):
        for place, (axes, name) in enumerate(zip(grid.flat, metrics), 1):
            _gamma_panel(axes, study[study.metric == name], get_metric(name))
            if place > len(metrics) - 3:
                axes.set_xlabel("γ × number of features")
        for axes in grid.flat[len(metrics) :]:
            axes.remove()
        if study.method.nunique() > 1:
            figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _gamma_panel(axes: Axes, part: pd.DataFrame, metric: Metric) -> None:
    axes.axvline(1, color=MUTED, lw=0.9, ls=":")
    for i, (method, line) in enumerate(part.groupby("method", sort=False)):
        look = line_look(i) | {"marker": MARKERS[i % len(MARKERS)], "ms": 4}
        axes.plot(line.factor, line.value, **look, label=method)
    axes.set(xscale="log", title=heading(metric))
    plain_powers(axes.xaxis)
    axes.tick_params(axis="x", labelsize=7)


SYMBOLS = {"ridge": "λ₁ ridge", "ranking": "λ₂ ranking", "nuclear": "λ₃ nuclear"}


def draw_pairs(study: pd.DataFrame, title: str = "") -> Figure:
    """Draw a heat map of each metric for each pair of lambdas; the best value of each map has a ring.

    Parameters
    ----------
    study : DataFrame
        Columns fixed, at (the fixed one's value), ridge, ranking, nuclear, metric, value.
    title : str
    """
    metrics, fixed = list(dict.fromkeys(study.metric)), list(dict.fromkeys(study.fixed))
    size = 1.75 * len(metrics) + 0.9, 1.85 * len(fixed) + 0.5
    with panels(len(fixed), len(metrics), *size, title) as (figure, grid):
        for row, name in zip(grid, fixed):
            for axes, metric in zip(row, metrics):
                part = study[(study.fixed == name) & (study.metric == metric)]
                _pair_panel(axes, part, get_metric(metric), name, axes is row[0])
        for axes, metric in zip(grid[0], metrics):
            axes.set_title(heading(get_metric(metric)), fontsize=8.5)
    return figure


def _pair_panel(axes: Axes, part: pd.DataFrame, metric: Metric, fixed: str, first: bool) -> None:
    y_name, x_name = (name for name in SYMBOLS if name != fixed)
    values = part.pivot(index=y_name, columns=x_name, values="value")
    # Light is good in every map, whichever way the metric points.
    colours = HEAT if metric.greater_is_better else f"{HEAT}_r"
    axes.imshow(values, cmap=colours, origin="lower", aspect="auto")
    flat = values.to_numpy()
    best = np.unravel_index((flat if metric.greater_is_better else -flat).argmax(), flat.shape)
    # A dark ring with a light line in it shows on every colour.
    for colour, width in ((INK, 1.6), ("white", 0.6)):
        axes.plot(best[1], best[0], "o", ms=8, mfc="none", mec=colour, mew=width)
    axes.grid(visible=False)
    axes.set_xticks(range(values.shape[1]), _powers(values.columns), fontsize=6.5)
    axes.set_yticks(range(values.shape[0]), _powers(values.index), fontsize=6.5)
    axes.set_xlabel(f"{SYMBOLS[x_name]}   ({flat.min():.3f} to {flat.max():.3f})", fontsize=7.5, labelpad=1)
    if first:
        held = f"{SYMBOLS[fixed].split()[0]} = {part['at'].iloc[0]:g}"
        axes.set_ylabel(f"{held}\n{SYMBOLS[y_name]}", fontsize=7.5, labelpad=1)


def _powers(values: Iterable[float]) -> list[str]:
    """Return every other value as a power of ten: more would overlap."""
    texts = [f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e") for value in values]
    return [text if i % 2 == 0 else "" for i, text in enumerate(texts)]


@contextmanager
def panels(n_rows: int, n_columns: int, width: float, height: float, title: str = "") -> Iterator[tuple[Figure, Any]]:
    """Make a figure with a grid of axes, under a common title if there is one, drawn in our style."""
    with use_style():
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots(n_rows, n_columns, squeeze=False)
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=9.5, weight="bold")


def line_look(i: int) -> dict[str, Any]:
    """Return colour and dashes of the i-th line: lines differ in both, so that colour is not needed."""
    return {"color": PALETTE[i % len(PALETTE)], "ls": DASHES[i % len(DASHES)]}
