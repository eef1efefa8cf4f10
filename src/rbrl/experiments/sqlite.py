"""SQLite file of a store: its tables, the owners of claims, and error messages with a way out."""

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

FILE_NAME = "runs.sqlite"
FORMAT_VERSION = 3
# The previous format lacks one column: one statement adds it, the other reads a file that must not be written.
# `_version` refuses all other formats.
PREVIOUS_FORMAT_VERSION = 2
UPGRADE = "ALTER TABLE folds ADD COLUMN processor_seconds REAL"
UPGRADED_VIEW = "CREATE TEMP VIEW folds AS SELECT *, NULL AS processor_seconds FROM main.folds"
TABLES = """
CREATE TABLE IF NOT EXISTS plans (id INTEGER PRIMARY KEY, toml TEXT NOT NULL, folder TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS current (
    position INTEGER PRIMARY KEY, dataset TEXT NOT NULL, method TEXT NOT NULL, split INTEGER NOT NULL,
    key TEXT NOT NULL, tune_key TEXT, identity TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, status TEXT NOT NULL, error TEXT NOT NULL, trace TEXT NOT NULL, again INTEGER NOT NULL,
    vals TEXT NOT NULL, params TEXT NOT NULL, tune_seconds REAL, train_seconds REAL, test_seconds REAL,
    processor_seconds REAL, gap REAL, evaluations REAL, seed INTEGER, version TEXT, machine TEXT, finished REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS folds (
    tune_key TEXT NOT NULL, point TEXT NOT NULL, fold INTEGER NOT NULL, vals TEXT NOT NULL, fit_seconds REAL, gap REAL,
    evaluations REAL, processor_seconds REAL, PRIMARY KEY (tune_key, point, fold)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS datasets (
    dataset TEXT PRIMARY KEY, n_samples INTEGER, n_features INTEGER, n_labels INTEGER, cardinality REAL, density REAL
);
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL);
"""
# Seconds to wait for a file that another process has locked.
LOCK_TIMEOUT = 60.0
# Error numbers of a full disk, a quota and a limit on the size of files.
NO_SPACE = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
# Errors of a damaged file: rbrl wrote JSON and TOML that can be read.
UNREADABLE = (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError)
NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
RESULTS_ARE_SAFE = "What was finished before is safe"
# Decoder of columns that are selected as "name [json]".
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
    """Owner of claims: the name of a lock file that is locked until `close` or the end of the process.

    A process number is not enough: another process may get the same number.

    Parameters
    ----------
    folder : Path
        Folder of the lock files; created if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = f"{uuid.uuid4().hex}.lock"
        self._path = folder / self.name
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        _lock(self._descriptor)

    def close(self) -> None:
        """Release the lock, and all claims with it."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_alive(folder: Path, name: str) -> bool:
    """Return True if the owner's process holds its lock; otherwise remove the lock file."""
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


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log.

    If two processes open a new file at once, SQLite raises "locked" in one of them without waiting.
    Therefore this function waits and tries again.
    """
    until = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


class Database:
    """One connection that all threads share.

    Parameters
    ----------
    folder : Path
        Folder of the file.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor]:
        """Yield a cursor for reading; a file that does not exist is empty, and is not created."""
        with self._lock, self._as_store_error():
            if self._connection is None and not self.path.exists():
                with closing(sqlite3.connect(":memory:")) as empty:
                    yield empty.executescript(TABLES)
            else:
                yield self._open_once().cursor()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Cursor]:
        """Yield a cursor in a transaction, which is committed at the end and undone after an error."""
        with self._lock, self._as_store_error():
            connection = self._open_once()
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

    def _open_once(self) -> sqlite3.Connection:
        """Return the connection, which is opened at its first use. The lock must be held."""
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        """Return a new connection to a prepared file; read-only if it must not be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self._connect()
        except (sqlite3.OperationalError, OSError):
            if not self.path.exists() or (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
                raise
            return self._open_to_read()

    def _open_to_read(self) -> sqlite3.Connection:
        """Open a file that must not be written, with the results in its write-ahead log, if there is one."""
        try:
            return self._connect("?mode=ro")
        except sqlite3.OperationalError as error:
            log = self.path.with_name(f"{FILE_NAME}-wal")
            if log.exists() and log.stat().st_size:
                problem = f"{self.path} has results in {log.name} that cannot be read without writing ({error})"
                way_out = f"Copy the folder to where you may write, and read the copy. {RESULTS_ARE_SAFE}."
                raise StoreError(f"{problem}. {way_out}") from error
            # Without a log, no process is changing the file.
            return self._connect("?mode=ro&immutable=1")

    def _connect(self, mode: str = "") -> sqlite3.Connection:
        """Return a new connection; `mode` is the query of its address, empty for reading and writing."""
        address = f"{self.path.absolute().as_uri()}{mode}"
        options: dict[str, Any] = {"timeout": LOCK_TIMEOUT, "isolation_level": None, "check_same_thread": False}
        connection = sqlite3.connect(address, uri=True, detect_types=sqlite3.PARSE_COLNAMES, **options)
        try:
            if not mode:
                self._prepare(connection)
            elif self._version(connection) == PREVIOUS_FORMAT_VERSION:
                connection.execute(UPGRADED_VIEW)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create the tables of a new store, and upgrade those of the previous format."""
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        version = self._version(connection)
        if version == 0:
            connection.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {FORMAT_VERSION}; COMMIT;")
        elif version == PREVIOUS_FORMAT_VERSION:
            connection.execute("BEGIN IMMEDIATE")
            if self._version(connection) == PREVIOUS_FORMAT_VERSION:  # no other process was faster
                connection.execute(UPGRADE)
                connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            connection.execute("COMMIT")

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return the version of the format, 0 for a new file; raise StoreError for an unknown one."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, PREVIOUS_FORMAT_VERSION, FORMAT_VERSION):
            known = f"{PREVIOUS_FORMAT_VERSION} and {FORMAT_VERSION}"
            problem = f"{self.path} has format {version}; this version of rbrl reads formats {known}"
            raise StoreError(f"{problem}. Choose another folder, or use the version of rbrl that wrote it.")
        return version

    @contextmanager
    def _as_store_error(self) -> Iterator[None]:
        """Turn errors of SQLite and of the disk into a StoreError."""
        try:
            yield
        except StoreError:
            raise
        except (sqlite3.Error, OSError, *UNREADABLE) as error:
            raise StoreError(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        """Return a message: the problem, the state of the results, and the way out."""
        path = self.path
        number = getattr(error, "errno", None)
        code = getattr(error, "sqlite_errorcode", -1) & 0xFF  # the primary code of SQLite; 255 for other errors
        if code == sqlite3.SQLITE_FULL or number in NO_SPACE:
            return f"no space is left for {path} ({error}). {RESULTS_ARE_SAFE}: free some space and start again."
        if code == sqlite3.SQLITE_NOTADB:
            return f"{path} is not a store of rbrl, or a damaged one ({error}). Choose another folder."
        if code == sqlite3.SQLITE_CORRUPT or isinstance(error, UNREADABLE) or "decode" in str(error):
            way_out = "Restore a copy of the folder, or choose another folder and repeat all runs."
            return f"{path} is damaged ({error}): some of what was finished before may be lost. {way_out}"
        if code == sqlite3.SQLITE_IOERR or number == errno.EIO:
            way_out = (
                "What was finished before is in the file as far as the disk kept it: repair the disk and start again."
            )
            return f"{path} could not be read or written ({error}): its disk is full, gone or failing. {way_out}"
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            seconds = f"{LOCK_TIMEOUT:.0f} s"
            return f"another process has kept {path} locked for {seconds} ({error}). {RESULTS_ARE_SAFE}: start again."
        if isinstance(error, OSError) or code in NOT_WRITABLE:
            return f"{path} cannot be written ({error}). Choose a folder that you may write to. {RESULTS_ARE_SAFE}."
        return f"{path} cannot be used ({error}); the last write was undone. Choose another folder."
