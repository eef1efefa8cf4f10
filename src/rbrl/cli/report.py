"""`rbrl report`: tables, figures and the page of a run."""

from pathlib import Path
from typing import Annotated

import typer

from rbrl.cli.options import Json, Quiet


def run(
    folder: Annotated[Path, typer.Argument(metavar="RUN", show_default=False, help="Folder that `compare` wrote.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to; default: RUN/report.", show_default=False)
    ] = None,
    formats: Annotated[
        str, typer.Option(help="Of the tables: csv, json, tex, md, html, with commas.")
    ] = "csv,tex,md,html",
    ablation: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Two methods for the ablation table; default: brl,rbrl.", show_default=False),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the tables (CSV, LaTeX, Markdown, HTML), the figures (SVG, PNG) and one self-contained page of a run.

    Works on an unfinished run, too.

    Example: `rbrl report runs/demo`
    """
    from rbrl.cli.reporting import parse_formats, report_store

    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}; `rbrl compare` makes one")
    from rbrl.experiments import Store

    report_store(
        Store(folder),
        output or folder / "report",
        formats=parse_formats(formats),
        command="rbrl compare plan.toml   # with the plan below",
        ablation=_pair(ablation),
        json=json,
        quiet=quiet,
    )


def _pair(text):
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2:
        raise ValueError(f"--ablation takes two methods with a comma between them. Got {text!r} instead.")
    return names[0], names[1]
