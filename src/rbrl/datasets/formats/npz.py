"""NPZ files: `X` or `X_data, X_indices, X_indptr, X_shape` (CSR), `Y`, and optional names and splits.

`train_index`/`test_index` are the source's own split; `NAME_train_index`/`NAME_test_index` further ones;
`categorical_index` lists the columns that hold codes.
"""

import lzma
import math
import tokenize
import zipfile
import zlib

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from rbrl._common.files import replacing
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats.text import bad, check_compressed, dense_labels, quote
from rbrl.datasets.names import NumberedNames

BROKEN = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    SyntaxError,
    RuntimeError,
    OverflowError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
PARTS = ("_train_index", "_test_index")


def read_npz(path, options):
    """Read an NPZ file; see the module's text for its keys."""
    if options.labels is not None:
        raise bad(path, f"an NPZ file has its labels in Y; got labels={options.labels!r}")
    arrays = _arrays(path, options.max_bytes)
    Y = _sparse(path, arrays, "Y")
    if sparse.issparse(Y) != options.sparse_labels:
        Y = sparse.csr_array(Y) if options.sparse_labels else dense_labels(path, Y)
    return Dataset(
        _sparse(path, arrays, "X"),
        Y,
        **{key: arrays[key].ravel() for key in ("feature_names", "label_names") if key in arrays},
        name=path.stem,
        splits=_splits(arrays),
        categorical_index=arrays.get("categorical_index", ()),
    )


def write_npz(dataset, path, compressed=True):
    """Write an NPZ file that `read_npz` reads back; uncompressed ones are larger, and read several times faster."""
    arrays = {**_pieces("X", dataset.X), **_pieces("Y", dataset.Y)}
    names = {"feature_names": dataset.feature_names, "label_names": dataset.label_names}
    arrays |= {key: _text(value) for key, value in names.items() if not isinstance(value, NumberedNames)}
    if len(dataset.categorical_index):
        arrays["categorical_index"] = dataset.categorical_index
    for name, split in dataset.splits.items():
        prefix = "" if name == "source" else name
        arrays |= {(prefix + part).lstrip("_"): index for part, index in zip(PARTS, split)}
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        (np.savez_compressed if compressed else np.savez)(stream, **arrays)


def _arrays(path, max_bytes):
    arrays, left = {}, max_bytes
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                left -= entry.file_size
                if left < 0:
                    raise bad(path, f"unpacks to more than {max_bytes} bytes")
                with archive.open(entry) as stream:
                    arrays[entry.filename.removesuffix(".npy")] = _array(stream, entry.file_size)
    except BROKEN as error:
        raise bad(path, f"not a readable NPZ file: {error}") from error
    return arrays


def _array(stream, size):
    """Read one array, after checking that it claims no more memory than its file has bytes."""
    version = npy.read_magic(stream)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = header(stream)
    if dtype.kind not in "biufU":
        raise ValueError(f"type {dtype.str} is not numbers or text")
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes > size:
        raise ValueError(f"an array of shape {shape} does not fit in {size} bytes")
    data = stream.read(n_bytes)
    return np.frombuffer(data, dtype, count=math.prod(shape)).reshape(shape, order="F" if fortran else "C")


def _sparse(path, arrays, key):
    if key in arrays:
        return arrays[key]
    try:
        shape = tuple(int(size) for size in arrays[f"{key}_shape"])
        if len(shape) != 2 or min(shape) < 0:
            raise ValueError(f"{key}_shape must be two sizes; got {quote(shape)}")
        pieces = tuple(_native(arrays[f"{key}_{part}"]) for part in ("data", "indices", "indptr"))
        check_compressed(*pieces, *shape)
        matrix = sparse.csr_array(pieces, shape=shape)
    except KeyError as error:
        raise bad(path, f"an NPZ data set needs {key!r} or its four CSR arrays; {error} is missing") from error
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise bad(path, f"the CSR arrays of {key} do not fit together: {error}") from error
    return matrix


def _native(array):
    """In a type that SciPy's sparse arrays take: numbers in the byte order of this machine, and no half precision."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"type {array.dtype.str} is not numbers")
    return array.astype(
        np.float64 if array.dtype.itemsize == 2 and array.dtype.kind == "f" else array.dtype.newbyteorder("="),
        copy=False,
    )


def _splits(arrays):
    splits = {}
    for key in arrays:
        if key.endswith("train_index"):
            prefix = key.removesuffix("train_index")
            if f"{prefix}test_index" in arrays:
                splits[prefix.rstrip("_") or "source"] = arrays[key], arrays[f"{prefix}test_index"]
    return splits


def _pieces(key, matrix):
    if not sparse.issparse(matrix):
        return {key: matrix}
    names = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape)}
    return {f"{key}_{name}": array for name, array in names.items()}


def _text(names):
    return np.array(list(names), dtype=np.str_)
