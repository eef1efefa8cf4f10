"""Compare the paper's results with ours, cell by cell."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import spearmanr, wilcoxon

from rbrl import datasets
from rbrl.experiments import Results, friedman_table, rank_table, ranks_table
from rbrl.experiments.tables import MISSING, Cell, Table, best_of, count, heading, number, p_text, seconds, spread, word
from rbrl.metrics import PAPER_METRICS, Metric, get_metric
from studies.reproduction.paper import (
    ABLATION,
    OURS,
    OVERALL,
    key,
    paper_methods,
    printed,
    published,
    published_results,
)

# The paper prints three digits, and standard deviations of 0.000 where they are smaller than this.
ROUNDING, LEAST_STD = 0.0005, 0.001
NEAR, FAR = 2.0, 3.0
MARKS = {"near": "", "within": " ~", "better": " ▲", "worse": " ▼"}
LEGEND = (
    "Ours (the paper's) and the distance in the paper's standard deviations, + better than the paper, − worse, 0 within "
    "its rounding; ~ between 2 and 3, ▲ and ▼ farther than 3, better and worse."
)
COUNTS = {
    "cells": "Cells",
    "near": "Within 2",
    "within": "Within 3",
    "better": "Farther, better",
    "worse": "Farther, worse",
    "good": "Within 2 or better",
}
CELL = ["dataset", "metric", "method"]
PAIR = [ABLATION, OURS]


def short_title(metric: Metric) -> str:
    """Return the abbreviation of a metric, with an arrow to its good direction."""
    return f"{metric.abbreviation} {metric.arrow}"


def cells(results: Results) -> pd.DataFrame:
    """Compare means with the published ones.

    Parameters
    ----------
    results : Results
        Results with the paper's names; see `studies.reproduction.paper.as_published`.

    Returns
    -------
    DataFrame
        One row per published cell: dataset, metric, method, printed, printed_std, mean, std, n, distance, kind. The
        distance is (|mean - printed| - 0.0005) / max(printed_std, 0.001), at least 0, and positive where our mean is
        the better one; kind is "near" (within 2), "within" (3), "better" or "worse" (farther), or "missing".

    Examples
    --------
    >>> cells(published_results()).kind.value_counts().to_dict()
    {'near': 540}
    """
    frame = printed("results", mean="printed", std="printed_std")
    frame = frame.merge(results.summary[[*CELL, "mean", "std", "n"]], on=CELL, how="left")
    directions = np.array([1 if get_metric(name).greater_is_better else -1 for name in frame.metric])
    frame["distance"] = distance(frame["mean"], frame.printed, frame.printed_std, directions)
    frame["kind"] = [kind(value) for value in frame.distance]
    return frame


def distance(mean: ArrayLike, printed: ArrayLike, std: ArrayLike, direction: ArrayLike) -> NDArray[np.floating[Any]]:
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
    """Return the class of a distance."""
    if np.isnan(value):
        return "missing"
    if abs(value) <= FAR:
        return "near" if abs(value) <= NEAR else "within"
    return "better" if value > 0 else "worse"


def signed(value: float) -> str:
    """Format a distance with its sign and a true minus.

    Examples
    --------
    >>> signed(-0.25), signed(0.0), signed(2)
    ('−0.2', '0', '+2.0')
    """
    return "0" if abs(value) < 0.05 else f"{value:+.1f}".replace("-", "−")


def _by_method(frame: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    """Yield the known cells of each method, in the paper's order."""
    known = frame[frame.kind != "missing"]
    return ((name, known[known.method == name]) for name in paper_methods() if name in set(known.method))


def cell_tables(frame: pd.DataFrame) -> list[Table]:
    """Return a table for each method, data sets x metrics, from a frame of `cells`."""
    n_splits = int(frame.n.max()) if frame.n.notna().any() else 0
    return [_cell_table(part, name, n_splits) for name, part in _by_method(frame)]


def _cell_table(part: pd.DataFrame, method: str, n_splits: int) -> Table:
    rows = []
    for dataset, line in part.groupby("dataset", sort=False):
        by_metric = line.set_index("metric")
        rows.append((word(dataset), *(_cell(by_metric, metric.name, n_splits) for metric in PAPER_METRICS)))
    titles = ("Data set", *map(short_title, PAPER_METRICS))
    note = f"* mean over fewer than {n_splits} splits." if (part.n < n_splits).any() else ""
    return Table(f"table3-{key(method)}", method, titles, tuple(rows), part, note=note)


def _cell(line: pd.DataFrame, metric: str, n_splits: int) -> Cell:
    if metric not in line.index:
        return Cell(MISSING)
    found = line.loc[metric]
    mean = f"{found['mean']:.3f}{'*' if found.n < n_splits else ''}"
    text = f"{mean} ({found.printed:.3f}) {signed(found.distance)}{MARKS[found.kind]}"
    return Cell(text, float(found.distance))


def count_table(frame: pd.DataFrame) -> Table:
    """How many cells of each method are near the paper's."""
    found = [counts(name, part) for name, part in [*_by_method(frame), ("All", frame[frame.kind != "missing"])]]
    rows = tuple((word(one["method"]), *(count(one[c]) for c in COUNTS), number(one["median"], 1)) for one in found)
    titles = ("Method", *COUNTS.values(), "Median")
    return Table("table3-counts", "Cells by distance from the paper's", titles, rows, pd.DataFrame(found), n_foot=1)


def counts(name: str, part: pd.DataFrame) -> dict[str, Any]:
    """How many cells of a frame that `cells` gave lie within which distance."""
    kinds = {one: int((part.kind == one).sum()) for one in MARKS}
    return {
        "method": name,
        "cells": len(part),
        **kinds,
        "within": kinds["near"] + kinds["within"],
        "good": int((part.distance >= -NEAR).sum()),
        "median": float(part.distance.abs().median()) if len(part) else float("nan"),
    }


# Splits behind a printed mean. The two means are of different random splits of the same rows.
PRINTED_SPLITS = 10
YARDSTICKS = {
    "sd2": "Within 2 sd",
    "sd2_or_better": "Within 2 sd, or better",
    "sd3": "Within 3 sd",
    "se2": "Within 2 SE",
}


def yardsticks(part: pd.DataFrame) -> dict[str, int]:
    """How many cells of a frame that `cells` gave are near the printed ones, by standard deviations and by errors.

    Two means over n and 10 random splits of the same rows differ by chance with the standard error
    sd * sqrt(1 / n + 1 / 10): two standard deviations between splits are 4.5 of them, where n is 10.
    """
    errors = part.distance.abs() / np.sqrt(1 / part.n + 1 / PRINTED_SPLITS)
    near = {"sd2": part.distance.abs() <= NEAR, "sd2_or_better": part.distance >= -NEAR}
    near |= {"sd3": part.distance.abs() <= FAR, "se2": errors <= NEAR}
    return {name: int(found.sum()) for name, found in near.items()}


def yardstick_table(frame: pd.DataFrame, chosen_on: Sequence[str]) -> Table:
    """RBRL's cells and all cells by both yardsticks, on all data sets and without those that a choice was made on."""
    known, records, rows = frame[frame.kind != "missing"], [], []
    apart = {"all data sets": known, f"without {' and '.join(chosen_on)}": known[~known.dataset.isin(chosen_on)]}
    for (where, part), name in product(apart.items(), (OURS, "all methods")):
        own = part if name != OURS else part[part.method == OURS]
        found = yardsticks(own)
        records.append({"method": name, "where": where, "cells": len(own), **found})
        rows.append((word(name), word(where), count(len(own)), *(count(found[one]) for one in YARDSTICKS)))
    titles = ("", "Data sets", "Cells", *YARDSTICKS.values())
    note = (
        "sd: the paper's standard deviation over its ten splits. SE: the standard error of the difference of two means of "
        "ten splits, 0.45 sd. Both after the paper's rounding, with an sd of at least 0.001."
    )
    return Table("yardsticks", "Cells near the paper's", titles, tuple(rows), pd.DataFrame(records), note=note)


@dataclass(frozen=True)
class Agreement:
    """Agreement of the whole of Table 3 with the paper's.

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
        """Return the sentences that state it."""
        lines = [f"All methods: {self.within} of {self.cells} cells within a distance of 3."]
        if self.ours_cells:
            good = f"{self.ours_good} of {self.ours_cells} cells within a distance of 2, or better than the paper"
            lines.insert(0, f"{OURS}: {good}.")
        if not np.isnan(self.spearman):
            what = "Spearman correlation of the overall average ranks, ours and the paper's"
            lines.append(f"{what}: {self.spearman:.3f}.")
        return lines


def agreement(results: Results, frame: pd.DataFrame) -> Agreement:
    """Sum up what `cells` found."""
    known = frame[frame.kind != "missing"]
    ours, every = counts(OURS, known[known.method == OURS]), counts("All", known)
    return Agreement(ours["good"], ours["cells"], every["within"], every["cells"], rank_correlation(results))


def rank_correlation(results: Results) -> float:
    """Spearman correlation between overall average ranks and the paper's of the same methods on the same data sets."""
    table = published("results")
    same = table.method.isin(results.methods) & table.dataset.isin(results.datasets)
    ours = rank_table(results, ties="minimum").loc[OVERALL].dropna()
    if len(ours) < 3:
        return float("nan")
    paper = rank_table(Results.from_summary(table[same]), ties="minimum").loc[OVERALL]
    return float(spearmanr(ours, paper.reindex(ours.index)).statistic)


def datasets_beside() -> Table:
    """Table 1: sizes of the data, with a note where the paper prints another figure."""
    frame = datasets.table().reset_index()
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


def published_table(number: int) -> Table:
    """Table 3 or 6 as printed."""
    frame = printed({3: "results", 6: "ablation"}[number], mean="printed", std="printed_std")
    frame = frame.assign(mean=float("nan"), std=float("nan"))
    rows = tuple(
        (
            *(word(row.dataset), word(short_title(get_metric(row.metric))), word(row.method)),
            *(spread(row.printed, row.printed_std), Cell(MISSING), Cell(MISSING)),
        )
        for row in frame.itertuples()
    )
    titles = ("Data set", "Metric", "Method", "Printed", "Here", "Difference")
    return Table(f"table{number}", f"Table {number}: results", titles, rows, frame, n_keys=3)


def ranks_beside() -> Table:
    """Table 4: average ranks from the published Table 3; minimum ranks of ties, as the paper has them."""
    table = ranks_table(published_results(), ties="minimum")
    frame = table.frame.merge(printed("average-ranks", average_rank="printed"), on=["metric", "method"], how="left")
    agree = (frame.average_rank - frame.printed).abs() <= 0.005
    note = f"{agree.sum()} of {frame.printed.notna().sum()} figures are those that the paper prints."
    return Table("table4", "Table 4: average ranks", table.columns, table.rows, frame, n_foot=1, note=note)


def friedman_beside(results: Results | None = None) -> Table:
    """Table 5: Friedman's F_F beside the printed one, by default from the published Table 3.

    Examples
    --------
    >>> friedman_beside().frame[["F_F", "printed"]].round(4).iloc[1].tolist()
    [31.7855, 31.7885]
    """
    results = results or published_results()
    table, there = friedman_table(results), printed("friedman", F_F="printed")[["metric", "printed"]]
    frame = table.frame.merge(there, on="metric", how="left")
    rows = tuple((*row[:2], number(value, 4), *row[2:]) for row, value in zip(table.rows, frame.printed))
    titles = ("Metric", "F_F", "Printed", *table.columns[2:])
    return Table("table5", "Table 5: Friedman's test", titles, rows, frame, note=table.note)


def ablation_beside(results: Results) -> Table:
    """Table 6: BRL and RBRL, ours and the printed figures where there are any; the better of each pair in bold."""
    known = printed("ablation").set_index(CELL)["mean"]
    rows, found = [], []
    for dataset in results.datasets:
        for metric in results.metrics:
            ours = results.means(metric).loc[dataset].reindex(PAIR)
            paper = pd.Series({name: known.get((dataset, metric.name, name)) for name in PAIR}, dtype=float)
            rows.append((word(dataset), word(short_title(metric)), *_pair(ours, metric), *_pair(paper, metric)))
            found.append({"dataset": dataset, "metric": metric.name, **ours, **paper.add_suffix("_printed")})
    titles = ("Data set", "Metric", *PAIR, *(f"{name}, the paper" for name in PAIR))
    return Table("table6", "Table 6: BRL and RBRL", titles, tuple(rows), pd.DataFrame(found), n_keys=2)


def _pair(values: pd.Series, metric: Metric) -> list[Cell]:
    best = best_of(values, metric.greater_is_better)
    return [number(values[name], 3, name in best) for name in PAIR]


def ablation_summary(results: Results) -> Table:
    """Gain of the ranking term by metric: data sets on which RBRL is better, mean gain, and p-value."""
    rows, found = [], []
    for metric in results.metrics:
        values = results.means(metric).reindex(columns=PAIR).dropna()
        gain = (1 if metric.greater_is_better else -1) * (values[OURS] - values[ABLATION])
        p_value = wilcoxon(gain).pvalue if len(gain) > 1 and gain.any() else float("nan")
        wins = int((gain > 0).sum())
        shown = Cell(p_text(p_value), p_value) if p_value == p_value else Cell(MISSING)
        gained = Cell(f"{gain.mean():+.4f}".replace("-", "−"), gain.mean()) if len(gain) else Cell(MISSING)
        rows.append((word(heading(metric)), Cell(f"{wins} of {len(gain)}", wins), gained, shown))
        found.append((metric.name, wins, len(gain), gain.mean(), p_value))
    frame = pd.DataFrame(found, columns=["metric", "wins", "n_datasets", "gain", "p_value"])
    titles = ("Metric", f"{OURS} better on", "Mean gain", "p")
    note = "Mean gain in the metric's good direction; p by Wilcoxon's signed-rank test over data sets, not corrected."
    return Table("table6-summary", "What the ranking term changes", titles, tuple(rows), frame, note=note)


def time_beside(results: Results | None) -> Table:
    """Table 7: seconds to train and test beside the printed ones, which are another machine's."""
    frame = published("time").rename(columns={"train_seconds": "printed_train", "test_seconds": "printed_test"})
    for name in ("train_seconds", "test_seconds"):
        known = results.seconds(name).T.unstack().to_dict() if results else {}
        frame[name] = [known.get(where, float("nan")) for where in zip(frame.dataset, frame.method)]
    columns = ["printed_train", "train_seconds", "printed_test", "test_seconds"]
    rows = tuple(
        (word(row.dataset), word(row.method), *(seconds(getattr(row, column)) for column in columns))
        for row in frame.itertuples()
    )
    titles = ("Data set", "Method", "Train, printed", "Train, here", "Test, printed", "Test, here")
    note = "Printed: one laptop with four cores of 2.5 GHz; Matlab, C++ and Java."
    return Table("table7", "Table 7: seconds", titles, rows, frame, n_keys=2, note=note)
