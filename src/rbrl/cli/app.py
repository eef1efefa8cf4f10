"""The commands, put together. Nothing heavy is imported before a command runs, so that help is quick."""

import typer

from rbrl.cli import data
from rbrl.cli.compare import compare, report
from rbrl.cli.models import evaluate, fit, predict

app = typer.Typer(
    name="rbrl",
    help="Multi-label classification: compare methods, fit and predict.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from rbrl import __version__

        print(f"rbrl {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    pass


for command in (compare, report, fit, predict, evaluate):
    app.command()(command)
app.add_typer(data.app, name="data")
