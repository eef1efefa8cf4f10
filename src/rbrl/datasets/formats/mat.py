"""MATLAB files (versions 5 to 7): `X, Y`, or `data, target`, or `train_data, train_target, test_data, test_target`.

SciPy's reader trusts the sizes that a file claims, and a damaged file can crash the interpreter; here each is checked.

`target` may be labels × rows and -1/1, as in the files of Min-Ling Zhang. `feature_names` and `label_names` are cells
of text; `train_index` and `test_index` count from 1, as MATLAB does.
"""

import math
import struct
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.atomic_files import replace_file
from rbrl._common.typing import Array, IntArray
from rbrl.datasets.dataset import Dataset, stored_values
from rbrl.datasets.formats import ReadOptions, bad, check_compressed, join_parts, label_matrix, quote
from rbrl.datasets.formats.table import check_names
from rbrl.exceptions import DataFormatError

HEADER = 128
MATRIX, COMPRESSED = 14, 15
CELL, CHAR, SPARSE, OPAQUE = 1, 4, 5, 17
NUMERIC = range(6, 16)
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16-{}", 16: "utf-8", 17: "utf-16-{}", 18: "utf-32-{}"}
# A sparse matrix may have many empty rows; one that claims more than this for what it holds is damaged.
ROWS_PER_BYTE, MANY_ROWS = 64, 1_000_000
PAIRS = ((("X", "Y"),), (("data", "target"),))
PARTS = (("train_data", "train_target"), ("test_data", "test_target"))
SPLIT = ("train_index", "test_index")
NAMES = ("feature_names", "label_names")
WANTED = {name for pair in (*PAIRS[0], *PAIRS[1], *PARTS, SPLIT, NAMES) for name in pair} | {"categorical_index"}

Variable = Any  # array, csc_array, or list of str
Element = tuple[int, memoryview]


def _broken(reason: str) -> DataFormatError:
    return bad(f"not a readable MATLAB file: {reason}")


class _Head(NamedTuple):
    kind: int
    is_complex: bool
    shape: tuple[int, ...]
    name: str


class _Reader:
    """Reads elements: a type, a size, and as many bytes; those of a matrix are its flags, sizes, name and content."""

    def __init__(self, order: str, max_bytes: int):
        self.order, self.left, self.max_bytes = order, max_bytes, max_bytes

    def elements(self, data: memoryview) -> Iterator[Element]:
        """Yield (type, content) of the elements one after the other."""
        place = 0
        while place + 8 <= len(data):
            kind, size = struct.unpack_from(f"{self.order}II", data, place)
            start = place + 8
            if kind >> 16:  # a short element: size and type in the first four bytes, the content in the others
                kind, size, start = kind & 0xFFFF, kind >> 16, place + 4
                if size > 4:
                    raise _broken(f"a short element claims {size} bytes")
            if size > len(data) - start:
                raise _broken(f"an element claims {size} bytes; {len(data) - start} are left")
            yield kind, data[start : start + size]
            end = max(start + size, place + 8)
            place = end if kind == COMPRESSED else -(-end // 8) * 8

    def variables(self, data: bytes) -> dict[str, Variable]:
        """Return {name: array, csc_array or list of str} for the variables in `WANTED` that the bytes hold."""
        variables = {}
        for kind, content in self.elements(memoryview(data)[HEADER:]):
            if kind == COMPRESSED:
                kind, content = next(self.elements(memoryview(self.unpack(content))), (0, content))
            head, parts = self.head(content) if kind == MATRIX else (None, [])
            if head is not None and head.name in WANTED:
                variables[head.name] = self.value(head, parts)
        return variables

    def unpack(self, data: memoryview) -> bytes:
        """Return the unpacked bytes, up to the limit for the whole file."""
        unpacker = zlib.decompressobj()
        try:
            content = unpacker.decompress(data, min(self.left + 1, sys.maxsize))
        except zlib.error as error:
            raise _broken(f"damaged: {error}") from error
        self.left -= len(content)
        if self.left < 0:
            raise _broken(f"longer than {self.max_bytes} bytes once unpacked; raise max_bytes to read it")
        if not unpacker.eof:
            raise _broken(f"a packed variable ends early, after {len(content)} bytes")
        return content

    def head(self, content: memoryview) -> tuple[_Head | None, list[Element]]:
        """Return what a matrix element says about itself, None for an object, and its other elements."""
        parts = list(self.elements(content))
        if len(parts) < 3 or len(parts[0][1]) < 8:
            raise _broken(f"a variable has {len(parts)} elements; it needs flags, sizes and a name")
        (flags,) = struct.unpack_from(f"{self.order}I", parts[0][1])
        if flags & 0xFF == OPAQUE:
            return None, []
        shape = tuple(self.numbers(parts[1]).tolist())
        if len(shape) < 2 or not all(isinstance(size, int) and size >= 0 for size in shape):
            raise _broken(f"a variable has the sizes {shape}")
        return _Head(flags & 0xFF, bool(flags & 0x800), shape, bytes(parts[2][1]).decode("latin-1")), parts[3:]

    def value(self, head: _Head, parts: list[Element]) -> Variable:
        """Return a variable."""
        if head.is_complex:
            raise _broken(f"{head.name!r} is complex")
        if head.kind == CELL:
            return [self.cell(content) for _, content in parts[: math.prod(head.shape)]]
        if head.kind == CHAR:
            return self.rows_of_text(head, parts)
        if head.kind == SPARSE and len(parts) >= 3:
            return self.sparse(head, *(self.numbers(part) for part in parts[:3]))
        if head.kind in NUMERIC and parts:
            array = self.numbers(parts[0])
            if len(array) != math.prod(head.shape):
                raise _broken(f"{head.name!r} has {len(array)} numbers for the sizes {head.shape}")
            return array.reshape(head.shape, order="F")
        raise _broken(f"{head.name!r} is of class {head.kind} with {len(parts)} elements, which cannot be read")

    def numbers(self, part: Element) -> Array:
        """Return the numbers in an element, in the byte order of this machine."""
        kind, content = part
        if kind not in NUMBERS:
            raise _broken(f"expected numbers; got an element of type {kind}")
        dtype = np.dtype(self.order + NUMBERS[kind])
        return np.frombuffer(content, dtype, count=len(content) // dtype.itemsize).astype(dtype.newbyteorder("="))

    def sparse(self, head: _Head, rows: Array, starts: Array, values: Array) -> Any:
        """Return a sparse matrix, its pieces checked."""
        n_rows, n_columns = head.shape[:2]
        n_values = int(starts[-1]) if len(starts) else 0
        if len(starts) != n_columns + 1 or not 0 <= n_values <= min(len(rows), len(values)):
            raise _broken(f"the sparse matrix {head.name!r} of sizes {head.shape} is damaged")
        if n_rows > max(MANY_ROWS, ROWS_PER_BYTE * rows.nbytes):
            raise _broken(f"the sparse matrix {head.name!r} claims {n_rows} rows for {len(rows)} values")
        values, rows = values[:n_values], rows[:n_values]
        try:
            check_compressed(values, rows, starts, n_columns, n_rows)
            return sparse.csc_array((values, rows, starts), shape=(n_rows, n_columns))
        except ValueError as error:
            raise _broken(f"the sparse matrix {head.name!r} is damaged: {error}") from error

    def cell(self, content: memoryview) -> str:
        """Return the text in one cell."""
        head, parts = self.head(content)
        if head is not None and head.kind == CHAR:
            return "".join(self.rows_of_text(head, parts))
        if head is not None and math.prod(head.shape) == 0:
            return ""
        raise _broken(f"a cell must hold text; it holds {head}")

    def rows_of_text(self, head: _Head, parts: list[Element]) -> list[str]:
        """Return the rows of a matrix of letters."""
        if not parts or math.prod(head.shape) == 0:
            return []
        kind, content = parts[0]
        if kind not in ENCODINGS:
            raise _broken(f"text is stored as type {kind}, which cannot be read")
        encoding = ENCODINGS[kind].format("le" if self.order == "<" else "be")
        try:
            text = bytes(content).decode(encoding)
        except UnicodeError as error:
            raise _broken(f"text is not {encoding}: {error}") from error
        n_rows = head.shape[0]
        return [text] if n_rows == 1 else [text[i::n_rows].rstrip() for i in range(min(n_rows, len(text)))]


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read a MATLAB file; see the module's text.

    Parameters
    ----------
    path : Path
    options : ReadOptions

    Returns
    -------
    Dataset
    """
    if options.labels is not None:
        raise bad(f"a MATLAB file has its labels in a variable of their own; got labels={options.labels!r}")
    data = path.read_bytes()
    if data[:8] == b"\x89HDF\r\n\x1a\n" or data[:10] == b"MATLAB 7.3":
        raise bad(f"a MATLAB 7.3 file, which begins {quote(data[:10])}; save it with -v7")
    if len(data) < HEADER or data[126:128] not in (b"IM", b"MI"):
        raise _broken(f"it does not begin as one: {data[:20]!r}")
    variables = _Reader("<" if data[126:128] == b"IM" else ">", options.max_bytes).variables(data)
    X, Y, splits = _matrices(variables)
    for key in NAMES:
        if not isinstance(variables.get(key, []), list):
            raise bad(f"{key} must be a cell array of texts; got {quote(variables[key])}")
    coded = _index(variables, "categorical_index") if "categorical_index" in variables else ()
    names = {key: variables[key] for key in NAMES if key in variables}
    Y = label_matrix(Y, options.sparse_labels)
    return Dataset(X, Y, name=path.stem, splits=splits, categorical_index=coded, **names)


def _matrices(variables: Mapping[str, Variable]) -> tuple[Any, Any, dict[str, Any]]:
    """X, Y, and the source's own split if the file has one."""
    kinds = [pairs for pairs in (PARTS, *PAIRS) if all(name in variables for pair in pairs for name in pair)]
    if not kinds:
        needed = "X and Y, data and target, or train_data … test_target"
        raise bad(f"it needs variables {needed}; it has {sorted(variables)}")
    sides = []
    for x, y in kinds[0]:
        X = _numbers(variables, x)
        sides.append((X, _labels(_numbers(variables, y), X.shape[0], turned=y != "Y")))
    if len(sides) == 1:
        has_split = all(key in variables for key in SPLIT)
        return *sides[0], {"source": tuple(_index(variables, key) for key in SPLIT)} if has_split else {}
    for what, unit, one, other in zip(("data", "target"), ("columns", "labels"), *sides):
        if one.shape[1] != other.shape[1]:
            raise bad(f"train_{what} and test_{what} have {one.shape[1]} and {other.shape[1]} {unit}")
    return join_parts(*sides)


def _numbers(variables: Mapping[str, Variable], key: str) -> Any:
    array = variables[key]
    if isinstance(array, list) or array.ndim != 2:
        raise bad(f"{key} must be a matrix of numbers; got {quote(array)}")
    return sparse.csr_array(array) if sparse.issparse(array) else array


def _labels(Y: Any, n_samples: int, turned: bool) -> Any:
    if Y.shape[0] != n_samples or (turned and Y.shape[1] == n_samples):
        Y = Y.T
    if Y.shape[0] != n_samples:
        raise bad(f"{n_samples} rows do not go with labels of shape {Y.shape[::-1]}")
    values = stored_values(Y)
    missing = np.isnan(values)
    odd = ~(missing | np.isin(values, (-1, 0, 1) if (values == -1).any() else (0, 1)))
    if odd.any():
        raise bad(f"labels must be 0 and 1, or -1 and 1; got {values[odd][0]}")
    if missing.any():
        Y = label_matrix(Y, as_sparse=False)
        return np.where(np.isnan(Y), np.nan, Y > 0)
    return sparse.csr_array(Y > 0) if sparse.issparse(Y) else Y > 0


def _index(variables: Mapping[str, Variable], key: str) -> IntArray:
    index = variables[key]
    whole = not isinstance(index, list) and not sparse.issparse(index) and (index == np.floor(index)).all()
    if not whole or not (np.abs(index) < 2**31).all():
        raise bad(f"{key} must be whole numbers; got {quote(index)}")
    return index.ravel().astype(np.int64) - 1


def write(dataset: Dataset, path: Path) -> None:
    """Write a MATLAB file with X, Y, names and the source's own split.

    Parameters
    ----------
    dataset : Dataset
    path : Path
    """
    from scipy.io import savemat  # slow to import, and few write such files

    check_names([*dataset.feature_names, *dataset.label_names])
    sides = (dataset.X, dataset.Y)
    X, Y = (sparse.csc_matrix(A, dtype=np.float64) if sparse.issparse(A) else A for A in sides)
    variables: dict[str, Any] = {"X": X, "Y": Y}
    # With one more than the names: an array of objects, of which NumPy makes no array of letters.
    variables |= {key: np.array([*getattr(dataset, key), None], dtype=object)[:-1] for key in NAMES}
    variables |= {key: index + 1 for key, index in zip(SPLIT, dataset.splits.get("source", ()))}
    if len(dataset.categorical_index):
        variables["categorical_index"] = dataset.categorical_index + 1
    with replace_file(path) as temporary, open(temporary, "wb") as stream:
        savemat(stream, variables, do_compression=True)
