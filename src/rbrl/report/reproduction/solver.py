"""Our default solver and the authors' algorithm, on the same data and parameters in the same run (beside Table 7)."""

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from rbrl.datasets import Dataset
from rbrl.exceptions import ConvergenceWarning
from rbrl.report.studies import model_for, parts
from rbrl.report.table import Cell, Table, count, number, seconds, word
from rbrl.solvers import APG

AUTHORS = APG(lipschitz="paper", stop="paper")
LONG = 2.0


def against_authors(
    datasets: Mapping[str, Dataset], params: Mapping[str, dict], tell: Callable[[str], None] | None = None
) -> pd.DataFrame:
    """Fit RBRL to the training part of split 0 by both.

    Parameters
    ----------
    datasets : dict of str to Dataset
    params : dict of str to dict
        RBRL's parameters on each data set.
    tell : callable, optional
        Told of each data set before it is done.

    Returns
    -------
    DataFrame
        One row per data set: ridge, ranking, nuclear; and for ours and theirs seconds, evaluations, iterations,
        objective and certified gap, from the higher of the two lower bounds. Both work with one thread.
    """
    records = []
    for name, dataset in datasets.items():
        if tell:
            tell(f"{name}: {params[name]}")
        train, _ = parts(dataset)
        model = model_for(dataset, **params[name])
        record: dict[str, Any] = {
            "dataset": name,
            **{key: getattr(model, key) for key in ("ridge", "ranking", "nuclear")},
        }
        # Once unmeasured, so that what is compiled on first use is not in the figures.
        _measured(model, train)
        for who, solver in (("ours", "auto"), ("theirs", AUTHORS)):
            record |= {
                f"{key}_{who}": value for key, value in _measured(clone(model).set_params(solver=solver), train).items()
            }
        records.append(_from_better_bound(record))
    return pd.DataFrame(records)


def _from_better_bound(record):
    """Take both gaps from the higher bound: far from the optimum a result's own says more of the bound than of it."""
    bound = max(record[f"objective_{who}"] / (1 + record[f"gap_{who}"]) for who in ("ours", "theirs"))
    return record | {f"gap_{who}": record[f"objective_{who}"] / bound - 1 for who in ("ours", "theirs")}


def _measured(model, train):
    """Seconds of a fit, the best of three where it is short, and what came out."""
    taken = []
    while not taken or (sum(taken) < LONG and len(taken) < 3):
        started = time.perf_counter()
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = clone(model).fit(*train)
        taken.append(time.perf_counter() - started)
    found = {"evaluations": fitted.n_evaluations_, "iterations": fitted.n_iter_}
    return {"seconds": min(taken), **found, "objective": fitted.objective_, "gap": fitted.gap_}


def solver_table(frame: pd.DataFrame) -> Table:
    """Seconds of both, their ratio, and how near the optimum each ends."""
    rows = []
    for row in frame.itertuples():
        ratio = row.seconds_theirs / row.seconds_ours
        rows.append(
            (
                word(row.dataset),
                seconds(row.seconds_ours),
                seconds(row.seconds_theirs),
                Cell(f"{ratio:.3g}×", ratio),
                number(row.evaluations_ours, 0),
                count(row.iterations_theirs),
                *(Cell(f"{value:.0e}", value) for value in (row.gap_ours, row.gap_theirs)),
            )
        )
    titles = (
        "Data set",
        "Ours, s",
        "Authors', s",
        "Ratio",
        "Our evaluations",
        "Their iterations",
        "Our gap",
        "Their gap",
    )
    ratio = frame.seconds_theirs / frame.seconds_ours
    mean = np.exp(np.log(ratio).mean())
    note = f"Geometric mean of the ratios: {mean:.3g}. Gaps are certified: proved relative distances from the optimum."
    title = "RBRL by our solver and by a replay of the authors' algorithm, on split 0 with the parameters chosen there"
    return Table("solver", title, titles, tuple(rows), frame, note=note)
