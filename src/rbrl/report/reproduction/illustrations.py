"""The figures of the page of the reproduction."""

from pathlib import Path

from rbrl.report import figures
from rbrl.report.comparison import compare, rank_table
from rbrl.report.paper_tables import published_results
from rbrl.report.reproduction.names import as_published
from rbrl.report.reproduction.sources import Recorded


def draw_all(recorded: Recorded, folder: Path) -> dict[str, list[dict[str, str]]]:
    """Draw every figure that there are results for; return {part: [{file, alt}]}."""
    drawn: dict[str, list[dict[str, str]]] = {"ranks": [], "differences": [], "convergence": [], "sensitivity": []}

    def keep(part, figure, name, alt):
        figures.save_figure(figure, folder / name, formats=("svg",))
        drawn[part].append({"file": f"{name}.svg", "alt": alt})

    for who, results in (("ours", as_published(recorded.rows("paper"))), ("paper", published_results())):
        owner = "our results" if who == "ours" else "the paper's results"
        ranks = rank_table(results, ties="minimum").loc["Overall"].dropna()
        if len(ranks):
            title = f"Average rank over all metrics, {owner}"
            keep("ranks", figures.draw_average_ranks(ranks, title), f"figure1-{who}", title)
        for metric in results.metrics:
            comparison = compare(results, metric)
            if comparison.decides_pairs:
                alt = f"Critical-difference diagram of {metric.title.lower()}, {owner}"
                keep("differences", figures.draw_critical_difference(comparison), f"figure2-{metric.name}-{who}", alt)
    studies = (
        ("figure3", "convergence", figures.draw_convergence, "Convergence of three solvers on emotions and arts"),
        ("figure4", "sensitivity", figures.draw_gamma, "Sensitivity to the kernel width on image"),
        ("figure5", "sensitivity", figures.draw_pairs, "Sensitivity to pairs of penalties on arts"),
    )
    for name, part, draw, alt in studies:
        if recorded.has_table(name):
            keep(part, draw(recorded.table(name)), name, alt)
    return drawn
