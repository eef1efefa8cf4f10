"""Data on the command line: options, reading, and the commands `rbrl data`; and the output of all commands.

Tables and JSON go to standard output, everything else to standard error.
"""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from rbrl._common.typing import Matrix
    from rbrl.datasets import Dataset


def argument(metavar: str, help: str, **options: Any) -> Any:
    """Return a positional argument whose default, if it has one, is in its help text."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, **options)


def option(*flags: str, help: str, **options: Any) -> Any:
    """Return an option whose default is in its help text."""
    return typer.Option(*flags, help=help, show_default=False, **options)


def file_option(flag: str, help: str, show_default: bool = False, **options: Any) -> Any:
    """Return an option for data files; they have a section of their own in help texts."""
    panel = "Options for a data file"
    return typer.Option(flag, help=help, show_default=show_default, rich_help_panel=panel, **options)


def complete_dataset(incomplete: str) -> list[str]:
    """Return the names of data sets that begin with the text."""
    from rbrl.datasets import CARDS

    return [name for name in CARDS if name.startswith(incomplete)]


def complete_method(incomplete: str) -> list[str]:
    """Return the names of methods that begin with the text."""
    from rbrl.registry import REGISTRY

    return [name for name in REGISTRY if name.startswith(incomplete)]


# Lowest number in a svmlight file.
Base = StrEnum("Base", {"zero": "0", "one": "1", "auto": "auto"})
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
LABEL_BASE_HELP = "Lowest label number in a svmlight file, as for --index-base."
DATA_HELP = "Name of a data set (see `rbrl data list`), or a data file."
SHARDS_HELP = f"{DATA_HELP} A folder or a quoted pattern stands for shards."
Data = Annotated[str, argument("DATA", DATA_HELP, autocompletion=complete_dataset)]
ShardData = Annotated[str, argument("DATA", SHARDS_HELP, autocompletion=complete_dataset)]
Model = Annotated[Path, argument("MODEL", "Model file written by `rbrl fit`.")]
Labels = Annotated[list[str] | None, file_option("--labels", LABELS_HELP, metavar="COLUMNS")]
Ignore = Annotated[list[str] | None, file_option("--ignore", IGNORE_HELP, metavar="COLUMNS")]
Positive = Annotated[list[str] | None, file_option("--positive", POSITIVE_HELP, metavar="WORD")]
IndexBase = Annotated[Base, file_option("--index-base", INDEX_BASE_HELP, show_default=True)]
LabelBase = Annotated[Base, file_option("--label-base", LABEL_BASE_HELP, show_default=True)]
DataHome = Annotated[Path | None, option(help="Folder with the files of data sets, NAME.npz or NAME.arff.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def parse_labels(texts: Sequence[str] | None) -> int | str | list[str] | None:
    """Return the values of --labels as a number, the path of an XML file, or a list of names.

    Several values are always names. None and an empty list give None.

    Examples
    --------
    >>> parse_labels(["-3"]), parse_labels(["sea, sand", "sun"]), parse_labels(["scene.xml"])
    (-3, ['sea', 'sand', 'sun'], 'scene.xml')
    """
    if not texts:
        return None
    text = texts[0].strip()
    if len(texts) == 1 and re.fullmatch(r"[-+]?\d+", text):
        return int(text)
    if len(texts) == 1 and text.lower().endswith(".xml"):
        return text
    return split_names(texts)


def split_names(texts: Iterable[str]) -> list[str]:
    """Return the names in the values of an option; each value may have several, separated by commas."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def parse_file_options(
    labels: list[str] | None,
    ignore: list[str] | None,
    positive: list[str] | None,
    index_base: Base = Base.auto,
    label_base: Base = Base.auto,
) -> dict[str, Any]:
    """Return the options of `load_file` that were given.

    Examples
    --------
    >>> parse_file_options(["-3"], ["id,date"], ["ja"], Base.zero)
    {'labels': -3, 'ignore': ['id', 'date'], 'positive': ['ja'], 'first_feature': 0}
    """
    chosen = parse_labels(labels)
    if isinstance(chosen, str) and not Path(chosen).is_file():
        raise FileNotFoundError(f"--labels {chosen}: no such file; name an XML file, or the label columns.")
    options = {
        "labels": chosen,
        "ignore": split_names(ignore or ()) or None,
        "positive": positive or None,
        "first_feature": None if index_base is Base.auto else int(index_base),
        "first_label": None if label_base is Base.auto else int(label_base),
    }
    return {name: value for name, value in options.items() if value is not None}


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

    @property
    def is_shards(self) -> bool:
        """True if DATA is a folder or a pattern."""
        return Path(self.data).is_dir() or any(mark in self.data for mark in "*?[")

    def load(self, model: Any = None) -> "Dataset":
        """Return the data set, with the columns of the model if there is one."""
        from rbrl.datasets import load, load_file
        from rbrl.datasets.formats import name_file_in_errors
        from rbrl.estimators.validation import get_columns

        columns = None if model is None else get_columns(model)
        if self.is_shards:
            kind = "folder" if Path(self.data).is_dir() else "pattern"
            raise IsADirectoryError(f"{self.data} is a {kind}: name one file in it, since this needs all rows at once.")
        if is_file(self.data):
            return load_file(self.data, columns=columns, **self.options)
        refuse_file_options(self.data, self.options)
        dataset = load(self.data, self.data_home)
        if columns is None:
            return dataset
        with name_file_in_errors(Path(self.data)):
            return dataset.matching(columns)

    def check_features(self, X: "Matrix", names: Sequence[str] | None, may_ignore: bool) -> None:
        """Refuse features with missing or infinite values; name the first column that has one, and what to do."""
        import numpy as np
        from scipy import sparse

        values: Any = X.data if sparse.issparse(X) else X
        if np.isfinite(values.sum()):  # needs no further memory
            return
        entries = np.nonzero(~np.isfinite(values))
        if not len(entries[0]):
            return
        columns = sparse.coo_array(X).col[entries[0]] if sparse.issparse(X) else entries[1]
        place = int(columns.min())
        name = str(place + 1) if names is None else repr(str(names[place]))
        remedy = f", or leave the column out with --ignore {name}" if may_ignore and names is not None else ""
        raise ValueError(f"{self.data}: the feature {name} has missing or infinite values: fill them in{remedy}.")

    def read_blocks(self, model: Any, size: int) -> Iterator["Matrix"]:
        """Return the features that the model needs, in blocks of `size` rows; 0 for one block per file."""
        from rbrl.datasets import open_shards, read_blocks
        from rbrl.datasets.files import row_blocks
        from rbrl.estimators.validation import get_columns

        if not self.is_shards and not is_file(self.data):
            return row_blocks(self.load(model).X, size or sys.maxsize)
        paths = open_shards(self.data).paths if self.is_shards else [self.data]
        columns = get_columns(model)
        return chain.from_iterable(read_blocks(path, columns, block_size=size, **self.options) for path in paths)

    def find_input_files(self) -> list[Path]:
        """Return the files that will be read; some of them may not exist."""
        from rbrl.datasets import open_shards
        from rbrl.datasets.catalogue import find_files
        from rbrl.datasets.columns import xml_path
        from rbrl.datasets.files import file_ending
        from rbrl.datasets.formats.repository import PAIR_ENDING, label_file

        labels = self.options.get("labels")
        label_files = [Path(labels)] if isinstance(labels, str) else []
        if self.is_shards:
            return [*open_shards(self.data).paths, *label_files]
        if is_file(self.data):
            path = Path(self.data)
            if file_ending(path) == PAIR_ENDING:
                label_files.append(label_file(path))
            return [path, xml_path(path), *label_files]
        folder = self.data_home or os.environ.get("RBRL_DATA")
        return find_files(folder, self.data)[0] if folder else []


def check_output(output: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output file that is one of the inputs, even by another path or as a link."""
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            same = "" if output.absolute() == path.absolute() else f" (as {path})"
            raise ValueError(f"{output} is read as an input{same} and would be overwritten: name another output file.")


def check_output_folder(output: Path) -> None:
    """Refuse an output file that cannot be created, before a long work."""
    folder = output.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}; create it, or name another folder for {output.name}.")
    if output.is_dir():
        raise IsADirectoryError(f"{output} is a folder; name the output file in it.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"the folder {folder} is not writable; name another folder for {output.name}.")


def whole_number(at_least: int, *, or_else: int | None = None) -> Callable[[str | int], int]:
    """Return a parser of an option: a whole number of at least `at_least`, or the number `or_else`."""

    def parse(text: str | int) -> int:
        if re.fullmatch(r"[-+]?\d+", str(text)) and (int(text) >= at_least or int(text) == or_else):
            return int(text)
        rule = f"a whole number >= {at_least}" + ("" if or_else is None else f", or {or_else}")
        raise typer.BadParameter(f"it must be {rule}. Got {str(text)!r} instead.")

    return parse


class _FlagsWithoutType:
    """Commands whose help shows no type after a flag."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_FlagsWithoutType, TyperCommand):
    """A command of the program."""


class Group(_FlagsWithoutType, TyperGroup):
    """A group of commands."""


data_app = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="markdown")


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


@data_app.command("list", cls=Command)
def list_data_sets(json: Json = False) -> None:
    """List the data sets of the catalogue.

    Example: `rbrl data list`
    """
    from rbrl.datasets import CARDS
    from rbrl.experiments import datasets_table
    from rbrl.experiments.tables import show_tables

    table = datasets_table(CARDS)
    if json:
        show_json(table.records())
    else:
        show_tables(table)


@data_app.command("show", cls=Command)
def show_data_set(
    data: Data, json: Json = False, labels: Labels = None, positive: Positive = None,
    ignore: Ignore = None, index_base: IndexBase = Base.auto, label_base: LabelBase = Base.auto,
    data_home: DataHome = None,
) -> None:  # fmt: skip
    """Show the source, the sizes, the labels and the peculiarities of a data set.

    Examples:

    `rbrl data show yeast`

    `rbrl data show my.csv --labels sea,sand`
    """
    options = parse_file_options(labels, ignore, positive, index_base, label_base)
    dataset = Source(data, data_home, options).load()
    summary = dataset.summary()
    if json:
        show_json({**summary, "label_names": dataset.label_names, "description": dataset.description})
        return
    print(f"{dataset.description or dataset.name}\n")
    for key, value in summary.items():
        if key != "name":
            shown = f"{value:.4g}" if isinstance(value, float) else value
            print(f"{key.replace('_', ' '):24} {shown}")


@data_app.command(cls=Command)
def fetch(
    names: Annotated[list[str], argument("NAME...", "Names of data sets; see `rbrl data list`.")],
    data_home: DataHome = None,
) -> None:
    """Download data sets into the cache, and check their content.

    Example: `rbrl data fetch emotions scene`
    """
    from rbrl.datasets import load

    for name in names:
        say(f"{name}: {_describe_sizes(load(name, data_home))}; content checked")


@data_app.command(cls=Command)
def convert(
    data: Annotated[str, argument("IN", "Data file, or the name of a data set.")],
    output: Annotated[Path, argument("OUT", "File to write, or folder for shards.")],
    labels: Labels = None, positive: Positive = None, ignore: Ignore = None,
    labels_first: Annotated[
        bool, typer.Option(help="Write labels before features, in ARFF, CSV and Parquet files.")
    ] = False,
    rows_per_shard: Annotated[
        int | None,
        option(parser=whole_number(1), metavar="N", help="Write NPZ files of N rows, called shards, into the folder OUT."),
    ] = None,
    index_base: IndexBase = Base.auto, label_base: LabelBase = Base.auto,
    data_home: DataHome = None,
) -> None:  # fmt: skip
    """Convert a data file to another format, or split it into shards.

    The endings of the files say which formats: .arff .csv .tsv .svm .xmc .npz .X.npz .mat .parquet

    Examples:

    `rbrl data convert my.csv my.arff --labels -6`

    `rbrl data convert large.svm shards --rows-per-shard 50000`
    """
    from rbrl.datasets import save_file, write_shards

    if labels_first and rows_per_shard is not None:
        raise ValueError(
            f"--labels-first goes with one output file, not with --rows-per-shard={rows_per_shard}: leave one of them out."
        )
    options = parse_file_options(labels, ignore, positive, index_base, label_base)
    source = Source(data, data_home, options)
    check_output(output, source.find_input_files())
    if rows_per_shard is None:
        check_output_folder(output)
        dataset = source.load()
        save_file(dataset, output, labels_first=labels_first)
        say(f"{output}: {_describe_sizes(dataset)}")
        return
    if is_file(data):
        shards = write_shards(data, output, rows_per_shard, **options)  # reads the file in blocks
    else:
        shards = write_shards(source.load(), output, rows_per_shard)
    say(f"{output}: {len(shards)} shards of {rows_per_shard} rows; fit a model with `rbrl fit {output} -o MODEL`")


def _describe_sizes(dataset: "Dataset") -> str:
    return f"{dataset.n_samples} samples, {dataset.n_features} features, {dataset.n_labels} labels"
