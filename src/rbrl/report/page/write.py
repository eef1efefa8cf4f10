"""From rows to the file."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from rbrl.report.page.content import content
from rbrl.report.results import Results


def render_page(
    rows: pd.DataFrame | Results, *, title: str = "Comparison of multi-label methods", command: str = "", plan: str = ""
) -> str:
    """The page as text; see `write_page`."""
    results = rows if isinstance(rows, Results) else Results.from_rows(rows)
    script = _part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = _environment().get_template("page.html")
    return template.render(
        **content(results, title, command, plan),
        css=Markup(_part("page.css")),
        script=Markup(script),
        script_hash=digest,
    )


def write_page(rows: pd.DataFrame | Results, path: Path | str, **options: Any) -> Path:
    """Write one self-contained HTML file: no network, nothing beside it, every name escaped.

    Parameters
    ----------
    rows : DataFrame or Results
        Rows of a store, or results.
    path : path
    title : str, optional
    command : str, optional
        What made the run; shown under "How to reproduce".
    plan : str, optional
        The plan's text, shown there too.

    Returns
    -------
    Path
    """
    path = Path(path)
    text = render_page(rows, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@cache
def _part(name):
    return files("rbrl.report.page").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment():
    return Environment(
        loader=FunctionLoader(_part), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
