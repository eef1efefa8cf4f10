"""A request on the command line: its part of the results, their source, and the form of the answer."""

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from rbrl.experiments import Results
from rbrl.experiments.tables import Table, show_tables
from studies.reproduction.paper import PAPER, SOURCES, as_published, key, published_results
from studies.reproduction.recorded import Recorded, Source, Stored, results_folder


@dataclass(frozen=True)
class Request:
    """A request: the results that it is about, and the form of the answer.

    Parameters
    ----------
    store : path, optional
        Folder that `rbrl compare` wrote; default: results are those recorded.
    folder : path, optional
        Folder of recorded results; default: that of the repository.
    plan : str
        Plan whose results are shown.
    published : bool
        True shows the paper's own results instead.
    datasets, methods, splits : tuple
        Part of the results that is shown; empty means all.
    output : path
        Folder of figures and pages.
    html : path, optional
        File for all pages and figures together; default: none.
    data_home : path, optional
        Folder of data files.
    jobs : int
        Runs at a time.
    minutes : float
        Processor time that `oracle` may spend.
    json, quiet : bool
        Print answers as JSON; print nothing but answers.
    """

    store: Path | None = None
    folder: Path | None = None
    plan: str = "paper"
    published: bool = False
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    splits: tuple[int, ...] = ()
    output: Path = Path("paper")
    html: Path | None = None
    data_home: Path | None = None
    jobs: int = 1
    minutes: float = 0.0
    json: bool = False
    quiet: bool = False

    @property
    def source(self) -> Source:
        """Source of rows: the store if one is given, else the recorded files."""
        return Stored(self.store) if self.store else self.recorded

    @property
    def recorded(self) -> Recorded:
        """The recorded files."""
        return Recorded(results_folder(self.folder))

    def rows(self, plan: str | None = None) -> pd.DataFrame:
        """Return the rows of a plan for the data sets, methods and splits of the request."""
        rows = self.source.rows(plan or self.plan)
        chosen = rows.method.notna()
        if self.methods:
            chosen &= rows.method.map(key).isin([key(name) for name in self.methods])
        for column, wanted in (("dataset", self.datasets), ("split", self.splits)):
            chosen &= rows[column].isin(wanted) if wanted else True
        if not chosen.any():
            what = ", ".join(map(str, [*self.datasets, *self.methods, *self.splits])) or "anything"
            raise ValueError(f"There are no results of {plan or self.plan} for {what}.")
        return rows[chosen]

    def wants(self, run: Any) -> bool:
        """Return True if a run belongs to the data sets, methods and splits of the request."""
        methods = [key(name) for name in self.methods]
        chosen = ((run.dataset, self.datasets), (key(run.method), methods), (run.split, self.splits))
        return all(not wanted or one in wanted for one, wanted in chosen)

    def results(self, plan: str | None = None, *others: str) -> Results:
        """Return results with the paper's methods and names; the paper's own for a request of published results."""
        return published_results() if self.published else as_published(self.rows(plan), *others)

    def sources(self, *plans: str, others: tuple[str, ...] = ()) -> dict[str, Results]:
        """Return, by name, the paper's results and ours of some plans, by default of the plan of the request.

        Parameters
        ----------
        *plans : str
        others : tuple of str
            Methods outside Table 3 that are kept where a plan has them.
        """
        ours = () if self.published else plans or (self.plan,)
        return {PAPER: published_results()} | {SOURCES.get(plan, plan): self.results(plan, *others) for plan in ours}

    def tell(self, text: str) -> None:
        """Print a message that is not the answer."""
        if not (self.quiet or self.json):
            print(text, file=sys.stderr)

    def show(self, *tables: Table) -> None:
        """Print tables, or their figures as JSON."""
        if self.json:
            show_json(records(tables[0]) if len(tables) == 1 else {table.name: records(table) for table in tables})
        else:
            show_tables(*tables)


def records(table: Table) -> list[dict[str, Any]]:
    """Return the figures of a table in a form for JSON."""
    return table.frame.astype(object).to_dict(orient="records")


def show_json(value: Any) -> None:
    """Print one JSON value; NaN and infinity become null."""
    print(json.dumps(_plain(value), ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
