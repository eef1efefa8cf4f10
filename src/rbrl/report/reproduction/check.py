"""Recompute a few recorded results with their recorded parameters."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from rbrl.experiments.data import Shelf
from rbrl.experiments.plan import Plan
from rbrl.experiments.runs import expand
from rbrl.experiments.work import work
from rbrl.report.results import KEYS
from rbrl.report.table import Table, number, seconds, word

TOLERANCE = 1e-6
PATIENCE = 20.0


@dataclass(frozen=True)
class Checked:
    """A recorded result and what came out now.

    Attributes
    ----------
    dataset, method, split : str, str, int
    recorded, found : dict of str to float
        Metrics.
    seconds : float
        To fit and to test, now.
    error : str
        Why there is nothing to compare, if so.
    """

    dataset: str
    method: str
    split: int
    recorded: dict[str, float]
    found: dict[str, float]
    seconds: float
    error: str = ""

    @property
    def largest(self) -> float:
        """Largest difference over the metrics; infinite if one is missing."""
        return max((abs(value - self.found.get(name, np.inf)) for name, value in self.recorded.items()), default=np.inf)

    @property
    def agrees(self) -> bool:
        """Whether every metric is the recorded one."""
        return self.largest <= TOLERANCE


def draw(rows: pd.DataFrame, n: int, seed: int | None = None, patience: float = PATIENCE) -> pd.DataFrame:
    """Choose recorded results at random, of those that took at most `patience` seconds to fit and to test.

    They are drawn from different methods as far as there are several, so that two results are two kinds of evidence.
    """
    runs = rows.drop_duplicates(KEYS)
    runs = runs[(runs.status == "ok") & (runs.train_seconds + runs.test_seconds <= patience)]
    if runs.empty:
        raise ValueError(f"No recorded result took at most {patience:g} seconds. There are {len(rows)} rows.")
    rng = np.random.default_rng(seed)
    shuffled = runs.iloc[rng.permutation(len(runs))]
    apart = shuffled.drop_duplicates("method")
    return pd.concat([apart, shuffled.drop(apart.index)]).head(n)


def check(
    rows: pd.DataFrame, plan: Plan, n: int = 2, seed: int | None = None, data_home=None, tell=None
) -> list[Checked]:
    """Recompute `n` results of a plan, drawn from `rows`; `tell` is told of each before it is done."""
    shelf = Shelf(plan.folder, data_home)
    runs = {(run.dataset, run.method, run.split): run for run in expand(plan, shelf)}
    specs = {data.name: data for data in plan.datasets}
    checked = []
    for recorded in draw(rows, n, seed).itertuples():
        where = recorded.dataset, recorded.method, recorded.split
        if tell:
            tell(f"{where[0]} · {where[1]} · split {where[2]}, {recorded.params}")
        part = rows[(rows.dataset == where[0]) & (rows.method == where[1]) & (rows.split == where[2])]
        values = dict(zip(part.metric, part.value))
        if where not in runs:
            checked.append(Checked(*where, values, {}, float("nan"), "the plan has no such run"))
            continue
        # With the parameters fixed and nothing to tune, the run is one fit and one test.
        task = replace(runs[where].task, params=json.loads(recorded.params), points=())
        outcome = work(task, *shelf.get(specs[recorded.dataset]))
        took = outcome.train_seconds + outcome.test_seconds
        checked.append(Checked(*where, values, outcome.values, took, outcome.error))
    return checked


def check_table(checked: list[Checked]) -> Table:
    """What was recomputed, and how far it is from the record."""
    rows = tuple(
        (
            *(word(one.dataset), word(one.method), word(one.split)),
            word("yes" if one.agrees else one.error or "no"),
            number(one.largest, 9),
            seconds(one.seconds),
        )
        for one in checked
    )
    frame = pd.DataFrame([{**one.__dict__, "largest": one.largest, "agrees": one.agrees} for one in checked])
    titles = ("Data set", "Method", "Split", "As recorded", "Largest difference", "Seconds")
    return Table("check", "Recomputed with the recorded parameters", titles, rows, frame, n_keys=3)
