"""Where answers go: tables and JSON to standard output, everything else to standard error."""

import json
import math
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbrl.report.table import Table

WIDE = 10_000


def show(*tables: "Table") -> None:
    """Print tables, in parts where the terminal is narrow; a pipe gets whole lines."""
    from rich.console import Console

    from rbrl.report.table import to_terminal

    known = sys.stdout.isatty() or os.environ.get("COLUMNS")
    console = Console(width=None if known else WIDE, highlight=False)
    for i, table in enumerate(tables):
        if i:
            console.print()
        for line in _lines(console, to_terminal(table, console)):
            console.print(line, soft_wrap=True)


def _lines(console, shown):
    """Rich pads every cell; a line of text ends where its words end."""
    from rich.text import Text

    for segments in console.render_lines(shown, pad=False):
        text = Text.assemble(*((s.text, s.style or "") for s in segments if not s.control))
        text.rstrip()
        yield text


def show_json(value: Any) -> None:
    """Print one JSON value; what is not a number becomes null."""
    print(json.dumps(_plain(value), ensure_ascii=False, indent=2))


def say(text: str, quiet: bool = False) -> None:
    """Tell the user something that is not the answer."""
    if not quiet:
        print(text, file=sys.stderr)


def records(table: "Table") -> list[dict[str, Any]]:
    """The figures of a table as JSON takes them."""
    return table.frame.astype(object).to_dict(orient="records")


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
