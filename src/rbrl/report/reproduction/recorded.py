"""Results as small text files: CSV under a few lines that say what made them."""

import json
import os
import shlex
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from rbrl._version import __version__
from rbrl.experiments.machine import machine
from rbrl.report.results import KEYS

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
