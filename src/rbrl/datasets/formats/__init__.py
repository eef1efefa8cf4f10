"""Data file formats: their base class, and the options, limits, errors and streams they share."""

import codecs
import gzip
import io
import math
import sys
import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from rbrl._common.checks import users_level
from rbrl._common.environment import replace_file
from rbrl._common.typing import Matrix
from rbrl.exceptions import DataFormatError, GuessWarning

if TYPE_CHECKING:
    from rbrl.datasets.columns import Columns
    from rbrl.datasets.dataset import Dataset

MAX_DATA_FILE_BYTES = 4 << 30  # default limit of the size of a decompressed file
MAX_DENSE_CELLS = 1 << 29  # largest dense matrix: 4 GiB of float64
MAX_QUOTE_LENGTH = 60  # so that a message stays a sentence
BUFFER_BYTES = 1 << 20  # bytes that are read at a time
BLOCK_CHARACTERS = 1 << 22  # text that is parsed at a time, unless a number of rows is given
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

# Label columns: the first n, the last -n, their names, or the path of an XML file.
LabelChoice = int | Sequence[str] | str | Path | None
Row = TypeVar("Row", bound=Sized)


@dataclass(frozen=True)
class ReadOptions:
    """Options of the readers.

    Parameters
    ----------
    labels : int, sequence of str, path of an XML file, or None
        Label columns: the first n, the last -n, their names, or the names in Mulan's XML file.
        None means that the file itself says which columns are labels.
    default_labels : int or None
        Label columns of a file that does not say which columns are labels.
    ignore : str or sequence of str
        Names of columns of an ARFF, CSV or Parquet file that are not read.
    positive : str or sequence of str
        Words in label columns that mean that a label is relevant.
    nominal : {"codes", "onehot"} or None
        Form of a nominal feature with more than two values. None means codes if the file declares
        the values, as ARFF does, and one 0/1 column per word for other features of few words.
    encoding : str or None
        Encoding of a text file; None means that it is detected.
    sparse_labels : bool
        If True, return Y as a sparse array.
    max_bytes : int
        Largest size of a decompressed file; larger files are refused.
    n_features, n_labels : int or None
        Sizes of a svmlight file whose first line does not contain them.
    first_feature, first_label : {0, 1} or None
        Lowest column number of a svmlight file whose first line does not determine it.
    part : bool
        If True, the file is one of several parts of a data set, so nothing may be guessed from its
        rows.
    columns : Columns or None
        Columns of the model that will use the file. Features and labels are matched by name.

    Examples
    --------
    >>> ReadOptions(labels=-2, nominal="onehot").labels
    -2
    """

    labels: LabelChoice = None
    default_labels: int | None = None
    ignore: str | Sequence[str] = ()
    positive: str | Sequence[str] = ()
    nominal: str | None = None
    encoding: str | None = None
    sparse_labels: bool = False
    max_bytes: int = MAX_DATA_FILE_BYTES
    n_features: int | None = None
    n_labels: int | None = None
    first_feature: int | None = None
    first_label: int | None = None
    part: bool = False
    columns: "Columns | None" = None

    def __post_init__(self) -> None:
        if self.nominal not in (None, "codes", "onehot"):
            raise ValueError(f"nominal must be 'codes' or 'onehot'; got {self.nominal!r}.")
        for name in ("ignore", "positive"):
            given = getattr(self, name)
            vars(self)[name] = (given,) if isinstance(given, str) else tuple(map(str, given))
        for name in ("first_feature", "first_label"):
            if getattr(self, name) not in (None, 0, 1):
                raise ValueError(f"{name} must be 0, 1 or None; got {getattr(self, name)!r}.")

    @property
    def ignored_names(self) -> set[str]:
        """Names of columns to skip: given by the user, or skipped when the model was fitted."""
        return {*self.ignore, *(self.columns.ignored if self.columns else ())}


class Format(ABC):
    """Reader and writer of the files of one format.

    By default, a file is read whole, also if its rows are needed in blocks.

    Attributes
    ----------
    name : str
    endings : tuple of str
        Endings of the files.
    has_columns : bool
        True if features and labels are named columns of one table.
    max_bytes : int
        Default limit of the decompressed size of a file that is read in blocks of rows.
    may_be_packed : bool
        True if a file may be compressed with gzip.
    """

    name: str
    endings: tuple[str, ...]
    has_columns = False
    max_bytes = sys.maxsize
    may_be_packed = False

    @abstractmethod
    def read(self, path: Path, options: ReadOptions) -> "Dataset":
        """Read a file; a reader raises DataFormatError without the name of the file."""

    @abstractmethod
    def write(self, dataset: "Dataset", path: Path, labels_first: bool = False) -> None:
        """Write a file; `labels_first` is for the columns of a table."""

    def parts(self, path: Path, options: ReadOptions, size: int) -> Iterator["Dataset"]:
        """Yield the file as data sets of `size` rows; the last one may be smaller."""
        whole = self.read(path, options)
        for X, Y in zip(row_blocks(whole.X, size), row_blocks(whole.Y, size)):
            yield replace(whole, X=X, Y=Y, splits={})

    def features(self, path: Path, options: ReadOptions, columns: "Columns", size: int) -> Iterator[Matrix]:
        """Yield the features for a model with these columns, in its order, some rows at a time.

        A block has at most `size` rows.
        """
        return row_blocks(self.read(path, options).matching(columns).X, size)


def row_blocks(X: Matrix, size: int) -> Iterator[Matrix]:
    """Yield the rows of a matrix in order, at most `size` at a time; blocks of a dense one are views."""
    for start in range(0, X.shape[0], size):
        yield X[start : start + size]


def format_error(reason: str, line: int | None = None) -> DataFormatError:
    """Return an error about a file; `name_file_in_errors` adds the name of the file."""
    error = DataFormatError(reason)
    error.line = line
    return error


def warn_guess(path: Path, text: str) -> None:
    """Warn that the meaning of a file was guessed; the text says how to correct the guess."""
    warnings.warn(f"{path}: {text}", GuessWarning, stacklevel=users_level())


@contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Add the file and the line to a `DataFormatError`, and advice to a `MemoryError`."""
    try:
        yield
    except DataFormatError as error:
        if str(error).startswith(str(path)):
            raise
        place = f"{path}, line {error.line}" if error.line else path
        raise DataFormatError(f"{place}: {error}") from error
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        raise MemoryError(
            f"{path}: there is not enough memory to read it{why}. To use less memory, split the file into shards with "
            "`rbrl data convert --rows-per-shard` or rbrl.datasets.write_shards, and fit the shards. In Python, "
            "rbrl.datasets.load_parts reads text and Parquet files some rows at a time."
        ) from error


def quote(value: object) -> str:
    """Return `value` in quotes, shortened so that it fits into a message."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= MAX_QUOTE_LENGTH else text[:MAX_QUOTE_LENGTH] + "…")


def list_some(values: Sequence[object], limit: int) -> str:
    """Return the first values in quotes, with commas; an ellipsis stands for the others.

    Examples
    --------
    >>> list_some(["a", "b", "c"], 2)
    "'a', 'b', …"
    """
    return ", ".join([*map(quote, values[:limit]), *["…"][: len(values) > limit]])


def parse_float(text: str) -> float | None:
    """Return the number in `text`, or None; 1_0 and ٣ are not numbers, unlike for Python's `float`."""
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def parse_number(text: str) -> float | None:
    """Return the finite number or NaN in `text`, or None."""
    value = parse_float(text)
    return None if value is None or math.isinf(value) else value


def format_number(value: float) -> str:
    """Return the shortest text of a float, integers without a point; `?` for NaN."""
    return repr(value).removesuffix(".0") if value == value else "?"


def row_entries(matrix: Any) -> Iterator[Iterator[tuple[int, float]]]:
    """Yield the columns and values of the entries of each row of a CSR matrix."""
    for start, stop in zip(matrix.indptr, matrix.indptr[1:]):
        yield zip(matrix.indices[start:stop].tolist(), matrix.data[start:stop].tolist())


@contextmanager
def open_text(path: Path, options: ReadOptions) -> Iterator[TextIO]:
    """Open a text file, decompressed and decoded; the encoding is detected unless it is given."""
    encoding = options.encoding or _detect_encoding(path, options.max_bytes)
    with open_bytes(path, options.max_bytes) as stream:
        try:
            text = io.TextIOWrapper(stream, encoding=encoding)
        except LookupError as error:
            raise format_error(f"unknown encoding {encoding!r}") from error
        try:
            with text:
                yield text
        except UnicodeError as error:
            raise format_error(f"not text in {encoding}: {error}") from error


@contextmanager
def open_bytes(path: Path, max_bytes: int) -> Iterator[Any]:
    """Open a file, decompressed; reading more than `max_bytes` raises an error."""
    with open(path, "rb") as start:
        is_gzip = start.read(2) == b"\x1f\x8b"
    raw = gzip.GzipFile(path, "rb") if is_gzip else io.FileIO(path)
    try:
        with io.BufferedReader(_LimitedStream(raw, max_bytes), BUFFER_BYTES) as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise format_error(f"damaged gzip file: {error}") from error


@contextmanager
def create_text(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 file for writing, compressed if its name ends in .gz.

    The file appears under its name when it is complete.
    """
    with replace_file(path) as temporary:
        opener: Any = gzip.open if path.suffix == ".gz" else open
        with opener(temporary, "wt", encoding="utf-8", newline="\n") as stream:
            yield stream


def group_rows(rows: Iterable[tuple[Row, int]], size: int | None = None) -> Iterator[tuple[list[Row], list[int]]]:
    """Group pairs of a row and its line number into blocks.

    Parameters
    ----------
    rows : iterable of (row, int)
        Rows, of any type that has a length, and their line numbers.
    size : int, optional
        Number of rows of a block. Default: rows of about four million characters.

    Yields
    ------
    rows : list
    lines : list of int
    """
    block: list[Row] = []
    lines: list[int] = []
    n_characters = 0
    for row, line in rows:
        block.append(row)
        lines.append(line)
        n_characters += len(row)
        if len(block) == size or (size is None and n_characters >= BLOCK_CHARACTERS):
            yield block, lines
            block, lines = [], []
            n_characters = 0
    if block:
        yield block, lines


def _detect_encoding(path: Path, max_bytes: int) -> str:
    """Return the encoding of the byte-order mark; else UTF-8 if the whole file is, else Latin-1."""
    with open_bytes(path, max_bytes) as stream:
        first = stream.read(BUFFER_BYTES)
        for mark, encoding in BYTE_ORDER_MARKS.items():
            if first.startswith(mark):
                return encoding
        blocks = chain([first], iter(partial(stream.read, BUFFER_BYTES), b""))
        try:
            for _ in codecs.iterdecode(blocks, "utf-8"):
                pass
        except UnicodeError:
            return "latin-1"
    return "utf-8"


class _LimitedStream(io.RawIOBase):
    """A byte stream that raises an error after `max_bytes` bytes."""

    def __init__(self, stream: Any, max_bytes: int):
        self.stream = stream
        self.max_bytes = max_bytes
        self.n_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; raise an error as soon as the limit is exceeded."""
        n_bytes: int = self.stream.readinto(buffer)
        self.n_read += n_bytes
        if self.n_read > self.max_bytes:
            raise format_error(f"longer than {self.max_bytes} bytes once unpacked; raise max_bytes to read it")
        return n_bytes

    def close(self) -> None:
        """Close this stream and the stream inside."""
        self.stream.close()
        super().close()
