"""The paper's tables, for any run."""

import pandas as pd

from rbrl.report.comparison import Comparison, compare, complete_part, rank_table
from rbrl.report.results import Results
from rbrl.report.table import DIGITS, Cell, Table, number, seconds, spread, word


def results_table(results: Results, digits: int = DIGITS) -> Table:
    """Table 3: mean ± standard deviation of every metric, the best of each row in bold."""
    rows = []
    for dataset in results.datasets:
        for metric in results.metrics:
            rows.append(
                (word(dataset), word(f"{metric.abbreviation} {metric.arrow}"), *_line(results, metric, dataset, digits))
            )
    return Table(
        "results",
        "Results, mean ± standard deviation",
        ("Data set", "Metric", *results.methods),
        tuple(rows),
        results.summary,
        n_keys=2,
        note=_incomplete(results),
    )


def metric_table(results: Results, metric, digits: int = DIGITS) -> Table:
    """One metric of Table 3, data sets x methods."""
    rows = tuple((word(name), *_line(results, metric, name, digits)) for name in results.datasets)
    frame = results.summary[results.summary.metric == metric.name]
    title = f"{metric.title} {metric.arrow}"
    return Table(metric.name, title, ("Data set", *results.methods), rows, frame, note=_incomplete(results))


def _line(results, metric, dataset, digits) -> list[Cell]:
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
    shown = values.dropna().round(digits)
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
    return " ".join(notes)


def friedman_table(results: Results, alpha: float = 0.05) -> Table:
    """Table 5: Friedman's F_F with its critical value, and Nemenyi's critical distance."""
    found = [compare(results, metric, alpha) for metric in results.metrics]
    rows = tuple(_friedman_row(comparison) for comparison in found)
    frame = pd.DataFrame([friedman_record(comparison) for comparison in found])
    titles = ("Metric", "F_F", "Critical value", "p", "Critical distance", "Methods differ")
    untested = [c.metric.title for c in found if c.test is None]
    note = f"Level {alpha:g}."
    if untested:
        note += f" No test for {', '.join(untested)}: it needs two methods and two data sets on which all have a value."
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
    }


def _friedman_row(comparison):
    test, metric = comparison.test, comparison.metric
    title = word(f"{metric.title} {metric.arrow}")
    if test is None:
        return title, *[number(None)] * 4, word("not tested")
    p_value = Cell(p_text(test.p_value), test.p_value)
    return title, number(test.f, 4), number(test.critical_value, 4), p_value, number(comparison.distance), _answer(test)


def _answer(test):
    return word("yes" if test.significant else "no")


def p_text(p_value: float) -> str:
    """A p-value for people."""
    if p_value >= 0.001:
        return f"{p_value:.3f}"
    return f"{p_value:.0e}" if p_value >= 1e-16 else "<1e-16"


def ablation_table(results: Results, first: str, second: str, digits: int = DIGITS) -> Table:
    """Table 6: two methods side by side; by default what a term of the model is good for."""
    both = results.only([first, second])
    table = results_table(both, digits)
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
