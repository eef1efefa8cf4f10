"""Tables in every format: CSV, JSON, Markdown, LaTeX, HTML, and text for the terminal."""

import html
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rbrl._common.environment import write_text_atomically
from rbrl._common.texts import escape_formula
from rbrl.experiments.cells import (
    MISSING,
    Cell,
    Table,
    best_of,
    count,
    heading,
    join,
    number,
    p_text,
    seconds,
    spread,
    word,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as RichTable

__all__ = [
    "FORMATS", "MISSING", "Cell", "Table", "best_of", "count", "heading", "join", "number", "p_text", "seconds",
    "show_tables", "spread", "to_markdown", "word", "write_text",
]  # fmt: skip

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "–": "--",
    "±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "Δ": r"$\Delta$", "×": r"$\times$", "∞": r"$\infty$",
    "−": "$-$", "\n": " ",
})  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|])")
# Spaces that Rich puts between two columns.
COLUMN_GAP = 3
# Longest text of a cell that is not broken into lines.
LONGEST_UNBROKEN_TEXT = 40
# Width of the text for a pipe, which gets whole lines.
PIPE_WIDTH = 10_000


def to_csv(table: Table) -> str:
    """Return the numbers in full precision as CSV, one number per line.

    A name that a spreadsheet program would run as a formula starts with an apostrophe.
    """
    frame = table.frame.map(escape_formula).rename(columns=escape_formula)
    return frame.to_csv(index=False, lineterminator="\n")


def to_json(table: Table) -> str:
    """Return the numbers in full precision as a JSON list of objects."""
    records = json.loads(table.frame.to_json(orient="records", double_precision=15))
    return json.dumps(records, ensure_ascii=False, indent=2)


def to_markdown(table: Table) -> str:
    """Return a table in GitHub's Markdown.

    Parameters
    ----------
    table : Table

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.tables import Table, number, to_markdown, word
    >>> frame = pd.DataFrame({"dataset": ["sea"], "loss": [0.25]})
    >>> table = Table("losses", "Losses", ("Data set", "Loss"), ((word("sea"), number(0.25, best=True)),), frame)
    >>> print(to_markdown(table), end="")
    **Losses**
    <BLANKLINE>
    | Data set | Loss |
    | --- | ---: |
    | sea | **0.250** |
    """

    def escape(text: str, mark: str = "") -> str:
        return mark + _MARKDOWN.sub(r"\\\1", text).replace("\n", " ") + mark

    titles = [escape(title) for title in table.columns]
    alignment = ["---:" if table.numeric(j) else "---" for j in range(len(titles))]
    lines = [titles, alignment, *([escape(c.text, "**" if c.best else "") for c in row] for row in table.rows)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{escape(table.title, '**')}\n\n{text}\n" + (f"\n{escape(table.note)}\n" if table.note else "")


def to_latex(table: Table) -> str:
    """Return a floating LaTeX table, which needs the package booktabs."""
    align = "".join("r" if table.numeric(j) else "l" for j in range(len(table.columns)))
    caption = f"{table.title}. {table.note}".rstrip().translate(_LATEX)
    titles = " & ".join(title.translate(_LATEX) for title in table.columns)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{tab:{table.name}}}"]
    lines += [rf"\begin{{tabular}}{{{align}}}", r"\toprule", rf"{titles} \\", r"\midrule"]
    for has_line_above, row in table.blocks():
        texts = [(cell.text.translate(_LATEX), cell.best) for cell in row]
        cells = [rf"\textbf{{{text}}}" if best else text for text, best in texts]
        lines += [r"\midrule"] * has_line_above + [" & ".join(cells) + r" \\"]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def to_html(table: Table) -> str:
    """Return a plain HTML table with scopes; the page of a comparison has sortable tables instead."""
    titles = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in table.columns)
    rows = "\n".join(f"<tr>{''.join(_html_cells(table, row))}</tr>" for row in table.rows)
    note = f"\n<p>{html.escape(table.note)}</p>" if table.note else ""
    caption = f"<caption>{html.escape(table.title)}</caption>"
    return f"<table>\n{caption}\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>{note}\n"


def _html_cells(table: Table, row: Sequence[Cell]) -> Iterator[str]:
    for j, cell in enumerate(row):
        text = html.escape(cell.text)
        if j < table.n_keys:
            yield f'<th scope="row">{text}</th>'
        else:
            yield f"<td><strong>{text}</strong></td>" if cell.best else f"<td>{text}</td>"


# Function that writes a table in each format, by the ending of the file.
FORMATS: dict[str, Callable[[Table], str]] = {
    "csv": to_csv, "json": to_json, "md": to_markdown, "tex": to_latex, "html": to_html
}  # fmt: skip
USUAL_FORMATS = ("csv", "tex", "md", "html")


def save_table(table: Table, folder: Path, formats: Sequence[str] = USUAL_FORMATS) -> list[Path]:
    """Write a table into a folder, one file for each of the `formats`; return the paths."""
    return [write_text(folder / f"{table.name}.{name}", FORMATS[name](table)) for name in formats]


def write_text(path: Path, text: str) -> Path:
    """Write a text file, completely or not at all, and create its folder.

    Parameters
    ----------
    path : Path
        Path of the file.
    text : str
        Content of the file.

    Returns
    -------
    Path
        Path of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from rbrl.experiments.tables import write_text
    >>> write_text(Path(mkdtemp(), "tables", "note.txt"), "a note").read_text()
    'a note'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, text)
    return path


def show_tables(*tables: Table) -> None:
    """Print tables, in parts if the terminal is narrow.

    Parameters
    ----------
    *tables : Table
        Tables to print.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.tables import Table, number, show_tables, word
    >>> frame = pd.DataFrame({"dataset": ["sea"], "loss": [0.25]})
    >>> table = Table("losses", "Losses", ("Data set", "Loss"), ((word("sea"), number(0.25, best=True)),), frame)
    >>> show_tables(table)
    Losses
    Data set    Loss
    sea        0.250
    """
    from rich.console import Console
    from rich.text import Text

    has_width = sys.stdout.isatty() or os.environ.get("COLUMNS")
    console = Console(width=None if has_width else PIPE_WIDTH, highlight=False)
    for i, table in enumerate(tables):
        if i:
            console.print()
        for segments in console.render_lines(to_terminal(table, console), pad=False):
            line = Text.assemble(*((s.text, s.style or "") for s in segments if not s.control))
            line.rstrip()  # Rich pads every cell with spaces
            console.print(line, soft_wrap=True)


def to_terminal(table: Table, console: "Console") -> "RenderableType":
    """Return an object that Rich prints; every part of a wide table repeats the key columns."""
    from rich.console import Group
    from rich.text import Text

    parts = [_rich_table(table, columns) for columns in _split_columns(table, console.width)]
    notes = [Text(table.note, style="dim")] if table.note else []
    return Group(Text(table.title, style="bold"), *parts, *notes)


def _split_columns(table: Table, width: int) -> list[list[int]]:
    """Return the columns of each part: the key columns, and as many others as fit."""
    widths = [max([len(title), *(len(row[j].text) for row in table.rows)]) for j, title in enumerate(table.columns)]
    keys = list(range(table.n_keys))
    room = width - sum(widths[j] + COLUMN_GAP for j in keys)
    used = 0
    parts: list[list[int]] = [[]]
    for j in range(table.n_keys, len(table.columns)):
        if parts[-1] and used + widths[j] > room:
            parts.append([])
            used = 0
        parts[-1].append(j)
        used += widths[j] + COLUMN_GAP
    return [[*keys, *part] for part in parts]


def _rich_table(table: Table, columns: list[int]) -> "RichTable":
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=None, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), show_edge=False, header_style="dim")
    for j in columns:
        is_numeric = table.numeric(j)
        is_short = max((len(row[j].text) for row in table.rows), default=0) <= LONGEST_UNBROKEN_TEXT
        title = Text(table.columns[j])
        shown.add_column(title, justify="right" if is_numeric else "left", no_wrap=is_numeric or is_short)
    for has_line_above, row in table.blocks():
        if has_line_above:
            shown.add_row()
        shown.add_row(*(Text(row[j].text, style="bold" if row[j].best else "") for j in columns))
    return shown
