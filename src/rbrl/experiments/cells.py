"""`Table`: cells for people, and the same figures as a frame for programs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rbrl._common.extras import explain_import_error
from rbrl.metrics import Metric

try:
    import pandas as pd
except ImportError as error:
    raise explain_import_error(error, "report", "A table of a comparison") from error

DIGITS = 3
# What a cell without a value shows.
MISSING = "–"


@dataclass(frozen=True)
class Cell:
    """One cell: what is shown, what sorting compares, whether it is among the best of its row.

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
        >>> from rbrl.experiments.tables import Table, number, word
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
    >>> from rbrl.experiments.tables import number
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
    mean : float
        A missing mean is shown as a dash.
    std : float
        NaN if there is no deviation, as for the mean of a single value: the mean is then shown alone.
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
    """A name or a sentence.

    Parameters
    ----------
    text : object

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
    """A whole number; a dash if it is missing.

    Parameters
    ----------
    value : int or None

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
    """A time with two or three significant digits.

    Parameters
    ----------
    value : float or None

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
    """A p-value for people.

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
    """Numbers rounded as text shows them: what looks equal is equal.

    Parameters
    ----------
    values : Series
    digits : int
        After the point.

    Returns
    -------
    Series

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments.cells import as_shown
    >>> as_shown(pd.Series([0.1881, 0.18839, 0.1885]), 3).tolist()
    [0.188, 0.188, 0.189]
    """
    return values.map(lambda value: float(f"{value:.{digits}f}"))


def best_of(values: pd.Series, greater_is_better: bool, digits: int = DIGITS) -> set[str]:
    """Names of the best values as printed: those that look equal are all best.

    Parameters
    ----------
    values : Series
        By method; those that are missing are passed over.
    greater_is_better : bool
    digits : int, default=3
        After the point.

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
    """A metric's title with its direction, such as "Ranking loss ↓".

    Parameters
    ----------
    metric : Metric

    Returns
    -------
    str

    Examples
    --------
    >>> from rbrl.metrics import get_metric
    >>> from rbrl.experiments.tables import heading
    >>> heading(get_metric("ranking_loss")), heading(get_metric("average_precision"))
    ('Ranking loss ↓', 'Average precision ↑')
    """
    return f"{metric.title} {metric.arrow}"


def join(names: Iterable[str]) -> str:
    """Names as in a sentence.

    Parameters
    ----------
    names : iterable of str
        At least one.

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
