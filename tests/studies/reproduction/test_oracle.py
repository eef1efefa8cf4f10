"""Every point of a grid, tested: the same figures as a run's, the point nearest to the paper's, and what is left to do."""

import json

import numpy as np
import pandas as pd
import pytest
from published_rows import published_rows

from rbrl import RankSVMz
from rbrl.datasets import load
from rbrl.experiments import Plan, Store, execute
from studies.reproduction import oracle
from studies.reproduction.cost import tolerance
from studies.reproduction.oracle import (
    CountedRankSVMz,
    DoubledRankSVMz,
    Search,
    best_points,
    oracle_table,
    weight_table,
)
from studies.reproduction.paper import printed
from studies.reproduction.recorded import Recorded, facts, results_folder, write_rows


def test_a_weight_is_the_price_of_irrelevant_labels():
    Y = np.array([[1, -1, -1, 1], [1, -1, -1, -1]])
    plain, doubled, counted = (cls._pairs(Y, 3.0) for cls in (RankSVMz, DoubledRankSVMz, CountedRankSVMz))
    zero_wins = plain.winner == 4
    np.testing.assert_array_equal(doubled.cap, np.where(zero_wins, 2, 1) * plain.cap)
    n_relevant = np.repeat([2, 1], np.diff(plain.start))
    np.testing.assert_array_equal(counted.cap, np.where(zero_wins, n_relevant, 1) * plain.cap)
    assert zero_wins.sum() == 5


def test_a_point_has_the_figures_of_a_run_with_its_parameters(tmp_path):
    table = {"datasets": ["yeast"], "splits": {"number": 2}, "preprocessing": {"standardise": "dense"}}
    method = {"convention": "mulan", "params": {"scores": "hard"}}
    plan = Plan.from_dict({**table, "methods": {"br": {**method, "grid": {"C": [0.01, 0.1]}}}})
    found = oracle.search(Search("yeast", "br", oracle.PLAIN, 1, 1.0), plan, load("yeast"))
    assert [json.loads(params) for params in found.params] == [{"C": 0.01}, {"C": 0.1}]
    fixed = Plan.from_dict({**table, "methods": {"br": {**method, "params": {"scores": "hard", "C": 0.1}}}})
    execute(fixed, tmp_path / "store")
    rows = Store(tmp_path / "store").rows(fixed)
    expected = rows[rows.split == 1].set_index("metric").value
    np.testing.assert_allclose(found[oracle.METRICS].iloc[1].astype(float), expected[oracle.METRICS], rtol=1e-12)


@pytest.fixture
def frame():
    """CPNL on yeast at two points: the second has the printed figures but for one, far on the second split only."""
    values = printed("results", mean="printed", std="printed_std")
    values = values[(values.dataset == "yeast") & (values.method == "CPNL")].set_index("metric")
    rows = []
    for split, point in [(0, 1), (0, 2), (1, 1), (1, 2)]:
        own = {name: values.printed[name] + (0.5 if point == 1 else 0.0) for name in oracle.METRICS}
        own["coverage"] += 4.9 * values.printed_std["coverage"] * (split == 1)
        rows.append(
            {"dataset": "yeast", "method": "cpnl", "weight": 1, "split": split, "params": f'{{"C": {point}}}', **own}
        )
    return pd.DataFrame(rows)


def test_the_best_point_is_one_for_all_splits(frame):
    (best,) = best_points(frame).to_dict("records")
    assert (best["params"], best["n_points"], best["n_splits"]) == ('{"C": 2}', 2, 2)
    assert (best["within3"], best["within2"]) == (6, 5)
    assert [cell.text for cell in oracle_table(frame).rows[0]] == ["CPNL", "yeast", "–", "2", "2", "6", "5", "yes"]
    assert {cell.text for row in weight_table(frame).rows for cell in row[1:]} == {"–"}


def far(dataset, metric, method):
    return 0.5 if (dataset, metric, method) == ("arts", "coverage", "CPNL") else 0.0


def test_what_is_recorded_is_not_searched_again(tmp_path, monkeypatch):
    rows = published_rows(change=far)
    effort = rows.drop_duplicates(["dataset", "method"])[["dataset", "method", "split"]].assign(seconds=50.0)
    write_rows(tmp_path / "paper.csv.gz", rows, facts())
    oracle.write_table(tmp_path / "paper-tuning.csv.gz", effort, facts())
    searched = []

    def search(one, plan, data):
        searched.append((one.dataset, one.method, one.weight, one.split))
        return pd.DataFrame([{**one.__dict__, "params": "{}", **dict.fromkeys(oracle.METRICS, 0.5)}])

    monkeypatch.setattr(oracle, "search", search)
    monkeypatch.setattr(oracle, "load", lambda name, data_home: None)
    recorded = Recorded(tmp_path)
    for _ in range(2):
        oracle.run(recorded, 0.4)
    planned = [(one.dataset, one.method, one.weight, one.split) for one in oracle.searches(recorded)]
    assert planned[:3] == [("arts", "cpnl", "1", split) for split in range(3)], "what a far cell asks for comes first"
    assert len(planned) == 3 + 10 * 3 * 3, "and Rank-SVMz with three weights on every set"
    assert searched == planned
    assert len(oracle.run(recorded, 0.4)) == len(planned)


def test_a_search_that_would_take_too_long_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(oracle, "searches", lambda recorded: [Search("yeast", "br", oracle.PLAIN, 0, 61.0)])
    monkeypatch.setattr(oracle, "search", lambda *what: pytest.fail("too long"))
    assert oracle.run(Recorded(tmp_path), 1.0).empty


def test_the_recorded_points_have_the_recorded_results():
    """At the parameters that a run chose, the search of all points has its figures, as far as its gap tells them."""
    recorded = Recorded(results_folder())
    points, rows = recorded.table(oracle.TABLE).astype({"weight": str}), recorded.rows("paper")
    runs = rows.pivot(
        index=["dataset", "method", "split", "params", "gap"], columns="metric", values="value"
    ).reset_index()
    for run in runs.merge(points[points.weight == oracle.PLAIN][oracle.KEYS].drop_duplicates()).itertuples():
        own = points[(points.dataset == run.dataset) & (points.method == run.method) & (points.split == run.split)]
        chosen = json.loads(run.params)
        same = [json.loads(params).items() <= chosen.items() for params in own.params]
        found = own[np.array(same) & (own.weight == oracle.PLAIN)][oracle.METRICS]
        expected = [getattr(run, name) for name in oracle.METRICS]
        np.testing.assert_allclose(found.to_numpy(), [expected], atol=tolerance(run.gap))
