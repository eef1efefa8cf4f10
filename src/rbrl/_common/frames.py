"""Data frames, masked arrays and sparse matrices: checks of their rows and columns, and conversions.

pandas and polars are imported only when a data frame of theirs is created.
"""

import numbers
from collections import Counter
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.checks import check_choice
from rbrl._common.typing import Array, BoolArray
from rbrl.exceptions import InvalidLabelsError

# Containers of predictions; "default" gives NumPy arrays, as scikit-learn does.
CONTAINERS = ("default", "pandas", "polars")


def column_names(frame: Any) -> list[str] | None:
    """Return the column names of a data frame if they are strings; None for any other object.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"sea": [1], "sand": [0]}))
    ['sea', 'sand']
    """
    # A table of pyarrow has names as `column_names` and arrays as `columns`.
    columns = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    names = [] if columns is None else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, NaN or the NA of pandas."""
    # NA has no truth value and its comparisons return NA, so that only its type identifies it.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def fill_masked_entries(values: Any) -> Any:
    """Return a masked array of NumPy as an array with NaN for masked entries; return anything else unchanged.

    `np.asarray` would drop the mask silently.

    Returns
    -------
    object
        Array without a mask. Its entries are floats if numbers are masked.

    Examples
    --------
    >>> fill_masked_entries(np.ma.array([1, 2], mask=[False, True]))
    array([ 1., nan])
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    data = np.ma.getdata(values)
    mask = np.ma.getmaskarray(values)
    if not mask.any():
        return data
    return np.where(mask, np.nan, data if data.dtype.kind in "biuf" else data.astype(object))


def as_dense(matrix: Any) -> Array:
    """Return a matrix of any form as a dense array, with NaN for masked entries.

    The forms are arrays, masked arrays, sparse matrices, data frames and lists. An array is not
    copied.

    Examples
    --------
    >>> as_dense(sparse.csr_array([[0, 2]]))
    array([[0, 2]])
    """
    if isinstance(matrix, np.ma.MaskedArray):
        return np.asarray(fill_masked_entries(matrix))
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def check_no_mask(**arguments: Any) -> None:
    """Raise ValueError if an argument is a masked array of NumPy with a masked entry.

    Parameters
    ----------
    **arguments : object
        Arguments of the user, by their names.

    Examples
    --------
    >>> check_no_mask(X=np.ma.array([[1.0, 2.0]], mask=[[False, True]]))
    Traceback (most recent call last):
    ValueError: X must have a value in every entry. Got a masked array with 1 of 2 entries masked; fill them in first, for \
example with X.filled(0).
    """
    for name, values in arguments.items():
        if isinstance(values, np.ma.MaskedArray) and (n_masked := int(np.ma.getmaskarray(values).sum())):
            raise ValueError(
                f"{name} must have a value in every entry. Got a masked array with {n_masked} of {values.size} entries "
                f"masked; fill them in first, for example with {name}.filled(0)."
            )


def check_same_rows(**arguments: Any) -> None:
    """Raise InvalidLabelsError if the indexes of pandas objects show that their rows differ.

    The library joins rows by position. Two indexes show a mistake if they hold the same values in
    another order, or if they hold different values that sort the rows differently. An example is the
    labels of the test rows given with the training rows.

    Different values are no mistake, and are allowed, in three cases: one index is 0, 1, 2, ..., which
    is the default of pandas; the indexes have different types, such as names and numbers; or both
    indexes sort the rows alike, which happens when rows with different indexes are split together.

    Parameters
    ----------
    **arguments : object
        Arguments of the user, by their names. Objects without an index are ignored.

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
    # Only an index of pandas has an inferred type; a list has a method `index`.
    frames = {name: values for name, values in arguments.items() if hasattr(values, "iloc")}
    indexes = [(name, frame.index) for name, frame in frames.items() if hasattr(frame.index, "inferred_type")]
    for name, index in indexes[1:]:
        first, expected = indexes[0]
        if len(index) == len(expected) and _name_other_rows(expected, index):
            pairs = enumerate(zip(map(repr, expected.tolist()), map(repr, index.tolist())))
            row, (one, other) = next((row, pair) for row, pair in pairs if pair[0] != pair[1])
            raise InvalidLabelsError(
                f"{first} and {name} must have the same rows in the same order. Got the index {one} in {first} and "
                f"{other} in {name}, in row {row}; pass {name}.loc[{first}.index]. If the rows belong together by their "
                "position, pass both with reset_index(drop=True)."
            )


def check_same_columns(**arguments: Any) -> None:
    """Raise InvalidLabelsError if data frames have the same columns in another order.

    The library joins columns by position.

    Parameters
    ----------
    **arguments : object
        Arguments of the user, by their names. Objects without column names are ignored.

    Examples
    --------
    >>> import pandas as pd
    >>> Y = pd.DataFrame({"sea": [1], "sun": [0]})
    >>> check_same_columns(Y=Y, labels=Y[["sun", "sea"]])
    Traceback (most recent call last):
    rbrl.exceptions.InvalidLabelsError: Y and labels must have their columns in the same order. Got 'sea' in Y and 'sun' \
in labels, as column 0; pass labels[Y.columns].
    """
    named = [(name, names) for name, values in arguments.items() if (names := column_names(values))]
    for name, names in named[1:]:
        first, expected = named[0]
        if names != expected and sorted(names) == sorted(expected):
            j = next(j for j, (one, other) in enumerate(zip(expected, names)) if one != other)
            raise InvalidLabelsError(
                f"{first} and {name} must have their columns in the same order. Got {expected[j]!r} in {first} and "
                f"{names[j]!r} in {name}, as column {j}; pass {name}[{first}.columns]."
            )


def _name_other_rows(one: Any, other: Any) -> bool:
    """Tell whether two indexes show that their rows differ, by the rules of `check_same_rows`.

    They are indexes of pandas of the same length.
    """
    if one.equals(other):
        return False
    if Counter(one) == Counter(other):
        return True
    default = np.arange(len(one))
    any_default = any(np.array_equal(np.asarray(index), default) for index in (one, other))
    if any_default or one.inferred_type != other.inferred_type or one.inferred_type.startswith("mixed"):
        return False
    return not np.array_equal(np.argsort(one, kind="stable"), np.argsort(other, kind="stable"))


class LabelValues(NamedTuple):
    """Labels as an array or CSR matrix, with the type and container that predictions will have.

    Attributes
    ----------
    values : array or CSR matrix
        Labels, with NaN for a missing label.
    dtype : dtype
        Type of the known labels. Integers remain integers if labels are missing.
    container : type or None
        Class of sparse labels, `csr_array` or `csr_matrix`. Some metrics of scikit-learn reject other
        formats.
    """

    values: Any
    dtype: np.dtype[Any]
    container: Any = None


def label_values(y: Any) -> LabelValues:
    """Return labels of any form as an array or a CSR matrix.

    The forms are arrays, masked arrays, sparse matrices, data frames, series and lists. Numbers in
    arrays of objects, such as pandas columns that can hold NA, become numeric arrays. A masked
    entry, None and NA become NaN. An array of numbers is not copied.

    Examples
    --------
    >>> values, dtype, _ = label_values(np.ma.array([[1, 0]], mask=[[False, True]]))
    >>> values, str(dtype)
    (array([[ 1., nan]]), 'int64')
    >>> label_values([[1, None], [0, 1]]).values
    array([[ 1., nan],
           [ 0.,  1.]])
    """
    if type(y) is np.ndarray and y.dtype.kind != "O":
        return LabelValues(y, y.dtype)
    if _is_sparse_frame(y):
        y = y.sparse.to_coo().tocsr()
    if sparse.issparse(y):
        rows = y.tocsr()
        return LabelValues(rows, y.dtype, type(rows))
    if isinstance(y, np.ma.MaskedArray) and y.dtype.kind != "O":
        return LabelValues(fill_masked_entries(y), y.dtype)
    values = as_dense(y)
    found = _convert_objects(values) if values.dtype.kind == "O" else LabelValues(values, values.dtype)
    declared = _declared_type(y) if found.values.dtype.kind in "biuf" else None
    return found if declared is None else found._replace(dtype=declared)


def missing_entries(values: Any) -> BoolArray | None:
    """Return the mask of the missing labels of a matrix, or None if no label is missing.

    Only dense matrices of floats can have missing labels. The result for other labels is None.

    Parameters
    ----------
    values : array or CSR matrix
        Labels in the form of :func:`label_values`.

    Returns
    -------
    bool array (n_samples, n_labels), or None

    Examples
    --------
    >>> missing_entries(np.array([[1.0, np.nan], [0.0, 1.0]])).tolist()
    [[False, True], [False, False]]
    >>> missing_entries(np.array([1.0, np.nan])) is None
    True
    """
    if sparse.issparse(values) or values.ndim != 2 or values.dtype.kind != "f":
        return None
    missing = np.isnan(values)
    return missing if missing.any() else None


def _is_sparse_frame(y: Any) -> bool:
    """Tell whether y, which may be any object, is a pandas frame whose columns are all sparse."""
    if getattr(y, "ndim", 0) != 2 or not hasattr(y, "sparse"):
        return False
    return all(hasattr(dtype, "fill_value") for dtype in y.dtypes)


def _declared_type(y: Any) -> np.dtype[Any] | None:
    """Return the numeric type that a frame or series declares; None if it declares none.

    An array of a frame with missing entries loses this type. y may be any object.
    """
    if hasattr(y, "null_count") and hasattr(y, "clear"):  # polars
        declared: list[Any] = [np.asarray(y.clear()).dtype]
    else:
        columns = y.dtypes if getattr(y, "ndim", 0) == 2 and hasattr(y, "dtypes") else [getattr(y, "dtype", None)]
        declared = [getattr(column, "numpy_dtype", None) for column in columns]
    numeric = bool(declared) and all(dtype is not None and dtype.kind in "biuf" for dtype in declared)
    return np.result_type(*declared) if numeric else None


def _convert_objects(values: Array) -> LabelValues:
    """Return an array of objects as numbers if all objects that are not missing are numbers.

    Otherwise the values are the same array, in which missing entries keep their form.
    """
    missing = np.reshape([is_missing(value) for value in values.flat], values.shape).astype(bool)
    known = values[~missing]
    dtype = _number_type(set(map(type, known.flat)))
    if dtype is None:
        return LabelValues(values, values.dtype)
    if not missing.any():
        return LabelValues(values.astype(dtype), dtype)
    filled = np.full(values.shape, np.nan)
    filled[~missing] = known.astype(np.float64)
    return LabelValues(filled, dtype)


def _number_type(types: Collection[type]) -> np.dtype[Any] | None:
    """Return the numeric type that can hold objects of these types: bool, int64 or float64.

    It is None if a type is not numeric, or if there are no types.
    """
    boolean = (bool, np.bool_)
    integral = (*boolean, numbers.Integral)
    choices: dict[Any, Any] = {np.bool_: boolean, np.int64: integral, np.float64: (*boolean, numbers.Real)}
    numeric = [dtype for dtype, allowed in choices.items() if all(issubclass(one, allowed) for one in types)]
    return np.dtype(numeric[0]) if types and numeric else None


def check_container(owner: str, container: str) -> str:
    """Return the name of a container of predictions; raise an error if it is unknown or not installed.

    Parameters
    ----------
    owner : str
        Method that sets the container, for messages.
    container : str

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
    """Return a matrix as a data frame, or a vector as a series.

    Parameters
    ----------
    values : array or sparse matrix of shape (n_rows, n_columns), or array of shape (n_rows,)
    names : sequence
        Names of the columns. They become strings in polars.
    container : {"pandas", "polars"}
    like : object, default=None
        Input data of the rows. The result has its index if it is a pandas object.

    Returns
    -------
    data frame or series
        A sparse matrix becomes sparse columns in pandas and dense columns in polars.

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
