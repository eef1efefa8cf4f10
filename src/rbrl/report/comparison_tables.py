"""The paper's tables, for any run."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import isinf
from typing import Any

import pandas as pd

from rbrl.datasets import CARDS, Card
from rbrl.metrics import Metric
from rbrl.report.comparison import ALPHA, ONE_DATA_SET, Comparison, compare, complete_part, rank_table
from rbrl.report.results import Results, Sizes, best_of, heading
from rbrl.report.table import DIGITS, MISSING, Cell, Table, count, number, p_text, seconds, spread, word
from rbrl.statistics import FriedmanResult, smallest_wilcoxon_p


def results_table(results: Results) -> Table:
    """Table 3: mean ± standard deviation of every metric, the best of each row in bold.

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
    >>> from rbrl.report import Results, results_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> [cell.text for cell in results_table(results).rows[0]]
    ['sea', 'Hal ↓', '0.200 ± 0.000', '0.100 ± 0.000']
    """
    rows = tuple(
        (word(dataset), word(f"{metric.abbreviation} {metric.arrow}"), *metric_cells(results, metric, dataset))
        for dataset, metric in product(results.datasets, results.metrics)
    )
    title, titles = "Results, mean ± standard deviation", ("Data set", "Metric", *results.methods)
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
    >>> from rbrl.report import Results, metric_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> [cell.text for cell in metric_table(results, get_metric("hamming_loss")).rows[0]]
    ['sea', '0.200 ± 0.000', '0.100 ± 0.000']
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
        Whether the table is of this data set alone: it has no stars, and a single split has no deviation to show.

    Returns
    -------
    list of Cell
        In the order of `results.methods`.
    """
    digits = results.decimals(metric, dataset)
    means, stds = results.means(metric).loc[dataset], results.stds(metric).loc[dataset]
    best = best_of(means, metric.greater_is_better, digits)
    if alone and results.n_splits == 1:
        return [number(mean, digits, name in best) for name, mean in means.items()]
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
    >>> from rbrl.report import Results, ranks_table
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


def friedman_table(results: Results, alpha: float = ALPHA) -> Table:
    """Table 5: Friedman's F_F with its critical value, and Nemenyi's critical distance.

    Parameters
    ----------
    results : Results
    alpha : float, default=0.05
        Level of the tests.

    Returns
    -------
    Table
        One row per metric.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.report import Results, friedman_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> [cell.text for cell in friedman_table(results).rows[0]]  # one data set tells nothing
    ['Hamming loss ↓', '–', '–', '–', '–', '–']
    """
    found = [compare(results, metric, alpha) for metric in results.metrics]
    rows = tuple(_friedman_row(comparison) for comparison in found)
    frame = pd.DataFrame([_friedman_record(comparison) for comparison in found], columns=FRIEDMAN_COLUMNS)
    titles = ("Metric", "F_F", "Critical value", "p", "Critical distance", "Methods differ")
    note = " ".join(_friedman_notes(found, alpha))
    return Table("friedman", "Friedman's test and Nemenyi's critical distance", titles, rows, frame, note=note)


FRIEDMAN_COLUMNS = [
    "metric", "F_F", "critical_value", "p_value", "critical_distance", "n_methods", "n_datasets", "p_from",
    "smallest_p_value", "decides_pairs",
]  # fmt: skip


def _friedman_record(comparison: Comparison) -> tuple[Any, ...]:
    """The test of one metric as figures; None for those of a test that there is not."""
    names = ("f", "critical_value", "p_value", "distribution", "smallest_p_value")
    f, critical, p_value, source, smallest = (getattr(comparison.test, name, None) for name in names)
    sizes = comparison.values.shape[1], comparison.n_datasets
    figures = (f, critical, p_value, comparison.distance, *sizes, source, smallest)
    return (comparison.metric.name, *figures, comparison.decides_pairs)


def _friedman_row(comparison: Comparison) -> tuple[Cell, ...]:
    test, title = comparison.test, word(heading(comparison.metric))
    if test is None:
        return title, *[number(None)] * 4, word(MISSING)
    statistics = [Cell("∞", f) if isinf(f) else number(f, 4) for f in (test.f, test.critical_value)]
    distance = Cell(f"{comparison.distance:.3f}{'' if comparison.decides_pairs else '*'}", comparison.distance)
    answer = ("yes" if test.significant else "no") if test.decidable else "too few data sets"
    return title, *statistics, Cell(p_text(test.p_value), test.p_value), distance, word(answer)


P_FROM = {
    "exact": "is exact: all orders of the methods on every data set are counted.",
    "permutation": "is from 99,999 random orders of the methods on every data set.",
}


def _friedman_notes(found: list[Comparison], alpha: float) -> Iterator[str]:
    """What a reader must know of the figures: where p is from, and what so few data sets cannot decide."""
    tested: list[tuple[Comparison, FriedmanResult]] = [(c, c.test) for c in found if c.test is not None]
    if tested:
        yield f"Level {alpha:g}."
    for source, text in P_FROM.items():
        some = [comparison for comparison, test in tested if test.distribution == source]
        if some:
            yield f"p {text}" if len(some) == len(tested) else f"p of {_titles(some)} {text}"
    undecided = [test.smallest_p_value for _, test in tested if not test.decidable]
    if undecided:
        yield f"Too few data sets: p could not be less than {p_text(max(undecided))} whatever the results."
    if any(not comparison.decides_pairs for comparison, _ in tested):
        yield "* More than average ranks can differ by: no two methods can be told apart."
    if found and all(c.n_datasets == 1 and len(c.ranks) > 1 for c in found):
        yield f"Not tested. {ONE_DATA_SET}"
    elif len(tested) < len(found):
        untested = [comparison for comparison in found if comparison.test is None]
        which = f"No test for {_titles(untested)}" if tested else "Nothing is tested"
        yield f"{which}: it needs two methods and two data sets on which all have a value."


def _titles(comparisons: list[Comparison]) -> str:
    return ", ".join(comparison.metric.title for comparison in comparisons)


def pairs_table(results: Results, alpha: float = ALPHA) -> Table:
    """The method that ranks first on each metric against every other; the frame has all pairs.

    Parameters
    ----------
    results : Results
    alpha : float, default=0.05
        Level that the note speaks of.

    Returns
    -------
    Table
        Without rows where nothing is tested.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.report import Results, pairs_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> len(pairs_table(results).rows)  # one data set tells nothing
    0
    """
    found = [compare(results, metric, alpha) for metric in results.metrics]
    frames = [comparison.pairs() for comparison in found]
    rows = tuple(
        _pair_row(comparison.metric, pair)
        for comparison, frame in zip(found, frames)
        for pair in frame[frame.method.isin(comparison.best)].itertuples()
    )
    counts, figures = ("Better", "Equal", "Worse"), ("Median difference", "Rank-biserial", "p, Holm")
    titles = ("Metric", "First", "Against", "Ranks apart", *counts, *figures)
    frame, note = pd.concat(frames, ignore_index=True), " ".join(_pairs_notes(found, alpha))
    return Table("pairs", "First against the others, by data set", titles, rows, frame, n_keys=3, note=note)


def _pair_row(metric: Metric, pair: Any) -> tuple[Cell, ...]:
    figures = ((pair.median_difference, DIGITS + 1), (pair.rank_biserial, 2))
    return (
        *(word(heading(metric)), word(pair.method), word(pair.against), number(pair.ranks_apart, 2)),
        *(count(n) for n in (pair.wins, pair.ties, pair.losses)),
        *(Cell(f"{value:+.{digits}f}".replace("-", "−"), value) for value, digits in figures),
        Cell(p_text(pair.p_holm), pair.p_holm),
    )


def _pairs_notes(found: list[Comparison], alpha: float) -> Iterator[str]:
    tested = [comparison for comparison in found if comparison.test]
    if not tested:
        return
    n_datasets, n_methods = max(c.n_datasets for c in tested), max(len(c.ranks) for c in tested)
    yield "Median difference: positive where the first is better. Rank-biserial: from 1, better on every data set, to −1."
    n_pairs, smallest = n_methods * (n_methods - 1) // 2, smallest_wilcoxon_p(n_datasets, n_methods)
    yield f"p: Wilcoxon's signed-rank test with Holm's correction for all pairs, {n_pairs}."
    single = p_text(smallest_wilcoxon_p(n_datasets))
    end = ", so that it can tell no two methods apart" if smallest > alpha else ""
    yield f"On {n_datasets} data sets the test gives {single} at least, corrected {p_text(smallest)}{end}."


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
    >>> from rbrl.report import Results, ablation_table
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
    >>> from rbrl.report import Results, time_table
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
    >>> from rbrl.report import Results, seconds_table
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
    >>> from rbrl.report import Results, parameters_table
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
    >>> from rbrl.report import datasets_table
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
    >>> from rbrl.report import Results, all_tables
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
