"""Convergence: how far from the optimum, certified, after how much work (Figure 3 of the paper)."""

import pandas as pd
from matplotlib.figure import Figure

from rbrl.report.figures.style import DASHES, MUTED, PALETTE, plain_powers, style

FLOOR = 1e-12
TOLERANCE = 1e-4  # the default of the classifiers, marked by a line


def draw_convergence(curves: pd.DataFrame) -> Figure:
    """Draw the objective against evaluations, and the certified gap against these and time; a row per problem.

    Parameters
    ----------
    curves : DataFrame
        Columns problem, solver, evaluations, seconds, objective and gap: an upper bound on the relative distance of
        the objective from its optimum; see `rbrl.report.studies.convergence`.
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
