"""What another criterion of cross-validation would have chosen, from the tunings that a store holds."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rbrl.experiments.data import Shelf
from rbrl.experiments.folds import by_point
from rbrl.experiments.runs import expand
from rbrl.report.reproduction.cells import COUNTS, cells, counts
from rbrl.report.reproduction.names import OURS
from rbrl.report.results import Results
from rbrl.report.table import Table, count, number, word
from rbrl.search.choose import choose

BOTH = ("subset_accuracy", "average_precision")
CRITERIA = ("mean_rank", "average_precision", "hamming_loss", "subset_accuracy", BOTH)


def choices(store, plan, criteria: Sequence[str | Sequence[str]] = CRITERIA) -> pd.DataFrame:
    """What each criterion chooses of each tuning of a plan.

    Returns
    -------
    DataFrame
        Columns dataset, method, split, criterion, params (JSON), and the plan's metrics: means over folds at that
        choice. Tunings that are not complete are left out.
    """
    records = []
    for run in expand(plan, Shelf(plan.folder)):
        if not run.tunes:
            continue
        points = by_point(run.task, store.known(run.tune_key))
        if len(points) < len(run.task.points):
            continue
        for criterion in criteria:
            params = json.dumps(choose(points, criterion, run.task.metrics), sort_keys=True)
            means = {metric: float(np.mean(values)) for metric, values in points[params].items()}
            records.append((run.dataset, run.method, run.split, name_of(criterion), params, *means.values()))
    return pd.DataFrame(records, columns=["dataset", "method", "split", "criterion", "params", *plan.metrics])


def name_of(criterion: str | Sequence[str]) -> str:
    """A criterion in one word, several metrics joined by "and"."""
    return criterion if isinstance(criterion, str) else " and ".join(criterion)


def summarise_choices(frame: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """One row per data set, method and criterion: n_tunings, same (share that the first criterion chooses too), means."""
    first = frame[frame.criterion == frame.criterion.iloc[0]].set_index(["dataset", "method", "split"]).params
    reference = first.reindex(pd.MultiIndex.from_frame(frame[["dataset", "method", "split"]])).to_numpy()
    frame = frame.assign(same=frame.params.to_numpy() == reference, n_tunings=1)
    groups = frame.groupby(["dataset", "method", "criterion"], sort=False)
    parts = [groups.n_tunings.sum(), groups.same.mean(), groups[list(metrics)].mean()]
    return pd.concat(parts, axis=1).reset_index()


def variant_table(variants: Mapping[str, Results], datasets: Sequence[str], title: str, name: str) -> Table:
    """How near the paper's cells each variant of a plan comes on some data sets, all of them on the same cells.

    Parameters
    ----------
    variants : dict of str to Results
        With the paper's names; see `as_published`.
    datasets : sequence of str
    title, name : str
    """
    frames = {key: cells(results) for key, results in variants.items()}
    known = [frame.dataset.isin(datasets) & (frame.kind != "missing") for frame in frames.values()]
    common = np.logical_and.reduce(known) if known else np.zeros(0, dtype=bool)
    rows, records = [], []
    for key, frame in frames.items():
        found, ours = counts(key, frame[common]), counts(key, frame[common & (frame.method == OURS)])
        records.append(found | {"ours_good": ours["good"], "ours_cells": ours["cells"]})
        rows.append(
            (
                word(key),
                *(count(found[column]) for column in COUNTS),
                number(found["median"], 1),
                word(f"{ours['good']} of {ours['cells']}"),
            )
        )
    titles = ("", *COUNTS.values(), "Median", f"{OURS}: within 2 or better")
    return Table(name, title, titles, tuple(rows), pd.DataFrame(records))
