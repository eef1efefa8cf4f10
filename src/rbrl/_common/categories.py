"""Columns of words in data frames: their categories, and one column of 0/1 for each category."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from rbrl._common.features import MAX_CATEGORY_WORDS, has_numeric_types, iterate_columns
from rbrl._common.frames import column_names, is_missing
from rbrl._common.texts import is_number
from rbrl._common.typing import Array
from rbrl.exceptions import InvalidFeaturesError

# Largest number of different words of a column whose words are categories. More columns of 0/1 would
# hide the other features; the vectorisers of other packages have limits of this size, too.
MAX_CATEGORIES = 40
# Mean number of rows with the same word, below which words are names or numbers of rows.
MIN_ROWS_PER_CATEGORY = 2
# Libraries of data frames, and the function of each that makes a frame of a dict of columns.
FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}
# Categories of the columns of words of a data frame, by the name of the column.
Categories = Mapping[str, Sequence[str]]


def find_categories(X: Any) -> dict[str, list[str]]:
    """Return the words of the columns of words in a data frame, if these are few.

    Parameters
    ----------
    X : object
        Features as the user gave them.

    Returns
    -------
    dict of str to list of str
        Words in alphabetical order, or as a column of categories declares them. The dict is empty if
        X is no data frame, or if one of its columns has too many words, sentences, or words and numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> find_categories(pd.DataFrame({"size": [1.0, 2.0], "kind": ["u", "u"]}))
    {'kind': ['u']}
    """
    found = {}
    for name, values in _columns_with_words(X):
        if refuse_words(values):
            return {}
        found[name] = _declared_categories(X[name]) or sorted(set(map(str, values)))
    return found


def describe_refused_words(X: Any) -> str:
    """Return a sentence on the first column of words of a data frame that are no categories; "" if there is none.

    Examples
    --------
    >>> import pandas as pd
    >>> describe_refused_words(pd.DataFrame({"id": ["a1", "a2", "a3"]}))
    "Column 'id' has 3 different words in 3 rows; at most 40 words, each in 2 rows on average, become columns of 0/1. "
    """
    reasons = ((name, refuse_words(values)) for name, values in _columns_with_words(X))
    return next((f"Column {name!r} has {reason}. " for name, reason in reasons if reason), "")


def refuse_words(values: Sequence[Any]) -> str:
    """Return the reason why values are no categories; "" if they are.

    Parameters
    ----------
    values : sequence
        Values of a column that are not missing, one of which is a word.

    Returns
    -------
    str
    """
    words = {value for value in values if isinstance(value, str)}
    numbers = [value for value in values if not isinstance(value, str) or is_number(value)]
    if numbers:
        return f"words and numbers, such as {numbers[0]!s}"
    if max(len(word.split()) for word in words) > MAX_CATEGORY_WORDS:
        return f"sentences, {len(words)} different ones"
    return refuse_counts(len(words), len(values))


def refuse_counts(n_words: int, n_rows: int) -> str:
    """Return the reason why so many different words are no categories; "" if they are.

    Parameters
    ----------
    n_words : int
        Number of different words.
    n_rows : int
        Number of rows with a word.

    Returns
    -------
    str

    Examples
    --------
    >>> refuse_counts(3, 30)
    ''
    >>> refuse_counts(30, 30).partition(";")[0]
    '30 different words in 30 rows'
    """
    if n_words <= MAX_CATEGORIES and n_rows >= MIN_ROWS_PER_CATEGORY * n_words:
        return ""
    return (
        f"{n_words} different words in {n_rows} rows; at most {MAX_CATEGORIES} words, each in "
        f"{MIN_ROWS_PER_CATEGORY} rows on average, become columns of 0/1"
    )


def _columns_with_words(X: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield the name and the values of each column of a data frame that has a word; leave out missing values."""
    for name, column in iterate_columns(X) if _library(X) and not has_numeric_types(X) else ():
        if column.dtype.kind not in "OUT":
            continue
        values = [value for value in column if not is_missing(value)]
        if any(isinstance(value, str) and not is_number(value) for value in values):
            yield name, values


def _declared_categories(column: Any) -> list[str]:
    """Return the words that the type of a column declares; an empty list if it declares none."""
    declared = getattr(getattr(column, "dtype", None), "categories", None)
    words = [] if declared is None else list(declared)
    return words if all(isinstance(word, str) for word in words) else []


def encode_categories(X: Any, categories: Categories) -> Any:
    """Return a data frame with a column of 0/1, called "column=word", in place of each column of words.

    Parameters
    ----------
    X : data frame, or anything else
        Rows without these columns are returned unchanged: they are encoded already.
    categories : mapping of str to sequence of str
        Words of each column.

    Returns
    -------
    data frame of the same library, or X

    Raises
    ------
    InvalidFeaturesError
        A word is missing or unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> print(encode_categories(pd.DataFrame({"kind": ["u", "v"], "size": [1, 2]}), {"kind": ["u", "v"]}))
       kind=u  kind=v  size
    0     1.0     0.0     1
    1     0.0     1.0     2
    """
    names = column_names(X) or []
    library = _library(X)
    if library is None or categories.keys().isdisjoint(names):
        return X
    columns: dict[str, Any] = {}
    for name, values in iterate_columns(X):
        if name not in categories:
            columns[name] = X[name]
            continue
        codes = _find_codes(name, values, categories[name])
        columns |= {f"{name}={word}": (codes == j).astype(np.float64) for j, word in enumerate(categories[name])}
    index = {"index": X.index} if library == "pandas" else {}
    return getattr(import_module(library), FRAMES[library])(columns, **index)


@dataclass(frozen=True)
class CategoryEncoder:
    """A transformer that replaces the columns of words of a data frame.

    Examples
    --------
    >>> import pandas as pd
    >>> CategoryEncoder({"kind": ["u", "v"]}).transform(pd.DataFrame({"kind": ["v"]})).columns.tolist()
    ['kind=u', 'kind=v']
    """

    categories: Categories

    def transform(self, X: Any) -> Any:
        """Return rows with columns of 0/1 in place of words."""
        return encode_categories(X, self.categories)

    def get_feature_names_out(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names of the columns of rows that are encoded already."""
        return names


def _find_codes(name: str, values: Array, words: Sequence[str]) -> Array:
    """Return the position of the word of each row; raise an error for a missing or unknown word."""
    places = {word: j for j, word in enumerate(words)}
    for row, value in enumerate(values):
        if is_missing(value):
            raise InvalidFeaturesError(
                f"Column {name!r} of X must have a word in every row. Got {value!r} in row {row}; "
                f"fill it in, for example X[{name!r}].fillna('missing') before the fit."
            )
        if value not in places:
            some = ", ".join(map(repr, words[:5])) + (", ..." if len(words) > 5 else "")
            raise InvalidFeaturesError(
                f"Column {name!r} of X must have words of the fit: {some}. Got {str(value)!r} in row "
                f"{row}; fit the model to rows with this word, or declare all words before the rows "
                f"are split: X[{name!r}].astype(pandas.CategoricalDtype([...]))."
            )
    return np.array([places[value] for value in values], dtype=np.intp)


def _library(X: Any) -> str | None:
    """Return the library of a data frame whose columns have names; None for anything else."""
    library = type(X).__module__.partition(".")[0]
    return library if library in FRAMES and column_names(X) else None
