"""Text in labels and in the cells of CSV files: checks, and protection against formulas."""

import re
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.checks import users_level
from rbrl.exceptions import GuessWarning, InvalidLabelsError

# Characters that join the labels of a row in one text.
SEPARATORS = (",", ";", "|")
# First characters of a cell that a spreadsheet program runs as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def escape_formula(cell: Any) -> Any:
    """Return a cell of a CSV file with an apostrophe before text that a spreadsheet would run as a formula.

    Parameters
    ----------
    cell : object
        Cell of the table. Only text that is not a number is changed.

    Examples
    --------
    >>> from rbrl._common.texts import escape_formula
    >>> [escape_formula(cell) for cell in ("=1+1", "sea", "-1.5", -1.5)]
    ["'=1+1", 'sea', '-1.5', -1.5]
    """
    is_text = isinstance(cell, str) and not is_number(cell)
    return f"'{cell}" if is_text and cell.lstrip(" ").startswith(FORMULA_STARTS) else cell


def is_number(text: str) -> bool:
    """Tell whether `float` can read a text.

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


def check_joined_texts(y: Any) -> None:
    """Raise InvalidLabelsError if the classes are texts that join labels, such as "sea,sun".

    A class name may contain a separator, too, as in "Smith, John" and "Pain, chronic". The parts of a
    class name keep their places, while a label may stand at any place. Texts are therefore rejected only
    if more than half of the texts with the separator have a part after the first part that is also the
    first part, or the whole, of another text.

    A few rows do not show this. The function warns if only some texts have the separator and none of
    them occurs in two rows, as the name of a class would. Decimal numbers and texts that repeat a part
    are never taken for joined labels.

    Warns
    -----
    GuessWarning
        The texts may be names of classes or joined labels.

    Examples
    --------
    >>> check_joined_texts(["Smith, John", "Smith, Anna", "Doe, John"])
    >>> check_joined_texts(["sea,sun", "sun", "sea"])
    Traceback (most recent call last):
    rbrl.exceptions.InvalidLabelsError: y must have one class, or a list of labels, for each row. Got 'sea,sun' in row 0, \
which looks like labels joined by ','; pass y.str.split(',') of a series, or [text.split(',') for text in y]. If these are \
names of classes, replace the ',' in them.
    """
    texts = _texts(y)
    for separator in SEPARATORS:
        parts = {text: _split(text, separator) for text in set(texts)}
        joined = Counter(text for text in texts if len(parts[text]) > 1)
        if not joined or _are_names(parts, joined):
            continue
        row = next(i for i, text in enumerate(texts) if text in joined)
        split = f"pass y.str.split({separator!r}) of a series, or [text.split({separator!r}) for text in y]"
        if _are_label_lists(parts, joined):
            raise InvalidLabelsError(
                f"y must have one class, or a list of labels, for each row. Got {texts[row]!r} in row {row}, which looks "
                f"like labels joined by {separator!r}; {split}. If these are names of classes, replace the {separator!r} in "
                "them."
            )
        if len(joined) < len(parts) and max(joined.values()) == 1:
            warnings.warn(
                f"{texts[row]!r} in row {row} of y is taken for the name of a class. If it is several labels joined by "
                f"{separator!r}, {split}; if not, replace the {separator!r} in it.",
                GuessWarning,
                stacklevel=users_level(),
            )


def _texts(y: Any) -> list[str]:
    """Return the texts of a target in which every row is a text, in order.

    The list is empty for other targets, and for a target without rows.
    """
    if isinstance(y, list | tuple):
        values = list(y)
    else:
        shape: tuple[int, ...] = getattr(y, "shape", ())
        one_column = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
        # Columns of text have the type object, or a type of pandas or polars.
        if sparse.issparse(y) or not one_column or getattr(getattr(y, "dtype", None), "kind", "O") in "biufc":
            return []
        values = np.asarray(y).ravel().tolist()
    return values if values and all(isinstance(value, str) for value in values) else []


def _split(text: str, separator: str) -> list[str]:
    """Return the parts of a text without surrounding blanks; empty parts are left out."""
    return [part for part in map(str.strip, text.split(separator)) if part]


def _are_names(parts: Mapping[str, list[str]], joined: Collection[str]) -> bool:
    """Tell whether texts with a separator are decimal numbers or repeat a part.

    Joined labels never do. `parts` has the parts of every text, and `joined` the texts that have
    more than one part.
    """
    if all(re.fullmatch(r"[+-]?\d+,\d+", text.strip()) for text in joined):
        return True
    return any(len(set(parts[text])) < len(parts[text]) for text in joined)


def _are_label_lists(parts: Mapping[str, list[str]], joined: Collection[str]) -> bool:
    """Tell whether most texts with a separator have a later part that also begins another text.

    The arguments are those of :func:`_are_names`.
    """
    first = {own[0] for own in parts.values() if own}
    return 2 * sum(not first.isdisjoint(parts[text][1:]) for text in joined) > len(joined)


def list_first_names(names: Sequence[str], limit: int = 6) -> str:
    """Return the first names as text, and the number of all names if there are more.

    Examples
    --------
    >>> list_first_names(["sea", "sun", "hill"], limit=2)
    'sea, sun, … (3)'
    """
    shown = ", ".join(names[:limit])
    return shown + (f", … ({len(names)})" if len(names) > limit else "")
