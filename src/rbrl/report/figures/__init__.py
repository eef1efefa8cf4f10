"""Figures: colour-blind safe, readable without colour, the same bytes every time."""

from rbrl.report.figures.convergence import draw_convergence
from rbrl.report.figures.critical_difference import draw_critical_difference
from rbrl.report.figures.labels import draw_cooccurrence, draw_label_quality, draw_singular_values
from rbrl.report.figures.ranks import draw_average_ranks
from rbrl.report.figures.sensitivity import draw_gamma, draw_pairs
from rbrl.report.figures.style import inline_svg, save_figure
from rbrl.report.figures.trade_off import draw_trade_off

__all__ = [
    "draw_average_ranks",
    "draw_convergence",
    "draw_cooccurrence",
    "draw_critical_difference",
    "draw_gamma",
    "draw_label_quality",
    "draw_pairs",
    "draw_singular_values",
    "draw_trade_off",
    "inline_svg",
    "save_figure",
]
