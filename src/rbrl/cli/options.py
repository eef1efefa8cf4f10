"""Options that several commands have, and how their text is read."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


def _dataset_names(incomplete: str) -> list[str]:
    from rbrl.datasets import CARDS

    return [name for name in CARDS if name.startswith(incomplete)]


def _method_names(incomplete: str) -> list[str]:
    from rbrl.estimators import REGISTRY

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
