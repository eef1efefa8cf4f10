"""The SQLite file of a store: opening it, and its errors in words that help."""

import os
import sqlite3
import threading
from contextlib import closing, contextmanager
from pathlib import Path

from rbrl.experiments._schema import TABLES, VERSION
from rbrl.experiments.errors import StoreError

FILE = "runs.sqlite"
PATIENCE = 60.0


class Database:
    """One connection, usable from any thread; every block of statements is a transaction."""

    def __init__(self, folder):
        self.path = Path(folder, FILE)
        self._lock = threading.RLock()
        self._connection = None

    @contextmanager
    def reading(self):
        """Yield a cursor. A store that may not be written can be read; one that is not there is empty, and not made."""
        with self._lock, self._in_words():
            if self._connection is None and not self.path.exists():
                with closing(sqlite3.connect(":memory:")) as empty:
                    empty.executescript(TABLES)
                    yield empty.cursor()
            else:
                yield self._opened().cursor()

    @contextmanager
    def writing(self):
        """Yield a cursor in a transaction that is complete at the end, or undone by an error."""
        with self._lock, self._in_words():
            connection = self._opened()
            cursor = connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                connection.commit()
            except BaseException:
                if connection.in_transaction:
                    connection.rollback()
                raise

    def close(self):
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _opened(self):
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self):
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self._checked(self._connect(f"file:{_quoted(self.path)}", wal=True))
        except (sqlite3.OperationalError, OSError):
            if not self.path.exists() or (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
                raise
            # Without the right to write there is no write-ahead log to share, and so nobody who changes the file.
            return self._checked(self._connect(f"file:{_quoted(self.path)}?mode=ro&immutable=1", wal=False))

    def _connect(self, address, wal):
        options = {"timeout": PATIENCE, "isolation_level": None, "check_same_thread": False, "uri": True}
        connection = sqlite3.connect(address, **options)
        try:
            if wal:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.executescript(TABLES)
                if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                    connection.execute(f"PRAGMA user_version = {VERSION}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _checked(self, connection):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            connection.close()
            raise StoreError(
                f"{self.path} has format {version}; this version of rbrl reads format {VERSION}. Choose another folder, or "
                "use the version of rbrl that wrote it."
            )
        return connection

    @contextmanager
    def _in_words(self):
        try:
            yield
        except StoreError:
            raise
        except (sqlite3.Error, OSError) as error:
            raise StoreError(self._explain(error)) from error

    def _explain(self, error):
        kept = "What was finished before is safe"
        text = str(error)
        if "full" in text or getattr(error, "errno", None) == 28:
            return f"no space is left for {self.path} ({text}). {kept}: free some space and start again."
        if isinstance(error, sqlite3.DatabaseError) and "not a database" in text:
            return f"{self.path} is not a store of rbrl ({text}). Choose another folder."
        if isinstance(error, OSError) or "readonly" in text or "unable to open" in text:
            return f"{self.path} cannot be written ({text}). Choose a folder that you may write to. {kept}."
        return f"{self.path} cannot be used ({text}). {kept}."


def _quoted(path):
    """A path inside an SQLite address."""
    text = path.absolute().as_posix()
    return text.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
