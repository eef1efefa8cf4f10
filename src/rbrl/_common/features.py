"""Errors of features that are no matrix of numbers: they name the column, value and solution.

scikit-learn rejects most of these inputs, too. Its messages do not name the columns, and it takes
dates for numbers.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.frames import check_no_mask, column_names
from rbrl._common.texts import is_number
from rbrl._common.typing import Array
from rbrl.exceptions import InvalidFeaturesError

# A text with more words than this is a sentence and not a category.
MAX_CATEGORY_WORDS = 3
# Number of columns that a message names.
MAX_NAMED_COLUMNS = 3
# Kinds of NumPy types of times, and attributes of a column that are numbers.
TIME_KINDS = {"M": "dt.year and X[{0!r}].dt.dayofyear", "m": "dt.total_seconds()"}


def check_features(X: Any, owner: str) -> None:
    """Raise an error for features that scikit-learn would misread or reject without their names.

    Parameters
    ----------
    X : object
        Features as the user gave them.
    owner : str
        Class that needs numbers.

    Examples
    --------
    >>> check_features({"size": [1.0, 2.0]}, "MLkNN")
    Traceback (most recent call last):
    rbrl.exceptions.InvalidFeaturesError: X must be a matrix (n_samples, n_features). Got a dict; pass pandas.DataFrame(X).
    """
    if np.ma.isMaskedArray(X):
        check_no_mask(X=X)
    check_in_memory("X", X)
    if solution := _matrix_solution(X, owner):
        raise InvalidFeaturesError(f"X must be a matrix (n_samples, n_features). Got {solution}.")
    if sparse.issparse(X):
        return
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind in TIME_KINDS:
        raise InvalidFeaturesError(
            f"X must hold numbers. Got {X.dtype}; turn times into numbers first, for example days "
            "with "
            f"X.astype('{'datetime' if kind == 'M' else 'timedelta'}64[D]').astype(float)."
        )
    if kind == "c":
        raise InvalidFeaturesError(
            f"X must hold real numbers. Got {X.dtype}. Complex data not supported: pass X.real, or "
            "np.hstack([X.real, X.imag])."
        )
    names = column_names(X) or []
    if len(set(names)) < len(names):
        name, n_columns = Counter(names).most_common(1)[0]
        raise InvalidFeaturesError(
            f"The columns of X must have names that differ. Got {name!r} for {n_columns} columns; "
            "rename them, for example "
            f"with X.columns = [...]."
        )
    for name, column in iterate_columns(X) if names and not has_numeric_types(X) else ():
        if (kind := column.dtype.kind) in TIME_KINDS:
            raise InvalidFeaturesError(
                f"{owner} needs numbers. Got {_type_of(X, name, column)} in column {name!r} of X; "
                "put numbers in its place, "
                f"such as X[{name!r}].{TIME_KINDS[kind].format(name)}."
            )


def has_numeric_types(X: Any) -> bool:
    """Tell whether all columns of a data frame have a type of numbers, without a look at their values.

    Parameters
    ----------
    X : data frame

    Returns
    -------
    bool
        False for a data frame of another library than pandas and polars.

    Examples
    --------
    >>> import pandas as pd
    >>> has_numeric_types(pd.DataFrame({"size": [1.5]})), has_numeric_types(pd.DataFrame({"kind": ["u"]}))
    (True, False)
    """
    types = set(getattr(X, "dtypes", ()))
    if hasattr(X, "iloc"):
        return all(getattr(one, "kind", "O") in "biuf" for one in types)
    return bool(types) and all(hasattr(one, "is_numeric") and one.is_numeric() for one in types)


def check_in_memory(name: str, values: Any) -> None:
    """Raise InvalidFeaturesError if rows are a lazy frame of polars.

    Parameters
    ----------
    name : str
        Argument of the user.
    values : object

    Examples
    --------
    >>> import polars
    >>> check_in_memory("y", polars.DataFrame({"sea": [1]}).lazy())
    Traceback (most recent call last):
    rbrl.exceptions.InvalidFeaturesError: y must hold its rows in memory. Got a LazyFrame; pass y.collect().
    """
    if hasattr(values, "collect") and hasattr(values, "collect_schema"):
        raise InvalidFeaturesError(
            f"{name} must hold its rows in memory. Got a {type(values).__name__}; pass {name}.collect()."
        )


def _matrix_solution(X: Any, owner: str) -> str:
    """Describe features that are no matrix, and their replacement; "" if they may be one."""
    if sparse.issparse(X):  # one of the formats is a dict
        return ""
    first = X[0] if isinstance(X, list | tuple) and X else None
    if isinstance(X, dict):
        return "a dict; pass pandas.DataFrame(X)"
    if isinstance(first, dict):
        return f"a dict for each row, such as {first!r}; use make_pipeline(DictVectorizer(), {owner}())"
    if isinstance(X, str):
        return f"the text {X!r}; read a file with rbrl.datasets.load_file and pass the data set: fit(dataset)"
    if X is None:
        return "None; pass the rows, in fit together with their labels: fit(X, y)"
    return ""


def explain_features(model: Any, X: Any, error: Exception, y: Any = None) -> Exception:
    """Return an error of scikit-learn with the place of the rejected values and a solution.

    The message contains that of scikit-learn. An error without more to say is returned unchanged.

    Parameters
    ----------
    model : estimator
    X : object
        Features as the user gave them.
    error : Exception
        Error of `validate_data`.
    y : object, default=None
        Labels, if they were validated together with X.

    Returns
    -------
    Exception
    """
    text = str(error)
    shape = getattr(X, "shape", None) or _as_array(X).shape
    problem = _explain_shape(X, y, shape, text)
    if not problem and "feature names" in text:
        problem = text + _name_other_columns(model, X)
    elif not problem and text.startswith("Input X contains") and (place := _find_bad_value(X)):
        first_line = text.partition("\n")[0]
        problem = f"X must hold finite numbers. {first_line} {place}"
    elif not problem and (other := _find_object(X)):
        name, value = other
        problem = (
            f"{type(model).__name__} needs numbers. Got {type(value).__name__} in column {name!r} "
            f"of X, such as {_shorten(repr(value))}; put numbers in its place, or drop the column."
        )
    return _with_message(error, problem) if problem else error


def _explain_shape(X: Any, y: Any, shape: tuple[int, ...], text: str) -> str:
    """Return the message for a wrong shape of X or y; "" if the error has another cause."""
    if len(shape) == 2 and 0 in shape:
        one, all_of_them = ("row", "rows") if not shape[0] else ("column", "columns")
        found = text if str(shape) in text else f"Got shape {shape}."
        return f"X must have at least one {one}. {found} Check how the {all_of_them} were chosen."
    if len(shape) == 1 and hasattr(X, "to_frame"):
        return f"X must be 2-D, a row for each sample. Got a {type(X).__name__} of shape {shape}; pass X.to_frame()."
    if len(shape) == 1 and "2D" in text:
        return (
            f"X must be 2-D, a row for each sample. Got shape {shape}. "
            f"{text.partition(' instead')[0]}. Reshape your data with X.reshape(1, -1) if it is one row, "
            "and with X.reshape(-1, 1) if it is one feature."
        )
    if len(shape) > 2:
        return f"X must be 2-D, a row for each sample. Got shape {shape}. {text} Pass X.reshape(len(X), -1)."
    if np.ndim(y) > 2:
        return f"y must be 2-D, a column for each label. Got shape {np.shape(y)}. {text} Pass y.reshape(len(y), -1)."
    if "requires y to be passed" in text:
        return f"{text} It must hold the labels of the rows of X: fit(X, y)."
    if "inconsistent numbers of samples" in text:
        return (
            f"X and y must have as many rows as each other. Got {shape[0]} rows of X and "
            f"{np.shape(y)[0]} rows of y; pass the labels of these rows, for example by splitting X "
            ""
            f"and y together. {text}"
        )
    if "features as input" in text:
        return f"{text} Pass the columns of fit, in the same order."
    return ""


def _with_message(error: Exception, message: str) -> Exception:
    """Return an error of the same family, ValueError or TypeError, with another message."""
    if isinstance(error, TypeError) and not isinstance(error, ValueError):
        return TypeError(message)
    return InvalidFeaturesError(message)


def _name_other_columns(model: Any, X: Any) -> str:
    """Return the difference between the columns of X and those of the fit, and the solution."""
    wanted = list(map(str, getattr(model, "feature_names_in_", ())))
    found = column_names(X) or []
    if sorted(wanted) != sorted(found):
        return "X must have the columns of fit; rename the columns, or fit the model to the new ones."
    j = next(j for j, (one, other) in enumerate(zip(wanted, found)) if one != other)
    select = "X[model.feature_names_in_]" if hasattr(X, "iloc") else "X.select(model.feature_names_in_.tolist())"
    return (
        f"X must have the columns of fit in their order. Got {found[j]!r} as column {j} instead of "
        f"{wanted[j]!r}; "
        f"pass {select}."
    )


def _find_bad_value(X: Any) -> str:
    """Describe the values that are not finite, and the solution; "" if there are none."""
    if sparse.issparse(X):
        entries = X.tocoo()
        bad = ~np.isfinite(entries.data)
        places = np.stack([entries.row[bad], entries.col[bad]], axis=1)
        found = entries.data[bad]
    else:
        values = _as_floats(X)
        places = np.argwhere(~np.isfinite(values))
        found = values[tuple(places.T)]
    if not len(places):
        return ""
    row, j = places[0]
    names = column_names(X)
    value = found[0]
    solution = "fill them in, for example with SimpleImputer in a pipeline, or leave out the rows"
    if np.isinf(value):
        solution = "correct them, or limit them with np.clip"
    column = f"column {j}" if names is None else f"column {names[j]!r}"
    return f"Got {value} in row {row} of {column}, and {len(places)} such values in all; {solution}."


def _find_object(X: Any) -> tuple[Any, Any] | None:
    """Return the name and an example of the first column of a data frame that holds objects."""
    for name, column in iterate_columns(X) if column_names(X) else ():
        values = column if column.dtype.kind == "O" else ()
        found = [value for value in values if isinstance(value, list | tuple | dict | set | np.ndarray)]
        if found:
            return name, found[0]
    return None


def refuse_text(X: Any, owner: str, reason: str = "") -> None:
    """Raise InvalidFeaturesError if features are text; suggest an encoder for each column.

    Parameters
    ----------
    X : object
        Features as the user gave them.
    owner : str
        Class that needs numbers.
    reason : str, default=""
        Sentence on words that are too many to be categories.

    Examples
    --------
    >>> refuse_text([["red", 1.0]], "MLkNN")
    Traceback (most recent call last):
    rbrl.exceptions.InvalidFeaturesError: MLkNN needs numbers. Got text in column 0 of X, such as 'red'; encode it first: \
make_pipeline(ColumnTransformer([('0', OneHotEncoder(handle_unknown='ignore'), [0])], remainder='passthrough'), MLkNN()).
    """
    if (text := _longest_text(X)) is not None:
        raise InvalidFeaturesError(
            f"{owner} needs a matrix of numbers. Got a text for each row, such as "
            f"{_shorten(text)!r}; turn them into "
            f"numbers first: make_pipeline(TfidfVectorizer(), {owner}())."
        )
    found = list(_text_columns(X))
    if not found:
        return
    named = found[:MAX_NAMED_COLUMNS]
    more = ["..."] if len(found) > len(named) else []
    names = ", ".join([*(repr(name) for name, _ in named), *more])
    encoders = ", ".join([*(_encoder(name, text) for name, text in named), *more])
    columns, them = ("columns", "them") if len(found) > 1 else ("column", "it")
    raise InvalidFeaturesError(
        f"{reason}{owner} needs numbers. Got text in {columns} {names} of X, such as "
        f"{_shorten(found[0][1])!r}; encode {them} "
        f"first: make_pipeline(ColumnTransformer([{encoders}], remainder='passthrough'), "
        f"{owner}())."
    )


def iterate_columns(X: Any) -> Iterator[tuple[Any, Array]]:
    """Yield the name or number of each column of a matrix or data frame, and its values.

    Parameters
    ----------
    X : array, list or data frame of pandas, polars or pyarrow

    Yields
    ------
    name : object
    column : array (n_samples,)

    Examples
    --------
    >>> [(name, column.tolist()) for name, column in iterate_columns([[1, 2], [3, 4]])]
    [(0, [1, 3]), (1, [2, 4])]
    """
    if names := getattr(X, "column_names", None):  # pyarrow
        yield from ((name, np.asarray(column)) for name, column in zip(names, X.columns))
        return
    names = getattr(X, "columns", None)
    if names is None:
        X = _as_array(X)
        names = range(X.shape[1] if X.ndim == 2 else 0)
    place = getattr(X, "iloc", X)
    yield from ((name, np.asarray(place[:, j])) for j, name in enumerate(names))


def _encoder(name: Any, text: str) -> str:
    """Return the code of the transformer of a column."""
    # A vectorizer takes the name of a column, an encoder takes a list of names.
    if len(text.split()) > MAX_CATEGORY_WORDS:
        return f"({str(name)!r}, TfidfVectorizer(), {name!r})"
    return f"({str(name)!r}, OneHotEncoder(handle_unknown='ignore'), [{name!r}])"


def _longest_text(X: Any) -> str | None:
    """Return the longest of the first texts if X is a sequence of texts, and None otherwise."""
    if isinstance(X, str) or len(getattr(X, "shape", (0,))) != 1:
        return None
    rows = list(X[:10]) if hasattr(X, "__getitem__") else []
    return max(rows, key=len) if rows and all(isinstance(row, str) for row in rows) else None


def _text_columns(X: Any) -> Iterator[tuple[Any, str]]:
    """Yield each column with text that is not a number: its name and its longest example."""
    if sparse.issparse(X):
        return
    for name, column in iterate_columns(X):
        texts = [str(value) for value in column if isinstance(value, str) and not is_number(value)]
        if texts:
            yield name, max(texts[:100], key=len)


def _type_of(X: Any, name: Any, column: Array) -> str:
    """Return the name of the type of a column, in the words of the data frame."""
    declared = getattr(X[name], "dtype", None)
    return str(column.dtype if declared is None else declared)


def _as_array(X: Any) -> Array:
    """Return X as an array; return an empty array if its rows have different lengths."""
    try:
        return np.asarray(X)
    except ValueError:
        return np.empty(0)


def _as_floats(X: Any) -> Array:
    """Return X as a matrix of floats; return an empty matrix if it holds other values."""
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty((0, 0))


def _shorten(text: str) -> str:
    """Return at most 40 characters of a text."""
    return str(text) if len(text) <= 40 else text[:39] + "…"
