"""What commands share: options, DATA (a name of the catalogue, or files), model files, and where answers go.

Tables and JSON go to standard output, everything else to standard error.
"""

import itertools
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rbrl._common.typing import Matrix
    from rbrl.datasets import Dataset

NOT_NAMES = re.compile(r"[-+]?\d+|.*\.xml", re.IGNORECASE)  # label columns by number, or in an XML file
STOPPED = 130  # the exit code of what was interrupted, as shells have it


def argument(metavar: str, help: str, **more: Any) -> Any:
    """A positional argument as help shows it: the default, where there is one, is in its words.

    Parameters
    ----------
    metavar, help : str
        What help calls it and says of it.
    **more
        Of `typer.Argument`.

    Returns
    -------
    what `Annotated` takes
    """
    return typer.Argument(metavar=metavar, help=help, show_default=False, **more)


def option(*flags: str, help: str, **more: Any) -> Any:
    """An option whose default is nothing to show: its help says what happens without it.

    Parameters
    ----------
    *flags : str
        Such as ``--output``; by default the parameter's name.
    help : str
    **more
        Of `typer.Option`.

    Returns
    -------
    what `Annotated` takes
    """
    return typer.Option(*flags, help=help, show_default=False, **more)


def _dataset_names(incomplete: str) -> list[str]:
    from rbrl.datasets import CARDS

    return [name for name in CARDS if name.startswith(incomplete)]


def _method_names(incomplete: str) -> list[str]:
    from rbrl.registry import REGISTRY

    return [name for name in REGISTRY if name.startswith(incomplete)]


class Base(StrEnum):
    """What the columns of a svmlight file count from.

    Examples
    --------
    >>> Base("auto") is Base.auto
    True
    """

    zero = "0"
    one = "1"
    auto = "auto"


LABELS = (
    "Label columns of an ARFF, CSV or Parquet file: N for the first N, -N for the last N, names with commas, "
    "or Mulan's XML file. May be repeated, for further names. Default: as the file says, or the model knows."
)
IGNORE = (
    "Columns of an ARFF, CSV or Parquet file to leave out, such as ids and dates: names with commas; may be repeated. "
    "A model remembers them."
)
POSITIVE = (
    "A word in label columns that means that a label is relevant, such as active; may be repeated. 0/1, true/false, yes/no, "
    "t/f and y/n need none."
)
BASE = (
    "What the features of a svmlight file count from. auto: as its first line or the model says, else from 0 if a "
    "feature 0 occurs, and 1 if none does."
)
SEE_LIST = "See `rbrl data list`."
Data = Annotated[str, argument("DATA", "A data set of the catalogue, or a file.", autocompletion=_dataset_names)]
DatasetName = Annotated[str, argument("NAME", SEE_LIST, autocompletion=_dataset_names)]
SEVERAL_DATA, SEVERAL_METHODS = "A data set or a file; may be repeated.", "A method; may be repeated."
Datasets = Annotated[list[str] | None, option("--dataset", "-d", help=SEVERAL_DATA, autocompletion=_dataset_names)]
Methods = Annotated[list[str] | None, option("--method", "-m", help=SEVERAL_METHODS, autocompletion=_method_names)]
Method = Annotated[str, typer.Option("--method", "-m", help="The method.", autocompletion=_method_names)]
Model = Annotated[Path, argument("MODEL", "A file that `rbrl fit` wrote.")]
Labels = Annotated[list[str] | None, option("--labels", metavar="COLUMNS", help=LABELS)]
Ignore = Annotated[list[str] | None, option("--ignore", metavar="COLUMNS", help=IGNORE)]
Positive = Annotated[list[str] | None, option("--positive", metavar="WORD", help=POSITIVE)]
IndexBase = Annotated[Base, typer.Option(help=BASE)]
LabelBase = Annotated[Base, typer.Option(help="What the labels of a svmlight file count from, likewise.")]
DataHome = Annotated[Path | None, option(help="Folder of data files, NAME.npz or NAME.arff.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def parse_labels(texts: Sequence[str] | None) -> int | str | list[str] | None:
    """Return a number, a path or a list of names, as `load_file` takes it.

    Parameters
    ----------
    texts : sequence of str, or None
        The values of the option, which may be repeated.

    Returns
    -------
    int, str, list of str or None

    Examples
    --------
    >>> parse_labels(["-3"]), parse_labels(["sea, sand", "sun"]), parse_labels(["scene.xml"])
    (-3, ['sea', 'sand', 'sun'], 'scene.xml')
    """
    if not texts:
        return None
    if len(texts) == 1 and NOT_NAMES.fullmatch(texts[0].strip()):
        return texts[0].strip() if texts[0].strip().lower().endswith(".xml") else int(texts[0])
    return split_names(texts)


def split_names(texts: Iterable[str]) -> list[str]:
    """Return the names of columns in the values of an option: with commas between them, and in one value or several.

    Parameters
    ----------
    texts : iterable of str

    Returns
    -------
    list of str
    """
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def parse_options(
    index_base: Base = Base.auto, label_base: Base = Base.auto, ignore: list[str] | None = None,
    positive: list[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the options of `load_file` that were given.

    Parameters
    ----------
    index_base, label_base : Base
    ignore, positive : list of str, optional

    Returns
    -------
    dict

    Examples
    --------
    >>> parse_options(Base.zero, ignore=["id,date"], positive=["ja"])
    {'first_feature': 0, 'ignore': ['id', 'date'], 'positive': ['ja']}
    """
    bases = {"first_feature": index_base, "first_label": label_base}
    found: dict[str, Any] = {name: int(base) for name, base in bases.items() if base is not Base.auto}
    names = split_names(ignore or ())
    return found | ({"ignore": names} if names else {}) | ({"positive": positive} if positive else {})


def check_for_files(names: Iterable[str], labels: Sequence[str] | None, options: dict[str, Any]) -> None:
    """Refuse options that choose columns of a file for data sets of the catalogue.

    Parameters
    ----------
    names : iterable of str
        DATA that is no file.
    labels : sequence of str, or None
        Values on the command line.
    options : dict
        Options of `load_file`.
    """
    given = ["labels"] * bool(labels) + [name for name in ("ignore", "positive") if name in options]
    for name, option_name in itertools.product(names, given):
        raise ValueError(f"--{option_name} goes with a file; {name!r} is not a file.")


def is_file(data: str) -> bool:
    """Whether DATA means a file: it is there, or looks like a path.

    Parameters
    ----------
    data : str

    Returns
    -------
    bool
    """
    from rbrl.datasets import CARDS

    path = Path(data)
    return path.is_file() or (data not in CARDS and (path.suffix != "" or len(path.parts) > 1))


def is_shards(data: str) -> bool:
    """Whether DATA means several files: a folder, or a pattern.

    Parameters
    ----------
    data : str

    Returns
    -------
    bool
    """
    return Path(data).is_dir() or any(mark in data for mark in "*?[")


def load_data(
    data: str,
    labels: Sequence[str] | None,
    data_home: Path | None,
    options: dict[str, Any] | None = None,
    model: Any = None,
) -> "Dataset":
    """Return the `Dataset` that DATA means; a file goes before a name of the catalogue.

    Parameters
    ----------
    data, labels, data_home
        Values on the command line.
    options : dict, optional
        Options of `load_file` that were given.
    model : fitted model, optional
        That the data are for: they come with its columns, in its order.

    Returns
    -------
    Dataset
    """
    from rbrl.datasets import load, load_file
    from rbrl.estimators.base import columns_of

    columns = None if model is None else columns_of(model)
    if is_file(data):
        return load_file(Path(data), parse_labels(labels), columns=columns, **(options or {}))
    check_for_files([data], labels, options or {})
    dataset = load(data, data_home)
    return dataset if columns is None else dataset.matching(columns)


def load_blocks(
    data: str, model: Any, labels: Sequence[str] | None, size: int, data_home: Path | None, options: dict[str, Any]
) -> Iterator["Matrix"]:
    """Return the features of DATA that a model needs, block of rows by block; of a folder or a pattern, file by file.

    Parameters
    ----------
    data : str
        DATA of the command line.
    model : fitted model
    labels, data_home
        Values on the command line.
    size : int
        Rows of a block; 0: everything.
    options : dict
        Options of `read_blocks` that were given.

    Returns
    -------
    iterator of matrix
    """
    from rbrl.datasets import open_shards, read_blocks
    from rbrl.estimators.base import columns_of

    if not is_shards(data) and not is_file(data):
        return row_blocks(load_data(data, labels, data_home, options, model).X, size)
    paths = open_shards(data).paths if is_shards(data) else [data]
    columns, names = columns_of(model), parse_labels(labels)
    return chain.from_iterable(read_blocks(path, columns, names, block_size=size, **options) for path in paths)


def input_files(data: str, labels: Sequence[str] | None, data_home: Path | None) -> list[Path]:
    """Return the files that are read for DATA.

    Parameters
    ----------
    data, labels, data_home
        Values on the command line.

    Returns
    -------
    list of Path
        Some of them may not exist.
    """
    from rbrl.datasets import open_shards
    from rbrl.datasets.columns import xml_path
    from rbrl.datasets.load import find_files

    said = parse_labels(labels)
    named = [Path(said)] if isinstance(said, str) else []
    if is_shards(data):
        return [*open_shards(data).paths, *named]
    if is_file(data):
        return [Path(data), xml_path(Path(data)), *named]
    folder = data_home or os.environ.get("RBRL_DATA")
    return find_files(folder, data)[0] if folder else []


def check_output(output: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output file that is one of the inputs, also under another name: as a link, or by another path.

    Parameters
    ----------
    output : Path
        The file or folder to write.
    inputs : iterable of Path
        Files to read; a file that does not exist cannot be overwritten.
    """
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            same = "" if output.absolute() == path.absolute() else f" (as {path})"
            raise ValueError(f"{output} is read as an input{same} and would be overwritten: name another output file.")


def row_blocks(X: "Matrix", size: int) -> Iterator["Matrix"]:
    """The rows of a matrix, at most `size` at a time; 0: all of them.

    Parameters
    ----------
    X : matrix
    size : int

    Returns
    -------
    iterator of matrix
    """
    size = size or X.shape[0]
    return (X[start : start + size] for start in range(0, X.shape[0], size))


def load_model(path: Path) -> Any:
    """Read a model file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    fitted model
    """
    from rbrl.persistence import load

    if not path.is_file():
        raise FileNotFoundError(f"no such model file: {path}")
    # A file unpacks to no more than it has bytes, and whoever names one at a shell has seen its size.
    return load(path, max_bytes=sys.maxsize)


def say(text: str, quiet: bool = False) -> None:
    """Tell the user something that is not the answer.

    Parameters
    ----------
    text : str
    quiet : bool, default=False
        Whether to say nothing.
    """
    if not quiet:
        print(text, file=sys.stderr)


def show_json(value: object) -> None:
    """Print one JSON value; what is not a number becomes null.

    Parameters
    ----------
    value : object
        Of dicts, lists, numbers and text.
    """
    print(json.dumps(_plain(value), ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
