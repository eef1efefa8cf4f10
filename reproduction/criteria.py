"""What another criterion of cross-validation would have chosen, from the tunings that a store holds."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rbrl.experiments.data import Shelf
from rbrl.experiments.runs import by_point, expand
from rbrl.report.results import Results
from rbrl.report.table import Cell, Table, count, number, word
from rbrl.search.choose import choose
from reproduction.cells import COUNTS, cells, counts
from reproduction.paper import OURS, as_published

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


CHOSEN_ON = ("emotions", "arts")
VARIANTS = {
    "criterion": {
        "Mean rank over the six metrics": "paper",
        "Average precision": "paper-average-precision",
        "Hamming loss": "paper-hamming-loss",
        "Subset accuracy": "paper-subset-accuracy",
        "Mean rank over subset accuracy and average precision": "paper-two-metrics",
    },
    "search": {"Searched as the plan says": "paper", "Searched on the first split only": "paper-quick"},
    "dense": {"Dense sets standardised": "paper-quick", "Dense sets as they are": "paper-unscaled"},
    "text": {"Text sets as they are": "paper-quick", "Text sets standardised": "paper-scaled"},
}
TITLES = {
    "criterion": "Criterion of cross-validation",
    "search": "Splits that are searched",
    "dense": "Standardisation of dense features",
    "text": "Standardisation of text",
}


def variant_tables(source) -> list[Table]:
    """For each question that the paper leaves open: how near each answer comes, where it was chosen and elsewhere."""
    tables = []
    for question, plans in VARIANTS.items():
        known = {name: as_published(source.rows(plan)) for name, plan in plans.items() if source.has(plan)}
        answers = Counter(name for one in known.values() for name in one.datasets)
        sets = [name for name, number in answers.items() if number > 1]
        groups = {
            "chosen on": [d for d in sets if d in CHOSEN_ON],
            "reported on": [d for d in sets if d not in CHOSEN_ON],
        }
        for group, names in groups.items():
            complete = {answer: one for answer, one in known.items() if set(names) <= set(one.datasets)}
            if len(complete) > 1 and names:
                title = f"{TITLES[question]}, {group} {', '.join(names)}"
                table = variant_table(complete, names, title, f"{question}-{group.split()[0]}")
                tables += [table] if table.frame.cells.any() else []
    return tables


def choice_table(frame: pd.DataFrame) -> Table:
    """By method: how often the other criteria choose the same point as the first."""
    first, *others = dict.fromkeys(frame.criterion)
    rows, records = [], []
    for method, part in frame.groupby("method", sort=False):
        shares = {}
        for name in others:
            own = part[part.criterion == name]
            shares[name] = float((own.same * own.n_tunings).sum() / own.n_tunings.sum())
        rows.append((word(method), *(Cell(f"{share:.0%}", share) for share in shares.values())))
        records.append({"method": method, **shares})
    titles = ("Method", *(name.replace("_", " ").capitalize() for name in others))
    title = f"Share of searches in which another criterion chooses the same point as {first.replace('_', ' ')}"
    return Table("choices", title, titles, tuple(rows), pd.DataFrame(records))
