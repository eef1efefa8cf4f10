"""Why cells are far from the paper's: changes of the plan, each with the cells that it moves near."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rbrl.metrics import get_metric
from rbrl.report.reproduction.cells import FAR, NEAR, signed
from rbrl.report.reproduction.names import OURS
from rbrl.report.table import MISSING, Cell, Table, word

KEYS = {"title", "change", "text", "methods", "metrics", "datasets"}
CELL = ["dataset", "metric", "method"]


@dataclass(frozen=True)
class Cause:
    """A change, and where it may matter.

    Parameters
    ----------
    title, text : str
        For people.
    change : str
        What the plan that makes the change is called, after the name of the plan without it: "hamming-loss" for
        paper-hamming-loss. Its results show what it does.
    methods, metrics, datasets : tuple of str
        Cells that it may explain; empty means all.
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

    def covers(self, cell) -> bool:
        """Whether a cell is among those that it may explain."""
        named = [(self.methods, cell.method), (self.metrics, cell.metric), (self.datasets, cell.dataset)]
        return all(not chosen or name in chosen for chosen, name in named)


def read_causes(path: Path) -> list[Cause]:
    """Read a TOML file of tables ``[[cause]]``; an absent file has none."""
    if not path.is_file():
        return []
    causes = []
    for i, table in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("cause", [])):
        unknown = set(table) - KEYS
        if unknown or not {"title", "change", "text"} <= set(table):
            raise ValueError(
                f"{path}: cause {i} must have title, change and text, and of {sorted(KEYS)}. Got {sorted(table)}."
            )
        metrics = tuple(get_metric(name).name for name in table.get("metrics", ()))
        methods, datasets = (tuple(table.get(key, ())) for key in ("methods", "datasets"))
        title, change, text = (table[key].strip() for key in ("title", "change", "text"))
        causes.append(Cause(title, change, text, methods, metrics, datasets))
    return causes


def far_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Cells to be explained: farther than 3, and of RBRL those worse by more than 2."""
    ours = (frame.method == OURS) & (frame.distance < -NEAR)
    others = (frame.method != OURS) & (frame.distance.abs() > FAR)
    return frame[ours | others]


def explain(frame: pd.DataFrame, causes: Sequence[Cause], variants: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Find for each far cell the first cause whose change brings it near.

    Parameters
    ----------
    frame : DataFrame
        As `cells` gives it.
    causes : sequence of Cause
    variants : dict of str to DataFrame
        The cells with a change, by change.

    Returns
    -------
    DataFrame
        The far cells, with the columns cause (number, or -1) and moved (the distance with that change).
    """
    known = {name: other.set_index(CELL).distance for name, other in variants.items()}
    found = []
    for cell in far_cells(frame).itertuples():
        number, moved = -1, float("nan")
        for i, cause in enumerate(causes):
            there = known[cause.change].get((cell.dataset, cell.metric, cell.method)) if cause.change in known else None
            if there is not None and cause.covers(cell) and _is_near(cell.method, there):
                number, moved = i, float(there)
                break
        found.append((number, moved))
    extra = pd.DataFrame(found, columns=["cause", "moved"], index=far_cells(frame).index)
    return far_cells(frame).join(extra)


def _is_near(method, distance):
    return distance >= -NEAR if method == OURS else abs(distance) <= FAR


def far_table(frame: pd.DataFrame, title: str, causes: Sequence[Cause] = ()) -> Table:
    """Far cells as lines: ours, the paper's, the distance, where a cause moves it, and which, if they are given."""
    rows = []
    for cell in frame.itertuples():
        metric = get_metric(cell.metric)
        where = (word(cell.method), word(cell.dataset), word(f"{metric.abbreviation} {metric.arrow}"))
        here = Cell(f"{cell.mean:.3f} ± {cell.std:.3f}", cell.mean)
        there = Cell(f"{cell.printed:.3f} ± {cell.printed_std:.3f}", cell.printed)
        away = Cell(signed(cell.distance), cell.distance)
        moved = Cell(signed(cell.moved), cell.moved) if cell.moved == cell.moved else Cell(MISSING)
        named = [word(causes[cell.cause].title if cell.cause >= 0 else "unexplained")] if causes else []
        rows.append((*where, here, there, away, moved, *named))
    titles = ("Method", "Data set", "Metric", "Ours", "The paper", "Distance", "With the change")
    return Table("far", title, (*titles, "Change") if causes else titles, tuple(rows), frame, n_keys=3)
