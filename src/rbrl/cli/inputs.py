"""DATA on the command line: a name of the catalogue, or a file."""

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from rbrl.cli.options import parse_labels


def load_data(
    data: str,
    labels: str | None = None,
    data_home: Path | None = None,
    bases: dict[str, int] | None = None,
    model: Any = None,
) -> Any:
    """Return the `Dataset` that DATA means; a file goes before a name of the catalogue.

    Parameters
    ----------
    data, labels, data_home
        As on the command line.
    bases : dict
        What the columns of a svmlight file count from, where it was said.
    model : fitted model, optional
        That the data are for: they come with its columns, in its order.
    """
    from rbrl.datasets import load, load_file
    from rbrl.estimators.base import columns_of

    columns = None if model is None else columns_of(model)
    if is_file(data):
        return load_file(Path(data), parse_labels(labels), columns=columns, **(bases or {}))
    if labels is not None:
        raise ValueError(f"--labels goes with a file; {data!r} is not one.")
    dataset = load(data, data_home)
    return dataset if columns is None else dataset.matching(columns)


def is_shards(data: str) -> bool:
    """Whether DATA means several files: a folder, or a pattern."""
    return Path(data).is_dir() or any(mark in data for mark in "*?[")


def load_blocks(
    data: str,
    model: Any,
    labels: str | None,
    block_size: int,
    data_home: Path | None,
    bases: dict[str, int] | None = None,
) -> Iterator[Any]:
    """Return the features of DATA that a model needs, block of rows by block; of a folder or a pattern, file by file."""
    from rbrl.datasets import open_shards
    from rbrl.datasets.blocks import read_blocks, row_blocks
    from rbrl.estimators.base import columns_of

    columns = columns_of(model)

    def blocks_of(path):
        return read_blocks(path, columns, parse_labels(labels), block_size=block_size, **(bases or {}))

    if is_shards(data):
        return chain.from_iterable(blocks_of(path) for path in open_shards(data).paths)
    if is_file(data):
        return blocks_of(data)
    X = load_data(data, labels, data_home, model=model).X
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
    # A file unpacks to no more than it has bytes, and whoever names one at a shell has seen its size.
    return load(path, max_bytes=sys.maxsize)


def rows_for(model: Any, X: Any) -> Any:
    """Rows as a model takes them: a scaler that was fitted on dense rows moves zeros, so sparse ones are written out."""
    from scipy import sparse

    moves_zeros = hasattr(model, "steps") and getattr(model[0], "with_mean", False)
    return X.toarray() if moves_zeros and sparse.issparse(X) else X


def label_names(model: Any, n_labels: int) -> list[str]:
    """Names of the labels that a model was fitted with, or numbers."""
    names = getattr(model, "label_names_", None)
    return list(names) if names is not None and len(names) == n_labels else [f"label{i + 1}" for i in range(n_labels)]
