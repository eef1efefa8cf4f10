"""Rows of a small comparison, as a store gives them, and the means of a large one."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from rbrl.experiments import Results
from rbrl.metrics import PAPER_METRICS

TABLE_3 = Path(__file__).parents[1] / "golden" / "paper_table3.csv"


def make_rows(datasets=("sea", "hill", "wood", "town"), methods=("brl", "rbrl", "br"), n_splits=3, seed=0):
    """Rows in which a later method is worse on every metric and data set, except that the first two are close."""
    rng = np.random.default_rng(seed)
    rows = []
    for d, dataset in enumerate(datasets):
        for m, method in enumerate(methods):
            for split in range(n_splits):
                for metric in PAPER_METRICS:
                    loss = 0.2 + 0.05 * d + 0.1 * m + 0.001 * rng.random()
                    rows.append(
                        {
                            "dataset": dataset,
                            "method": method,
                            "split": split,
                            "metric": metric.name,
                            "value": 1 - loss if metric.greater_is_better else loss,
                            "status": "ok",
                            "error": None,
                            "params": json.dumps({"ridge": 10.0**m, "kernel": "rbf"}),
                            "tune_seconds": 5.0 + m,
                            "train_seconds": 0.5 * (m + 1),
                            "test_seconds": 0.01,
                            "gap": 1e-5,
                            "seed": split,
                            "version": "0.1.0",
                            "machine": "test bench",
                        }
                    )
    return pd.DataFrame(rows)


def failing(rows, dataset, method, split=None, error="MemoryError: no room"):
    """The same rows with some runs failed."""
    rows = rows.copy()
    where = (rows.dataset == dataset) & (rows.method == method)
    where &= True if split is None else rows.split == split
    rows.loc[where, ["value", "status", "error"]] = [np.nan, "failed", error]
    return rows


def published_results():
    """Nine methods on ten data sets, of which only means and deviations are known: the paper's Table 3."""
    return Results.from_summary(pd.read_csv(TABLE_3))
