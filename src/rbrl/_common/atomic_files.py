"""Files: written so that a reader sees the old one or the new one, and arrays in them that may claim what is not there."""

import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

# Of the target's name, in that of the temporary file: file systems allow 255 bytes, and a letter may have four.
KEPT_LETTERS = 50


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; it becomes `path` at the end, or vanishes if an error was raised.

    Parameters
    ----------
    path : path
        Its folder must exist. A file that is there is replaced.

    Yields
    ------
    Path
        An empty file, with the permissions that the user's umask gives to new files.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> target = Path(mkdtemp(), "numbers.txt")
    >>> with replacing(target) as temporary:
    ...     _ = temporary.write_text("1 2 3")
    ...     target.exists()
    False
    >>> target.read_text()
    '1 2 3'
    """
    path = Path(path)
    # Not `tempfile.mkstemp`, whose files are for their owner alone: the mode would have to be corrected by the umask,
    # and to ask for the umask is to change it for all threads.
    temporary = path.with_name(f".{path.name[:KEPT_LETTERS]}.{secrets.token_hex(8)}.tmp")
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomically(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8 with plain line ends, whole or not at all; its folder must exist.

    Parameters
    ----------
    path : path
    text : str
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def array_head(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the head of an array in NumPy's format; raises ValueError if it claims more than there is.

    Parameters
    ----------
    stream : binary file
        It stands at the array's first byte afterwards.
    size : int
        The bytes that the array has in its file.

    Returns
    -------
    shape : tuple of int
    fortran_order : bool
    dtype : dtype
    """
    version = npy.read_magic(stream)
    shape, fortran, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} does not fit in {size} bytes")
    return shape, fortran, dtype
