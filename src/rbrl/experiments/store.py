"""`Store`: the results of a comparison, in a folder; a killed process does not damage it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from sqlite3 import Cursor
from typing import TYPE_CHECKING, Any

from rbrl._common.environment import import_extra
from rbrl.experiments.plan import Plan
from rbrl.experiments.runs import FoldResult, Outcome, Place, Run, expand
from rbrl.experiments.specs import DatasetLoader
from rbrl.experiments.sqlite import Database, Owner, is_alive

if TYPE_CHECKING:
    import pandas as pd

# Columns of the frames that a store returns.
ROW_COLUMNS = [
    "dataset", "method", "split", "metric", "value", "status", "error", "params", "tune_seconds", "train_seconds",
    "test_seconds", "processor_seconds", "gap", "evaluations", "seed", "version", "machine",
]  # fmt: skip
TUNING_COLUMNS = [
    "dataset", "method", "split", "params", "fold", "metric", "value", "fit_seconds", "gap", "evaluations",
]  # fmt: skip
EFFORT_COLUMNS = [
    "dataset", "method", "split", "n_fits", "seconds", "evaluations", "gap", "certified", "processor_seconds",
]  # fmt: skip
DATASET_COLUMNS = ["dataset", "n_samples", "n_features", "n_labels", "cardinality", "density"]
RELIABILITY_COLUMNS = ["dataset", "method", "split", "bin", "n", "foretold", "relevant"]
FLOAT_COLUMNS = {"value", "gap", "evaluations", "seconds", "certified"}
FLOAT_COLUMNS |= {name for name in ROW_COLUMNS if name.endswith("_seconds")}
# Key of the reliability bins among the values of a run; no metric has this name.
BINS_KEY = "reliability bins"
# Parts of queries. SQLite decodes the column with JSON, so that text that is no JSON is reported as damage.
SELECT_VALUES = 'vals AS "vals [json]"'
SELECT_FOLD = f"point, fold, {SELECT_VALUES}, fit_seconds, gap, evaluations"
# A fit is certified if its gap is at most 1e-3.
SELECT_EFFORT = """
count(*), sum(fit_seconds), avg(evaluations), max(gap), avg(gap <= 1e-3),
CASE WHEN count(processor_seconds) = count(*) THEN sum(processor_seconds) END
"""


class Store:
    """Results of a comparison.

    They are kept in one SQLite file with a write-ahead log. A run and its tuning are written in one
    transaction: after a kill, a crash or on a full disk, a run is there with all its parts or not at
    all. Several processes of one machine can share a store, and no run is done twice. Only the
    process that called `execute` writes, so that its workers may be on other machines. The folder
    should be on a local disk, because write-ahead logs do not work over a network.

    Parameters
    ----------
    path : path
        Folder of the store; created when it is first needed.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from rbrl.experiments import Store
    >>> Store(mkdtemp()).rows().columns[:5].tolist()
    ['dataset', 'method', 'split', 'metric', 'value']
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._database = Database(self.path)
        self._owner: Owner | None = None

    def plan(self) -> Plan | None:
        """Return the plan that was started last, or None.

        Returns
        -------
        Plan or None
        """
        with self._database.reading() as cursor:
            found = cursor.execute("SELECT toml, folder FROM plans ORDER BY id DESC LIMIT 1").fetchone()
            return None if found is None else Plan.from_text(*found)

    def rows(self, plan: Plan | None = None) -> pd.DataFrame:
        """Return one row per (data set, method, split, metric) of a plan.

        Parameters
        ----------
        plan : Plan, optional
            Plan whose rows are returned; by default the plan that was started last. A run belongs
            to every plan with the same run, even to a plan that was never started.

        Returns
        -------
        DataFrame
            The columns are dataset, method, split, metric, value, status ("ok" or "failed"), error,
            params (JSON), tune_seconds, train_seconds, test_seconds, processor_seconds (of all
            three), gap, evaluations, seed, version, machine. The times of a run that tunes include
            its whole search, also the parts that were known before; stores of older versions leave
            those parts out of the processor time, see :meth:`effort`. Runs that are not done have
            no rows. Failed runs have rows without values.

        Examples
        --------
        >>> from tempfile import mkdtemp
        >>> from rbrl.experiments import Plan, Store, execute
        >>> methods = {"brl": {"params": {"tol": 0.1}}}
        >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": methods, "splits": {"number": 1}})
        >>> store = Store(mkdtemp())
        >>> _ = execute(plan, store)
        >>> rows = store.rows()
        >>> sorted(rows.metric)[:3], rows.status.unique().tolist()
        (['average_precision', 'coverage', 'f1_example'], ['ok'])
        """
        current = plan or self.plan()
        metrics = current.metrics if current else ()
        query = f"SELECT {SELECT_VALUES}, {', '.join(ROW_COLUMNS[5:])} FROM runs WHERE key = ?"
        lines = self._select(query, self._run_keys(plan))
        rows = ((*place, metric, vals.get(metric), *rest) for place, vals, *rest in lines for metric in metrics)
        return _frame(rows, ROW_COLUMNS)

    def tuning(self, plan: Plan | None = None) -> pd.DataFrame:
        """Return the values of every grid point of a plan on every fold.

        Parameters
        ----------
        plan : Plan, optional
            Plan of the runs; by default the plan that was started last.

        Returns
        -------
        DataFrame
            The columns are dataset, method, split (on whose training part the method was tuned),
            params (JSON), fold, metric, value, fit_seconds, gap, evaluations.
        """
        query = f"SELECT {SELECT_FOLD} FROM folds WHERE tune_key = ? ORDER BY point, fold"
        lines = self._select(query, self._tuning_keys(plan))
        rows = ((*p, point, fold, *value, *rest) for p, point, fold, vals, *rest in lines for value in vals.items())
        return _frame(rows, TUNING_COLUMNS)

    def effort(self, plan: Plan | None = None) -> pd.DataFrame:
        """Return the cost of the tuning: one row for each data set, method and split.

        Parameters
        ----------
        plan : Plan, optional
            Plan of the runs; by default the plan that was started last.

        Returns
        -------
        DataFrame
            The columns are dataset, method, split, n_fits, seconds (of all fits), evaluations (mean
            per fit), gap (the largest), certified (share of the fits with a gap of at most 1e-3),
            processor_seconds (of the whole search with its evaluations; NaN if it was not recorded
            for a part of the search).
        """
        lines = self._select(f"SELECT {SELECT_EFFORT} FROM folds WHERE tune_key = ?", self._tuning_keys(plan))
        return _frame(((*place, *line) for place, *line in lines if line[0]), EFFORT_COLUMNS)

    def failures(self, plan: Plan | None = None) -> pd.DataFrame:
        """Return one row per failed run.

        Parameters
        ----------
        plan : Plan, optional
            Plan of the runs; by default the plan that was started last.

        Returns
        -------
        DataFrame
            The columns are dataset, method, split, error, trace (the traceback).

        Examples
        --------
        >>> from tempfile import mkdtemp
        >>> from rbrl.experiments import Plan, Store, execute
        >>> methods = {"brl": {"params": {"tol": 0.1}}}
        >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": methods, "splits": {"number": 1}})
        >>> store = Store(mkdtemp())
        >>> _ = execute(plan, store)
        >>> len(store.failures())
        0
        """
        lines = self._select("SELECT error, trace FROM runs WHERE key = ? AND status = 'failed'", self._run_keys(plan))
        return _frame(((*place, *line) for place, *line in lines), ["dataset", "method", "split", "error", "trace"])

    def reliability(self, plan: Plan | None = None) -> pd.DataFrame:
        """Return predicted probabilities and relevant labels in bins, for runs with a metric of probabilities.

        Parameters
        ----------
        plan : Plan, optional
            Plan of the runs; by default the plan that was started last.

        Returns
        -------
        DataFrame
            The columns are dataset, method, split, bin, n (number of test labels whose probability
            is in the bin), foretold (sum of these probabilities), relevant (number of relevant labels).
        """
        query = f"SELECT {SELECT_VALUES} FROM runs WHERE key = ? AND status = 'ok'"
        lines = self._select(query, self._run_keys(plan))
        by_run = ((place, enumerate(zip(*vals[BINS_KEY]))) for place, vals in lines if BINS_KEY in vals)
        return _frame(((*place, i, *one) for place, bins in by_run for i, one in bins), RELIABILITY_COLUMNS)

    def datasets(self) -> pd.DataFrame:
        """Return the sizes of data sets that came from files.

        Returns
        -------
        DataFrame
            The columns are dataset, n_samples, n_features, n_labels, cardinality, density.
        """
        with self._database.reading() as cursor:
            return _frame(cursor.execute("SELECT * FROM datasets ORDER BY rowid").fetchall(), DATASET_COLUMNS)

    def _run_keys(self, plan: Plan | None) -> list[tuple[Place, str, str | None]]:
        """Return place, key and tune_key of the runs of a plan, or of the plan that was started last."""
        if plan is not None:
            return [(run.place, run.key, run.tune_key) for run in expand(plan, DatasetLoader(plan.folder))]
        with self._database.reading() as cursor:
            found = cursor.execute("SELECT dataset, method, split, key, tune_key FROM current ORDER BY position")
            return [((dataset, method, split), *keys) for dataset, method, split, *keys in found.fetchall()]

    def _tuning_keys(self, plan: Plan | None) -> list[tuple[Place, str]]:
        """Return place and key of each tuning; the first place if several runs share it."""
        first: dict[tuple[str, str, str], tuple[Place, str]] = {}
        for place, _, tune_key in self._run_keys(plan):
            if tune_key:
                first.setdefault((*place[:2], tune_key), (place, tune_key))
        return list(first.values())

    def _select(self, query: str, keys: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the lines of a query for each (place, key), each line after its place.

        The query has one parameter, the key.
        """
        with self._database.reading() as cursor:
            return [(place, *line) for place, key, *_ in keys for line in cursor.execute(query, (key,)).fetchall()]

    def begin(self, plan: Plan, runs: list[Run], sizes: dict[str, tuple[Any, ...]]) -> dict[Place, dict[str, Any]]:
        """Make `plan` the current one, and return the identities of the runs of the last plan.

        `sizes` are those of the data sets that come from files, by name; see `DatasetLoader.sizes`.
        """
        lines = [(i, *run.place, run.key, run.tune_key, json.dumps(run.identity)) for i, run in enumerate(runs)]
        with self._database.writing() as cursor:
            query = 'SELECT dataset, method, split, identity AS "identity [json]" FROM current'
            before = {(*place,): identity for *place, identity in cursor.execute(query).fetchall()}
            cursor.execute("DELETE FROM current")
            _insert(cursor, "current", lines)
            _insert(cursor, "datasets", [(name, *one) for name, one in sizes.items()])
            cursor.execute("INSERT INTO plans (toml, folder) VALUES (?, ?)", (plan.to_toml(), str(plan.folder)))
            return before

    def finished(self) -> dict[str, Outcome]:
        """Return the outcome of every finished run, by its key."""
        with self._database.reading() as cursor:
            query = f"SELECT key, status, error, {SELECT_VALUES}, again, version FROM runs"
            return {key: Outcome(*result) for key, *result in cursor.execute(query).fetchall()}

    def known(self, tune_key: str | None) -> list[FoldResult]:
        """Return the known folds of a tuning; an empty list for a run that is not tuned."""
        query = f"SELECT {SELECT_FOLD}, processor_seconds FROM folds WHERE tune_key = ?"
        with self._database.reading() as cursor:
            lines = cursor.execute(query, (tune_key,)).fetchall()
            # SQLite stores NaN as NULL.
            return [FoldResult._make(math.nan if value is None else value for value in line) for line in lines]

    def claim(self, key: str, since: float) -> str:
        """Claim a run, so that no other process does it.

        Parameters
        ----------
        key : str
            Key of the run.
        since : float
            Time before which results do not count.

        Returns
        -------
        {"ours", "theirs", "done"}
            "ours" if this process has the run now, "theirs" if another running process has it,
            "done" if it has a result.
        """
        self._owner = self._owner or Owner(self.path / "locks")
        with self._database.writing() as cursor:
            if cursor.execute("SELECT 1 FROM runs WHERE key = ? AND finished >= ?", (key, since)).fetchone():
                return "done"
            owner = cursor.execute("SELECT owner FROM claims WHERE key = ?", (key,)).fetchone()
            if owner and is_alive(self.path / "locks", owner[0]):
                return "theirs"
            _insert(cursor, "claims", [(key, self._owner.name)])
        return "ours"

    def save(self, run: Run, outcome: Outcome) -> None:
        """Write a run with its tuning and its `others`, and release its claim, in one transaction.

        Parameters
        ----------
        run : Run
            Run that has ended.
        outcome : Outcome
            Its outcome.
        """
        with self._database.writing() as cursor:
            for one, result in [(run, outcome), *zip(run.others, outcome.others)]:
                if one is run or result.status == "ok":
                    _insert(cursor, "runs", [_record(one, result)])
                folds = [(one.tune_key, *fold[:2], json.dumps(fold.values), *fold[3:]) for fold in result.tuning]
                _insert(cursor, "folds", folds)
            cursor.execute("DELETE FROM claims WHERE key = ?", (run.key,))

    def close(self) -> None:
        """Release all claims and close the file; the store can be used again."""
        if self._owner is not None:
            self._owner.close()
            self._owner = None
        self._database.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"


def _frame(records: Iterable[Any], columns: list[str]) -> pd.DataFrame:
    """Return a data frame whose columns in `FLOAT_COLUMNS` are floats, also if it is empty."""
    pandas = import_extra("pandas", "report", "The table of a store")
    frame = pandas.DataFrame.from_records(list(records), columns=columns)
    return frame.astype({name: float for name in columns if name in FLOAT_COLUMNS})


def _insert(cursor: Cursor, table: str, lines: list[tuple[Any, ...]]) -> None:
    """Write lines; each replaces a line with the same key."""
    if lines:
        cursor.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(lines[0]))})", lines)


def _record(run: Run, outcome: Outcome) -> tuple[Any, ...]:
    """Return a line of the table `runs`, in the order of its columns."""
    bins = outcome.reliability
    values = outcome.values if bins is None else {**outcome.values, BINS_KEY: [part.tolist() for part in bins]}
    return (
        *(run.key, outcome.status, outcome.error, outcome.trace, int(outcome.again)),
        *(json.dumps(values), json.dumps(outcome.params)),
        *(outcome.tune_seconds, outcome.train_seconds, outcome.test_seconds, outcome.processor_seconds),
        *(outcome.gap, outcome.evaluations, run.seed, outcome.version, outcome.machine, time.time()),
    )
