"""The rows of the comparison: a line for each data set, split, method and variant, in one file for each split."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from studies.comparison import rules
from studies.text_files import append_rows

FOLDER = Path(__file__).resolve().parent / "results"
KEYS = ("dataset", "split", "method", "variant")
FACTS = (
    "status", "reason", "params", "n_points", "search_seconds", "fit_seconds", "predict_seconds", "megabytes", "gap",
)  # fmt: skip
COLUMNS = (*KEYS, *FACTS, *rules.METRIC_COLUMNS, "version")


def append(rows: Iterable[dict[str, Any]], folder: Path = FOLDER) -> None:
    """Append the rows of a cell to the file of its split."""
    for row in rows:
        append_rows(
            folder / f"split-{row['split']}.csv.gz", COLUMNS, [{name: _text(row.get(name)) for name in COLUMNS}]
        )


def _text(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def read(folder: Path = FOLDER) -> pd.DataFrame:
    """Return all recorded rows."""
    files = sorted(folder.glob("split-*.csv.gz"))
    if not files:
        return pd.DataFrame(columns=list(COLUMNS))
    frame = pd.concat([pd.read_csv(file, keep_default_na=True) for file in files], ignore_index=True)
    frame["reason"] = frame.reason.astype(object).fillna("")
    return frame


def done(folder: Path = FOLDER) -> set[tuple[str, int, str]]:
    """Return the cells that have rows, as (data set, split, method)."""
    frame = read(folder)
    return set(zip(frame.dataset, frame.split, frame.method))
