"""`rbrl data`: the catalogue, and files."""

from pathlib import Path
from typing import Annotated

import typer

from rbrl.cli.inputs import Base, DataHome, DatasetName, IndexBase, Json, LabelBase, Labels, parse_bases, parse_labels
from rbrl.cli.output import say, show, show_json

app = typer.Typer(no_args_is_help=True, help="List, show, fetch and convert data sets.", rich_markup_mode="markdown")


@app.command("list")
def list_(json: Json = False) -> None:
    """List the catalogue.

    Example: `rbrl data list`
    """
    from rbrl.datasets import CARDS
    from rbrl.report.tables import datasets_table

    table = datasets_table(CARDS)
    if json:
        from rbrl.cli.output import records

        show_json(records(table))
    else:
        show(table)


@app.command("show")
def show_(
    name: DatasetName,
    json: Json = False,
    labels: Labels = None,
    index_base: IndexBase = Base.auto,
    label_base: LabelBase = Base.auto,
    data_home: DataHome = None,
) -> None:
    """Show one data set: origin, sizes, labels, peculiarities.

    Example: `rbrl data show yeast`
    """
    from rbrl.cli.inputs import load_data

    dataset = load_data(name, labels, data_home, parse_bases(index_base, label_base))
    summary = dataset.summary()
    if json:
        show_json({**summary, "label_names": list(dataset.label_names), "description": dataset.description})
        return
    print(dataset.description or dataset.name)
    print()
    for key, value in summary.items():
        if key != "name":
            shown = f"{value:.4g}" if isinstance(value, float) else value
            print(f"{key.replace('_', ' '):24} {shown}")


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", show_default=False, help="See `rbrl data list`.")],
    data_home: DataHome = None,
) -> None:
    """Download data sets into the cache and check their content.

    Example: `rbrl data fetch emotions scene`
    """
    from rbrl.datasets import load

    for name in names:
        dataset = load(name, data_home)
        say(
            f"{name}: {dataset.n_samples} samples, {dataset.n_features} features, {dataset.n_labels} labels; content checked"
        )


@app.command()
def convert(
    source: Annotated[
        str, typer.Argument(metavar="IN", show_default=False, help="A file, or a name of the catalogue.")
    ],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", show_default=False, help="The file to write, or the folder of shards.")
    ],
    labels: Labels = None,
    labels_first: Annotated[bool, typer.Option(help="ARFF, CSV, Parquet: labels before features.")] = False,
    rows_per_shard: Annotated[
        int | None,
        typer.Option(min=1, help="Write NPZ files of N rows into the folder OUT, with bounded memory.", metavar="N"),
    ] = None,
    index_base: IndexBase = Base.auto,
    label_base: LabelBase = Base.auto,
    data_home: DataHome = None,
) -> None:
    """Convert a file; the endings tell the formats: .arff .csv .tsv .svm .npz .mat .parquet.

    Examples:

    `rbrl data convert my.csv my.arff --labels -6`

    `rbrl data convert large.svm shards --rows-per-shard 50000`
    """
    from rbrl.cli.inputs import is_file, load_data
    from rbrl.datasets import save_file, write_shards

    bases = parse_bases(index_base, label_base)
    if rows_per_shard is not None:
        whole = Path(source) if is_file(source) else load_data(source, labels, data_home)
        options = bases if is_file(source) else {}
        shards = write_shards(whole, target, rows_per_shard, parse_labels(labels), **options)
        say(f"{target}: {len(shards)} shards of {rows_per_shard} rows; learn from them with `rbrl fit {target}`")
        return
    dataset = load_data(source, labels, data_home, bases)
    save_file(dataset, target, labels_first=labels_first)
    say(f"{target}: {dataset.n_samples} samples, {dataset.n_features} features, {dataset.n_labels} labels")
