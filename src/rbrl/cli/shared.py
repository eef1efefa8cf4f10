"""Options, DATA, model files and output that the commands share.

Tables and JSON go to standard output, everything else to standard error.
"""

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rbrl._common.typing import Matrix
    from rbrl.datasets import Dataset

EXIT_INTERRUPTED = 130  # exit code of an interrupted program, by the convention of shells
COLUMN_NUMBER_OR_XML = re.compile(r"[-+]?\d+|.*\.xml", re.IGNORECASE)
FILE_PANEL = "Options for a data file"


def argument(metavar: str, help: str, **options: Any) -> Any:
    """Return a positional argument whose default, if it has one, is in its help text."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, **options)


def option(*flags: str, help: str, **options: Any) -> Any:
    """Return an option whose default is in its help text."""
    return typer.Option(*flags, help=help, show_default=False, **options)


def complete_dataset(incomplete: str) -> list[str]:
    """Return the names of data sets that begin with the text."""
    from rbrl.datasets import CARDS

    return [name for name in CARDS if name.startswith(incomplete)]


def complete_method(incomplete: str) -> list[str]:
    """Return the names of methods that begin with the text."""
    from rbrl.registry import REGISTRY

    return [name for name in REGISTRY if name.startswith(incomplete)]


class Base(StrEnum):
    """Lowest column number in a svmlight file.

    Examples
    --------
    >>> Base("auto") is Base.auto
    True
    """

    zero = "0"
    one = "1"
    auto = "auto"


LABELS_HELP = (
    "Label columns of an ARFF, CSV or Parquet file: N for the first N, -N for the last N, names separated by commas, or "
    "the name of Mulan's XML file. Can be repeated to add names. Default: the labels that the file or the model declares."
)
IGNORE_HELP = (
    "Columns of an ARFF, CSV or Parquet file that are not read, such as ids and dates: names separated by commas. Can be "
    "repeated. A fitted model ignores these columns in other files, too."
)
POSITIVE_HELP = (
    "Word in label columns that means that a label is relevant, such as 'active'. Can be repeated. The words 0/1, "
    "true/false, yes/no, t/f and y/n need no declaration."
)
INDEX_BASE_HELP = (
    "Lowest feature number in a svmlight file. auto: the number that the first line of the file or the model gives; "
    "otherwise 0 if a feature 0 occurs, else 1."
)
DATA_HELP = "Name of a data set (see `rbrl data list`), or a data file."
Data = Annotated[str, argument("DATA", DATA_HELP, autocompletion=complete_dataset)]
ShardData = Annotated[
    str,
    argument("DATA", f"{DATA_HELP} A folder or a quoted pattern stands for shards.", autocompletion=complete_dataset),
]
Model = Annotated[Path, argument("MODEL", "Model file written by `rbrl fit`.")]
Labels = Annotated[
    list[str] | None, option("--labels", metavar="COLUMNS", help=LABELS_HELP, rich_help_panel=FILE_PANEL)
]
Ignore = Annotated[
    list[str] | None, option("--ignore", metavar="COLUMNS", help=IGNORE_HELP, rich_help_panel=FILE_PANEL)
]
Positive = Annotated[
    list[str] | None, option("--positive", metavar="WORD", help=POSITIVE_HELP, rich_help_panel=FILE_PANEL)
]
IndexBase = Annotated[Base, typer.Option(help=INDEX_BASE_HELP, rich_help_panel=FILE_PANEL)]
LabelBase = Annotated[
    Base, typer.Option(help="Lowest label number in a svmlight file, as for --index-base.", rich_help_panel=FILE_PANEL)
]
DataHome = Annotated[Path | None, option(help="Folder with the files of data sets, NAME.npz or NAME.arff.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def parse_labels(texts: Sequence[str] | None) -> int | str | list[str] | None:
    """Return the values of --labels as a number, the path of an XML file, or a list of names.

    Examples
    --------
    >>> parse_labels(["-3"]), parse_labels(["sea, sand", "sun"]), parse_labels(["scene.xml"])
    (-3, ['sea', 'sand', 'sun'], 'scene.xml')
    """
    if not texts:
        return None
    text = texts[0].strip()
    if len(texts) == 1 and COLUMN_NUMBER_OR_XML.fullmatch(text):
        return text if text.lower().endswith(".xml") else int(text)
    return split_names(texts)


def split_names(texts: Iterable[str]) -> list[str]:
    """Return the names in the values of an option; each value may have several, separated by commas."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def parse_file_options(
    ignore: list[str] | None, positive: list[str] | None, index_base: Base = Base.auto, label_base: Base = Base.auto
) -> dict[str, Any]:
    """Return the options of `load_file` that were given.

    Examples
    --------
    >>> parse_file_options(["id,date"], ["ja"], Base.zero)
    {'ignore': ['id', 'date'], 'positive': ['ja'], 'first_feature': 0}
    """
    options: dict[str, Any] = {"ignore": split_names(ignore or ()), "positive": positive}
    for name, base in (("first_feature", index_base), ("first_label", label_base)):
        options[name] = None if base is Base.auto else int(base)
    return {name: value for name, value in options.items() if value not in (None, [])}


def is_file(data: str) -> bool:
    """Return True if DATA is an existing file, or looks like a path."""
    from rbrl.datasets import CARDS

    path = Path(data)
    return path.is_file() or (data not in CARDS and (path.suffix != "" or len(path.parts) > 1))


def refuse_file_options(data: str, given: Iterable[str]) -> None:
    """Refuse options for data files, since DATA is the name of a data set."""
    for name in ("labels", "ignore", "positive"):
        if name in given:
            raise ValueError(f"--{name} goes with a file; {data!r} is not a file.")


@dataclass(frozen=True)
class Source:
    """DATA on the command line: a file, shards, or a data set of the catalogue; a file has priority.

    Parameters
    ----------
    data : str
        DATA as given.
    data_home : Path, optional
        Folder with the files of data sets.
    options : dict
        Options of `load_file`, `labels` among them.
    """

    data: str
    data_home: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: str, data_home: Path | None, labels: Sequence[str] | None, *file_options: Any) -> "Source":
        """Return the source; `file_options` are those of `parse_file_options`."""
        options = parse_file_options(*file_options)
        return cls(data, data_home, ({"labels": parse_labels(labels)} if labels else {}) | options)

    @property
    def is_file(self) -> bool:
        """True if DATA is an existing file, or looks like a path."""
        return is_file(self.data)

    @property
    def is_shards(self) -> bool:
        """True if DATA is a folder or a pattern."""
        return Path(self.data).is_dir() or any(mark in self.data for mark in "*?[")

    def load(self, model: Any = None) -> "Dataset":
        """Return the data set, with the columns of the model if there is one."""
        from rbrl.datasets import load, load_file
        from rbrl.estimators.validation import get_columns

        columns = None if model is None else get_columns(model)
        if self.is_file:
            return load_file(self.data, columns=columns, **self.options)
        refuse_file_options(self.data, self.options)
        dataset = load(self.data, self.data_home)
        return dataset if columns is None else dataset.matching(columns)

    def read_blocks(self, model: Any, size: int) -> Iterator["Matrix"]:
        """Return the features that the model needs, in blocks of `size` rows; 0 for one block per file."""
        from rbrl.datasets import open_shards, read_blocks
        from rbrl.datasets.files import row_blocks
        from rbrl.estimators.validation import get_columns

        if not self.is_shards and not self.is_file:
            return row_blocks(self.load(model).X, size or sys.maxsize)
        paths = open_shards(self.data).paths if self.is_shards else [self.data]
        columns = get_columns(model)
        return chain.from_iterable(read_blocks(path, columns, block_size=size, **self.options) for path in paths)

    def find_input_files(self) -> list[Path]:
        """Return the files that will be read; some of them may not exist."""
        from rbrl.datasets import open_shards
        from rbrl.datasets.columns import xml_path
        from rbrl.datasets.load import find_files

        labels = self.options.get("labels")
        label_files = [Path(labels)] if isinstance(labels, str) else []
        if self.is_shards:
            return [*open_shards(self.data).paths, *label_files]
        if self.is_file:
            return [Path(self.data), xml_path(Path(self.data)), *label_files]
        folder = self.data_home or os.environ.get("RBRL_DATA")
        return find_files(folder, self.data)[0] if folder else []


def check_output(output: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output file that is one of the inputs, even by another path or as a link."""
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            same = "" if output.absolute() == path.absolute() else f" (as {path})"
            raise ValueError(f"{output} is read as an input{same} and would be overwritten: name another output file.")


def load_model(path: Path) -> Any:
    """Read a model file."""
    from rbrl.persistence import load

    if not path.is_file():
        raise FileNotFoundError(f"no such model file: {path}")
    # The user chose the file and knows its size; the content is never larger than the file.
    return load(path, max_bytes=sys.maxsize)


def say(text: str, quiet: bool = False) -> None:
    """Print a message to standard error unless `quiet` is set."""
    if not quiet:
        print(text, file=sys.stderr)


def show_json(value: object) -> None:
    """Print dicts, lists, numbers and text as JSON; NaN and infinity become null."""
    print(json.dumps(_to_json(value), ensure_ascii=False, indent=2))


def _to_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
