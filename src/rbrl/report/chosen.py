"""The hyper-parameters that tuning chose (Table 2 of a run)."""

import json
from collections import Counter

import pandas as pd

from rbrl.report.results import Results
from rbrl.report.table import Table, count, word


def parameters_table(results: Results) -> Table:
    """For every data set and method, the parameters chosen most often, and in how many splits."""
    frame = chosen_parameters(results)
    rows = tuple(
        (word(row.dataset), word(row.method), word(row.params), count(row.n_chosen), count(row.n_splits))
        for row in frame.itertuples()
    )
    titles = ("Data set", "Method", "Parameters chosen most often", "Splits", "Of")
    return Table("parameters", "Parameters chosen", titles, rows, frame, n_keys=2)


def chosen_parameters(results: Results) -> pd.DataFrame:
    """One row per (dataset, method): params, n_chosen, n_splits, n_different."""
    rows = []
    runs = results.runs[results.runs.status == "ok"]
    if "params" not in runs:
        runs = runs.assign(params="{}")
    for dataset in results.datasets:
        for method in results.methods:
            chosen = runs[(runs.dataset == dataset) & (runs.method == method)].params
            if len(chosen):
                counts = Counter(spell(params) for params in chosen)
                text, times = counts.most_common(1)[0]
                rows.append((dataset, method, text, times, len(chosen), len(counts)))
    return pd.DataFrame(rows, columns=["dataset", "method", "params", "n_chosen", "n_splits", "n_different"])


def spell(params) -> str:
    """Parameters for people: ``ridge = 0.1, nuclear = 10``; what is not JSON stays as it is."""
    if isinstance(params, str):
        try:
            params = json.loads(params)
        except ValueError:
            return str(params)
    if not isinstance(params, dict):
        return "default" if params is None or params != params else str(params)
    return ", ".join(f"{name} = {_value(value)}" for name, value in params.items()) or "default"


def _value(value):
    return f"{value:g}" if isinstance(value, float) else str(value)
