"""`Table`: cells for people, and the same figures as a frame for programs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

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
