"""Text that a spreadsheet program shows as text, and does not run as a formula."""

from typing import Any

# A cell that begins with one of these is a formula for a spreadsheet program.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def escape_formula(cell: Any) -> Any:
    """Return a cell of a CSV file, with an apostrophe before text that a spreadsheet program would run as a formula.

    Parameters
    ----------
    cell : object
        Only text is changed, and only if it is not a number.

    Returns
    -------
    object

    Examples
    --------
    >>> from rbrl._common.spreadsheets import escape_formula
    >>> [escape_formula(cell) for cell in ("=1+1", "sea", "-1.5", -1.5)]
    ["'=1+1", 'sea', '-1.5', -1.5]
    """
    if not isinstance(cell, str) or not cell.lstrip(" ").startswith(FORMULA_STARTS) or is_number(cell):
        return cell
    return f"'{cell}"


def is_number(text: str) -> bool:
    """Tell whether a text spells a number, as `float` reads it.

    Parameters
    ----------
    text : str

    Returns
    -------
    bool

    Examples
    --------
    >>> is_number("-1.5"), is_number("1+1")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True
