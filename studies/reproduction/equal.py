"""The comparison on equal terms: the search of each method, and every mean."""

from itertools import groupby
from math import prod
from typing import Any

import pandas as pd

from rbrl.experiments import Plan, Results
from rbrl.experiments.tables import Cell, Table, best_of, heading, join, number, word
from rbrl.metrics import PAPER_METRICS, Metric
from studies.reproduction.paper import FURTHER, by_decision_values, key, titles

EVERY, FIRST = "every", "first"
# Marks a mean whose parameters were chosen on the first split alone.
MARK = "†"
COLUMN = "Tuned on every split"


def compared(plan: Plan) -> dict[str, Any]:
    """Return the compared methods of a plan by their titles in tables, in the order of Table 3."""
    own = {key(method.name): method for method in plan.methods}
    return {title: own[name] for name, title in titles(*FURTHER).items() if name in own}


def tuned_on(plan: Plan, splits: str) -> dict[str, list[str]]:
    """Return, by method, the data sets on which it is tuned on every split, or on the first."""
    return {
        title: [data.name for data in plan.datasets if method.tuned_on(data, plan.tuning.on) == splits]
        for title, method in compared(plan).items()
    }


def tuned_counts(plan: Plan) -> dict[str, str]:
    """Return, by method, the number of data sets on which it is tuned on every split, in words."""
    return {title: f"{len(sets)} of {len(plan.datasets)}" for title, sets in tuned_on(plan, EVERY).items()}


def search_table(plan: Plan) -> Table:
    """Number of points in the search of each method, and the data sets that are searched on the first split alone."""
    first, rows, records = tuned_on(plan, FIRST), [], []
    for title, method in compared(plan).items():
        sets = [data.name for data in plan.datasets if data.name in first[title]]
        points = _points(plan, method)
        where = "none" if not sets else "all" if len(sets) == len(plan.datasets) else ", ".join(sets)
        rows.append((word(title), word(points), word(where)))
        records.append({"method": title, "points": points, "first": where})
    titles_ = ("Method", "Points of the grid", "Tuned on the first split only")
    return Table("searches", "What was searched", titles_, tuple(rows), pd.DataFrame(records))


def _points(plan: Plan, method: Any) -> str:
    """Return the number of points of the grid, and the data sets on which it has fewer."""
    sizes = {data.name: size(method, data) for data in plan.datasets}
    most = max(sizes.values())
    fewer = sorted((n, name) for name, n in sizes.items() if n < most)
    parts = [f"{n} on {join([name for _, name in group])}" for n, group in groupby(fewer, key=lambda one: one[0])]
    return "; ".join([str(most), *parts])


def size(method: Any, data: Any) -> int:
    """Return the number of points for a method on a data set; 1 if its parameters are given."""
    return sum(prod(map(len, grid.values())) for grid in method.on(data)[1]) or 1


def mean_tables(results: Results, plan: Plan) -> list[Table]:
    """Return a table of means for each metric, methods x data sets: the best in bold, first-split choices marked."""
    first = tuned_on(plan, FIRST)
    return [_mean_table(results, metric, first) for metric in PAPER_METRICS]


def _mean_table(results: Results, metric: Metric, first: dict[str, list[str]]) -> Table:
    means = results.means(metric)
    best = {name: best_of(line, metric.greater_is_better) for name, line in means.iterrows()}
    rows = []
    for method in means:
        cells = [
            _marked(number(value, best=method in best[name]), name in first.get(method, ()))
            for name, value in means[method].items()
        ]
        rows.append((word(method), *cells))
    return Table(f"means-{metric.name}", heading(metric), ("Method", *means.index), tuple(rows), means.reset_index())


def _marked(cell: Cell, mark: bool) -> Cell:
    return Cell(cell.text + MARK, cell.value, cell.best) if mark and cell.is_number else cell


def gain_of_votes(rows: pd.DataFrame, metric: Metric) -> float:
    """Return the mean gain of CLR's hard votes over its soft ones on equal terms."""
    hard, soft = (
        one[(one.method == "clr") & (one.metric == metric.name)].groupby("dataset").value.mean()
        for one in (rows, by_decision_values(rows))
    )
    return float((hard - soft).mean()) * (1 if metric.greater_is_better else -1)
