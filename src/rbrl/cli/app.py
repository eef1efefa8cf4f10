"""The program `rbrl`: its commands, `rbrl data`, `rbrl info`, and its error messages.

Heavy packages are imported when a command runs, so that help is quick.
"""

import os
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rbrl._version import __version__
from rbrl.cli import compare, models, shared
from rbrl.cli.shared import Base, argument, option, say

if TYPE_CHECKING:
    from rbrl.datasets import Dataset

TOP_HELP = """Multi-label classification: fit models, predict labels, and compare methods.

A first model, on a data set that needs no download:

`rbrl fit yeast -o yeast.rbrl`

`rbrl evaluate yeast.rbrl yeast`

`rbrl COMMAND --help` explains a command.
"""
app = typer.Typer(
    name="rbrl", help=TOP_HELP, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
data_app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
for command in (models.fit, models.predict, models.evaluate, compare.compare, compare.report):
    app.command()(command)
app.add_typer(data_app, name="data", help="List, show, download and convert data sets.")
# Terms of the Python library, and what to type at a shell instead.
SHELL_OPTIONS = {
    "labels": "--labels", "ignore": "--ignore", "positive": "--positive", "first_feature": "--index-base",
    "first_label": "--label-base", "data_home": "--data-home",
}  # fmt: skip


@app.command()
def info(json: shared.Json = False) -> None:
    """Show versions, the linear algebra library, installed extras, and whether loops are compiled.

    Example: `rbrl info --json`
    """
    from rbrl import installation

    found = installation.info()
    if json:
        shared.show_json(found)
    else:
        print("\n".join(f"{name:14} {value}" for name, value in found.items()))


@data_app.command("list")
def list_data_sets(json: shared.Json = False) -> None:
    """List the data sets of the catalogue.

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


@data_app.command("show")
def show_data_set(
    data: shared.Data, json: shared.Json = False, labels: shared.Labels = None, positive: shared.Positive = None,
    ignore: shared.Ignore = None, index_base: shared.IndexBase = Base.auto, label_base: shared.LabelBase = Base.auto,
    data_home: shared.DataHome = None,
) -> None:  # fmt: skip
    """Show the source, the sizes, the labels and the peculiarities of a data set.

    Examples:

    `rbrl data show yeast`

    `rbrl data show my.csv --labels sea,sand`
    """
    dataset = shared.Source.parse(data, data_home, labels, ignore, positive, index_base, label_base).load()
    summary = dataset.summary()
    if json:
        shared.show_json({**summary, "label_names": dataset.label_names, "description": dataset.description})
        return
    print(f"{dataset.description or dataset.name}\n")
    for key, value in summary.items():
        if key != "name":
            shown = f"{value:.4g}" if isinstance(value, float) else value
            print(f"{key.replace('_', ' '):24} {shown}")


@data_app.command()
def fetch(
    names: Annotated[list[str], argument("NAME...", "Names of data sets; see `rbrl data list`.")],
    data_home: shared.DataHome = None,
) -> None:
    """Download data sets into the cache, and check their content.

    Example: `rbrl data fetch emotions scene`
    """
    from rbrl.datasets import load

    for name in names:
        say(f"{name}: {_describe_sizes(load(name, data_home))}; content checked")


@data_app.command()
def convert(
    data: Annotated[str, argument("IN", "Data file, or the name of a data set.")],
    output: Annotated[Path, argument("OUT", "File to write, or folder for shards.")],
    labels: shared.Labels = None, positive: shared.Positive = None, ignore: shared.Ignore = None,
    labels_first: Annotated[
        bool, typer.Option(help="Write labels before features, in ARFF, CSV and Parquet files.")
    ] = False,
    rows_per_shard: Annotated[
        int | None,
        option(min=1, metavar="N", help="Write NPZ files of N rows, called shards, into the folder OUT."),
    ] = None,
    index_base: shared.IndexBase = Base.auto, label_base: shared.LabelBase = Base.auto,
    data_home: shared.DataHome = None,
) -> None:  # fmt: skip
    """Convert a data file to another format, or split it into shards.

    The endings of the files say which formats: .arff .csv .tsv .svm .npz .mat .parquet

    Examples:

    `rbrl data convert my.csv my.arff --labels -6`

    `rbrl data convert large.svm shards --rows-per-shard 50000`
    """
    from rbrl.datasets import save_file, write_shards

    source = shared.Source.parse(data, data_home, labels, ignore, positive, index_base, label_base)
    shared.check_output(output, source.find_input_files())
    if rows_per_shard is None:
        dataset = source.load()
        save_file(dataset, output, labels_first=labels_first)
        say(f"{output}: {_describe_sizes(dataset)}")
        return
    if source.is_file:
        shards = write_shards(data, output, rows_per_shard, **source.options)  # reads the file in blocks
    else:
        shards = write_shards(source.load(), output, rows_per_shard)
    say(f"{output}: {len(shards)} shards of {rows_per_shard} rows; fit a model with `rbrl fit {output} -o MODEL`")


def _describe_sizes(dataset: "Dataset") -> str:
    return f"{dataset.n_samples} samples, {dataset.n_features} features, {dataset.n_labels} labels"


def _show_version(is_given: bool) -> None:
    if is_given:
        from rbrl.installation import core

        print(f"rbrl {__version__} (core: {core()})")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_show_version, is_eager=True),
) -> None:
    pass


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command in the arguments; an error of the input becomes one line and exit code 2."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # Commands match columns by name before they call a model with arrays.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            app(args=arguments, prog_name="rbrl")
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe; Python must not write at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        say("rbrl: stopped")
        raise SystemExit(shared.EXIT_INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("RBRL_DEBUG") or not _is_input_error(error):
            raise
        say(f"rbrl: {_format_error(error)}")
        raise SystemExit(2) from None


def _is_input_error(error: Exception) -> bool:
    """Return True for errors that the input can cause: a value, a file, a missing extra, too little memory."""
    is_ours = type(error).__module__.startswith("rbrl")
    return is_ours or isinstance(error, ValueError | OSError | ImportError | MemoryError)


def _format_error(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return _use_shell_terms(" ".join(str(error).split())) or type(error).__name__


def _use_shell_terms(text: str) -> str:
    """Replace Python options by shell options, and class names by names of methods."""
    options = rf"(?<![\w-])({'|'.join(SHELL_OPTIONS)})=(['\w-]?)"
    text = re.sub(options, lambda match: f"{SHELL_OPTIONS[match[1]]} {match[2]}".rstrip(), text)
    text = text.replace("sklearn.preprocessing.StandardScaler", "--standardise")
    registry = sys.modules.get("rbrl.registry")  # if it is not loaded, no classifier was used
    methods = {method.__name__: name for name, method in registry.REGISTRY.items()} if registry else {}
    return re.sub(r"\b[A-Z]\w+\b", lambda match: methods.get(match[0], match[0]), text)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    say(f"rbrl: {_use_shell_terms(str(message))}")
