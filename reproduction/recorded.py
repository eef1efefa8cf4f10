"""Recorded results: where they lie, how they are read and written, with what made them."""

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

import rbrl
from rbrl._version import __version__
from rbrl.experiments import Plan, Store, machine
from rbrl.report.results import KEYS
from reproduction.criteria import CRITERIA, choices, summarise_choices

MARK = "# "
FACTS = ("command", "version", "date", "machine")
DIGITS = "%.9g"


def facts(**others: Any) -> dict[str, Any]:
    """What every file says of itself: command, version, date and machine."""
    command = shlex.join(["rbrl", *sys.argv[1:]])
    return {
        "command": command,
        "version": __version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine(),
        **others,
    }


def write_table(path: Path | str, frame: pd.DataFrame, said: dict[str, Any]) -> Path:
    """Write a frame under its facts; a reader sees the old file or the new one, never a part."""
    head = "".join(f"{MARK}{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in said.items())
    return write_text(path, head + frame.to_csv(index=False, lineterminator="\n", float_format=DIGITS))


def read_table(path: Path | str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return (frame, facts) of a file that `write_table` wrote."""
    with open(path, encoding="utf-8") as stream:
        said, start = {}, stream.tell()
        while (line := stream.readline()).startswith(MARK):
            name, _, value = line.removeprefix(MARK).partition(": ")
            said[name], start = json.loads(value), stream.tell()
        stream.seek(start)
        return pd.read_csv(stream), said


def write_text(path: Path | str, text: str) -> Path:
    """Write a text file at once or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    return path


def write_rows(path: Path | str, rows: pd.DataFrame, said: dict[str, Any]) -> Path:
    """Write rows of a store, a line per run: a column for each metric, and machines by number."""
    machines = list(dict.fromkeys(rows.machine))
    runs = rows.drop(columns=["metric", "value"]).drop_duplicates(KEYS).set_index(KEYS)
    runs["machine"] = [machines.index(name) + 1 for name in runs.machine]
    values = rows.pivot(index=KEYS, columns="metric", values="value").reindex(runs.index)
    values = values[list(dict.fromkeys(rows.metric))]
    numbered = {f"machine {i}": name for i, name in enumerate(machines, 1)}
    said = {name: value for name, value in said.items() if name != "machine"} | numbered
    metrics = {"metrics": list(values.columns)}
    return write_table(path, values.join(runs).reset_index(), said | metrics)


def read_rows(path: Path | str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return (rows, facts) of a file that `write_rows` wrote; the rows as `rbrl.experiments.Store.rows` has them."""
    frame, said = read_table(path)
    metrics = said["metrics"]
    frame["machine"] = [said[f"machine {number}"] for number in frame.machine]
    frame["error"] = frame.error.astype(object).fillna("")
    rows = frame.melt(id_vars=[name for name in frame if name not in metrics], value_vars=metrics, var_name="metric")
    order = {name: i for i, name in enumerate(metrics)}
    place = {run: i for i, run in enumerate(frame[KEYS].itertuples(index=False, name=None))}
    rows["place"] = [place[run] for run in rows[KEYS].itertuples(index=False, name=None)]
    rows = rows.sort_values(["place", "metric"], key=lambda c: c.map(order) if c.name == "metric" else c)
    columns = [*KEYS, "metric", "value", *(name for name in frame if name not in (*KEYS, *metrics))]
    return rows[columns].reset_index(drop=True), said


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
