"""One form for labels of every form: arrays of numbers or texts, and sparse matrices in compressed rows."""

import numbers
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.frames import fill_masked, says_nothing
from rbrl._common.typing import Array, BoolArray
from rbrl.exceptions import InvalidLabelsError

# Characters that join the labels of a row in one text.
SEPARATORS = (",", ";", "|")


class LabelValues(NamedTuple):
    """Labels in one form, and the form that predictions are given back in.

    Attributes
    ----------
    values : array or CSR matrix
        NaN stands for a missing label.
    dtype : dtype
        Type of the known labels: missing labels do not make an integer a float.
    container : type or None
        `csr_array` or `csr_matrix` for sparse labels. The metrics of scikit-learn do not take every other format.
    """

    values: Any
    dtype: np.dtype[Any]
    container: Any = None


def label_values(y: Any) -> LabelValues:
    """Return labels of any form as an array or a CSR matrix.

    Numbers that came as objects, such as columns of pandas that can hold NA, become numbers. A masked entry, None and NA
    become NaN.

    Parameters
    ----------
    y : array, masked array, sparse matrix of any format, data frame, series or list

    Returns
    -------
    LabelValues

    Examples
    --------
    >>> values, dtype, _ = label_values(np.ma.array([[1, 0]], mask=[[False, True]]))
    >>> values, str(dtype)
    (array([[ 1., nan]]), 'int64')
    >>> label_values([[1, None], [0, 1]]).values
    array([[ 1., nan],
           [ 0.,  1.]])
    """
    if _is_sparse_frame(y):
        y = y.sparse.to_coo().tocsr()
    if sparse.issparse(y):
        rows = y.tocsr()
        return LabelValues(rows, y.dtype, type(rows))
    if isinstance(y, np.ma.MaskedArray) and y.dtype.kind != "O":
        return LabelValues(fill_masked(y), y.dtype)
    values = np.asarray(fill_masked(y))
    found = _of_objects(values) if values.dtype.kind == "O" else LabelValues(values, values.dtype)
    declared = _declared_type(y) if found.values.dtype.kind in "biuf" else None
    return found if declared is None else found._replace(dtype=declared)


def missing_entries(values: Any) -> BoolArray | None:
    """Return the mask of the missing labels of a matrix, or None if no label is missing.

    Parameters
    ----------
    values : array or CSR matrix
        As :func:`label_values` gives it.

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


def refuse_joined_texts(y: Any) -> None:
    """Refuse a target of texts that join several labels, such as "sea,sun"; they would count as one class each.

    Class names may contain a separator, too: "Smith, John", "Pain, chronic". Their parts keep their places, while a label
    may stand anywhere. Texts are therefore refused only if more than half of those with the separator have a part after
    the first that is also the first part, or the whole, of another text. Decimal numbers and texts that repeat a part
    are never taken for joined labels.

    Parameters
    ----------
    y : series, array or list of texts; anything else is let through

    Examples
    --------
    >>> refuse_joined_texts(["Smith, John", "Smith, Anna", "Doe, John"])
    >>> refuse_joined_texts(["sea,sun", "sun", "sea"])
    Traceback (most recent call last):
    rbrl.exceptions.InvalidLabelsError: y must have one class, or a list of labels, for each row. Got 'sea,sun' in row 0, \
which looks like labels joined by ','; pass y.str.split(',') of a series, or [text.split(',') for text in y]. If these are \
names of classes, replace the ',' in them.
    """
    texts = _texts(y)
    for separator in SEPARATORS:
        joined = {text for text in texts if separator in text}
        if joined and _are_joined({text: _split(text, separator) for text in set(texts)}, joined):
            row = next(i for i, text in enumerate(texts) if separator in text)
            raise InvalidLabelsError(
                f"y must have one class, or a list of labels, for each row. Got {texts[row]!r} in row {row}, which looks "
                f"like labels joined by {separator!r}; pass y.str.split({separator!r}) of a series, or "
                f"[text.split({separator!r}) for text in y]. If these are names of classes, replace the {separator!r} in "
                "them."
            )


def _is_sparse_frame(y: Any) -> bool:
    """Tell whether y is a pandas frame of which every column is sparse."""
    if getattr(y, "ndim", 0) != 2 or not hasattr(y, "sparse"):
        return False
    return all(hasattr(dtype, "fill_value") for dtype in y.dtypes)


def _declared_type(y: Any) -> np.dtype[Any] | None:
    """The type of numbers that a frame or series declares, whose missing entries make floats or objects of an array."""
    if hasattr(y, "null_count") and hasattr(y, "clear"):  # polars
        declared: list[Any] = [np.asarray(y.clear()).dtype]
    else:
        columns = y.dtypes if getattr(y, "ndim", 0) == 2 and hasattr(y, "dtypes") else [getattr(y, "dtype", None)]
        declared = [getattr(column, "numpy_dtype", None) for column in columns]
    numeric = bool(declared) and all(dtype is not None and dtype.kind in "biuf" for dtype in declared)
    return np.result_type(*declared) if numeric else None


def _of_objects(values: Array) -> LabelValues:
    """Numbers, where all objects that are there are numbers; the objects as they are otherwise."""
    missing = np.vectorize(says_nothing, otypes=[bool])(values) if values.size else np.zeros(values.shape, dtype=bool)
    known = values[~missing]
    dtype = _number_type(set(map(type, known.flat)))
    if dtype is None:
        return LabelValues(values, values.dtype)
    if not missing.any():
        return LabelValues(values.astype(dtype), dtype)
    filled = np.full(values.shape, np.nan)
    filled[~missing] = known.astype(np.float64)
    return LabelValues(filled, dtype)


def _number_type(types: Iterable[type]) -> np.dtype[Any] | None:
    """The type of numbers that can hold objects of these types; None if some are no numbers, or none is there."""
    types = set(types)
    boolean = (bool, np.bool_)
    if not types:
        return None
    wider: tuple[tuple[Any, Any], ...] = (
        (boolean, np.bool_),
        ((*boolean, numbers.Integral), np.int64),
        ((*boolean, numbers.Real), np.float64),
    )
    fitting = (dtype for allowed, dtype in wider if all(issubclass(one, allowed) for one in types))
    dtype = next(fitting, None)
    return None if dtype is None else np.dtype(dtype)


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


def _are_joined(parts: dict[str, list[str]], joined: set[str]) -> bool:
    if all(re.fullmatch(r"[+-]?\d+,\d+", text.strip()) for text in joined):
        return False
    if any(len(set(parts[text])) < len(parts[text]) for text in joined):
        return False
    first = {own[0] for own in parts.values() if own}
    return 2 * sum(not first.isdisjoint(parts[text][1:]) for text in joined) > len(joined)
