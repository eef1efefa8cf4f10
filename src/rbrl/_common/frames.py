"""Data frames and masked arrays: names of columns, order of rows, masks, text among numbers, and frames as answers.

pandas and polars are imported where a frame of theirs is asked for, and nowhere else.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.checks import check_choice
from rbrl._common.typing import Array
from rbrl.exceptions import InvalidFeaturesError, InvalidLabelsError

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


def fill_masked(values: Any) -> Any:
    """Return a masked array of NumPy with NaN for its masked entries; anything else as it is.

    NumPy drops the mask of an array without a word where it makes a plain array of it.

    Parameters
    ----------
    values : object

    Returns
    -------
    object
        An array without a mask, of floats if an entry of a number was masked.

    Examples
    --------
    >>> fill_masked(np.ma.array([1, 2], mask=[False, True]))
    array([ 1., nan])
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    data, mask = np.ma.getdata(values), np.ma.getmaskarray(values)
    if not mask.any():
        return data
    return np.where(mask, np.nan, data if data.dtype.kind in "biuf" else data.astype(object))


def refuse_masked(**given: Any) -> None:
    """Refuse masked arrays of NumPy of which some entry is masked.

    Parameters
    ----------
    **given : object
        What the user gave, by the name of the argument.

    Examples
    --------
    >>> refuse_masked(X=np.ma.array([[1.0, 2.0]], mask=[[False, True]]))
    Traceback (most recent call last):
    ValueError: X must have a value in every entry. Got a masked array with 1 of 2 entries masked; fill them in first, for \
example with X.filled(0).
    """
    for name, values in given.items():
        if isinstance(values, np.ma.MaskedArray) and (n_masked := int(np.ma.getmaskarray(values).sum())):
            raise ValueError(
                f"{name} must have a value in every entry. Got a masked array with {n_masked} of {values.size} entries "
                f"masked; fill them in first, for example with {name}.filled(0)."
            )


def check_same_rows(**given: Any) -> None:
    """Refuse pandas objects whose indexes say that their rows are not in one order; rows are joined by position.

    Equal indexes are right. Refused are the same index values in another order, and other values that sort the rows
    differently, as when the labels of the test rows go with the training rows. Other values may come without a mistake,
    and are allowed, if one index is 0, 1, 2, ..., which pandas gives to whatever has none, if the types differ, such as
    names and numbers, or if both indexes sort the rows alike: a split of such rows gives this.

    Parameters
    ----------
    **given : object
        What the user gave, by the name of the argument. Objects without an index are not looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"wind": [1.0, 2.0]}, index=["Monday", "Tuesday"])
    >>> check_same_rows(X=X, y=X[["wind"]])
    >>> check_same_rows(X=X, y=X[["wind"]][::-1])
    Traceback (most recent call last):
    rbrl.exceptions.InvalidLabelsError: X and y must have the same rows in the same order. Got the index 'Monday' in X and \
'Tuesday' in y, in row 0; pass y.loc[X.index]. If the rows belong together by their position, pass both with \
reset_index(drop=True).
    """
    indexes = {name: _index(values) for name, values in given.items()}
    (first, expected), *others = [(name, index) for name, index in indexes.items() if index is not None] or [("", None)]
    for name, index in others:
        if len(index) == len(expected) and _name_other_rows(expected, index):
            pairs = enumerate(zip(map(repr, expected.tolist()), map(repr, index.tolist())))
            row, (one, other) = next((row, pair) for row, pair in pairs if pair[0] != pair[1])
            raise InvalidLabelsError(
                f"{first} and {name} must have the same rows in the same order. Got the index {one} in {first} and "
                f"{other} in {name}, in row {row}; pass {name}.loc[{first}.index]. If the rows belong together by their "
                "position, pass both with reset_index(drop=True)."
            )


def check_same_columns(**given: Any) -> None:
    """Refuse data frames that have the same columns in another order; columns are joined by position.

    Parameters
    ----------
    **given : object
        What the user gave, by the name of the argument. Objects without names of columns are not looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> Y = pd.DataFrame({"sea": [1], "sun": [0]})
    >>> check_same_columns(Y=Y, labels=Y[["sun", "sea"]])
    Traceback (most recent call last):
    rbrl.exceptions.InvalidLabelsError: Y and labels must have their columns in the same order. Got 'sea' in Y and 'sun' \
in labels, as column 0; pass labels[Y.columns].
    """
    named = [(name, names) for name, values in given.items() if (names := column_names(values)) is not None]
    for name, names in named[1:]:
        first, expected = named[0]
        if names != expected and sorted(names) == sorted(expected):
            j = next(j for j, (one, other) in enumerate(zip(expected, names)) if one != other)
            raise InvalidLabelsError(
                f"{first} and {name} must have their columns in the same order. Got {expected[j]!r} in {first} and "
                f"{names[j]!r} in {name}, as column {j}; pass {name}[{first}.columns]."
            )


def _index(values: Any) -> Any:
    """The index of an object of pandas, or None."""
    index = getattr(values, "index", None)
    return index if hasattr(values, "iloc") and hasattr(index, "inferred_type") else None


def _name_other_rows(one: Any, other: Any) -> bool:
    if one.equals(other):
        return False
    if Counter(one) == Counter(other):
        return True
    default = np.arange(len(one))
    any_default = any(np.array_equal(np.asarray(index), default) for index in (one, other))
    if any_default or one.inferred_type != other.inferred_type or one.inferred_type.startswith("mixed"):
        return False
    return not np.array_equal(np.argsort(one, kind="stable"), np.argsort(other, kind="stable"))


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
