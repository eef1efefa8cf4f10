"""Read and write the text files of recorded rows; a file whose name ends in .gz is compressed."""

import csv
import gzip
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def read_text(path: Path) -> str:
    """Return the content of a file.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> read_text(write_text(Path(mkdtemp(), "rows.csv.gz"), "a,b\\n"))
    'a,b\\n'
    """
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")


def write_text(path: Path, text: str) -> Path:
    """Write a file completely or not at all, and create its folder; the same text gives the same bytes."""
    data = text.encode("utf-8")
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.part")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def append_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows at the end of a CSV file, which gets a header if it is new."""
    out = io.StringIO(read_text(path) if path.exists() else "", newline="")
    out.seek(0, io.SEEK_END)
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    if out.tell() == 0:
        writer.writeheader()
    writer.writerows(rows)
    write_text(path, out.getvalue())
