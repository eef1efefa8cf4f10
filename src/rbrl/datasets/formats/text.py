"""Files as text: encodings, gzip, a limit on what they unpack to, and the wording of errors: file, line, reason."""

import codecs
import gzip
import io
import zlib
from contextlib import contextmanager
from itertools import islice

from rbrl._common.files import replacing
from rbrl.exceptions import DataFormatError

LONGEST_QUOTE = 60


def bad(path, reason, line=None):
    """Return the error for `path`: where it is wrong, and why."""
    place = f"{path}, line {line}" if line else f"{path}"
    return DataFormatError(f"{place}: {reason}")


def bad_word(path, name, word, line=None):
    """Return the error for a word in a block of a file that does not declare its words."""
    reason = "the code of a word depends on the whole file; use numbers, or ARFF, which declares its words"
    return bad(path, f"column {quote(name)} has {quote(word)}: {reason}", line)


@contextmanager
def memory_said(path):
    """Say of which file memory ran out, and what needs less; nothing need be wrong with the file."""
    try:
        yield
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        raise MemoryError(
            f"{path}: there is not enough memory to read it{why}. rbrl.datasets.load_parts reads text and Parquet files "
            "some rows at a time, and rbrl.datasets.write_shards (rbrl data convert --rows-per-shard) splits them into "
            "files that are fitted one at a time."
        ) from error


def quote(value):
    """Return `value` in quotes, cut to a length that fits a message."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…")


MAX_BYTES = 4 << 30  # of a file once unpacked
MAX_DENSE_CELLS = 1 << 29  # of a matrix that has to be dense: 4 GiB of float64


def dense_labels(path, Y):
    """Return the sparse array Y as a dense one, unless it is too large."""
    if Y.shape[0] * Y.shape[1] > MAX_DENSE_CELLS:
        raise bad(path, f"labels of shape {Y.shape} are too large for a dense array; read with sparse_labels=True")
    return Y.toarray()


def check_compressed(values, indexes, starts, n_lines, length):
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


MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
BUFFER = 1 << 20
BLOCK = 1 << 22  # characters


def read_text(path, parse, options):
    """Return `parse(stream)` for the text of `path`; starts again with Latin-1 if it turns out not to be UTF-8."""
    encodings = [options.encoding] if options.encoding else _encodings(path, options)
    for encoding in encodings:
        try:
            with _open(path, encoding, options.max_bytes) as stream:
                return parse(stream)
        except UnicodeError as error:
            if encoding == encodings[-1]:
                raise bad(path, f"not text in {encoding}: {error}") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise bad(path, f"damaged gzip file: {error}") from error


@contextmanager
def streaming_text(path, options):
    """Yield a stream of the text of `path`, in the encoding in which `read_text` reads it, found by a look at all bytes."""
    encoding = options.encoding or _encoding(path, options)
    try:
        with _open(path, encoding, options.max_bytes) as stream:
            yield stream
    except UnicodeError as error:
        raise bad(path, f"not text in {encoding}: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise bad(path, f"damaged gzip file: {error}") from error


def text_lines(path, options):
    """Yield the lines of `path`, however long it is."""
    with streaming_text(path, options) as stream:
        yield from stream


def line_blocks(stream, n_lines=None):
    """Yield lists of lines: `n_lines` in each, or by default about four million characters."""
    while lines := stream.readlines(BLOCK) if n_lines is None else list(islice(stream, n_lines)):
        yield lines


def read_bytes(path, max_bytes):
    """Return the bytes of a file, unpacked; for small files."""
    try:
        with _binary(path, max_bytes) as stream:
            return stream.read()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise bad(path, f"damaged gzip file: {error}") from error


@contextmanager
def writing_text(path):
    """Yield a UTF-8 text stream for `path`, packed if its name ends in .gz; the file appears when complete."""
    with replacing(path) as temporary:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(temporary, "wt", encoding="utf-8", newline="\n") as stream:
            yield stream


def _encodings(path, options):
    try:
        with _binary(path, options.max_bytes) as stream:
            start = stream.read(3)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise bad(path, f"damaged gzip file: {error}") from error
    marked = [encoding for mark, encoding in MARKS if start.startswith(mark)]
    return marked or ["utf-8", "latin-1"]


def _encoding(path, options):
    """The first of `_encodings` in which all of the file is text."""
    first, *others = _encodings(path, options)
    if not others:
        return first
    decoder = codecs.getincrementaldecoder(first)()
    try:
        with _binary(path, options.max_bytes) as stream:
            while block := stream.read(BUFFER):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeError:
        return others[0]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise bad(path, f"damaged gzip file: {error}") from error
    return first


@contextmanager
def _open(path, encoding, max_bytes):
    with _binary(path, max_bytes) as stream:
        try:
            text = io.TextIOWrapper(stream, encoding=encoding)
        except LookupError as error:
            raise bad(path, f"unknown encoding {encoding!r}") from error
        with text:
            yield text


def _binary(path, max_bytes):
    with open(path, "rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    raw = gzip.GzipFile(path, "rb") if packed else io.FileIO(path)
    return io.BufferedReader(_Limited(raw, path, max_bytes), BUFFER)


class _Limited(io.RawIOBase):
    """A byte stream that raises once it has given more than `max_bytes`."""

    def __init__(self, stream, path, max_bytes):
        self.stream, self.path, self.max_bytes, self.left = stream, path, max_bytes, max_bytes

    def readable(self):
        return True

    def readinto(self, buffer):
        n_bytes = self.stream.readinto(buffer)
        self.left -= n_bytes
        if self.left < 0:
            raise bad(self.path, f"longer than {self.max_bytes} bytes once unpacked; raise max_bytes to read it")
        return n_bytes

    def close(self):
        self.stream.close()
        super().close()
