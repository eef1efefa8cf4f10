"""The tables of a store as data frames."""

import json

import pandas as pd

ROWS = [
    *("dataset", "method", "split", "metric", "value", "status", "error", "params"),
    *("tune_seconds", "train_seconds", "test_seconds", "processor_seconds"),
    *("gap", "evaluations", "seed", "version", "machine"),
]
TUNING = ["dataset", "method", "split", "params", "fold", "metric", "value", "fit_seconds", "gap", "evaluations"]
DATASETS = ["dataset", "n_samples", "n_features", "n_labels", "cardinality", "density"]
FAILURES = ["dataset", "method", "split", "error", "trace"]

_RUNS = """
SELECT c.dataset, c.method, c.split, r.vals, r.status, r.error, r.params, r.tune_seconds, r.train_seconds,
       r.test_seconds, r.processor_seconds, r.gap, r.evaluations, r.seed, r.version, r.machine
FROM current c JOIN runs r USING (key) ORDER BY c.position
"""
_FOLDS = """
SELECT c.dataset, c.method, min(c.split), f.point, f.fold, f.vals, f.fit_seconds, f.gap, f.evaluations
FROM current c JOIN folds f USING (tune_key)
GROUP BY c.dataset, c.method, f.tune_key, f.point, f.fold ORDER BY min(c.position), f.point, f.fold
"""
_FAILURES = """
SELECT c.dataset, c.method, c.split, r.error, r.trace
FROM current c JOIN runs r USING (key) WHERE r.status = 'failed' ORDER BY c.position
"""
NUMBERS = ["value", "gap", "evaluations", *(name for name in [*ROWS, *TUNING] if name.endswith("_seconds"))]


def rows(cursor, metrics=None):
    """One row per run and metric; a failed run has one for each of `metrics`, without values."""
    records = []
    for dataset, method, split, vals, *rest in cursor.execute(_RUNS):
        values = json.loads(vals)
        for metric in metrics or values:
            records.append((dataset, method, split, metric, values.get(metric), *rest))
    return _frame(records, ROWS)


def tuning(cursor):
    """One row per grid point, fold and metric."""
    records = []
    for dataset, method, split, point, fold, vals, *rest in cursor.execute(_FOLDS):
        for metric, value in json.loads(vals).items():
            records.append((dataset, method, split, point, fold, metric, value, *rest))
    return _frame(records, TUNING)


def datasets(cursor):
    """One row per data set that came from a file."""
    return _frame(cursor.execute("SELECT * FROM datasets ORDER BY rowid").fetchall(), DATASETS)


def failures(cursor):
    """One row per failed run."""
    return _frame(cursor.execute(_FAILURES).fetchall(), FAILURES)


def _frame(records, columns):
    frame = pd.DataFrame.from_records(records, columns=columns)
    return frame.astype({name: float for name in columns if name in NUMBERS})
