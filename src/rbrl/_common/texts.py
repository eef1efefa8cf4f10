"""Text where numbers or lists of labels must be: refuse it, and show the way out."""

import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.checks import users_level
from rbrl._common.spreadsheets import is_number
from rbrl._common.typing import Array
from rbrl.exceptions import GuessWarning, InvalidFeaturesError, InvalidLabelsError

# A text of more words is a sentence, not a category.
WORDS_OF_A_CATEGORY = 3
# Number of columns that a message names.
NAMED = 3
# Characters that join the labels of a row in one text.
SEPARATORS = (",", ";", "|")


def refuse_text(X: Any, owner: str) -> None:
    """Refuse features of which some are text: name the columns, and the encoders that turn them into numbers.

    Parameters
    ----------
    X : object
        What was given as features.
    owner : str
        Who needs numbers.

    Examples
    --------
    >>> refuse_text([["red", 1.0]], "MLkNN")
    Traceback (most recent call last):
    rbrl.exceptions.InvalidFeaturesError: MLkNN needs numbers. Got text in column 0 of X, such as 'red'; encode it first: \
make_pipeline(ColumnTransformer([('0', OneHotEncoder(handle_unknown='ignore'), [0])], remainder='passthrough'), MLkNN()).
    """
    if (texts := _text_alone(X)) is not None:
        raise InvalidFeaturesError(
            f"{owner} needs a matrix of numbers. Got a text for each row, such as {_short(texts)!r}; turn them into numbers "
            f"first: make_pipeline(TfidfVectorizer(), {owner}())."
        )
    found = list(_text_columns(X))
    if not found:
        return
    more = ["..."] if len(found) > NAMED else []
    names = ", ".join([*(repr(name) for name, _ in found[:NAMED]), *more])
    coders = ", ".join([*(_encoder(name, text) for name, text in found[:NAMED]), *more])
    which, them = ("columns", "them") if len(found) > 1 else ("column", "it")
    raise InvalidFeaturesError(
        f"{owner} needs numbers. Got text in {which} {names} of X, such as {_short(found[0][1])!r}; encode {them} first: "
        f"make_pipeline(ColumnTransformer([{coders}], remainder='passthrough'), {owner}())."
    )


def check_joined_texts(y: Any) -> None:
    """Refuse classes that are texts which join several labels, such as "sea,sun"; warn if they may be.

    Class names may contain a separator, too: "Smith, John", "Pain, chronic". Their parts keep their places, while a label
    may stand anywhere. Texts are therefore refused only if more than half of those with the separator have a part after
    the first that is also the first part, or the whole, of another text.

    Few rows tell nothing. A warning is given if some texts have the separator and others do not, and no text with the
    separator occurs in a second row, as the name of a class would. Decimal numbers and texts that repeat a part are never
    taken for joined labels.

    Parameters
    ----------
    y : series, array or list of texts; anything else is let through

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
        if _are_joined(parts, joined):
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


def _encoder(name: Any, text: str) -> str:
    """The line of a ColumnTransformer for a column; a vectoriser takes a column, an encoder a list of them."""
    if len(text.split()) > WORDS_OF_A_CATEGORY:
        return f"({str(name)!r}, TfidfVectorizer(), {name!r})"
    return f"({str(name)!r}, OneHotEncoder(handle_unknown='ignore'), [{name!r}])"


def _text_alone(X: Any) -> str | None:
    """The longest of the first texts, if X is a sequence of texts and no matrix."""
    if isinstance(X, str) or len(getattr(X, "shape", (0,))) != 1:
        return None
    rows = list(X[:10]) if hasattr(X, "__getitem__") else []
    return max(rows, key=len) if rows and all(isinstance(row, str) for row in rows) else None


def _text_columns(X: Any) -> Iterator[tuple[Any, str]]:
    """Columns with a text that is no number: their name, or place, and the longest such text among the first rows."""
    if sparse.issparse(X):
        return
    names = getattr(X, "columns", None)
    if names is None:
        X = _as_array(X)
        names = range(X.shape[1] if X.ndim == 2 else 0)
    place = getattr(X, "iloc", X)
    for j, name in enumerate(names):
        column = np.asarray(place[:, j])
        texts = [str(value) for value in column if isinstance(value, str) and not is_number(value)]
        if texts:
            yield name, max(texts[:100], key=len)


def _as_array(X: Any) -> Array:
    try:
        return np.asarray(X)
    except ValueError:  # rows of different lengths
        return np.empty(0)


def _short(text: str) -> str:
    return str(text) if len(text) <= 40 else text[:39] + "…"


def _texts(y: Any) -> list[str]:
    """The texts of a target of texts alone, by row; empty for anything else."""
    if isinstance(y, list | tuple):
        values = list(y)
    else:
        shape: tuple[int, ...] = getattr(y, "shape", ())
        one_column = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
        # Numbers are left alone; columns of text are objects, or have a type of pandas or polars.
        if sparse.issparse(y) or not one_column or getattr(getattr(y, "dtype", None), "kind", "O") in "biufc":
            return []
        values = np.asarray(y).ravel().tolist()
    return values if values and all(isinstance(value, str) for value in values) else []


def _split(text: str, separator: str) -> list[str]:
    return [part for part in map(str.strip, text.split(separator)) if part]


def _are_names(parts: Mapping[str, list[str]], joined: Collection[str]) -> bool:
    """Tell whether texts with a separator are decimal numbers, or repeat a part, as labels of a row never do."""
    if all(re.fullmatch(r"[+-]?\d+,\d+", text.strip()) for text in joined):
        return True
    return any(len(set(parts[text])) < len(parts[text]) for text in joined)


def _are_joined(parts: Mapping[str, list[str]], joined: Collection[str]) -> bool:
    """Tell whether most texts with a separator have a part after the first that also begins another text."""
    first = {own[0] for own in parts.values() if own}
    return 2 * sum(not first.isdisjoint(parts[text][1:]) for text in joined) > len(joined)
