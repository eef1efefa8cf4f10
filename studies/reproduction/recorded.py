"""Read and write plans and recorded results; each file has the facts of its origin."""

import io
import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from rbrl import __version__
from rbrl.experiments import RUN_KEYS, DatasetLoader, Plan, Store, expand, machine
from studies.text_files import read_text, write_text

# Folder of plans and results; the pages about them are in docs.
FOLDER = Path(__file__).resolve().parent
PLANS = (
    *("paper", "paper-fair", "paper-quick"),
    *("paper-hamming-loss", "paper-average-precision", "paper-subset-accuracy", "paper-two-metrics"),
    *("paper-unscaled", "paper-scaled", "paper-frank-wolfe"),
)
COMMAND = "python -m studies.reproduction"
# Facts about a file stand at its head, in lines that start so.
MARK = "# "
DIGITS = "%.9g"
# Columns of a file that a store does not have: the hash of all that a record depends on, and the date of export.
MARKS = ["key", "recorded"]

Facts: TypeAlias = dict[str, Any]
# A run among those of a plan: data set, method, split.
Place: TypeAlias = tuple[str, str, int]


def facts(**others: Any) -> Facts:
    """Return the facts of a new file: command, version, date and machine."""
    made = {"command": shlex.join([*COMMAND.split(), *sys.argv[1:]]), "version": __version__}
    return made | {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine(), **others}


def write_table(path: Path, frame: pd.DataFrame, facts_of_file: Facts) -> Path:
    """Write a frame under its facts; a reader sees the old file or the new one, never a part."""
    head = "".join(f"{MARK}{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in facts_of_file.items())
    return write_text(path, head + frame.to_csv(index=False, lineterminator="\n", float_format=DIGITS))


def read_table(path: Path) -> tuple[pd.DataFrame, Facts]:
    """Return (frame, facts) of a file that `write_table` wrote."""
    facts_of_file: Facts = {}
    text = read_text(path)
    while text.startswith(MARK):
        line, _, text = text.partition("\n")
        name, _, value = line.removeprefix(MARK).partition(": ")
        facts_of_file[name] = json.loads(value)
    return pd.read_csv(io.StringIO(text)), facts_of_file


def table_file(folder: Path, name: str) -> Path:
    """Return the file of a table in a folder of results."""
    return folder / f"{name}.csv.gz"


def run_keys(plan: Plan) -> dict[Place, str]:
    """Return the runs of a plan, each with the hash of all that its result depends on."""
    return {run.place: run.key for run in expand(plan, DatasetLoader(plan.folder))}


def search_keys(plan: Plan) -> dict[Place, str]:
    """Return the searches of a plan by their run, each with the hash of all that it depends on."""
    runs = [run for run in expand(plan, DatasetLoader(plan.folder)) if run.tune_key]
    first = {(*run.place[:2], run.tune_key): run.place for run in reversed(runs)}
    return {run.place: str(run.tune_key) for run in runs if first[(*run.place[:2], run.tune_key)] == run.place}


def completed(own: pd.DataFrame, keys: Mapping[Place, str], kept: Iterable[pd.DataFrame], date: str) -> pd.DataFrame:
    """Complete the records of a plan with records of other plans that depend on the same.

    Parameters
    ----------
    own : DataFrame
        Rows or efforts of a store.
    keys : dict
        Result of `run_keys` or `search_keys`.
    kept : iterable of DataFrame
        Such records with the columns `key` and `recorded`; the first that has a key is taken.
    date : str
        Date of the store's records.

    Returns
    -------
    DataFrame
        In the order of `keys`, with both columns.
    """
    own = own.assign(key=[keys[place] for place in own[RUN_KEYS].itertuples(index=False, name=None)], recorded=date)
    parts: dict[str, pd.DataFrame] = {}
    for frame in (own, *kept):
        parts |= {key: part for key, part in frame.groupby("key") if key not in parts}
    # Another plan may have another name for the method.
    found = [parts[key].assign(**dict(zip(RUN_KEYS, place))) for place, key in keys.items() if key in parts]
    return pd.concat(found, ignore_index=True).reindex(columns=list(own)) if found else own


def write_rows(path: Path, rows: pd.DataFrame, facts_of_file: Facts) -> Path:
    """Write rows of a store, a line per run: a column for each metric, and machines by number."""
    machines = list(dict.fromkeys(rows.machine))
    runs = rows.drop(columns=["metric", "value"]).drop_duplicates(RUN_KEYS).set_index(RUN_KEYS)
    runs["machine"] = [machines.index(name) + 1 for name in runs.machine]
    values = rows.pivot(index=RUN_KEYS, columns="metric", values="value").reindex(runs.index)
    values = values[list(dict.fromkeys(rows.metric))]
    numbered = {f"machine {i}": name for i, name in enumerate(machines, 1)}
    facts_of_file = {name: value for name, value in facts_of_file.items() if name != "machine"} | numbered
    return write_table(path, values.join(runs).reset_index(), facts_of_file | {"metrics": list(values.columns)})


def read_rows(path: Path) -> tuple[pd.DataFrame, Facts]:
    """Return (rows, facts) of a file that `write_rows` wrote; the rows as `rbrl.experiments.Store.rows` has them."""
    frame, facts_of_file = read_table(path)
    metrics = facts_of_file["metrics"]
    frame["machine"] = [facts_of_file[f"machine {number}"] for number in frame.machine]
    frame["error"] = frame.error.astype(object).fillna("")
    others = [name for name in frame if name not in metrics]
    rows = frame.assign(place=range(len(frame))).melt([*others, "place"], metrics, var_name="metric")
    # A stable sort: of each run the metrics stay in the order of their columns.
    rows = rows.sort_values("place", kind="stable")
    columns = [*RUN_KEYS, "metric", "value", *(name for name in others if name not in RUN_KEYS)]
    return rows[columns].reset_index(drop=True), facts_of_file


def plan_file(name: str) -> Path:
    """Return the file of the plan called NAME; NAME may also be the path of a file, with the ending .toml."""
    return Path(name) if name.endswith(".toml") else FOLDER / "plans" / f"{name}.toml"


def read_plan(name: str) -> Plan:
    """Return the plan called NAME in the folder plans, or the one in a file NAME.toml."""
    return Plan.from_toml(plan_file(name))


def results_folder(given: Path | None = None) -> Path:
    """Return the folder of recorded results: the given one, or the reproduction's own."""
    return given or _from_here(FOLDER / "results")


def docs_folder() -> Path:
    """Return the folder of documentation that the pages are written into."""
    return _from_here(FOLDER.parents[1] / "docs")


def by_hand(name: str) -> Path:
    """Return the path of a hand-written file: causes.toml, or a part of a page in the folder notes."""
    return FOLDER / name


def _from_here(path: Path) -> Path:
    """Return a path relative to the working folder, if it is in there."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def stem(plan: str) -> str:
    """Return the name of a plan without folder and ending.

    Examples
    --------
    >>> stem("plans/paper-fair.toml"), stem("paper")
    ('paper-fair', 'paper')
    """
    return Path(plan).name.removesuffix(".toml")


class Recorded:
    """Results from the files of a folder.

    Parameters
    ----------
    folder : path

    Examples
    --------
    >>> recorded = Recorded(results_folder())
    >>> recorded.has("paper"), recorded.has("paper-nonsense")
    (True, False)
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def has(self, plan: str) -> bool:
        """Return True if there are results of a plan."""
        return self.has_table(stem(plan))

    def rows(self, plan: str) -> pd.DataFrame:
        """Return one row per run and metric, as `rbrl.experiments.Store.rows` does."""
        return read_rows(self._path(stem(plan)))[0].drop(columns=MARKS, errors="ignore")

    def effort(self, plan: str) -> pd.DataFrame:
        """Return one row per tuning, as `rbrl.experiments.Store.effort` does."""
        return self.table(f"{stem(plan)}-tuning").drop(columns=MARKS, errors="ignore")

    def dates(self, plan: str) -> dict[str, int]:
        """Return the number of runs of a plan by date of record; empty for a file without dates."""
        rows = read_rows(self._path(stem(plan)))[0].drop_duplicates(RUN_KEYS)
        return rows.recorded.value_counts().sort_index().to_dict() if "recorded" in rows else {}

    def kept(self) -> tuple[list[pd.DataFrame], list[pd.DataFrame]]:
        """Return (rows, efforts) of all plans, with the columns `key` and `recorded`."""
        plans = [plan for plan in PLANS if self.has(plan)]
        tuned = [f"{plan}-tuning" for plan in plans if self.has_table(f"{plan}-tuning")]
        return [read_rows(self._path(plan))[0] for plan in plans], [self.table(name) for name in tuned]

    def facts(self, name: str) -> Facts:
        """Return the facts of a file."""
        return read_table(self._path(name))[1]

    def table(self, name: str) -> pd.DataFrame:
        """Return any other table of the folder."""
        return read_table(self._path(name))[0]

    def has_table(self, name: str) -> bool:
        """Return True if there is such a table."""
        return table_file(self.folder, name).is_file()

    def _path(self, name: str) -> Path:
        path = table_file(self.folder, name)
        if not path.is_file():
            raise FileNotFoundError(f"no such results: {path}; `{COMMAND} export --run STORE` writes them")
        return path


class Stored:
    """Results from a store.

    Parameters
    ----------
    store : Store or path
        Written by `rbrl compare`, for one plan or several.
    """

    def __init__(self, store: Store | Path | str) -> None:
        if not isinstance(store, Store) and not Path(store).is_dir():
            raise FileNotFoundError(f"no such folder: {store}; `rbrl compare` makes one")
        self.store = store if isinstance(store, Store) else Store(store)

    def has(self, plan: str) -> bool:
        """Return True if there is such a plan with results."""
        return plan_file(plan).is_file() and not self.rows(plan).empty

    def rows(self, plan: str) -> pd.DataFrame:
        """Return one row per run and metric."""
        return self.store.rows(read_plan(plan))

    def effort(self, plan: str) -> pd.DataFrame:
        """Return one row per tuning."""
        return self.store.effort(read_plan(plan))


Source: TypeAlias = Recorded | Stored
