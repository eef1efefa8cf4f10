"""Atomic writing of files, and checked reading of array headers.

A file is written atomically: a reader sees either the complete old file or the complete new file.
"""

import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

# Number of characters of the target's name that the name of the temporary file repeats. File systems
# allow names of 255 bytes, and a character may take four bytes.
MAX_PREFIX_LENGTH = 50


@contextmanager
def replace_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which replaces `path` at the end.

    The temporary file is removed if an error is raised.

    Parameters
    ----------
    path : path
        File to write. Its folder must exist. An existing file is replaced.

    Yields
    ------
    Path
        An empty file, with the permissions that the user's umask gives to new files.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> target = Path(mkdtemp(), "numbers.txt")
    >>> with replace_file(target) as temporary:
    ...     _ = temporary.write_text("1 2 3")
    ...     target.exists()
    False
    >>> target.read_text()
    '1 2 3'
    """
    path = Path(path)
    # `tempfile.mkstemp` creates files that only their owner may read. Correcting the mode would need
    # the umask, and reading the umask changes it for all threads.
    temporary = path.with_name(f".{path.name[:MAX_PREFIX_LENGTH]}.{secrets.token_hex(8)}.tmp")
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomically(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8 with plain line feeds, completely or not at all.

    Parameters
    ----------
    path : path
        File to write. Its folder must exist.
    text : str
    """
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_array_header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of an array in NumPy's format and check it against the size of the file.

    Parameters
    ----------
    stream : binary file
        The position is at the first byte of the array afterwards.
    size : int
        Number of bytes that the array has in its file.

    Returns
    -------
    shape : tuple of int
    fortran_order : bool
    dtype : dtype

    Raises
    ------
    ValueError
        The header declares more bytes than the file has.
    """
    version = npy.read_magic(stream)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read_header(stream)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} does not fit in {size} bytes")
    return shape, fortran, dtype
