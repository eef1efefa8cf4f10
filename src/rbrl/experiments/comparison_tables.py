"""The paper's tables, for any run."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd

from rbrl.datasets import CARDS, Card
from rbrl.experiments.cells import Cell, Table, best_of, count, heading, number, seconds, spread, word
from rbrl.experiments.comparison import complete_part, rank_table
from rbrl.experiments.results import Results, Sizes
from rbrl.experiments.significance_tables import friedman_table, pairs_table
from rbrl.metrics import Metric


def results_table(results: Results) -> Table:
    """Table 3: mean ± standard deviation of every metric, the best of each row in bold. A single split has no deviation.

    Parameters
    ----------
    results : Results

    Returns
    -------
    Table
        One row per data set and metric.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results
    >>> from rbrl.experiments.comparison_tables import results_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> [cell.text for cell in results_table(results).rows[0]]
    ['sea', 'Hal ↓', '0.200', '0.100']
    """
    rows = tuple(
        (word(dataset), word(f"{metric.abbreviation} {metric.arrow}"), *metric_cells(results, metric, dataset))
        for dataset, metric in product(results.datasets, results.metrics)
    )
    title = "Results on one split" if results.n_splits == 1 else "Results, mean ± standard deviation"
    titles = ("Data set", "Metric", *results.methods)
    note = " ".join(filter(None, [legend(results), _incomplete(results)]))
    return Table("results", title, titles, rows, results.summary, n_keys=2, note=note)


def legend(results: Results) -> str:
    """What the short names of the metrics stand for.

    Parameters
    ----------
    results : Results

    Returns
    -------
    str
    """
    names = "; ".join(f"{metric.abbreviation}: {metric.title}" for metric in results.metrics)
    return f"{names}. ↓ lower is better, ↑ higher."


def metric_table(results: Results, metric: Metric) -> Table:
    """One metric of Table 3, data sets x methods.

    Parameters
    ----------
    results : Results
    metric : Metric

    Returns
    -------
    Table

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.metrics import get_metric
    >>> from rbrl.experiments import Results
    >>> from rbrl.experiments.comparison_tables import metric_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> [cell.text for cell in metric_table(results, get_metric("hamming_loss")).rows[0]]
    ['sea', '0.200', '0.100']
    """
    rows = tuple((word(name), *metric_cells(results, metric, name)) for name in results.datasets)
    frame = results.summary[results.summary.metric == metric.name]
    titles = ("Data set", *results.methods)
    return Table(metric.name, heading(metric), titles, rows, frame, note=_incomplete(results))


def metric_cells(results: Results, metric: Metric, dataset: str, alone: bool = False) -> list[Cell]:
    """One metric of all methods on a data set, mean ± standard deviation; a star where splits are missing.

    Parameters
    ----------
    results : Results
    metric : Metric
    dataset : str
    alone : bool, default=False
        Whether the table is of this data set alone: it then has no stars.

    Returns
    -------
    list of Cell
        In the order of `results.methods`.
    """
    digits = results.decimals(metric, dataset)
    means, stds = results.means(metric).loc[dataset], results.stds(metric).loc[dataset]
    best = best_of(means, metric.greater_is_better, digits)
    few = results.counts(metric).loc[dataset].between(0, results.n_splits, inclusive="neither")
    marks = {name: "*" if few[name] and not alone else "" for name in means.index}
    return [spread(means[name], stds[name], digits, name in best, mark) for name, mark in marks.items()]


def _incomplete(results: Results) -> str:
    few = results.summary.n.between(0, results.n_splits, inclusive="neither").any()
    return f"* mean over fewer than {results.n_splits} splits: the others failed or are still to come." if few else ""


def ranks_table(results: Results, ties: str = "average", digits: int = 2) -> Table:
    """Table 4: average ranks over data sets, and their mean over metrics; the lowest of each row in bold.

    Parameters
    ----------
    results : Results
    ties : {"average", "minimum"}
        What tied methods share.
    digits : int, default=2

    Returns
    -------
    Table
        One row per metric, and one for all of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, ranks_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> [[cell.text for cell in row] for row in ranks_table(results).rows]
    [['Hamming loss ↓', '2.00', '1.00'], ['Overall', '2.00', '1.00']]
    """
    ranks = rank_table(results, ties)
    names = {metric.name: heading(metric) for metric in results.metrics}
    rows = tuple(
        (word(names.get(name, name)), *(number(line[m], digits, m in best_of(line, False, digits)) for m in ranks))
        for name, line in ranks.iterrows()
    )
    frame = ranks.rename_axis("metric").reset_index().melt("metric", var_name="method", value_name="average_rank")
    title, titles = "Average ranks, 1 for the best", ("Metric", *results.methods)
    return Table("average-ranks", title, titles, rows, frame, n_foot=1, note=" ".join(_rank_notes(results)))


def _rank_notes(results: Results) -> Iterator[str]:
    found = [complete_part(results, metric) for metric in results.metrics]
    left_out = sorted({name for part in found for name in part.left_out})
    plain = {name for metric in results.metrics for name in results.without_probabilities(metric)}
    without = sorted({name for part in found for name in part.without} - plain)
    if left_out:
        yield f"Without {', '.join(left_out)}: not every method has a value there."
    if plain:
        yield f"No probabilities: {', '.join(sorted(plain))}. Overall is without the metrics that need them."
    if without:
        yield f"Not ranked: {', '.join(without)}, which has no value anywhere."
    if results.as_printed and any(part.values.nunique(axis=1).lt(part.values.shape[1]).any() for part in found):
        yield "Methods whose means look equal share their ranks."


def ablation_table(results: Results, first: str, second: str) -> Table:
    """Table 6: two methods side by side; by default what a term of the model is good for.

    Parameters
    ----------
    results : Results
    first, second : str
        Methods of the run.

    Returns
    -------
    Table
        As `results_table` gives it; the note counts who is better.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results
    >>> from rbrl.experiments.comparison_tables import ablation_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> ablation_table(results, "brl", "rbrl").note
    'rbrl is better in 1 of 1 lines, brl in 0.'
    """
    table = results_table(results.only([first, second]))
    wins = sum(row[3].best and not row[2].best for row in table.rows)
    losses = sum(row[2].best and not row[3].best for row in table.rows)
    note = f"{second} is better in {wins} of {len(table.rows)} lines, {first} in {losses}."
    return replace(table, name="ablation", title=f"{first} and {second}", note=note)


def time_table(results: Results) -> Table:
    """Table 7: mean seconds to train and to test, per run.

    Parameters
    ----------
    results : Results

    Returns
    -------
    Table
        One row per data set; the frame has the seconds to tune, too.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results
    >>> from rbrl.experiments.comparison_tables import time_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok", "train_seconds": [0.5, 2.0], "test_seconds": 0.01,
    ...                      "tune_seconds": 0.0})
    >>> [cell.text for cell in time_table(Results.from_rows(rows)).rows[0]]
    ['sea', '0.5', '0.01', '2', '0.01']
    """
    wide = {name: results.seconds(name) for name in ("train_seconds", "test_seconds", "tune_seconds")}
    # One row per (dataset, method), all data sets of a method together.
    axes = {"index": "dataset", "columns": "method"}
    times = pd.DataFrame({name: frame.rename_axis(**axes).unstack().swaplevel() for name, frame in wide.items()})
    shown = list(product(results.methods, ("train", "test")))
    rows = tuple(
        (word(name), *(seconds(wide[f"{kind}_seconds"].loc[name, method]) for method, kind in shown))
        for name in results.datasets
    )
    titles = ("Data set", *(f"{method} {kind}" for method, kind in shown))
    return Table("time", "Seconds to train and to test", titles, rows, times.reset_index(), note="Means over splits.")


def seconds_table(results: Results, column: str) -> Table:
    """Mean seconds per run of one kind, data sets x methods: half of Table 7.

    Parameters
    ----------
    results : Results
    column : {"tune_seconds", "train_seconds", "test_seconds"}

    Returns
    -------
    Table

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results
    >>> from rbrl.experiments.comparison_tables import seconds_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok", "train_seconds": [0.5, 2.0], "test_seconds": 0.01,
    ...                      "tune_seconds": 0.0})
    >>> [cell.text for cell in seconds_table(Results.from_rows(rows), "train_seconds").rows[0]]
    ['sea', '0.5', '2']
    """
    values = results.seconds(column)
    title = f"Seconds to {column.removesuffix('_seconds')}"
    rows = tuple((word(name), *map(seconds, values.loc[name])) for name in results.datasets)
    return Table(column.replace("_", "-"), title, ("Data set", *results.methods), rows, values.reset_index())


def parameters_table(results: Results) -> Table:
    """For every data set and method, the parameters chosen most often, and in how many splits.

    Parameters
    ----------
    results : Results

    Returns
    -------
    Table
        One row per data set and method.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results
    >>> from rbrl.experiments.comparison_tables import parameters_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> parameters_table(results).columns
    ('Data set', 'Method', 'Parameters chosen most often', 'Splits', 'Of')
    """
    runs, chosen = results.runs[results.runs.status == "ok"], []
    if "params" not in runs:
        runs = runs.assign(params="{}")
    for dataset, method in product(results.datasets, results.methods):
        counts = Counter(map(_spell, runs[(runs.dataset == dataset) & (runs.method == method)].params))
        if counts:
            chosen.append((dataset, method, *counts.most_common(1)[0], counts.total(), len(counts)))
    rows = tuple((*(word(text) for text in row[:3]), count(row[3]), count(row[4])) for row in chosen)
    titles = ("Data set", "Method", "Parameters chosen most often", "Splits", "Of")
    frame = pd.DataFrame(chosen, columns=["dataset", "method", "params", "n_chosen", "n_splits", "n_different"])
    return Table("parameters", "Parameters chosen", titles, rows, frame, n_keys=2)


def _spell(params: object) -> str:
    """Parameters for people: ``ridge = 0.1, nuclear = 10``; what is not JSON stays as it is."""
    if isinstance(params, str):
        try:
            params = json.loads(params)
        except ValueError:
            return str(params)
    if not isinstance(params, dict):
        return "default" if params is None or params != params else str(params)
    shown = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in params.items()}
    return ", ".join(f"{name} = {value}" for name, value in shown.items()) or "default"


def known_sizes(results: Results) -> dict[str, Card | Sizes | None]:
    """What is known of each data set of a run: from the file it came from, or from its card; None for nothing.

    Parameters
    ----------
    results : Results

    Returns
    -------
    dict of str to Card, Sizes or None
    """
    return {name: results.sizes.get(name) or CARDS.get(name) for name in results.datasets}


def datasets_table(known: Mapping[str, Card | Sizes | None]) -> Table:
    """Table 1: sizes of data sets; of some only the name is known.

    Parameters
    ----------
    known : mapping of str to Card, Sizes or None

    Returns
    -------
    Table

    Examples
    --------
    >>> from rbrl.datasets import CARDS
    >>> from rbrl.experiments import datasets_table
    >>> [cell.text for cell in datasets_table({"yeast": CARDS["yeast"]}).rows[0]]
    ['yeast', '2417', '103', '14', '4.237', '0.303', 'biology']
    """
    keys = Sizes._fields
    records: list[tuple[Any, ...]] = [
        (name, *(getattr(sizes, key, None) for key in keys)) for name, sizes in known.items()
    ]
    rows = tuple(
        (word(name), *map(count, counts), number(cardinality), number(density), word(domain or ""))
        for name, *counts, cardinality, density, domain in records
    )
    titles = ("Data set", "Samples", "Features", "Labels", "Labels per sample", "Density", "Domain")
    return Table("datasets", "Data sets", titles, rows, pd.DataFrame(records, columns=["dataset", *keys]))


def all_tables(results: Results, ablation: tuple[str, str] | None = None, ties: str = "average") -> dict[str, Table]:
    """The paper's tables that a run has, by name.

    Parameters
    ----------
    results : Results
    ablation : pair of str, optional
        Methods of Table 6. Default: BRL and RBRL, where the run has both.
    ties : {"average", "minimum"}
        What tied methods share in the table of ranks.

    Returns
    -------
    dict of str to Table

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, all_tables
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> list(all_tables(Results.from_rows(rows)))
    ['datasets', 'results', 'average-ranks', 'friedman', 'ablation', 'parameters', 'time']
    """
    tables = [datasets_table(known_sizes(results)), results_table(results), ranks_table(results, ties)]
    tables += [friedman_table(results), *(table for table in [pairs_table(results)] if table.rows)]
    named = {name.lower(): name for name in results.methods}
    if ablation is None and {"brl", "rbrl"} <= set(named):
        ablation = named["brl"], named["rbrl"]
    if ablation:
        tables.append(ablation_table(results, *ablation))
    if results.has_runs:
        tables += [parameters_table(results), time_table(results)]
    return {table.name: table for table in tables}
