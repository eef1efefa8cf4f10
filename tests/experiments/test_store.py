"""A store that cannot be written says so and loses nothing."""

import errno
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
from small_comparison import environment, timeless

from rbrl.experiments import Plan, Store, StoreError, execute
from rbrl.experiments.sqlite import FORMAT_VERSION, Database, Owner, is_alive


@pytest.fixture
def two(table, place, tmp_path):
    """A store with the first of three splits done."""
    table["methods"] = {"brl": {"grid": {"ridge": [0.1, 1.0]}}}
    table["splits"]["number"] = 1
    execute(Plan.from_dict(table, folder=place), tmp_path / "store")
    table["splits"]["number"] = 3
    return Plan.from_dict(table, folder=place), Store(tmp_path / "store")


def test_a_new_store_may_be_opened_by_several_at_once(tmp_path):
    def n_runs(folder):
        database = Database(folder)
        with database.writing() as cursor:
            (number,) = cursor.execute("SELECT count(*) FROM runs").fetchone()
        database.close()
        return number

    folders = [tmp_path / str(i // 4) for i in range(400)]  # one in fifteen failed while SQLite alone was waiting
    with ThreadPoolExecutor(4) as threads:
        assert not any(threads.map(n_runs, folders))


def test_a_full_disk_is_an_error_that_loses_nothing(two, monkeypatch):
    plan, store = two
    before = store.rows()
    opened = sqlite3.connect

    def almost_full(*args, **kwargs):
        connection = opened(*args, **kwargs)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        return connection

    store.close()
    monkeypatch.setattr(sqlite3, "connect", almost_full)
    grown = Plan.from_dict({**plan.to_dict(), "splits": {"number": 60}}, folder=plan.folder)
    with pytest.raises(StoreError, match=r"no space is left for .*runs\.sqlite .* What was finished before is safe"):
        execute(grown, store)
    monkeypatch.undo()
    assert execute(plan, store).n_failed == 0
    pd.testing.assert_frame_equal(store.rows().query("split == 0"), before)


ROOM = 400 * 1024


def small_disk(folder):
    """The words before a command that see a small file system at `folder`, which needs no rights where users may have
    namespaces; the test is skipped where they may not."""
    mount = f'mount -t tmpfs -o size={ROOM} tmpfs "$0" && exec "$@"'
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("needs unshare, and the right to mount a small file system in a namespace of its own")
    return words


@pytest.mark.parametrize("how", ["disk", "limit"])
def test_a_disk_that_fills_after_some_rows_loses_nothing(table, place, tmp_path, how):
    pytest.importorskip("resource", reason="needs limits on the size of files")
    table["methods"] = {"brl": {"grid": {"ridge": [0.1, 1.0]}}}
    table["splits"]["number"] = 40
    (tmp_path / "mine.csv").write_bytes((place / "mine.csv").read_bytes())
    (tmp_path / "plan.toml").write_text(Plan.from_dict(table).to_toml())
    store = tmp_path / "store"
    store.mkdir()
    words = small_disk(store) if how == "disk" else []
    program = Path(__file__).with_name("full_disk.py")
    command = [*words, sys.executable, str(program), how, str(tmp_path / "plan.toml"), str(store), str(ROOM)]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    (told, first), (more, second), (_, last) = json.loads(ended.stdout)
    assert len(told) > 2, "some rows were written"
    for error in (first, second):
        assert f"{store / 'runs.sqlite'}" in error
        assert "What was finished before is" in error
    if how == "disk":
        assert "no space is left for" in first
    kept, rows = (pd.read_pickle(f"{store}.{name}") for name in ("kept", "rows"))
    done = kept[["dataset", "method", "split"]].drop_duplicates().to_numpy().tolist()
    assert done[: len(told)] == told
    assert len(done) == len(told) + len(more), "what was told to be finished is there, and no more"
    assert last == ""
    pd.testing.assert_frame_equal(rows.head(len(kept)), kept)
    execute(tmp_path / "plan.toml", tmp_path / "whole")
    pd.testing.assert_frame_equal(timeless(rows), timeless(Store(tmp_path / "whole").rows()))


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EROFS, "Read-only")])
def test_errors_of_the_system_are_explained(two, monkeypatch, error):
    plan, store = two

    def refuse(self):
        raise error

    monkeypatch.setattr("rbrl.experiments.sqlite.Database._open", refuse)
    with pytest.raises(
        StoreError, match="no space is left for" if error.errno == errno.ENOSPC else "cannot be written"
    ):
        execute(plan, store)


def test_a_place_that_is_no_folder(plan, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match=r"cannot be written .* Choose a folder that you may write to"):
        execute(plan, tmp_path / "file" / "store")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_the_right_to_write(two):
    plan, store = two
    before = store.rows()
    store.close()
    store.path.chmod(0o500)
    (store.path / "runs.sqlite").chmod(0o400)
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            execute(plan, store)
        pd.testing.assert_frame_equal(Store(store.path).rows(), before)
    finally:
        store.path.chmod(0o700)


def test_a_file_of_something_else_is_left_alone(plan, tmp_path):
    (tmp_path / "runs.sqlite").write_text("my own notes, which are long enough to be read as a header of a file" * 10)
    with pytest.raises(StoreError, match="is not a store of rbrl"):
        execute(plan, tmp_path)
    assert (tmp_path / "runs.sqlite").read_text().startswith("my own notes")


def test_a_store_of_another_version(two):
    plan, store = two
    store.close()
    with sqlite3.connect(store.path / "runs.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(
        StoreError,
        match=rf"has format 99; this version of rbrl reads formats 2 and {FORMAT_VERSION}\. Choose another folder",
    ):
        execute(plan, store)


BEFORE = """
CREATE TABLE former (
    tune_key TEXT NOT NULL, point TEXT NOT NULL, fold INTEGER NOT NULL, vals TEXT NOT NULL, fit_seconds REAL, gap REAL,
    evaluations REAL, PRIMARY KEY (tune_key, point, fold)
) WITHOUT ROWID;
INSERT INTO former SELECT tune_key, point, fold, vals, fit_seconds, gap, evaluations FROM folds;
DROP TABLE folds;
ALTER TABLE former RENAME TO folds;
PRAGMA user_version = 2;
"""


@pytest.fixture
def former(two):
    """The same store in the format before, which did not record what a search took of the processor."""
    plan, store = two
    before = store.rows(), store.tuning()
    store.close()
    with sqlite3.connect(store.path / "runs.sqlite") as connection:
        connection.executescript(BEFORE)
    connection.close()
    return plan, store, *before


def test_a_store_of_the_format_before_goes_on(former):
    plan, store, rows, tuning = former
    assert store.effort().processor_seconds.isna().all()
    pd.testing.assert_frame_equal(store.rows(), rows)
    summary = execute(plan, store)
    assert (summary.n_reused, summary.n_done) == (1, 2)
    pd.testing.assert_frame_equal(store.tuning().query("split == 0"), tuning)
    assert store.effort().processor_seconds.isna().tolist() == [True, False, False]


def test_a_store_of_the_format_before_is_read_where_nothing_may_be_written(former, monkeypatch):
    _, store, rows, tuning = former
    content = (store.path / "runs.sqlite").read_bytes()

    def refuse(self, connection):
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr("rbrl.experiments.sqlite.Database._prepare", refuse)
    monkeypatch.setattr("rbrl.experiments.sqlite.os.access", lambda *_: False)
    pd.testing.assert_frame_equal(store.rows(), rows)
    pd.testing.assert_frame_equal(store.tuning(), tuning)
    assert store.effort().processor_seconds.isna().all()
    assert (store.path / "runs.sqlite").read_bytes() == content


READING = """
import os, sys
import pandas  # while its files may be read
from rbrl.experiments import Store, StoreError
if os.geteuid() == 0:
    os.setuid(65534)
try:
    sys.stdout.write(str(len(Store(sys.argv[1]).rows())))
except StoreError as error:
    sys.stdout.write(str(error))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_what_a_killed_process_left_is_not_missed_where_nothing_may_be_written(two):
    """In the log beside the file, which a reader may use if its index is there, and else must not overlook."""
    plan, store = two
    folder = Path(tempfile.mkdtemp())
    try:
        execute(plan, store)
        n_rows = len(store.rows())
        with store._database.writing() as cursor:
            cursor.execute("DELETE FROM claims")
        for path in store.path.glob("runs.sqlite*"):
            shutil.copy(path, folder)
        assert (folder / "runs.sqlite-wal").stat().st_size
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        command = [sys.executable, "-c", READING, str(folder)]
        assert subprocess.run(command, env=environment(), capture_output=True, text=True).stdout == str(n_rows)
        folder.chmod(0o755)
        (folder / "runs.sqlite-shm").unlink()
        folder.chmod(0o555)
        said = subprocess.run(command, env=environment(), capture_output=True, text=True).stdout
        assert "has results in runs.sqlite-wal that cannot be read without writing" in said
        assert "Copy the folder to where you may write" in said
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_nothing_is_called_safe_in_a_damaged_file(two):
    plan, store = two
    store.close()
    path = store.path / "runs.sqlite"
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * 8192 + content[12288:])
    with pytest.raises(StoreError, match=r"runs\.sqlite is damaged \(.*malformed.*\): some .* may be lost") as caught:
        execute(plan, store)
    assert "is safe" not in str(caught.value)
    assert "or choose another folder" in str(caught.value)


def test_a_text_that_rbrl_did_not_write_is_damage(two):
    plan, store = two
    store.close()
    for damage in ("UPDATE runs SET vals = substr(vals, 2)", "UPDATE runs SET vals = CAST(x'ff7b7d' AS TEXT)"):
        with sqlite3.connect(store.path / "runs.sqlite") as connection:
            connection.execute(damage)
        connection.close()
        with pytest.raises(StoreError, match="is damaged"):
            execute(plan, store)
        with pytest.raises(StoreError, match="is damaged"):
            store.rows()
        store.close()


def test_a_store_cut_anywhere_is_read_or_refused(two):
    """Whatever is overwritten: rows, or a StoreError that promises nothing."""
    _, store = two
    store.close()
    path = store.path / "runs.sqlite"
    content, chance, refused = path.read_bytes(), random.Random(0), []
    for _ in range(60):
        start, length = chance.randrange(100, len(content)), chance.choice([1, 40, 1000, 4096])
        noise = chance.randbytes(length)[: len(content) - start]
        path.write_bytes(content[:start] + noise + content[start + len(noise) :])
        try:
            Store(path.parent).rows()
            Store(path.parent).tuning()
        except StoreError as error:
            refused.append(str(error))
    assert len(refused) > 10
    assert not [text for text in refused if "is safe" in text]


def test_odd_characters_in_the_path(table, place, tmp_path):
    table["methods"], table["splits"]["number"] = {"brl": {}}, 1
    folder = tmp_path / "a?b#c%20 é"
    execute(Plan.from_dict(table, folder=place), folder)
    assert len(Store(folder).rows()) == 6


def test_an_empty_store(tmp_path):
    store = Store(tmp_path / "new")
    assert store.plan() is None
    assert store.rows().empty
    assert store.tuning().empty
    assert store.failures().empty
    assert not list(tmp_path.iterdir()), "who reads a store that is not there makes none"


def test_owners_live_until_they_close(tmp_path):
    owner = Owner(tmp_path)
    assert is_alive(tmp_path, owner.name)
    owner.close()
    assert not is_alive(tmp_path, owner.name)
    (tmp_path / "dead.lock").touch()
    assert not is_alive(tmp_path, "dead.lock")
    assert not list(tmp_path.iterdir())
