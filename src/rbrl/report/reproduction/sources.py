"""Where results come from: the files that are kept with the project, or a store."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

import rbrl
from rbrl.experiments import Plan, Store
from rbrl.report.reproduction.criteria import CRITERIA, choices, summarise_choices
from rbrl.report.reproduction.recorded import read_rows, read_table, write_rows, write_table

PLANS = (
    "paper",
    "paper-fair",
    "paper-quick",
    "paper-hamming-loss",
    "paper-average-precision",
    "paper-subset-accuracy",
    "paper-two-metrics",
    "paper-unscaled",
    "paper-scaled",
    "paper-frank-wolfe",
)


def project_folder(name: str, given: Path | None = None) -> Path:
    """A folder of the project: the one given, or NAME here, or NAME of the repository that the package lies in.

    Parameters
    ----------
    name : str
        "plans" or "results".
    given : path, optional
    """
    repository = Path(rbrl.__file__).resolve().parents[2]
    places = [given] if given else [Path(name), repository / name]
    for place in places:
        if place.is_dir():
            return place
    looked = ", ".join(str(place.absolute()) for place in places)
    raise FileNotFoundError(
        f"no folder {name}; looked for {looked}. It comes with the repository, not with the package: run there, or pass "
        "--run with a store that `rbrl compare` wrote"
    )


def read_plan(name: str) -> Plan:
    """The plan called NAME in the folder plans, or the one in a file NAME.toml."""
    return Plan.from_toml(_plan_file(name))


def _plan_file(name):
    return Path(name) if name.endswith(".toml") else project_folder("plans") / f"{name}.toml"


class Recorded:
    """Results from the files of a folder.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)

    def has(self, plan: str) -> bool:
        """Whether there are results of a plan."""
        return self._path(plan).is_file()

    def rows(self, plan: str) -> pd.DataFrame:
        """One row per run and metric, as `rbrl.experiments.Store.rows` has them."""
        return read_rows(self._found(self._path(plan)))[0]

    def facts(self, name: str) -> dict[str, Any]:
        """What a file says of itself."""
        return read_table(self._found(self.folder / f"{name}.csv"))[1]

    def effort(self, plan: str) -> pd.DataFrame:
        """One row per tuning, as `rbrl.experiments.Store.effort` has them."""
        return self.table(f"{stem(plan)}-tuning")

    def table(self, name: str) -> pd.DataFrame:
        """Any other table of the folder."""
        return read_table(self._found(self.folder / f"{name}.csv"))[0]

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        return (self.folder / f"{name}.csv").is_file()

    def _path(self, plan):
        return self.folder / f"{stem(plan)}.csv"

    def _found(self, path):
        if not path.is_file():
            raise FileNotFoundError(f"no such results: {path}; `rbrl reproduce export --run STORE` writes them")
        return path


class Stored:
    """Results from a store.

    Parameters
    ----------
    store : Store or path
        Written by `rbrl compare`, for one plan or several.
    """

    def __init__(self, store: Store | Path | str):
        self.store = store if isinstance(store, Store) else Store(_existing(store))

    def has(self, plan: str) -> bool:
        """Whether there is such a plan, and results of it."""
        return _plan_file(plan).is_file() and not self.rows(plan).empty

    def rows(self, plan: str) -> pd.DataFrame:
        """One row per run and metric."""
        return self.store.rows(read_plan(plan))

    def effort(self, plan: str) -> pd.DataFrame:
        """One row per tuning."""
        return self.store.effort(read_plan(plan))


def _existing(folder):
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"no such folder: {folder}; `rbrl compare` makes one")
    return folder


def stem(plan: str) -> str:
    """The name of a plan without folder and ending.

    Examples
    --------
    >>> stem("plans/paper-fair.toml"), stem("paper")
    ('paper-fair', 'paper')
    """
    return Path(plan).name.removesuffix(".toml")


def export(source: Stored, folder: Path, said: dict[str, Any], plans: Iterable[str] | None = None) -> list[Path]:
    """Write what a store has of some plans into a folder: rows, tunings, and what other criteria would choose.

    Tunings that a plan shares with one before it are written once. By default all plans of the reproduction.
    """
    files: list[Path] = []
    written: list[pd.DataFrame] = []
    for name in plans or PLANS:
        rows = source.rows(name)
        if rows.empty:
            continue
        own = said | {"plan": f"plans/{name}.toml"}
        files.append(write_rows(folder / f"{name}.csv", rows, own))
        effort = source.effort(name)
        if not any(effort.equals(other) for other in written):
            files.append(write_table(folder / f"{name}-tuning.csv", effort, own))
        written.append(effort)
    plan = read_plan("paper")
    found = choices(source.store, plan, CRITERIA)
    if len(found):
        files.append(write_table(folder / "criteria.csv", summarise_choices(found, plan.metrics), said))
    return files
