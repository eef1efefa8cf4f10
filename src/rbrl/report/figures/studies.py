"""Convergence (Figure 3) and sensitivity to hyper-parameters (Figures 4 and 5)."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rbrl.metrics import get_metric
from rbrl.report.figures.style import DASHES, HEAT, INK, MARKERS, MUTED, PALETTE, plain_powers, style

FLOOR = 1e-12
TOLERANCE = 1e-4  # the default of the classifiers, marked by a line


def draw_convergence(curves: pd.DataFrame) -> Figure:
    """Draw the objective against evaluations, and the certified gap against these and time; a row per problem.

    Parameters
    ----------
    curves : DataFrame
        Columns problem, solver, evaluations, seconds, objective and gap: an upper bound on the relative distance of
        the objective from its optimum; see `reproduction.studies.convergence`.
    """
    problems = list(dict.fromkeys(curves.problem))
    with style():
        figure = Figure(figsize=(9.2, 2.5 * len(problems) + 0.3), layout="constrained")
        panels = figure.subplots(len(problems), 3, squeeze=False)
        for row, problem in zip(panels, problems):
            _draw_problem(row, curves[curves.problem == problem])
            row[0].set_title(problem)
        for axes, title in zip(panels[-1], ("evaluations", "evaluations", "seconds of the processor")):
            axes.set_xlabel(title)
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=len(DASHES))
    return figure


def _draw_problem(panels, curves):
    left, middle, right = panels
    for i, (solver, curve) in enumerate(curves.groupby("solver", sort=False)):
        look = {"color": PALETTE[i % len(PALETTE)], "ls": DASHES[i % len(DASHES)], "label": solver}
        gap = curve.gap.clip(lower=FLOOR)
        left.plot(curve.evaluations, curve.objective, **look)
        middle.plot(curve.evaluations, gap, **look)
        right.plot(curve.seconds, gap, **look)
    left.set(xscale="log", ylabel="objective")
    for axes in (middle, right):
        axes.set(xscale="log", yscale="log")
        axes.axhline(TOLERANCE, color=MUTED, lw=0.9, ls=":")
        plain_powers(axes.yaxis)
    middle.set_ylabel("certified relative gap")
    for axes in panels:
        plain_powers(axes.xaxis)


SYMBOLS = {"ridge": "λ₁ ridge", "ranking": "λ₂ ranking", "nuclear": "λ₃ nuclear"}


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
    with style():
        figure = Figure(figsize=(7.6, 2.1 * n_rows + 0.4), layout="constrained")
        for place, name in enumerate(metrics, 1):
            axes = figure.add_subplot(n_rows, 3, place)
            _gamma_panel(axes, study[study.metric == name], get_metric(name))
            if place > len(metrics) - 3:
                axes.set_xlabel("γ × number of features")
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=9.5, weight="bold")
        if study.method.nunique() > 1:
            lines, names = figure.axes[0].get_legend_handles_labels()
            figure.legend(lines, names, loc="outside lower center", ncols=4)
    return figure


def _gamma_panel(axes, part, metric):
    axes.axvline(1, color=MUTED, lw=0.9, ls=":")
    for i, (method, line) in enumerate(part.groupby("method", sort=False)):
        axes.plot(
            line.factor,
            line.value,
            ls=DASHES[i % len(DASHES)],
            color=PALETTE[i % len(PALETTE)],
            marker=MARKERS[i % len(MARKERS)],
            ms=4,
            label=method,
        )
    axes.set(xscale="log", title=f"{metric.title} {metric.arrow}")
    plain_powers(axes.xaxis)
    axes.tick_params(axis="x", labelsize=7)


def draw_pairs(study: pd.DataFrame, title: str = "") -> Figure:
    """Draw a heat map of each metric for each pair of lambdas; the best value of each map has a ring.

    Parameters
    ----------
    study : DataFrame
        Columns fixed, at (the fixed one's value), ridge, ranking, nuclear, metric, value.
    title : str
    """
    metrics, fixed = list(dict.fromkeys(study.metric)), list(dict.fromkeys(study.fixed))
    with style():
        figure = Figure(figsize=(1.75 * len(metrics) + 0.9, 1.85 * len(fixed) + 0.5), layout="constrained")
        grid = figure.subplots(len(fixed), len(metrics), squeeze=False)
        for row, name in zip(grid, fixed):
            for j, (axes, metric) in enumerate(zip(row, metrics)):
                part = study[(study.fixed == name) & (study.metric == metric)]
                _pair_panel(axes, part, get_metric(metric), name, j == 0)
        for axes, metric in zip(grid[0], map(get_metric, metrics)):
            axes.set_title(f"{metric.title} {metric.arrow}", fontsize=8.5)
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=9.5, weight="bold")
    return figure


def _pair_panel(axes, part, metric, fixed, first):
    y_name, x_name = (name for name in SYMBOLS if name != fixed)
    values = part.pivot(index=y_name, columns=x_name, values="value")
    # Light is good in every map, whichever way the metric points.
    colours = HEAT if metric.greater_is_better else f"{HEAT}_r"
    axes.imshow(values, cmap=colours, origin="lower", aspect="auto")
    flat = values.to_numpy()
    best = np.unravel_index((flat if metric.greater_is_better else -flat).argmax(), flat.shape)
    axes.plot(best[1], best[0], "o", ms=8, mfc="none", mec=INK, mew=1.6)
    axes.plot(best[1], best[0], "o", ms=8, mfc="none", mec="white", mew=0.6)
    axes.grid(visible=False)
    axes.set_xticks(range(values.shape[1]), _powers(values.columns), fontsize=6.5)
    axes.set_yticks(range(values.shape[0]), _powers(values.index), fontsize=6.5)
    axes.set_xlabel(f"{SYMBOLS[x_name]}   ({flat.min():.3f} to {flat.max():.3f})", fontsize=7.5, labelpad=1)
    if first:
        held = f"{SYMBOLS[fixed].split()[0]} = {part['at'].iloc[0]:g}"
        axes.set_ylabel(f"{held}\n{SYMBOLS[y_name]}", fontsize=7.5, labelpad=1)


def _powers(values):
    """Every other value as a power of ten: more would touch."""
    return [
        f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e") if i % 2 == 0 else "" for i, value in enumerate(values)
    ]
