"""Files as text: encodings, gzip, a limit on what they unpack to, and the wording of errors: file, line, reason."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar

from rbrl._common.files import replacing
from rbrl._common.typing import Array
from rbrl.datasets.formats import ReadOptions
from rbrl.exceptions import DataFormatError

LONGEST_QUOTE = 60
MAX_DENSE_CELLS = 1 << 29  # of a matrix that has to be dense: 4 GiB of float64
MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
BUFFER = 1 << 20
BLOCK = 1 << 22  # characters that are parsed at a time, where nobody asks for a number of rows

Row = TypeVar("Row", bound=Sized)


class _Flaw(DataFormatError):
    """What is wrong with a file, and in which line; `naming` adds the file."""

    def __init__(self, reason: str, line: int | None = None):
        super().__init__(reason)
        self.line = line


def bad(reason: str, line: int | None = None) -> DataFormatError:
    """Return the error for something wrong in the file that is read or written, to be raised under `naming`."""
    return _Flaw(reason, line)


def bad_word(name: str, word: str, line: int | None = None) -> DataFormatError:
    """Return the error for a word in a block of a file that does not declare its words."""
    reason = "the code of a word depends on the whole file; use numbers, or ARFF, which declares its words"
    return bad(f"column {quote(name)} has {quote(word)}: {reason}", line)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say in errors which file is wrong, and where; or for which memory ran out, and what needs less.

    In the latter case nothing need be wrong with the file.
    """
    try:
        yield
    except DataFormatError as error:
        line = getattr(error, "line", None)
        if str(error).startswith(str(path)):
            raise
        raise DataFormatError(f"{path}, line {line}: {error}" if line else f"{path}: {error}") from error
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        raise MemoryError(
            f"{path}: there is not enough memory to read it{why}. rbrl.datasets.load_parts reads text and Parquet files "
            "some rows at a time, and rbrl.datasets.write_shards (rbrl data convert --rows-per-shard) splits them into "
            "files that are fitted one at a time."
        ) from error


def quote(value: object) -> str:
    """Return `value` in quotes, cut to a length that fits a message."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…")


def dense_labels(Y: Any) -> Array:
    """Return the sparse array Y as a dense one, unless it is too large."""
    if Y.shape[0] * Y.shape[1] > MAX_DENSE_CELLS:
        raise bad(f"labels of shape {Y.shape} are too large for a dense array; read with sparse_labels=True")
    return Y.toarray()


def check_compressed(values: Array, indexes: Array, starts: Array, n_lines: int, length: int) -> None:
    """Raise ValueError unless the arrays are a CSR or CSC matrix of `n_lines` rows or columns of `length` places.

    SciPy's own check looks no further where the last start is 0, and what then decreases crashes the interpreter.
    """
    whole = all(array.ndim == 1 and array.dtype.kind in "iu" for array in (indexes, starts))
    if not whole or values.ndim != 1:
        raise ValueError("its indexes and starts must be lists of whole numbers")
    if len(starts) != n_lines + 1 or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"its starts must rise from 0 in {n_lines + 1} steps")
    if not starts[-1] <= len(values) == len(indexes):
        raise ValueError(f"there are {len(values)} values and {len(indexes)} indexes where {starts[-1]} are said to be")
    if len(indexes) and not (indexes.min() >= 0 and indexes.max() < length):
        raise ValueError(f"its indexes must lie in 0..{length - 1}; got {indexes.min()}..{indexes.max()}")


@contextmanager
def reading_text(path: Path, options: ReadOptions) -> Iterator[TextIO]:
    """Yield a stream of the text of `path`, unpacked, in the encoding that the options or a look at all bytes tell."""
    encoding = options.encoding or _encoding(path, options.max_bytes)
    with reading_bytes(path, options.max_bytes) as stream:
        try:
            text = io.TextIOWrapper(stream, encoding=encoding)
        except LookupError as error:
            raise bad(f"unknown encoding {encoding!r}") from error
        try:
            with text:
                yield text
        except UnicodeError as error:
            raise bad(f"not text in {encoding}: {error}") from error


@contextmanager
def reading_bytes(path: Path, max_bytes: int) -> Iterator[Any]:
    """Yield a stream of the bytes of `path`, unpacked; reading more than `max_bytes` of them raises an error."""
    with open(path, "rb") as start:
        packed = start.read(2) == b"\x1f\x8b"
    raw = gzip.GzipFile(path, "rb") if packed else io.FileIO(path)
    try:
        with io.BufferedReader(_Limited(raw, max_bytes), BUFFER) as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise bad(f"damaged gzip file: {error}") from error


def in_blocks(rows: Iterable[tuple[Row, int]], size: int | None = None) -> Iterator[tuple[list[Row], list[int]]]:
    """Yield rows, and the numbers of their lines: `size` at a time, or by default about four million characters."""
    block: list[Row] = []
    lines: list[int] = []
    length = 0
    for row, line in rows:
        block.append(row)
        lines.append(line)
        length += len(row)
        if len(block) == size or (size is None and length >= BLOCK):
            yield block, lines
            block, lines, length = [], [], 0
    if block:
        yield block, lines


@contextmanager
def writing_text(path: Path) -> Iterator[TextIO]:
    """Yield a UTF-8 text stream for `path`, packed if its name ends in .gz; the file appears when complete."""
    with replacing(path) as temporary:
        opener: Any = gzip.open if path.suffix == ".gz" else open
        with opener(temporary, "wt", encoding="utf-8", newline="\n") as stream:
            yield stream


def _encoding(path: Path, max_bytes: int) -> str:
    """By the mark at the beginning; else UTF-8 if all of the file is that; else Latin-1, which anything is."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with reading_bytes(path, max_bytes) as stream:
        block = stream.read(BUFFER)
        marked = next((encoding for mark, encoding in MARKS if block.startswith(mark)), None)
        if marked is not None:
            return marked
        try:
            while block:
                decoder.decode(block)
                block = stream.read(BUFFER)
            decoder.decode(b"", final=True)
        except UnicodeError:
            return "latin-1"
    return "utf-8"


class _Limited(io.RawIOBase):
    """A byte stream that raises once it has given more than `max_bytes`."""

    def __init__(self, stream: Any, max_bytes: int):
        self.stream, self.max_bytes, self.left = stream, max_bytes, max_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_bytes: int = self.stream.readinto(buffer)
        self.left -= n_bytes
        if self.left < 0:
            raise bad(f"longer than {self.max_bytes} bytes once unpacked; raise max_bytes to read it")
        return n_bytes

    def close(self) -> None:
        self.stream.close()
        super().close()
