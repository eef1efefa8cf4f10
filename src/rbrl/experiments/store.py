"""`Store`: the rows of a comparison, in a folder, safe against being killed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from sqlite3 import Cursor
from typing import TYPE_CHECKING, Any

from rbrl._common.extras import import_extra
from rbrl.experiments.plan import Plan
from rbrl.experiments.runs import Fold, Outcome, Place, Run, Shelf, expand
from rbrl.experiments.sqlite import Database, Owner, is_alive

if TYPE_CHECKING:
    import pandas as pd

ROWS = [
    "dataset", "method", "split", "metric", "value", "status", "error", "params", "tune_seconds", "train_seconds",
    "test_seconds", "processor_seconds", "gap", "evaluations", "seed", "version", "machine",
]  # fmt: skip
TUNING = ["dataset", "method", "split", "params", "fold", "metric", "value", "fit_seconds", "gap", "evaluations"]
EFFORT = ["dataset", "method", "split", "n_fits", "seconds", "evaluations", "gap", "certified", "processor_seconds"]
DATASETS = ["dataset", "n_samples", "n_features", "n_labels", "cardinality", "density"]
RELIABILITY = ["dataset", "method", "split", "bin", "n", "foretold", "relevant"]
# Where the bins of a run are among its values: beside metrics, none of which has this name.
BINS = "reliability bins"
NUMBERS = {"value", "gap", "evaluations", "seconds", "certified", *(name for name in ROWS if name.endswith("_seconds"))}
# The column that holds JSON, decoded as it is read: text that cannot be decoded is then damage like any other.
VALUES = 'vals AS "vals [json]"'
FOLDS = f"point, fold, {VALUES}, fit_seconds, gap, evaluations"
# A fit is certified if its gap is at most 1e-3.
MEANS = """
count(*), sum(fit_seconds), avg(evaluations), max(gap), avg(gap <= 1e-3),
CASE WHEN count(processor_seconds) = count(*) THEN sum(processor_seconds) END
"""


class Store:
    """The results of a comparison.

    They are kept in one SQLite file with a write-ahead log rather than in one file per run, because a run is written
    together with all that was tuned for it, in one transaction: after a kill, a crash or on a full disk it is there with
    all its parts or not at all. The same transactions let several processes of one machine share a store without doing
    a run twice, and hundreds of thousands of tuning results stay one file to copy. Only the process that called
    `execute` writes, never its workers, so those may be on other machines; the folder itself should be on a local disk,
    since write-ahead logs do not work over a network.

    Parameters
    ----------
    path : path
        A folder; made when first needed.

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
            Default: the one that was started last. A run belongs to every plan that would do the same, so a store may
            serve several plans, and rows of one be asked for that was never started.

        Returns
        -------
        DataFrame
            With the columns dataset, method, split, metric, value, status ("ok" or "failed"), error, params (JSON),
            tune_seconds, train_seconds, test_seconds, processor_seconds (of all three), gap,
            evaluations, seed, version, machine. Times of a run that tunes are those of its whole search, also of what
            was searched before; older stores leave that out of the processor's time, see :meth:`effort`. Runs that are
            still to be done have no rows; a failed run has them without values.

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
        chosen = plan or self.plan()
        lines = self._select(f"SELECT {VALUES}, {', '.join(ROWS[5:])} FROM runs WHERE key = ?", self._asked(plan))
        metrics = chosen.metrics if chosen else ()
        found = ((*place, metric, vals.get(metric), *rest) for place, vals, *rest in lines for metric in metrics)
        return _frame(found, ROWS)

    def tuning(self, plan: Plan | None = None) -> pd.DataFrame:
        """Return what every grid point of a plan gave on every fold.

        Parameters
        ----------
        plan : Plan, optional
            Default: the one that was started last.

        Returns
        -------
        DataFrame
            With the columns dataset, method, split, params (JSON), fold, metric, value, fit_seconds, gap, evaluations.
            `split` is the one whose training part was tuned on.
        """
        lines = self._select(f"SELECT {FOLDS} FROM folds WHERE tune_key = ? ORDER BY point, fold", self._tuned(plan))
        found = ((*p, point, fold, *value, *rest) for p, point, fold, vals, *rest in lines for value in vals.items())
        return _frame(found, TUNING)

    def effort(self, plan: Plan | None = None) -> pd.DataFrame:
        """Return what tuning cost: one row for each data set, method and split that was tuned on.

        Parameters
        ----------
        plan : Plan, optional
            Default: the one that was started last.

        Returns
        -------
        DataFrame
            With the columns dataset, method, split, n_fits, seconds (of all fits), evaluations (mean per fit), gap (the
            largest), certified (share of the fits with a gap of at most 1e-3), processor_seconds (of the whole
            search, judging included; NaN where a part was searched before this was recorded).
        """
        lines = self._select(f"SELECT {MEANS} FROM folds WHERE tune_key = ?", self._tuned(plan))
        return _frame(((*place, *line) for place, *line in lines if line[0]), EFFORT)

    def failures(self, plan: Plan | None = None) -> pd.DataFrame:
        """Return one row per failed run.

        Parameters
        ----------
        plan : Plan, optional
            Default: the one that was started last.

        Returns
        -------
        DataFrame
            With the columns dataset, method, split, error, trace (the whole traceback).

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
        lines = self._select("SELECT error, trace FROM runs WHERE key = ? AND status = 'failed'", self._asked(plan))
        return _frame(((*place, *line) for place, *line in lines), ["dataset", "method", "split", "error", "trace"])

    def reliability(self, plan: Plan | None = None) -> pd.DataFrame:
        """Return what came of probabilities, in bins of equal width; of runs that had a metric of probabilities to measure.

        Parameters
        ----------
        plan : Plan, optional
            Default: the one that was started last.

        Returns
        -------
        DataFrame
            With the columns dataset, method, split, bin, n (entries of the test labels whose probability is in the bin),
            foretold (sum of these probabilities), relevant (how many of the entries are).
        """
        lines = self._select(f"SELECT {VALUES} FROM runs WHERE key = ? AND status = 'ok'", self._asked(plan))
        found = ((place, enumerate(zip(*vals[BINS]))) for place, vals in lines if BINS in vals)
        return _frame(((*place, i, *one) for place, bins in found for i, one in bins), RELIABILITY)

    def datasets(self) -> pd.DataFrame:
        """Return what is known of data sets that came from files.

        Returns
        -------
        DataFrame
            With the columns dataset, n_samples, n_features, n_labels, cardinality, density.
        """
        with self._database.reading() as cursor:
            return _frame(cursor.execute("SELECT * FROM datasets ORDER BY rowid").fetchall(), DATASETS)

    def _asked(self, plan: Plan | None) -> list[tuple[Place, str, str | None]]:
        """Place, key and tune_key of the runs of a plan, or of the one that was started last."""
        if plan is not None:
            return [(run.place, run.key, run.tune_key) for run in expand(plan, Shelf(plan.folder))]
        with self._database.reading() as cursor:
            found = cursor.execute("SELECT dataset, method, split, key, tune_key FROM current ORDER BY position")
            return [((dataset, method, split), *keys) for dataset, method, split, *keys in found.fetchall()]

    def _tuned(self, plan: Plan | None) -> list[tuple[Place, str]]:
        """Place and key of each tuning; where runs of a method share one, the first of them."""
        first: dict[tuple[str, str, str], tuple[Place, str]] = {}
        for place, _, tune_key in self._asked(plan):
            if tune_key:
                first.setdefault((*place[:2], tune_key), (place, tune_key))
        return list(first.values())

    def _select(self, query: str, keys: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """The lines of a query for each (place, key), with the place before them."""
        with self._database.reading() as cursor:
            return [(place, *line) for place, key, *_ in keys for line in cursor.execute(query, (key,)).fetchall()]

    def begin(self, plan: Plan, runs: list[Run], sizes: dict[str, tuple[Any, ...]]) -> dict[Place, dict[str, Any]]:
        """Make `plan` the current one.

        Parameters
        ----------
        plan : Plan
        runs : list of Run
            As `expand` gives them.
        sizes : dict of str to tuple
            Those of the data sets that come from files, by name; see `Shelf.sizes`.

        Returns
        -------
        dict of (dataset, method, split) to dict
            Identities of the runs of the plan that was the current one before.
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
        """Return what is known of every run that has a result, by its key.

        Returns
        -------
        dict of str to Outcome
        """
        with self._database.reading() as cursor:
            found = cursor.execute(f"SELECT key, status, error, {VALUES}, again, version FROM runs").fetchall()
            return {key: Outcome(*result) for key, *result in found}

    def known(self, tune_key: str | None) -> list[Fold]:
        """Return what was tuned under this key; nothing for a run that is not tuned.

        Parameters
        ----------
        tune_key : str or None

        Returns
        -------
        list of Fold
        """
        query = f"SELECT {FOLDS}, processor_seconds FROM folds WHERE tune_key = ?"
        with self._database.reading() as cursor:
            found = cursor.execute(query, (tune_key,)).fetchall()
            # SQLite keeps NaN as NULL.
            return [Fold._make(math.nan if value is None else value for value in line) for line in found]

    def claim(self, key: str, since: float) -> str:
        """Claim a run, so that no other process does it.

        Parameters
        ----------
        key : str
            That of the run.
        since : float
            Older results do not count.

        Returns
        -------
        {"ours", "theirs", "done"}
            "theirs": a living process has it; "done": it has a result.
        """
        self._owner = self._owner or Owner(self.path / "locks")
        with self._database.writing() as cursor:
            if cursor.execute("SELECT 1 FROM runs WHERE key = ? AND finished >= ?", (key, since)).fetchone():
                return "done"
            found = cursor.execute("SELECT owner FROM claims WHERE key = ?", (key,)).fetchone()
            if found and is_alive(self.path / "locks", found[0]):
                return "theirs"
            _insert(cursor, "claims", [(key, self._owner.name)])
        return "ours"

    def save(self, run: Run, outcome: Outcome) -> None:
        """Write a run, its tuning, and what its fits have shown of its `others`, and give up the claim, at once.

        Parameters
        ----------
        run : Run
        outcome : Outcome
        """
        with self._database.writing() as cursor:
            for one, result in [(run, outcome), *zip(run.others, outcome.others)]:
                if one is run or result.status == "ok":
                    _insert(cursor, "runs", [_record(one, result)])
                folds = [(one.tune_key, *fold[:2], json.dumps(fold.values), *fold[3:]) for fold in result.tuning]
                _insert(cursor, "folds", folds)
            cursor.execute("DELETE FROM claims WHERE key = ?", (run.key,))

    def close(self) -> None:
        """Give up all claims and close the file; the store can be used again."""
        if self._owner is not None:
            self._owner.close()
            self._owner = None
        self._database.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"


def _frame(records: Iterable[Any], columns: list[str]) -> pd.DataFrame:
    pandas = import_extra("pandas", "report", "The table of a store")
    frame = pandas.DataFrame.from_records(list(records), columns=columns)
    return frame.astype({name: float for name in columns if name in NUMBERS})


def _insert(cursor: Cursor, table: str, lines: list[tuple[Any, ...]]) -> None:
    """Write whole lines, in place of those of the same key."""
    if lines:
        cursor.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(lines[0]))})", lines)


def _record(run: Run, outcome: Outcome) -> tuple[Any, ...]:
    bins = outcome.reliability
    values = outcome.values if bins is None else {**outcome.values, BINS: [part.tolist() for part in bins]}
    return (
        *(run.key, outcome.status, outcome.error, outcome.trace, int(outcome.again)),
        *(json.dumps(values), json.dumps(outcome.params)),
        *(outcome.tune_seconds, outcome.train_seconds, outcome.test_seconds, outcome.processor_seconds),
        *(outcome.gap, outcome.evaluations, run.seed, outcome.version, outcome.machine, time.time()),
    )
