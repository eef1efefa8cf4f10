"""The same comparison on different terms, side by side: who ranks where, and whom RBRL beats."""

from collections.abc import Mapping

import pandas as pd

from rbrl.metrics import PAPER_METRICS
from rbrl.report.comparison import compare, rank_table
from rbrl.report.page.verdict import join
from rbrl.report.reproduction.names import OURS, paper_methods
from rbrl.report.results import Results
from rbrl.report.table import Table, number, word
from rbrl.report.tables import best_of


def overall_ranks(sources: Mapping[str, Results]) -> Table:
    """Overall average rank of each method by each of some results; the lowest of each in bold."""
    ranks = {name: rank_table(results).loc["Overall"] for name, results in sources.items()}
    methods = [name for name in paper_methods() if any(name in one.index for one in ranks.values())]
    frame = pd.DataFrame({name: one.reindex(methods) for name, one in ranks.items()})
    rows = tuple(
        (word(method), *(number(line[name], 2, line[name] == frame[name].min()) for name in frame))
        for method, line in frame.iterrows()
    )
    note = "Mean over the six metrics of the average ranks over data sets; tied methods share the mean of their ranks."
    table = frame.rename_axis("method").reset_index()
    return Table("overall-ranks", "Overall average ranks", ("Method", *sources), rows, table, note=note)


def metric_ranks(sources: Mapping[str, Results], ties: str = "average") -> Table:
    """Table 4: by metric and over all the average rank of each method, a line for each of some results."""
    tables = {name: rank_table(results, ties) for name, results in sources.items()}
    titles = {metric.name: f"{metric.title} {metric.arrow}" for metric in PAPER_METRICS} | {"Overall": "Overall"}
    rows, records = [], []
    for metric, title in titles.items():
        for name, table in tables.items():
            ranks = table.loc[metric]
            best = best_of(ranks, greater_is_better=False, digits=2)
            rows.append((word(title), word(name), *(number(ranks.get(m), 2, m in best) for m in paper_methods())))
            records += [{"metric": metric, "source": name, "method": m, "average_rank": ranks[m]} for m in table]
    heads = ("Metric", "", *paper_methods())
    return Table("table4", "Table 4: average ranks", heads, tuple(rows), pd.DataFrame(records), n_keys=2)


def beaten_table(sources: Mapping[str, Results]) -> Table:
    """For each metric the methods that RBRL is significantly better than, and those significantly better than it."""
    rows, records = [], []
    for metric in PAPER_METRICS:
        cells = []
        for name, results in sources.items():
            comparison = compare(results, metric)
            below = comparison.beaten(OURS) if OURS in comparison.ranks.index else []
            above = [m for m in comparison.ranks.index if OURS in comparison.beaten(m)]
            cells.append(word((join(below) if below else "none") + (f"; worse than {join(above)}" if above else "")))
            records.append(
                {"metric": metric.name, "source": name, "better_than": ", ".join(below), "worse_than": ", ".join(above)}
            )
        rows.append((word(f"{metric.title} {metric.arrow}"), *cells))
    title = f"Methods that {OURS} is significantly better than"
    return Table("beaten", title, ("Metric", *sources), tuple(rows), pd.DataFrame(records))


def beaten_counts(results: Results) -> tuple[int, int]:
    """(significant wins of RBRL over all metrics, significant losses)."""
    found = [compare(results, metric) for metric in PAPER_METRICS]
    wins = sum(len(one.beaten(OURS)) for one in found if OURS in one.ranks.index)
    losses = sum(OURS in one.beaten(name) for one in found for name in one.ranks.index)
    return wins, losses
