"""`rbrl data`: the catalogue, and files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rbrl.cli import shared
from rbrl.cli.shared import (
    Base,
    DataHome,
    DatasetName,
    Ignore,
    IndexBase,
    Json,
    LabelBase,
    Labels,
    Positive,
    argument,
    say,
)  # fmt: skip

if TYPE_CHECKING:
    from rbrl.datasets import Dataset

app = typer.Typer(no_args_is_help=True, help="List, show, fetch and convert data sets.", rich_markup_mode="markdown")


@app.command("list")
def list_(json: Json = False) -> None:
    """List the catalogue.

    Example: `rbrl data list`
    """
    from rbrl.datasets import CARDS
    from rbrl.experiments import datasets_table
    from rbrl.experiments.tables import show_tables

    table = datasets_table(CARDS)
    if json:
        shared.show_json(table.records())
    else:
        show_tables(table)


@app.command("show")
def show_(
    name: DatasetName, json: Json = False, labels: Labels = None, positive: Positive = None, ignore: Ignore = None,
    index_base: IndexBase = Base.auto, label_base: LabelBase = Base.auto, data_home: DataHome = None,
) -> None:  # fmt: skip
    """Show one data set: origin, sizes, labels, peculiarities.

    Example: `rbrl data show yeast`
    """
    options = shared.parse_options(index_base, label_base, ignore, positive)
    dataset = shared.load_data(name, labels, data_home, options)
    summary = dataset.summary()
    if json:
        shared.show_json({**summary, "label_names": dataset.label_names, "description": dataset.description})
        return
    print(f"{dataset.description or dataset.name}\n")
    for key, value in summary.items():
        if key != "name":
            shown = f"{value:.4g}" if isinstance(value, float) else value
            print(f"{key.replace('_', ' '):24} {shown}")


@app.command()
def fetch(names: Annotated[list[str], argument("NAME...", shared.SEE_LIST)], data_home: DataHome = None) -> None:
    """Download data sets into the cache and check their content.

    Example: `rbrl data fetch emotions scene`
    """
    from rbrl.datasets import load

    for name in names:
        say(f"{name}: {_sizes(load(name, data_home))}; content checked")


@app.command()
def convert(
    source: Annotated[str, argument("IN", "A file, or a name of the catalogue.")],
    target: Annotated[Path, argument("OUT", "The file to write, or the folder of shards.")],
    labels: Labels = None, positive: Positive = None, ignore: Ignore = None,
    labels_first: Annotated[bool, typer.Option(help="ARFF, CSV, Parquet: labels before features.")] = False,
    rows_per_shard: Annotated[
        int | None,
        typer.Option(min=1, help="Write NPZ files of N rows into the folder OUT, with bounded memory.", metavar="N"),
    ] = None,
    index_base: IndexBase = Base.auto, label_base: LabelBase = Base.auto, data_home: DataHome = None,
) -> None:  # fmt: skip
    """Convert a file; the endings tell the formats: .arff .csv .tsv .svm .npz .mat .parquet.

    Examples:

    `rbrl data convert my.csv my.arff --labels -6`

    `rbrl data convert large.svm shards --rows-per-shard 50000`
    """
    from rbrl.datasets import save_file, write_shards

    shared.check_output(target, shared.input_files(source, labels, data_home))
    options = shared.parse_options(index_base, label_base, ignore, positive)
    if rows_per_shard is None:
        dataset = shared.load_data(source, labels, data_home, options)
        save_file(dataset, target, labels_first=labels_first)
        say(f"{target}: {_sizes(dataset)}")
        return
    if shared.is_file(source):  # read in parts, never whole
        shards = write_shards(Path(source), target, rows_per_shard, shared.parse_labels(labels), **options)
    else:
        shards = write_shards(shared.load_data(source, labels, data_home, options), target, rows_per_shard)
    say(f"{target}: {len(shards)} shards of {rows_per_shard} rows; learn from them with `rbrl fit {target}`")


def _sizes(dataset: "Dataset") -> str:
    return f"{dataset.n_samples} samples, {dataset.n_features} features, {dataset.n_labels} labels"
