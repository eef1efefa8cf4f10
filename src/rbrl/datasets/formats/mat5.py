"""MATLAB files of versions 5 to 7: matrices, sparse matrices, text and cells of text.

SciPy's reader trusts the sizes that a file claims, and a damaged file can crash the interpreter; here each is checked.
"""

import math
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rbrl.datasets.formats.limits import check_compressed

HEADER = 128
MATRIX, COMPRESSED = 14, 15
CELL, CHAR, SPARSE, OPAQUE = 1, 4, 5, 17
NUMERIC = range(6, 16)
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
ROWS_PER_BYTE, MANY_ROWS = 64, 1_000_000


class BrokenMatError(ValueError):
    """The bytes are not a MATLAB file that can be read."""


def read_variables(data, wanted, max_bytes):
    """Return {name: array, csc_array or list of str} for the variables in `wanted` that the bytes hold."""
    if len(data) < HEADER or data[126:128] not in (b"IM", b"MI"):
        raise BrokenMatError(f"it does not begin as one: {bytes(data[:20])!r}")
    reader = _Reader("<" if data[126:128] == b"IM" else ">", max_bytes)
    variables = {}
    for kind, content in reader.elements(memoryview(data)[HEADER:]):
        if kind == COMPRESSED:
            kind, content = next(reader.elements(memoryview(reader.unpack(content))), (None, None))
        if kind == MATRIX:
            head, rest = reader.head(content)
            if head is not None and head.name in wanted:
                variables[head.name] = reader.value(head, rest)
    return variables


@dataclass
class _Head:
    kind: int
    is_complex: bool
    shape: tuple
    name: str


class _Reader:
    def __init__(self, order, max_bytes):
        self.order, self.left, self.max_bytes = order, max_bytes, max_bytes

    def elements(self, data):
        """Yield (type, content) of the elements one after the other."""
        place = 0
        while place + 8 <= len(data):
            kind, size = struct.unpack_from(f"{self.order}II", data, place)
            start = place + 8
            if kind >> 16:
                kind, size, start = kind & 0xFFFF, kind >> 16, place + 4
                if size > 4:
                    raise BrokenMatError(f"a short element claims {size} bytes")
            if size > len(data) - start:
                raise BrokenMatError(f"an element claims {size} bytes; {len(data) - start} are left")
            yield kind, data[start : start + size]
            end = max(start + size, place + 8)
            place = end if kind == COMPRESSED else -(-end // 8) * 8

    def unpack(self, data):
        """Return the unpacked bytes, up to the limit for the whole file."""
        unpacker, parts = zlib.decompressobj(), []
        try:
            while data and not unpacker.eof:
                parts.append(unpacker.decompress(data, 1 << 20))
                data = unpacker.unconsumed_tail
                self.left -= len(parts[-1])
                if self.left < 0:
                    raise BrokenMatError(
                        f"longer than {self.max_bytes} bytes once unpacked; raise max_bytes to read it"
                    )
        except zlib.error as error:
            raise BrokenMatError(f"damaged: {error}") from error
        if not unpacker.eof:
            raise BrokenMatError(f"a packed variable ends early, after {sum(map(len, parts))} bytes")
        return b"".join(parts)

    def head(self, content):
        """Return what a matrix element says about itself, None for an object, and its other elements."""
        parts = list(self.elements(content))
        if len(parts) < 3 or len(parts[0][1]) < 8:
            raise BrokenMatError(f"a variable has {len(parts)} elements; it needs flags, sizes and a name")
        (flags,) = struct.unpack_from(f"{self.order}I", parts[0][1])
        if flags & 0xFF == OPAQUE:
            return None, []
        shape = tuple(self.numbers(parts[1]).tolist())
        if len(shape) < 2 or not all(isinstance(size, int) and size >= 0 for size in shape):
            raise BrokenMatError(f"a variable has the sizes {shape}")
        name = bytes(parts[2][1]).decode("latin-1")
        return _Head(flags & 0xFF, bool(flags & 0x800), shape, name), parts[3:]

    def value(self, head, parts):
        """Return a variable."""
        if head.is_complex:
            raise BrokenMatError(f"{head.name!r} is complex")
        if head.kind == CELL:
            return [self.text(content) for _, content in parts[: math.prod(head.shape)]]
        if head.kind == CHAR:
            return self.rows_of_text(head, parts)
        if head.kind == SPARSE and len(parts) >= 3:
            return self.sparse(head, [self.numbers(part) for part in parts[:3]])
        if head.kind in NUMERIC and parts:
            array = self.numbers(parts[0])
            if len(array) != math.prod(head.shape):
                raise BrokenMatError(f"{head.name!r} has {len(array)} numbers for the sizes {head.shape}")
            return array.reshape(head.shape, order="F")
        raise BrokenMatError(f"{head.name!r} is of class {head.kind} with {len(parts)} elements, which cannot be read")

    def numbers(self, part):
        kind, content = part
        if kind not in NUMBERS:
            raise BrokenMatError(f"expected numbers; got an element of type {kind}")
        dtype = np.dtype(self.order + NUMBERS[kind])
        return np.frombuffer(content, dtype, count=len(content) // dtype.itemsize).astype(dtype.newbyteorder("="))

    def sparse(self, head, parts):
        rows, starts, values = parts
        n_rows, n_columns = head.shape[:2]
        n_values = int(starts[-1]) if len(starts) else 0
        if len(starts) != n_columns + 1 or not 0 <= n_values <= min(len(rows), len(values)):
            raise BrokenMatError(f"the sparse matrix {head.name!r} of sizes {head.shape} is damaged")
        if n_rows > max(MANY_ROWS, ROWS_PER_BYTE * rows.nbytes):
            raise BrokenMatError(f"the sparse matrix {head.name!r} claims {n_rows} rows for {len(rows)} values")
        values, rows = values[:n_values], rows[:n_values]
        try:
            check_compressed(values, rows, starts, n_columns, n_rows)
            return sparse.csc_array((values, rows, starts), shape=(n_rows, n_columns))
        except ValueError as error:
            raise BrokenMatError(f"the sparse matrix {head.name!r} is damaged: {error}") from error

    def text(self, content):
        """Return the text in one cell."""
        head, parts = self.head(content)
        if head is not None and head.kind == CHAR:
            return "".join(self.rows_of_text(head, parts))
        if head is not None and math.prod(head.shape) == 0:
            return ""
        raise BrokenMatError(f"a cell must hold text; it holds {head}")

    def rows_of_text(self, head, parts):
        if not parts or math.prod(head.shape) == 0:
            return []
        kind, content = parts[0]
        encoding = ENCODINGS.get(kind)
        if encoding is None:
            raise BrokenMatError(f"text is stored as type {kind}, which cannot be read")
        if encoding.startswith("utf-") and encoding != "utf-8":
            encoding += "-le" if self.order == "<" else "-be"
        try:
            text = bytes(content).decode(encoding)
        except UnicodeError as error:
            raise BrokenMatError(f"text is not {encoding}: {error}") from error
        if head.shape[0] == 1:
            return [text]
        n_rows = head.shape[0]
        return [text[i::n_rows].rstrip() for i in range(min(n_rows, len(text)))]
