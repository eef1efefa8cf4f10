"""Text files: encodings, gzip, and a limit on what they unpack to."""

import codecs
import gzip
import io
import zlib
from contextlib import contextmanager
from itertools import islice

from rbrl.datasets.formats.atomic import replacing
from rbrl.datasets.formats.errors import bad

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
