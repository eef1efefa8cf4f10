"""`Table`: cells for people, the same figures as a frame for programs, and every format it is written in."""

import html
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as RichTable

DIGITS = 3
# What a cell without a value shows.
MISSING = "–"


@dataclass(frozen=True)
class Cell:
    """One cell: what is shown, what sorting compares, whether it is among the best of its row.

    Examples
    --------
    >>> from rbrl.report import Cell
    >>> Cell("0.125*", 0.125).is_number, Cell("yeast").is_number
    (True, False)
    """

    text: str
    value: Any = None
    best: bool = False

    @property
    def is_number(self) -> bool:
        """Whether the cell holds a figure, shown to the right."""
        return isinstance(self.value, int | float)


@dataclass(frozen=True)
class Table:
    """A table in every form.

    Parameters
    ----------
    name : str
        For files, such as ``"average-ranks"``.
    title : str
    columns : tuple of str
    rows : tuple of tuple of Cell
    frame : DataFrame
        The figures in full precision, one per row: what CSV and JSON hold.
    n_keys : int, default=1
        Leading columns that say what a row is about.
    n_foot : int, default=0
        Rows at the end that sum up the others.
    note : str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.report import Table, number, to_markdown, word
    >>> rows = ((word("br"), number(0.25)), (word("rbrl"), number(0.125, best=True)))
    >>> table = Table("losses", "Losses", ("Method", "Loss"), rows, pd.DataFrame({"loss": [0.25, 0.125]}))
    >>> print(to_markdown(table))
    **Losses**
    <BLANKLINE>
    | Method | Loss |
    | --- | ---: |
    | br | 0.250 |
    | rbrl | **0.125** |
    <BLANKLINE>
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    frame: pd.DataFrame
    n_keys: int = 1
    n_foot: int = 0
    note: str = ""

    @property
    def body(self) -> tuple[tuple[Cell, ...], ...]:
        """Rows without the foot."""
        return self.rows[: len(self.rows) - self.n_foot]

    @property
    def foot(self) -> tuple[tuple[Cell, ...], ...]:
        """Rows that sum up the others."""
        return self.rows[len(self.rows) - self.n_foot :]

    def numeric(self, column: int) -> bool:
        """Whether a column holds figures.

        Parameters
        ----------
        column : int

        Returns
        -------
        bool
        """
        cells = [row[column] for row in self.rows]
        return any(cell.is_number for cell in cells) or (bool(cells) and all(cell.text == MISSING for cell in cells))

    def blocks(self) -> Iterator[tuple[bool, tuple[Cell, ...]]]:
        """Rows as printed: (whether a rule goes above, cells); a first key is shown once per block.

        Returns
        -------
        iterator of (bool, tuple of Cell)
        """
        previous = None
        for i, row in enumerate(self.rows):
            footing = self.n_foot > 0 and i == len(self.rows) - self.n_foot
            repeated = self.n_keys > 1 and previous == row[0].text and not footing
            new_block = self.n_keys > 1 and not repeated
            yield i > 0 and (footing or new_block), (Cell(""), *row[1:]) if repeated else row
            previous = row[0].text

    def records(self) -> list[dict[str, Any]]:
        """The figures of the frame, a dict for each of its rows.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> import pandas as pd
        >>> from rbrl.report import Table, number, word
        >>> frame = pd.DataFrame({"dataset": ["sea"], "loss": [0.25]})
        >>> Table("losses", "Losses", ("Data set", "Loss"), ((word("sea"), number(0.25)),), frame).records()
        [{'dataset': 'sea', 'loss': 0.25}]
        """
        return self.frame.astype(object).to_dict(orient="records")


def number(value: float | None, digits: int = DIGITS, best: bool = False) -> Cell:
    """A figure with a fixed number of digits; a dash if it is missing.

    Parameters
    ----------
    value : float or None
    digits : int, default=3
        After the point.
    best : bool, default=False

    Returns
    -------
    Cell

    Examples
    --------
    >>> from rbrl.report import number
    >>> number(0.12345).text, number(2 / 3, digits=1).text, number(None).text
    ('0.123', '0.7', '–')
    """
    if value is None or value != value:
        return Cell(MISSING)
    return Cell(f"{value:.{digits}f}", float(value), best)


def spread(mean: float, std: float, digits: int = DIGITS, best: bool = False, mark: str = "") -> Cell:
    """Mean ± standard deviation.

    Parameters
    ----------
    mean, std : float
        A dash for both where the mean is missing.
    digits : int, default=3
        After the point.
    best : bool, default=False
    mark : str, optional
        Put behind them.

    Returns
    -------
    Cell

    Examples
    --------
    >>> from rbrl.report import spread
    >>> spread(0.1234, 0.0061).text, spread(0.1234, 0.0061, digits=2, mark="*").text
    ('0.123 ± 0.006', '0.12 ± 0.01*')
    """
    if mean != mean:
        return Cell(MISSING)
    return Cell(f"{mean:.{digits}f} ± {std:.{digits}f}{mark}", float(mean), best)


def word(text: object) -> Cell:
    """A name or a sentence.

    Parameters
    ----------
    text : object

    Returns
    -------
    Cell

    Examples
    --------
    >>> from rbrl.report import word
    >>> word("yeast").text, word("yeast").value is None
    ('yeast', True)
    """
    return Cell(str(text))


def count(value: int | None) -> Cell:
    """A whole number; a dash if it is missing.

    Parameters
    ----------
    value : int or None

    Returns
    -------
    Cell

    Examples
    --------
    >>> from rbrl.report import count
    >>> count(12).text, count(None).text
    ('12', '–')
    """
    return Cell(MISSING) if value is None else Cell(f"{value}", int(value))


def seconds(value: float | None) -> Cell:
    """A time with two or three significant digits.

    Parameters
    ----------
    value : float or None

    Returns
    -------
    Cell

    Examples
    --------
    >>> from rbrl.report import seconds
    >>> [seconds(value).text for value in (1234.0, 12.345, 0.12345, 0.0001, None)]
    ['1234', '12.3', '0.12', '<0.001', '–']
    """
    if value is None or value != value:
        return Cell(MISSING)
    text = f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"
    return Cell(text if value >= 0.001 or value == 0 else "<0.001", float(value))


def p_text(p_value: float) -> str:
    """A p-value for people.

    Parameters
    ----------
    p_value : float

    Returns
    -------
    str

    Examples
    --------
    >>> from rbrl.report import p_text
    >>> p_text(0.0416), p_text(0.0000213), p_text(0.0)
    ('0.042', '2e-05', '<1e-16')
    """
    if p_value >= 0.001:
        return f"{p_value:.3f}"
    return f"{p_value:.0e}" if p_value >= 1e-16 else "<1e-16"


_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "–": "--",
    "±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "Δ": r"$\Delta$", "×": r"$\times$", "∞": r"$\infty$",
    "−": "$-$", "\n": " ",
})  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|])")


def to_csv(table: Table) -> str:
    """The figures in full precision, one per line.

    Parameters
    ----------
    table : Table

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.report import Table, number, to_csv, word
    >>> frame = pd.DataFrame({"dataset": ["sea"], "loss": [0.25]})
    >>> table = Table("losses", "Losses", ("Data set", "Loss"), ((word("sea"), number(0.25, best=True)),), frame)
    >>> print(to_csv(table), end="")
    dataset,loss
    sea,0.25
    """
    return table.frame.to_csv(index=False, lineterminator="\n")


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
    >>> from rbrl.report import Table, number, to_json, word
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
    >>> from rbrl.report import Table, number, to_markdown, word
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
    >>> from rbrl.report import Table, number, to_latex, word
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
    >>> from rbrl.report import Table, number, to_html, word
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
    >>> from rbrl.report import Table, number, show_tables, word
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
    >>> from rbrl.report import Table, number, to_terminal, word
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
