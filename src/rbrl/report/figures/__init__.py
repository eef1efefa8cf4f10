"""Figures: colour-blind safe, readable without colour, the same bytes every time."""

from rbrl.report.figures.comparison import draw_average_ranks, draw_critical_difference, draw_trade_off
from rbrl.report.figures.studies import (
    draw_convergence,
    draw_cooccurrence,
    draw_gamma,
    draw_label_quality,
    draw_pairs,
    draw_singular_values,
)
from rbrl.report.figures.style import inline_svg, save_figure

__all__ = [
    "draw_average_ranks", "draw_convergence", "draw_cooccurrence", "draw_critical_difference", "draw_gamma",
    "draw_label_quality", "draw_pairs", "draw_singular_values", "draw_trade_off", "inline_svg", "save_figure",
]  # fmt: skip
