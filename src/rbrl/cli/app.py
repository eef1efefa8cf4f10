"""The commands, put together. Nothing heavy is imported before a command runs, so that help is quick."""

import typer

from rbrl.cli import compare, data, evaluate, fit, predict, report, reproduce

app = typer.Typer(
    name="rbrl",
    help="Multi-label classification: compare methods, reproduce the paper, fit and predict.",
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


for module in (compare, report, reproduce, fit, predict, evaluate):
    app.command(name=module.__name__.rpartition(".")[2])(module.run)
app.add_typer(data.app, name="data")
