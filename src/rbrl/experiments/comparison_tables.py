"""Tables of a comparison: the tables of the paper, for any run."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import isinf
from typing import Any

import pandas as pd

from rbrl.datasets import CARDS, Card
from rbrl.experiments.comparison import (
    ONE_DATASET_NOTE,
    TEST_LEVEL,
    Comparison,
    compare,
    rank_table,
    select_complete_part,
)
from rbrl.experiments.results import Results, Sizes
from rbrl.experiments.statistics import FriedmanResult, smallest_wilcoxon_p
from rbrl.experiments.tables import (
    MISSING,
    TABLE_DECIMALS,
    Cell,
    Table,
    best_of,
    count,
    heading,
    number,
    p_text,
    seconds,
    spread,
    word,
)
from rbrl.metrics import Metric


def results_table(results: Results) -> Table:
    """Return Table 3: mean ± standard deviation of every metric, one row per data set and metric."""
    rows = tuple(
        (word(dataset), word(f"{metric.abbreviation} {metric.arrow}"), *metric_cells(results, metric, dataset))
        for dataset, metric in product(results.datasets, results.metrics)
    )
    title = "Results on one split" if results.n_splits == 1 else "Results, mean ± standard deviation"
    titles = ("Data set", "Metric", *results.methods)
    note = " ".join(filter(None, [legend(results), _incomplete_note(results)]))
    return Table("results", title, titles, rows, results.summary, n_keys=2, note=note)


def legend(results: Results) -> str:
    """Return a note that explains the abbreviations of the metrics."""
    names = "; ".join(f"{metric.abbreviation}: {metric.title}" for metric in results.metrics)
    return f"{names}. ↓ lower is better, ↑ higher."


def metric_table(results: Results, metric: Metric) -> Table:
    """Return one metric of Table 3, data sets x methods."""
    rows = tuple((word(name), *metric_cells(results, metric, name)) for name in results.datasets)
    frame = results.summary[results.summary.metric == metric.name]
    titles = ("Data set", *results.methods)
    return Table(metric.name, heading(metric), titles, rows, frame, note=_incomplete_note(results))


def metric_cells(results: Results, metric: Metric, dataset: str, has_stars: bool = True) -> list[Cell]:
    """Return mean ± standard deviation of each method on one data set.

    If `has_stars`, a star marks a mean over fewer splits than planned.
    """
    digits = results.decimals(metric, dataset)
    means = results.means(metric).loc[dataset]
    stds = results.stds(metric).loc[dataset]
    best = best_of(means, metric.greater_is_better, digits)
    is_incomplete = results.counts(metric).loc[dataset].between(0, results.n_splits, inclusive="neither")
    return [
        spread(means[name], stds[name], digits, name in best, "*" if is_incomplete[name] and has_stars else "")
        for name in means.index
    ]


def _incomplete_note(results: Results) -> str:
    """Return the explanation of the star, or an empty text if no mean has one."""
    few = results.summary.n.between(0, results.n_splits, inclusive="neither").any()
    return f"* mean over fewer than {results.n_splits} splits: the others failed or are still to come." if few else ""


def ranks_table(results: Results, ties: str = "average") -> Table:
    """Return Table 4: average ranks over data sets, and their mean over metrics.

    Tied methods get the mean of their ranks, or the smallest of them if `ties` is "minimum".

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> [[cell.text for cell in row] for row in ranks_table(Results.from_rows(rows)).rows]
    [['Hamming loss ↓', '2.00', '1.00'], ['Overall', '2.00', '1.00']]
    """
    ranks = rank_table(results, ties)
    names = {metric.name: heading(metric) for metric in results.metrics}
    rows = tuple(
        (word(names.get(name, name)), *(number(line[m], 2, m in best_of(line, False, 2)) for m in ranks))
        for name, line in ranks.iterrows()
    )
    frame = ranks.rename_axis("metric").reset_index().melt("metric", var_name="method", value_name="average_rank")
    title = "Average ranks, 1 for the best"
    note = " ".join(_rank_notes(results))
    return Table("average-ranks", title, ("Metric", *results.methods), rows, frame, n_foot=1, note=note)


def _rank_notes(results: Results) -> Iterator[str]:
    """Yield sentences on data sets and methods that ranks leave out."""
    parts = [select_complete_part(results, metric) for metric in results.metrics]
    left_out = sorted({name for part in parts for name in part.left_out})
    no_probabilities = {name for metric in results.metrics for name in results.methods_without_probabilities(metric)}
    not_ranked = sorted({name for part in parts for name in part.without} - no_probabilities)
    if left_out:
        yield f"Data sets left out, because a method has no value there: {', '.join(left_out)}."
    if no_probabilities:
        names = ", ".join(sorted(no_probabilities))
        yield f"Overall leaves out the metrics of probabilities; methods without them: {names}."
    if not_ranked:
        yield f"Methods without any value, which are not ranked: {', '.join(not_ranked)}."
    if results.as_printed and any(part.values.nunique(axis=1).lt(part.values.shape[1]).any() for part in parts):
        yield "Methods whose means look equal share their ranks."


def ablation_table(results: Results, first: str, second: str) -> Table:
    """Return Table 6: the results of two methods side by side, with a note that counts the better ones."""
    table = results_table(results.only([first, second]))
    # A row has the data set, the metric, and the cells of the two methods.
    wins = sum(theirs.best and not ours.best for _, _, ours, theirs in table.rows)
    losses = sum(ours.best and not theirs.best for _, _, ours, theirs in table.rows)
    note = f"{second} is better in {wins} of {len(table.rows)} rows, {first} in {losses}."
    return replace(table, name="ablation", title=f"{first} and {second}", note=note)


def time_table(results: Results) -> Table:
    """Return Table 7: mean seconds to train and to test; its frame has the seconds to tune as well."""
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
    """Return the mean seconds per run, data sets x methods, of a column such as "train_seconds"."""
    values = results.seconds(column)
    title = f"Seconds to {column.removesuffix('_seconds')}"
    rows = tuple((word(name), *map(seconds, values.loc[name])) for name in results.datasets)
    return Table(column.replace("_", "-"), title, ("Data set", *results.methods), rows, values.reset_index())


def parameters_table(results: Results) -> Table:
    """Return the parameters that were chosen most often for each data set and method."""
    runs = results.runs[results.runs.status == "ok"]
    if "params" not in runs:
        runs = runs.assign(params="{}")
    chosen = []
    for dataset, method in product(results.datasets, results.methods):
        counts = Counter(map(_parameters_text, runs[(runs.dataset == dataset) & (runs.method == method)].params))
        if counts:
            chosen.append((dataset, method, *counts.most_common(1)[0], counts.total(), len(counts)))
    rows = tuple((*(word(text) for text in row[:3]), count(row[3]), count(row[4])) for row in chosen)
    titles = ("Data set", "Method", "Parameters chosen most often", "Chosen on", "Splits")
    frame = pd.DataFrame(chosen, columns=["dataset", "method", "params", "n_chosen", "n_splits", "n_different"])
    return Table("parameters", "Parameters chosen", titles, rows, frame, n_keys=2)


def _parameters_text(params: object) -> str:
    """Return parameters as ``ridge = 0.1, nuclear = 10``; text that is not JSON is not changed."""
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
    """Return the sizes of each data set, from its file or its card in the catalogue; None if unknown."""
    return {name: results.sizes.get(name) or CARDS.get(name) for name in results.datasets}


def datasets_table(known: Mapping[str, Card | Sizes | None]) -> Table:
    """Return Table 1: the sizes of data sets, by name; None if they are not known.

    Examples
    --------
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


DISTRIBUTION_NOTES = {
    "exact": "is exact: all orders of the methods on every data set are counted.",
    "permutation": "is from 99,999 random orders of the methods on every data set.",
}


def friedman_table(results: Results) -> Table:
    """Return Table 5: Friedman's F_F with its critical value, and Nemenyi's critical distance.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> [cell.text for cell in friedman_table(Results.from_rows(rows)).rows[0]]  # no test on one data set
    ['Hamming loss ↓', '–', '–', '–', '–', '–']
    """
    comparisons = [compare(results, metric) for metric in results.metrics]
    rows = tuple(_friedman_row(comparison) for comparison in comparisons)
    frame = pd.DataFrame([_friedman_record(comparison) for comparison in comparisons])
    titles = ("Metric", "F_F", "Critical value", "p", "Critical distance", "Methods differ")
    note = " ".join(_friedman_notes(comparisons))
    return Table("friedman", "Friedman's test and Nemenyi's critical distance", titles, rows, frame, note=note)


def _friedman_record(comparison: Comparison) -> dict[str, Any]:
    """Return the test of one metric as a row of the frame; None where there is no test."""
    test = comparison.test
    return {
        "metric": comparison.metric.name,
        "F_F": test and test.f,
        "critical_value": test and test.critical_value,
        "p_value": test and test.p_value,
        "critical_distance": comparison.distance,
        "n_methods": comparison.values.shape[1],
        "n_datasets": comparison.n_datasets,
        "p_from": test and test.distribution,
        "smallest_p_value": test and test.smallest_p_value,
        "decides_pairs": comparison.decides_pairs,
    }


def _friedman_row(comparison: Comparison) -> tuple[Cell, ...]:
    """Return the cells of one metric; dashes where there is no test."""
    test = comparison.test
    title = word(heading(comparison.metric))
    if test is None:
        return title, *[number(None)] * 4, word(MISSING)
    statistics = [Cell("∞", f) if isinf(f) else number(f, 4) for f in (test.f, test.critical_value)]
    distance = Cell(f"{comparison.distance:.3f}{'' if comparison.decides_pairs else '*'}", comparison.distance)
    answer = ("yes" if test.significant else "no") if test.decidable else "too few data sets"
    return title, *statistics, Cell(p_text(test.p_value), test.p_value), distance, word(answer)


def _friedman_notes(comparisons: list[Comparison]) -> Iterator[str]:
    """Yield notes on the source of the p-values and on tests that cannot decide."""
    tested: list[tuple[Comparison, FriedmanResult]] = [(c, c.test) for c in comparisons if c.test is not None]
    if tested:
        yield f"Level {TEST_LEVEL:g}."
    for source, text in DISTRIBUTION_NOTES.items():
        same = [comparison for comparison, test in tested if test.distribution == source]
        if same:
            yield f"p {text}" if len(same) == len(tested) else f"p of {_titles(same)} {text}"
    undecided = [test.smallest_p_value for _, test in tested if not test.decidable]
    if undecided:
        yield f"Too few data sets: p could not be less than {p_text(max(undecided))} whatever the results."
    if any(not comparison.decides_pairs for comparison, _ in tested):
        yield "* More than average ranks can differ by: no two methods can be told apart."
    if comparisons and all(c.n_datasets == 1 and len(c.ranks) > 1 for c in comparisons):
        yield f"Not tested. {ONE_DATASET_NOTE}"
    elif len(tested) < len(comparisons):
        untested = [comparison for comparison in comparisons if comparison.test is None]
        which = f"No test for {_titles(untested)}" if tested else "Nothing is tested"
        yield f"{which}: a test needs two methods, and two data sets on which all methods have a value."


def _titles(comparisons: list[Comparison]) -> str:
    """Return the titles of the metrics, separated by commas."""
    return ", ".join(comparison.metric.title for comparison in comparisons)


def pairs_table(results: Results) -> Table:
    """Return the best method of each metric against every other; the frame has all pairs.

    The table has no rows if there is no test.
    """
    comparisons = [compare(results, metric) for metric in results.metrics]
    frames = [comparison.pairs() for comparison in comparisons]
    rows = tuple(
        _pair_row(comparison.metric, pair)
        for comparison, frame in zip(comparisons, frames)
        for pair in frame[frame.method.isin(comparison.best)].itertuples()
    )
    titles = (
        "Metric", "First", "Against", "Ranks apart", "Better", "Equal", "Worse", "Median difference", "Rank-biserial",
        "p, Holm",
    )  # fmt: skip
    frame = pd.concat(frames, ignore_index=True)
    note = " ".join(_pairs_notes(comparisons))
    return Table("pairs", "First against the others, by data set", titles, rows, frame, n_keys=3, note=note)


def _pair_row(metric: Metric, pair: Any) -> tuple[Cell, ...]:
    """Return the cells of one pair of methods, a row of `Comparison.pairs`."""
    effects = ((pair.median_difference, TABLE_DECIMALS + 1), (pair.rank_biserial, 2))
    return (
        *(word(heading(metric)), word(pair.method), word(pair.against), number(pair.ranks_apart, 2)),
        *(count(n) for n in (pair.wins, pair.ties, pair.losses)),
        *(Cell(f"{value:+.{digits}f}".replace("-", "−"), value) for value, digits in effects),
        Cell(p_text(pair.p_holm), pair.p_holm),
    )


def _pairs_notes(comparisons: list[Comparison]) -> Iterator[str]:
    """Yield sentences that explain the effect sizes and the test of pairs."""
    tested = [comparison for comparison in comparisons if comparison.test]
    if not tested:
        return
    n_datasets = max(comparison.n_datasets for comparison in tested)
    n_methods = max(len(comparison.ranks) for comparison in tested)
    yield "Median difference: positive where the first is better. Rank-biserial: from 1, better on every data set, to −1."
    n_pairs = n_methods * (n_methods - 1) // 2
    yield f"p: Wilcoxon's signed-rank test with Holm's correction for all pairs, {n_pairs}."
    smallest = smallest_wilcoxon_p(n_datasets, n_methods)
    single = p_text(smallest_wilcoxon_p(n_datasets))
    end = ", so that it can tell no two methods apart" if smallest > TEST_LEVEL else ""
    yield f"On {n_datasets} data sets the test gives {single} at least, corrected {p_text(smallest)}{end}."


def all_tables(results: Results, ablation: tuple[str, str] | None = None) -> dict[str, Table]:
    """Return all tables of a run, by name.

    Parameters
    ----------
    results : Results
        Results of a run.
    ablation : pair of str, optional
        Methods of the ablation table, Table 6. By default BRL and RBRL, if the run has both.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, all_tables
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> list(all_tables(Results.from_rows(rows)))
    ['datasets', 'results', 'average-ranks', 'friedman', 'ablation', 'parameters', 'time']
    """
    tables = [datasets_table(known_sizes(results)), results_table(results), ranks_table(results)]
    tables += [friedman_table(results), *(table for table in [pairs_table(results)] if table.rows)]
    by_lower_name = {name.lower(): name for name in results.methods}
    if ablation is None and {"brl", "rbrl"} <= set(by_lower_name):
        ablation = by_lower_name["brl"], by_lower_name["rbrl"]
    if ablation:
        tables.append(ablation_table(results, *ablation))
    if results.has_runs:
        tables += [parameters_table(results), time_table(results)]
    return {table.name: table for table in tables}
