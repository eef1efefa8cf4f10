"""A table in the terminal, in as many parts as its width asks for."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from rbrl.report.table import Table

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
