"""`Store`: the rows of a comparison, in a folder, safe against being killed."""

import json
import time
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from rbrl.experiments.data import Fold
from rbrl.experiments.database import Database, Owner, is_alive
from rbrl.experiments.plan import Plan

ROWS = [
    *("dataset", "method", "split", "metric", "value", "status", "error", "params"),
    *("tune_seconds", "train_seconds", "test_seconds", "processor_seconds"),
    *("gap", "evaluations", "seed", "version", "machine"),
]
TUNING = ["dataset", "method", "split", "params", "fold", "metric", "value", "fit_seconds", "gap", "evaluations"]
EFFORT = ["dataset", "method", "split", "n_fits", "seconds", "evaluations", "gap", "certified", "processor_seconds"]
DATASETS = ["dataset", "n_samples", "n_features", "n_labels", "cardinality", "density"]
FAILURES = ["dataset", "method", "split", "error", "trace"]

_RUN = """
SELECT vals, status, error, params, tune_seconds, train_seconds, test_seconds, processor_seconds, gap, evaluations, seed,
       version, machine
FROM runs WHERE key = ?
"""
_FOLDS = "SELECT point, fold, vals, fit_seconds, gap, evaluations FROM folds WHERE tune_key = ? ORDER BY point, fold"
_EFFORT = """
SELECT count(*), sum(fit_seconds), avg(evaluations), max(gap), avg(gap <= ?),
       CASE WHEN count(processor_seconds) = count(*) THEN sum(processor_seconds) END
FROM folds WHERE tune_key = ?
"""
_FAILED = "SELECT error, trace FROM runs WHERE key = ? AND status = 'failed'"
TIMES = [name for name in [*ROWS, *TUNING] if name.endswith("_seconds")]
NUMBERS = ["value", "gap", "evaluations", "seconds", "certified", *TIMES]


class Asked(NamedTuple):
    """A run whose rows are wanted."""

    dataset: str
    method: str
    split: int
    key: str
    tune_key: str | None


def _current_of(cursor):
    """The runs of the plan that was started last."""
    found = cursor.execute("SELECT dataset, method, split, key, tune_key FROM current ORDER BY position").fetchall()
    return [Asked(*line) for line in found]


def _rows_of(cursor, asked, metrics=None):
    """One row per run and metric; a failed run has one for each of `metrics`, without values."""
    records = []
    for run in asked:
        for vals, *rest in cursor.execute(_RUN, (run.key,)).fetchall():
            values = json.loads(vals)
            records += [(*run[:3], metric, values.get(metric), *rest) for metric in metrics or values]
    return _frame(records, ROWS)


def _tuning_of(cursor, asked):
    """One row per grid point, fold and metric."""
    records = []
    for run in _tuned(asked):
        for point, fold, vals, *rest in cursor.execute(_FOLDS, (run.tune_key,)).fetchall():
            values = json.loads(vals).items()
            records += [(*run[:3], point, fold, metric, value, *rest) for metric, value in values]
    return _frame(records, TUNING)


def _effort_of(cursor, asked, within):
    """One row per tuning: its fits, counted and averaged."""
    records = [(*run[:3], *cursor.execute(_EFFORT, (within, run.tune_key)).fetchone()) for run in _tuned(asked)]
    return _frame([record for record in records if record[3]], EFFORT)


def _datasets_of(cursor):
    """One row per data set that came from a file."""
    return _frame(cursor.execute("SELECT * FROM datasets ORDER BY rowid").fetchall(), DATASETS)


def _failures_of(cursor, asked):
    """One row per failed run."""
    found = [(*run[:3], *line) for run in asked for line in cursor.execute(_FAILED, (run.key,)).fetchall()]
    return _frame(found, FAILURES)


def _tuned(asked):
    """The first run of each tuning; the others of a method share it."""
    first = {(run.dataset, run.method, run.tune_key): run for run in reversed(asked) if run.tune_key}
    return [run for run in asked if first.get((run.dataset, run.method, run.tune_key)) is run]


def _frame(records, columns):
    frame = pd.DataFrame.from_records(records, columns=columns)
    return frame.astype({name: float for name in columns if name in NUMBERS})


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
    >>> Store(mkdtemp()).rows().columns[:5].tolist()
    ['dataset', 'method', 'split', 'metric', 'value']
    """

    def __init__(self, path):
        self.path = Path(path)
        self._database = Database(self.path)
        self._owner = None

    def plan(self):
        """Return the plan that was started last, or None."""
        with self._database.reading() as cursor:
            found = cursor.execute("SELECT toml, folder FROM plans ORDER BY id DESC LIMIT 1").fetchone()
            return None if found is None else Plan.from_text(*found)

    def rows(self, plan=None, everything=False):
        """Return one row per (data set, method, split, metric) of a plan.

        Parameters
        ----------
        plan : Plan, optional
            Default: the one that was started last. A run belongs to every plan that would do the same, so a store may
            serve several plans, and rows of one be asked for that was never started.
        everything : bool, default=False
            Also the metrics that this plan does not ask for.

        Returns
        -------
        DataFrame
            With the columns dataset, method, split, metric, value, status ("ok" or "failed"), error, params (JSON),
            tune_seconds, train_seconds, test_seconds, processor_seconds (of all three), gap,
            evaluations, seed, version, machine. Times of a run that tunes are those of its whole search, also of what
            was searched before; older stores leave that out of the processor's time, see :meth:`effort`. Runs that are
            still to be done have no rows; a failed run has them without values.
        """
        asked, chosen = self._asked(plan), plan or self.plan()
        with self._database.reading() as cursor:
            return _rows_of(cursor, asked, None if chosen is None or everything else chosen.metrics)

    def tuning(self, plan=None):
        """Return what every grid point of a plan gave on every fold; by default of the plan that was started last.

        Returns
        -------
        DataFrame
            With the columns dataset, method, split, params (JSON), fold, metric, value, fit_seconds, gap, evaluations.
            `split` is the one whose training part was tuned on.
        """
        asked = self._asked(plan)
        with self._database.reading() as cursor:
            return _tuning_of(cursor, asked)

    def effort(self, plan=None, within=1e-3):
        """Return what tuning cost: one row for each data set, method and split that was tuned on.

        Returns
        -------
        DataFrame
            With the columns dataset, method, split, n_fits, seconds (of all fits), evaluations (mean per fit), gap (the
            largest), certified (share of the fits with a gap of at most `within`), processor_seconds (of the whole
            search, judging included; NaN where a part was searched before this was recorded).
        """
        asked = self._asked(plan)
        with self._database.reading() as cursor:
            return _effort_of(cursor, asked, within)

    def failures(self, plan=None):
        """Return one row per failed run: dataset, method, split, error, trace (the whole traceback)."""
        asked = self._asked(plan)
        with self._database.reading() as cursor:
            return _failures_of(cursor, asked)

    def _asked(self, plan):
        if plan is not None:
            # These need every method; whoever reads the current plan's rows should not wait for them.
            from rbrl.experiments.data import Shelf
            from rbrl.experiments.runs import expand

            runs = expand(plan, Shelf(plan.folder))
            return [Asked(run.dataset, run.method, run.split, run.key, run.tune_key) for run in runs]
        with self._database.reading() as cursor:
            return _current_of(cursor)

    def datasets(self):
        """Return what is known of data sets that came from files: dataset, n_samples, n_features, n_labels, …"""
        with self._database.reading() as cursor:
            return _datasets_of(cursor)

    def begin(self, plan, runs, sizes):
        """Make `plan` the current one; return what the store held before: {(dataset, method, split): identity}.

        `sizes` are those of the data sets that come from files, by name; see `Shelf.sizes`.
        """
        lines = [
            (i, run.dataset, run.method, run.split, run.key, run.tune_key, json.dumps(run.identity))
            for i, run in enumerate(runs)
        ]
        with self._database.writing() as cursor:
            before = cursor.execute("SELECT dataset, method, split, identity FROM current").fetchall()
            cursor.execute("DELETE FROM current")
            cursor.executemany("INSERT INTO current VALUES (?, ?, ?, ?, ?, ?, ?)", lines)
            cursor.executemany(
                "INSERT OR REPLACE INTO datasets VALUES (?, ?, ?, ?, ?, ?)",
                [(name, *one) for name, one in sizes.items()],
            )
            cursor.execute("INSERT INTO plans (toml, folder) VALUES (?, ?)", (plan.to_toml(), str(plan.folder)))
            return {(dataset, method, split): json.loads(identity) for dataset, method, split, identity in before}

    def finished(self):
        """Return {key: (status, metric names, again, version)} of every run that has a result."""
        with self._database.reading() as cursor:
            found = cursor.execute("SELECT key, status, vals, again, version FROM runs").fetchall()
            return {
                key: (status, set(json.loads(vals)), bool(again), version)
                for key, status, vals, again, version in found
            }

    def result(self, key):
        """Return (status, error) of a run, or None."""
        with self._database.reading() as cursor:
            return cursor.execute("SELECT status, error FROM runs WHERE key = ?", (key,)).fetchone()

    def known(self, tune_key):
        """Return what was tuned under this key, as a list of Fold."""
        query = (
            "SELECT point, fold, vals, fit_seconds, gap, evaluations, processor_seconds FROM folds WHERE tune_key = ?"
        )
        with self._database.reading() as cursor:
            found = cursor.execute(query, (tune_key,)).fetchall()
            return [
                Fold(point, fold, json.loads(vals), seconds, *map(_number, rest))
                for point, fold, vals, seconds, *rest in found
            ]

    def claim(self, key, since):
        """Claim a run; return "ours", "theirs" (a living process has it) or "done" (it has a result after `since`)."""
        owner = self._own()
        with self._database.writing() as cursor:
            if cursor.execute("SELECT 1 FROM runs WHERE key = ? AND finished >= ?", (key, since)).fetchone():
                return "done"
            found = cursor.execute("SELECT owner FROM claims WHERE key = ?", (key,)).fetchone()
            if found and is_alive(self._owners, found[0]):
                return "theirs"
            cursor.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (key, owner.name))
        return "ours"

    def save(self, run, outcome, version):
        """Write a run and its tuning, and give up the claim, at once."""
        with self._database.writing() as cursor:
            _insert(cursor, run, outcome, version)
            _insert_folds(cursor, run.tune_key, outcome.tuning)
            cursor.execute("DELETE FROM claims WHERE key = ?", (run.key,))

    def save_other(self, run, tuning, outcome, version):
        """Write what the fits of another run have shown of this one: its tuning, and its result unless it is None."""
        with self._database.writing() as cursor:
            _insert_folds(cursor, run.tune_key, tuning)
            if outcome is not None:
                _insert(cursor, run, outcome, version)

    def close(self):
        """Give up all claims and close the file; the store can be used again."""
        if self._owner is not None:
            self._owner.close()
            self._owner = None
        self._database.close()

    @property
    def _owners(self):
        return self.path / "locks"

    def _own(self):
        if self._owner is None:
            self._owner = Owner(self._owners)
        return self._owner

    def __repr__(self):
        return f"Store({str(self.path)!r})"


def _insert(cursor, run, outcome, version):
    record = (
        *(run.key, outcome.status, outcome.error, outcome.trace, int(outcome.again)),
        *(json.dumps(outcome.values), json.dumps(outcome.params)),
        *(outcome.tune_seconds, outcome.train_seconds, outcome.test_seconds, outcome.processor_seconds),
        *(outcome.gap, outcome.evaluations, run.task.seed, version, outcome.machine, time.time()),
    )
    cursor.execute(f"INSERT OR REPLACE INTO runs VALUES ({', '.join('?' * len(record))})", record)


def _insert_folds(cursor, tune_key, folds):
    lines = [(tune_key, one.point, one.fold, json.dumps(one.values), *one[3:]) for one in folds]
    cursor.executemany("INSERT OR REPLACE INTO folds VALUES (?, ?, ?, ?, ?, ?, ?, ?)", lines)


def _number(value):
    return float("nan") if value is None else value
