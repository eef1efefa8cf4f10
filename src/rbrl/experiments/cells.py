"""Cells and tables: text for people, and the same numbers as a frame for programs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rbrl._common.environment import explain_import_error
from rbrl.metrics import Metric

try:
    import pandas as pd
except ImportError as error:
    raise explain_import_error(error, "report", "A table of a comparison") from error

# Default number of decimals of a table.
TABLE_DECIMALS = 3
# Text of a cell without a value.
MISSING = "–"


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Parameters
    ----------
    text : str
        Text of the cell.
    value : object
        Value by which a column is sorted; a number for a cell with a number.
    best : bool
        True if the value is among the best of its row.

    Examples
    --------
    >>> from rbrl.experiments.tables import Cell
    >>> Cell("0.125*", 0.125).is_number, Cell("yeast").is_number
    (True, False)
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

    Parameters
    ----------
    name : str
        Name of the table's files, such as ``"average-ranks"``.
    title : str
        Title of the table.
    columns : tuple of str
        Titles of the columns.
    rows : tuple of tuple of Cell
        Cells of the table, row by row.
    frame : DataFrame
        Numbers of the table in full precision, one per row, for CSV and JSON.
    n_keys : int, default=1
        Number of leading columns that name the row.
    n_foot : int, default=0
        Number of rows at the end that summarise the others.
    note : str
        Note below the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.tables import Table, number, to_markdown, word
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
        """Return the rows of the frame, each as a dict.

        Returns
        -------
        list of dict
        """
        return self.frame.astype(object).to_dict(orient="records")


def number(value: float | None, digits: int = TABLE_DECIMALS, best: bool = False) -> Cell:
    """Return a cell with a number.

    Parameters
    ----------
    value : float or None
        Number; None and NaN are shown as a dash.
    digits : int, default=3
        Number of decimals.
    best : bool, default=False
        True if the value is among the best of its row.

    Returns
    -------
    Cell

    Examples
    --------
    >>> from rbrl.experiments.tables import number
    >>> number(0.12345).text, number(2 / 3, digits=1).text, number(None).text
    ('0.123', '0.7', '–')
    """
    if value is None or value != value:
        return Cell(MISSING)
    return Cell(f"{value:.{digits}f}", float(value), best)


def spread(mean: float, std: float, digits: int = TABLE_DECIMALS, best: bool = False, mark: str = "") -> Cell:
    """Return a cell with mean ± standard deviation.

    Parameters
    ----------
    mean : float
        Mean; NaN is shown as a dash.
    std : float
        Standard deviation; NaN, as for a single value, is left out.
    digits : int, default=3
        Number of decimals.
    best : bool, default=False
        True if the mean is among the best of its row.
    mark : str, optional
        Text after the deviation, such as a star.

    Returns
    -------
    Cell

    Examples
    --------
    >>> from rbrl.experiments.tables import spread
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
    """Return a cell with text.

    Parameters
    ----------
    text : object
        Name or sentence; any other object is converted by `str`.

    Returns
    -------
    Cell

    Examples
    --------
    >>> from rbrl.experiments.tables import word
    >>> word("yeast").text, word("yeast").value is None
    ('yeast', True)
    """
    return Cell(str(text))


def count(value: int | None) -> Cell:
    """Return a cell with a whole number.

    Parameters
    ----------
    value : int or None
        Number; None is shown as a dash.

    Returns
    -------
    Cell

    Examples
    --------
    >>> from rbrl.experiments.tables import count
    >>> count(12).text, count(None).text
    ('12', '–')
    """
    return Cell(MISSING) if value is None else Cell(f"{value}", int(value))


def seconds(value: float | None) -> Cell:
    """Return a cell with a time, with two or three significant digits.

    Parameters
    ----------
    value : float or None
        Seconds; None and NaN are shown as a dash.

    Returns
    -------
    Cell

    Examples
    --------
    >>> from rbrl.experiments.tables import seconds
    >>> [seconds(value).text for value in (1234.0, 12.345, 0.12345, 0.0001, None)]
    ['1234', '12.3', '0.12', '<0.001', '–']
    """
    if value is None or value != value:
        return Cell(MISSING)
    text = f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"
    return Cell(text if value >= 0.001 or value == 0 else "<0.001", float(value))


def p_text(p_value: float) -> str:
    """Return the text of a p-value.

    Parameters
    ----------
    p_value : float

    Returns
    -------
    str

    Examples
    --------
    >>> from rbrl.experiments.tables import p_text
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

    Parameters
    ----------
    values : Series
        Value of each method; missing values are ignored.
    greater_is_better : bool
        Direction of the metric.
    digits : int, default=3
        Number of decimals in the table.

    Returns
    -------
    set of str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.tables import best_of
    >>> sorted(best_of(pd.Series({"br": 0.1884, "rbrl": 0.1881, "clr": 0.2}), greater_is_better=False))
    ['br', 'rbrl']
    """
    shown = as_shown(values.dropna(), digits)
    return set(shown.index[shown == (shown.max() if greater_is_better else shown.min())])


def heading(metric: Metric) -> str:
    """Return a metric's title with its direction.

    Parameters
    ----------
    metric : Metric

    Returns
    -------
    str

    Examples
    --------
    >>> from rbrl.experiments.tables import heading
    >>> from rbrl.metrics import get_metric
    >>> heading(get_metric("ranking_loss")), heading(get_metric("average_precision"))
    ('Ranking loss ↓', 'Average precision ↑')
    """
    return f"{metric.title} {metric.arrow}"


def join(names: Iterable[str]) -> str:
    """Return names as a list in a sentence.

    Parameters
    ----------
    names : iterable of str
        One name or more.

    Returns
    -------
    str

    Examples
    --------
    >>> from rbrl.experiments.tables import join
    >>> join(["BR", "CLR", "RBRL"])
    'BR, CLR and RBRL'
    """
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
