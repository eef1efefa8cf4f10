"""Rows of a file in blocks, features only: what prediction needs of a file larger than memory."""

import csv
import json
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rbrl.cli.inputs import is_file, is_shards, load_data
from rbrl.cli.options import parse_labels
from rbrl.datasets import open_shards
from rbrl.datasets.files import ENDINGS, load_file
from rbrl.datasets.formats.csv_ import MISSING
from rbrl.datasets.formats.labels import label_columns, xml_path
from rbrl.datasets.formats.parquet import KEY
from rbrl.datasets.formats.values import number
from rbrl.exceptions import DataFormatError

UNLIMITED = 1 << 62


def feature_blocks(
    data: str, n_features: int, labels: str | None = None, block_size: int = 4096, data_home: Path | None = None
) -> Iterator[Any]:
    """Yield X of DATA, `block_size` rows at a time.

    CSV, svmlight, ARFF and Parquet files are read block by block; other formats are read whole. A block size of 0
    reads everything at once. Of a folder or a pattern, one file is read at a time.
    """
    kind = "" if is_shards(data) else _kind(data)
    reader = {"csv": _csv, "svmlight": _svmlight, "arff": _arff, "parquet": _parquet}.get(kind)
    if is_shards(data):
        blocks = (X for shard, _ in open_shards(data, parse_labels(labels)) for X in _slices(shard, block_size))
    elif reader is None or block_size == 0:
        blocks = _slices(load_data(data, labels, data_home).X, block_size)
    else:
        blocks = reader(Path(data), n_features, parse_labels(labels), block_size)
    for X in blocks:
        if X.shape[1] != n_features:
            raise ValueError(f"{data} has {X.shape[1]} features; the model was fitted on {n_features}.")
        yield X


def _slices(X, size):
    size = size or max(X.shape[0], 1)
    return (X[start : start + size] for start in range(0, X.shape[0], size))


def _kind(data):
    if not is_file(data):
        return ""
    path = Path(data)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    return ENDINGS.get(Path(path.name.removesuffix(".gz")).suffix.lower(), "")


def _open(path, newline=None):
    import gzip

    with open(path, "rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline=newline)


def _chunks(lines, size):
    lines = iter(lines)
    while chunk := list(islice(lines, size)):
        yield chunk


def _csv(path, n_features, labels, size):
    with _open(path, newline="") as stream:
        first = stream.readline()
        mark = max(",;\t", key=first.count)
        rows = csv.reader(chain([first], stream), delimiter=mark)
        names = next(rows)
        columns = _features(path, names, labels, n_features)
        for chunk in _chunks((row for row in rows if row), size):
            yield np.array([_numbers(path, rows.line_num, names, row, columns) for row in chunk])


def _features(path, names, labels, n_features, own=None):
    """Columns that are not labels; a file with as many columns as the model has features has no labels."""
    if labels is None and not xml_path(path).is_file() and len(names) == n_features:
        return list(range(len(names)))
    taken = set(label_columns(path, names, labels, own))
    return [j for j in range(len(names)) if j not in taken]


def _numbers(path, line, names, row, columns):
    if len(row) != len(names):
        raise DataFormatError(f"{path}, near line {line}: a row has {len(row)} cells, the header {len(names)} columns")
    values = [np.nan if row[j].strip() in MISSING else number(row[j]) for j in columns]
    if None in values:
        column = columns[values.index(None)]
        raise DataFormatError(
            f"{path}, near line {line}: {names[column]!r} is {row[column]!r}, a word, whose code depends on the whole "
            "file: pass --block-size 0"
        )
    return values


def _svmlight(path, n_features, labels, size):
    if labels is not None:
        raise DataFormatError(f"{path}: a svmlight file has its labels in front; got --labels {labels!r}")
    base, skip = _svmlight_base(path)
    head = {"n_features": n_features, "n_labels": 1}
    with _open(path) as stream, TemporaryDirectory(prefix="rbrl-") as folder:
        block = Path(folder, "block.svm")
        rows = (_pairs(text, base) for line in islice(stream, skip, None) if (text := line.partition("#")[0].strip()))
        for chunk in _chunks(rows, size):
            block.write_text("\n".join([f"# rbrl: {json.dumps(head)}", *chunk, ""]), encoding="utf-8")
            yield _renamed(path, lambda: load_file(block, max_bytes=UNLIMITED)).X


def _svmlight_base(path):
    """(first feature number, lines to skip): as the head says, or else 1 unless a feature 0 occurs."""
    with _open(path) as stream:
        first = stream.readline()
        sizes = first.split()
        if len(sizes) == 3 and all(size.isdecimal() for size in sizes):
            return 0, 1
        if first.startswith("# rbrl: "):
            return 1, 0
        lines = (line.partition("#")[0].split() for line in chain([first], stream))
        return (0 if any(word.startswith("0:") for words in lines for word in words) else 1), 0


def _pairs(text, base):
    """A row's features in numbers from 1, without its labels."""
    words = text.split()
    words = words[1:] if ":" not in words[0] else words
    if base == 0:
        pairs = (word.partition(":") for word in words)
        words = [f"{int(i) + 1}:{value}" if i.isdecimal() else f"{i}:{value}" for i, _, value in pairs]
    return " " + (" ".join(words) or "1:0")


def _arff(path, n_features, labels, size):
    """Each block is a file with the same head: nominal values are declared there, so their codes agree."""
    labels = xml_path(path) if labels is None and xml_path(path).is_file() else labels
    with _open(path) as stream, TemporaryDirectory(prefix="rbrl-") as folder:
        head = []
        for line in stream:
            head.append(line)
            if line.strip().lower().startswith("@data"):
                break
        block = Path(folder, "block.arff")
        rows = (line for line in stream if line.strip() and not line.lstrip().startswith("%"))
        for chunk in _chunks(rows, size):
            block.write_text("".join([*head, *chunk]), encoding="utf-8")
            yield _renamed(path, lambda: load_file(block, labels, max_bytes=UNLIMITED)).X


def _renamed(path, read):
    """An error in a block names the user's file."""
    try:
        return read()
    except DataFormatError as error:
        raise DataFormatError(f"{path}: {str(error).partition(': ')[2] or error}") from error


def _parquet(path, n_features, labels, size):
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: install rbrl[parquet], or use another format.") from error

    with pq.ParquetFile(path) as file:
        own = json.loads((file.schema_arrow.metadata or {}).get(KEY, b"{}")).get("labels")
        names = file.schema_arrow.names
        columns = [names[j] for j in _features(path, names, labels, n_features, own)]
        for batch in file.iter_batches(batch_size=size, columns=columns):
            arrays = [batch.column(i).to_numpy(zero_copy_only=False) for i in range(batch.num_columns)]
            yield np.column_stack(arrays).astype(np.float64)
