"""Convergence: how far from the optimum, certified, after how much work (Figure 3 of the paper)."""

import pandas as pd
from matplotlib.figure import Figure

from rbrl.report.figures.style import DASHES, MUTED, PALETTE, plain_powers, style

FLOOR = 1e-12


def draw_convergence(curves: pd.DataFrame) -> Figure:
    """Draw objective and certified distance against evaluations, one row of panels per problem.

    Parameters
    ----------
    curves : DataFrame
        Columns problem, solver, evaluations, objective and gap: an upper bound on the relative distance of the
        objective from its optimum; see `rbrl.report.studies.convergence`.
    """
    problems = list(dict.fromkeys(curves.problem))
    with style():
        figure = Figure(figsize=(7.6, 2.7 * len(problems)), layout="constrained")
        panels = figure.subplots(len(problems), 2, squeeze=False)
        for (left, right), problem in zip(panels, problems):
            part = curves[curves.problem == problem]
            for i, (solver, curve) in enumerate(part.groupby("solver", sort=False)):
                look = {"color": PALETTE[i % len(PALETTE)], "ls": DASHES[i % len(DASHES)], "label": solver}
                left.plot(curve.evaluations, curve.objective, **look)
                right.plot(curve.evaluations, curve.gap.clip(lower=FLOOR), **look)
            left.set(xscale="log", ylabel="objective", title=problem)
            right.set(xscale="log", yscale="log", ylabel="certified relative gap")
            right.axhline(1e-4, color=MUTED, lw=0.9, ls=":")
            left.legend(loc="upper right")
        for axes in panels[:, 1]:
            plain_powers(axes.yaxis)
        for axes in panels.flat:
            plain_powers(axes.xaxis)
        figure.supxlabel("evaluations: products with the design and with its transpose, in pairs", fontsize=9)
    return figure
