"""Sum up the cost of a plan: fits, hours and evaluations, by data set, from its rows and tunings."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from rbrl.exceptions import PlanError
from rbrl.experiments import RUN_KEYS, Plan, Store, execute
from rbrl.experiments.tables import MISSING, Cell, Table, count, number, seconds, word
from studies.reproduction.paper import OURS, key

TIMES = ["tune_seconds", "train_seconds", "test_seconds"]
MEANS = ("evaluations", "certified")
# A recomputed metric may differ by the digits that another order of sums changes.
TOLERANCE = 1e-6
# Results that took longer to fit and to test, in seconds, are not drawn to be recomputed.
PATIENCE = 20.0


def cost(rows: pd.DataFrame, effort: pd.DataFrame, by: str = "dataset") -> pd.DataFrame:
    """Sum up rows and tunings.

    Parameters
    ----------
    rows : DataFrame
        Result of `rbrl.experiments.Store.rows`.
    effort : DataFrame
        Result of `rbrl.experiments.Store.effort`.
    by : {"dataset", "method"}

    Returns
    -------
    DataFrame
        One row per data set or method: n_runs, n_fits (of tuning, and one per run), hours (of processor time, searches
        included), recorded_hours (the part that the runs recorded), wall_hours (tuning, training and testing one after
        the other), evaluations (mean per fit of tuning), certified (share of the fits of tuning), share (of hours).
        Where the two kinds of hours differ, the truth is between them: see `spent`.
    """
    runs = rows.drop_duplicates(RUN_KEYS)
    runs = runs[runs.status == "ok"]
    runs = runs.assign(wall=runs[TIMES].sum(axis=1), spent=spent(runs, effort))
    groups = runs.groupby(by, sort=False)
    frame = pd.DataFrame({"n_runs": groups.size(), "hours": groups.spent.sum() / 3600})
    frame["recorded_hours"] = groups.processor_seconds.sum() / 3600
    frame["wall_hours"] = groups.wall.sum() / 3600
    frame["n_fits"] = (effort.groupby(by).n_fits.sum().reindex(frame.index).fillna(0) + frame.n_runs).astype(int)
    for name in MEANS:
        frame[name] = [mean_per_fit(effort[effort[by] == value], name) for value in frame.index]
    frame["share"] = frame.hours / frame.hours.sum()
    return frame.reset_index()


def spent(runs: pd.DataFrame, effort: pd.DataFrame) -> pd.Series:
    """Return the processor seconds of every run, including its search.

    A run whose search has its processor time recorded has counted it. One without may rest on a search that was done
    before and not counted: then all that its clock counted is taken, the most that one thread can have used.
    """
    known = effort if "processor_seconds" in effort else effort.assign(processor_seconds=np.nan)
    searched = runs.merge(known, on=RUN_KEYS, how="left", suffixes=("", "_of_search"))
    unsure = (searched.tune_seconds > 0) & searched.processor_seconds_of_search.isna()
    most = searched[TIMES].sum(axis=1).clip(lower=searched.processor_seconds)
    return searched.processor_seconds.where(~unsure, most).set_axis(runs.index)


def mean_per_fit(effort: pd.DataFrame, name: str) -> float:
    """Mean of a column over the fits of some tunings; NaN where no method has it."""
    known = effort.dropna(subset=[name])
    return float((known[name] * known.n_fits).sum() / known.n_fits.sum()) if len(known) else float("nan")


def cost_table(rows: pd.DataFrame, effort: pd.DataFrame, title: str, by: str = "dataset") -> Table:
    """Cost by data set or method, with its total."""
    frame = cost(rows, effort, by)
    total = {name: frame[name].sum() for name in ("n_runs", "n_fits", "hours", "recorded_hours", "share")}
    total |= {name: mean_per_fit(effort, name) for name in MEANS}
    lines = [_line(row[by], row) for row in frame.to_dict("records")]
    head = {"dataset": "Data set", "method": "Method"}[by]
    titles = (head, "Runs", "Fits", "Processor hours", "Share", "Evaluations per fit", "Certified")
    note = "Certified: share of the fits of the search, of methods that prove a gap, with one of at most 0.001."
    if not is_exact(frame):
        note += (
            " Processor hours from … to …: what the runs recorded, which leaves out a search done before a run, and what "
            "the clock counted for runs and searches beside other work. The share is that of the larger figure."
        )
    return Table(f"cost-{by}", title, titles, (*lines, _line("All", total)), frame, n_foot=1, note=note)


def is_exact(frame: pd.DataFrame) -> bool:
    """Return True if the recorded hours are all hours, to the digits shown."""
    return bool((frame.hours - frame.recorded_hours < 0.005).all())


def hours_text(least: float, most: float) -> str:
    """Hours between two bounds, as one number where they agree in the digits shown.

    Examples
    --------
    >>> hours_text(1.5, 1.501), hours_text(1.5, 2)
    ('1.50', '1.50 to 2.00')
    """
    return f"{least:.2f}" if f"{least:.2f}" == f"{most:.2f}" else f"{least:.2f} to {most:.2f}"


def _line(name: str, row: Mapping[str, Any]) -> tuple[Cell, ...]:
    certified = row["certified"]
    return (
        *(word(name), count(row["n_runs"]), Cell(f"{row['n_fits']:,}", int(row["n_fits"]))),
        Cell(hours_text(row["recorded_hours"], row["hours"]), float(row["hours"])),
        *(Cell(f"{row['share']:.0%}", float(row["share"])), number(row["evaluations"], 1)),
        Cell(f"{certified:.1%}", float(certified)) if certified == certified else Cell(MISSING),
    )


def cost_tables(rows: pd.DataFrame, effort: pd.DataFrame) -> list[Table]:
    """Return the cost of RBRL on each data set, and of every method in total."""
    ours, own = rows[rows.method.map(key) == key(OURS)], effort[effort.method.map(key) == key(OURS)]
    tables = [cost_table(ours, own, f"{OURS}'s full protocol")] if len(ours) else []
    return [*tables, cost_table(rows, effort, "All methods", by="method")]


@dataclass(frozen=True)
class Checked:
    """A recorded result beside the recomputed one.

    Attributes
    ----------
    dataset, method, split : str, str, int
    recorded, found : dict of str to float
        Metrics.
    tolerance : float
        Largest allowed difference; see `tolerance`.
    seconds : float
        Seconds of fitting and testing in this check.
    error : str
        Reason why there is nothing to compare, or empty.
    """

    dataset: str
    method: str
    split: int
    recorded: dict[str, float]
    tolerance: float = TOLERANCE
    found: dict[str, float] = field(default_factory=dict)
    seconds: float = float("nan")
    error: str = ""

    @property
    def largest(self) -> float:
        """Largest difference over the metrics; infinite if one is missing."""
        return max((abs(value - self.found.get(name, np.inf)) for name, value in self.recorded.items()), default=np.inf)

    @property
    def agrees(self) -> bool:
        """True if every metric agrees with the record."""
        return self.largest <= self.tolerance


def tolerance(gap: float) -> float:
    """Return the allowed difference of a metric from the recorded one, for a certified gap, or NaN for a method without one.

    The objectives are strongly convex: an objective within a share g of its optimum leaves the weights, and with them the
    scores, open by about the square root of g, and a metric by the share of labels and pairs within that of a border.
    Another processor's sums, or a better solver, may end anywhere there, on the other side of the optimum at worst: hence
    twice as much. A method without a gap, such as ML-kNN, has no such freedom.

    Examples
    --------
    >>> tolerance(1e-6), tolerance(float("nan"))
    (0.002, 1e-06)
    """
    return max(TOLERANCE, 2 * float(np.sqrt(gap))) if gap == gap else TOLERANCE


def draw(rows: pd.DataFrame, n: int, seed: int | None = None, patience: float = PATIENCE) -> pd.DataFrame:
    """Choose recorded results at random, of those that took at most `patience` seconds to fit and to test.

    They are drawn from different methods as far as there are several, so that two results are two kinds of evidence.
    """
    runs = rows.drop_duplicates(RUN_KEYS)
    runs = runs[(runs.status == "ok") & (runs.train_seconds + runs.test_seconds <= patience)]
    if runs.empty:
        raise ValueError(f"No recorded result took at most {patience:g} seconds. There are {len(rows)} rows.")
    rng = np.random.default_rng(seed)
    shuffled = runs.iloc[rng.permutation(len(runs))]
    apart = shuffled.drop_duplicates("method")
    return pd.concat([apart, shuffled.drop(apart.index)]).head(n)


def check(
    rows: pd.DataFrame,
    plan: Plan,
    n: int = 2,
    seed: int | None = None,
    data_home: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Checked]:
    """Recompute `n` results of a plan, drawn from `rows`; `tell` is called with a line of text before each."""
    checked = []
    for recorded in draw(rows, n, seed).itertuples():
        dataset, method, split = recorded.dataset, recorded.method, recorded.split
        tell(f"{dataset} · {method} · split {split}, {recorded.params}")
        own = rows[(rows.dataset == dataset) & (rows.method == method) & (rows.split == split)]
        values, allowed = dict(zip(own.metric, own.value)), tolerance(recorded.gap)
        try:
            part = plan.part([dataset], [method], [split])
        except PlanError:
            checked.append(Checked(dataset, method, split, values, allowed, error="the plan has no such run"))
            continue
        found = _recomputed(part, json.loads(recorded.params), data_home)
        took = float(found.train_seconds.iloc[0] + found.test_seconds.iloc[0])
        now = {name: value for name, value in zip(found.metric, found.value) if value == value}
        checked.append(Checked(dataset, method, split, values, allowed, now, took, found.error.iloc[0]))
    return checked


def _recomputed(part: Plan, params: dict[str, Any], data_home: Path | None) -> pd.DataFrame:
    """Rows of a plan with a single run, one fit and one test: its parameters are given, and nothing is tuned.

    A record leaves out what was a default of the method when it was made; the plan says that, and defaults may change.
    """
    method = part.methods[0]
    fixed = replace(method, params={**method.params, **params}, grid=[], also_judged=[], by_model={}, by_dataset={})
    once = replace(part, methods=(fixed,))
    with TemporaryDirectory() as folder:
        store = Store(folder)
        execute(once, store, data_home=data_home)
        return store.rows(once)


def check_table(checked: Sequence[Checked]) -> Table:
    """Recomputed results and their differences from the record."""
    rows = tuple(
        (
            *(word(one.dataset), word(one.method), word(one.split)),
            *(
                word("yes" if one.agrees else one.error or "no"),
                number(one.largest, 9),
                number(one.tolerance, 6),
                seconds(one.seconds),
            ),
        )
        for one in checked
    )
    frame = pd.DataFrame([{**one.__dict__, "largest": one.largest, "agrees": one.agrees} for one in checked])
    titles = ("Data set", "Method", "Split", "As recorded", "Largest difference", "Allowed", "Seconds")
    return Table("check", "Recomputed with the recorded parameters", titles, rows, frame, n_keys=3)
