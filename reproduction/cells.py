"""The paper's results beside ours, cell by cell."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import spearmanr, wilcoxon

from rbrl.metrics import PAPER_METRICS, get_metric
from rbrl.report.comparison import rank_table
from rbrl.report.results import Results
from rbrl.report.table import MISSING, Cell, Table, count, number, seconds, word
from rbrl.report.tables import best_of, friedman_table, p_text, ranks_table
from reproduction.paper import ABLATION, OURS, key, paper_methods, published, published_results

ROUNDING, LEAST_STD = 0.0005, 0.001
NEAR, FAR = 2.0, 3.0
MARKS = {"near": "", "within": " ~", "better": " ▲", "worse": " ▼"}
LEGEND = (
    "Ours (the paper's) and the distance in the paper's standard deviations, + better than the paper, − worse, 0 within "
    "its rounding; ~ between 2 and 3, ▲ and ▼ farther than 3, better and worse."
)


def cells(results: Results) -> pd.DataFrame:
    """Compare means with the published ones.

    Parameters
    ----------
    results : Results
        With the paper's names; see `as_published`.

    Returns
    -------
    DataFrame
        One row per published cell: dataset, metric, method, printed, printed_std, mean, std, n, distance, kind. The
        distance is (|mean - printed| - 0.0005) / max(printed_std, 0.001), at least 0, and positive where our mean is
        the better one; kind is "near" (within 2), "within" (3), "better" or "worse" (farther), or "missing".
    """
    printed = published("results").rename(columns={"mean": "printed", "std": "printed_std"})
    printed["metric"] = [get_metric(name).name for name in printed.metric]
    ours = results.summary[["dataset", "metric", "method", "mean", "std", "n"]]
    frame = printed.merge(ours, on=["dataset", "metric", "method"], how="left")
    frame["distance"] = distance(frame["mean"], frame.printed, frame.printed_std, _directions(frame.metric))
    frame["kind"] = [kind(value) for value in frame.distance]
    return frame


def distance(mean, printed, std, direction):
    """Signed distance between means, in standard deviations; `direction` is +1 where greater is better, else -1.

    Examples
    --------
    >>> distance(0.185, 0.181, 0.012, -1).round(3).item()
    -0.292
    """
    away = np.asarray(mean) - np.asarray(printed)
    size = np.maximum(np.abs(away) - ROUNDING, 0.0) / np.maximum(std, LEAST_STD)
    return np.sign(away) * direction * size


def kind(value: float) -> str:
    """In which class of distances a cell falls."""
    if np.isnan(value):
        return "missing"
    if abs(value) <= NEAR:
        return "near"
    if abs(value) <= FAR:
        return "within"
    return "better" if value > 0 else "worse"


def _directions(names):
    return np.array([1 if get_metric(name).greater_is_better else -1 for name in names])


def cell_tables(frame: pd.DataFrame) -> list[Table]:
    """For each method a table, data sets x metrics, of a frame that `cells` gave."""
    known = frame[frame.kind != "missing"]
    methods = [name for name in paper_methods() if name in set(known.method)]
    n_splits = int(known.n.max()) if len(known) else 0
    return [_cell_table(known[known.method == name], name, n_splits) for name in methods]


def _cell_table(part, method, n_splits):
    rows = []
    for dataset, line in part.groupby("dataset", sort=False):
        by_metric = line.set_index("metric")
        rows.append((word(dataset), *(_cell(by_metric, metric.name, n_splits) for metric in PAPER_METRICS)))
    titles = ("Data set", *(f"{metric.abbreviation} {metric.arrow}" for metric in PAPER_METRICS))
    note = f"* mean over fewer than {n_splits} splits." if (part.n < n_splits).any() else ""
    return Table(f"table3-{key(method)}", method, titles, tuple(rows), part, note=note)


def _cell(line, metric, n_splits):
    if metric not in line.index:
        return Cell(MISSING)
    found = line.loc[metric]
    few = found.n < n_splits
    return Cell(
        f"{found['mean']:.3f}{'*' if few else ''} ({found.printed:.3f}) {signed(found.distance)}{MARKS[found.kind]}",
        float(found.distance),
    )


def signed(value: float) -> str:
    """A distance with its sign, and a true minus.

    Examples
    --------
    >>> signed(-0.25), signed(0.0), signed(2)
    ('−0.2', '0', '+2.0')
    """
    return "0" if abs(value) < 0.05 else f"{value:+.1f}".replace("-", "−")


def count_table(frame: pd.DataFrame) -> Table:
    """How many cells of each method are near the paper's."""
    known = frame[frame.kind != "missing"]
    parts = [(name, known[known.method == name]) for name in paper_methods() if name in set(known.method)]
    found = [*(counts(name, part) for name, part in parts), counts("All", known)]
    rows = tuple((word(one["method"]), *(count(one[c]) for c in COUNTS), number(one["median"], 1)) for one in found)
    titles = ("Method", *COUNTS.values(), "Median")
    return Table("table3-counts", "Cells by distance from the paper's", titles, rows, pd.DataFrame(found), n_foot=1)


COUNTS = {
    "cells": "Cells",
    "near": "Within 2",
    "within": "Within 3",
    "better": "Farther, better",
    "worse": "Farther, worse",
    "good": "Within 2 or better",
}


def counts(name: str, part: pd.DataFrame) -> dict:
    """How many cells of a frame that `cells` gave lie within which distance."""
    kinds = part.kind.value_counts()
    near, within = int(kinds.get("near", 0)), int(kinds.get("within", 0))
    return {
        "method": name,
        "cells": len(part),
        "near": near,
        "within": near + within,
        "better": int(kinds.get("better", 0)),
        "worse": int(kinds.get("worse", 0)),
        "good": int((part.distance >= -NEAR).sum()),
        "median": float(part.distance.abs().median()) if len(part) else float("nan"),
    }


@dataclass(frozen=True)
class Agreement:
    """How near all of Table 3 is to the paper's.

    Attributes
    ----------
    ours_good, ours_cells : int
        Cells of RBRL within a distance of 2 or better than the paper, and all that there are.
    within, cells : int
        Cells of any method within a distance of 3, and all that there are.
    spearman : float
        Rank correlation between our and the paper's overall average ranks; NaN below three methods.
    """

    ours_good: int
    ours_cells: int
    within: int
    cells: int
    spearman: float

    def sentences(self) -> list[str]:
        """For people."""
        lines = [f"All methods: {self.within} of {self.cells} cells within a distance of 3."]
        if self.ours_cells:
            good = f"{self.ours_good} of {self.ours_cells} cells within a distance of 2, or better than the paper"
            lines.insert(0, f"{OURS}: {good}.")
        if not np.isnan(self.spearman):
            lines.append(
                f"Spearman correlation of the overall average ranks, ours and the paper's: {self.spearman:.3f}."
            )
        return lines


def agreement(results: Results, frame: pd.DataFrame) -> Agreement:
    """Sum up what `cells` found."""
    known = frame[frame.kind != "missing"]
    ours = known[known.method == OURS]
    good, within = (ours.distance >= -NEAR).sum(), known.kind.isin(["near", "within"]).sum()
    return Agreement(int(good), len(ours), int(within), len(known), rank_correlation(results))


def rank_correlation(results: Results) -> float:
    """Spearman correlation between overall average ranks and the paper's of the same methods on the same data sets."""
    printed = published("results")
    same = printed.method.isin(results.methods) & printed.dataset.isin(results.datasets)
    ours = rank_table(results, ties="minimum").loc["Overall"].dropna()
    if len(ours) < 3:
        return float("nan")
    paper = rank_table(Results.from_summary(printed[same]), ties="minimum").loc["Overall"]
    return float(spearmanr(ours, paper.reindex(ours.index)).statistic)


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


PAIR = (ABLATION, OURS)


def ablation_beside(results: Results) -> Table:
    """BRL and RBRL, ours and the printed figures where there are any; the better of each pair in bold."""
    printed = published("ablation")
    printed["metric"] = [get_metric(name).name for name in printed.metric]
    known = printed.set_index(["dataset", "metric", "method"])["mean"]
    rows, records = [], []
    for dataset in results.datasets:
        for metric in results.metrics:
            ours = results.means(metric).loc[dataset].reindex(list(PAIR))
            paper = pd.Series({name: known.get((dataset, metric.name, name)) for name in PAIR}, dtype=float)
            cells = [*_pair(ours, metric), *_pair(paper, metric)]
            rows.append((word(dataset), word(f"{metric.abbreviation} {metric.arrow}"), *cells))
            records.append(
                {"dataset": dataset, "metric": metric.name}
                | {f"{name}": ours[name] for name in PAIR}
                | {f"{name}_printed": paper[name] for name in PAIR}
            )
    titles = ("Data set", "Metric", *PAIR, *(f"{name}, the paper" for name in PAIR))
    return Table("table6", "Table 6: BRL and RBRL", titles, tuple(rows), pd.DataFrame(records), n_keys=2)


def _pair(values, metric):
    best = best_of(values, metric.greater_is_better)
    return [Cell(MISSING) if values[name] != values[name] else number(values[name], 3, name in best) for name in PAIR]


def ablation_summary(results: Results) -> Table:
    """By metric: on how many data sets RBRL is better, by how much on average, and how likely that is by chance."""
    rows, records = [], []
    for metric in results.metrics:
        values = results.means(metric).reindex(columns=list(PAIR)).dropna()
        sign = 1 if metric.greater_is_better else -1
        gain = sign * (values[OURS] - values[ABLATION])
        p_value = wilcoxon(gain).pvalue if len(gain) > 1 and gain.any() else float("nan")
        wins = int((gain > 0).sum())
        title = word(f"{metric.title} {metric.arrow}")
        shown = Cell(p_text(p_value), p_value) if p_value == p_value else Cell(MISSING)
        gained = Cell(f"{gain.mean():+.4f}".replace("-", "−"), gain.mean()) if len(gain) else Cell(MISSING)
        rows.append((title, Cell(f"{wins} of {len(gain)}", wins), gained, shown))
        records.append(
            {"metric": metric.name, "wins": wins, "n_datasets": len(gain), "gain": gain.mean(), "p_value": p_value}
        )
    titles = ("Metric", f"{OURS} better on", "Mean gain", "p")
    note = "Mean gain in the metric's good direction; p by Wilcoxon's signed-rank test over data sets, not corrected."
    return Table(
        "table6-summary", "What the ranking term changes", titles, tuple(rows), pd.DataFrame(records), note=note
    )
