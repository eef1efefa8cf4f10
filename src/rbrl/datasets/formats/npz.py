"""NPZ files: `X` or `X_data, X_indices, X_indptr, X_shape` (CSR), `Y`, and optional names and splits.

`train_index` and `test_index` are the split of the data's authors. `NAME_train_index` and
`NAME_test_index` are further splits. `categorical_index` lists the columns that hold codes.
"""

import lzma
import math
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.environment import read_array_header, replace_file
from rbrl._common.typing import Array
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import ReadOptions, format_error, quote
from rbrl.datasets.formats.table import label_matrix

# Errors that Python, NumPy and decompressors raise for damaged files.
DAMAGE_ERRORS = (
    OSError, EOFError, ValueError, KeyError, TypeError, SyntaxError, RuntimeError, OverflowError, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
NAME_KEYS = ("feature_names", "label_names")
CSR_FIELDS = ("data", "indices", "indptr", "shape")


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read an NPZ file; the text of the module describes its keys."""
    if options.labels is not None:
        raise format_error(f"an NPZ file has its labels in Y; got labels={options.labels!r}")
    arrays = _read_arrays(path, options.max_bytes)
    X = _read_matrix(arrays, "X")
    Y = label_matrix(_read_matrix(arrays, "Y"), options.sparse_labels)
    splits = {}
    for key in arrays:
        prefix = key.removesuffix("train_index")
        if prefix != key and f"{prefix}test_index" in arrays:
            splits[prefix.rstrip("_") or "source"] = (arrays[key], arrays[f"{prefix}test_index"])
    names: Any = {key: arrays[key].ravel() for key in NAME_KEYS if key in arrays}
    coded = arrays.get("categorical_index", ())
    return Dataset(X, Y, name=path.stem, splits=splits, categorical_index=coded, **names)


def _read_arrays(path: Path, max_bytes: int) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > max_bytes:
                raise format_error(f"unpacks to more than {max_bytes} bytes")
            return {entry.filename.removesuffix(".npy"): _read_array(archive, entry) for entry in entries}
    except DAMAGE_ERRORS as error:
        raise format_error(f"not a readable NPZ file: {error}") from error


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    """Read one array; its header must not claim more memory than its file has bytes."""
    with archive.open(entry) as stream:
        shape, is_fortran, dtype = read_array_header(stream, entry.file_size)
        if dtype.kind not in "biufU":
            raise ValueError(f"type {dtype.str} is not numbers or text")
        data = stream.read(math.prod(shape) * dtype.itemsize)
    return np.frombuffer(data, dtype, count=math.prod(shape)).reshape(shape, order="F" if is_fortran else "C")


def _read_matrix(arrays: dict[str, Array], key: str) -> Any:
    if key in arrays:
        return arrays[key]
    try:
        *parts, sizes = (arrays[f"{key}_{field}"] for field in CSR_FIELDS)
        shape = tuple(int(size) for size in sizes)
        if len(shape) != 2 or min(shape) < 0:
            raise ValueError(f"{key}_shape must be two sizes; got {quote(shape)}")
        values, indexes, starts = map(_convert_for_scipy, parts)
        check_compressed(values, indexes, starts, *shape)
        return sparse.csr_array((values, indexes, starts), shape=shape)
    except KeyError as error:
        raise format_error(f"an NPZ data set needs {key!r} or its four CSR arrays; {error} is missing") from error
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise format_error(f"the CSR arrays of {key} do not fit together: {error}") from error


def _convert_for_scipy(array: Array) -> Array:
    """Return numbers in native byte order; SciPy's sparse arrays do not take half precision."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"type {array.dtype.str} is not numbers")
    return array.astype(np.float64 if array.dtype.str[1:] == "f2" else array.dtype.newbyteorder("="), copy=False)


def check_compressed(values: Array, indexes: Array, starts: Array, n_lines: int, length: int) -> None:
    """Raise ValueError unless the arrays are a CSR or CSC matrix with `n_lines` lines of `length` entries.

    A line is a row of a CSR matrix or a column of a CSC matrix. SciPy's own check does not look at
    the starts if the last one is 0; decreasing starts then crash the interpreter.
    """
    are_integers = all(array.ndim == 1 and array.dtype.kind in "iu" for array in (indexes, starts))
    if not are_integers or values.ndim != 1:
        raise ValueError("its indexes and starts must be lists of whole numbers")
    if len(starts) != n_lines + 1 or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"its starts must rise from 0 in {n_lines + 1} steps")
    if not starts[-1] <= len(values) == len(indexes):
        raise ValueError(f"it has {len(values)} values and {len(indexes)} indexes; its starts need {starts[-1]}")
    if len(indexes) and not (indexes.min() >= 0 and indexes.max() < length):
        raise ValueError(f"its indexes must lie in 0..{length - 1}; got {indexes.min()}..{indexes.max()}")


def write(dataset: Dataset, path: Path, compressed: bool = True) -> None:
    """Write an NPZ file; an uncompressed file is larger, but several times faster to read."""
    arrays: dict[str, Any] = {}
    for key, matrix in (("X", dataset.X), ("Y", dataset.Y)):
        if sparse.issparse(matrix):
            arrays |= {f"{key}_{field}": np.array(getattr(matrix, field)) for field in CSR_FIELDS}
        else:
            arrays[key] = matrix
    for key in NAME_KEYS:
        names = getattr(dataset.columns, key)
        if names is not None:
            arrays[key] = np.array(list(names), dtype=np.str_)
    if len(dataset.categorical_index):
        arrays["categorical_index"] = dataset.categorical_index
    for name, (train, test) in dataset.splits.items():
        prefix = "" if name == "source" else f"{name}_"
        arrays |= {f"{prefix}train_index": train, f"{prefix}test_index": test}
    with replace_file(path) as temporary, open(temporary, "wb") as stream:
        (np.savez_compressed if compressed else np.savez)(stream, **arrays)
