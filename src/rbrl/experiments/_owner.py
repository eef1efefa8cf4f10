"""Owners of claims: a locked file each, which the operating system unlocks when the process ends, however it ends."""

import os
import uuid
from pathlib import Path

if os.name == "nt":
    import msvcrt

    def _lock(descriptor):
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
else:
    import fcntl

    def _lock(descriptor):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Owner:
    """A name in whose favour claims are made, alive until `close` or the end of the process.

    A process number would not do: it is given again to another process, and means nothing on another machine.
    """

    def __init__(self, folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.name = f"{uuid.uuid4().hex}.lock"
        self._path = Path(folder, self.name)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        _lock(self._descriptor)

    def close(self):
        """Give up the name, and with it all its claims."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_alive(folder, name):
    """Whether the owner's process still holds the name; the file of one that does not is removed."""
    path = Path(folder, name)
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        _lock(descriptor)
    except OSError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(descriptor)
