"""Text in files: bytes, encodings, lines, and pairs of numbers in sparse rows."""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

import numpy as np

from rbrl._common.atomic_files import replace_file
from rbrl._common.typing import Array, IntArray
from rbrl.datasets.formats import ReadOptions, bad

MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
BUFFER = 1 << 20
BLOCK = 1 << 22  # characters that are parsed at a time, where nobody asks for a number of rows

Row = TypeVar("Row", bound=Sized)


@contextmanager
def reading_text(path: Path, options: ReadOptions) -> Iterator[TextIO]:
    """Yield a stream of the text of `path`, unpacked, in the encoding that the options or a look at all bytes tell.

    Parameters
    ----------
    path : Path
    options : ReadOptions

    Yields
    ------
    text stream
    """
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
    """Yield a stream of the bytes of `path`, unpacked; reading more than `max_bytes` of them raises an error.

    Parameters
    ----------
    path : Path
    max_bytes : int

    Yields
    ------
    binary stream
    """
    with open(path, "rb") as start:
        packed = start.read(2) == b"\x1f\x8b"
    raw = gzip.GzipFile(path, "rb") if packed else io.FileIO(path)
    try:
        with io.BufferedReader(_Limited(raw, max_bytes), BUFFER) as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise bad(f"damaged gzip file: {error}") from error


def in_blocks(rows: Iterable[tuple[Row, int]], size: int | None = None) -> Iterator[tuple[list[Row], list[int]]]:
    """Yield rows, and the numbers of their lines: `size` at a time, or by default about four million characters.

    Parameters
    ----------
    rows : iterable of (row, int)
        Rows, of any type that has a length, and their lines.
    size : int, optional

    Yields
    ------
    rows : list
    lines : list of int
    """
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
    """Yield a UTF-8 text stream for `path`, packed if its name ends in .gz; the file appears when complete.

    Parameters
    ----------
    path : Path

    Yields
    ------
    text stream
    """
    with replace_file(path) as temporary:
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


# By the mark between pairs, or between the two of a pair. Possessive, so that no text takes more than one look.
GRAMMARS = {
    ",": re.compile(
        r"(?:[^\S\n]*+(?:\d++[^\S\n]++[^\s,]++[^\S\n]*+(?:,[^\S\n]*+\d++[^\S\n]++[^\s,]++[^\S\n]*+)*+)?+\n)*+"
    ),
    ":": re.compile(r"(?:[^\S\n]*+(?:\d++:[^\s:]++(?:[^\S\n]++|(?=\n)))*+\n)*+"),
}


class Pairs(NamedTuple):
    """Entries of sparse rows, one row after the other: their columns, their values, and how many each row has.

    Examples
    --------
    >>> Pairs.of_rows([{3: 0.5, 7: 1.0}, {}]).starts
    array([0, 2, 2])
    """

    indexes: IntArray
    values: Array
    counts: IntArray

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[int, float]]) -> "Pairs":
        """The entries of rows that are given as {column: value}.

        Parameters
        ----------
        rows : sequence of mapping of int to float

        Returns
        -------
        Pairs
        """
        indexes = np.array([j for row in rows for j in row], dtype=np.int64)
        values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
        return cls(indexes, values, np.array([len(row) for row in rows], dtype=np.int64))

    @classmethod
    def joined(cls, blocks: Sequence["Pairs"]) -> "Pairs":
        """The entries of all blocks.

        Parameters
        ----------
        blocks : sequence of Pairs

        Returns
        -------
        Pairs
        """
        return blocks[0] if len(blocks) == 1 else cls(*(np.concatenate(pieces) for pieces in zip(*blocks)))

    @classmethod
    def read(cls, rows: Sequence[str], mark: str) -> "Pairs | None":
        """Return the pairs in `rows`, all at once; None where something about them asks for a closer look.

        That is where they do not keep to the grammar, a value is not finite, or a row has an index twice.

        Parameters
        ----------
        rows : sequence of str
            One row each, without a line end.
        mark : {",", ":"}
            Of ARFF, ``3 0.5, 7 1``, or of svmlight, ``3:0.5 7:1``.

        Returns
        -------
        Pairs or None

        Examples
        --------
        >>> Pairs.read(["3:0.5 7:1", ""], ":").counts
        array([2, 0])
        """
        text = "\n".join(rows) + "\n"
        # NumPy reads 1_0 as 10, as Python does; no such file means that.
        if not text.isascii() or "_" in text or not GRAMMARS[mark].fullmatch(text):
            return None
        counts = np.array([row.count(mark) for row in rows], dtype=np.int64)
        if mark == ",":  # one more pair than commas, but for a blank row
            counts += np.array([bool(row.strip()) for row in rows])
        numbers = _numbers(text.replace(mark, " "))
        if len(numbers) != 2 * counts.sum():
            return None
        indexes, values = numbers[::2], numbers[1::2].copy()  # scikit-learn asks for arrays without gaps
        if indexes.max(initial=0) >= 2**31 - 1 or not np.isfinite(values).all():
            return None
        pairs = cls(indexes.astype(np.int64), values, counts)
        places = np.sort(np.repeat(np.arange(len(counts)), counts) * (pairs.indexes.max(initial=0) + 1) + pairs.indexes)
        return None if (places[1:] == places[:-1]).any() else pairs

    @property
    def ends(self) -> list[int]:
        """The least and the greatest column, if there are any."""
        return [int(self.indexes.min()), int(self.indexes.max())] if len(self.indexes) else []

    @property
    def starts(self) -> IntArray:
        """Where each row begins, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.counts)])


def _numbers(text: str) -> Array:
    """Return the numbers of a text, or none if it has anything else: the caller compares their count."""
    try:
        return np.array(text.split(), dtype=np.float64)
    except ValueError:
        return np.empty(0)
