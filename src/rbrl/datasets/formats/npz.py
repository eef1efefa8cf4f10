"""NPZ files: `X` or `X_data, X_indices, X_indptr, X_shape` (CSR), `Y`, and optional names and splits.

`train_index`/`test_index` are the source's own split; `NAME_train_index`/`NAME_test_index` further ones;
`categorical_index` lists the columns that hold codes.
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

from rbrl._common.atomic_files import read_array_header, replace_file
from rbrl._common.typing import Array
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import ReadOptions, bad, check_compressed, label_matrix, quote

# What Python, NumPy and the unpackers raise for bytes that are not what they should be.
BROKEN = (
    OSError, EOFError, ValueError, KeyError, TypeError, SyntaxError, RuntimeError, OverflowError, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
NAMES = ("feature_names", "label_names")
PIECES = ("data", "indices", "indptr", "shape")


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read an NPZ file; see the module's text for its keys.

    Parameters
    ----------
    path : Path
    options : ReadOptions

    Returns
    -------
    Dataset
    """
    if options.labels is not None:
        raise bad(f"an NPZ file has its labels in Y; got labels={options.labels!r}")
    arrays = _arrays(path, options.max_bytes)
    X, Y = _matrix(arrays, "X"), label_matrix(_matrix(arrays, "Y"), options.sparse_labels)
    splits = {}
    for key in arrays:
        prefix = key.removesuffix("train_index")
        if prefix != key and f"{prefix}test_index" in arrays:
            splits[prefix.rstrip("_") or "source"] = arrays[key], arrays[f"{prefix}test_index"]
    names: Any = {key: arrays[key].ravel() for key in NAMES if key in arrays}
    coded = arrays.get("categorical_index", ())
    return Dataset(X, Y, name=path.stem, splits=splits, categorical_index=coded, **names)


def _arrays(path: Path, max_bytes: int) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > max_bytes:
                raise bad(f"unpacks to more than {max_bytes} bytes")
            return {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in entries}
    except BROKEN as error:
        raise bad(f"not a readable NPZ file: {error}") from error


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    """Read one array, after checking that it claims no more memory than its file has bytes."""
    with archive.open(entry) as stream:
        shape, fortran, dtype = read_array_header(stream, entry.file_size)
        if dtype.kind not in "biufU":
            raise ValueError(f"type {dtype.str} is not numbers or text")
        data = stream.read(math.prod(shape) * dtype.itemsize)
    return np.frombuffer(data, dtype, count=math.prod(shape)).reshape(shape, order="F" if fortran else "C")


def _matrix(arrays: dict[str, Array], key: str) -> Any:
    if key in arrays:
        return arrays[key]
    try:
        *pieces, sizes = (arrays[f"{key}_{piece}"] for piece in PIECES)
        shape = tuple(int(size) for size in sizes)
        if len(shape) != 2 or min(shape) < 0:
            raise ValueError(f"{key}_shape must be two sizes; got {quote(shape)}")
        values, indexes, starts = map(_native, pieces)
        check_compressed(values, indexes, starts, *shape)
        return sparse.csr_array((values, indexes, starts), shape=shape)
    except KeyError as error:
        raise bad(f"an NPZ data set needs {key!r} or its four CSR arrays; {error} is missing") from error
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise bad(f"the CSR arrays of {key} do not fit together: {error}") from error


def _native(array: Array) -> Array:
    """In a type that SciPy's sparse arrays take: numbers in the byte order of this machine, and no half precision."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"type {array.dtype.str} is not numbers")
    return array.astype(np.float64 if array.dtype.str[1:] == "f2" else array.dtype.newbyteorder("="), copy=False)


def write(dataset: Dataset, path: Path, compressed: bool = True) -> None:
    """Write an NPZ file that `read` reads back; uncompressed ones are larger, and read several times faster.

    Parameters
    ----------
    dataset : Dataset
    path : Path
    compressed : bool, default=True
    """
    arrays: dict[str, Any] = {}
    for key, matrix in (("X", dataset.X), ("Y", dataset.Y)):
        pieces = PIECES if sparse.issparse(matrix) else ()
        arrays |= {f"{key}_{piece}": np.array(getattr(matrix, piece)) for piece in pieces} or {key: matrix}
    names = {key: getattr(dataset.columns, key) for key in NAMES}
    arrays |= {key: np.array(list(own), dtype=np.str_) for key, own in names.items() if own is not None}
    if len(dataset.categorical_index):
        arrays["categorical_index"] = dataset.categorical_index
    for name, (train, test) in dataset.splits.items():
        prefix = "" if name == "source" else f"{name}_"
        arrays |= {f"{prefix}train_index": train, f"{prefix}test_index": test}
    with replace_file(path) as temporary, open(temporary, "wb") as stream:
        (np.savez_compressed if compressed else np.savez)(stream, **arrays)
