"""Data frames of whichever library: names of columns in, frames out, and text in columns that must be numbers.

pandas and polars are imported where a frame of theirs is asked for, and nowhere else.
"""

import numbers
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.checks import check_choice
from rbrl._common.typing import Array
from rbrl.exceptions import InvalidFeaturesError

# What answers may come in; the first is what scikit-learn's classifiers give.
CONTAINERS = ("default", "pandas", "polars")
# A text of more words is a sentence, not a category.
WORDS_OF_A_CATEGORY = 3
# So many columns are named in a message.
NAMED = 3


def column_names(frame: Any) -> list[str] | None:
    """The names of the columns of a data frame, if they are text; None for anything else.

    Parameters
    ----------
    frame : data frame, or anything else

    Returns
    -------
    list of str or None

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"sea": [1], "sand": [0]}))
    ['sea', 'sand']
    """
    columns = getattr(frame, "columns", None)
    names = [] if columns is None else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def says_nothing(value: Any) -> bool:
    """Whether a value is missing: None, NaN, or the NA of pandas, which is equal to nothing and has no truth value."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def with_nan(values: Array) -> Array:
    """An array of objects as numbers, NaN where they say nothing; as it is where some are no numbers.

    Parameters
    ----------
    values : array of objects

    Returns
    -------
    array

    Examples
    --------
    >>> with_nan(np.array([[1, None]], dtype=object))
    array([[ 1., nan]])
    """
    missing = np.vectorize(says_nothing, otypes=[bool])(values)
    known = values[~missing]
    if not all(isinstance(value, numbers.Real | np.bool_) for value in known.flat):
        return values
    filled = np.full(values.shape, np.nan)
    filled[~missing] = known.astype(np.float64)
    return filled


def check_container(owner: str, container: str) -> str:
    """Return the name of a container that answers may come in; refuse others, and a library that is not installed.

    Parameters
    ----------
    owner : str
        Whose answers they are.
    container : str

    Returns
    -------
    str

    Examples
    --------
    >>> check_container("MLkNN.set_output", "xarray")
    Traceback (most recent call last):
    ValueError: The predict parameter of MLkNN.set_output must be one of 'default', 'pandas', 'polars'. Got 'xarray' instead.
    """
    check_choice(owner, "predict", container, CONTAINERS)
    if container != CONTAINERS[0]:
        try:
            import_module(container)
        except ImportError as error:
            raise ImportError(
                f"{owner}(predict={container!r}) needs {container}; install it, or use 'default'."
            ) from error
    return container


def as_frame(values: Any, names: Sequence[Any], container: str, like: Any = None) -> Any:
    """Values in a data frame; one column of them, not in a matrix, in a series.

    Parameters
    ----------
    values : array or sparse matrix
        Of shape (n_rows, n_columns), or (n_rows,).
    names : sequence
        Of the columns; polars has text only.
    container : {"pandas", "polars"}
    like : object, default=None
        What the rows were given in: a frame of pandas hands on its index.

    Returns
    -------
    data frame or series
        Of a sparse matrix, pandas has a frame of sparse columns, and polars a dense one.

    Examples
    --------
    >>> print(as_frame(np.array([[1, 0]]), ["sea", "sand"], "pandas"))
       sea  sand
    0    1     0
    """
    library = import_module(container)
    if container == "polars":
        values = values.toarray() if sparse.issparse(values) else np.asarray(values)
        return library.Series(values) if values.ndim == 1 else library.DataFrame(values, schema=[str(n) for n in names])
    index = like.index if isinstance(like, library.DataFrame | library.Series) else None
    if sparse.issparse(values):
        return library.DataFrame.sparse.from_spmatrix(values, index=index, columns=list(names))
    if values.ndim == 1:
        return library.Series(values, index=index)
    return library.DataFrame(values, index=index, columns=list(names))


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
        texts = [str(value) for value in column if isinstance(value, str) and not _is_number(value)]
        if texts:
            yield name, max(texts[:100], key=len)


def _as_array(X: Any) -> Array:
    try:
        return np.asarray(X)
    except ValueError:  # rows of different lengths
        return np.empty(0)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _short(text: str) -> str:
    return str(text) if len(text) <= 40 else text[:39] + "…"
