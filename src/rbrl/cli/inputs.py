"""DATA on the command line: a name of the catalogue, or a file."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from rbrl.cli.options import parse_labels


def load_data(data: str, labels: str | None = None, data_home: Path | None = None) -> Any:
    """Return the `Dataset` that DATA means; a file goes before a name of the catalogue."""
    from rbrl.datasets import load, load_file

    if is_file(data):
        return load_file(Path(data), parse_labels(labels))
    if labels is not None:
        raise ValueError(f"--labels goes with a file; {data!r} is not one.")
    return load(data, data_home)


def is_shards(data: str) -> bool:
    """Whether DATA means several files: a folder, or a pattern."""
    return Path(data).is_dir() or any(mark in data for mark in "*?[")


def load_blocks(
    data: str, n_features: int, labels: str | None, block_size: int, data_home: Path | None
) -> Iterator[Any]:
    """Return the features of DATA, block of rows by block; of a folder or a pattern, file by file."""
    from rbrl.datasets import open_shards
    from rbrl.datasets.blocks import read_blocks, row_blocks

    if is_shards(data):
        paths = open_shards(data).paths
        files = (read_blocks(path, n_features, parse_labels(labels), block_size=block_size) for path in paths)
        return chain.from_iterable(files)
    if is_file(data):
        return read_blocks(data, n_features, parse_labels(labels), block_size=block_size)
    X = load_data(data, labels, data_home).X
    return row_blocks(X, block_size or X.shape[0])


def is_file(data: str) -> bool:
    """Whether DATA means a file: it is there, or looks like a path."""
    from rbrl.datasets import CARDS

    path = Path(data)
    return path.is_file() or (data not in CARDS and (path.suffix != "" or len(path.parts) > 1))


def load_model(path: Path) -> Any:
    """Read a model file."""
    from rbrl.persistence import load

    if not path.is_file():
        raise FileNotFoundError(f"no such model file: {path}")
    return load(path)


def label_names(model: Any, n_labels: int) -> list[str]:
    """Names of the labels that a model was fitted with, or numbers."""
    names = getattr(model, "label_names_", None)
    return list(names) if names is not None and len(names) == n_labels else [f"label{i + 1}" for i in range(n_labels)]
