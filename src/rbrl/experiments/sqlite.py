"""The SQLite file of a store: its tables, its owners, and its errors in words that help."""

import errno
import json
import os
import sqlite3
import threading
import time
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rbrl.exceptions import StoreError

FILE = "runs.sqlite"
VERSION = 3
# The format before is this one but for a column: how to add it, and how to read on where nothing may be written.
BEFORE = 2
UPGRADE = "ALTER TABLE folds ADD COLUMN processor_seconds REAL"
VIEW = "CREATE TEMP VIEW folds AS SELECT *, NULL AS processor_seconds FROM main.folds"
TABLES = Path(__file__).with_name("store.sql").read_text(encoding="utf-8")
# Seconds for which another process may keep the file locked.
PATIENCE = 60.0
# What a disk, a quota and a limit on the size of files say when there is no more room.
NO_SPACE = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
# What a store holds is text that rbrl wrote: where it cannot be read, the file was changed by something else.
UNREADABLE = (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError)
NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
# Of columns that are read as "name [json]".
sqlite3.register_converter("json", json.loads)


if os.name == "nt":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Owner:
    """A name in whose favour claims are made, alive until `close` or the end of the process.

    A process number would not do: it is given again to another process, and means nothing on another machine.

    Parameters
    ----------
    folder : Path
        Of the lock files; made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = f"{uuid.uuid4().hex}.lock"
        self._path = folder / self.name
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        _lock(self._descriptor)

    def close(self) -> None:
        """Give up the name, and with it all its claims."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_alive(folder: Path, name: str) -> bool:
    """Whether the owner's process still holds the name; the file of one that does not is removed.

    Parameters
    ----------
    folder : Path
    name : str
        That of an `Owner`.

    Returns
    -------
    bool
    """
    path = folder / name
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        return False
    with file:
        try:
            _lock(file.fileno())
        except OSError:
            return True
        path.unlink(missing_ok=True)
    return False


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Give the file its write-ahead log.

    Where two processes open a new file at once, SQLite says "locked" to one of them without waiting: both read, and
    each would wait for the other to stop. So the waiting is ours.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


class Database:
    """One connection, usable from any thread; every block of statements is a transaction.

    Parameters
    ----------
    folder : Path
        Where the file is, or will be.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor]:
        """Yield a cursor. A store that may not be written can be read; one that is not there is empty, and not made."""
        with self._lock, self._in_words():
            if self._connection is None and not self.path.exists():
                with closing(sqlite3.connect(":memory:")) as empty:
                    yield empty.executescript(TABLES)
            else:
                yield self._opened().cursor()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Cursor]:
        """Yield a cursor in a transaction that is complete at the end, or undone by an error."""
        with self._lock, self._in_words():
            connection = self._opened()
            cursor = connection.cursor().execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                connection.commit()
            except BaseException:
                if connection.in_transaction:
                    connection.rollback()
                raise

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self._connect()
        except (sqlite3.OperationalError, OSError):
            if not self.path.exists() or (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
                raise
            return self._open_to_read()

    def _open_to_read(self) -> sqlite3.Connection:
        """Open a file that may not be written. What was killed leaves results in its write-ahead log: they count too."""
        try:
            return self._connect("?mode=ro")
        except sqlite3.OperationalError as error:
            log = self.path.with_name(f"{FILE}-wal")
            if log.exists() and log.stat().st_size:
                words = "Copy the folder to where you may write, and read the copy. What was finished before is safe."
                what = f"{self.path} has results in {log.name} that cannot be read without writing ({error})"
                raise StoreError(f"{what}. {words}") from error
            # Without a log there is nobody who changes the file.
            return self._connect("?mode=ro&immutable=1")

    def _connect(self, mode: str = "") -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}{mode}"
        options: dict[str, Any] = {"timeout": PATIENCE, "isolation_level": None, "check_same_thread": False}
        connection = sqlite3.connect(address, uri=True, detect_types=sqlite3.PARSE_COLNAMES, **options)
        try:
            if not mode:
                self._prepare(connection)
            elif self._version(connection) == BEFORE:
                connection.execute(VIEW)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the tables of a new store, and those of the format before into today's."""
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        version = self._version(connection)
        if version == 0:
            connection.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        elif version == BEFORE:
            connection.execute("BEGIN IMMEDIATE")
            if self._version(connection) == BEFORE:  # no other process was faster
                connection.execute(UPGRADE)
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")

    def _version(self, connection: sqlite3.Connection) -> int:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, BEFORE, VERSION):
            words = "Choose another folder, or use the version of rbrl that wrote it."
            what = f"{self.path} has format {version}; this version of rbrl reads formats {BEFORE} and {VERSION}"
            raise StoreError(f"{what}. {words}")
        return version

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except (sqlite3.Error, OSError, *UNREADABLE) as error:
            raise StoreError(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        """What happened, what has become of the results, and the way out; no more is said to be safe than is."""
        path, text, number, kept = (
            self.path,
            str(error),
            getattr(error, "errno", None),
            "What was finished before is safe",
        )
        kind = getattr(error, "sqlite_errorcode", -1) & 0xFF  # the primary code; of other errors none that SQLite has
        if kind == sqlite3.SQLITE_FULL or number in NO_SPACE:
            return f"no space is left for {path} ({text}). {kept}: free some space and start again."
        if kind == sqlite3.SQLITE_NOTADB:
            return f"{path} is not a store of rbrl, or a damaged one ({text}). Choose another folder."
        if kind == sqlite3.SQLITE_CORRUPT or isinstance(error, UNREADABLE) or "decode" in text:
            words = "Put back a copy of the folder if there is one, or choose another folder, where all is done anew."
            return f"{path} is damaged ({text}): some of what was finished before may be lost. {words}"
        if kind == sqlite3.SQLITE_IOERR or number == errno.EIO:
            words = (
                "What was finished before is in the file as far as the disk has kept it: mend that, and start again."
            )
            return f"{path} could not be read or written ({text}): its disk is full, gone or failing. {words}"
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return f"another process has kept {path} locked for {PATIENCE:.0f} s ({text}). {kept}: start again."
        if isinstance(error, OSError) or kind in NOT_WRITABLE:
            return f"{path} cannot be written ({text}). Choose a folder that you may write to. {kept}."
        return f"{path} cannot be used ({text}); what was about to be written was undone. Choose another folder."
