"""The commands: each parses, calls the library and prints.

Nothing heavy is imported before a command runs, so that help is quick.
"""

import os
import re
import sys
import warnings
from collections.abc import Sequence

import typer

from rbrl._version import __version__
from rbrl.cli import compare, data, models
from rbrl.cli.shared import STOPPED, Json, say, show_json

app = typer.Typer(
    name="rbrl", help="Multi-label classification: compare methods, fit and predict.", no_args_is_help=True,
    pretty_exceptions_enable=False, rich_markup_mode="markdown", context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
for command in (compare.compare, compare.report, models.fit, models.predict, models.evaluate):
    app.command()(command)
app.add_typer(data.app, name="data")
# What the library calls its options, and what they are called here.
OPTIONS = {
    "labels": "--labels", "ignore": "--ignore", "positive": "--positive", "first_feature": "--index-base",
    "first_label": "--label-base", "data_home": "--data-home",
}  # fmt: skip


@app.command()
def info(json: Json = False) -> None:
    """Say what runs here: versions, linear algebra and its threads, extras, and whether the loops are compiled.

    Example: `rbrl info --json`
    """
    from rbrl import installation

    found = installation.info()
    if json:
        show_json(found)
    else:
        print("\n".join(f"{name:14} {value}" for name, value in found.items()))


def _show_version(asked: bool) -> None:
    if asked:
        from rbrl.installation import core

        print(f"rbrl {__version__} (core: {core()})")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_show_version, is_eager=True),
) -> None:
    pass


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name; an error of its input becomes a line and an exit code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # Columns are matched by name as files are read; models are given arrays.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            app(args=arguments, prog_name="rbrl")
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; nothing more may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        say("rbrl: stopped")
        raise SystemExit(STOPPED) from None
    except Exception as error:
        if os.environ.get("RBRL_DEBUG") or not _is_users(error):
            raise
        say(f"rbrl: {_line(error)}")
        raise SystemExit(2) from None


def _is_users(error: Exception) -> bool:
    """Whether the input is to blame, as far as one can tell: a wrong value, a file, a name, a missing extra, its size."""
    ours = type(error).__module__.startswith("rbrl")
    return ours or isinstance(error, ValueError | OSError | ImportError | MemoryError)


def _line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return _spelled(" ".join(str(error).split())) or type(error).__name__


def _spelled(text: str) -> str:
    """A message of the library with its options as they are typed at a shell."""
    found = rf"(?<![\w-])({'|'.join(OPTIONS)})=(['\w]?)"
    return re.sub(found, lambda match: f"{OPTIONS[match[1]]} {match[2]}".rstrip(), text)


def _show_warning(message: Warning | str, *where: object, **to: object) -> None:
    say(f"rbrl: {_spelled(str(message))}")
