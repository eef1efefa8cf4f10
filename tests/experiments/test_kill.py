"""A process killed at any moment loses at most the runs in flight; several on one store share the work."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from killed import MOMENTS
from small_comparison import PLAN, environment, start, timeless

from rbrl.experiments import Plan, Store, execute

SLOW = """
import time

from rbrl import BRLClassifier


class Slow(BRLClassifier):
    def loss(self, count_labels=None):
        with open("count.txt", "a") as log:
            log.write("fit\\n")
        time.sleep(0.03)
        return super().loss()
"""


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    """Log the fits of each test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def slow(place, tmp_path_factory):
    """A plan of 24 runs, of about a tenth of a second each, that log their fits."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "slow.py").write_text(SLOW)
    (folder / "mine.csv").write_bytes((place / "mine.csv").read_bytes())
    grid = {"ridge": [0.1, 1.0]}
    methods = {
        name: {"use": "slow.py:Slow", "grid": grid, "params": {"nuclear": x}} for name, x in [("a", 0.1), ("b", 0.2)]
    }
    path = folder / "plan.toml"
    path.write_text(Plan.from_dict({**PLAN, "splits": {"number": 12}, "methods": methods}).to_toml())
    return path


@pytest.fixture(scope="module")
def whole(slow):
    """The store of a run that nobody disturbed, and how many seconds it took."""
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(slow.parent)
        execute(slow, slow.parent / "whole")
    return Store(slow.parent / "whole"), time.monotonic() - began


def n_runs(store):
    try:
        return len(store.finished())
    finally:
        store.close()


def kill_and_resume(slow, whole, folder, chance, jobs):
    """Kill a process at a random moment after its first result, finish what it left, and compare."""
    expected, seconds = whole
    store, process = Store(folder), start(slow, folder, jobs)
    while n_runs(store) == 0 and process.poll() is None:
        time.sleep(0.02)
    time.sleep(chance.uniform(0, seconds))
    process.kill()
    process.wait()
    kept = n_runs(store)
    assert execute(slow, store).n_reused == kept > 0
    pd.testing.assert_frame_equal(timeless(store.rows()), timeless(expected.rows()))
    pd.testing.assert_frame_equal(timeless(store.tuning()), timeless(expected.tuning()))


@pytest.mark.parametrize("seed", range(2))
def test_killed_and_resumed(slow, whole, tmp_path, seed):
    kill_and_resume(slow, whole, tmp_path / "killed", random.Random(seed), jobs=1 + seed % 2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 33))
def test_killed_and_resumed_often(slow, whole, tmp_path, seed):
    kill_and_resume(slow, whole, tmp_path / "killed", random.Random(seed), jobs=1 + seed % 2)


def test_killed_before_the_first_result(slow, whole, tmp_path):
    process = start(slow, tmp_path / "killed")
    time.sleep(0.5)
    process.kill()
    process.wait()
    execute(slow, tmp_path / "killed")
    pd.testing.assert_frame_equal(timeless(Store(tmp_path / "killed").rows()), timeless(whole[0].rows()))


def test_two_processes_share_the_runs(slow, whole, tmp_path):
    processes = [start(slow, tmp_path / "shared") for _ in range(2)]
    codes = [process.wait(timeout=600) for process in processes]
    assert codes == [0, 0], (tmp_path / "shared.log").read_text()
    fits, fits_alone = (len((folder / "count.txt").read_text().splitlines()) for folder in (tmp_path, slow.parent))
    assert fits == fits_alone, "a run was done twice"
    store = Store(tmp_path / "shared")
    pd.testing.assert_frame_equal(timeless(store.rows()), timeless(whole[0].rows()))


def test_the_runs_of_a_killed_process_are_taken_over(slow, whole, tmp_path):
    first, second = (start(slow, tmp_path / "shared") for _ in range(2))
    store = Store(tmp_path / "shared")
    while n_runs(store) < 4:
        time.sleep(0.02)
    first.kill()
    first.wait()
    assert second.wait(timeout=600) == 0, (tmp_path / "shared.log").read_text()
    pd.testing.assert_frame_equal(timeless(store.rows()), timeless(whole[0].rows()))
    assert not list((tmp_path / "shared" / "locks").iterdir())


ENDLESS = """
import os
import time

from rbrl import BRLClassifier


class Endless(BRLClassifier):
    def loss(self, count_labels=None):
        open(f"{os.getpid()}.pid", "w").close()
        time.sleep(600)
        return super().loss()
"""


def is_running(pid):
    """Tell whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_no_worker_outlives_a_killed_comparison(table, place, tmp_path, monkeypatch):
    """A worker in the middle of a long fit must not fit on for nobody."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "endless.py").write_text(ENDLESS)
    (tmp_path / "mine.csv").write_bytes((place / "mine.csv").read_bytes())
    table["methods"] = {"endless": {"use": "endless.py:Endless"}}
    path = tmp_path / "plan.toml"
    path.write_text(Plan.from_dict(table).to_toml())
    process = start(path, tmp_path / "store", jobs=2)
    pids = []
    try:
        while len(pids) < 2:
            assert process.poll() is None, (tmp_path / "store.log").read_text()
            time.sleep(0.1)
            pids = [int(file.stem) for file in tmp_path.glob("*.pid")]
        assert all(map(is_running, pids))
        process.kill()
        process.wait()
        # A worker looks every second; a crowded machine may let it wait for its turn.
        end = time.monotonic() + 60
        while any(map(is_running, pids)) and time.monotonic() < end:
            time.sleep(0.1)
        assert not any(map(is_running, pids))
    finally:
        process.kill()
        for pid in filter(is_running, pids):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def quick(table, place, tmp_path):
    """A plan of quick runs, one of whose methods is judged by another rule too; and the same for a number of splits."""
    (tmp_path / "mine.csv").write_bytes((place / "mine.csv").read_bytes())
    rule = {"params": {"scores": "decision"}, "convention": "paper"}
    table["methods"] = {
        "brl": {"grid": {"ridge": [0.1, 1.0]}},
        "br": {"params": {"scores": "hard"}, "grid": {"C": [0.1, 1.0]}, "also_judged": [rule]},
    }

    def plan(n_splits):
        table["splits"]["number"] = n_splits
        path = tmp_path / "quick.toml"
        path.write_text(Plan.from_dict(table).to_toml())
        return path

    return plan


def killed_at_commits(plan, folder, n_kills, seed):
    """Kill a comparison again and again in and around its transactions, finish it, and compare with one undisturbed."""
    program = Path(__file__).with_name("killed.py")
    command = [sys.executable, str(program), str(plan), str(folder / "killed"), str(n_kills), str(seed)]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    kills = json.loads(ended.stdout)
    assert len(kills) == n_kills
    store, whole = Store(folder / "killed"), Store(folder / "whole")
    summary = execute(plan, store)
    assert summary.n_reused >= sum(kill["finished"] for kill in kills)
    execute(plan, whole)
    pd.testing.assert_frame_equal(timeless(store.rows()), timeless(whole.rows()))
    pd.testing.assert_frame_equal(timeless(store.tuning()), timeless(whole.tuning()))
    return kills


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
def test_killed_in_and_around_commits(quick, tmp_path):
    kills = killed_at_commits(quick(16), tmp_path, len(MOMENTS), seed=0)
    assert {kill["moment"] for kill in kills} == set(MOMENTS)
    assert sum(kill["finished"] > 1 for kill in kills) >= 3


@needs_fork
@pytest.mark.soak
def test_killed_a_hundred_times_in_and_around_commits(quick, tmp_path):
    kills = killed_at_commits(quick(250), tmp_path, 100, seed=1)
    assert all(sum(kill["moment"] == moment for kill in kills) == 20 for moment in MOMENTS)
    assert sum(kill["finished"] > 1 for kill in kills) >= 50
