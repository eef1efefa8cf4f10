"""Fit and test every point of the paper's grid on a split, and find the point nearest to the paper's six figures.

A choice that uses the test part is no result. It shows whether any choice of parameters could give the paper's figures.
Rank-SVMz is also fitted with other weights of the irrelevant labels.
"""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from rbrl import RankSVMz
from rbrl.datasets import CARDS, Dataset, load
from rbrl.experiments import Plan
from rbrl.experiments.tables import MISSING, Cell, Table, count, word
from rbrl.metrics import PAPER_METRICS
from rbrl.ranking_svm import HingePairs, zero_label_pairs
from rbrl.registry import METHODS, REGISTRY
from rbrl.selection import tune
from studies.reproduction.causes import explained
from studies.reproduction.cells import FAR, NEAR, cells, distance
from studies.reproduction.paper import as_published, key, printed
from studies.reproduction.recorded import Recorded, facts, read_plan, table_file, write_table
from studies.reproduction.studies import parts

TABLE = "oracle"
METRICS = [metric.name for metric in PAPER_METRICS]
SPLITS = (0, 1, 2)
PLAIN, DOUBLED, COUNTED = "1", "2", "|Y+|"
KEYS = ["dataset", "method", "weight", "split"]
# Time of one fit to the whole training part, relative to a fit to four of its five folds.
LARGER = 1.4


class DoubledRankSVMz(RankSVMz):
    """Rank-SVMz in which a violated irrelevant label costs 2 C / |Y-| instead of C / |Y-|."""

    @staticmethod
    def _pairs(Y: NDArray[Any], C: float, weights: NDArray[Any] | None = None) -> HingePairs:
        return _reweighted(zero_label_pairs(Y, C, weights), np.full(len(Y), 2.0))


class CountedRankSVMz(RankSVMz):
    """Rank-SVMz in which a violated irrelevant label costs C |Y+| / |Y-| instead of C / |Y-|."""

    @staticmethod
    def _pairs(Y: NDArray[Any], C: float, weights: NDArray[Any] | None = None) -> HingePairs:
        return _reweighted(zero_label_pairs(Y, C, weights), np.maximum(np.count_nonzero(Y > 0, axis=1), 1.0))


def _reweighted(pairs: HingePairs, factors: NDArray[np.float64]) -> HingePairs:
    """Multiply the cost of the pairs that the zero label should win by a factor for every row."""
    of_row = np.repeat(factors, np.diff(pairs.start))
    return replace(pairs, cap=np.where(pairs.winner == pairs.n_labels - 1, of_row, 1.0) * pairs.cap)


WEIGHTED = {DOUBLED: DoubledRankSVMz, COUNTED: CountedRankSVMz}


@dataclass(frozen=True)
class Search:
    """All points of a grid on one split.

    Parameters
    ----------
    dataset, method : str
        Names in the plan.
    weight : {"1", "2", "|Y+|"}
        Weight of irrelevant labels, for Rank-SVMz.
    split : int
    seconds : float
        Expected seconds, from the recorded searches.
    """

    dataset: str
    method: str
    weight: str
    split: int
    seconds: float


def unexplained(recorded: Recorded) -> dict[tuple[str, str], int]:
    """Return the number of far cells that no cause explains, by pair of data set and method."""
    far = explained(cells(as_published(recorded.rows("paper"))), recorded).cells
    names = {key(method.name): method.name for method in read_plan("paper").methods}
    left = [(row.dataset, names[key(row.method)]) for row in far[far.cause < 0].itertuples()]
    return dict(Counter(left))


def searches(recorded: Recorded) -> list[Search]:
    """Return a search for every pair with a far cell that no cause explains, and for Rank-SVMz with other weights.

    The cheapest come first. Last come searches that no far cell needs: other weights on dense data, to which the hypothesis
    does not apply, and the published weight where no cell is far.
    """
    plan, effort = read_plan("paper"), recorded.effort("paper")
    left, text = unexplained(recorded), {name for name, card in CARDS.items() if card.model == "linear"}
    asked = {(*pair, PLAIN): 1 for pair in left}
    asked |= {(data.name, "rank-svmz", one): 2 for data in plan.datasets if data.name in text for one in WEIGHTED}
    for data, weight in product(plan.datasets, (PLAIN, *WEIGHTED)):
        asked.setdefault((data.name, "rank-svmz", weight), 4)
    found = [
        (urgency * (1 + split) if urgency > 1 else 1, Search(*where, split, _expected(effort, *where[:2])))
        for (where, urgency), split in product(asked.items(), SPLITS)
    ]
    return [one for _, one in sorted(found, key=lambda pair: (pair[0] * pair[1].seconds, pair[1].split))]


def _expected(effort: pd.DataFrame, dataset: str, method: str) -> float:
    own = effort[(effort.dataset == dataset) & (effort.method == method)]
    return float((own.seconds / read_plan("paper").tuning.folds).mean() * LARGER)


def search(one: Search, plan: Plan, data: Dataset) -> pd.DataFrame:
    """The metrics of every point: a row per point, with its parameters as JSON, its gap and its seconds."""
    spec = next(method for method in plan.methods if method.name == one.method)
    params, grids = spec.on(next(entry for entry in plan.datasets if entry.name == one.dataset))
    estimator: Any = WEIGHTED.get(one.weight, REGISTRY[spec.use])(**params)
    if spec.non_empty is not None:
        estimator.set_params(non_empty=spec.non_empty)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=plan.splits.seed + one.split)
    train, test = parts(data, plan.splits.seed + one.split)
    X, Y = (_joined(*both) for both in zip(train, test))
    folds = [(np.arange(len(train.Y)), np.arange(len(train.Y), len(Y)))]
    options: dict[str, Any] = {
        "folds": folds,
        "metrics": plan.metrics,
        "convention": spec.convention or plan.convention,
    }
    tables = [(grid, tune(clone(estimator), grid, X, Y, **options)) for grid in grids]
    records = [
        {**one.__dict__, "params": _point(grid, row), **{name: row[name] for name in METRICS},
         "gap": row["gap"], "seconds": row["fit_seconds"]}
        for grid, table in tables for row in table.to_dict("records")
    ]  # fmt: skip
    return pd.DataFrame(records)


def _joined(first: Any, second: Any) -> Any:
    return sparse.vstack([first, second], format="csr") if sparse.issparse(first) else np.vstack([first, second])


def _point(grid: dict[str, list[Any]], row: dict[str, Any]) -> str:
    """The parameters of a row as the results of the plan write them."""
    values = {name: next(value for value in grid[name] if value == row[f"param_{name}"]) for name in grid}
    return json.dumps(values, sort_keys=True)


def run(
    recorded: Recorded,
    minutes: float,
    data_home: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
    wanted: Callable[[Search], bool] = lambda one: True,
) -> pd.DataFrame:
    """Run searches that are not recorded yet until the processor time is spent; record each at its end.

    Parameters
    ----------
    recorded : Recorded
    minutes : float
        No search is begun that should end after so many minutes of processor time.
    data_home : path, optional
    tell : callable
        Called with a line of text before every search.
    wanted : callable
        Selects searches.

    Returns
    -------
    DataFrame
        All that is recorded.
    """
    done = recorded.table(TABLE) if recorded.has_table(TABLE) else pd.DataFrame(columns=KEYS)
    done = done.astype({"weight": str}) if len(done) else done
    plan, loaded, used = read_plan("paper"), "", 0.0
    known = set(done[KEYS].itertuples(index=False, name=None))
    for one in filter(wanted, searches(recorded)):
        if (one.dataset, one.method, one.weight, one.split) in known or used + one.seconds > 60 * minutes:
            continue
        if loaded != one.dataset:
            data, loaded = load(one.dataset, data_home=data_home), one.dataset
        tell(f"{one.dataset} · {one.method} · weight {one.weight} · split {one.split}, about {one.seconds:.0f} s")
        started = time.process_time()
        found = search(one, plan, data)
        used += time.process_time() - started
        done = pd.concat([done, found], ignore_index=True) if len(done) else found
        write_table(table_file(recorded.folder, TABLE), done, facts(plan="studies/reproduction/plans/paper.toml"))
    return done


def best_points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return, for each data set, method and weight, the point whose figures are nearest to the paper's.

    Parameters
    ----------
    frame : DataFrame
        Result of `run`.

    Returns
    -------
    DataFrame
        One row each: n_points and n_splits that were tried; params of the point with the most of the six means within 3
        of the paper's standard deviations, then within 2, then with the smallest largest distance; within3, within2,
        largest.
    """
    rows = []
    for (dataset, method, weight), part in frame.astype({"weight": str}).groupby(KEYS[:3], sort=False):
        distances = _distances(part, dataset, method)
        found = pd.DataFrame(
            {
                "within3": (distances <= FAR).sum(axis=1),
                "within2": (distances <= NEAR).sum(axis=1),
                "largest": distances.max(axis=1),
            }
        )
        best = found.sort_values(["within3", "within2", "largest"], ascending=[False, False, True], kind="stable").iloc[
            0
        ]
        counts = {"n_points": len(found), "n_splits": part.split.nunique(), "params": best.name}
        counts |= {"within3": int(best.within3), "within2": int(best.within2), "largest": float(best.largest)}
        rows.append({"dataset": dataset, "method": method, "weight": weight, **counts})
    return pd.DataFrame(rows)


def _distances(part: pd.DataFrame, dataset: str, method: str) -> pd.DataFrame:
    """Return, by point, the distance of each of the six means over splits from the paper's, in its standard deviations."""
    means = part.groupby("params", sort=False)[METRICS].mean()
    table = printed("results", mean="printed", std="printed_std")
    table = table[(table.dataset == dataset) & (table.method.map(key) == key(method))].set_index("metric")
    return pd.DataFrame(
        {name: np.abs(distance(means[name], table.printed[name], table.printed_std[name], 1)) for name in METRICS},
        index=means.index,
    )


def oracle_table(frame: pd.DataFrame, recorded: Recorded | None = None) -> Table:
    """Number of the six figures that the best point of the grid gives, for each pair with an unexplained cell.

    Parameters
    ----------
    frame : DataFrame
        Result of `run`.
    recorded : Recorded, optional
        If given, pairs that were not searched are lines as well.
    """
    found = best_points(frame)
    found = found[found.weight == PLAIN].set_index(["dataset", "method"])
    rows, records = [], []
    for one, n_far in (unexplained(recorded) if recorded else dict.fromkeys(found.index, None)).items():
        title = next(method.title for method in METHODS if method.name == one[1])
        head = (word(title), word(one[0]), Cell(MISSING) if n_far is None else count(n_far))
        records.append(
            {"dataset": one[0], "method": one[1], "far": n_far} | (dict(found.loc[one]) if one in found.index else {})
        )
        if one not in found.index:
            rows.append((*head, *[Cell(MISSING)] * 4, word("not run")))
            continue
        best = found.loc[one]
        counts = (
            count(int(best.n_splits)),
            count(int(best.n_points)),
            count(int(best.within3)),
            count(int(best.within2)),
        )
        rows.append((*head, *counts, word("yes" if best.within3 == len(METRICS) else "no")))
    titles = ("Method", "Data set", "Far", "Splits", "Points", "Best: within 3", "Within 2", "All six?")
    title = "Does any point of the grid give the paper's six figures?"
    note = (
        "Far: unexplained cells of the pair. Best: of the six means over these splits at one point of the grid, chosen on "
        "the test rows for nearness to the paper, how many lie within 3 and within 2 of its standard deviations."
    )
    rows.sort(key=lambda row: -(row[5].value if isinstance(row[5].value, int | float) else -1))
    return Table("oracle", title, titles, tuple(rows), pd.DataFrame(records), n_keys=0, note=note)


def weight_table(frame: pd.DataFrame) -> Table:
    """Rank-SVMz with other weights of the irrelevant labels: how many of the six figures the best point gives."""
    found = best_points(frame)
    found = found[found.method == "rank-svmz"]
    rows = []
    for dataset in [data.name for data in read_plan("paper").datasets]:
        own = found[found.dataset == dataset].set_index("weight")
        line = [own.loc[one] if one in own.index else None for one in (PLAIN, *WEIGHTED)]
        rows.append((word(dataset), *(Cell(MISSING) if one is None else _of_six(one) for one in line)))
    titles = ("Data set", "C / |Y−|, the published model", "2 C / |Y−|", "|Y+| C / |Y−|")
    note = "How many of the paper's six figures the best point of the grid gives, within 3 of its standard deviations."
    return Table("weights", "Rank-SVMz by the weight of irrelevant labels", titles, tuple(rows), found, note=note)


def _of_six(best: pd.Series) -> Cell:
    splits = f"{best.n_splits} split{'' if best.n_splits == 1 else 's'}"
    return Cell(f"{best.within3} of {len(METRICS)} ({splits})", int(best.within3))
