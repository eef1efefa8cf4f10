"""The tables of a store as data frames."""

import json
from typing import NamedTuple

import pandas as pd

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


def current(cursor):
    """The runs of the plan that was started last."""
    found = cursor.execute("SELECT dataset, method, split, key, tune_key FROM current ORDER BY position").fetchall()
    return [Asked(*line) for line in found]


def rows(cursor, asked, metrics=None):
    """One row per run and metric; a failed run has one for each of `metrics`, without values."""
    records = []
    for run in asked:
        for vals, *rest in cursor.execute(_RUN, (run.key,)).fetchall():
            values = json.loads(vals)
            records += [(*run[:3], metric, values.get(metric), *rest) for metric in metrics or values]
    return _frame(records, ROWS)


def tuning(cursor, asked):
    """One row per grid point, fold and metric."""
    records = []
    for run in _tuned(asked):
        for point, fold, vals, *rest in cursor.execute(_FOLDS, (run.tune_key,)).fetchall():
            values = json.loads(vals).items()
            records += [(*run[:3], point, fold, metric, value, *rest) for metric, value in values]
    return _frame(records, TUNING)


def effort(cursor, asked, within):
    """One row per tuning: its fits, counted and averaged."""
    records = [(*run[:3], *cursor.execute(_EFFORT, (within, run.tune_key)).fetchone()) for run in _tuned(asked)]
    return _frame([record for record in records if record[3]], EFFORT)


def datasets(cursor):
    """One row per data set that came from a file."""
    return _frame(cursor.execute("SELECT * FROM datasets ORDER BY rowid").fetchall(), DATASETS)


def failures(cursor, asked):
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
