"""Writing files so that a reader sees the old one or the new one, never half of it."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    """Write a text file in UTF-8 with plain line ends, whole or not at all; its folder must exist."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
