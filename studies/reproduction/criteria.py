"""Choices of other criteria of cross-validation, from the tunings that a store holds."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from sklearn.model_selection import ParameterGrid

from rbrl.experiments import RUN_KEYS, Plan, Results, Store
from rbrl.experiments.tables import Cell, Table, count, number, word
from rbrl.selection import choose
from studies.reproduction.cells import COUNTS, cells, counts
from studies.reproduction.paper import OURS, as_published
from studies.reproduction.recorded import Source

BOTH = ("subset_accuracy", "average_precision")
CRITERIA = ("mean_rank", "average_precision", "hamming_loss", "subset_accuracy", BOTH)
# Data sets on which the choices that the paper leaves open were made; they are reported on the others.
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


def choices(store: Store, plan: Plan, criteria: Sequence[str | Sequence[str]] = CRITERIA) -> pd.DataFrame:
    """Return the choice of each criterion for each tuning of a plan.

    Parameters
    ----------
    store : Store
    plan : Plan
    criteria : sequence
        Each as `rbrl.selection.choose` takes it: a metric, several, or "mean_rank".

    Returns
    -------
    DataFrame
        Columns dataset, method, split, criterion, params (JSON), and the plan's metrics: means over folds at that
        choice. Tunings that are not complete are left out.
    """
    records = []
    for data in plan.datasets:
        for method in plan.methods:
            grid = list(dict.fromkeys(json.dumps(one, sort_keys=True) for one in ParameterGrid(method.on(data)[1])))
            # One method on one data set at a time: the whole plan's tunings do not fit into a small memory.
            tuning = store.tuning(plan.part([data.name], [method.name]))
            for split, part in tuning.groupby("split", sort=False):
                points = _complete_points(part, grid, plan)
                if len(points) < len(grid):
                    continue
                for criterion in criteria:
                    params = json.dumps(choose(points, criterion, plan.metrics), sort_keys=True)
                    means = [float(np.mean(values)) for values in points[params].values()]
                    records.append((data.name, method.name, split, name_of(criterion), params, *means))
    return pd.DataFrame(records, columns=[*RUN_KEYS, "criterion", "params", *plan.metrics])


def _complete_points(tuning: pd.DataFrame, grid: Sequence[str], plan: Plan) -> dict[str, dict[str, list[float]]]:
    """Values of each metric on the folds, by grid point: only points of the grid, and only complete ones."""
    known = tuning[tuning.metric.isin(plan.metrics)]
    n_values = known.groupby("params").size().reindex(grid, fill_value=0)
    complete = n_values.index[n_values == len(plan.metrics) * plan.tuning.folds]
    table = known[known.params.isin(complete)].pivot(index="params", columns=["metric", "fold"], values="value")
    table = table.reindex(complete).sort_index(axis="columns")
    by_metric = {metric: table[metric].to_numpy().tolist() for metric in plan.metrics} if len(table) else {}
    return {point: {name: values[i] for name, values in by_metric.items()} for i, point in enumerate(complete)}


def name_of(criterion: str | Sequence[str]) -> str:
    """A criterion in one word, several metrics joined by "and".

    Examples
    --------
    >>> name_of("coverage"), name_of(BOTH)
    ('coverage', 'subset_accuracy and average_precision')
    """
    return criterion if isinstance(criterion, str) else " and ".join(criterion)


def summarise_choices(frame: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """One row per data set, method and criterion: n_tunings, same (share that the first criterion chooses too), means."""
    first = frame[frame.criterion == frame.criterion.iloc[0]].set_index(RUN_KEYS).params
    reference = first.reindex(pd.MultiIndex.from_frame(frame[RUN_KEYS])).to_numpy()
    frame = frame.assign(same=frame.params.to_numpy() == reference, n_tunings=1)
    groups = frame.groupby(["dataset", "method", "criterion"], sort=False)
    parts = [groups.n_tunings.sum(), groups.same.mean(), groups[list(metrics)].mean()]
    return pd.concat(parts, axis=1).reset_index()


def variant_table(variants: Mapping[str, Results], datasets: Sequence[str], title: str, name: str) -> Table:
    """Distance of each variant of a plan from the paper's cells on some data sets, all of them on the same cells.

    Parameters
    ----------
    variants : dict of str to Results
        Results with the paper's names; see `studies.reproduction.paper.as_published`.
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
        median, good = number(found["median"], 1), word(f"{ours['good']} of {ours['cells']}")
        rows.append((word(key), *(count(found[column]) for column in COUNTS), median, good))
    titles = ("", *COUNTS.values(), "Median", f"{OURS}: within 2 or better")
    return Table(name, title, titles, tuple(rows), pd.DataFrame(records))


def variant_tables(source: Source) -> list[Table]:
    """Return tables for each choice that the paper leaves open: distances where it was made and on the other data sets."""
    tables = []
    for question, plans in VARIANTS.items():
        known = {name: as_published(source.rows(plan)) for name, plan in plans.items() if source.has(plan)}
        answers = Counter(name for one in known.values() for name in one.datasets)
        sets = [name for name, number in answers.items() if number > 1]
        for group, chosen in {"chosen on": True, "reported on": False}.items():
            names = [name for name in sets if (name in CHOSEN_ON) == chosen]
            complete = {answer: one for answer, one in known.items() if set(names) <= set(one.datasets)}
            if len(complete) > 1 and names:
                title = f"{TITLES[question]}, {group} {', '.join(names)}"
                table = variant_table(complete, names, title, f"{question}-{group.split()[0]}")
                tables += [table] if table.frame.cells.any() else []
    return tables


def choice_table(frame: pd.DataFrame) -> Table:
    """Share of searches in which the other criteria choose the same point as the first, by method."""
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
