"""Options that several commands have, and DATA on the command line: a name of the catalogue, or a file."""

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer


def _dataset_names(incomplete: str) -> list[str]:
    from rbrl.datasets import CARDS

    return [name for name in CARDS if name.startswith(incomplete)]


def _method_names(incomplete: str) -> list[str]:
    from rbrl.registry import REGISTRY

    return [name for name in REGISTRY if name.startswith(incomplete)]


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A data set of the catalogue, or a file.",
        autocompletion=_dataset_names,
        show_default=False,
    ),
]
DatasetName = Annotated[
    str, typer.Argument(metavar="NAME", autocompletion=_dataset_names, show_default=False, help="See `rbrl data list`.")
]
Datasets = Annotated[
    list[str] | None,
    typer.Option("--dataset", "-d", help="A data set or a file; may be repeated.", autocompletion=_dataset_names),
]
Methods = Annotated[
    list[str] | None,
    typer.Option("--method", "-m", help="A method; may be repeated.", autocompletion=_method_names),
]
Method = Annotated[str, typer.Option("--method", "-m", help="The method.", autocompletion=_method_names)]
Labels = Annotated[
    str | None,
    typer.Option(
        help="Label columns of an ARFF, CSV or Parquet file: N for the first N, -N for the last N, names with commas, "
        "or Mulan's XML file. Default: as the file says, or the model knows.",
        show_default=False,
    ),
]


class Base(StrEnum):
    """What the columns of a svmlight file count from."""

    zero = "0"
    one = "1"
    auto = "auto"


IndexBase = Annotated[
    Base,
    typer.Option(
        help="What the features of a svmlight file count from. auto: as its first line or the model says, else from 0 if a "
        "feature 0 occurs, and 1 if none does."
    ),
]
LabelBase = Annotated[Base, typer.Option(help="What the labels of a svmlight file count from, likewise.")]
DataHome = Annotated[Path | None, typer.Option(help="Folder of data files, NAME.npz or NAME.arff.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def parse_labels(text: str | None) -> Any:
    """A number, a path or a list of names, as `load_file` takes it.

    Examples
    --------
    >>> parse_labels("-3"), parse_labels("sea, sand"), parse_labels("scene.xml")
    (-3, ['sea', 'sand'], 'scene.xml')
    """
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return text if text.lower().endswith(".xml") else [name.strip() for name in text.split(",") if name.strip()]


def parse_bases(index_base: Base, label_base: Base = Base.auto) -> dict[str, int]:
    """What `load_file` takes for the bases that were said.

    Examples
    --------
    >>> parse_bases(Base.zero)
    {'first_feature': 0}
    """
    said = {"first_feature": index_base, "first_label": label_base}
    return {name: int(base) for name, base in said.items() if base is not Base.auto}


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Parameters given as name=value; a value is JSON where it can be, and text otherwise.

    Examples
    --------
    >>> parse_settings(["ridge=0.1", "kernel=rbf", "non_empty=true"])
    {'ridge': 0.1, 'kernel': 'rbf', 'non_empty': True}
    """
    found = {}
    for text in settings or []:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ValueError(f"A parameter is given as name=value. Got {text!r} instead.")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found


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
    from rbrl.datasets.files import read_blocks, row_blocks
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
