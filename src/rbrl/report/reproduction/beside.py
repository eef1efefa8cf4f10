"""The paper's tables, cell by cell beside what we get."""

import pandas as pd

from rbrl.metrics import get_metric
from rbrl.report.comparison import rank_table
from rbrl.report.paper_tables import published, published_results
from rbrl.report.reproduction.names import key
from rbrl.report.results import Results
from rbrl.report.table import MISSING, Cell, Table, number, seconds, word
from rbrl.report.tables import friedman_table, ranks_table

OVERALL = "Overall"


def ranks_beside(results: Results | None = None) -> Table:
    """Table 4: average ranks, by default from the published Table 3; minimum ranks of ties, as the paper has them."""
    results = results or published_results()
    printed = published("average-ranks")
    printed["metric"] = [name if name == OVERALL else get_metric(name).name for name in printed.metric]
    ours = rank_table(results, ties="minimum")
    frame = ours.rename_axis("metric").reset_index().melt("metric", var_name="method", value_name="average_rank")
    frame = _with_printed(frame, printed, ["metric", "method"], "average_rank")
    table = ranks_table(results, ties="minimum")
    agree = (frame.average_rank - frame.printed).abs() <= 0.005
    note = f"{agree.sum()} of {frame.printed.notna().sum()} figures are those that the paper prints."
    return Table("table4", "Table 4: average ranks", table.columns, table.rows, frame, n_foot=1, note=note)


def friedman_beside(results: Results | None = None) -> Table:
    """Table 5: Friedman's F_F beside the printed one, by default from the published Table 3."""
    results = results or published_results()
    printed = published("friedman").rename(columns={"F_F": "printed"})
    printed["metric"] = [get_metric(name).name for name in printed.metric]
    table = friedman_table(results)
    frame = table.frame.merge(printed[["metric", "printed"]], on="metric", how="left")
    values = frame.set_index("metric").printed
    names = [metric.name for metric in results.metrics]
    rows = tuple((*row[:2], number(values[name], 4), *row[2:]) for name, row in zip(names, table.rows))
    titles = ("Metric", "F_F", "Printed", *table.columns[2:])
    return Table("table5", "Table 5: Friedman's test", titles, rows, frame, note=table.note)


def results_beside(results: Results | None, name: str = "results") -> Table:
    """Table 3 or 6 (``name="ablation"``): means of a run beside the printed ones; without a run, the printed ones."""
    number_ = {"results": 3, "ablation": 6}[name]
    printed = published(name)
    printed["metric"] = [get_metric(metric).name for metric in printed.metric]
    printed = printed.rename(columns={"mean": "printed", "std": "printed_std"})
    frame = _beside(printed, results.summary if results else None)
    rows = tuple(_result_row(row) for row in frame.itertuples())
    titles = ("Data set", "Metric", "Method", "Printed", "Here", "Difference")
    return Table(f"table{number_}", f"Table {number_}: results", titles, rows, frame, n_keys=3, note=_agreement(frame))


def _beside(printed, ours):
    keys = ["dataset", "metric", "method"]
    if ours is None:
        return printed.assign(mean=float("nan"), std=float("nan"))
    ours = ours.assign(key=ours.method.map(key))[["dataset", "metric", "key", "mean", "std"]]
    merged = printed.assign(key=printed.method.map(key)).merge(ours, on=["dataset", "metric", "key"], how="left")
    return merged.drop(columns="key")[[*keys, "printed", "printed_std", "mean", "std"]]


def _result_row(row):
    metric = get_metric(row.metric)
    here = Cell(f"{row.mean:.3f} ± {row.std:.3f}", row.mean) if row.mean == row.mean else Cell(MISSING)
    away = row.mean - row.printed
    difference = Cell(f"{away:+.3f}", away) if away == away else Cell(MISSING)
    printed = Cell(f"{row.printed:.3f} ± {row.printed_std:.3f}", row.printed)
    return word(row.dataset), word(f"{metric.abbreviation} {metric.arrow}"), word(row.method), printed, here, difference


def _agreement(frame):
    known = frame.dropna(subset=["mean"])
    if known.empty:
        return ""
    near = ((known["mean"] - known.printed).abs() <= 2 * known.printed_std.clip(lower=0.001)).sum()
    return f"{near} of {len(known)} figures lie within two printed standard deviations of the printed mean."


def time_beside(results: Results | None) -> Table:
    """Table 7: seconds to train and test beside the printed ones, which are another machine's."""
    frame = published("time").rename(columns={"train_seconds": "printed_train", "test_seconds": "printed_test"})
    here = {name: results.seconds(f"{name}_seconds") if results else pd.DataFrame() for name in ("train", "test")}
    for name, values in here.items():
        known = {(d, key(m)): values.loc[d, m] for d in values.index for m in values}
        frame[f"{name}_seconds"] = [known.get((d, key(m)), float("nan")) for d, m in zip(frame.dataset, frame.method)]
    columns = ["printed_train", "train_seconds", "printed_test", "test_seconds"]
    rows = tuple(
        (word(row.dataset), word(row.method), *(seconds(getattr(row, column)) for column in columns))
        for row in frame.itertuples()
    )
    titles = ("Data set", "Method", "Train, printed", "Train, here", "Test, printed", "Test, here")
    note = "Printed: one laptop with four cores of 2.5 GHz; Matlab, C++ and Java."
    return Table("table7", "Table 7: seconds", titles, rows, frame, n_keys=2, note=note)


def _with_printed(frame, printed, keys, column):
    printed = printed.rename(columns={column: "printed"})
    printed["key"], frame = printed.method.map(key), frame.assign(key=frame.method.map(key))
    merged = frame.merge(printed.drop(columns="method"), on=["metric", "key"], how="left")
    return merged[[*keys, column, "printed"]]
