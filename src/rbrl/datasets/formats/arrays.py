"""Binary files of named arrays: NPZ files, and MATLAB files of versions 5 to 7.

An NPZ file has `X` or its CSR arrays `X_data, X_indices, X_indptr, X_shape`, and `Y` likewise.
`train_index` and `test_index` are the split of the data's authors, and `NAME_train_index` and
`NAME_test_index` further splits. `categorical_index` lists the columns that hold codes.

A MATLAB file has the variables `X, Y`, or `data, target`, or `train_data, train_target, test_data,
test_target`. `target` may be labels × rows and -1/1, as in the files of Min-Ling Zhang.
`feature_names` and `label_names` are cells of text. `train_index` and `test_index` start at 1.
SciPy's reader trusts the sizes in a file, so that a damaged file can crash the interpreter.
"""

import lzma
import math
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.environment import read_array_header, replace_file
from rbrl._common.matrices import stored_values
from rbrl._common.typing import Array, IntArray
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import MAX_DATA_FILE_BYTES, Format, ReadOptions, format_error, list_some, quote
from rbrl.datasets.formats.table import check_names, join_parts, label_matrix, relevant_labels
from rbrl.exceptions import DataFormatError

NAME_KEYS = ("feature_names", "label_names")
SPLIT_KEYS = ("train_index", "test_index")
CSR_FIELDS = ("data", "indices", "indptr", "shape")
# Errors that Python, NumPy and decompressors raise for damaged NPZ files.
DAMAGE_ERRORS = (
    OSError, EOFError, ValueError, KeyError, TypeError, SyntaxError, RuntimeError, OverflowError, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
# Variables of a MATLAB file that are read.
TRAIN_AND_TEST = (("train_data", "train_target"), ("test_data", "test_target"))
MATRIX_NAMES = (TRAIN_AND_TEST, (("X", "Y"),), (("data", "target"),))
MATRIX_KEYS = {name for pairs in MATRIX_NAMES for pair in pairs for name in pair}
VARIABLE_KEYS = MATRIX_KEYS.union(SPLIT_KEYS, NAME_KEYS, {"categorical_index"})
HEADER_BYTES = 128
# Types of elements.
MATRIX_ELEMENT = 14
COMPRESSED_ELEMENT = 15
NUMBER_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
TEXT_ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16-{}", 16: "utf-8", 17: "utf-16-{}", 18: "utf-32-{}"}
# Classes of matrices.
CELL_CLASS = 1
CHAR_CLASS = 4
SPARSE_CLASS = 5
OPAQUE_CLASS = 17
NUMERIC_CLASSES = range(6, 16)
# A sparse matrix may have many empty rows; with more rows than these limits it is damaged.
MAX_ROWS_PER_BYTE = 64
MAX_ROWS_IN_ANY_CASE = 1_000_000

Variable = Any  # array, csc_array, or list of str
Element = tuple[int, memoryview]


class Npz(Format):
    """Reader and writer of NPZ files."""

    name = "npz"
    endings = (".npz",)
    max_bytes = MAX_DATA_FILE_BYTES

    def read(self, path: Path, options: ReadOptions) -> Dataset:
        """Read a file; the text of the module describes its keys."""
        arrays = read_arrays(path, options.max_bytes)
        X = _read_matrix(arrays, "X")
        Y = label_matrix(_read_matrix(arrays, "Y"), options.sparse_labels)
        splits = {}
        for key in arrays:
            prefix = key.removesuffix("train_index")
            if prefix != key and f"{prefix}test_index" in arrays:
                splits[prefix.rstrip("_") or "source"] = (arrays[key], arrays[f"{prefix}test_index"])
        others: Any = {key: arrays[key].ravel() for key in (*NAME_KEYS, "categorical_index") if key in arrays}
        return Dataset(X, Y, name=path.stem, splits=splits, **others)

    def write(self, dataset: Dataset, path: Path, labels_first: bool = False, compressed: bool = True) -> None:
        """Write a file; an uncompressed file is larger, but several times faster to read."""
        arrays: dict[str, Any] = {}
        for key, matrix in (("X", dataset.X), ("Y", dataset.Y)):
            if sparse.issparse(matrix):
                arrays |= {f"{key}_{field}": np.array(getattr(matrix, field)) for field in CSR_FIELDS}
            else:
                arrays[key] = matrix
        for key in NAME_KEYS:
            if (names := getattr(dataset.columns, key)) is not None:
                arrays[key] = np.array(list(names), dtype=np.str_)
        if len(dataset.categorical_index):
            arrays["categorical_index"] = dataset.categorical_index
        for name, parts in dataset.splits.items():
            prefix = "" if name == "source" else f"{name}_"
            arrays |= {f"{prefix}{key}": index for key, index in zip(SPLIT_KEYS, parts)}
        with replace_file(path) as temporary, open(temporary, "wb") as stream:
            (np.savez_compressed if compressed else np.savez)(stream, **arrays)


def read_arrays(path: Path, max_bytes: int, kinds: str = "biufU") -> dict[str, Array]:
    """Read all arrays, whose types must be of these kinds of NumPy.

    The header of an array must not claim more memory than its entry has bytes.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > max_bytes:
                raise format_error(f"unpacks to more than {max_bytes} bytes")
            arrays: dict[str, Array] = {}
            for entry in entries:
                with archive.open(entry) as stream:
                    shape, is_fortran, dtype = read_array_header(stream, entry.file_size)
                    if dtype.kind not in kinds:
                        raise ValueError(f"type {dtype.str} is not numbers or text")
                    data = stream.read(math.prod(shape) * dtype.itemsize)
                array = np.frombuffer(data, dtype, count=math.prod(shape))
                array = array.reshape(shape, order="F" if is_fortran else "C")
                arrays[entry.filename.removesuffix(".npy")] = array
            return arrays
    except DAMAGE_ERRORS as error:
        raise format_error(f"not a readable NPZ file: {error}") from error


def _read_matrix(arrays: dict[str, Array], key: str) -> Any:
    """Return the dense or CSR matrix with this key; raise an error if it is missing."""
    if key in arrays:
        return arrays[key]
    try:
        return read_csr({field: arrays[f"{key}_{field}"] for field in CSR_FIELDS}, key)
    except KeyError as error:
        found = list_some(list(arrays), 5) or "no arrays"
        raise format_error(
            f"an NPZ data set needs {key!r} or its four CSR arrays; {error} is missing; the file has {found}"
        ) from error


def read_csr(arrays: Mapping[str, Array], key: str) -> Any:
    """Return the CSR array with the arrays of `CSR_FIELDS`, after checks; messages call it `key`."""
    try:
        *parts, sizes = (arrays[field] for field in CSR_FIELDS)
        shape = tuple(int(size) for size in sizes)
        if len(shape) != 2 or min(shape) < 0:
            raise ValueError(f"{key}_shape must be two sizes; got {quote(shape)}")
        values, indexes, starts = map(_convert_for_scipy, parts)
        _check_compressed(values, indexes, starts, *shape)
        return sparse.csr_array((values, indexes, starts), shape=shape)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise format_error(f"the CSR arrays of {key} do not fit together: {error}") from error


def _convert_for_scipy(array: Array) -> Array:
    """Return numbers in native byte order; SciPy's sparse arrays do not take half precision."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"expected an array of numbers, got the type {array.dtype.str}")
    return array.astype(np.float64 if array.dtype.str[1:] == "f2" else array.dtype.newbyteorder("="), copy=False)


def _check_compressed(values: Array, indexes: Array, starts: Array, n_lines: int, length: int) -> None:
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


class Mat(Format):
    """Reader and writer of MATLAB files."""

    name = "mat"
    endings = (".mat",)
    max_bytes = MAX_DATA_FILE_BYTES

    def read(self, path: Path, options: ReadOptions) -> Dataset:
        """Read a file; the text of the module describes its variables."""
        data = path.read_bytes()
        if data.startswith((b"\x89HDF\r\n\x1a\n", b"MATLAB 7.3")):
            raise format_error(f"a MATLAB 7.3 file, which begins {quote(data[:10])}; save it with -v7")
        if (mark := data[126:HEADER_BYTES]) not in (b"IM", b"MI"):
            raise _damage_error(f"it does not begin as one: {data[:20]!r}")
        variables = _Reader("<" if mark == b"IM" else ">", options.max_bytes).variables(data)
        X, Y, splits = _find_matrices(variables)
        others = {key: variables[key] for key in NAME_KEYS if key in variables}
        for key, found in others.items():
            if not isinstance(found, list):
                raise format_error(f"{key} must be a cell array of texts; got {quote(found)}")
        if "categorical_index" in variables:
            others["categorical_index"] = _read_index(variables, "categorical_index")
        Y = label_matrix(Y, options.sparse_labels)
        return Dataset(X, Y, name=path.stem, splits=splits, **others)

    def write(self, dataset: Dataset, path: Path, labels_first: bool = False) -> None:
        """Write a file with X, Y, names and the split of the data's authors."""
        from scipy.io import savemat  # slow to import and rarely needed

        check_names(dataset)
        variables: dict[str, Any] = {"X": dataset.X, "Y": dataset.Y}
        for key, matrix in variables.items():
            if sparse.issparse(matrix):
                variables[key] = sparse.csc_matrix(matrix, dtype=np.float64)
        # The additional None makes NumPy create an array of objects instead of an array of characters.
        variables |= {key: np.array([*getattr(dataset, key), None], dtype=object)[:-1] for key in NAME_KEYS}
        variables |= {key: index + 1 for key, index in zip(SPLIT_KEYS, dataset.splits.get("source", ()))}
        if len(dataset.categorical_index):
            variables["categorical_index"] = dataset.categorical_index + 1
        with replace_file(path) as temporary, open(temporary, "wb") as stream:
            savemat(stream, variables, do_compression=True)


def _damage_error(reason: str) -> DataFormatError:
    """Return the error of a file that is not what it claims to be."""
    return format_error(f"not a readable MATLAB file: {reason}")


class _Head(NamedTuple):
    """Description of a variable."""

    kind: int
    is_complex: bool
    shape: tuple[int, ...]
    name: str


class _Reader:
    """Reader of elements, which have a type, a size and as many bytes.

    The elements of a variable are its flags, sizes, name and content.
    """

    def __init__(self, order: str, max_bytes: int):
        self.order = order
        self.max_bytes = max_bytes
        self.n_left = max_bytes

    def elements(self, data: memoryview) -> Iterator[Element]:
        """Yield the type and the content of each element, as views; refuse one that claims too much."""
        place = 0
        while place + 8 <= len(data):
            kind, size = struct.unpack_from(f"{self.order}II", data, place)
            start = place + 8
            if kind >> 16:  # a short element: four bytes of size and type, four bytes of content
                kind, size = kind & 0xFFFF, kind >> 16
                start = place + 4
                if size > 4:
                    raise _damage_error(f"a short element claims {size} bytes")
            if size > len(data) - start:
                raise _damage_error(f"an element claims {size} bytes; {len(data) - start} are left")
            yield kind, data[start : start + size]
            end = max(start + size, place + 8)
            place = end if kind == COMPRESSED_ELEMENT else -(-end // 8) * 8

    def variables(self, data: bytes) -> dict[str, Variable]:
        """Return the variables in `VARIABLE_KEYS`, each an array, a csc_array or a list of str."""
        variables = {}
        for kind, content in self.elements(memoryview(data)[HEADER_BYTES:]):
            if kind == COMPRESSED_ELEMENT:
                kind, content = next(self.elements(memoryview(self.decompress(content))), (0, content))
            if kind == MATRIX_ELEMENT:
                head, parts = self.read_head(content)
                if head.name in VARIABLE_KEYS:
                    variables[head.name] = self.read_value(head, parts)
        return variables

    def decompress(self, data: memoryview) -> bytes:
        """Return the decompressed bytes; all variables together must stay below the limit."""
        decompressor = zlib.decompressobj()
        try:
            content = decompressor.decompress(data, min(self.n_left + 1, sys.maxsize))
        except zlib.error as error:
            raise _damage_error(f"damaged: {error}") from error
        self.n_left -= len(content)
        if self.n_left < 0:
            raise _damage_error(f"longer than {self.max_bytes} bytes once unpacked; raise max_bytes to read it")
        if not decompressor.eof:
            raise _damage_error(f"a packed variable ends early, after {len(content)} bytes")
        return content

    def read_head(self, content: memoryview) -> tuple[_Head, list[Element]]:
        """Return the description of a variable, nameless for an object, and its other elements."""
        parts = list(self.elements(content))
        if len(parts) < 3 or len(parts[0][1]) < 8:
            raise _damage_error(f"a variable has {len(parts)} elements; it needs flags, sizes and a name")
        (flags,) = struct.unpack_from(f"{self.order}I", parts[0][1])
        if flags & 0xFF == OPAQUE_CLASS:
            return _Head(OPAQUE_CLASS, False, (), ""), []
        shape = tuple(self.read_numbers(parts[1]).tolist())
        if len(shape) < 2 or not all(isinstance(size, int) and size >= 0 for size in shape):
            raise _damage_error(f"a variable has the sizes {shape}")
        return _Head(flags & 0xFF, bool(flags & 0x800), shape, bytes(parts[2][1]).decode("latin-1")), parts[3:]

    def read_value(self, head: _Head, parts: list[Element]) -> Variable:
        """Return the value of a variable."""
        if head.is_complex:
            raise _damage_error(f"{head.name!r} is complex")
        if head.kind == CELL_CLASS:
            return [self.read_cell(content) for _, content in parts[: math.prod(head.shape)]]
        if head.kind == CHAR_CLASS:
            return self.read_text_rows(head, parts)
        if head.kind == SPARSE_CLASS and len(parts) >= 3:
            return self.read_sparse(head, *(self.read_numbers(part) for part in parts[:3]))
        if head.kind in NUMERIC_CLASSES and parts:
            array = self.read_numbers(parts[0])
            if len(array) != math.prod(head.shape):
                raise _damage_error(f"{head.name!r} has {len(array)} numbers for the sizes {head.shape}")
            return array.reshape(head.shape, order="F")
        raise _damage_error(f"{head.name!r} is of class {head.kind} with {len(parts)} elements, which cannot be read")

    def read_numbers(self, part: Element) -> Array:
        """Return the numbers in an element, in native byte order."""
        kind, content = part
        if kind not in NUMBER_TYPES:
            raise _damage_error(f"expected numbers; got an element of type {kind}")
        dtype = np.dtype(self.order + NUMBER_TYPES[kind])
        return np.frombuffer(content, dtype, count=len(content) // dtype.itemsize).astype(dtype.newbyteorder("="))

    def read_sparse(self, head: _Head, rows: Array, starts: Array, values: Array) -> Any:
        """Return a sparse matrix after checking its arrays."""
        n_rows, n_columns = head.shape[:2]
        if n_rows > max(MAX_ROWS_IN_ANY_CASE, MAX_ROWS_PER_BYTE * rows.nbytes):
            raise _damage_error(f"the sparse matrix {head.name!r} claims {n_rows} rows for {len(rows)} values")
        try:
            used = slice(int(starts[-1]) if len(starts) else 0)  # MATLAB reserves more than it uses
            _check_compressed(values[used], rows[used], starts, n_columns, n_rows)
            return sparse.csc_array((values[used], rows[used], starts), shape=(n_rows, n_columns))
        except ValueError as error:
            raise _damage_error(f"the sparse matrix {head.name!r} is damaged: {error}") from error

    def read_cell(self, content: memoryview) -> str:
        """Return the text in one cell of a cell array; an empty cell is an empty text."""
        head, parts = self.read_head(content)
        if head.kind != CHAR_CLASS and 0 not in head.shape:
            raise _damage_error(f"a cell must hold text; it holds {head}")
        return "".join(self.read_text_rows(head, parts))

    def read_text_rows(self, head: _Head, parts: list[Element]) -> list[str]:
        """Return the rows of a matrix of characters, which is stored by columns."""
        if not parts or 0 in head.shape:
            return []
        kind, content = parts[0]
        if kind not in TEXT_ENCODINGS:
            raise _damage_error(f"text is stored as type {kind}, which cannot be read")
        encoding = TEXT_ENCODINGS[kind].format("le" if self.order == "<" else "be")
        try:
            text = bytes(content).decode(encoding)
        except UnicodeError as error:
            raise _damage_error(f"text is not {encoding}: {error}") from error
        n_rows = head.shape[0]
        return [text] if n_rows == 1 else [text[i::n_rows].rstrip() for i in range(min(n_rows, len(text)))]


def _find_matrices(variables: Mapping[str, Variable]) -> tuple[Any, Any, dict[str, Any]]:
    """Return X, Y, and the split of the data's authors if the file has one."""
    present = [pairs for pairs in MATRIX_NAMES if all(name in variables for pair in pairs for name in pair)]
    if not present:
        needed = "X and Y, data and target, or train_data … test_target"
        raise format_error(f"it needs variables {needed}; it has {sorted(variables)}")
    sides = []
    for x, y in present[0]:
        X = _check_matrix(variables, x)
        sides.append((X, _read_labels(_check_matrix(variables, y), X.shape[0], transposed=y != "Y")))
    if len(sides) == 1:
        has_split = all(key in variables for key in SPLIT_KEYS)
        return *sides[0], {"source": tuple(_read_index(variables, key) for key in SPLIT_KEYS)} if has_split else {}
    for what, unit, one, other in zip(("data", "target"), ("columns", "labels"), *sides):
        if one.shape[1] != other.shape[1]:
            raise format_error(f"train_{what} and test_{what} have {one.shape[1]} and {other.shape[1]} {unit}")
    return join_parts(*sides)


def _check_matrix(variables: Mapping[str, Variable], key: str) -> Any:
    """Return a variable as a dense or CSR matrix; raise an error if it is no matrix."""
    array = variables[key]
    if isinstance(array, list) or array.ndim != 2:
        raise format_error(f"{key} must be a matrix of numbers; got {quote(array)}")
    return sparse.csr_array(array) if sparse.issparse(array) else array


def _read_labels(Y: Any, n_samples: int, transposed: bool) -> Any:
    """Return labels (n_samples, n_labels) as 0, 1 or NaN; `transposed` decides for a square Y."""
    if Y.shape[0] != n_samples or (transposed and Y.shape[1] == n_samples):
        Y = Y.T
    if Y.shape[0] != n_samples:
        raise format_error(f"{n_samples} rows do not go with labels of shape {Y.shape[::-1]}")
    values = stored_values(Y)
    odd = ~(np.isnan(values) | np.isin(values, (-1, 0, 1)))
    if odd.any():
        raise format_error(f"labels must be 0 and 1, or -1 and 1; got {values[odd][0]}")
    return relevant_labels(Y)


def _read_index(variables: Mapping[str, Variable], key: str) -> IntArray:
    """Return indices of MATLAB, which count from 1, as int64 from 0."""
    index = variables[key]
    whole = not isinstance(index, list) and not sparse.issparse(index) and (index == np.floor(index)).all()
    if not whole or not (np.abs(index) < 2**31).all():
        raise format_error(f"{key} must be whole numbers; got {quote(index)}")
    return index.ravel().astype(np.int64) - 1
