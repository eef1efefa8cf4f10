"""A table in every format: CSV, JSON, Markdown, LaTeX, HTML, and the terminal."""

import html
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rbrl._common.atomic_files import write_text_atomically
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


def to_csv(table: Table) -> str:
    """Return the figures in full precision, one per line.

    Names that a spreadsheet program would run as a formula begin with an apostrophe.

    Parameters
    ----------
    table : Table

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.tables import Table, number, to_csv, word
    >>> frame = pd.DataFrame({"dataset": ["sea"], "loss": [0.25]})
    >>> table = Table("losses", "Losses", ("Data set", "Loss"), ((word("sea"), number(0.25, best=True)),), frame)
    >>> print(to_csv(table), end="")
    dataset,loss
    sea,0.25
    """
    frame = table.frame.map(escape_formula).rename(columns=escape_formula)
    return frame.to_csv(index=False, lineterminator="\n")


def to_json(table: Table) -> str:
    """The figures in full precision, as a list of objects.

    Parameters
    ----------
    table : Table

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.tables import Table, number, to_json, word
    >>> frame = pd.DataFrame({"dataset": ["sea"], "loss": [0.25]})
    >>> table = Table("losses", "Losses", ("Data set", "Loss"), ((word("sea"), number(0.25, best=True)),), frame)
    >>> print(to_json(table))
    [
      {
        "dataset": "sea",
        "loss": 0.25
      }
    ]
    """
    records = json.loads(table.frame.to_json(orient="records", double_precision=15))
    return json.dumps(records, ensure_ascii=False, indent=2)


def to_markdown(table: Table) -> str:
    """A GitHub table.

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

    def escaped(text: str, mark: str = "") -> str:
        return mark + _MARKDOWN.sub(r"\\\1", text).replace("\n", " ") + mark

    heads = [escaped(title) for title in table.columns]
    marks = ["---:" if table.numeric(j) else "---" for j in range(len(heads))]
    lines = [heads, marks, *([escaped(c.text, "**" if c.best else "") for c in row] for row in table.rows)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{escaped(table.title, '**')}\n\n{text}\n" + (f"\n{escaped(table.note)}\n" if table.note else "")


def to_latex(table: Table) -> str:
    """A floating table; needs the package booktabs.

    Parameters
    ----------
    table : Table

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.tables import Table, number, to_latex, word
    >>> frame = pd.DataFrame({"dataset": ["sea"], "loss": [0.25]})
    >>> table = Table("losses", "Losses", ("Data set", "Loss"), ((word("sea"), number(0.25, best=True)),), frame)
    >>> to_latex(table).count("toprule"), "textbf{0.250}" in to_latex(table)
    (1, True)
    """
    align = "".join("r" if table.numeric(j) else "l" for j in range(len(table.columns)))
    caption = f"{table.title}. {table.note}".rstrip().translate(_LATEX)
    heads = " & ".join(title.translate(_LATEX) for title in table.columns)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{tab:{table.name}}}"]
    lines += [rf"\begin{{tabular}}{{{align}}}", r"\toprule", rf"{heads} \\", r"\midrule"]
    for ruled, row in table.blocks():
        texts = [(cell.text.translate(_LATEX), cell.best) for cell in row]
        cells = [rf"\textbf{{{text}}}" if best else text for text, best in texts]
        lines += [r"\midrule"] * ruled + [" & ".join(cells) + r" \\"]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def to_html(table: Table) -> str:
    """A plain table element, with scopes; the page has its own, sortable one.

    Parameters
    ----------
    table : Table

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.tables import Table, number, to_html, word
    >>> frame = pd.DataFrame({"dataset": ["sea"], "loss": [0.25]})
    >>> table = Table("losses", "Losses", ("Data set", "Loss"), ((word("sea"), number(0.25, best=True)),), frame)
    >>> print(to_html(table), end="")
    <table>
    <caption>Losses</caption>
    <thead><tr><th scope="col">Data set</th><th scope="col">Loss</th></tr></thead>
    <tbody>
    <tr><th scope="row">sea</th><td><strong>0.250</strong></td></tr>
    </tbody>
    </table>
    """
    heads = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in table.columns)
    rows = "\n".join(f"<tr>{''.join(_html_cells(table, row))}</tr>" for row in table.rows)
    note = f"\n<p>{html.escape(table.note)}</p>" if table.note else ""
    caption = f"<caption>{html.escape(table.title)}</caption>"
    return f"<table>\n{caption}\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>{note}\n"


def _html_cells(table: Table, row: Sequence[Cell]) -> Iterator[str]:
    for j, cell in enumerate(row):
        text = html.escape(cell.text)
        if j < table.n_keys:
            yield f'<th scope="row">{text}</th>'
        else:
            yield f"<td><strong>{text}</strong></td>" if cell.best else f"<td>{text}</td>"


# What a table can be written as, by the name of the format.
FORMATS: dict[str, Callable[[Table], str]] = {
    "csv": to_csv, "json": to_json, "md": to_markdown, "tex": to_latex, "html": to_html
}  # fmt: skip
USUAL_FORMATS = ("csv", "tex", "md", "html")


def save_table(table: Table, folder: Path, formats: Sequence[str] = USUAL_FORMATS) -> list[Path]:
    """Write `table` into `folder`, one file per format; return the paths.

    Parameters
    ----------
    table : Table
    folder : Path
        Made where it is missing.
    formats : sequence of str
        Keys of `FORMATS`.

    Returns
    -------
    list of Path

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import pandas as pd
    >>> from rbrl.experiments import Results
    >>> from rbrl.experiments.comparison_tables import results_table
    >>> from rbrl.experiments.tables import save_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> [path.name for path in save_table(results_table(results), Path(mkdtemp()), ["csv", "tex"])]
    ['results.csv', 'results.tex']
    """
    return [write_text(folder / f"{table.name}.{name}", FORMATS[name](table)) for name in formats]


def write_text(path: Path, text: str) -> Path:
    """Write a file, complete or not at all, into a folder that is made where it is missing; return its path.

    Parameters
    ----------
    path : Path
    text : str

    Returns
    -------
    Path

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


GAP = 3  # columns that Rich puts between two cells
LONGEST_LINE = 40  # letters of a cell that is not broken into lines
PIPE_WIDTH = 10_000


def show_tables(*tables: Table) -> None:
    """Print tables, in parts where the terminal is narrow; a pipe gets whole lines.

    Parameters
    ----------
    *tables : Table

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

    known = sys.stdout.isatty() or os.environ.get("COLUMNS")
    console = Console(width=None if known else PIPE_WIDTH, highlight=False)
    for i, table in enumerate(tables):
        if i:
            console.print()
        for segments in console.render_lines(to_terminal(table, console), pad=False):
            line = Text.assemble(*((s.text, s.style or "") for s in segments if not s.control))
            line.rstrip()  # Rich pads every cell; a line of text ends where its words end
            console.print(line, soft_wrap=True)


def to_terminal(table: Table, console: "Console") -> "RenderableType":
    """What Rich prints for `table`: names on the left again in every part, so that nothing is cut.

    Parameters
    ----------
    table : Table
    console : Console
        Rich's, which knows the width.

    Returns
    -------
    renderable

    Examples
    --------
    >>> import io
    >>> import pandas as pd
    >>> from rich.console import Console
    >>> from rbrl.experiments.tables import Table, number, to_terminal, word
    >>> frame = pd.DataFrame({"dataset": ["sea"], "loss": [0.25]})
    >>> table = Table("losses", "Losses", ("Data set", "Loss"), ((word("sea"), number(0.25, best=True)),), frame)
    >>> console = Console(file=io.StringIO(), width=40)
    >>> console.print(to_terminal(table, console))
    >>> "0.250" in console.file.getvalue()
    True
    """
    from rich.console import Group
    from rich.text import Text

    parts = [_part(table, columns) for columns in _parts(table, console.width)]
    notes = [Text(table.note, style="dim")] if table.note else []
    return Group(Text(table.title, style="bold"), *parts, *notes)


def _parts(table: Table, width: int) -> list[list[int]]:
    """Columns of each part: the keys, and as many others as fit."""
    widths = [max([len(title), *(len(row[j].text) for row in table.rows)]) for j, title in enumerate(table.columns)]
    keys = list(range(table.n_keys))
    room, used = width - sum(widths[j] + GAP for j in keys), 0
    parts: list[list[int]] = [[]]
    for j in range(table.n_keys, len(table.columns)):
        if parts[-1] and used + widths[j] > room:
            parts.append([])
            used = 0
        parts[-1].append(j)
        used += widths[j] + GAP
    return [[*keys, *part] for part in parts]


def _part(table: Table, columns: list[int]) -> "RichTable":
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_edge=False, header_style="dim")
    for j in columns:
        numeric, longest = table.numeric(j), max((len(row[j].text) for row in table.rows), default=0)
        whole = numeric or longest <= LONGEST_LINE
        shown.add_column(Text(table.columns[j]), justify="right" if numeric else "left", no_wrap=whole)
    for ruled, row in table.blocks():
        if ruled:
            shown.add_row()
        shown.add_row(*(Text(row[j].text, style="bold" if row[j].best else "") for j in columns))
    return shown
