"""Each cell of Table 3: ours, the paper's, and how far apart."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from rbrl.metrics import PAPER_METRICS, get_metric
from rbrl.report.comparison import rank_table
from rbrl.report.paper_tables import published
from rbrl.report.reproduction.names import OURS, key, paper_methods
from rbrl.report.results import Results
from rbrl.report.table import MISSING, Cell, Table, count, number, word

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
