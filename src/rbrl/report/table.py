"""`Table`: cells for people, the same figures as a frame for programs, and every format it is written in."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

DIGITS = 3
MISSING = "–"


@dataclass(frozen=True)
class Cell:
    """One cell: what is shown, what sorting compares, whether it is among the best of its row."""

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
        """Whether a column holds figures."""
        cells = [row[column] for row in self.rows]
        return any(cell.is_number for cell in cells) or (bool(cells) and all(cell.text == MISSING for cell in cells))

    def blocks(self) -> Iterator[tuple[bool, tuple[Cell, ...]]]:
        """Rows as printed: (whether a rule goes above, cells); a first key is shown once per block."""
        previous = None
        for i, row in enumerate(self.rows):
            footing = self.n_foot > 0 and i == len(self.rows) - self.n_foot
            repeated = self.n_keys > 1 and previous == row[0].text and not footing
            new_block = self.n_keys > 1 and not repeated
            yield i > 0 and (footing or new_block), (Cell(""), *row[1:]) if repeated else row
            previous = row[0].text


def number(value: float | None, digits: int = DIGITS, best: bool = False) -> Cell:
    """A figure with a fixed number of digits; a dash if it is missing."""
    if value is None or value != value:
        return Cell(MISSING)
    return Cell(f"{value:.{digits}f}", float(value), best)


def spread(mean: float, std: float, digits: int = DIGITS, best: bool = False, mark: str = "") -> Cell:
    """Mean ± standard deviation."""
    if mean != mean:
        return Cell(MISSING)
    return Cell(f"{mean:.{digits}f} ± {std:.{digits}f}{mark}", float(mean), best)


def word(text: Any) -> Cell:
    """A name or a sentence."""
    return Cell(str(text))


def count(value: int) -> Cell:
    """A whole number."""
    return Cell(f"{value}", int(value))


def seconds(value: float) -> Cell:
    """A time with two or three significant digits."""
    if value is None or value != value:
        return Cell(MISSING)
    text = f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"
    text = text if value >= 0.001 or value == 0 else "<0.001"
    return Cell(text, float(value))


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "–": "--",
    "Δ": r"$\Delta$",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "−": "$-$",
    "\n": " ",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|])")


def to_csv(table: Table) -> str:
    """The figures in full precision, one per line."""
    return table.frame.to_csv(index=False, lineterminator="\n")


def to_json(table: Table) -> str:
    """The figures in full precision, as a list of objects."""
    records = json.loads(table.frame.to_json(orient="records", double_precision=15))
    return json.dumps(records, ensure_ascii=False, indent=2)


def to_markdown(table: Table) -> str:
    """A GitHub table."""
    heads = [_markdown(title) for title in table.columns]
    marks = ["---:" if table.numeric(j) else "---" for j in range(len(heads))]
    lines = [heads, marks, *([_strong(_markdown(c.text), c.best, "**") for c in row] for row in table.rows)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"**{_markdown(table.title)}**\n\n{text}\n" + (f"\n{_markdown(table.note)}\n" if table.note else "")


def to_latex(table: Table) -> str:
    """A floating table; needs the package booktabs."""
    align = "".join("r" if table.numeric(j) else "l" for j in range(len(table.columns)))
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(table.title + '.' + (' ' + table.note if table.note else ''))}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        " & ".join(_latex(title) for title in table.columns) + r" \\",
        r"\midrule",
    ]
    for ruled, row in table.blocks():
        cells = [rf"\textbf{{{_latex(c.text)}}}" if c.best else _latex(c.text) for c in row]
        lines += [r"\midrule"] * ruled + [" & ".join(cells) + r" \\"]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def to_html(table: Table) -> str:
    """A plain table element, with scopes; the page has its own, sortable one."""
    heads = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in table.columns)
    rows = "\n".join(f"<tr>{_html_cells(table, row)}</tr>" for row in table.rows)
    note = f"\n<p>{html.escape(table.note)}</p>" if table.note else ""
    caption = f"<caption>{html.escape(table.title)}</caption>"
    return f"<table>\n{caption}\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>{note}\n"


FORMATS = {"csv": to_csv, "json": to_json, "md": to_markdown, "tex": to_latex, "html": to_html}


def save_table(table: Table, folder: Path, formats=("csv", "tex", "md", "html")) -> list[Path]:
    """Write `table` into `folder`, one file per format; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in formats:
        path = folder / f"{table.name}.{name}"
        path.write_text(FORMATS[name](table), encoding="utf-8")
        paths.append(path)
    return paths


def _markdown(text):
    return _MARKDOWN.sub(r"\\\1", text).replace("\n", " ")


def _strong(text, best, mark):
    return f"{mark}{text}{mark}" if best else text


def _latex(text):
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _html_cells(table, row):
    cells = []
    for j, cell in enumerate(row):
        text = html.escape(cell.text)
        if j < table.n_keys:
            cells.append(f'<th scope="row">{text}</th>')
        else:
            cells.append(f"<td><strong>{text}</strong></td>" if cell.best else f"<td>{text}</td>")
    return "".join(cells)


GAP = 3  # columns that Rich puts between two cells


def to_terminal(table: Table, console: Console | None = None) -> RenderableType:
    """What Rich prints for `table`: names on the left again in every part, so that nothing is cut."""
    width = (console or Console()).width
    parts = list(_parts(table, width))
    shown: list[RenderableType] = [Text(table.title, style="bold")]
    shown += [_part(table, columns) for columns in parts]
    if table.note:
        shown.append(Text(table.note, style="dim"))
    return Group(*shown)


def _parts(table: Table, width: int) -> Iterator[list[int]]:
    """Columns of each part: the keys, and as many others as fit."""
    widths = [max([len(title), *(len(row[j].text) for row in table.rows)]) for j, title in enumerate(table.columns)]
    keys = list(range(table.n_keys))
    start = sum(widths[j] + GAP for j in keys)
    columns, used = list(keys), start
    for j in range(table.n_keys, len(table.columns)):
        if used + widths[j] > width and len(columns) > len(keys):
            yield columns
            columns, used = list(keys), start
        columns.append(j)
        used += widths[j] + GAP
    yield columns


def _part(table, columns):
    shown = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_edge=False, header_style="dim")
    for j in columns:
        shown.add_column(
            Text(table.columns[j]), justify="right" if table.numeric(j) else "left", no_wrap=_is_short(table, j)
        )
    for ruled, row in table.blocks():
        if ruled:
            shown.add_row()
        shown.add_row(*(Text(row[j].text, style="bold" if row[j].best else "") for j in columns))
    return shown


def _is_short(table, j):
    return table.numeric(j) or max((len(row[j].text) for row in table.rows), default=0) <= 40
