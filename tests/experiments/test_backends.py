"""The same plan gives the same rows, however many workers there are and wherever they are."""

import os
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from small_comparison import timeless

from rbrl.experiments import Plan, Store, execute
from rbrl.experiments.methods import find_class

KILLER = """
import os

from rbrl import BRLClassifier


class Killer(BRLClassifier):
    def fit(self, X, y):
        {how}
"""


def assert_same_rows(store, expected):
    for name in ("rows", "tuning"):
        found, wanted = (timeless(getattr(one, name)()) for one in (store, expected))
        pd.testing.assert_frame_equal(found, wanted, rtol=0, atol=1e-9)


def test_two_jobs(plan, expected, tmp_path):
    summary = execute(plan, tmp_path, jobs=2)
    assert (summary.n_done, summary.n_failed) == (9, 3)
    assert_same_rows(Store(tmp_path), expected)


@pytest.fixture
def cluster(request):
    """Two worker processes of two threads each, on ports that the system chooses, patient where the machine is busy."""
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    dask = pytest.importorskip("dask")
    patience = {"tcp": "300s", "connect": getattr(request, "param", "300s")}
    waits = {f"distributed.comm.timeouts.{name}": seconds for name, seconds in patience.items()}
    workers = {"n_workers": 2, "threads_per_worker": 2, "processes": True, "memory_limit": 0}
    with (
        dask.config.set(waits),
        distributed.LocalCluster(**workers, dashboard_address=None, silence_logs="CRITICAL") as cluster,
    ):
        yield cluster


def test_dask(plan, expected, tmp_path, cluster):
    summary = execute(plan, tmp_path, backend="dask", scheduler=cluster.scheduler_address)
    assert (summary.n_done, summary.n_failed) == (9, 3), summary.failures
    assert_same_rows(Store(tmp_path), expected)


def test_threads_that_import_one_file_wait_for_its_end(tmp_path):
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.2)\n\n\nclass Slow:\n    pass\n")
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: find_class("slow.py:Slow", tmp_path), range(4)))
    assert len({id(one) for one in found}) == 1


def with_a_killer(how, table, place, folder):
    """A plan of a method that ends its worker before one that works, on the same data."""
    (folder / "killer.py").write_text(KILLER.format(how=how))
    table["datasets"][0]["file"] = str(place / "mine.csv")
    table["splits"]["number"] = 1
    table["methods"] = {"killer": {"use": "killer.py:Killer"}, "brl": {}}
    return Plan.from_dict(table, folder=folder)


def assert_only_the_killer_failed(summary, store):
    assert (summary.n_done, summary.n_failed) == (1, 1)
    assert "WorkerLost: the worker process ended during the run" in summary.failures[0][3]
    assert set(Store(store).rows().query("status == 'ok'").method) == {"brl"}


@pytest.mark.skipif(os.name == "nt", reason="needs kill")
@pytest.mark.parametrize("how", ["os.kill(os.getpid(), 9)", pytest.param("os._exit(0)", marks=pytest.mark.soak)])
def test_a_worker_that_dies_fails_its_run_only(table, place, tmp_path, how):
    plan = with_a_killer(how, table, place, tmp_path)
    assert_only_the_killer_failed(execute(plan, tmp_path / "store", jobs=2), tmp_path / "store")


# So long does Dask itself try to reach a worker that is no more.
@pytest.mark.parametrize("cluster", ["10s"], indirect=True)
def test_data_that_died_with_a_dask_worker_is_sent_again(table, place, tmp_path, cluster):
    plan = with_a_killer("os._exit(0)", table, place, tmp_path)
    summary = execute(plan, tmp_path / "store", backend="dask", scheduler=cluster.scheduler_address)
    assert_only_the_killer_failed(summary, tmp_path / "store")


def test_dask_missing_is_said_plainly(plan, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(ImportError, match=r"rbrl\[dask\]"):
        execute(plan, tmp_path, backend="dask")
