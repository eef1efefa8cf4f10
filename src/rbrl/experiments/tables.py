"""Tables: cells with text and value, and functions that write a table as CSV, JSON, Markdown, LaTeX, HTML or text.

Examples
--------
>>> import pandas as pd
>>> from rbrl.experiments.tables import Table, number, to_markdown, word
>>> rows = ((word("br"), number(0.25)), (word("rbrl"), number(0.125, best=True)))
>>> table = Table("losses", "Losses", ("Method", "Loss"), rows, pd.DataFrame({"loss": [0.25, 0.125]}))
>>> print(to_markdown(table), end="")
**Losses**
<BLANKLINE>
| Method | Loss |
| --- | ---: |
| br | 0.250 |
| rbrl | **0.125** |
"""

import html
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbrl._common.environment import explain_import_error, write_text_atomically
from rbrl._common.texts import escape_formula
from rbrl.metrics import Metric

try:
    import pandas as pd
except ImportError as error:
    raise explain_import_error(error, "report", "A table of a comparison") from error

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as RichTable

# Default number of decimals of a table.
TABLE_DECIMALS = 3
# Text of a cell without a value.
MISSING = "–"
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


@dataclass(frozen=True)
class Cell:
    """One cell of a table: its text, and the value by which a column is sorted.

    The value of a cell with a number is that number. The best values of a row are marked.
    """

    text: str
    value: Any = None
    best: bool = False

    @property
    def is_number(self) -> bool:
        """True if the cell holds a number, which is aligned to the right."""
        return isinstance(self.value, int | float)


@dataclass(frozen=True)
class Table:
    """A table that can be written in every format of `FORMATS`.

    The name is that of its files, such as "average-ranks". The frame has the numbers in full
    precision, for CSV and JSON. The first `n_keys` columns name the row, and the last `n_foot` rows
    summarise the others. The note stands below the table.
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
        """Rows at the end that summarise the others."""
        return self.rows[len(self.rows) - self.n_foot :]

    def numeric(self, column: int) -> bool:
        """Return True if a column, given by its index, holds numbers or only missing values."""
        cells = [row[column] for row in self.rows]
        return any(cell.is_number for cell in cells) or (bool(cells) and all(cell.text == MISSING for cell in cells))

    def blocks(self) -> Iterator[tuple[bool, tuple[Cell, ...]]]:
        """Yield (True if a line separates the row from the one above, cells of the row).

        Rows with the same first key form a block, and only the first of them shows the key.
        """
        previous = None
        for i, row in enumerate(self.rows):
            starts_foot = self.n_foot > 0 and i == len(self.rows) - self.n_foot
            is_repeated = self.n_keys > 1 and previous == row[0].text and not starts_foot
            starts_block = self.n_keys > 1 and not is_repeated
            yield i > 0 and (starts_foot or starts_block), (Cell(""), *row[1:]) if is_repeated else row
            previous = row[0].text

    def records(self) -> list[dict[str, Any]]:
        """Return the rows of the frame, each as a dict."""
        return self.frame.astype(object).to_dict(orient="records")


def number(value: float | None, digits: int = TABLE_DECIMALS, best: bool = False) -> Cell:
    """Return a cell with a number; None and NaN are shown as a dash.

    Examples
    --------
    >>> number(0.12345).text, number(2 / 3, digits=1).text, number(None).text
    ('0.123', '0.7', '–')
    """
    if value is None or value != value:
        return Cell(MISSING)
    return Cell(f"{value:.{digits}f}", float(value), best)


def spread(mean: float, std: float, digits: int = TABLE_DECIMALS, best: bool = False, mark: str = "") -> Cell:
    """Return a cell with mean ± standard deviation and a mark such as a star; a NaN is left out.

    Examples
    --------
    >>> spread(0.1234, 0.0061).text, spread(0.1234, 0.0061, digits=2, mark="*").text
    ('0.123 ± 0.006', '0.12 ± 0.01*')
    >>> spread(0.1234, float("nan")).text
    '0.123'
    """
    if mean != mean:
        return Cell(MISSING)
    deviation = "" if std != std else f" ± {std:.{digits}f}"
    return Cell(f"{mean:.{digits}f}{deviation}{mark}", float(mean), best)


def word(text: object) -> Cell:
    """Return a cell with text; any other object is converted by `str`."""
    return Cell(str(text))


def count(value: int | None) -> Cell:
    """Return a cell with a whole number; None is shown as a dash.

    Examples
    --------
    >>> count(12).text, count(None).text
    ('12', '–')
    """
    return Cell(MISSING) if value is None else Cell(f"{value}", int(value))


def seconds(value: float | None) -> Cell:
    """Return a cell with a time, with two or three significant digits; None and NaN are shown as a dash.

    Examples
    --------
    >>> [seconds(value).text for value in (1234.0, 12.345, 0.12345, 0.0001, None)]
    ['1234', '12.3', '0.12', '<0.001', '–']
    """
    if value is None or value != value:
        return Cell(MISSING)
    text = f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"
    return Cell(text if value >= 0.001 or value == 0 else "<0.001", float(value))


def p_text(p_value: float) -> str:
    """Return the text of a p-value.

    Examples
    --------
    >>> p_text(0.0416), p_text(0.0000213), p_text(0.0)
    ('0.042', '2e-05', '<1e-16')
    """
    if p_value >= 0.001:
        return f"{p_value:.3f}"
    return f"{p_value:.0e}" if p_value >= 1e-16 else "<1e-16"


def as_shown(values: pd.Series, digits: int) -> pd.Series:
    """Return numbers rounded as text shows them, so that numbers that look equal are equal.

    Examples
    --------
    >>> as_shown(pd.Series([0.1881, 0.18839, 0.1885]), 3).tolist()
    [0.188, 0.188, 0.189]
    """
    return values.map(lambda value: float(f"{value:.{digits}f}"))


def best_of(values: pd.Series, greater_is_better: bool, digits: int = TABLE_DECIMALS) -> set[str]:
    """Return the names of the best values; values that look equal in a table are equal.

    Examples
    --------
    >>> sorted(best_of(pd.Series({"br": 0.1884, "rbrl": 0.1881, "clr": 0.2}), greater_is_better=False))
    ['br', 'rbrl']
    """
    shown = as_shown(values.dropna(), digits)
    return set(shown.index[shown == (shown.max() if greater_is_better else shown.min())])


def heading(metric: Metric) -> str:
    """Return a metric's title with its direction.

    Examples
    --------
    >>> from rbrl.metrics import get_metric
    >>> heading(get_metric("ranking_loss")), heading(get_metric("average_precision"))
    ('Ranking loss ↓', 'Average precision ↑')
    """
    return f"{metric.title} {metric.arrow}"


def join(names: Iterable[str]) -> str:
    """Return one name or more as a list in a sentence.

    Examples
    --------
    >>> join(["BR", "CLR", "RBRL"])
    'BR, CLR and RBRL'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


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
    """Return a table in GitHub's Markdown."""

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
    """Yield the cells of a row as HTML, the keys as row headers."""
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
    """Write a text file, completely or not at all, create its folder, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, text)
    return path


def show_tables(*tables: Table) -> None:
    """Print tables, in parts if the terminal is narrow.

    Examples
    --------
    >>> frame = pd.DataFrame({"dataset": ["sea"], "loss": [0.25]})
    >>> rows = ((word("sea"), number(0.25, best=True)),)
    >>> show_tables(Table("losses", "Losses", ("Data set", "Loss"), rows, frame))
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
