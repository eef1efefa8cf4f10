"""The paper's tables, for any run."""

import json
from collections import Counter
from collections.abc import Mapping
from math import isinf

import pandas as pd

from rbrl.datasets import CARDS, Card
from rbrl.datasets import table as catalogue_table
from rbrl.report.comparison import ALPHA, ONE_DATA_SET, Comparison, compare, complete_part, rank_table
from rbrl.report.results import Results, Sizes, as_shown
from rbrl.report.table import DIGITS, MISSING, Cell, Table, count, number, seconds, spread, word
from rbrl.statistics import smallest_wilcoxon_p


def results_table(results: Results) -> Table:
    """Table 3: mean ± standard deviation of every metric, the best of each row in bold."""
    rows = []
    for dataset in results.datasets:
        for metric in results.metrics:
            rows.append(
                (word(dataset), word(f"{metric.abbreviation} {metric.arrow}"), *_line(results, metric, dataset))
            )
    return Table(
        "results",
        "Results, mean ± standard deviation",
        ("Data set", "Metric", *results.methods),
        tuple(rows),
        results.summary,
        n_keys=2,
        note=" ".join(filter(None, [legend(results), _incomplete(results)])),
    )


def legend(results: Results) -> str:
    """What the short names of the metrics stand for."""
    names = "; ".join(f"{metric.abbreviation}: {metric.title}" for metric in results.metrics)
    return f"{names}. ↓ lower is better, ↑ higher."


def metric_table(results: Results, metric) -> Table:
    """One metric of Table 3, data sets x methods."""
    rows = tuple((word(name), *_line(results, metric, name)) for name in results.datasets)
    frame = results.summary[results.summary.metric == metric.name]
    title = f"{metric.title} {metric.arrow}"
    return Table(metric.name, title, ("Data set", *results.methods), rows, frame, note=_incomplete(results))


def _line(results, metric, dataset) -> list[Cell]:
    digits = results.decimals(metric, dataset)
    means, stds = results.means(metric).loc[dataset], results.stds(metric).loc[dataset]
    counts = results.counts(metric).loc[dataset]
    best = best_of(means, metric.greater_is_better, digits)
    few = [0 < counts[name] < results.n_splits for name in means.index]
    return [
        spread(means[name], stds[name], digits, name in best, "*" if missing else "")
        for name, missing in zip(means.index, few)
    ]


def best_of(values: pd.Series, greater_is_better: bool, digits: int = DIGITS) -> set[str]:
    """Names of the best values as printed: those that look equal are all best."""
    shown = as_shown(values.dropna(), digits)
    if shown.empty:
        return set()
    return set(shown.index[shown == (shown.max() if greater_is_better else shown.min())])


def _incomplete(results):
    n = results.n_splits
    few = ((results.summary.n > 0) & (results.summary.n < n)).any()
    return f"* mean over fewer than {n} splits: the others failed or are still to come." if few else ""


def ranks_table(results: Results, ties: str = "average", digits: int = 2) -> Table:
    """Table 4: average ranks over data sets, and their mean over metrics; the lowest of each row in bold."""
    ranks = rank_table(results, ties)
    titles = {metric.name: f"{metric.title} {metric.arrow}" for metric in results.metrics}
    rows = tuple(
        (word(titles.get(name, name)), *(number(line[m], digits, m in best_of(line, False, digits)) for m in ranks))
        for name, line in ranks.iterrows()
    )
    frame = ranks.rename_axis("metric").reset_index().melt("metric", var_name="method", value_name="average_rank")
    return Table(
        "average-ranks",
        "Average ranks, 1 for the best",
        ("Metric", *results.methods),
        rows,
        frame,
        n_foot=1,
        note=_ranked_over(results),
    )


def _ranked_over(results):
    found = [complete_part(results, metric) for metric in results.metrics]
    left_out = sorted({name for part in found for name in part.left_out})
    without = sorted({name for part in found for name in part.without})
    notes = [f"Without {', '.join(left_out)}: not every method has a value there."] if left_out else []
    notes += [f"Not ranked: {', '.join(without)}, which has no value anywhere."] if without else []
    if results.as_printed and any(_has_ties(part.values) for part in found):
        notes.append("Methods whose means look equal share their ranks.")
    return " ".join(notes)


def _has_ties(values):
    return any(line.duplicated().any() for _, line in values.iterrows())


def friedman_table(results: Results, alpha: float = ALPHA) -> Table:
    """Table 5: Friedman's F_F with its critical value, and Nemenyi's critical distance."""
    found = [compare(results, metric, alpha) for metric in results.metrics]
    rows = tuple(_friedman_row(comparison) for comparison in found)
    frame = pd.DataFrame([friedman_record(comparison) for comparison in found])
    titles = ("Metric", "F_F", "Critical value", "p", "Critical distance", "Methods differ")
    level = [f"Level {alpha:g}."] if any(comparison.test for comparison in found) else []
    note = " ".join([*level, *_friedman_notes(found)])
    return Table("friedman", "Friedman's test and Nemenyi's critical distance", titles, rows, frame, note=note)


def friedman_record(comparison: Comparison) -> dict:
    """The test of one metric as a dict of figures."""
    test = comparison.test
    return {
        "metric": comparison.metric.name,
        "F_F": test.f if test else None,
        "critical_value": test.critical_value if test else None,
        "p_value": test.p_value if test else None,
        "critical_distance": comparison.distance,
        "n_methods": comparison.values.shape[1],
        "n_datasets": comparison.n_datasets,
        "p_from": test.distribution if test else None,
        "smallest_p_value": test.smallest_p_value if test else None,
        "decides_pairs": comparison.decides_pairs,
    }


def _friedman_row(comparison):
    test, metric = comparison.test, comparison.metric
    title = word(f"{metric.title} {metric.arrow}")
    if test is None:
        return title, *[number(None)] * 4, word(MISSING)
    statistic = Cell("∞", test.f) if isinf(test.f) else number(test.f, 4)
    critical = Cell("∞", test.critical_value) if isinf(test.critical_value) else number(test.critical_value, 4)
    distance = Cell(f"{comparison.distance:.3f}{'' if comparison.decides_pairs else '*'}", comparison.distance)
    return title, statistic, critical, Cell(p_text(test.p_value), test.p_value), distance, _answer(test)


def _answer(test):
    if not test.decidable:
        return word("too few data sets")
    return word("yes" if test.significant else "no")


P_FROM = {
    "exact": "is exact: all orders of the methods on every data set are counted.",
    "permutation": "is from 99,999 random orders of the methods on every data set.",
}


def _friedman_notes(found):
    """What a reader must know of the figures: where p is from, and what so few data sets cannot decide."""
    untested, tested = [c for c in found if c.test is None], [c for c in found if c.test is not None]
    for source, text in P_FROM.items():
        some = [c for c in tested if c.test.distribution == source]
        if some:
            yield f"p {text}" if len(some) == len(tested) else f"p of {_titles(some)} {text}"
    some = [c for c in tested if not c.test.decidable]
    if some:
        smallest = p_text(max(c.test.smallest_p_value for c in some))
        yield f"Too few data sets: p could not be less than {smallest} whatever the results."
    if any(not c.decides_pairs for c in tested):
        yield "* More than average ranks can differ by: no two methods can be told apart."
    if found and all(c.n_datasets == 1 and len(c.ranks) > 1 for c in found):
        yield f"Not tested. {ONE_DATA_SET}"
    elif untested:
        which = f"No test for {_titles(untested)}" if tested else "Nothing is tested"
        yield f"{which}: it needs two methods and two data sets on which all have a value."


def _titles(comparisons):
    return ", ".join(comparison.metric.title for comparison in comparisons)


def pairs_table(results: Results, alpha: float = ALPHA) -> Table:
    """The method that ranks first on each metric against every other; the frame has all pairs."""
    found = [compare(results, metric, alpha) for metric in results.metrics]
    frames = {comparison.metric: comparison.pairs() for comparison in found}
    rows = tuple(
        _pair_row(metric, pair)
        for comparison, (metric, frame) in zip(found, frames.items())
        for pair in frame[frame.method.isin(comparison.best)].itertuples()
    )
    counts, figures = ("Better", "Equal", "Worse"), ("Median difference", "Rank-biserial", "p, Holm")
    titles = ("Metric", "First", "Against", "Ranks apart", *counts, *figures)
    frame = pd.concat(frames.values(), ignore_index=True)
    note = " ".join(_pairs_notes(found, alpha))
    return Table("pairs", "First against the others, by data set", titles, rows, frame, n_keys=3, note=note)


def _pair_row(metric, pair):
    counts = (pair.wins, pair.ties, pair.losses)
    figures = ((pair.median_difference, DIGITS + 1), (pair.rank_biserial, 2))
    return (
        *(word(f"{metric.title} {metric.arrow}"), word(pair.method), word(pair.against), number(pair.ranks_apart, 2)),
        *(count(n) for n in counts),
        *(Cell(f"{value:+.{digits}f}".replace("-", "−"), value) for value, digits in figures),
        Cell(p_text(pair.p_holm), pair.p_holm),
    )


def _pairs_notes(found, alpha):
    tested = [comparison for comparison in found if comparison.test]
    if not tested:
        return
    n_datasets, n_methods = max(c.n_datasets for c in tested), max(len(c.ranks) for c in tested)
    yield "Median difference: positive where the first is better. Rank-biserial: from 1, better on every data set, to −1."
    n_pairs, smallest = n_methods * (n_methods - 1) // 2, smallest_wilcoxon_p(n_datasets, n_methods)
    end = ", so that it can tell no two methods apart" if smallest > alpha else ""
    yield f"p: Wilcoxon's signed-rank test with Holm's correction for all pairs, {n_pairs}."
    yield (
        f"On {n_datasets} data sets the test gives {p_text(smallest_wilcoxon_p(n_datasets))} at least, "
        f"corrected {p_text(smallest)}{end}."
    )


def p_text(p_value: float) -> str:
    """A p-value for people."""
    if p_value >= 0.001:
        return f"{p_value:.3f}"
    return f"{p_value:.0e}" if p_value >= 1e-16 else "<1e-16"


def ablation_table(results: Results, first: str, second: str) -> Table:
    """Table 6: two methods side by side; by default what a term of the model is good for."""
    both = results.only([first, second])
    table = results_table(both)
    wins = sum(row[3].best and not row[2].best for row in table.rows)
    losses = sum(row[2].best and not row[3].best for row in table.rows)
    note = f"{second} is better in {wins} of {len(table.rows)} lines, {first} in {losses}."
    return Table("ablation", f"{first} and {second}", table.columns, table.rows, both.summary, n_keys=2, note=note)


def time_table(results: Results) -> Table:
    """Table 7: mean seconds to train and to test, per run."""
    train, test = results.seconds("train_seconds"), results.seconds("test_seconds")
    titles = [title for name in results.methods for title in (f"{name} train", f"{name} test")]
    rows = tuple(
        (word(name), *(seconds(t.loc[name, m]) for m in results.methods for t in (train, test)))
        for name in results.datasets
    )
    pieces = [
        t.rename_axis("dataset")
        .melt(ignore_index=False, var_name="method", value_name=c)
        .set_index("method", append=True)
        for t, c in (
            (train, "train_seconds"),
            (test, "test_seconds"),
            (results.seconds("tune_seconds"), "tune_seconds"),
        )
    ]
    frame = pd.concat(pieces, axis=1).reset_index()
    return Table("time", "Seconds to train and to test", ("Data set", *titles), rows, frame, note="Means over splits.")


def seconds_table(results: Results, column: str) -> Table:
    """Mean seconds per run of one kind, data sets x methods: half of Table 7."""
    values = results.seconds(column)
    title = f"Seconds to {column.removesuffix('_seconds')}"
    rows = tuple((word(name), *(seconds(values.loc[name, m]) for m in results.methods)) for name in results.datasets)
    return Table(column.replace("_", "-"), title, ("Data set", *results.methods), rows, values.reset_index())


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


SIZES = ("n_samples", "n_features", "n_labels")


def known_sizes(results: Results) -> dict[str, Card | Sizes | None]:
    """What is known of each data set of a run: from the file it came from, or from its card; None for nothing."""
    return {name: results.sizes.get(name) or CARDS.get(name) for name in results.datasets}


def datasets_table(known: Mapping[str, Card | Sizes | None]) -> Table:
    """Table 1: sizes of data sets; of some only the name is known."""
    keys = [*SIZES, "cardinality", "density", "domain"]
    rows = tuple(
        (word(name), *((count(getattr(one, key)) for key in SIZES) if one else [number(None)] * 3), *_density(one))
        for name, one in known.items()
    )
    frame = pd.DataFrame(
        [{"dataset": name} | {key: getattr(one, key, None) for key in keys} for name, one in known.items()]
    )
    titles = ("Data set", "Samples", "Features", "Labels", "Labels per sample", "Density", "Domain")
    return Table("datasets", "Data sets", titles, rows, frame)


def _density(known):
    if known is None:
        return number(None), number(None), word("")
    return number(known.cardinality), number(known.density), word(known.domain)


def datasets_beside() -> Table:
    """Table 1: what the data say, with a note where the paper prints another figure."""
    frame = catalogue_table().reset_index()
    rows = tuple(
        (
            word(row.dataset),
            *(count(n) for n in (row.n_samples, row.n_features, row.n_labels)),
            *(number(row.cardinality), number(row.density), word(row.domain), word(row.model), word(row.note)),
        )
        for row in frame.itertuples()
    )
    titles = ("Data set", "Samples", "Features", "Labels", "Labels per sample", "Density", "Domain", "Model", "Note")
    return Table("table1", "Table 1: data sets", titles, rows, frame)


def all_tables(results: Results, ablation: tuple[str, str] | None = None, ties: str = "average") -> dict[str, Table]:
    """The paper's tables that a run has, by name.

    Parameters
    ----------
    results : Results
    ablation : pair of str, optional
        Methods of Table 6. Default: BRL and RBRL, where the run has both.
    ties : {"average", "minimum"}
        What tied methods share in the table of ranks.
    """
    tables = [
        datasets_table(known_sizes(results)),
        results_table(results),
        ranks_table(results, ties),
        friedman_table(results),
    ]
    pairs = pairs_table(results)
    tables += [pairs] if pairs.rows else []
    pair = ablation or _ablation_pair(results.methods)
    if pair:
        tables.append(ablation_table(results, *pair))
    if results.runs.shape[0]:
        tables += [parameters_table(results), time_table(results)]
    return {table.name: table for table in tables}


def _ablation_pair(methods):
    named = {name.lower(): name for name in methods}
    return (named["brl"], named["rbrl"]) if {"brl", "rbrl"} <= set(named) else None
