"""Explain cells that are far from the paper's: changes of the plan, each with the cells that it moves near."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rbrl.experiments.tables import MISSING, Cell, Table, count, spread, word
from rbrl.metrics import get_metric
from studies.reproduction.cells import CELL, FAR, NEAR, cells, short_title, signed
from studies.reproduction.paper import OURS, as_published
from studies.reproduction.recorded import Source, by_hand, stem

KEYS = {"title", "change", "text", "methods", "metrics", "datasets"}


@dataclass(frozen=True)
class Cause:
    """A change of the plan, and the cells that it may explain.

    Parameters
    ----------
    title, change, text : str
        Title and text are shown. The change is the end of the name of the plan that makes it, after the name of the plan
        without it: "hamming-loss" for paper-hamming-loss. The results of that plan show what it does.
    methods, metrics, datasets : tuple of str
        Cells that it may explain; empty means all.

    Examples
    --------
    >>> Cause("Hamming loss is the criterion", "hamming-loss", "").plan("paper")
    'paper-hamming-loss'
    """

    title: str
    change: str
    text: str
    methods: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()

    def plan(self, shown: str) -> str:
        """The name of the plan that makes this change in another."""
        return f"{shown}-{self.change}"

    def covers(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Return True for the cells of a frame that it may explain."""
        named = {"method": self.methods, "metric": self.metrics, "dataset": self.datasets}
        chosen = [frame[column].isin(names) for column, names in named.items() if names]
        return np.logical_and.reduce([np.ones(len(frame), dtype=bool), *chosen])


class Explained(NamedTuple):
    """Far cells, with what was tried on them.

    Attributes
    ----------
    causes : list of Cause
        Causes that were read.
    variants : dict of str to DataFrame
        The cells with each change of which there are results, by change.
    cells : DataFrame
        The far cells; see `explain`.
    """

    causes: list[Cause]
    variants: dict[str, pd.DataFrame]
    cells: pd.DataFrame


def read_causes(path: Path) -> list[Cause]:
    """Read a TOML file of tables ``[[cause]]``; an absent file has none."""
    if not path.is_file():
        return []
    causes = []
    for i, table in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("cause", [])):
        if not {"title", "change", "text"} <= set(table) <= KEYS:
            must = f"must have title, change and text, and of {sorted(KEYS)}"
            raise ValueError(f"{path}: cause {i} {must}. Got {sorted(table)}.")
        metrics = tuple(get_metric(name).name for name in table.get("metrics", ()))
        methods, datasets = (tuple(table.get(key, ())) for key in ("methods", "datasets"))
        title, change, text = (table[key].strip() for key in ("title", "change", "text"))
        causes.append(Cause(title, change, text, methods, metrics, datasets))
    return causes


def explained(frame: pd.DataFrame, source: Source, plan: str = "paper", splits: Sequence[int] = ()) -> Explained:
    """Explain the far cells of a plan by the causes that causes.toml names.

    Parameters
    ----------
    frame : DataFrame
        Result of `cells`.
    source : Recorded or Stored
        Source of the results with a change.
    plan : str
        Plan of the cells.
    splits : sequence of int
        Splits that count; empty means all.
    """
    causes = read_causes(by_hand("causes.toml"))
    variants = {}
    for cause in causes:
        name = cause.plan(stem(plan))
        rows = source.rows(name) if source.has(name) else pd.DataFrame()
        rows = rows[rows.split.isin(splits)] if splits and len(rows) else rows
        if len(rows):
            variants[cause.change] = cells(as_published(rows))
    return Explained(causes, variants, explain(frame, causes, variants))


def _is_near(method: pd.Series, distance: ArrayLike) -> NDArray[np.bool_]:
    """Return True for cells that need no explanation: of RBRL those at most 2 worse, of others those within 3."""
    return np.where(method == OURS, np.asarray(distance) >= -NEAR, np.abs(distance) <= FAR)


def far_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the cells to explain: farther than 3, and of RBRL those worse by more than 2."""
    return frame[frame.distance.notna() & ~_is_near(frame.method, frame.distance)]


def effects(frame: pd.DataFrame, cause: Cause, variant: pd.DataFrame) -> pd.DataFrame:
    """Count the far cells of each method that a change moves near, and the near ones that it moves away."""
    both = frame.merge(variant[[*CELL, "distance"]].rename(columns={"distance": "moved"}), on=CELL)
    both = both[both.distance.notna() & both.moved.notna() & cause.covers(both)]
    near, near_then = (_is_near(both.method, both[column]) for column in ("distance", "moved"))
    both = both.assign(near=~near & near_then, away=near & ~near_then)
    return both.groupby("method", sort=False)[["near", "away"]].sum()


def explain(frame: pd.DataFrame, causes: Sequence[Cause], variants: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Find the first cause of each far cell: its change moves the cell near, and more cells of its method near than away.

    Parameters
    ----------
    frame : DataFrame
        Result of `cells`.
    causes : sequence of Cause
    variants : dict of str to DataFrame
        The cells with a change, by change.

    Returns
    -------
    DataFrame
        The far cells, with the columns cause (number, or -1) and moved (the distance with that change).
    """
    far = far_cells(frame).assign(cause=-1, moved=float("nan"))
    for i, cause in enumerate(causes):
        if cause.change not in variants:
            continue
        counted = effects(frame, cause, variants[cause.change])
        helped = counted.index[counted.near > counted.away]
        there = variants[cause.change].set_index(CELL).distance
        moved = there.reindex(pd.MultiIndex.from_frame(far[CELL])).to_numpy()
        open_cells = (far.cause < 0) & far.method.isin(helped) & cause.covers(far)
        found = open_cells & _is_near(far.method, moved)
        far.loc[found, "cause"] = i
        far.loc[found, "moved"] = moved[found]
    return far


def effect_table(frame: pd.DataFrame, causes: Sequence[Cause], variants: Mapping[str, pd.DataFrame]) -> Table:
    """Number of far cells of each method, and the numbers that each change moves near and away."""
    known = [cause for cause in causes if cause.change in variants]
    counted = {cause.title: effects(frame, cause, variants[cause.change]) for cause in known}
    methods = list(dict.fromkeys(frame.method[frame.distance.notna()]))
    far = far_cells(frame).groupby("method").size().reindex(methods, fill_value=0)
    rows = [(word("No change"), *(count(int(number)) for number in far))]
    for title, one in counted.items():
        moves = {method: f"−{one.near[method]} +{one.away[method]}" for method in one.index}
        rows.append((word(title), *(Cell(moves.get(method, MISSING)) for method in methods)))
    table = pd.concat(counted, names=["change"]).reset_index() if counted else pd.DataFrame()
    title = "Far cells, those that a change moves near (−), and near ones that it moves away (+)"
    return Table("effects", title, ("Change", *methods), tuple(rows), table)


def far_table(frame: pd.DataFrame, title: str, causes: Sequence[Cause] = ()) -> Table:
    """Far cells with our mean, the paper's, the distance, and the distance with the change that explains it."""
    rows = []
    for cell in frame.itertuples():
        where = (word(cell.method), word(cell.dataset), word(short_title(get_metric(cell.metric))))
        means = (spread(cell.mean, cell.std), spread(cell.printed, cell.printed_std))
        away = Cell(signed(cell.distance), cell.distance)
        moved = Cell(signed(cell.moved), cell.moved) if cell.moved == cell.moved else Cell(MISSING)
        named = [word(causes[cell.cause].title if cell.cause >= 0 else "unexplained")] if causes else []
        rows.append((*where, *means, away, moved, *named))
    titles = ("Method", "Data set", "Metric", "Ours", "The paper", "Distance", "With the change")
    return Table("far", title, (*titles, "Change") if causes else titles, tuple(rows), frame, n_keys=3)
