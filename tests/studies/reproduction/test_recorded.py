"""Recorded results: what is written is what is read, and what is recomputed."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from published_rows import effort, published_rows

from rbrl.experiments import Plan, Store, execute
from studies.reproduction import recorded as files
from studies.reproduction import steps
from studies.reproduction.cost import check, check_table, draw
from studies.reproduction.criteria import choices, summarise_choices
from studies.reproduction.recorded import (
    RUN_KEYS,
    Recorded,
    Stored,
    completed,
    facts,
    plan_file,
    read_rows,
    read_table,
    run_keys,
    write_rows,
    write_table,
)
from studies.reproduction.steps import write_results

TABLE = {
    "datasets": ["yeast"],
    "splits": {"number": 2},
    "tuning": {"folds": 2},
    "methods": {
        "brl": {"params": {"tol": 1e-8}, "grid": {"ridge": [0.1, 10.0]}},
        "ml-knn": {"convention": "mulan", "grid": {"n_neighbors": [10]}, "tune_on": "first"},
    },
}


@pytest.fixture(scope="module")
def plan():
    return Plan.from_dict(TABLE)


@pytest.fixture(scope="module")
def store(plan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    assert execute(plan, folder).n_failed == 0
    return Store(folder)


def test_rows_come_back(tmp_path):
    rows = published_rows(datasets=["arts", "emotions"])
    failed = (rows.method == "br") & (rows.split == 1)
    rows.loc[failed, ["value", "status", "error"]] = [np.nan, "failed", 'MemoryError: "no", room']
    write_rows(tmp_path / "a.csv.gz", rows, facts(plan="plans/a.toml"))
    again, said = read_rows(tmp_path / "a.csv.gz")
    metrics = said["metrics"]
    expected = rows.assign(order=rows.metric.map(metrics.index)).sort_values(["dataset", "method", "split", "order"])
    pd.testing.assert_frame_equal(again[rows.columns], expected[rows.columns].reset_index(drop=True), check_dtype=False)
    assert said["plan"] == "plans/a.toml"
    assert {"command", "version", "date", "machine 1", "machine 2"} <= set(said)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_table(tmp_path / "a.csv.gz", pd.DataFrame({"x": [1]}), {"command": "first"})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space"):
        write_table(path, pd.DataFrame({"x": [2]}), {})
    frame, said = read_table(path)
    assert (frame.x[0], said) == (1, {"command": "first"})
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv.gz"]


def test_a_store_is_exported_and_read_back(store, plan, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "read_plan", lambda name: plan)
    monkeypatch.setattr(steps, "read_plan", lambda name: plan)
    written = write_results(Stored(store), tmp_path, facts(), plans=["paper", "paper-quick"])
    assert [path.name for path in written] == [
        "paper.csv.gz",
        "paper-tuning.csv.gz",
        "paper-quick.csv.gz",
        "criteria.csv.gz",
    ]
    kept = Recorded(tmp_path)
    pd.testing.assert_frame_equal(kept.rows("paper"), store.rows(plan), check_dtype=False, rtol=1e-8)
    pd.testing.assert_frame_equal(kept.effort("paper"), store.effort(plan), check_dtype=False, rtol=1e-8)
    assert kept.has("plans/paper-quick.toml")
    assert not kept.has("paper-fair")
    with pytest.raises(
        FileNotFoundError, match=r"no such results: .*paper-fair\.csv\.gz; `python -m studies.reproduction export"
    ):
        kept.rows("paper-fair")


def renamed(**changes):
    """The plan with BRL under another name, alone and with some changes."""
    return Plan.from_dict({**TABLE, "methods": {"mine": {"use": "brl", **TABLE["methods"]["brl"], **changes}}})


def test_what_is_recorded_and_depends_on_the_same_is_kept(store, plan, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "read_plan", lambda name: plan)
    monkeypatch.setattr(steps, "read_plan", lambda name: plan)
    write_results(Stored(store), tmp_path, facts() | {"date": "2001-02-03"}, plans=["paper"])
    other = renamed()
    monkeypatch.setattr(files, "read_plan", lambda name: other)
    monkeypatch.setattr(steps, "read_plan", lambda name: other)
    execute(other.part(splits=[1]), tmp_path / "store")
    write_results(Stored(tmp_path / "store"), tmp_path, facts() | {"date": "2004-05-06"}, plans=["paper-fair"])
    kept = Recorded(tmp_path)
    assert kept.dates("paper-fair") == {"2001-02-03": 1, "2004-05-06": 1}
    own, old = kept.rows("paper-fair"), store.rows(plan)
    assert own[RUN_KEYS].drop_duplicates().values.tolist() == [["yeast", "mine", 0], ["yeast", "mine", 1]]
    first = old[(old.method == "brl") & (old.split == 0)]
    np.testing.assert_allclose(own.value[own.split == 0], first.value, rtol=1e-8)
    assert kept.effort("paper-fair").split.tolist() == [0, 1]


@pytest.mark.parametrize("change", [{"params": {"tol": 1e-6}}, {"grid": {"ridge": [0.1]}}, {"convention": "mulan"}])
def test_what_depends_on_something_else_is_not_kept(store, plan, change):
    rows = completed(store.rows(plan), run_keys(plan), [], "2001-02-03")
    nothing = store.rows(plan).head(0)
    assert len(completed(nothing, run_keys(renamed()), [rows], "2004-05-06"))
    assert completed(nothing, run_keys(renamed(**change)), [rows], "2004-05-06").empty


def test_records_of_the_same_run_are_the_same():
    """What two plans share is in both files: the same values, and the key of the plan as it is now."""
    kept, _ = Recorded(files.results_folder()).kept()
    rows = pd.concat(kept, ignore_index=True)
    assert (rows.groupby(["key", "metric"]).value.nunique() == 1).all()
    for name in ("paper", "paper-fair"):
        frame = next(one for one, plan in zip(kept, files.PLANS) if plan == name)
        keys = run_keys(files.read_plan(name))
        assert [keys[place] for place in frame[RUN_KEYS].itertuples(index=False, name=None)] == frame.key.tolist()


def test_recorded_results_are_recomputed(store, plan):
    rows = store.rows(plan)
    checked = check(rows, plan, n=2, seed=0)
    assert {one.method for one in checked} == {"brl", "ml-knn"}, "of two results each is of another method"
    assert all(one.agrees for one in checked)
    assert all(row[3].text == "yes" for row in check_table(checked).rows)


def test_a_record_without_what_the_plan_says_is_recomputed_with_it(tmp_path):
    """It was a default when the record was made; a ridge of 1e4 moves every metric by more than another default may."""
    method = {"params": {"ridge": 1e4, "tol": 1e-8}, "grid": {"nuclear": [1.0]}}
    plan = Plan.from_dict({"datasets": ["yeast"], "splits": {"number": 1}, "methods": {"brl": method}})
    execute(plan, tmp_path)
    rows = Store(tmp_path).rows(plan)
    (one,) = check(rows.assign(params='{"nuclear": 1.0}'), plan, n=1)
    assert one.agrees, one


def test_a_wrong_record_is_found(store, plan):
    rows = store.rows(plan)
    rows.loc[rows.metric == "coverage", "value"] += 0.01
    assert not any(one.agrees for one in check(rows, plan, n=2, seed=0))
    other = store.rows(plan).assign(dataset="arts")
    (one, _) = check(other, plan, n=2, seed=0)
    assert (one.agrees, one.error) == (False, "the plan has no such run")


def test_what_took_long_is_not_drawn():
    rows = published_rows(datasets=["arts"])
    rows.loc[rows.method != "br", "train_seconds"] = 100.0
    assert set(draw(rows, 2, seed=1).method) == {"br"}
    with pytest.raises(ValueError, match="No recorded result took at most"):
        draw(rows[rows.method != "br"], 2)


def test_choices_of_a_criterion_are_those_of_a_run(store, plan, tmp_path):
    found = choices(store, plan, ["mean_rank", "coverage", ("coverage", "hamming_loss")])
    assert set(found.criterion) == {"mean_rank", "coverage", "coverage and hamming_loss"}
    found = found[found.criterion != "coverage and hamming_loss"]
    assert len(found) == 2 * 2 + 2
    other = Plan.from_dict({**TABLE, "tuning": {"folds": 2, "criterion": "coverage"}})
    execute(other, tmp_path)
    rows = Store(tmp_path).rows(other)
    for line in found[found.criterion == "coverage"].itertuples():
        run = rows[(rows.method == line.method) & (rows.split == line.split)].iloc[0]
        assert json.loads(run.params).items() >= json.loads(line.params).items()
    summary = summarise_choices(found, plan.metrics)
    assert (summary[summary.criterion == "mean_rank"].same == 1).all()
    assert summary.n_tunings.sum() == 6


def test_where_plans_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert all(plan_file(name).is_file() for name in files.PLANS), "wherever one works"
    assert plan_file("here/own.toml") == Path("here/own.toml")


def test_effort_fixture_matches_the_store(store, plan):
    assert list(effort(published_rows(datasets=["arts"])).columns) == list(store.effort(plan).columns)
